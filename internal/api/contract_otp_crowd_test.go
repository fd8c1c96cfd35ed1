package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"parley/internal/app"
	"parley/internal/parleytest"
)

// TestContractCodesToMany has an operator limit to whom codes are sent. A start anew refills nothing, and
// nobody's number is in the answer.
func TestContractCodesToMany(t *testing.T) {
	e := parleytest.Start(t, func(c *app.Config) { c.OTPContacts, c.OTPPrefix = 3, 2 })
	ask := func(number string) *parleytest.Answer {
		e.T.Helper()
		return e.Post(codeRequest, `{"contact_id":"`+number+`@c.us"}`)
	}
	ask("6281500010001").Expect(http.StatusOK)
	ask("6281500010002").Expect(http.StatusOK)
	refused := ask("6281500010003")
	expectLimited(refused, `"otp-prefix";q=2;w=3600`)
	wantOnlyMessage(t, refused)
	ask("6281500020001").Expect(http.StatusOK)
	e.Restart()
	refused = ask("6281500030001")
	after := expectLimited(refused, `"otp-contacts";q=3;w=3600`)
	if text := fmt.Sprint(refused.Header, string(refused.Body)); strings.Contains(text, "628150003") {
		t.Errorf("the answer tells the number: %s", text)
	}
	if got := e.Phone("6281500030001").Messages(); len(got) != 0 {
		t.Errorf("something was sent all the same: %v", got)
	}
	e.Phone("6281500040001").Types("Hello")
	e.Phone("6281500040001").Received("Hello")
	ask("6281500040001").Expect(http.StatusOK) // wrote first
	advance(e, after)
	ask("6281500030001").Expect(http.StatusOK)
}
