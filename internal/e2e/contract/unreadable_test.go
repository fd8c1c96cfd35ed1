package contract_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

// TestUnreadable has a phone send what the channel cannot read, to it and to a group. Only what a phone sends again comes.
func TestUnreadable(t *testing.T) {
	e := parleytest.Start(t)
	const ayu, contact = phones + "/6281234567890", "6281234567890@c.us"
	group := e.Get("/api/groups").Text("data.0.id")
	list := func() (all []string) {
		events := e.Get("/api/events/recent?limit=100").Expect(http.StatusOK)
		for i := range events.Count("data") {
			data := func(name string) string { return events.Text(fmt.Sprintf("data.%d.data.%s", i, name)) }
			if kind := events.Text(fmt.Sprintf("data.%d.type", i)); kind == "message.unreadable" || kind == "message.received" {
				all = append([]string{strings.TrimSpace(kind + " " + data("id") + " " + data("reason"))}, all...)
				wantValue(t, events, fmt.Sprintf("data.%d.data.contact_id", i), contact)
			}
		}
		return all
	}
	var want []string
	for i, c := range []struct{ reason, more string }{
		{"undecryptable", ""}, {"view_once", ""}, {"view_once", `,"group_id":"` + group + `"`},
	} {
		sent := e.Post(ayu+"/send", `{"type":"text","message":"secret","unreadable":"`+c.reason+`"`+c.more+`}`).Expect(http.StatusOK)
		id := sent.Text("data.id")
		want = append(want, "message.unreadable "+id+" "+c.reason)
		if i == 0 {
			want = append(want, "message.received "+id)
		}
		e.Eventually("it is reported", func() bool { return len(list()) == len(want) })
	}
	if got := list(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the events are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	e.Post(ayu+"/send", `{"type":"text","message":"x","unreadable":"gone"}`).ExpectFields("unreadable")
	e.Post(ayu+"/send", `{"type":"text","message":"x","unreadable":"view_once","from_owner":true}`).ExpectFields("unreadable")
	e.Post(ayu+"/send", `{"type":"delete","message_id":"3A","unreadable":"view_once"}`).ExpectFields("unreadable", "message_id")
}
