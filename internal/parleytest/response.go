package parleytest

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

type Response struct {
	T       testing.TB
	Request string
	Status  int
	Header  http.Header
	Body    []byte
	At      time.Time // when it came
}

// Expect fails the test on another status.
func (a *Response) Expect(status int) *Response {
	a.T.Helper()
	if a.Status != status {
		a.T.Fatalf("%s: answer %d, want %d: %s", a.Request, a.Status, status, a.Body)
	}
	return a
}

// ExpectError fails the test if the response is not this error with a sentence that contains part.
func (a *Response) ExpectError(status int, part string) *Response {
	a.T.Helper()
	a.Expect(status)
	if got := a.Text("message"); !strings.Contains(got, part) {
		a.T.Errorf("%s: the message is %q, want something with %q", a.Request, got, part)
	}
	return a
}

// ExpectFields fails the test if the response is not a validation error of just these fields.
func (a *Response) ExpectFields(fields ...string) *Response {
	a.T.Helper()
	a.Expect(http.StatusUnprocessableEntity)
	var body struct{ Errors map[string][]string }
	if err := json.Unmarshal(a.Body, &body); err != nil {
		a.T.Fatalf("%s: %v: %s", a.Request, err, a.Body)
	}
	for _, f := range fields {
		if len(body.Errors[f]) == 0 {
			a.T.Errorf("%s: no error on %s: %s", a.Request, f, a.Body)
		}
		delete(body.Errors, f)
	}
	for f := range body.Errors {
		a.T.Errorf("%s: an error on %s that was not expected: %s", a.Request, f, a.Body)
	}
	return a
}

// Value finds a value in the JSON of the response by its dotted path ("data.0.status"); nil: it is
// null or not there.
func (a *Response) Value(path string) any {
	a.T.Helper()
	var value any
	if err := json.Unmarshal(a.Body, &value); err != nil {
		a.T.Fatalf("%s: the answer is no JSON: %v: %s", a.Request, err, a.Body)
	}
	for name := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// Text is Value for a string; "" where it is none.
func (a *Response) Text(path string) string {
	a.T.Helper()
	s, _ := a.Value(path).(string)
	return s
}

// Number is Value for a number; -1 where it is none.
func (a *Response) Number(path string) int {
	a.T.Helper()
	if n, ok := a.Value(path).(float64); ok {
		return int(n)
	}
	return -1
}

// Bool is Value for a boolean; false where it is none.
func (a *Response) Bool(path string) bool {
	a.T.Helper()
	b, _ := a.Value(path).(bool)
	return b
}

// Count is the length of a list; -1 where it is none.
func (a *Response) Count(path string) int {
	a.T.Helper()
	if list, ok := a.Value(path).([]any); ok {
		return len(list)
	}
	return -1
}
