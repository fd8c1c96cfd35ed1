package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json/jsontext"
	yaml "github.com/oasdiff/yaml3"

	"parley"
	"parley/internal/callback"
)

var updateOpenAPI = flag.Bool("update-openapi", false, "write openapi.json from openapi.yaml")

// TestOpenAPIFiles holds openapi.json to openapi.yaml, of which it is made.
func TestOpenAPIFiles(t *testing.T) {
	source, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := openAPIFromYAML(source)
	if err != nil {
		t.Fatal(err)
	}
	if *updateOpenAPI {
		if err := os.WriteFile("openapi.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(OpenAPI(), want) {
		t.Error("openapi.json is not what openapi.yaml says. Run: go generate ./internal/api")
	}
}

// TestOpenAPIIsValid checks the document against the rules of OpenAPI, and its examples against its
// own schemas.
func TestOpenAPIIsValid(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestOpenAPIHasNoNameTwice looks for a name that an object has twice, at which strict readers stop.
func TestOpenAPIHasNoNameTwice(t *testing.T) {
	d := jsontext.NewDecoder(bytes.NewReader(OpenAPI())) // refuses such names
	if err := d.SkipValue(); err != nil {
		t.Error(err)
	}
}

// TestOpenAPIReadsWell checks what makes the document useful to a reader: every operation and every
// parameter says what it is for, operations have names of their own and a tag that is introduced.
func TestOpenAPIReadsWell(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	introduced := map[string]bool{}
	for _, tag := range doc.Tags {
		introduced[tag.Name] = tag.Description != ""
	}
	names := map[string]string{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			where := method + " " + path
			if op.Summary == "" || op.Description == "" {
				t.Errorf("%s has no summary or no description", where)
			}
			if strings.HasSuffix(op.Summary, ".") {
				t.Errorf("%s: a summary is a title, without a full stop", where)
			}
			if other := names[op.OperationID]; op.OperationID == "" || other != "" {
				t.Errorf("%s: operationId %q is missing or also that of %s", where, op.OperationID, other)
			}
			names[op.OperationID] = where
			if len(op.Tags) != 1 || !introduced[op.Tags[0]] {
				t.Errorf("%s has tags %q, want one that is introduced", where, op.Tags)
			}
			for _, p := range op.Parameters {
				if p.Value.Description == "" {
					t.Errorf("%s: parameter %s has no description", where, p.Value.Name)
				}
			}
		}
	}
}

// TestOpenAPIAndRoutes compares the operations of the document with the rows of the routes, under every spelling: who may call one,
// whether it names a channel, and whether it has a body.
func TestOpenAPIAndRoutes(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]*openapi3.Operation{}
	namesChannel := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			name := method + " " + path
			described[name] = op
			namesChannel[name] = slices.ContainsFunc(append(item.Parameters, op.Parameters...), func(p *openapi3.ParameterRef) bool {
				return p.Value.Name == "X-Channel"
			})
		}
	}
	for _, row := range append(tokenRoutes(&server{}), publicRoutes(&server{})...) {
		if row.access != public && !slices.Contains(parley.Roles, row.role) {
			t.Errorf("%s has no role", row.pattern)
		}
		for _, name := range row.names() {
			op := described[name]
			if op == nil {
				t.Errorf("%s is not in the document", name)
				continue
			}
			delete(described, name)
			isPublic := op.Security != nil && !slices.ContainsFunc(*op.Security, func(one openapi3.SecurityRequirement) bool {
				return one["bearer"] != nil
			})
			if isPublic != (row.access == public) && row.handler == nil {
				t.Errorf("%s: public is %t in the document", name, isPublic)
			}
			if namesChannel[name] != (row.access != public && row.access != ofAdmin) {
				t.Errorf("%s: X-Channel is %t in the document", name, namesChannel[name])
			}
			hasBody := row.input != nothing && row.input != query
			if (op.RequestBody != nil) != hasBody || hasBody && op.RequestBody.Value.Required != (row.input == body || row.input == upload) {
				t.Errorf("%s has another body in the document", name)
			}
		}
	}
	for name := range described {
		t.Errorf("%s is in the document and no route", name)
	}
}

// openAPIFromYAML turns the hand-written document into JSON, keeping its order, which is the order
// that readers see, and leaving out the lists that it shares by alias.
func openAPIFromYAML(source []byte) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(source, &root); err != nil {
		return nil, err
	}
	var compact, indented bytes.Buffer
	if err := writeNode(&compact, root.Content[0]); err != nil {
		return nil, err
	}
	if err := json.Indent(&indented, compact.Bytes(), "", " "); err != nil {
		return nil, err
	}
	indented.WriteByte('\n')
	return indented.Bytes(), nil
}

