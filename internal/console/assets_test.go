package console

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// TestPages compares the addresses of pages with the table of routes.
func TestPages(t *testing.T) {
	t.Parallel()
	routes, err := embedded.ReadFile("ui/routes.js")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]int{}
	for _, found := range regexp.MustCompile(`path: '/([^']*)'`).FindAllSubmatch(routes, -1) {
		words := strings.Split(string(found[1]), "/")
		listed[words[0]] = max(listed[words[0]], len(words)-1)
	}
	if !maps.Equal(listed, pages) {
		t.Errorf("routes.js lists %v, and the server knows %v", listed, pages)
	}
	for address, want := range map[string]bool{
		"": true, "channels": true, "channels/demo": true, "channels/demo/pair": true, "phone": true, "phone/6281234567890": true,
		"webhooks/x": true, "login": true, "channels/": true, "tokens/x": false, "nothing": false, "channels/a/b/c": false,
	} {
		if isPage(address) != want {
			t.Errorf("%q: %v", address, !want)
		}
	}
}

// BenchmarkAssets measures what the first visitor of a server waits for.
func BenchmarkAssets(b *testing.B) {
	b.Run("made", func(b *testing.B) {
		for b.Loop() {
			if _, err := newAssets(embedded); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("made and compressed", func(b *testing.B) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Encoding", "gzip")
		for b.Loop() {
			f, err := newAssets(embedded)
			if err != nil {
				b.Fatal(err)
			}
			for _, file := range f.byPath {
				file.ServeHTTP(httptest.NewRecorder(), r)
			}
		}
	})
}
