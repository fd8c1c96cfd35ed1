package api

import (
	_ "embed"
	"net/http"
)

// openapi.yaml is written by hand and is the reference of the HTTP API. openapi.json is the same
// document in the form that programs read, so that the binary needs no YAML; a test holds the two
// together.
//
//go:generate go test -run TestOpenAPIFiles -update-openapi .

//go:embed openapi.json
var openAPI []byte

// OpenAPI returns the OpenAPI document as JSON.
func OpenAPI() []byte { return openAPI }

// serveOpenAPI serves the OpenAPI document.
func serveOpenAPI() http.Handler { return newAsset("application/json", openAPI) }
