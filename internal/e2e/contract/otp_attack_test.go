package contract_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"parley/internal/app"
	"parley/internal/parleytest"
)

func askFor(e *parleytest.Env, number string, options ...parleytest.Option) *parleytest.Response {
	e.T.Helper()
	return e.Post(codeRequest, `{"contact_id":"`+number+`@c.us"}`, options...)
}

// TestContractCodesToStrangers has an operator limit to whom codes are sent. A restart refills nothing, and
// nobody's number is in the answer.
func TestContractCodesToStrangers(t *testing.T) {
	e := parleytest.Start(t, func(c *app.Config) { c.OTPContacts, c.OTPPrefix = 3, 2 })
	askFor(e, "6281500010001").Expect(http.StatusOK)
	askFor(e, "6281500010002").Expect(http.StatusOK)
	refused := askFor(e, "6281500010003")
	expectLimited(refused, `"otp-prefix";q=2;w=3600`)
	wantOnlyMessage(t, refused)
	askFor(e, "6281500020001").Expect(http.StatusOK)
	e.Restart()
	refused = askFor(e, "6281500030001")
	after := expectLimited(refused, `"otp-contacts";q=3;w=3600`)
	if text := fmt.Sprint(refused.Header, string(refused.Body)); strings.Contains(text, "628150003") {
		t.Errorf("the answer tells the number: %s", text)
	}
	if got := e.Phone("6281500030001").Messages(); len(got) != 0 {
		t.Errorf("something was sent all the same: %v", got)
	}
	e.Phone("6281500040001").Types("Hello")
	e.Phone("6281500040001").Received("Hello")
	askFor(e, "6281500040001").Expect(http.StatusOK) // wrote first
	e.Post(sendText, textTo("6281500040002")).Expect(http.StatusOK)
	e.Phone("6281500040002").Expect("")
	e.Eventually("who received a message is known", func() bool { return askFor(e, "6281500040002").Status == http.StatusOK })
	advance(e, after)
	askFor(e, "6281500030001").Expect(http.StatusOK)
}

// TestContractCodesUnderAttack has 300 codes requested for made-up numbers at a pace of one in a second. A code
// for a known contact leaves next, and no more codes are accepted than can leave while they are valid.
func TestContractCodesUnderAttack(t *testing.T) {
	e := parleytest.Start(t)
	admin := parleytest.As(e.Admin)
	const known = "6281500050001"
	e.Phone(known).Types("Hello")
	e.Phone(known).Received("Hello")
	e.Call("PATCH", "/api/manage/channels/demo", `{"settings":{"pace":"1s"}}`, admin).Expect(http.StatusOK)
	var attack sync.WaitGroup
	for part := range 10 {
		attack.Go(func() {
			for i := range 30 {
				askFor(e, fmt.Sprintf("62816%03d%05d", i, part)).Expect(http.StatusOK)
			}
		})
	}
	attack.Wait()
	asked := askFor(e, known).Expect(http.StatusOK)
	e.Phone(known).Expect("verification code")
	of := func(more string) *parleytest.Response {
		return e.Get("/api/manage/messages?channel=demo&direction=out&limit=100&"+more, admin).Expect(http.StatusOK)
	}
	var left string // when the known contact's code did
	e.Eventually("it is recorded", func() bool {
		left = of("contact=" + known).Text("data.0.updated_at")
		return of("contact="+known).Text("data.0.status") == "DELIVERED"
	})
	before := 0
	others := of("status=DELIVERED")
	for i := range others.Count("data") {
		at := fmt.Sprintf("data.%d.", i)
		moved, isKnown := others.Text(at+"updated_at"), strings.HasPrefix(others.Text(at+"contact_id"), known)
		if !isKnown && moved > asked.Text("data.timestamp") && moved < left {
			before++
		}
	}
	if before > 1 { // one may have been under way
		t.Errorf("%d codes for strangers left before it", before)
	}
	waiting := int(e.Get("/api/channel/health").Expect(http.StatusOK).Number("data.waiting"))
	refused := e.Post(codeRequest, `{"contact_id":"6281700000001@c.us","expires":30}`)
	if after := expectLimited(refused, `"otp-queue";q=30;w=30`); after > waiting-30 || after < waiting-30-60 {
		t.Errorf("%d messages wait, and Retry-After is %d", waiting, after)
	}
	e.Post(codeRequest, `{"contact_id":"6281700000001@c.us","expires":3600}`).Expect(http.StatusOK)
}

// TestContractCodesPause has nobody approve a code. Codes to strangers pause, and everybody is informed.
func TestContractCodesPause(t *testing.T) {
	e := parleytest.Start(t, func(c *app.Config) { c.OTPContacts, c.OTPPrefix = 1000, -1 })
	admin := parleytest.As(e.Admin)
	for i := range 50 {
		askFor(e, fmt.Sprintf("6281600%06d", i)).Expect(http.StatusOK)
	}
	says := func(path, list string) (sentence string) {
		a := e.Get(path, admin).Expect(http.StatusOK)
		for i := range a.Count(list) {
			if at := fmt.Sprintf("%s.%d.", list, i); strings.Contains(a.Text(at+"sentence"), "sends no codes to new contacts until") {
				sentence = a.Text(at + "sentence")
			}
		}
		return sentence
	}
	for path, list := range map[string]string{"/api/manage/overview": "data.needs", "/api/manage/doctor": "data.findings"} {
		if got := says(path, list); got != "" {
			t.Errorf("%s says too early: %s", path, got)
		}
	}
	after := expectLimited(askFor(e, "6281610000000"), `"otp-paused";q=50;w=1800`)
	if after != 900 {
		t.Errorf("Retry-After is %d", after)
	}
	for path, list := range map[string]string{"/api/manage/overview": "data.needs", "/api/manage/doctor": "data.findings"} {
		if got := says(path, list); !strings.HasPrefix(got, "Channel demo sends no codes to new contacts until ") {
			t.Errorf("%s says %q", path, got)
		}
	}
	advance(e, after)
	if got := says("/api/manage/overview", "data.needs"); got != "" {
		t.Errorf("it is over, and the overview says %s", got)
	}
	askFor(e, "6281610000000").Expect(http.StatusOK)
}
