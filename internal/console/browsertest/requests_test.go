package browsertest

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"parley/internal/parleytest"
)

// TestRequests finds one request among others, and reads it.
func TestRequests(t *testing.T) {
	t.Parallel()
	c := start(t)
	p := c.open("/channels/demo/requests")
	p.see("No requests yet.")
	for i := range 60 {
		c.Get(fmt.Sprintf("/api/messages?limit=%d", i+1)).Expect(http.StatusOK)
	}
	c.Post("/api/send-message/text", `{"contact_id":"`+ayu+`@c.us","message":"the text stays out"}`,
		parleytest.With("Idempotency-Key", `<img src=x onerror=alert(1)>`)).Expect(http.StatusOK)
	c.Post("/api/send-message/text", `{}`, parleytest.With("X-Request-Id", "my-own-id")).Expect(http.StatusUnprocessableEntity)
	c.Get("/api/messages/%3Cscript%3Ealert(1)%3C%2Fscript%3E").Expect(http.StatusNotFound)

	p.visit("/channels/demo/requests")
	p.live()
	p.see("GET /api/messages/{message_id}")
	p.see("50 of 63")
	p.click("button", "Show older")
	p.until("all are there", `document.querySelectorAll('main tbody tr[data-key]').length === 63`)
	p.accessible()

	p.choose("Status", "4xx")
	p.until("two were rejected", `document.querySelectorAll('main tbody tr[data-key]').length === 2 && location.search.includes('status=4xx')`)
	p.fill("Error code", "invalid")
	p.press(kb.Enter)
	p.until("one was invalid", `document.querySelectorAll('main tbody tr[data-key]').length === 1`)
	p.press(kb.Escape)
	p.openRow(1)
	p.see("my-own-id")
	p.see("422")
	p.accessible()

	p.visit("/channels/demo/requests?idempotency_key=" + "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
	p.live()
	p.until("the key is found", `document.querySelectorAll('main tbody tr[data-key]').length === 1`)
	p.openRow(1)
	p.see("<img src=x onerror=alert(1)>")
	p.gone("the text stays out")
	p.visit("/channels/demo/requests?request_id=nobody")
	p.live()
	p.see("No request matches.")
	p.click("link", "Clear the filter")
	p.see("50 of 63")
}
