// Package console serves the web console: its pages and files, sign-in by one-time link, and the API for
// signed-in browsers. The pages in ui are plain API clients.
//
// Invariants: only the console's own pages can use a session (checkOrigin); a sign-in link works once; files
// live below a path that contains a hash of all of them, so a browser never mixes two versions.
package console

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"parley"
	"parley/internal/api"
	"parley/internal/asset"
	"parley/internal/store"
)

//go:generate go run parley/internal/tools/vendorjs -root ../..

// Config holds the dependencies of the console. All fields are required except the last two.
type Config struct {
	API     *api.API
	Store   *store.DB
	Log     *slog.Logger
	Version string
	// Mode is how the server was started: "dev" or "serve".
	Mode string
	// PublicURL is the public address of the server; empty: not configured.
	PublicURL string
	// Live reports whether a channel is on a real network; nil: none is.
	Live func() bool
}

// Console handles all paths: its own, and those of the API.
type Console struct {
	config  Config
	assets  func() (*assets, error) // built on first use, because most servers in tests never need them
	page    asset.Page
	api     http.Handler // for signed-in browsers
	origins *http.CrossOriginProtection
}

func New(c Config) (*Console, error) {
	page, err := embedded.ReadFile("ui/index.html")
	if err != nil {
		return nil, err
	}
	assets := sync.OnceValues(func() (*assets, error) { return newAssets(embedded) })
	s := &Console{config: c, assets: assets, page: asset.Page(page), origins: http.NewCrossOriginProtection()}
	if c.PublicURL != "" {
		if err := s.origins.AddTrustedOrigin(c.PublicURL); err != nil {
			return nil, err
		}
	}
	s.api = c.API.Console(s.session)
	return s, nil
}

var strictTransport = []string{"max-age=63072000"} // two years

func (c *Console) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	if hr.TLS != nil { // a TLS proxy sets the header itself
		w.Header()["Strict-Transport-Security"] = strictTransport
	}
	path, own := strings.CutPrefix(hr.URL.Path, "/console/")
	switch {
	case own:
		c.config.API.Begin(w, hr)
		c.serve(w, hr, path)
	case hr.URL.Path == "/console", hr.URL.Path == "/" && wantsPage(hr):
		c.config.API.Begin(w, hr)
		http.Redirect(w, hr, "/console/", http.StatusSeeOther)
	default:
		c.config.API.ServeHTTP(w, hr)
	}
}

// serve routes by the path below /console/.
func (c *Console) serve(w http.ResponseWriter, hr *http.Request, path string) {
	first, _, _ := strings.Cut(path, "/")
	switch {
	case first == "api", path == "events":
		c.serveAPI(w, hr)
	case path == "session":
		c.serveSession(w, hr)
	case path == manifestPath && isRead(hr):
		c.serveManifest(w, hr)
	case isBuild(first):
		c.serveAsset(w, hr, path)
	default:
		c.servePage(w, hr, first)
	}
}

// wantsPage reports whether a browser requests a page. For programs "/" does not exist.
func wantsPage(hr *http.Request) bool {
	return isRead(hr) && strings.Contains(hr.Header.Get("Accept"), "text/html")
}

func isRead(hr *http.Request) bool {
	return hr.Method == http.MethodGet || hr.Method == http.MethodHead
}

// serveAPI forwards to the API, which authenticates the request with check.
func (c *Console) serveAPI(w http.ResponseWriter, hr *http.Request) {
	if api.IsForwarded(hr.Context()) { // the node that received it did the rest
		c.api.ServeHTTP(w, hr)
		return
	}
	if err := c.checkOrigin(hr); err != nil {
		c.config.API.Refuse(w, hr, err)
		return
	}
	// An open stream does not extend the session: a page left open must not stay signed in forever.
	if hr.URL.Path != "/console/events" {
		c.prolong(w, hr)
	}
	c.api.ServeHTTP(w, hr)
}

var errForeign = parley.Errorf(parley.Forbidden, "Only the console's own pages may send this request.")

// checkOrigin refuses requests that pages of other origins make the browser send. A request without
// origin headers does not come from a page.
func (c *Console) checkOrigin(hr *http.Request) error {
	if c.origins.Check(hr) != nil {
		return errForeign
	}
	// CrossOriginProtection lets reads pass, but reads here are as private as writes.
	switch hr.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none", "":
	default:
		return errForeign
	}
	// A proxy may change the Host header, so the public URL is accepted too.
	if origin := hr.Header.Get("Origin"); origin != "" && origin != c.config.PublicURL {
		if u, err := url.Parse(origin); err != nil || u.Host != hr.Host {
			return errForeign
		}
	}
	return nil
}
