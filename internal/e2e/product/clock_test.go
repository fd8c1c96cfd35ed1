package product_test

import (
	"net/http"
	"testing"
	"time"

	"parley/internal/parleytest"
)

// TestClockCannotBeMovedTooFar moves the clock of a channel on by a year again and again: three
// centuries do not fit into the length of time that it is stored as, and must not make it run backwards.
func TestClockCannotBeMovedTooFar(t *testing.T) {
	e := parleytest.Start(t)
	last := time.Now()
	for range 300 {
		answer := e.Post("/api/sandbox/clock", `{"advance":31622400}`)
		if answer.Status == http.StatusUnprocessableEntity {
			answer.ExpectFields("advance")
			break
		}
		now, err := time.Parse(time.RFC3339, answer.Expect(http.StatusOK).Text("data.timestamp"))
		if err != nil || !now.After(last) {
			t.Fatalf("after %s the clock says %s, %v", last.Format(time.RFC3339), answer.Body, err)
		}
		last = now
	}
	e.Post("/api/send-message/text", `{"contact_id":"6281234567890@c.us","message":"Hello"}`).Expect(http.StatusOK)
	e.Get("/api/chat/detail?contact_id=6281234567890@c.us").Expect(http.StatusOK)
}
