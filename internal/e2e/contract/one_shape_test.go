package contract_test

import (
	"net/http"
	"reflect"
	"testing"

	"parley/internal/parleytest"
)

// TestOneShapeOfAMessage reads one poll in every way: what it says must be the same.
func TestOneShapeOfAMessage(t *testing.T) {
	e := parleytest.Start(t)
	phone := e.Phone("6281500009001")
	phone.Becomes(`{"name":"Sari"}`)
	sent := e.Post("/api/send-message/poll",
		`{"contact_id":"`+phone.Contact()+`","title":"Lunch?","options":["Soto","Bakso"],"is_multiple_answer":false}`).Expect(http.StatusOK)
	id := sent.Text("data.message_id")
	phone.Expect("Lunch?")
	phone.Sends(`{"type":"vote","message_id":"` + id + `","options":["Bakso"]}`)
	phone.Sends(`{"type":"reaction","message_id":"` + id + `","reaction":"👍"}`)

	admin := parleytest.As(e.Admin)
	views := map[string]func() any{
		"chat/detail": func() any { return e.Get("/api/chat/detail?contact_id=" + phone.Contact()).Expect(200).Value("data.0") },
		"search":      func() any { return e.Get("/api/messages?contact=" + phone.Contact()).Expect(200).Value("data.0") },
		"by id":       func() any { return e.Get("/api/messages/" + id).Expect(200).Value("data") },
		"operator":    func() any { return e.Get("/api/manage/messages/"+id+"?channel=demo", admin).Expect(200).Value("data") },
		"conversation": func() any {
			return e.Get("/api/manage/channels/demo/chats/"+phone.Contact(), admin).Expect(200).Value("data.history.0")
		},
		"event":    func() any { return e.Get("/api/events/recent?types=message.reaction").Expect(200).Value("data.0.data") },
		"delivery": func() any { return e.Get("/api/manage/find?id="+id, admin).Expect(200).Value("data.0.message") },
	}
	want := map[string]any{"contact_id": phone.Contact(), "contact_name": "Sari", "from_me": "true", "outgoing": true, "type": "poll",
		"message_id": id, "body": "Lunch?", "reactions": []any{"👍"}, "is_media": false, "poll": map[string]any{"title": "Lunch?",
			"multiple": false, "options": []any{map[string]any{"name": "Soto", "votes": 0.0}, map[string]any{"name": "Bakso", "votes": 1.0}}}}
	for name, read := range views {
		var got map[string]any
		e.Eventually(name+" shows all of it", func() bool {
			got, _ = read().(map[string]any)
			for field, value := range want {
				if !reflect.DeepEqual(got[field], value) {
					return false
				}
			}
			return true
		})
	}
	event := e.Get("/api/events/recent?types=poll.vote").Expect(http.StatusOK)
	wantValue(t, event, "data.0.data.vote.contact_name", "Sari")
}
