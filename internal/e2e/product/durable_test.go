// Package product_test tests a whole gateway across its parts: durability, idempotency, the event log, WhatsApp channels,
// and that the documents are true.
package product_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/parleytest"
)

// TestStopUnderLoad stops the gateway while callers send. Whatever was answered 200 must be there
// afterwards, once and in order; what got no answer may be there or not.
func TestStopUnderLoad(t *testing.T) {
	e := parleytest.Start(t)
	const callers = 8
	answered := make([][]string, callers)
	attempted := make([]int, callers)
	var total atomic.Int64
	enough := make(chan struct{})
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for n := 0; ; n++ {
				attempted[i] = n + 1
				text := fmt.Sprintf("m %d %d", i, n)
				a, err := e.TryCall("POST", "/api/send-message/text", `{"contact_id":"`+workerContact(i)+`@c.us","message":"`+text+`"}`)
				switch {
				case err != nil: // it is gone
					return
				case a.Status == http.StatusServiceUnavailable:
					return
				case a.Status != http.StatusOK:
					t.Errorf("answer %d: %s", a.Status, a.Body)
					return
				}
				answered[i] = append(answered[i], text)
				if total.Add(1) == 200 {
					close(enough)
				}
			}
		})
	}
	<-enough
	e.Stop()
	wg.Wait()
	e.Restart()
	for i := range callers {
		phone := e.Phone(workerContact(i))
		if len(answered[i]) > 0 {
			phone.Expect(answered[i][len(answered[i])-1])
		}
		arrived := phone.Messages()
		if len(arrived) < len(answered[i]) || len(arrived) > attempted[i] {
			t.Fatalf("caller %d: %d were answered, %d tried, %d arrived", i, len(answered[i]), attempted[i], len(arrived))
		}
		for n, text := range answered[i] {
			if arrived[n].Body != text {
				t.Errorf("caller %d: message %d is %q, want %q", i, n, arrived[n].Body, text)
			}
		}
		history := e.Get("/api/chat/detail?limit=100&contact_id=" + workerContact(i) + "@c.us")
		if history.Number("meta.total") != len(arrived) {
			t.Errorf("caller %d: the history has %d, the phone %d", i, history.Number("meta.total"), len(arrived))
		}
	}
	t.Logf("%d messages were answered before the stop", total.Load())
}

// TestPendingSurvivesRestart stops the gateway between handing a message to the network and its
// confirmation: it is sent again under its id, the phone shows it once, and after that it is final.
func TestPendingSurvivesRestart(t *testing.T) {
	e := parleytest.Start(t)
	phone := e.Phone("6281234567890")
	phone.Becomes(`{"online":false}`) // no receipt settles it
	order(e, "late", "")
	pending := e.Post("/api/send-message/text", `{"contact_id":"`+ayu+`","message":"late"}`, parleytest.With("Prefer", "respond-async")).
		Expect(http.StatusOK)
	if pending.Text("data.status") != "PENDING" {
		t.Errorf("respond-async answered %s", pending.Body)
	}
	phone.Expect("late")
	e.Restart()
	awaitStatus(e, ayu, pending.Text("data.message_id"), "SENT")
	got := phone.Messages()
	if len(got) != 1 || got[0].MessageID != pending.Text("data.message_id") || got[0].Copies > 2 {
		t.Errorf("the phone got %+v", got)
	}
	e.Restart()
	e.Post("/api/send-message/text", `{"contact_id":"`+ayu+`","message":"next"}`).Expect(http.StatusOK)
	if again := phone.Messages(); len(again) != 2 || again[0].Copies != got[0].Copies {
		t.Errorf("after another restart the phone has %+v", again)
	}
}

