package product_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/network/whatsapp/whatsapptest"
	"parley/internal/parleytest"
)

// hearer is a customer's server that keeps what it is called with.
type hearer struct {
	url   string
	calls chan *http.Request
}

func hear(t *testing.T) *hearer {
	t.Helper()
	l := &hearer{calls: make(chan *http.Request, 1000)}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { l.calls <- r }))
	t.Cleanup(server.Close)
	l.url = server.URL
	return l
}

// TestGoLive develops against the sandbox, goes live, and has everything that a program holds work on: code,
// token, webhook, secret. A login link of the live channel is used by a phone that the network names by its
// LID, and the customer's server is called.
func TestGoLive(t *testing.T) {
	e := parleytest.StartOnLoopback(t)
	customer := hear(t)
	const demo = "/api/manage/channels/demo"
	admin := parleytest.As(e.Admin)
	e.Call("PATCH", demo, `{"name":"Toko Ayu","settings":{"ttl":"2h","pace":"0s"}}`, admin).Expect(http.StatusOK)
	secret := e.Get(demo+"/secret", admin).Expect(http.StatusOK).Text("data.secret")
	hook := e.Post("/api/manage/webhooks", `{"url":"`+customer.url+`/hook","channel":"demo","events":["message.received"]}`, admin).
		Expect(http.StatusCreated).Text("data.id")
	e.Post(sendText, `{"contact_id":"6289876543210@c.us","message":"tried out"}`).Expect(http.StatusOK)
	e.Phone(ayuNumber).Types("an answer")
	e.Phone(ayuNumber).Received("an answer")
	sandboxLink := e.Post("/api/otp/link/request", `{"contact_id":"6289876543210@c.us","expires":300}`).Expect(http.StatusOK)

	live := e.Post(demo+"/go-live", `{"allow":["+62 898-7654-3210"]}`, admin).Expect(http.StatusOK)
	if live.Text("data.network") != "whatsapp" || live.Text("data.code") != "demo" || live.Text("data.name") != "Toko Ayu" ||
		live.Text("data.number") != "" {
		t.Errorf("the live channel is %s", live.Body)
	}
	if got := live.Text("data.settings.ttl"); got != "2h" {
		t.Errorf("its messages live for %q", got)
	}
	e.Post(demo+"/go-live", `{"everybody":true}`, admin).ExpectError(http.StatusBadRequest, "already live")
	e.Becomes("demo", parley.ChannelScanQRCode)

	// The sandbox history is apart, and nothing of it is lost.
	if got := e.Get(historyPath + ayuNumber + "@c.us").Expect(http.StatusOK).Number("meta.total"); got != 0 {
		t.Errorf("the live channel has %d records of the sandbox", got)
	}
	apart := e.Get(historyPath+ayuNumber+"@c.us", parleytest.As(e.Global), parleytest.On("demo-sandbox")).Expect(http.StatusOK)
	if apart.Number("meta.total") != 2 || apart.Text("data.0.body") != "an answer" || apart.Text("data.1.body") != "tried out" {
		t.Errorf("the archive has %s", apart.Body)
	}
	e.Post(sendText, `{"contact_id":"6289876543210@c.us","message":"no"}`, parleytest.As(e.Global), parleytest.On("demo-sandbox")).
		ExpectError(http.StatusBadRequest, "Use channel demo")
	e.Post("/api/manage/channels/demo-sandbox/start", ``, admin).ExpectError(http.StatusBadRequest, "sandbox")
	e.Get("/api/otp/link/" + sandboxLink.Text("data.id")).Expect(http.StatusNotFound)
	if got := e.Get(demo+"/secret", admin).Expect(http.StatusOK).Text("data.secret"); got != secret {
		t.Error("the secret is another one")
	}

	owner := e.Net.Phone(shopNumber, whatsapptest.Named("Shop"))
	ayu := e.Net.Phone(ayuNumber, whatsapptest.Shown(whatsapptest.Both))
	budi := e.Net.Phone(budiNumber)
	e.Call("PATCH", demo, `{"settings":{"ttl":"2h","pace":"0s","allow_only":["6289876543210@c.us"]}}`, admin).Expect(http.StatusOK)
	e.Pair("demo", owner)
	sends(e, e.Token, ayuNumber, "the real thing")
	ayu.Expect(t, whatsapptest.Text("the real thing"))
	e.Post(sendText, `{"contact_id":"6289876543211@c.us","message":"no"}`).ExpectError(http.StatusForbidden,
		"parley channel allow demo "+budiNumber)
	if _, err := budi.Send(t.Context(), owner, "for the webhook"); err != nil {
		t.Fatal(err)
	}
	if call := <-customer.calls; call.URL.Path != "/hook" || !strings.HasPrefix(call.Header.Get("Webhook-Id"), "evt_") &&
		call.Header.Get("Webhook-Id") == "" {
		t.Errorf("the webhook %s was called as %s %v", hook, call.URL, call.Header)
	}
	useLiveLink(t, e, customer, owner, ayu)
}

