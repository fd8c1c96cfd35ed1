package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"parley/internal/client"
)

// TestInside calls a handler in this process that streams: each event arrives before the next is written, the handler sees
// who called, and it ends when the reader closes the stream.
func TestInside(t *testing.T) {
	ended := make(chan struct{})
	next := make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/events" {
			w.Header().Set("X-From", r.RemoteAddr+" "+r.Header.Get("X-Forwarded-For"))
			io.WriteString(w, `{"success":true,"message":"OK","data":null}`)
			return
		}
		defer close(ended)
		control := http.NewResponseController(w)
		for i := 1; ; i++ {
			fmt.Fprintf(w, "id: evt_%d\ndata: {\"n\":%d}\n\n", i, i)
			if err := control.Flush(); err != nil {
				t.Error(err)
			}
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
	})
	of := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	of.RemoteAddr = "192.0.2.7:4711"
	of.Header.Set("X-Forwarded-For", "198.51.100.2")
	cl := &client.Client{Base: "http://parley", HTTP: &http.Client{Transport: client.Inside(handler, of)}}

	resp, err := cl.Open(t.Context(), http.MethodGet, "/api/chat", nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Header.Get("X-From"); got != "192.0.2.7:4711 198.51.100.2" {
		t.Errorf("the handler saw %q", got)
	}
	stream, err := cl.Events(t.Context(), client.EventsPath, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	events := client.NewEventReader(stream.Body)
	for _, want := range []string{`{"n":1}`, `{"n":2}`} {
		if got, err := events.Next(); err != nil || string(got) != want {
			t.Fatalf("got %s, %v", got, err)
		}
		if want == `{"n":1}` {
			next <- struct{}{}
		}
	}
	if events.LastID != "evt_2" {
		t.Errorf("the last id is %q", events.LastID)
	}
	stream.Body.Close()
	<-ended
}

// TestInsidePanics has a handler panic in the middle: the reader gets an error, and the process lives.
func TestInsidePanics(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"success":tr`)
		panic(http.ErrAbortHandler)
	})
	cl := &client.Client{Base: "http://parley",
		HTTP: &http.Client{Transport: client.Inside(handler, httptest.NewRequest(http.MethodPost, "/mcp", nil))}}
	if _, err := cl.Get(t.Context(), "/api/chat", nil, nil); err == nil {
		t.Error("there is no error")
	}
}

// TestInsideCancelled stops waiting for a handler that does not begin.
func TestInsideCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		defer close(ended)
		cancel()
		<-r.Context().Done()
	})
	cl := &client.Client{Base: "http://parley",
		HTTP: &http.Client{Transport: client.Inside(handler, httptest.NewRequest(http.MethodPost, "/mcp", nil))}}
	if _, err := cl.Get(ctx, "/api/chat", nil, nil); err == nil {
		t.Error("there is no error")
	}
	<-ended
}
