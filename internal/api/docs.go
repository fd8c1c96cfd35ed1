package api

import (
	"embed"
	"net/http"
	"strings"
	"sync"

	"parley/internal/asset"
)

// The reference page at /docs, based on Swagger UI. docs/vendor has the original files; the binary embeds their
// compressed copies in docs/packed.
//
//go:generate go test -run TestPackedDocs -update-docs .
//go:embed docs/index.html docs/init.js docs/style.css docs/icon.svg docs/packed
var docsFiles embed.FS

// docsAssets are the files that the page loads, by their names under /docs/.
var docsAssets = map[string]struct{ path, contentType string }{
	"init.js":              {"docs/init.js", "text/javascript; charset=utf-8"},
	"style.css":            {"docs/style.css", "text/css; charset=utf-8"},
	"icon.svg":             {"docs/icon.svg", "image/svg+xml"},
	"swagger-ui.css":       {"docs/packed/swagger-ui.css.gz", "text/css; charset=utf-8"},
	"swagger-ui-bundle.js": {"docs/packed/swagger-ui-bundle.js.gz", "text/javascript; charset=utf-8"},
}

// docsPolicy lets the page load and call only this server. The icons in Swagger UI's style sheet are data: images.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// serveDocs serves the reference page and its files. It reads them on first use, because they take megabytes.
func serveDocs() http.Handler {
	files := map[string]func() *asset.File{"": sync.OnceValue(func() *asset.File {
		return newAsset("text/html; charset=utf-8", mustReadDocs("docs/index.html"))
	})}
	for name, file := range docsAssets {
		files[name] = sync.OnceValue(func() *asset.File {
			body := mustReadDocs(file.path)
			if strings.HasSuffix(file.path, ".gz") {
				return asset.NewCompressed(file.contentType, asset.Revalidate, body)
			}
			return newAsset(file.contentType, body)
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/docs"), "/")
		file, found := files[name]
		if !found {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			w.Write([]byte(`{"message":"This file does not exist. The reference is at /docs."}`))
			return
		}
		w.Header().Set("Content-Security-Policy", docsPolicy)
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
		file().ServeHTTP(w, r)
	})
}

func mustReadDocs(path string) []byte {
	body, err := docsFiles.ReadFile(path)
	if err != nil {
		panic(err)
	}
	return body
}

// newAsset serves an embedded file. Its address does not change with its content, so browsers revalidate it.
func newAsset(contentType string, body []byte) *asset.File {
	return asset.New(contentType, asset.Revalidate, body)
}

// openapi.yaml is written by hand. openapi.json is generated from it, so that the binary needs no YAML; a test
// compares the two.
//
//go:generate go test -run TestOpenAPIFiles -update-openapi .

//go:embed openapi.json
var openAPI []byte

// OpenAPI returns the OpenAPI document as JSON.
func OpenAPI() []byte { return openAPI }

func serveOpenAPI() http.Handler { return newAsset("application/json", openAPI) }
