package api

import (
	"slices"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestOpenAPIStaysStable compares the document with that of version 1.0.0, in docs/openapi: nothing that a client of it uses may go.
// Until that version is released, a change may copy openapi.json there; afterwards nobody may.
func TestOpenAPIStaysStable(t *testing.T) {
	before, err := openapi3.NewLoader().LoadFromFile("../../docs/openapi/1.0.0.json")
	if err != nil {
		t.Fatal(err)
	}
	now, err := openapi3.NewLoader().LoadFromData(OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range before.Paths.Map() {
		for method, op := range item.Operations() {
			where := method + " " + path
			if now.Paths.Value(path) == nil || now.Paths.Value(path).GetOperation(method) == nil {
				t.Errorf("%s was removed", where)
				continue
			}
			same := now.Paths.Value(path).GetOperation(method)
			for _, p := range append(now.Paths.Value(path).Parameters, same.Parameters...) {
				old := append(slices.Clone(item.Parameters), op.Parameters...)
				if p.Value.Required && !slices.ContainsFunc(old, func(o *openapi3.ParameterRef) bool { return o.Value.Name == p.Value.Name }) {
					t.Errorf("%s: parameter %s is new and required", where, p.Value.Name)
				}
			}
			if op.RequestBody != nil && same.RequestBody != nil {
				compareContent(t, where, op.RequestBody.Value.Content, same.RequestBody.Value.Content, true)
			}
			for status, response := range op.Responses.Map() {
				if kept := same.Responses.Value(status); kept == nil {
					t.Errorf("%s: response %s was removed", where, status)
				} else {
					compareContent(t, where, response.Value.Content, kept.Value.Content, false)
				}
			}
		}
	}
}

func compareContent(t *testing.T, where string, before, now openapi3.Content, request bool) {
	t.Helper()
	for kind, media := range before {
		switch {
		case now[kind] == nil:
			t.Errorf("%s: %s was removed", where, kind)
		case media.Schema != nil && now[kind].Schema != nil:
			compareSchema(t, where, media.Schema.Value, now[kind].Schema.Value, request, map[*openapi3.Schema]bool{})
		}
	}
}

// compareSchema finds fields and values that were removed, fields of a request that are required now, and fields of a response that
// may be missing now.
func compareSchema(t *testing.T, where string, before, now *openapi3.Schema, request bool, seen map[*openapi3.Schema]bool) {
	t.Helper()
	if seen[before] {
		return
	}
	seen[before] = true
	for _, value := range before.Enum {
		if !slices.Contains(now.Enum, value) {
			t.Errorf("%s: the value %v was removed", where, value)
		}
	}
	for name, property := range before.Properties {
		if now.Properties[name] == nil {
			t.Errorf("%s: %s was removed", where, name)
			continue
		}
		compareSchema(t, where+"."+name, property.Value, now.Properties[name].Value, request, seen)
	}
	more, fewer := now.Required, before.Required
	if !request {
		more, fewer = fewer, more
	}
	for _, name := range more {
		if !slices.Contains(fewer, name) {
			t.Errorf("%s: whether %s is required has changed", where, name)
		}
	}
	if before.Items != nil && now.Items != nil {
		compareSchema(t, where+"[]", before.Items.Value, now.Items.Value, request, seen)
	}
	for _, one := range before.OneOf {
		i := slices.IndexFunc(now.OneOf, func(o *openapi3.SchemaRef) bool { return o.Ref == one.Ref })
		if i < 0 {
			t.Errorf("%s: %s was removed", where, one.Ref)
		} else if one.Ref != "" {
			compareSchema(t, where, one.Value, now.OneOf[i].Value, request, seen)
		}
	}
}
