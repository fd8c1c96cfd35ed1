package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"parley"
)

// Error is the API's rejection of a request.
type Error struct {
	Status  int
	Code    string // stable, for programs
	Message string
	Errors  map[string][]string // sentences by field

	Origin string // where the token was set, if the error is about it
}

// Error is the message, with one line per wrong field.
func (e *Error) Error() string {
	lines := []string{e.Message}
	if e.Origin != "" {
		lines[0] = e.Origin + ": " + e.Message
	}
	for _, field := range slices.Sorted(maps.Keys(e.Errors)) {
		for _, sentence := range e.Errors[field] {
			if sentence != e.Message {
				lines = append(lines, "  "+field+": "+sentence)
			}
		}
	}
	return strings.Join(lines, "\n")
}

// HasCode reports whether the error has one of these codes.
func (e *Error) HasCode(codes ...parley.Code) bool {
	return slices.ContainsFunc(codes, func(c parley.Code) bool { return c.String() == e.Code })
}

// UnreachableError means that there was no complete response.
type UnreachableError struct {
	Base string
	Err  error
}

func (e *UnreachableError) Error() string {
	remedy := "Check the address, and that the server runs"
	if u, err := url.Parse(e.Base); err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()) {
		remedy = "Is it running? Start it with: parley dev, or parley serve"
	}
	return fmt.Sprintf("cannot reach %s: %v. %s", e.Base, e.Err, remedy)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// codes are for errors whose body has no code: of older servers, and of proxies.
var codes = map[int]parley.Code{
	http.StatusBadRequest:            parley.BadRequest,
	http.StatusUnauthorized:          parley.Unauthenticated,
	http.StatusForbidden:             parley.Forbidden,
	http.StatusNotFound:              parley.NotFound,
	http.StatusMethodNotAllowed:      parley.MethodNotAllowed,
	http.StatusConflict:              parley.Conflict,
	http.StatusRequestEntityTooLarge: parley.TooLarge,
	http.StatusUnprocessableEntity:   parley.Invalid,
	http.StatusTooManyRequests:       parley.TooMany,
	http.StatusServiceUnavailable:    parley.Unavailable,
} // else the zero Code, parley.Internal

func (c *Client) rejection(resp *http.Response) error {
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return &UnreachableError{Base: c.Base, Err: fmt.Errorf("read the response: %w", err)}
	}
	var body struct {
		Code    string              `json:"code"`
		Message string              `json:"message"`
		Errors  map[string][]string `json:"errors"`
	}
	if json.Unmarshal(raw, &body) != nil || body.Message == "" {
		return c.foreign(resp)
	}
	e := &Error{Status: resp.StatusCode, Message: body.Message, Errors: body.Errors,
		Code: cmp.Or(body.Code, codes[resp.StatusCode].String())}
	if e.HasCode(parley.Unauthenticated, parley.TokenExpired) {
		e.Origin = c.Origin
	}
	return e
}

// foreign is the error for a response that Parley never sends.
func (c *Client) foreign(resp *http.Response) error {
	return &Error{Status: resp.StatusCode, Code: codes[resp.StatusCode].String(),
		Message: fmt.Sprintf("%s answered %s with something that is not of this API. Is it a parley server?", c.Base, resp.Status)}
}
