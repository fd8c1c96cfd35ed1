package product_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

// TestWebhooksCarryTheRequestID follows one send by the id that its caller gave it.
func TestWebhooksCarryTheRequestID(t *testing.T) {
	e := parleytest.Start(t)
	ids := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { ids <- r.Header.Get("X-Request-Id") }))
	defer server.Close()
	e.Post("/api/manage/webhooks", `{"url":"`+server.URL+`","events":["message.status","message.received"]}`, parleytest.As(e.Admin)).Expect(http.StatusCreated)
	e.Post("/api/send-message/text", `{"contact_id":"6281234567890@c.us","message":"Halo"}`, parleytest.With("X-Request-Id", "order-4711")).Expect(http.StatusOK)
	for range 2 { // SENT, DELIVERED
		if id := <-ids; id != "order-4711" {
			t.Errorf("told with %q", id)
		}
	}
	e.Phone("6281234567890").Types("thanks")
	if id := <-ids; id == "order-4711" || len(id) < 16 || strings.TrimSpace(id) != id {
		t.Errorf("a message from outside is told with %q", id)
	}
}
