package api

import (
	"embed"
	"net/http"
	"strings"
	"sync"

	"parley"
	"parley/internal/asset"
)

// The files of the pages at /docs, /pair and /phone. openapi.yaml is written by hand; the JSON files are generated from it,
// so that the binary needs no YAML, and a test compares them. The reference page is based on Swagger UI: docs/vendor
// has the original files; the binary embeds their compressed copies in docs/packed.
//
//go:generate go test -run TestOpenAPI(Files|Postman) -update-openapi .
//go:generate go test -run TestPackedDocs -update-docs .
//go:generate go run ../tools/clienttypes openapi.json ../../clients/typescript/src/types.ts ../../clients/python/parley/types.py
//go:embed openapi.json openapi-other.json docs/index.html docs/init.js docs/style.css docs/icon.svg docs/llms.txt docs/packed
//go:embed pair/page.html pair/pair.js pair/pair.css pair/words.json phone/page.html phone/phone.js phone/phone.css phone/words.json
var embedded embed.FS

const (
	typeHTML   = "text/html; charset=utf-8"
	typeScript = "text/javascript; charset=utf-8"
	typeStyle  = "text/css; charset=utf-8"
)

// docsAssets are the page and the files that it loads, by their names under /docs/.
var docsAssets = map[string]struct{ path, contentType string }{
	"":                     {"docs/index.html", typeHTML},
	"init.js":              {"docs/init.js", typeScript},
	"style.css":            {"docs/style.css", typeStyle},
	"icon.svg":             {"docs/icon.svg", "image/svg+xml"},
	"swagger-ui.css":       {"docs/packed/swagger-ui.css.gz", typeStyle},
	"swagger-ui-bundle.js": {"docs/packed/swagger-ui-bundle.js.gz", typeScript},
}

// docsPolicy lets the page load and call only this server. The icons in Swagger UI's style sheet are data: images.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// serveDocs serves the reference page and its files. It reads them on first use, because they take megabytes.
func serveDocs() http.Handler {
	assets := map[string]func() *asset.File{}
	for name, file := range docsAssets {
		assets[name] = sync.OnceValue(func() *asset.File { return serveFile(file.path, file.contentType) })
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/docs"), "/")
		file, found := assets[name]
		if !found {
			write(w, w.Header().Get("X-Request-Id"), refusal(errNoPage))
			return
		}
		w.Header().Set("Content-Security-Policy", docsPolicy)
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
		file().ServeHTTP(w, r)
	})
}

var errNoPage = parley.Errorf(parley.NotFound, "This file does not exist. The reference is at /docs.")

func mustRead(path string) []byte {
	body, err := embedded.ReadFile(path)
	if err != nil {
		panic(err) // the files are embedded
	}
	return body
}

// serveFile serves an embedded file. Its address does not change with its content, so browsers revalidate it.
func serveFile(path, contentType string) *asset.File {
	if strings.HasSuffix(path, ".gz") {
		return asset.NewCompressed(contentType, asset.Revalidate, mustRead(path))
	}
	return asset.New(contentType, asset.Revalidate, mustRead(path))
}

// OpenAPI returns the OpenAPI document as JSON.
func OpenAPI() []byte { return mustRead("openapi.json") }

// OtherOpenAPI returns the document of what else the server responds to: other spellings of paths, and pages.
func OtherOpenAPI() []byte { return mustRead("openapi-other.json") }
