package api

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestRoutesAreDocumented compares the routes with the OpenAPI document.
func TestRoutesAreDocumented(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]any
	}
	if err := json.Unmarshal(OpenAPI(), &doc); err != nil {
		t.Fatal(err)
	}
	var documented []string
	for path, item := range doc.Paths {
		for method := range item {
			if method != "parameters" {
				documented = append(documented, strings.ToUpper(method)+" "+path)
			}
		}
	}
	routes := Routes()
	for _, route := range routes {
		if !slices.Contains(documented, route) {
			t.Errorf("%s is not in the document", route)
		}
	}
	for _, operation := range documented {
		if !slices.Contains(routes, operation) {
			t.Errorf("%s is in the document and no route", operation)
		}
	}
}