// TestStoppedChannelKeepsItsQueue stops a channel with a message in its queue, which waits for it.
func TestStoppedChannelKeepsItsQueue(t *testing.T) {
	e := parleytest.Start(t)
	order(e, "drop_socket", "")
	first := e.Post("/api/send-message/text", `{"contact_id":"`+ayu+`","message":"first"}`, parleytest.With("Prefer", "respond-async")).
		Expect(http.StatusOK)
	second := e.Post("/api/send-message/text", `{"contact_id":"`+ayu+`","message":"second"}`, parleytest.With("Prefer", "respond-async")).
		Expect(http.StatusOK)
	e.Phone("6281234567890").Expect("first")
	e.Post("/api/manage/channels/demo/stop", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	e.Post("/api/send-message/text", `{"contact_id":"`+ayu+`","message":"third"}`).ExpectError(http.StatusBadRequest,
		"parley channel start demo")
	e.Restart()
	e.Post("/api/manage/channels/demo/start", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	awaitStatus(e, ayu, first.Text("data.message_id"), "DELIVERED")
	awaitStatus(e, ayu, second.Text("data.message_id"), "DELIVERED")
	if got := bodies(e.Phone("6281234567890").Messages()); got != "first second" {
		t.Errorf("the phone got %s", got)
	}
}

// TestFaults shows what callers see of each fault that the network can have.
func TestFaults(t *testing.T) {
	e := parleytest.Start(t)
	phone := e.Phone("6281234567890")
	send := func(text string, options ...parleytest.Option) *parleytest.Response {
		t.Helper()
		return e.Post("/api/send-message/text", `{"contact_id":"`+ayu+`","message":"`+text+`"}`, options...).Expect(http.StatusOK)
	}

	t.Run("refuse", func(t *testing.T) {
		order(e, "refuse", "The account is full.")
		a := send("refused")
		if a.Bool("success") || a.Text("data.status") != "FAILED" || a.Text("data.error.message") != "The account is full." ||
			a.Text("data.error.code") == "" {
			t.Errorf("answered %s", a.Body)
		}
		awaitStatus(e, ayu, a.Text("data.message_id"), "FAILED")
		if again := send("not refused"); again.Text("data.status") != "SENT" {
			t.Errorf("the next one: %s", again.Body)
		}
	})
	t.Run("refuse in a pool", func(t *testing.T) {
		e.Post("/api/sandbox/faults", `{"fault":"refuse","type":"location"}`).Expect(http.StatusOK) // not what the pool sends
		order(e, "refuse", "No.")
		pool := e.Post("/api/send-message/pool", `{"contact_id":"`+ayu+`","pools":[{"type":"text","data":["p1","p2"]}]}`,
			parleytest.As(e.Global)).Expect(http.StatusOK)
		if pool.Bool("success") || pool.Text("message") != "Failed to send pool message" || !strings.Contains(pool.Text("pools"), `"not_sent"`) {
			t.Errorf("answered %s", pool.Body)
		}
	})
	t.Run("late", func(t *testing.T) {
		order(e, "late", "")
		hasty := send("late", parleytest.With("Prefer", "wait=0"))
		if hasty.Text("data.status") != "PENDING" || hasty.Header.Get("Preference-Applied") != "wait=0" {
			t.Errorf("answered %v %s", hasty.Header, hasty.Body)
		}
		// A receipt overtakes the confirmation: it is delivered before it counts as sent.
		awaitStatus(e, ayu, hasty.Text("data.message_id"), "DELIVERED")
		if patient := send("after the late one"); patient.Text("data.status") != "SENT" {
			t.Errorf("answered %s", patient.Body)
		}
	})
	t.Run("twice", func(t *testing.T) {
		order(e, "twice", "")
		a := send("twice")
		if a.Text("data.status") != "SENT" {
			t.Errorf("answered %s", a.Body)
		}
		if got := having(phone.Messages(), "twice"); len(got) != 1 || got[0].Copies != 2 {
			t.Errorf("the phone got %+v", got)
		}
	})
	t.Run("drop_socket", func(t *testing.T) {
		order(e, "drop_socket", "")
		first := send("dropped", parleytest.With("Prefer", "respond-async"))
		phone.Expect("dropped")
		waiting := send("sent while reconnecting", parleytest.With("Prefer", "respond-async"))
		if waiting.Text("data.status") != "PENDING" {
			t.Errorf("answered %s", waiting.Body)
		}
		// What cannot wait is refused as long as the connection is down.
		typing := e.Post("/api/send-message/typing", `{"contact_id":"`+ayu+`"}`)
		down := e.Get("/api/channel/health").Text("data.status") == "RECONNECTING"
		if down && (typing.Status != http.StatusServiceUnavailable || typing.Header.Get("Retry-After") == "") {
			t.Errorf("typing without a connection: %d %s", typing.Status, typing.Body)
		}
		awaitStatus(e, ayu, first.Text("data.message_id"), "DELIVERED")
		awaitStatus(e, ayu, waiting.Text("data.message_id"), "DELIVERED")
		got := phone.Messages()
		if one := having(got, "dropped"); len(one) != 1 || one[0].Copies > 2 || len(having(got, "sent while reconnecting")) != 1 {
			t.Errorf("the phone got %+v", got)
		}
	})
	t.Run("reachout_limit", func(t *testing.T) {
		order(e, "reachout_limit", "")
		a := send("restricted")
		if a.Bool("success") || a.Text("data.status") != "FAILED" || !strings.Contains(a.Text("data.error.message"), "463") {
			t.Errorf("answered %s", a.Body)
		}
		health := e.Get("/api/channel/health").Expect(http.StatusOK)
		if health.Text("data.status") != "WORKING" || !strings.Contains(string(health.Body), "restricted") {
			t.Errorf("the channel's health: %s", health.Body)
		}
		if next := send("unrestricted"); next.Text("data.status") != "SENT" {
			t.Errorf("the next one: %s", next.Body)
		}
	})
	t.Run("log_out", func(t *testing.T) {
		order(e, "log_out", "")
		waiting := send("for after the login", parleytest.With("Prefer", "wait=1"))
		if waiting.Text("data.status") != "PENDING" {
			t.Errorf("answered %s", waiting.Body)
		}
		e.Eventually("the channel is logged out", func() bool { return e.Get("/api/channel/health").Text("data.status") == "LOGGED_OUT" })
		e.Post("/api/send-message/text", `{"contact_id":"`+ayu+`","message":"refused"}`).ExpectError(http.StatusBadRequest, "LOGGED_OUT")
		pool := e.Post("/api/send-message/pool", `{"contact_id":"`+ayu+`","pools":[{"type":"text","data":["refused"]}]}`,
			parleytest.As(e.Global)).Expect(http.StatusOK)
		if pool.Bool("success") {
			t.Errorf("a pool without a channel: %s", pool.Body)
		}
		e.Restart()
		if status := e.Get("/api/channel/health").Text("data.status"); status != "LOGGED_OUT" {
			t.Errorf("after a restart the channel is %s", status)
		}
		e.Post("/api/manage/channels/demo/pair", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
		awaitStatus(e, ayu, waiting.Text("data.message_id"), "DELIVERED")
		if got := having(phone.Messages(), "for after the login"); len(got) != 1 {
			t.Errorf("the phone got %+v", got)
		}
	})
}

// TestMessagesExpire moves the clock over the end of a message's life.
func TestMessagesExpire(t *testing.T) {
	e := parleytest.Start(t)
	e.Post("/api/manage/channels/demo/logout", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	e.Post("/api/manage/channels/demo/pair", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	order(e, "log_out", "")
	waiting := e.Post("/api/send-message/text", `{"contact_id":"`+ayu+`","message":"too old"}`, parleytest.With("Prefer", "respond-async")).
		Expect(http.StatusOK)
	e.Eventually("the channel is logged out", func() bool { return e.Get("/api/channel/health").Text("data.status") == "LOGGED_OUT" })
	e.Post("/api/sandbox/clock", fmt.Sprintf(`{"advance":%d}`, 25*time.Hour/time.Second)).Expect(http.StatusOK)
	awaitStatus(e, ayu, waiting.Text("data.message_id"), "FAILED")
	history := e.Get("/api/chat/detail?contact_id=" + ayu)
	if history.Text("data.0.error.code") != "expired" {
		t.Errorf("the history says %s", history.Body)
	}
	e.Post("/api/manage/channels/demo/pair", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	e.Post("/api/send-message/text", `{"contact_id":"`+ayu+`","message":"new"}`).Expect(http.StatusOK)
	if got := bodies(e.Phone("6281234567890").Messages()); got != "new" {
		t.Errorf("the phone got %s", got)
	}
}

// order has the network make a fault with the next message.
func order(e *parleytest.Env, fault, reason string) {
	e.T.Helper()
	body := `{"fault":"` + fault + `"}`
	if reason != "" {
		body = `{"fault":"` + fault + `","reason":"` + reason + `"}`
	}
	e.Post("/api/sandbox/faults", body).Expect(http.StatusOK)
}

// awaitStatus waits until a message of a chat has a status or, where that is DELIVERED, went past it.
func awaitStatus(e *parleytest.Env, contact, messageID, status string) {
	e.T.Helper()
	e.Eventually("message "+messageID+" is "+status, func() bool {
		history := e.Get("/api/chat/detail?limit=100&contact_id=" + contact).Expect(http.StatusOK)
		for i := range history.Count("data") {
			at := fmt.Sprintf("data.%d.", i)
			if history.Text(at+"message_id") == messageID {
				has := history.Text(at + "status")
				return has == status || status == "DELIVERED" && has == "READ"
			}
		}
		return false
	})
}

func bodies(list []parleytest.Arrived) string {
	texts := make([]string, len(list))
	for i, m := range list {
		texts[i] = m.Body
	}
	return strings.Join(texts, " ")
}
