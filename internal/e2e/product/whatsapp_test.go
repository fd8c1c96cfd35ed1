package product_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/network/whatsapp/whatsapptest"
	"parley/internal/parleytest"
)

const (
	shopNumber  = "6281234567890"
	otherShop   = "6281234567891"
	ayuNumber   = "6289876543210"
	budiNumber  = "6289876543211"
	sendText    = "/api/send-message/text"
	historyPath = "/api/chat/detail?contact_id="
)

// sends sends a text to a number and returns its bare id. It must be confirmed while the request waits.
func sends(e *parleytest.OnLoopback, token, number, text string) (id string) {
	e.T.Helper()
	a := e.Post(sendText, fmt.Sprintf(`{"contact_id":"%s@c.us","message":%q}`, number, text), parleytest.As(token)).Expect(http.StatusOK)
	if a.Text("data.status") != "SENT" {
		e.T.Fatalf("%s answered %s", text, a.Body)
	}
	return a.Text("data.id")
}

// awaitRecord waits until the newest record of a chat with this text has a status.
func awaitRecord(e *parleytest.OnLoopback, token, number, text, status string) {
	e.T.Helper()
	e.Eventually(text+" is "+status, func() bool {
		a := e.Get(historyPath+number+"@c.us", parleytest.As(token)).Expect(http.StatusOK)
		for i := range a.Count("data") {
			if at := fmt.Sprintf("data.%d.", i); a.Text(at+"body") == text {
				return a.Text(at+"status") == status
			}
		}
		return false
	})
}

// TestWhatsAppChannel walks a channel through its life on the real protocol: it is paired by QR code, sends,
// is read, receives, and goes on after a restart without a person.
func TestWhatsAppChannel(t *testing.T) {
	e := parleytest.StartOnLoopback(t)
	owner := e.Net.Phone(shopNumber, whatsapptest.Named("Shop"))
	ayu := e.Net.Phone(ayuNumber, whatsapptest.Named("Ayu"))
	token := e.WhatsAppChannel("shop")
	e.Post(sendText, `{"contact_id":"6289876543210@c.us","message":"early"}`, parleytest.As(token)).
		ExpectError(http.StatusBadRequest, "parley channel pair shop")
	events := e.Events()
	e.Pair("shop", owner)

	id := sends(e, token, ayuNumber, "Hello Ayu")
	if got := ayu.Expect(t, whatsapptest.Text("Hello Ayu")); got.ID != id {
		t.Errorf("it came under the id %s, not %s", got.ID, id)
	}
	awaitRecord(e, token, ayuNumber, "Hello Ayu", "DELIVERED")
	if err := ayu.Read(id); err != nil {
		t.Fatal(err)
	}
	awaitRecord(e, token, ayuNumber, "Hello Ayu", "READ")
	if _, err := ayu.Send(t.Context(), owner, "Hello shop"); err != nil {
		t.Fatal(err)
	}
	awaitRecord(e, token, ayuNumber, "Hello shop", "RECEIVED")
	said := events.Expect(func(event parleytest.Event) bool { return event.Type == "message.received" })
	if said.Channel != "shop" || said.Data["body"] != "Hello shop" || said.Data["contact_id"] != ayuNumber+"@c.us" {
		t.Errorf("the event is %+v", said)
	}
	channel := e.Get("/api/manage/channels/shop", parleytest.As(e.Admin)).Expect(http.StatusOK)
	if channel.Text("data.number") != shopNumber {
		t.Errorf("the channel is %s", channel.Body)
	}
	for _, at := range []string{"connected_at", "heard_at", "confirmed_at", "received_at"} {
		if channel.Value("data.evidence."+at) == nil {
			t.Errorf("there is no evidence of %s in %s", at, channel.Body)
		}
	}

	e.Restart()
	e.Becomes("shop", parley.ChannelWorking)
	sends(e, token, ayuNumber, "Hello again")
	ayu.Expect(t, whatsapptest.Text("Hello again"))
	if n := len(e.Net.Unencrypted()) + len(e.Net.Unreadable()); n != 0 {
		t.Errorf("%d messages could not be read by their recipient", n)
	}
	received := 0
	for _, body := range openLog(t, e.Env).bodies() {
		if strings.Contains(string(body), `"type":"message.received"`) {
			received++
		}
	}
	if received != 1 {
		t.Errorf("one message was published %d times", received)
	}
	e.Log.Lacks(t, shopNumber, ayuNumber, "Hello")
}

