package product_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"parley/internal/network/whatsapp/whatsapptest"
	"parley/internal/parleytest"
)

// The number of a Brazilian mobile phone as people write it, with its ninth digit, and as the network spells it.
const written, spelled = "5511987654321", "551187654321"

// brazil is a paired channel and a contact whose number the network spells in another way than people do.
func brazil(t *testing.T) (e *parleytest.OnLoopback, token string, owner, ana *whatsapptest.Phone) {
	t.Helper()
	e = parleytest.StartOnLoopback(t)
	owner, ana = e.Net.Phone(shopNumber, whatsapptest.Named("Shop")), e.Net.Phone(spelled, whatsapptest.Named("Ana"))
	ana.AlsoFoundAs(written)
	token = e.WhatsAppChannel("shop")
	e.Pair("shop", owner)
	return e, token, owner, ana
}

// TestTwoSpellingsAreOneChat sends under both spellings of a number, is read and gets a reply: there is one chat, which is
// found under both, and every response has the spelling of its request.
func TestTwoSpellingsAreOneChat(t *testing.T) {
	e, token, owner, ana := brazil(t)
	as := parleytest.As(token)
	events := e.Events("message.status")
	first := e.Post(sendText, `{"contact_id":"`+written+`@c.us","message":"one"}`, as).Expect(http.StatusOK)
	if first.Text("data.status") != "SENT" || !strings.HasPrefix(first.Text("data.message_id"), "true_"+written+"@c.us_") {
		t.Fatalf("the response is %s", first.Body)
	}
	sent := events.Expect(func(event parleytest.Event) bool { return event.Data["status"] == "SENT" })
	if sent.Data["contact_id"] != spelled+"@c.us" {
		t.Errorf("the event is %+v", sent)
	}
	if err := ana.Read(ana.Expect(t, whatsapptest.Text("one")).ID); err != nil {
		t.Fatal(err)
	}
	awaitRecord(e, token, written, "one", "READ")
	second := e.Post(sendText, `{"contact_id":"`+written+`@c.us","message":"two"}`, as).Expect(http.StatusOK)
	if !strings.HasPrefix(second.Text("data.message_id"), "true_"+written+"@c.us_") {
		t.Errorf("the second response is %s", second.Body)
	}
	third := e.Post(sendText, `{"contact_id":"`+spelled+`@c.us","message":"three"}`, as).Expect(http.StatusOK)
	if !strings.HasPrefix(third.Text("data.message_id"), "true_"+spelled+"@c.us_") {
		t.Errorf("the third response is %s", third.Body)
	}
	if _, err := ana.Send(t.Context(), owner, "four"); err != nil {
		t.Fatal(err)
	}
	awaitRecord(e, token, written, "four", "RECEIVED")
	chats := e.Get("/api/chat", as).Expect(http.StatusOK)
	if chats.Number("meta.total") != 1 || chats.Text("data.0.contact_id") != spelled+"@c.us" || chats.Number("data.0.messages") != 4 {
		t.Errorf("the chats are %s", chats.Body)
	}
	for _, number := range []string{written, spelled} {
		page := e.Get(historyPath+number+"@c.us", as).Expect(http.StatusOK)
		var bodies []string
		for i := range page.Count("data") {
			bodies = append(bodies, page.Text(fmt.Sprintf("data.%d.body", i)))
		}
		if got := strings.Join(bodies, " "); got != "four three two one" {
			t.Errorf("the history of %s is %s", number, got)
		}
		info := e.Get("/api/contact/info?contact_id="+number+"@c.us", as).Expect(http.StatusOK)
		if info.Text("data.id") != number+"@c.us" || !info.Bool("data.on_network") {
			t.Errorf("the contact is %s", info.Body)
		}
	}
	for _, id := range []string{first.Text("data.message_id"), second.Text("data.message_id")} {
		a := e.Put("/api/send-message/reaction", `{"message_id":"`+id+`","reaction":"👍"}`, as).Expect(http.StatusOK)
		if !a.Bool("success") {
			t.Errorf("a reaction was answered %s", a.Body)
		}
	}
	e.Restart()
	sends(e, token, written, "after the restart")
	ana.Expect(t, whatsapptest.Text("after the restart"))
	if total := e.Get("/api/chat", as).Number("meta.total"); total != 1 {
		t.Errorf("there are %d chats after a restart", total)
	}
}

