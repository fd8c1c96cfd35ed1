package parleytest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"parley/internal/api"
)

// complaints is a test that collects errors instead of failing.
type complaints struct {
	testing.TB
	list []string
}

func (c *complaints) Helper() {}
func (c *complaints) Errorf(format string, args ...any) {
	c.list = append(c.list, fmt.Sprintf(format, args...))
}

const (
	goodSend = `{"success":true,"message":"Message sent","data":{"status":"SENT","message":"Hello","timestamp":"2026-11-15T08:30:00.000Z",` +
		`"message_id":"true_6281234567890@c.us_3EB0A1C4F29D77E01B5C42","id":"3EB0A1C4F29D77E01B5C42"}}`
	goodText = `{"contact_id":"6281234567890@c.us","message":"Hello","reply_to":null}`
)

// TestValidator checks that the validator lets pass what the document says, and that each way of
// straying from it is noticed, with a message that names the place.
func TestValidator(t *testing.T) {
	tests := []struct {
		name         string
		method, path string
		request      string
		status       int
		header       string // "Name: value" lines beside the content type
		contentType  string // application/json unless given
		body         string
		complaint    string // part of it; empty: none
	}{
		{name: "a send", method: "POST", path: "/api/send-message/text", request: goodText, status: 200, body: goodSend},
		{name: "no request id", method: "POST", path: "/api/send-message/text", request: goodText, status: 200, body: goodSend,
			header: "X-Request-Id:", complaint: `"X-Request-Id" missing`},
		{name: "an unknown field", method: "POST", path: "/api/send-message/text", request: goodText, status: 200,
			body: strings.Replace(goodSend, `"data"`, `"extra":1,"data"`, 1), complaint: "extra"},
		{name: "an unknown field inside", method: "POST", path: "/api/send-message/text", request: goodText, status: 200,
			body: strings.Replace(goodSend, `"id"`, `"secret":1,"id"`, 1), complaint: "secret"},
		{name: "a missing field", method: "POST", path: "/api/send-message/text", request: goodText, status: 200,
			body: strings.Replace(goodSend, `"status":"SENT",`, ``, 1), complaint: "status"},
		{name: "a wrong type", method: "POST", path: "/api/send-message/text", request: goodText, status: 200,
			body: strings.Replace(goodSend, `"SENT"`, `1`, 1), complaint: "/data/status"},
		{name: "a time without milliseconds", method: "POST", path: "/api/send-message/text", request: goodText, status: 200,
			body: strings.Replace(goodSend, `.000Z`, `Z`, 1), complaint: "/data/timestamp"},
		{name: "no JSON", method: "POST", path: "/api/send-message/text", request: goodText, status: 200, body: `{"success"`,
			complaint: "decode"},
		{name: "a wrong content type", method: "POST", path: "/api/send-message/text", request: goodText, status: 200, body: goodSend,
			contentType: "text/html", complaint: "text/html"},
		{name: "a status of its own", method: "POST", path: "/api/send-message/text", request: goodText, status: 418, body: `{"message":"No."}`,
			complaint: "status is not supported"},
		{name: "a bad request that was taken", method: "POST", path: "/api/send-message/text", request: `{"contact_id":"Ayu","message":"Hello"}`,
			status: 200, body: goodSend, complaint: "the server took a request that the document forbids"},
		{name: "a bad parameter that was taken", method: "GET", path: "/api/chat?limit=101", status: 200,
			body: `{"success":true,"message":"OK","data":[],"meta":{"current_page":1,"per_page":50,"total":0,"total_pages":1,` +
				`"has_next_page":false,"has_prev_page":false,"next_cursor":null}}`,
			complaint: "limit"},
		{name: "a bad request that was refused", method: "POST", path: "/api/send-message/text", request: `{"message":"Hello"}`, status: 422,
			body: `{"message":"contact_id is required.","code":"invalid","errors":{"contact_id":["contact_id is required."]}}`},
		{name: "an empty list of errors", method: "POST", path: "/api/send-message/text", request: `{}`, status: 422,
			body: `{"message":"Wrong.","code":"invalid","errors":{}}`, complaint: "errors"},
		{name: "an error that says too much", method: "POST", path: "/api/send-message/text", request: `{}`, status: 500,
			body: `{"message":"Internal server error","code":"internal","cause":"disk"}`, complaint: "cause"},
		{name: "an error without a code", method: "GET", path: "/api/chat", status: 500, body: `{"message":"No."}`, complaint: "code"},
		{name: "an error with an unknown code", method: "GET", path: "/api/chat", status: 500, body: `{"message":"No.","code":"odd"}`,
			complaint: "code"},
		{name: "401 without a challenge", method: "GET", path: "/api/chat", status: 401, body: `{"message":"No.","code":"unauthenticated"}`,
			complaint: "WWW-Authenticate"},
		{name: "401", method: "GET", path: "/api/chat", status: 401, header: `WWW-Authenticate: Bearer realm="parley"`,
			body: `{"message":"No.","code":"unauthenticated"}`},
		{name: "429 without a time", method: "GET", path: "/api/chat", status: 429, body: `{"message":"No.","code":"rate_limited"}`,
			complaint: "Retry-After"},
		{name: "typing", method: "POST", path: "/api/send-message/typing", request: `{"contact_id":"6281234567890@c.us"}`, status: 200,
			contentType: "text/plain; charset=utf-8", body: "OK"},
		{name: "typing, another word", method: "POST", path: "/api/send-message/typing", request: `{"contact_id":"6281234567890@c.us"}`,
			status:      200,
			contentType: "text/plain; charset=utf-8", body: "fine", complaint: "OK"},
		{name: "a contact as text", method: "GET", path: "/api/contact/info?contact_id=6281234567890@c.us", status: 200,
			contentType: "text/plain; charset=utf-8",
			body: `{"success":true,"message":"OK","data":{"id":"6281234567890@c.us","contact_id":"6281234567890@c.us","name":"Ayu",` +
				`"number":"6281234567890","username":null,"is_business":false,` +
				`"is_blocked":false,"last_seen_at":null,"about":"","picture_url":null,"profile_picture_url":null,"on_network":true,` +
				`"disappearing_seconds":0}}`},
		{name: "a contact as text with a field missing", method: "GET", path: "/api/contact/info?contact_id=6281234567890@c.us", status: 200,
			contentType: "text/plain; charset=utf-8",
			body:        `{"success":true,"message":"OK","data":{"id":"6281234567890@c.us"}}`, complaint: "on_network"},
		{name: "a pool", method: "POST", path: "/api/send-message/pool",
			request: `{"contact_id":"6281234567890@c.us","pools":[{"type":"text","data":["a"]}]}`, status: 200,
			body: `{"success":false,"message":"Failed to send pool message","pools":"[{\"type\":\"text\",\"status\":\"FAILED\",` +
				`\"message_id\":null,\"id\":null,\"error\":{\"code\":\"not_sent\",\"message\":\"No channel.\"}}]"}`},
		{name: "a pool with a bad outcome", method: "POST", path: "/api/send-message/pool",
			request: `{"contact_id":"6281234567890@c.us","pools":[{"type":"text","data":["a"]}]}`, status: 200,
			body: `{"success":true,"message":"OK","pools":"[{\"type\":\"text\"}]"}`, complaint: "pools.0"},
		{name: "an unknown path", method: "GET", path: "/api/nothing", status: 404,
			body: `{"message":"There is nothing here.","code":"not_found"}`},
		{name: "an unknown path in plain text", method: "GET", path: "/api/nothing", status: 404, contentType: "text/plain; charset=utf-8",
			body: "404 page not found", complaint: "text/plain"},
		{name: "an unknown path that answers", method: "GET", path: "/api/nothing", status: 200, body: `{}`,
			complaint: "status is not supported"},
		{name: "another method", method: "GET", path: "/api/send-message/text", status: 405, header: "Allow: POST",
			body: `{"message":"No.","code":"method_not_allowed"}`},
		{name: "another method, not said which", method: "GET", path: "/api/send-message/text", status: 405,
			body:      `{"message":"No.","code":"method_not_allowed"}`,
			complaint: "Allow"},
		{name: "a path with a parameter", method: "GET", path: "/api/manage/channels/shop", status: 404,
			body: `{"message":"There is no channel shop.","code":"not_found"}`},
		{name: "a page for people", method: "GET", path: "/", status: 200, contentType: "text/html; charset=utf-8", body: "<!doctype html>"},
		{name: "HEAD", method: "HEAD", path: "/api/chat", status: 200},
		{name: "not modified", method: "GET", path: "/openapi.json", status: 304},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if test.contentType != "" {
					w.Header().Set("Content-Type", test.contentType)
				}
				w.Header().Set("X-Request-Id", "r1")
				if name, value, ok := strings.Cut(test.header, ":"); ok {
					w.Header().Set(name, strings.TrimSpace(value))
					if strings.TrimSpace(value) == "" {
						w.Header().Del(name)
					}
				}
				w.WriteHeader(test.status)
				io.WriteString(w, test.body)
			}))
			defer server.Close()
			found := &complaints{TB: t}
			client := &http.Client{Transport: NewValidator(found).Wrap(http.DefaultTransport)}

			r, err := http.NewRequestWithContext(t.Context(), test.method, server.URL+test.path, strings.NewReader(test.request))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			answer, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			if body, err := io.ReadAll(answer.Body); err != nil || test.method != "HEAD" && test.status != 304 && string(body) != test.body {
				t.Errorf("the answer did not come through: %q, %v", body, err)
			}

			switch {
			case test.complaint == "" && len(found.list) > 0:
				t.Errorf("complained: %q", found.list)
			case test.complaint != "" && (len(found.list) != 1 || !strings.Contains(found.list[0], test.complaint)):
				t.Errorf("complained %q, want %q", found.list, test.complaint)
			}
		})
	}
}

