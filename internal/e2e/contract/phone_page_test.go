package contract_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

// ticketIn is what the fragment of a sandbox link holds.
func ticketIn(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	ticket, found := strings.CutPrefix(u.Fragment, "ticket=")
	if !found {
		t.Fatalf("no ticket in %s", link)
	}
	return ticket
}

// tapPage does what the page of a simulated phone does.
func tapPage(e *parleytest.Env, number, ticket, text string) *parleytest.Response {
	e.T.Helper()
	return e.Post("/phone/"+number+"/send", `{"ticket":`+quoted(ticket)+`,"text":`+quoted(text)+`}`, parleytest.As(""))
}

func TestContractPhonePage(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	l := linkFor(e, "6281400000001")
	path := strings.TrimPrefix(l.link, e.URL)
	path, _, _ = strings.Cut(path, "#")
	a := e.Get(path, parleytest.As("")).Expect(http.StatusOK)
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
		"X-Content-Type-Options": "nosniff",
	} {
		if got := a.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	policy := a.Header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'; script-src 'self';") || strings.Contains(policy, "unsafe") || strings.Contains(policy,
		"data:") {
		t.Errorf("the policy is %q", policy)
	}
	for _, part := range []string{"+6281400000001", "<strong>demo</strong>", ">" + l.prompt + "</textarea>", `<label for="text">`,
		`role="status"`} {
		if !strings.Contains(string(a.Body), part) {
			t.Errorf("the page has no %q: %s", part, a.Body)
		}
	}
	if strings.Contains(string(a.Body), "://") {
		t.Errorf("the page names another server: %s", a.Body)
	}
	for file, kind := range map[string]string{"/phone.js": "text/javascript; charset=utf-8", "/phone.css": "text/css; charset=utf-8"} {
		f := e.Get(file, parleytest.As("")).Expect(http.StatusOK)
		if f.Header.Get("Content-Type") != kind || strings.Contains(string(f.Body), "://") || !strings.Contains(string(a.Body), `"`+file+`"`) {
			t.Errorf("%s is %q, must load nothing from elsewhere and be loaded by the page", file, f.Header.Get("Content-Type"))
		}
	}

	hostile := e.Get("/phone/6281400000001?to=%3Cb%3E&text="+url.QueryEscape(`</textarea><script>alert(1)</script>"'`), parleytest.As("")).
		Expect(http.StatusOK)
	if body := string(hostile.Body); strings.Contains(body, "<script>alert") || strings.Contains(body, "<b>") || !strings.Contains(body,
		"&lt;script&gt;alert(1)") {
		t.Errorf("what the address says is not shown as text: %s", body)
	}
	for _, bad := range []string{"x", "1", "6281400000001x", "%3Cscript%3E", "+6281400000001"} {
		e.Get("/phone/"+bad, parleytest.As("")).Expect(http.StatusNotFound)
	}
	e.Call("PUT", "/phone/6281400000001", "", parleytest.As("")).Expect(http.StatusMethodNotAllowed)
}

func TestContractPhonePageSends(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	const number = "6281400000002"
	e.Post("/api/send-message/text", `{"contact_id":"`+number+`@c.us","message":"a secret from before"}`).Expect(http.StatusOK)
	l := linkFor(e, number)
	ticket := ticketIn(t, l.link)

	a := tapPage(e, number, ticket, "just talking").Expect(http.StatusOK)
	wantKeys(t, a, "data", "answer", "timestamp")
	wantValue(t, a, "data.answer", nil)
	a = tapPage(e, number, ticket, l.prompt).Expect(http.StatusOK)
	wantRecent(t, a, "data.timestamp")
	wantValue(t, a, "data.answer", "You are logged in to Demo. Go back to where you started.")
	awaitLink(e, l.id, "APPROVED")
	if again := tapPage(e, number, ticket, l.prompt).Expect(http.StatusOK).Text("data.answer"); !strings.HasPrefix(again,
		"This did not log you in") {
		t.Errorf("tapped again: %q", again)
	}
	if e.Log.Contains(ticket) || e.Log.Contains(l.code) || e.Log.Contains(number) {
		t.Error("the log holds the ticket, the code or the number")
	}
	wantNowhere(t, e, strings.SplitN(ticket, ".", 2)[1])

	e.Post("/api/sandbox/clock", `{"advance":300}`)
	tapPage(e, number, ticket, l.prompt).ExpectError(http.StatusNotFound, "has expired")
}

