package parleytest

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"parley/internal/api"
)

// The names of the two documents. Nothing is read from there.
const (
	mainDocument  = "https://parley.example/openapi.json"
	otherDocument = "https://parley.example/openapi-other.json"
)

// schemas compiles each schema of the OpenAPI documents once. The library that finds the operations would do it for every value, which
// took a third of the time of whole suites.
var schemas schemaCache

type schemaCache struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema // by document and JSON pointer
}

// find compiles the schema at a place, such as "…/openapi.json#/components/schemas/Event".
func (c *schemaCache) find(place string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.compiler == nil {
		c.compiler, c.compiled = jsonschema.NewCompiler(), map[string]*jsonschema.Schema{}
		c.compiler.DefaultDraft(jsonschema.Draft2020)
		c.compiler.AssertFormat()
		for name, text := range map[string][]byte{mainDocument: api.OpenAPI(), otherDocument: api.OtherOpenAPI()} {
			document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
			if err == nil {
				err = c.compiler.AddResource(name, document)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if c.compiled[place] == nil {
		schema, err := c.compiler.Compile(place)
		if err != nil {
			return nil, err
		}
		c.compiled[place] = schema
	}
	return c.compiled[place], nil
}

// CheckSchema checks JSON against a schema of the OpenAPI document with a name, such as Event.
func CheckSchema(name string, text []byte) error {
	return checkJSON(mainDocument+"#/components/schemas/"+name, text)
}

func checkJSON(place string, text []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("decode the JSON: %w", err)
	}
	return checkValue(place, value)
}

func checkValue(place string, value any) error {
	schema, err := schemas.find(place)
	if err != nil {
		return err
	}
	if err := schema.Validate(value); err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), "\n", " "))
	}
	return nil
}

// checkBody checks the body of a response: there is one if the document says so, of a type that it names.
func (v *Validator) checkBody(route *routers.Route, status int, header http.Header, body []byte) error {
	response, place := v.response(route, status)
	if response == nil || response.Value == nil || len(response.Value.Content) == 0 {
		return nil
	}
	kind := header.Get("Content-Type")
	content := response.Value.Content.Get(kind)
	if content == nil {
		return fmt.Errorf("the response has the content type %q, which the document does not name", kind)
	}
	for name, c := range response.Value.Content {
		if c != content || c.Schema == nil {
			continue
		}
		place += "/content/" + strings.ReplaceAll(name, "/", "~1") + "/schema"
		if name == "application/json" {
			return checkJSON(place, body)
		}
		return checkValue(place, string(body))
	}
	return nil
}

// requestBody is where the document describes the JSON that an operation takes; empty: it does not, or the request has another type.
func (v *Validator) requestBody(route *routers.Route, header http.Header) (place string) {
	body := route.Operation.RequestBody
	if body == nil || body.Value.Content["application/json"] == nil || !strings.HasPrefix(header.Get("Content-Type"), "application/json") {
		return ""
	}
	place = v.operation(route) + "/requestBody"
	if body.Ref != "" {
		place = v.document(route) + body.Ref
	}
	return place + "/content/application~1json/schema"
}

func (v *Validator) document(route *routers.Route) string {
	if v.isInOther[route] {
		return otherDocument
	}
	return mainDocument
}

// operation is where the document describes an operation.
func (v *Validator) operation(route *routers.Route) string {
	path := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(route.Path)
	return v.document(route) + "#/paths/" + path + "/" + strings.ToLower(route.Method)
}

// response finds what the document says about a status of an operation, and where.
func (v *Validator) response(route *routers.Route, status int) (response *openapi3.ResponseRef, place string) {
	document, name := v.document(route), strconv.Itoa(status)
	responses := route.Operation.Responses
	if response = responses.Status(status); response == nil {
		response, name = responses.Default(), "default"
	}
	switch {
	case response == nil:
		return nil, ""
	case response.Ref != "":
		return response, document + response.Ref
	case route == v.unknown:
		return response, document + "#/components/responses/Failed"
	}
	return response, v.operation(route) + "/responses/" + name
}
