package browsertest

import (
	"io"
	"maps"
	"net/http"
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

// TestPreloaded holds that the frame names exactly the modules that every page loads, so that a browser asks for them at
// once: else each would be known only when the one that imports it is there.
func TestPreloaded(t *testing.T) {
	t.Parallel()
	c := start(t)
	_, frame := c.fetch("/console/login", "identity")
	named := map[string]bool{}
	for _, found := range preloads.FindAllSubmatch(frame, -1) {
		named[strings.TrimPrefix(string(found[1]), "/console/"+c.build()+"/")] = true
	}
	want := map[string]bool{"i18n/en.json": true}
	needs(modules(t), "app.js", want)
	if !maps.Equal(named, want) {
		t.Errorf("the frame names %q, and every page loads %q", slices.Sorted(maps.Keys(named)), slices.Sorted(maps.Keys(want)))
	}
}