func TestContractPhonePageTickets(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	const number, other = "6281400000003", "6281400000004"
	l, others := linkFor(e, number), linkFor(e, other)
	ticket := ticketIn(t, l.link)
	for _, bad := range []string{"x", ticket[:len(ticket)-1], ticket + "A", l.id, e.Token, strings.ToUpper(ticket), ticketIn(t, others.link)} {
		if len(bad) <= 200 {
			tapPage(e, number, bad, l.prompt).Expect(http.StatusNotFound)
		}
	}
	tapPage(e, other, ticket, l.prompt).Expect(http.StatusNotFound)
	tapPage(e, number, ticket, "").ExpectFields("text")
	tapPage(e, number, ticket, strings.Repeat("é", 4097)).ExpectFields("text")
	tapPage(e, number, "", "x").ExpectFields("ticket")
	e.Post("/phone/"+number+"/send", `{}`, parleytest.As("")).ExpectFields("ticket", "text")
	e.Post("/phone/"+number+"/send", `{"ticket":1,"text":[]}`, parleytest.As("")).ExpectFields("ticket", "text")
	e.Post("/phone/"+number+"/send", `[]`, parleytest.As("")).Expect(http.StatusBadRequest)
	e.Post("/phone/"+number+"/send", `{}`, parleytest.As(""), parleytest.With("Content-Type", "text/plain")).Expect(http.StatusBadRequest)
	e.Post("/phone/"+number+"/send", `{"text":"`+strings.Repeat("x", 64<<10)+`"}`, parleytest.As("")).Expect(http.StatusRequestEntityTooLarge)
	e.Post("/phone/"+number+"/send", `{"ticket":"`+ticket+`","text":"`+strings.Repeat(`\ud83d\ude00`, 4096)+`"}`, parleytest.As("")).
		Expect(http.StatusOK)
	wantValue(t, e.Get("/api/otp/link/"+l.id), "data.status", "PENDING")
	wantValue(t, e.Get("/api/otp/link/"+l.id), "data.tries", 0.0)
	tapPage(e, number, ticket, l.prompt).Expect(http.StatusOK)
	e.Call("DELETE", "/api/sandbox", "").Expect(http.StatusOK)
	tapPage(e, number, ticket, l.prompt).Expect(http.StatusNotFound)
}

func TestContractOpenLoginLink(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	second := e.CreateChannel("second")
	const number = "6281400000006"
	open := func(number, body string, options ...parleytest.Option) *parleytest.Response {
		return e.Post(phones+"/"+number+"/open", body, options...)
	}
	byID := linkFor(e, number)
	open(number, `{"id":"`+byID.id+`"}`, parleytest.As(second)).ExpectFields("id")
	open("6281400000007", `{"id":"`+byID.id+`"}`).Expect(http.StatusOK)
	e.Eventually("the wrong phone is counted", func() bool { return e.Get("/api/otp/link/"+byID.id).Number("data.tries_by_others") == 1 })
	open(number, `{"id":"`+byID.id+`"}`).Expect(http.StatusOK)
	awaitLink(e, byID.id, "APPROVED")
	open(number, `{"id":"`+byID.id+`"}`).ExpectFields("id").ExpectError(422, "APPROVED")

	byLink := linkFor(e, number)
	open(number, `{"link":`+quoted(byLink.link)+`}`, parleytest.As(second)).ExpectFields("link")
	open(number, `{"link":`+quoted(byLink.link)+`}`).Expect(http.StatusOK)
	awaitLink(e, byLink.id, "APPROVED")
	byApp := linkFor(e, number)
	open(number, `{"link":`+quoted(byApp.appURI)+`}`).Expect(http.StatusOK)
	awaitLink(e, byApp.id, "APPROVED")

	open(number, `{"id":"otl_0","link":"https://wa.me/1?text=x"}`).ExpectFields("id")
	open(number, `{"id":"otl_0"}`).ExpectFields("id")
	open(number, `{"id":7}`).ExpectFields("id")
	open(number, `{"id":""}`).ExpectFields("id")
	expiring := linkFor(e, number)
	e.Post("/api/sandbox/clock", `{"advance":300}`)
	awaitLink(e, expiring.id, "EXPIRED")
	e.Eventually("its prompt is gone",
		func() bool { return open(number, `{"id":"`+expiring.id+`"}`).Status == http.StatusUnprocessableEntity })
}

// TestContractLinkOfLongWords holds that a code is found beside words that are longer than it.
func TestContractLinkOfLongWords(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	for n, more := range []string{
		`"name":"` + strings.Repeat("abcdefgh", 7) + `"`,
		`"message":{"prompt":"https://toko.example/` + strings.Repeat("Km7p", 120) + ` ##code##","success":"s","failed":"f","expired":"e"}`,
		`"message":{"prompt":"masuk` + strings.Repeat("Km7p", 60) + `##code##sekarang","success":"s","failed":"f","expired":"e"}`,
	} {
		number := fmt.Sprintf("62813000010%02d", n)
		l := linkFor(e, number, more)
		e.Phone(number).Types(l.prompt)
		awaitLink(e, l.id, "APPROVED")
		if strings.Contains(string(e.Get("/api/chat/detail?contact_id="+number+"@c.us").Body), l.code) {
			t.Errorf("history holds the code of %q", l.prompt)
		}
	}
}