func writeNode(b *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.AliasNode:
		return writeNode(b, n.Alias)
	case yaml.MappingNode:
		return writeMapping(b, n)
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeNode(b, item); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	}
	var value any = n.Value
	if n.Tag != "!!str" && n.Tag != "!!timestamp" {
		if err := n.Decode(&value); err != nil {
			return fmt.Errorf("line %d: %w", n.Line, err)
		}
	}
	return writeScalar(b, value)
}

func writeMapping(b *bytes.Buffer, n *yaml.Node) error {
	b.WriteByte('{')
	for i, pair := range mergedPairs(n) {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := writeScalar(b, pair.key); err != nil {
			return err
		}
		b.WriteByte(':')
		if err := writeNode(b, pair.value); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

type yamlPair struct {
	key   string
	value *yaml.Node
}

// mergedPairs lists what a mapping says with the mappings that it merges by "<<". Its own keys win.
func mergedPairs(n *yaml.Node) []yamlPair {
	own := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		own[n.Content[i].Value] = true
	}
	var pairs []yamlPair
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i].Value, n.Content[i+1]
		switch key {
		case "x-shared":
		case "<<":
			for _, pair := range mergedPairs(value.Alias) {
				if !own[pair.key] {
					pairs = append(pairs, pair)
				}
			}
		default:
			pairs = append(pairs, yamlPair{key, value})
		}
	}
	return pairs
}

func writeScalar(b *bytes.Buffer, value any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false) // the text is for people, too
	return e.Encode(value)
}

// TestOpenAPIForGenerators holds the document to what code generators need beyond the rules of OpenAPI.
func TestOpenAPIForGenerators(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	note := func(kind, name string) {
		if other := kinds[name]; other != "" { // they become types of one name
			t.Errorf("%s is a name of %s and of %s", name, other, kind)
		}
		kinds[name] = kind
	}
	for name := range doc.Components.Schemas {
		note("schemas", name)
	}
	for name := range doc.Components.Responses {
		note("responses", name)
	}
	for name := range doc.Components.Parameters {
		note("parameters", name)
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			where := method + " " + path
			if strings.HasSuffix(path, "/") {
				t.Errorf("%s ends in a slash", where)
			}
			if op.Responses.Value("405") == nil || strings.HasPrefix(path, "/api/") && op.Responses.Value("404") == nil {
				t.Errorf("%s does not document 404 and 405", where)
			}
			if op.RequestBody == nil {
				continue
			}
			for _, media := range op.RequestBody.Value.Content {
				checkForGenerators(t, where, media.Schema, map[*openapi3.Schema]bool{})
			}
		}
	}
	for name, schema := range doc.Components.Schemas {
		checkForGenerators(t, name, schema, map[*openapi3.Schema]bool{})
	}
}

// checkForGenerators looks for what generators do not understand in a schema: a default makes a field required for some, and
// rules that only name required fields, or several types, become types that nobody can use.
func checkForGenerators(t *testing.T, where string, ref *openapi3.SchemaRef, seen map[*openapi3.Schema]bool) {
	t.Helper()
	if ref == nil || ref.Value == nil || seen[ref.Value] {
		return
	}
	s := ref.Value
	seen[s] = true
	if s.Default != nil {
		t.Errorf("%s has a default: put it into the description", where)
	}
	if types := s.Type.Slice(); len(types) > 1 && !(len(types) == 2 && s.Type.Includes("null")) {
		t.Errorf("%s has the types %v", where, types)
	}
	if len(s.Enum) > 0 && s.Type.Slice() == nil {
		t.Errorf("%s is an enum without a type", where)
	}
	for _, some := range []openapi3.SchemaRefs{s.AnyOf, s.OneOf, s.AllOf} {
		for _, one := range some {
			if v := one.Value; len(v.Required) > 0 && len(v.Properties) == 0 && v.Type.Slice() == nil {
				t.Errorf("%s has a rule that only names required fields", where)
			}
			checkForGenerators(t, where, one, seen)
		}
	}
	for name, property := range s.Properties {
		checkForGenerators(t, where+"."+name, property, seen)
	}
	checkForGenerators(t, where+"[]", s.Items, seen)
}

// TestOpenAPIEventTypes compares the types of events with those of the server.
func TestOpenAPIEventTypes(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]parley.EventType{
		"EventType": parley.EventTypes, "AnyEventType": append(slices.Clone(parley.EventTypes), callback.TestEvent),
	} {
		enum := doc.Components.Schemas[name].Value.Enum
		for _, kind := range want {
			if !slices.Contains(enum, any(string(kind))) {
				t.Errorf("%s does not have %s", name, kind)
			}
		}
		if len(enum) != len(want) {
			t.Errorf("%s has %d types, want %d", name, len(enum), len(want))
		}
	}
}