// TestNumberIsLearnedByLookingItUp checks a number in its other spelling before anything is sent.
func TestNumberIsLearnedByLookingItUp(t *testing.T) {
	e, token, owner, ana := brazil(t)
	as := parleytest.As(token)
	a := e.Get("/api/channel/check-phone-number?phone=%2B55+11+98765-4321", as).Expect(http.StatusOK)
	if !a.Bool("data.is_exists") || a.Text("data.contact_id") != written+"@c.us" {
		t.Errorf("it was answered %s", a.Body)
	}
	if _, err := ana.Send(t.Context(), owner, "hello"); err != nil {
		t.Fatal(err)
	}
	awaitRecord(e, token, written, "hello", "RECEIVED")
	if a := e.Get("/api/channel/check-phone-number?phone=081234567", as).Expect(http.StatusOK); a.Bool("data.is_exists") {
		t.Errorf("a number that cannot exist was answered %s", a.Body)
	}
}

// TestLoginUnderTwoSpellings asks for a login link under one spelling, which nobody has looked up, and sends its prompt from
// the phone, which the network spells in the other way.
func TestLoginUnderTwoSpellings(t *testing.T) {
	e, token, owner, ana := brazil(t)
	as, customer := parleytest.As(token), hear(t)
	events := e.Events("otp.approved")
	made := e.Post("/api/otp/link/request",
		fmt.Sprintf(`{"contact_id":"%s@c.us","expires":300,"callback":{"success":"%s/in","failed":"%s/out"}}`,
			written, customer.url, customer.url), as).Expect(http.StatusOK)
	link, err := url.Parse(made.Text("data.link"))
	if err != nil || made.Text("data.contact_id") != written+"@c.us" {
		t.Fatalf("the link is %s", made.Body)
	}
	if _, err := ana.Send(t.Context(), owner, link.Query().Get("text")); err != nil {
		t.Fatal(err)
	}
	call := <-customer.calls
	if call.URL.Path != "/in" || call.URL.Query().Get("contact_id") != written+"@c.us" {
		t.Errorf("the callback is %s", call.URL)
	}
	if approved := events.Expect(func(parleytest.Event) bool { return true }); approved.Data["contact_id"] != spelled+"@c.us" {
		t.Errorf("the event is %+v", approved)
	}
	state := e.Get("/api/otp/link/"+made.Text("data.id"), as).Expect(http.StatusOK)
	if state.Text("data.status") != "APPROVED" || state.Text("data.contact_id") != written+"@c.us" {
		t.Errorf("the link is %s", state.Body)
	}
	ana.Expect(t, func(m whatsapptest.Message) bool { return strings.HasPrefix(m.Text, "You are logged in") })
	again := e.Post("/api/otp/link/request", `{"contact_id":"`+written+`@c.us","expires":300}`, as).Expect(http.StatusOK)
	e.Post("/api/otp/link/request", `{"contact_id":"`+spelled+`@c.us","expires":300}`, as).Expect(http.StatusOK)
	if a := e.Get("/api/otp/link/"+again.Text("data.id"), as); a.Text("data.status") != "INVALID" {
		t.Errorf("a newer link under the other spelling left the older one %s", a.Body)
	}
}

var sixDigits = regexp.MustCompile(`\d{6}`)

// TestCodeUnderTwoSpellings asks for codes under one spelling and uses them under the other, both ways. The limits count both.
func TestCodeUnderTwoSpellings(t *testing.T) {
	e, token, _, ana := brazil(t)
	as := parleytest.As(token)
	use := func(phone *whatsapptest.Phone, asked, used string) {
		t.Helper()
		made := e.Post("/api/otp/code/request", `{"contact_id":"`+asked+`@c.us"}`, as).Expect(http.StatusOK)
		if made.Text("data.contact_id") != asked+"@c.us" {
			t.Errorf("the response is %s", made.Body)
		}
		code := sixDigits.FindString(phone.Expect(t, func(m whatsapptest.Message) bool { return sixDigits.MatchString(m.Text) }).Text)
		a := e.Post("/api/otp/code/validate", `{"contact_id":"`+used+`@c.us","code":"`+code+`"}`, as).Expect(http.StatusOK)
		if a.Text("data.status") != "APPROVED" {
			t.Errorf("asked for %s, used under %s: %s", asked, used, a.Body)
		}
	}
	use(ana, written, spelled)
	for _, number := range []string{written, spelled} {
		e.Post("/api/otp/code/request", `{"contact_id":"`+number+`@c.us"}`, as).ExpectError(http.StatusTooManyRequests, "20 seconds")
	}
	const mexican, plain = "5215512345678", "525512345678"
	eva := e.Net.Phone(mexican)
	eva.AlsoFoundAs(plain)
	e.Get("/api/channel/check-phone-number?phone="+plain, as).Expect(http.StatusOK)
	use(eva, mexican, plain)
}