// TestPairingIsTold follows a pairing by a typed code in every place that tells of it, and finds no code
// where it must not be.
func TestPairingIsTold(t *testing.T) {
	e := parleytest.StartOnLoopback(t)
	owner := e.Net.Phone(shopNumber, whatsapptest.Named("Shop"))
	e.WhatsAppChannel("shop")
	events := e.Events(parley.ChannelPairing)
	const pair, pairing = "/api/manage/channels/shop/pair", "/api/manage/channels/shop/pairing"
	e.Post(pair, `{"number":"+62 812-3456-7890"}`, parleytest.As(e.Admin)).Expect(http.StatusOK)
	shown := events.Expect(func(event parleytest.Event) bool { return event.Data["step"] == "code" })
	typed, _ := shown.Data["code"].(string)
	if len(strings.ReplaceAll(typed, "-", "")) != 8 {
		t.Fatalf("the event is %+v", shown)
	}
	if a := e.Get(pairing, parleytest.As(e.Admin)).Expect(http.StatusOK); a.Text("data.code") != typed || a.Text("data.step") != "code" {
		t.Errorf("the event has the code %s, the API says %s", typed, a.Body)
	}
	if _, err := owner.EnterCode(t.Context(), typed); err != nil {
		t.Fatal(err)
	}
	events.Expect(func(event parleytest.Event) bool { return event.Data["step"] == "paired" })
	e.Becomes("shop", parley.ChannelWorking)

	schema := readSchema(t, parley.ChannelPairing)
	l := openLog(t, e.Env)
	var steps []string
	for _, body := range l.bodies() { // as they are on disk
		if !strings.Contains(string(body), `"type":"channel.pairing"`) {
			continue
		}
		if strings.Contains(string(body), typed) {
			t.Errorf("the log keeps the code: %s", body)
		}
		value := readJSON(t, body)
		if err := schema.Validate(value); err != nil {
			t.Errorf("%v\n%s", err, body)
		}
		steps = append(steps, value.(map[string]any)["data"].(map[string]any)["step"].(string))
	}
	if got := fmt.Sprint(steps); got != "[starting code paired]" {
		t.Errorf("the steps were %s", got)
	}
	e.Log.Lacks(t, typed, shopNumber)
}

// TestWhatsAppIsDownAtTheStart starts the gateway while the network cannot be reached: what is sent waits,
// and leaves when the network is back.
func TestWhatsAppIsDownAtTheStart(t *testing.T) {
	e := parleytest.StartOnLoopback(t)
	owner, ayu := e.Net.Phone(shopNumber), e.Net.Phone(ayuNumber)
	token := e.WhatsAppChannel("shop")
	e.Pair("shop", owner)
	e.Stop()
	e.Net.Down()
	e.Restart()
	if reason := e.Becomes("shop", parley.ChannelStarting); !strings.Contains(reason, "cannot be reached") {
		e.Eventually("it says why", func() bool { return strings.Contains(e.Becomes("shop", parley.ChannelStarting), "cannot be reached") })
	}
	a := e.Post(sendText, `{"contact_id":"6289876543210@c.us","message":"waits"}`, parleytest.As(token), parleytest.With("Prefer",
		"respond-async")).Expect(http.StatusOK)
	if a.Text("data.status") != "PENDING" {
		t.Errorf("it was answered %s", a.Body)
	}
	e.Net.Up()
	e.Becomes("shop", parley.ChannelWorking)
	ayu.Expect(t, whatsapptest.Text("waits"))
	awaitRecord(e, token, ayuNumber, "waits", "DELIVERED")
}

// TestOneAccountsTroubleIsNoOthers removes the device of one channel and bans another: a third one works on,
// and each says what happened to it.
func TestOneAccountsTroubleIsNoOthers(t *testing.T) {
	e := parleytest.StartOnLoopback(t)
	ayu := e.Net.Phone(ayuNumber)
	tokens, links := map[string]string{}, map[string]*whatsapptest.Link{}
	phones := map[string]*whatsapptest.Phone{}
	for i, code := range []string{"removed", "banned", "fine"} {
		phones[code] = e.Net.Phone(fmt.Sprintf("628123456780%d", i))
		tokens[code] = e.WhatsAppChannel(code)
		links[code] = e.Pair(code, phones[code])
	}
	since := e.Get("/api/manage/channels/fine", parleytest.As(e.Admin)).Text("data.since")
	links["removed"].Remove()
	phones["banned"].RefuseLogin(whatsapptest.Refusal{Reason: 402, Code: 101, Expire: 3600})
	links["banned"].End(whatsapptest.Cut)
	if reason := e.Becomes("removed", parley.ChannelLoggedOut); !strings.Contains(reason, "removed this device") {
		t.Errorf("the removed one says %q", reason)
	}
	if reason := e.Becomes("banned", parley.ChannelFailed); !strings.Contains(reason, "banned the account until") {
		t.Errorf("the banned one says %q", reason)
	}
	for code, remedy := range map[string]string{"removed": "parley channel pair removed", "banned": "parley channel show banned"} {
		e.Post(sendText, `{"contact_id":"6289876543210@c.us","message":"no"}`, parleytest.As(tokens[code])).ExpectError(http.StatusBadRequest,
			remedy)
	}
	sends(e, tokens["fine"], ayuNumber, "still here")
	ayu.Expect(t, whatsapptest.Text("still here"))
	if now := e.Get("/api/manage/channels/fine", parleytest.As(e.Admin)).Text("data.since"); now != since {
		t.Errorf("the other channel was touched: it is so since %s, before since %s", now, since)
	}
	e.Pair("removed", phones["removed"]) // a person can bring it back
	sends(e, tokens["removed"], ayuNumber, "back again")
}

