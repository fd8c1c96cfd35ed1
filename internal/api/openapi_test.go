package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json/jsontext"
	yaml "github.com/oasdiff/yaml3"
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
