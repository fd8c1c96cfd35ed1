package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
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

// TestOpenAPIFiles holds openapi.json and openapi-other.json to openapi.yaml, of which they are made.
func TestOpenAPIFiles(t *testing.T) {
	source, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, published := range map[string][]byte{"openapi.json": OpenAPI(), "openapi-other.json": OtherOpenAPI()} {
		want, err := openAPIFromYAML(source, name == "openapi-other.json")
		if err != nil {
			t.Fatal(err)
		}
		if *updateOpenAPI {
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
		} else if !bytes.Equal(published, want) {
			t.Errorf("%s is not what openapi.yaml says. Run: go generate ./internal/api", name)
		}
	}
}

// loadOpenAPI reads both documents, and returns the first with the paths of both.
func loadOpenAPI(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	other, err := openapi3.NewLoader().LoadFromData(OtherOpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range other.Paths.Map() {
		if doc.Paths.Value(path) != nil {
			t.Errorf("%s is in both documents", path)
		}
		doc.Paths.Set(path, item)
	}
	return doc
}

// TestOpenAPIIsValid checks the documents against the rules of OpenAPI, and their examples against their own schemas. No object has
// a name twice, at which strict readers stop.
func TestOpenAPIIsValid(t *testing.T) {
	for _, published := range [][]byte{OpenAPI(), OtherOpenAPI()} {
		doc, err := openapi3.NewLoader().LoadFromData(published)
		if err != nil {
			t.Fatal(err)
		}
		if err := doc.Validate(t.Context()); err != nil {
			t.Error(err)
		}
		if err := jsontext.NewDecoder(bytes.NewReader(published)).SkipValue(); err != nil { // it refuses such names
			t.Error(err)
		}
	}
}

// TestOpenAPIReadsWell checks what makes the document useful to a reader: every operation and every
// parameter says what it is for, operations have names of their own and a tag that is introduced.
func TestOpenAPIReadsWell(t *testing.T) {
	doc := loadOpenAPI(t)
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
	doc := loadOpenAPI(t)
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
func openAPIFromYAML(source []byte, other bool) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(source, &root); err != nil {
		return nil, err
	}
	var compact, indented bytes.Buffer
	if err := writeNode(&compact, splitOpenAPI(root.Content[0], other)); err != nil {
		return nil, err
	}
	if err := json.Indent(&indented, compact.Bytes(), "", " "); err != nil {
		return nil, err
	}
	indented.WriteByte('\n')
	return indented.Bytes(), nil
}

// splitOpenAPI returns the document without the paths that are marked x-other, or a document of these alone, each with the
// components that it uses.
func splitOpenAPI(root *yaml.Node, other bool) *yaml.Node {
	used := map[string]bool{} // texts, of which references and the names of security schemes are some
	doc := filterNode(root, func(name string, _ *yaml.Node) bool { return !other || name != "webhooks" })
	for i := 0; i < len(doc.Content); i += 2 {
		switch value := &doc.Content[i+1]; doc.Content[i].Value {
		case "info":
			if other {
				version := filterNode(*value, func(name string, _ *yaml.Node) bool { return name == "version" }).Content
				*value = filterNode(child(root, "x-other"), func(string, *yaml.Node) bool { return true })
				(*value).Content = append((*value).Content, version...)
			}
		case "paths":
			*value = filterNode(*value, func(_ string, item *yaml.Node) bool { return (child(item, "x-other") != nil) == other })
			noteTexts(*value, used)
		case "webhooks", "security":
			noteTexts(*value, used)
		}
	}
	components := child(root, "components")
	for before := -1; before != len(used); {
		before = len(used)
		eachComponent(components, func(kind, name string, value *yaml.Node) bool {
			if isUsed(used, kind, name) {
				noteTexts(value, used)
			}
			return true
		})
	}
	for i := 0; i < len(doc.Content); i += 2 {
		if doc.Content[i].Value == "components" {
			doc.Content[i+1] = eachComponent(components, func(kind, name string, _ *yaml.Node) bool { return isUsed(used, kind, name) })
		}
	}
	return doc
}

func isUsed(used map[string]bool, kind, name string) bool {
	return used["#/components/"+kind+"/"+name] || kind == "securitySchemes" && used[name]
}

// eachComponent returns the components for which keep is true.
func eachComponent(components *yaml.Node, keep func(kind, name string, value *yaml.Node) bool) *yaml.Node {
	kept := filterNode(components, func(string, *yaml.Node) bool { return true })
	for i := 0; i < len(kept.Content); i += 2 {
		kind := kept.Content[i].Value
		kept.Content[i+1] = filterNode(kept.Content[i+1], func(name string, value *yaml.Node) bool { return keep(kind, name, value) })
	}
	return kept
}

// filterNode returns a copy of a mapping with the pairs for which keep is true.
func filterNode(n *yaml.Node, keep func(name string, value *yaml.Node) bool) *yaml.Node {
	kept := *n
	kept.Content = nil
	for i := 0; i < len(n.Content); i += 2 {
		if keep(n.Content[i].Value, n.Content[i+1]) {
			kept.Content = append(kept.Content, n.Content[i], n.Content[i+1])
		}
	}
	return &kept
}

func child(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

func noteTexts(n *yaml.Node, texts map[string]bool) {
	switch n.Kind {
	case yaml.ScalarNode:
		texts[n.Value] = true
	case yaml.AliasNode:
		noteTexts(n.Alias, texts)
	}
	for _, inner := range n.Content {
		noteTexts(inner, texts)
	}
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
		case "x-shared", "x-other":
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
	doc := loadOpenAPI(t)
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
			if op.Responses.Default() == nil {
				t.Errorf("%s does not document errors", where)
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
		if schema.Value.Const != nil {
			t.Errorf("%s is a const behind a reference", name) // ogen stops there
		}
	}
	if len(doc.Components.Callbacks) > 0 {
		t.Error("callbacks are behind references") // openapi-python-client and ogen stop there
	}
	for _, path := range doc.Paths.Map() {
		for _, op := range path.Operations() {
			for name, callback := range op.Callbacks {
				if callback.Ref != "" {
					t.Errorf("callback %s is behind a reference", name)
				}
			}
		}
	}
	upload := doc.Paths.Value("/api/media").Post.RequestBody.Value.Content
	if len(upload) != 2 || upload["multipart/form-data"] == nil || upload["application/octet-stream"] == nil {
		t.Error("an upload is not multipart/form-data and application/octet-stream, which generators understand")
	}
}

// TestOpenAPIIsForPrograms keeps pages, scripts, styles and other spellings out of the first document.
func TestOpenAPIIsForPrograms(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range append(tokenRoutes(&server{}), publicRoutes(&server{})...) {
		for i, name := range row.names() {
			method, path, _ := strings.Cut(name, " ")
			item := doc.Paths.Value(path)
			if i > 0 && item != nil {
				t.Errorf("%s is another spelling", name)
			}
			if item == nil || row.handler == nil {
				continue
			}
			for kind := range item.GetOperation(method).Responses.Status(http.StatusOK).Value.Content {
				if kind == "text/html" || kind == "text/css" || kind == "text/javascript" {
					t.Errorf("%s is %s", name, kind)
				}
			}
		}
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
	checkUnion(t, where, s)
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

// checkUnion looks for alternatives that a generated client cannot tell apart: neither by their JSON type nor by a discriminator.
func checkUnion(t *testing.T, where string, s *openapi3.Schema) {
	t.Helper()
	kinds := map[string]bool{}
	for _, one := range append(slices.Clone(s.AnyOf), s.OneOf...) {
		kind := strings.Join(one.Value.Type.Slice(), " ")
		if kind == "" || kinds[kind] && s.Discriminator == nil {
			t.Errorf("%s is a union of which two are of type %q, without a discriminator", where, kind)
		}
		kinds[kind] = true
	}
}

// TestOpenAPIEventTypes compares the types of events with those of the server, and the schema that each type selects with the
// example of the type.
func TestOpenAPIEventTypes(t *testing.T) {
	doc := loadOpenAPI(t)
	enum := doc.Components.Schemas["EventType"].Value.Enum
	event := doc.Components.Schemas["Event"].Value
	for _, kind := range append(slices.Clone(parley.EventTypes), callback.TestEvent) {
		if kind != callback.TestEvent && !slices.Contains(enum, any(string(kind))) {
			t.Errorf("EventType does not have %s", kind)
		}
		name := strings.TrimPrefix(event.Discriminator.Mapping[string(kind)].Ref, "#/components/schemas/")
		one := doc.Components.Schemas[name]
		if one == nil || one.Value.Properties["type"].Value.Const != string(kind) {
			t.Errorf("Event does not have %s", kind)
			continue
		}
		text, err := os.ReadFile(filepath.Join("../../docs/events", string(kind)+".example.json"))
		if err != nil {
			t.Fatal(err)
		}
		var example any
		if err := json.Unmarshal(text, &example); err != nil {
			t.Fatal(err)
		}
		if err := one.Value.VisitJSON(example, openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("the example of %s: %v", kind, err)
		}
	}
	if len(enum) != len(parley.EventTypes) || len(event.OneOf) != len(enum)+1 || len(event.Discriminator.Mapping) != len(enum)+1 {
		t.Errorf("there are %d types, EventType has %d, Event has %d and distinguishes %d", len(parley.EventTypes), len(enum),
			len(event.OneOf), len(event.Discriminator.Mapping))
	}
}
