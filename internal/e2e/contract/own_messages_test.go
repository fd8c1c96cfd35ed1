package contract_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"parley/internal/parleytest"
)

// TestOwnMessages checks what the token of a channel finds: its own messages and events, and nothing of the operator's.
func TestOwnMessages(t *testing.T) {
	e := parleytest.Start(t)
	const number = "6281500001011"
	e.Post(sendText, textTo("6281500001012")).Expect(http.StatusOK) // of another channel
	token := e.CreateChannel("ownsearch")
	as := parleytest.As(token)
	sent := e.Post(sendText, `{"contact_id":"`+number+`@c.us","message":"Selamat PAGI"}`, as).Expect(http.StatusOK)
	phone := e.PhoneFor(token, number)
	phone.Types("makasih")
	phone.Received("makasih")

	all := e.Get("/api/messages", as).Expect(http.StatusOK)
	wantKeys(t, all, "data.0", foundKeys...)
	wantValue(t, all, "data.1.body", "Selamat PAGI")
	wantValue(t, all, "meta.next_cursor", nil)
	for _, query := range []string{"text=pagi", "direction=out", "contact=" + number + "&type=text&direction=out", "channel=demo&text=pagi"} {
		found := e.Get("/api/messages?"+query, as).Expect(http.StatusOK)
		wantValue(t, found, "data.0.message_id", sent.Value("data.message_id"))
		wantValue(t, found, "data.0.channel", "ownsearch")
	}
	one := e.Get("/api/messages/"+sent.Text("data.message_id"), as).Expect(http.StatusOK)
	wantKeys(t, one, "data", append(slices.Clone(foundKeys), "request_id", "timeline")...)
	wantValue(t, one, "data.timeline.0.status", "PENDING")
	path := "/api/messages/" + sent.Text("data.message_id")
	e.Get(path, parleytest.As(e.Token)).Expect(http.StatusNotFound)
	e.Get(path, parleytest.As(e.Global), parleytest.With("X-Channel", "ownsearch")).Expect(http.StatusOK)
	e.Get("/api/messages?limit=0", as).Expect(http.StatusUnprocessableEntity)

	recentEvents(t, e, token)
}

// recentEvents pages through the events of a channel with its own token, and compares them with the operator's list.
func recentEvents(t *testing.T, e *parleytest.Env, token string) {
	as := parleytest.As(token)
	ids := func(list *parleytest.Response) (ids []string) {
		for i := range list.Count("data") {
			ids = append(ids, list.Text(fmt.Sprintf("data.%d.id", i)))
			wantValue(t, list, fmt.Sprintf("data.%d.channel", i), "ownsearch")
		}
		return ids
	}
	all := e.Get("/api/events/recent", as).Expect(http.StatusOK)
	whole := ids(all)
	if len(whole) < 4 { // connected, sent, delivered, received
		t.Fatalf("there are %d events", len(whole))
	}
	wantValue(t, all, "data.0.type", "message.received")
	wantValue(t, all, "meta.next_cursor", nil)
	var paged []string
	for query := "limit=1"; len(paged) <= len(whole); {
		page := e.Get("/api/events/recent?"+query, as).Expect(http.StatusOK)
		paged = append(paged, ids(page)...)
		if page.Value("meta.next_cursor") == nil {
			break
		}
		query = "limit=1&cursor=" + page.Text("meta.next_cursor")
	}
	if !slices.Equal(paged, whole) {
		t.Errorf("page by page %q, at once %q", paged, whole)
	}
	admin := parleytest.As(e.Admin)
	if got := ids(e.Get("/api/manage/events/recent?channel=ownsearch", admin).Expect(http.StatusOK)); !slices.Equal(got, whole) {
		t.Errorf("an operator gets %q, want %q", got, whole)
	}
	if got := ids(e.Get("/api/events/recent?types=message.received&cursor="+whole[0], as).Expect(http.StatusOK)); len(got) != 0 {
		t.Errorf("there are %q before the only one", got)
	}
	e.Get("/api/events/recent?channel=demo", as).Expect(http.StatusForbidden)
	e.Get("/api/events/recent?cursor=evt_1", as).Expect(http.StatusUnprocessableEntity)
	e.Get("/api/events/recent?types=nonsense", as).Expect(http.StatusUnprocessableEntity)
}
