package client_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/internal/client"
	"parley/internal/wire"
)

// handler answers a few paths as the API does.
var handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/api/manage/echo/a b":
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", r.Method+" "+r.RequestURI+" "+r.Header.Get("Authorization")+" "+r.Header.Get("X-Channel")+" "+string(body))
		io.WriteString(w, `{"success":true,"message":"OK","data":{"secret":"s"},"meta":{"total":7}}`)
	case "/wrong":
		w.WriteHeader(http.StatusUnprocessableEntity)
		io.WriteString(w, `{"message":"name is too long. (and 1 more errors)","errors":{"name":["name is too long."],"code":["code is taken."]}}`)
	case "/coded":
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"message":"The channel is not ready.","code":"channel_not_ready"}`)
	case "/unknown":
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"message":"This is not a token."}`)
	default:
		io.WriteString(w, `<html>`)
	}
})

// TestClient calls a server and a handler in this process: both are the same to callers.
func TestClient(t *testing.T) {
	server := httptest.NewServer(handler)
	defer server.Close()
	for name, cl := range map[string]*client.Client{
		"server":  {Base: server.URL, HTTP: client.OfThisMachine()},
		"process": {Base: "http://parley", HTTP: &http.Client{Transport: client.Direct(handler)}},
	} {
		cl.Token, cl.Channel, cl.Origin = "tok", "demo", "PARLEY_TOKEN"
		t.Run(name, func(t *testing.T) { testClient(t, cl) })
	}
}

func testClient(t *testing.T, cl *client.Client) {
	ctx := t.Context()
	var s wire.Secret
	r, err := cl.Get(ctx, client.Path("echo", "a b"), map[string][]string{"q": {"1"}}, &s)
	if err != nil || s.Secret != "s" || r.Meta.Total != 7 || !r.Success {
		t.Errorf("got %+v %+v, %v", r, s, err)
	}
	resp, err := cl.Open(ctx, http.MethodPost, client.Path("echo", "a b"), nil, nil, map[string]int{"n": 1})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got, want := resp.Header.Get("X-Seen"), `POST /api/manage/echo/a%20b Bearer tok demo {"n":1}`; got != want {
		t.Errorf("sent was %q, want %q", got, want)
	}
	for path, want := range map[string]client.Error{
		"/wrong":   {Status: 422, Code: "invalid", Message: "name is too long. (and 1 more errors)"},
		"/coded":   {Status: 400, Code: "channel_not_ready", Message: "The channel is not ready."},
		"/unknown": {Status: 401, Code: "unauthenticated", Message: "This is not a token.", Origin: "PARLEY_TOKEN"},
	} {
		_, err := cl.Post(ctx, path, nil, nil)
		refused, ok := errors.AsType[*client.Error](err)
		if !ok || refused.Status != want.Status || refused.Code != want.Code || refused.Message != want.Message || refused.Origin != want.Origin {
			t.Errorf("%s: %+v", path, err)
		}
	}
	_, err = cl.Post(ctx, "/wrong", nil, nil)
	if got := err.Error(); !strings.Contains(got, "\n  code: code is taken.") || !strings.Contains(got, "\n  name: name is too long.") {
		t.Errorf("said is %q", got)
	}
	_, err = cl.Get(ctx, "/page", nil, nil)
	if err == nil || !strings.Contains(err.Error(), "Is it a parley server?") {
		t.Errorf("another program: %v", err)
	}
}

// TestUnreachable calls where nobody listens.
func TestUnreachable(t *testing.T) {
	server := httptest.NewServer(handler)
	server.Close()
	_, err := (&client.Client{Base: server.URL}).Get(t.Context(), "/", nil, nil)
	if _, ok := errors.AsType[*client.UnreachableError](err); !ok {
		t.Errorf("got %v", err)
	}
}