// TestValidatorPassesStreams checks that a stream reaches its reader before it ends.
func TestValidatorPassesStreams(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, ": hello\n\n")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := NewValidator(t).Wrap(http.DefaultTransport).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	hello := make([]byte, 9)
	if _, err := io.ReadFull(answer.Body, hello); err != nil || string(hello) != ": hello\n\n" {
		t.Errorf("read %q, %v", hello, err)
	}
}

// TestOperations compares what the document describes with what the server has, both ways.
func TestOperations(t *testing.T) {
	routes := api.Routes()
	var described []string
	for _, o := range Operations(t) {
		described = append(described, o.Method+" "+o.Path)
	}
	for _, route := range routes {
		if !slices.Contains(described, route) {
			t.Errorf("the document does not describe %s", route)
		}
	}
	for _, operation := range described {
		if !slices.Contains(routes, operation) {
			t.Errorf("the server does not have %s", operation)
		}
	}
	if len(routes) < 50 {
		t.Errorf("only %d routes were compared", len(routes))
	}
}

func BenchmarkValidator(b *testing.B) {
	v := NewValidator(b)
	r := httptest.NewRequest(http.MethodPost, "/api/send-message/text", strings.NewReader(goodText))
	r.Header.Set("Content-Type", "application/json")
	header := http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {"r1"}}
	for b.Loop() {
		v.Check(r, http.StatusOK, header, []byte(goodSend))
	}
}