// TestStrangersAreRefused writes to somebody whom the network does not let the account write to: that message
// fails with the reason, and the chats that exist go on.
func TestStrangersAreRefused(t *testing.T) {
	e := parleytest.StartOnLoopback(t)
	owner, ayu := e.Net.Phone(shopNumber), e.Net.Phone(ayuNumber)
	e.Net.Phone(budiNumber, whatsapptest.RefusesStrangers(463))
	token := e.WhatsAppChannel("shop")
	e.Pair("shop", owner)
	absent := e.Post(sendText, `{"contact_id":"6289999999999@c.us","message":"nobody"}`, parleytest.As(token)).Expect(http.StatusOK)
	if absent.Text("data.error.code") != "not_on_network" {
		t.Errorf("it was answered %s", absent.Body)
	}
	sends(e, token, ayuNumber, "before") // first messages wait from now on
	ayu.Expect(t, whatsapptest.Text("before"))
	a := e.Post(sendText, `{"contact_id":"6289876543211@c.us","message":"hello stranger"}`, parleytest.As(token)).Expect(http.StatusOK)
	if a.Bool("success") || a.Text("data.status") != "FAILED" || a.Text("data.error.code") != "restricted" {
		t.Errorf("it was answered %s", a.Body)
	}
	sends(e, token, ayuNumber, "somebody else")
	ayu.Expect(t, whatsapptest.Text("somebody else"))
	e.Becomes("shop", parley.ChannelWorking)
}

// TestHistoryFloodsNobody pairs a channel with an account that has a past: the past can be read, and nobody
// received it.
func TestHistoryFloodsNobody(t *testing.T) {
	e := parleytest.StartOnLoopback(t)
	ayu := e.Net.Phone(ayuNumber)
	const many = 60
	past := whatsapptest.Conversation{With: ayu}
	for i := range many {
		past.Messages = append(past.Messages, whatsapptest.Past{ID: fmt.Sprintf("3A%06X", i), Text: fmt.Sprintf("long ago %d", i),
			At: time.Now().Add(-time.Hour + time.Duration(i)*time.Second)})
	}
	owner := e.Net.Phone(shopNumber, whatsapptest.WithHistory(past))
	token := e.WhatsAppChannel("shop")
	events := e.Events()
	e.Pair("shop", owner)
	e.Eventually("the past is there", func() bool {
		return e.Get(historyPath+ayuNumber+"@c.us", parleytest.As(token)).Expect(http.StatusOK).Number("meta.total") == many
	})
	if _, err := ayu.Send(t.Context(), owner, "now"); err != nil {
		t.Fatal(err)
	}
	events.Expect(func(event parleytest.Event) bool {
		return event.Type == "message.received" && event.Data["body"] == "now"
	})
	for _, event := range events.All() {
		if body, _ := event.Data["body"].(string); strings.HasPrefix(body, "long ago") {
			t.Fatalf("the past was published: %+v", event)
		}
	}
}

// TestRetryAfterRestart has phones whose keys were lost ask for messages again that an earlier process sent:
// of a channel that keeps texts, and of one that keeps none.
func TestRetryAfterRestart(t *testing.T) {
	for _, settings := range []string{`{"pace":"0s"}`, `{"pace":"0s","retention":"0s"}`} {
		t.Run(settings, func(t *testing.T) {
			e := parleytest.StartOnLoopback(t)
			owner, ayu := e.Net.Phone(shopNumber), e.Net.Phone(ayuNumber)
			token := e.WhatsAppChannel("shop")
			e.Call("PATCH", "/api/manage/channels/shop", `{"settings":`+settings+`}`, parleytest.As(e.Admin)).Expect(http.StatusOK)
			e.Pair("shop", owner)
			sends(e, token, ayuNumber, "first")
			ayu.Expect(t, whatsapptest.Text("first"))
			ayu.SwitchOff()
			id := sends(e, token, ayuNumber, "cannot be read yet")
			e.Restart()
			e.Becomes("shop", parley.ChannelWorking)
			ayu.Reinstall()
			ayu.SwitchOn()
			if got := ayu.Expect(t, whatsapptest.Text("cannot be read yet")); got.ID != id || got.Retries == 0 {
				t.Errorf("it came as %s, not %s, after %d retries", got.ID, id, got.Retries)
			}
		})
	}
}
