// Package console serves the console: its pages and files, signing in by a link that works once, and
// the API to whoever is signed in. What the pages do is in ui; they ask for it as any program does.
package console

import (
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"parley"
	"parley/internal/api"
	"parley/internal/store"
)

//go:generate go run parley/internal/tools/vendorjs -root ../..

// Config says what the console works with. All fields are required but the last two.
type Config struct {
	API     *api.API
	Store   *store.DB
	Log     *slog.Logger
	Version string
	// Mode is how the server was started: "dev" or "serve".
	Mode string
	// PublicURL is the address at which everybody reaches the server; empty: nobody said it.
	PublicURL string
	// Live reports whether a channel is on a real network; nil: none is.
	Live func() bool
}

// Console is a handler of all paths: its own, and those of the API.
type Console struct {
	Config
	files   func() (*files, error) // made when first asked for: most servers of tests are never asked
	page    *template.Template
	door    http.Handler // the API, for whoever is signed in
	foreign *http.CrossOriginProtection
}

// New makes the console.
func New(c Config) (*Console, error) {
	page, err := template.ParseFS(embedded, "ui/index.html")
	if err != nil {
		return nil, err
	}
	files := sync.OnceValues(func() (*files, error) { return newFiles(embedded) })
	s := &Console{Config: c, files: files, page: page, foreign: http.NewCrossOriginProtection()}
	if c.PublicURL != "" {
		if err := s.foreign.AddTrustedOrigin(c.PublicURL); err != nil {
			return nil, err
		}
	}
	s.door = c.API.Console(s.check)
	return s, nil
}

// strictTransport has browsers come by TLS only, for two years from when they last did.
var strictTransport = []string{"max-age=63072000"}

func (c *Console) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	if hr.TLS != nil { // a proxy that does TLS says so itself
		w.Header()["Strict-Transport-Security"] = strictTransport
	}
	path, ours := strings.CutPrefix(hr.URL.Path, "/console/")
	switch {
	case ours:
		c.API.Begin(w, hr)
		c.serve(w, hr, path)
	case hr.URL.Path == "/console", hr.URL.Path == "/" && wantsPage(hr):
		c.API.Begin(w, hr)
		http.Redirect(w, hr, "/console/", http.StatusSeeOther)
	default:
		c.API.ServeHTTP(w, hr)
	}
}

// serve serves what is the console's own, by its path below /console/.
func (c *Console) serve(w http.ResponseWriter, hr *http.Request, path string) {
	first, _, _ := strings.Cut(path, "/")
	switch {
	case first == "api", path == "events":
		c.serveAPI(w, hr)
	case path == "session":
		c.serveSession(w, hr)
	case path == manifestPath && isRead(hr):
		c.serveManifest(w, hr)
	case namesBuild(first):
		c.serveFile(w, hr, path)
	default:
		c.servePage(w, hr, first)
	}
}

// wantsPage reports whether a browser asks for something to show. To programs there is nothing at "/".
func wantsPage(hr *http.Request) bool {
	return isRead(hr) && strings.Contains(hr.Header.Get("Accept"), "text/html")
}

// isRead reports whether a request changes nothing.
func isRead(hr *http.Request) bool {
	return hr.Method == http.MethodGet || hr.Method == http.MethodHead
}

// serveAPI passes a request on to the API, which asks check who it is from.
func (c *Console) serveAPI(w http.ResponseWriter, hr *http.Request) {
	if err := c.refuseForeign(hr); err != nil {
		c.API.Refuse(w, hr, err)
		return
	}
	// A stream is no sign of life: a page that is left open must not keep its session for ever.
	if hr.URL.Path != "/console/events" {
		c.prolong(w, hr)
	}
	c.door.ServeHTTP(w, hr)
}

var errForeign = parley.Errorf(parley.Forbidden, "Only the console's own pages may ask this.")

// refuseForeign refuses what pages of others make the browser ask. Browsers say where a request comes
// from; one without a word of that comes from no page.
func (c *Console) refuseForeign(hr *http.Request) error {
	if c.foreign.Check(hr) != nil {
		return errForeign
	}
	// Reading is as private as changing: the check above leaves it to what browsers keep from pages.
	switch hr.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none", "":
	default:
		return errForeign
	}
	// A proxy need not pass on by what name it was called.
	if origin := hr.Header.Get("Origin"); origin != "" && origin != c.PublicURL {
		if u, err := url.Parse(origin); err != nil || u.Host != hr.Host {
			return errForeign
		}
	}
	return nil
}
