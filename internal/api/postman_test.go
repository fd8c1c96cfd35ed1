package api

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// A collection of Postman, version 2.1.
type (
	postmanItem struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Request     *postmanRequest `json:"request,omitempty"`
		Item        []*postmanItem  `json:"item,omitempty"`
	}
	postmanRequest struct {
		Method      string         `json:"method"`
		Description string         `json:"description"`
		Auth        *postmanAuth   `json:"auth,omitempty"`
		Header      []postmanField `json:"header"`
		URL         postmanURL     `json:"url"`
		Body        *postmanBody   `json:"body,omitempty"`
	}
	postmanAuth struct {
		Type   string         `json:"type"`
		Bearer []postmanField `json:"bearer,omitempty"`
	}
	postmanField struct {
		Key         string `json:"key"`
		Value       string `json:"value"`
		Type        string `json:"type,omitempty"`
		Description string `json:"description,omitempty"`
		Disabled    bool   `json:"disabled,omitempty"`
	}
	postmanURL struct {
		Raw      string         `json:"raw"`
		Host     []string       `json:"host"`
		Path     []string       `json:"path"`
		Query    []postmanField `json:"query,omitempty"`
		Variable []postmanField `json:"variable,omitempty"`
	}
	postmanBody struct {
		Mode     string         `json:"mode"`
		Raw      string         `json:"raw,omitempty"`
		FormData []postmanField `json:"formdata,omitempty"`
	}
)

func postmanBearer(variable string) *postmanAuth {
	return &postmanAuth{Type: "bearer", Bearer: []postmanField{{Key: "token", Value: "{{" + variable + "}}", Type: "string"}}}
}

// TestOpenAPIPostman holds docs/postman.json to the OpenAPI document, of which it is made.
func TestOpenAPIPostman(t *testing.T) {
	published, err := os.ReadFile("openapi.json") // which TestOpenAPIFiles may just have written
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(published)
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]*postmanItem{}
	collection := struct {
		Info     map[string]string `json:"info"`
		Auth     *postmanAuth      `json:"auth"`
		Variable []postmanField    `json:"variable"`
		Item     []*postmanItem    `json:"item"`
	}{
		Info: map[string]string{"name": doc.Info.Title, "description": doc.Info.Description, "version": doc.Info.Version,
			"schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
		Auth:     postmanBearer("token"),
		Variable: []postmanField{{Key: "url", Value: "http://127.0.0.1:7275"}, {Key: "token"}, {Key: "admin_token"}},
	}
	for _, tag := range doc.Tags {
		folders[tag.Name] = &postmanItem{Name: tag.Name, Description: tag.Description}
		collection.Item = append(collection.Item, folders[tag.Name])
	}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			if op := doc.Paths.Value(path).GetOperation(method); op != nil {
				folder := folders[op.Tags[0]]
				folder.Item = append(folder.Item, &postmanItem{Name: op.Summary, Request: newPostmanRequest(doc, method, path, op)})
			}
		}
	}
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(collection); err != nil {
		t.Fatal(err)
	}
	const file = "../../docs/postman.json"
	if *updateOpenAPI {
		if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("docs/postman.json is not what the OpenAPI document says (%v). Run: go generate ./internal/api", err)
	}
}

func newPostmanRequest(doc *openapi3.T, method, path string, op *openapi3.Operation) *postmanRequest {
	r := &postmanRequest{Method: method, Description: op.Description, Header: []postmanField{}}
	switch {
	case op.Security != nil && len(*op.Security) == 0:
		r.Auth = &postmanAuth{Type: "noauth"}
	case strings.HasPrefix(path, "/api/manage/"):
		r.Auth = postmanBearer("admin_token")
	}
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, part := range parts {
		if strings.HasPrefix(part, "{") {
			parts[i] = ":" + strings.Trim(part, "{}") // as Postman writes it
		}
	}
	r.URL = postmanURL{Raw: "{{url}}/" + strings.Join(parts, "/"), Host: []string{"{{url}}"}, Path: parts}
	for _, ref := range append(doc.Paths.Value(path).Parameters, op.Parameters...) {
		p := ref.Value
		f := postmanField{Key: p.Name, Value: toPostmanText(p.Example, p.Schema.Value), Description: p.Description, Disabled: !p.Required}
		switch p.In {
		case "path":
			r.URL.Variable = append(r.URL.Variable, f)
		case "query":
			r.URL.Query = append(r.URL.Query, f)
		case "header":
			r.Header = append(r.Header, f)
		}
	}
	if op.RequestBody == nil {
		return r
	}
	content := op.RequestBody.Value.Content
	if content["multipart/form-data"] != nil {
		r.Body = &postmanBody{Mode: "formdata", FormData: []postmanField{{Key: "file", Type: "file"}}}
		return r
	}
	r.Header = append(r.Header, postmanField{Key: "Content-Type", Value: "application/json"})
	r.Body = &postmanBody{Mode: "raw", Raw: toPostmanBody(content["application/json"])}
	return r
}

func toPostmanText(example any, s *openapi3.Schema) string {
	if example == nil {
		example = sample(s, 0)
	}
	if text, ok := example.(string); ok {
		return text
	}
	text, _ := json.Marshal(example) // it comes from JSON
	return string(text)
}

func toPostmanBody(media *openapi3.MediaType) string {
	example := media.Example
	var first string
	for name, one := range media.Examples {
		if first == "" || name < first {
			first, example = name, one.Value.Value
		}
	}
	if example == nil {
		example = sample(media.Schema.Value, 0)
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(example) // it comes from JSON
	return strings.TrimSpace(text.String())
}

// sample makes a value of a schema from its examples, with the required fields.
func sample(s *openapi3.Schema, depth int) any {
	switch {
	case s.Example != nil:
		return s.Example
	case len(s.Examples) > 0:
		return s.Examples[0]
	case s.Const != nil:
		return s.Const
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.OneOf) > 0 && depth < 5:
		return sample(s.OneOf[0].Value, depth+1)
	case s.Type.Includes("object") && depth < 5:
		object := map[string]any{}
		for _, name := range s.Required {
			object[name] = sample(s.Properties[name].Value, depth+1)
		}
		return object
	case s.Type.Includes("array") && depth < 5:
		return []any{sample(s.Items.Value, depth+1)}
	case s.Type.Includes("integer"), s.Type.Includes("number"):
		if s.Min != nil {
			return *s.Min
		}
		return 1
	case s.Type.Includes("boolean"):
		return true
	}
	return ""
}
