package product_test

import (
	"net/http"
	"testing"

	"parley/internal/parleytest"
)

// TestRespondAsync checks that a caller that does not want to wait always gets the same answer, not
// SENT now and then because the network was fast.
func TestRespondAsync(t *testing.T) {
	e := parleytest.Start(t)
	for range 200 {
		a := e.Post("/api/send-message/text", `{"contact_id":"`+ayu+`","message":"Hello"}`, parleytest.With("Prefer", "respond-async")).Expect(http.StatusOK)
		if a.Text("data.status") != "PENDING" || a.Header.Get("Preference-Applied") != "respond-async" {
			t.Fatalf("answered %v %s", a.Header, a.Body)
		}
	}
}
