package parleytest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"parley/internal/api"
)

// Validator holds what a server answers to the OpenAPI document. An answer that the document does
// not describe fails the test, and so does a request that the server took although the document
// forbids it. Requests that the server refused are not checked: tests send bad ones on purpose.
type Validator struct {
	t       testing.TB
	doc     *openapi3.T
	mux     *http.ServeMux            // finds patterns as the server does
	routes  map[string]*routers.Route // by pattern
	unknown *routers.Route            // for paths and methods that the document does not have

	isInOther map[*routers.Route]bool // in the second document
}

func NewValidator(t testing.TB) *Validator {
	t.Helper()
	doc := OpenAPI(t)
	v := &Validator{t: t, doc: doc, mux: http.NewServeMux(), routes: map[string]*routers.Route{}, unknown: unknownRoute(doc),
		isInOther: map[*routers.Route]bool{}}
	other, err := readOther()
	if err != nil {
		t.Fatalf("read the second OpenAPI document: %v", err)
	}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			pattern := method + " " + path
			v.mux.Handle(pattern, http.NotFoundHandler())
			v.routes[pattern] = &routers.Route{Spec: doc, Path: path, PathItem: item, Method: method, Operation: operation}
			v.isInOther[v.routes[pattern]] = other.Paths.Value(path) != nil
		}
	}
	return v
}

var readOther = sync.OnceValues(func() (*openapi3.T, error) { return openapi3.NewLoader().LoadFromData(api.OtherOpenAPI()) })

// readOpenAPI reads both documents once for all tests: with all their references that takes a while.
var readOpenAPI = sync.OnceValues(func() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI())
	if err != nil {
		return nil, err
	}
	other, err := readOther()
	if err != nil {
		return nil, err
	}
	for path, item := range other.Paths.Map() {
		doc.Paths.Set(path, item)
	}
	maps.Copy(doc.Components.SecuritySchemes, other.Components.SecuritySchemes)
	return doc, nil
})

// OpenAPI returns the OpenAPI document, with the paths of the second one.
func OpenAPI(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := readOpenAPI()
	if err != nil {
		t.Fatalf("read the OpenAPI document: %v", err)
	}
	return doc
}

// unknownRoute describes what a path or method that is not there may answer: the errors that every
// request can meet, 404 and 405.
func unknownRoute(doc *openapi3.T) *routers.Route {
	responses := openapi3.NewResponsesWithCapacity(8)
	for _, status := range []string{"400", "401", "403", "404", "405", "429", "500", "503"} {
		responses.Set(status, doc.Components.Responses["Failed"])
	}
	return &routers.Route{Spec: doc, Operation: &openapi3.Operation{Responses: responses}}
}

// failures are the statuses that the default response of an operation means, with the header that each must have.
var failures = map[int]string{400: "", 401: "WWW-Authenticate", 403: "", 404: "", 405: "Allow", 409: "", 413: "", 429: "Retry-After",
	500: "", 503: "Retry-After", 507: ""}

type Operation struct{ Method, Path string }

// Operations lists every operation of the document, by path, then method.
func Operations(t testing.TB) []Operation {
	t.Helper()
	var list []Operation
	for path, item := range OpenAPI(t).Paths.Map() {
		for method := range item.Operations() {
			list = append(list, Operation{method, path})
		}
	}
	slices.SortFunc(list, func(a, b Operation) int {
		return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method)
	})
	return list
}

// Wrap returns a transport that checks each request that goes through next, and its answer. That
// takes about two milliseconds, so a test that counts requests per second goes without.
func (v *Validator) Wrap(next http.RoundTripper) http.RoundTripper { return &checkedTransport{v, next} }

type checkedTransport struct {
	*Validator
	next http.RoundTripper
}

// RoundTrip passes streams on unread.
func (c *checkedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		return answer, nil
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	c.Check(r, answer.StatusCode, answer.Header, body)
	return answer, nil
}

// CloseIdleConnections is called by [http.Client.CloseIdleConnections].
func (c *checkedTransport) CloseIdleConnections() {
	(&http.Client{Transport: c.next}).CloseIdleConnections()
}

// Check holds one answer to the document.
func (v *Validator) Check(r *http.Request, status int, header http.Header, body []byte) {
	v.t.Helper()
	if err := v.check(r, status, header, body); err != nil {
		v.t.Errorf("%s %s answered %d, which is not as the OpenAPI document says: %v\nbody: %.600s",
			r.Method, r.URL.Path, status, err, body)
	}
}

func (v *Validator) check(r *http.Request, status int, header http.Header, body []byte) error {
	request := v.find(r)
	if request.Route == v.unknown && !strings.HasPrefix(r.URL.Path, "/api/") && status < 400 {
		return nil // a page for people; the document describes the API
	}
	response := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: request, Status: status, Header: header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true, ExcludeResponseBody: true},
	}
	if wanted, there := failures[status]; !there && request.Route.Operation.Responses.Status(status) == nil {
		return errors.New("status is not supported")
	} else if wanted != "" && header.Get(wanted) == "" {
		return errors.New("the header " + wanted + " is missing")
	}
	if err := openapi3filter.ValidateResponse(r.Context(), response); err != nil {
		return readable(err)
	}
	if err := v.checkBody(request.Route, status, header, body); err != nil && r.Method != http.MethodHead {
		return err
	}
	if err := v.checkText(request.Route, status, header, body); err != nil {
		return err
	}
	if status < 300 && request.Route != v.unknown {
		return v.checkRequest(request)
	}
	return nil
}