// useLiveLink logs somebody in who writes from a phone that the network names by its LID.
func useLiveLink(t *testing.T, e *parleytest.OnLoopback, customer *hearer, owner, ayu *whatsapptest.Phone) {
	t.Helper()
	made := e.Post("/api/otp/link/request",
		fmt.Sprintf(`{"contact_id":"6289876543210@c.us","expires":300,"callback":{"success":"%s/in","failed":"%s/out"}}`,
			customer.url, customer.url)).Expect(http.StatusOK)
	link, err := url.Parse(made.Text("data.link"))
	if err != nil || link.Scheme != "https" || link.Host != "wa.me" || link.Path != "/"+shopNumber {
		t.Errorf("the link is %s", made.Body)
	}
	if _, err := ayu.Send(t.Context(), owner, link.Query().Get("text")); err != nil {
		t.Fatal(err)
	}
	for call := range customer.calls {
		if call.URL.Path == "/hook" {
			continue // the webhook hears it too
		}
		if call.URL.Path != "/in" || call.URL.Query().Get("contact_id") != ayuNumber+"@c.us" || call.URL.Query().Get("status") != "success" {
			t.Errorf("the callback is %s", call.URL)
		}
		break
	}
	if a := e.Get("/api/otp/link/" + made.Text("data.id")).Expect(http.StatusOK); a.Text("data.status") != "APPROVED" {
		t.Errorf("the link is %s", a.Body)
	}
	ayu.Expect(t, func(m whatsapptest.Message) bool {
		return m.Kind == whatsapptest.KindText && m.Text != "the real thing"
	})
}

// TestGoLiveFailsWhatWaits goes live while messages wait in the sandbox: none of them reaches a real phone.
func TestGoLiveFailsWhatWaits(t *testing.T) {
	e := parleytest.StartOnLoopback(t)
	admin := parleytest.As(e.Admin)
	e.Call("PATCH", "/api/manage/channels/demo", `{"settings":{"pace":"1h"}}`, admin).Expect(http.StatusOK)
	var ids []string
	for i := range 3 {
		a := e.Post(sendText, fmt.Sprintf(`{"contact_id":"6289876543210@c.us","message":"waits %d"}`, i), parleytest.With("Prefer",
			"respond-async"),
			parleytest.With("Idempotency-Key", fmt.Sprint("key", i))).Expect(http.StatusOK)
		ids = append(ids, a.Text("data.message_id"))
	}
	e.Eventually("the first is sent", func() bool {
		return e.Get(historyPath+ayuNumber+"@c.us").Text("data.2.status") != "PENDING"
	})
	e.Post("/api/manage/channels/demo/go-live", `{"everybody":true}`, admin).Expect(http.StatusOK)
	apart := e.Get(historyPath+ayuNumber+"@c.us", parleytest.As(e.Global), parleytest.On("demo-sandbox")).Expect(http.StatusOK)
	for i, want := range []string{"FAILED", "FAILED"} {
		at := fmt.Sprintf("data.%d.", i)
		if apart.Text(at+"status") != want || apart.Text(at+"error.code") != "not_sent" || !strings.Contains(apart.Text(at+"error.message"),
			"went live") {
			t.Errorf("%s is %s", ids[2-i], apart.Body)
		}
	}
	l := openLog(t, e.Env)
	l.expect(parley.MessageStatus, `"status":"FAILED"`, `"channel":"demo"`, "went live")

	owner, ayu := e.Net.Phone(shopNumber), e.Net.Phone(ayuNumber)
	e.Call("PATCH", "/api/manage/channels/demo", `{"settings":{"pace":"0s"}}`, admin).Expect(http.StatusOK)
	e.Pair("demo", owner)
	// The same key is a new request now: the old answer is of another network.
	a := e.Post(sendText, `{"contact_id":"6289876543210@c.us","message":"waits 0"}`, parleytest.With("Idempotency-Key", "key0")).
		Expect(http.StatusOK)
	if a.Text("data.status") != "SENT" || a.Header.Get("Idempotent-Replayed") != "" {
		t.Errorf("the answer is %s, %v", a.Body, a.Header)
	}
	ayu.Expect(t, whatsapptest.Text("waits 0"))
	if got := len(ayu.Inbox()); got != 1 {
		t.Errorf("the real phone shows %d messages", got)
	}
}

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
