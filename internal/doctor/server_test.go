package doctor

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestServerSaysWhyItIsNotReady: what the server answers is part of the finding.
func TestServerSaysWhyItIsNotReady(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		w.Write([]byte(`{"message":"The disk is full."}`))
	}))
	defer server.Close()
	if f := Server(t.Context(), server.URL, 7); f.Level != Problem || !strings.HasSuffix(f.Found, " is not ready: The disk is full.") {
		t.Errorf("%+v", f)
	}
}