func (v *Validator) find(r *http.Request) *openapi3filter.RequestValidationInput {
	if path := strings.TrimSuffix(r.URL.Path, "/"); path == "/api/chat" || path == "/api/contact" { // with a slash they are the same
		r = r.Clone(r.Context())
		r.URL.Path = path
	}
	_, pattern := v.mux.Handler(r)
	route, ok := v.routes[pattern]
	if !ok || v.isOther(r) {
		route = v.unknown
	}
	return &openapi3filter.RequestValidationInput{Request: r, Route: route, PathParams: pathParams(route.Path, r.URL.Path)}
}

// isOther reports whether a path of plain words does not have the method. It may then look as if
// another path with a name in braces were meant.
func (v *Validator) isOther(r *http.Request) bool {
	item := v.doc.Paths.Value(r.URL.Path)
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return item != nil && item.Operations()[method] == nil
}

// pathParams returns the values of the path for the names in braces of its pattern.
func pathParams(pattern, path string) map[string]string {
	params := map[string]string{}
	parts := strings.Split(path, "/")
	for i, name := range strings.Split(pattern, "/") {
		if strings.HasPrefix(name, "{") && i < len(parts) {
			params[strings.Trim(name, "{}")] = parts[i]
		}
	}
	return params
}

// checkText looks into strings whose text is JSON: answers that are strings by contract, and the
// outcomes of a pool.
func (v *Validator) checkText(route *routers.Route, status int, header http.Header, body []byte) error {
	if status != http.StatusOK || len(body) == 0 {
		return nil // no text, as in the answer to HEAD
	}
	if route.Operation.OperationID == "sendPool" {
		return checkPools(body)
	}
	response, place := v.response(route, status)
	content := response.Value.Content
	if content["application/json"] == nil || content["text/plain"] == nil || !strings.HasPrefix(header.Get("Content-Type"), "text/plain") {
		return nil
	}
	return checkJSON(place+"/content/application~1json/schema", body)
}

func checkPools(body []byte) error {
	var answer struct{ Pools string }
	var outcomes []json.RawMessage
	if err := json.Unmarshal(body, &answer); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(answer.Pools), &outcomes); err != nil {
		return fmt.Errorf("pools is not the JSON text of an array: %w", err)
	}
	for i, outcome := range outcomes {
		if err := CheckSchema("PoolOutcome", outcome); err != nil {
			return fmt.Errorf("pools.%d: %w", i, err)
		}
	}
	return nil
}

func (v *Validator) checkRequest(input *openapi3filter.RequestValidationInput) error {
	r := input.Request
	sent := r.Clone(r.Context())
	sent.Body = nil
	if kind := r.Header.Get("Content-Type"); input.Route.Path == "/api/media" && !strings.HasPrefix(kind, "multipart/") {
		sent.Header.Set("Content-Type", "application/octet-stream") // it may be any, which a generator would not understand
	}
	options := &openapi3filter.Options{
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true, MultiError: true,
	}
	place := v.requestBody(input.Route, sent.Header)
	var body []byte
	switch {
	case r.GetBody != nil:
		var err error
		if body, err = normalBody(r); err != nil {
			return err
		}
		options.ExcludeRequestBody = place != "" && len(body) > 0 // it is checked here
		sent.Body, sent.GetBody = io.NopCloser(bytes.NewReader(body)), nil
		sent.ContentLength = int64(len(body))
	case r.Body != nil && r.Body != http.NoBody:
		options.ExcludeRequestBody = true // it was a stream, and is gone
	}
	input.Request, input.Options = sent, options
	err := openapi3filter.ValidateRequest(r.Context(), input)
	if err != nil {
		err = readable(err)
	} else if len(body) > 0 && options.ExcludeRequestBody {
		err = checkJSON(place, body)
	}
	if err != nil {
		return fmt.Errorf("the server took a request that the document forbids: %w", err)
	}
	return nil
}

// normalBody returns the body of a request as the document describes it: without the fields that are null, which is the same to
// the server as leaving them out (an object of nulls too), and with booleans for the flags that may also be strings or numbers.
func normalBody(r *http.Request) ([]byte, error) {
	reader, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	body, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	var value any
	if json.Unmarshal(body, &value) != nil {
		return body, nil
	}
	return json.Marshal(normalize(value))
}

func normalize(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			object, _ := inner.(map[string]any)
			wasEmpty := len(object) == 0
			switch {
			case inner == nil:
				delete(value, name)
			case name == "linkPreview" || name == "linkPreviewHighQuality":
				value[name] = flag(inner)
			default:
				value[name] = normalize(inner)
			}
			if object != nil && !wasEmpty && len(object) == 0 { // of nulls only
				delete(value, name)
			}
		}
	case []any:
		for i := range value {
			value[i] = normalize(value[i])
		}
	}
	return value
}

func flag(value any) any {
	switch value {
	case "true", "1", 1.0:
		return true
	case "false", "0", 0.0:
		return false
	}
	return value
}

// readable shortens an error of the validator, which prints whole schemas, to what a person needs:
// where, and what was wanted.
func readable(err error) error {
	return errors.New(strings.Join(sentences(err), "; "))
}

func sentences(err error) []string {
	switch e := err.(type) {
	case openapi3.MultiError:
		var list []string
		for _, inner := range e {
			list = append(list, sentences(inner)...)
		}
		return list
	case *openapi3.SchemaError:
		return []string{"/" + strings.Join(e.JSONPointer(), "/") + ": " + e.Reason}
	case *openapi3filter.ResponseError:
		return because(e.Reason, e.Err)
	case *openapi3filter.RequestError:
		if e.Parameter != nil {
			return because("parameter "+e.Parameter.Name, e.Err)
		}
		return because(e.Reason, e.Err)
	}
	return []string{err.Error()}
}

func because(what string, err error) []string {
	if err == nil {
		return []string{what}
	}
	return []string{what + ": " + strings.Join(sentences(err), "; ")}
}
