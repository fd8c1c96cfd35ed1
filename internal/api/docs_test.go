package api

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocsStayAtHome checks that the page loads nothing from another server, runs no inline script
// or style, which its policy would stop, and finds all that it loads.
func TestDocsStayAtHome(t *testing.T) {
	server := docsServer(t)
	status, header, page := getAsset(t, server.URL+"/docs", "identity")
	if status != http.StatusOK || header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("/docs answered %d %s", status, header.Get("Content-Type"))
	}
	for _, wanted := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'"} {
		if policy := header.Get("Content-Security-Policy"); !strings.Contains(policy, wanted) {
			t.Errorf("the policy %q lacks %q", policy, wanted)
		}
	}
	for _, banned := range []string{`(?i)https?://`, `(?i)(src|href)="//`, `(?i)<style`, `(?i)\sstyle=`, `(?i)\son[a-z]+=`,
		`(?i)<script(\s+defer)?>`} {
		if found := regexp.MustCompile(banned).FindString(page); found != "" {
			t.Errorf("the page contains %q", found)
		}
	}
	references := regexp.MustCompile(`(?:src|href)="([^"#]+)"`).FindAllStringSubmatch(page, -1)
	if len(references) < len(docsAssets)-1 {
		t.Errorf("the page refers to %d files, want at least %d", len(references), len(docsAssets)-1)
	}
	for _, r := range references {
		if status, _, _ := getAsset(t, server.URL+r[1], "identity"); status != http.StatusOK {
			t.Errorf("the page refers to %s, which answers %d", r[1], status)
		}
	}
	for _, own := range []string{"docs/init.js", "docs/style.css"} {
		body, err := embedded.ReadFile(own)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`(?i)https?://|url\(|@import`).Match(body) {
			t.Errorf("%s refers to something outside", own)
		}
	}
}

func TestDocsUnknownFile(t *testing.T) {
	server := docsServer(t)
	for _, path := range []string{"/docs/vendor/swagger-ui.css", "/docs/index.html"} {
		status, header, body := getAsset(t, server.URL+path, "identity")
		if status != http.StatusNotFound || header.Get("Content-Type") != "application/json" || !strings.Contains(body, `{"message":"`) {
			t.Errorf("%s answered %d %s %q", path, status, header.Get("Content-Type"), body)
		}
	}
}

// TestAssets checks that a file comes the same whether compressed or not, and only once to a caller
// that keeps it.
func TestAssets(t *testing.T) {
	server := docsServer(t)
	for _, path := range []string{"/openapi.json", "/docs", "/docs/swagger-ui-bundle.js"} {
		_, plain, body := getAsset(t, server.URL+path, "identity")
		_, packed, compressed := getAsset(t, server.URL+path, "br, gzip;q=0.8")
		if packed.Get("Content-Encoding") != "gzip" || packed.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s was not compressed for a caller that takes it: %v", path, packed)
			continue
		}
		z, err := gzip.NewReader(strings.NewReader(compressed))
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		if string(unpacked) != body || len(compressed) >= len(body) {
			t.Errorf("%s: compressed is not the same, or not smaller", path)
		}
		if plain.Get("ETag") == packed.Get("ETag") {
			t.Errorf("%s: both forms have the tag %s", path, plain.Get("ETag"))
		}
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		r.Header.Set("Accept-Encoding", "gzip;q=0")
		r.Header.Set("If-None-Match", plain.Get("ETag"))
		response, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusNotModified {
			t.Errorf("%s answered %d to a caller that has it", path, response.StatusCode)
		}
	}
	if _, _, body := getAsset(t, server.URL+"/openapi.json", "identity"); !bytes.Equal([]byte(body), OpenAPI()) {
		t.Error("/openapi.json is not the document")
	}
}

// TestGuideForModels checks that the paths in llms.txt exist.
func TestGuideForModels(t *testing.T) {
	paths := slices.Collect(maps.Keys(loadOpenAPI(t).Paths.Map()))
	found := regexp.MustCompile(`/(?:api|docs|mcp|openapi|\.well-known)[\w./{}-]*`).FindAllString(string(mustRead("docs/llms.txt")), -1)
	if len(found) < 15 {
		t.Errorf("only %q were found: does the pattern still fit?", found)
	}
	for _, path := range found {
		path = strings.TrimRight(path, ".")
		if !slices.ContainsFunc(paths, func(p string) bool { return p == path || strings.HasPrefix(p, path+"/") }) {
			t.Errorf("llms.txt names %s, which does not exist", path)
		}
	}
}

func docsServer(t *testing.T) *httptest.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /openapi.json", serveFile("openapi.json", typeJSON[0]))
	mux.Handle("GET /docs", serveDocs())
	mux.Handle("GET /docs/", serveDocs())
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// getAsset asks for an address without the transport's own decompression.
func getAsset(t *testing.T, url, encoding string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", encoding)
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(body)
}

var updateDocs = flag.Bool("update-docs", false, "compress docs/vendor into docs/packed")

// TestPackedDocs holds the compressed files to those that they are made of.
func TestPackedDocs(t *testing.T) {
	for _, name := range []string{"swagger-ui.css", "swagger-ui-bundle.js"} {
		want, err := os.ReadFile(filepath.Join("docs/vendor", name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("docs/packed", name+".gz")
		got, err := unzipped(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if bytes.Equal(got, want) {
			continue // however it is compressed: another version of Go may do it otherwise
		}
		if !*updateDocs {
			t.Errorf("%s is not what it should be. Run: go generate ./internal/api", path)
			continue
		}
		var packed bytes.Buffer
		z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		z.Write(want)
		z.Close()
		if err := os.WriteFile(path, packed.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func unzipped(path string) ([]byte, error) {
	packed, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
