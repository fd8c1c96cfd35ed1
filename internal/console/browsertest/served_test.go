package browsertest

import (
	"io"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// served fetches what the server makes of a file of the front end; encoding is gzip or identity.
func (c *console) served(build, name, encoding string) []byte {
	c.t.Helper()
	status, body := c.fetch("/console/"+build+"/"+name, encoding)
	if status != http.StatusOK {
		c.t.Fatalf("%s: answer %d", name, status)
	}
	return body
}

var namesBuild = regexp.MustCompile(`data-build="(\w+)"`)

// build is the name under which the files stand.
func (c *console) build() string {
	c.t.Helper()
	_, frame := c.fetch("/console/login", "identity")
	found := namesBuild.FindSubmatch(frame)
	if found == nil {
		c.t.Fatalf("the frame names no build: %s", frame)
	}
	return string(found[1])
}

func (c *console) fetch(path, encoding string) (status int, body []byte) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.URL+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", encoding)
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err = io.ReadAll(answer.Body); err != nil {
		c.t.Fatal(err)
	}
	return answer.StatusCode, body
}

var preloads = regexp.MustCompile(`<link rel="(?:module)?preload"[^>]* href="([^"]+)"`)

// asks finds the texts and style sheets that a module asks for.
var asks = regexp.MustCompile(`texts\('([\w-]+)'\)|css\('([^']+)'\)`)

// TestPreloaded holds that the frame names all that its page loads, so that a browser asks for everything
// at once: else each file would be known only when the one that needs it is there.
func TestPreloaded(t *testing.T) {
	t.Parallel()
	c := start(t)
	read, base := modules(t), "/console/"+c.build()+"/"
	later := map[string]bool{} // what pages load when it is wanted
	for name, m := range read {
		for _, i := range m.Imports {
			if i.Kind == "dynamic-import" && name != "routes.js" {
				needs(read, i.Path, later)
			}
		}
	}
	files := own(t, ".js")
	for _, name := range slices.Collect(maps.Keys(later)) { // and what those ask for, once they are there
		for _, found := range asks.FindAllSubmatch(files[name], -1) {
			if found[1] != nil {
				later["i18n/en/"+string(found[1])+".json"] = true
			} else {
				later[string(found[2])] = true
			}
		}
	}
	var p *tab
	pages := map[string]bool{}
	for address, page := range map[string]string{
		"/": "overview", "/channels": "channels", "/channels/demo": "channel", "/channels/demo/pair": "channel", "/messages": "messages",
		"/phone": "phone", "/phone/" + ayu: "phone", "/otp": "otp", "/webhooks": "webhooks", "/tokens": "tokens",
		"/api-recipes": "recipes", "/settings": "settings", "/login": "login", "/nothing": "notfound",
	} {
		page = "pages/" + page + ".js"
		pages[page] = true
		_, frame := c.fetch("/console"+address, "identity")
		var named []string
		for _, found := range preloads.FindAllSubmatch(frame, -1) {
			named = append(named, strings.TrimPrefix(string(found[1]), base))
		}
		want := map[string]bool{}
		needs(read, "app.js", want)
		needs(read, page, want)
		for name := range want {
			if !slices.Contains(named, name) {
				t.Errorf("%s does not name %s", address, name)
			}
		}
		for i, name := range named {
			if path.Ext(name) == ".js" && !want[name] || slices.Contains(named[:i], name) {
				t.Errorf("%s names %s for nothing", address, name)
			}
		}
		if page == "pages/login.js" {
			continue // it is nobody's who is signed in
		}
		if p == nil {
			p = c.open("/")
			p.allow("404") // there is no page at one of these addresses
		}
		p.visit(address)
		p.live()
		p.rest()
		for _, name := range eval[[]string](p, `performance.getEntriesByType('resource').map((entry) => new URL(entry.name).pathname)`) {
			name, ours := strings.CutPrefix(name, base)
			if ours && path.Ext(name) != ".svg" && name != "style.css" && !later[name] && !slices.Contains(named, name) {
				t.Errorf("%s loads %s, which it does not name", address, name)
			}
		}
	}
	for _, i := range read["routes.js"].Imports {
		if i.Kind == "dynamic-import" && !pages[i.Path] {
			t.Errorf("%s was not tried", i.Path)
		}
	}
}
