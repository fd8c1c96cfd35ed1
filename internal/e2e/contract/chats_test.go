package contract_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

// TestReadingChats holds the list of chats and their archive to the contract.
func TestReadingChats(t *testing.T) {
	e := parleytest.Start(t)
	const long = "6281100000001@c.us"
	fillChat(e, long, 120)
	t.Run("list", func(t *testing.T) { readChats(t, within(t, e)) })
	t.Run("archive", func(t *testing.T) { readArchive(t, within(t, e), long) })
	t.Run("bad archiving", func(t *testing.T) { readBadArchiving(t, within(t, e)) })
}

// readChats checks the list of chats on a channel of its own.
func readChats(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("chats"))
	a := e.Get("/api/chat", as).Expect(http.StatusOK)
	if a.Count("data") != 0 {
		t.Errorf("chats of a new channel: %s", a.Body)
	}
	wantPage(t, a, page{1, 50, 0, 1, false, false})

	for i := range 3 {
		for range i + 1 {
			e.Post("/api/send-message/text", fmt.Sprintf(`{"contact_id":"628110000002%d@c.us","message":"Hello"}`, i), as).Expect(http.StatusOK)
		}
	}
	a = e.Get("/api/chat", as).Expect(http.StatusOK)
	if got := column(a, "contact_id"); !slices.Equal(got, []string{"6281100000022@c.us", "6281100000021@c.us", "6281100000020@c.us"}) {
		t.Errorf("not newest first: %q", got)
	}
	wantPage(t, a, page{1, 50, 3, 1, false, false})
	for i, messages := range []float64{3, 2, 1} {
		row := fmt.Sprintf("data.%d", i)
		wantKeys(t, a, row, "contact_id", "name", "messages", "archived", "timestamp", "last")
		wantValue(t, a, row+".messages", messages)
		wantValue(t, a, row+".archived", false)
		wantRecent(t, a, row+".timestamp")
	}

	phone := parleytest.As(e.CreateToken("channel", "chats"))
	e.Post("/api/sandbox/phones/6281100000020/send", `{"type":"text","message":"I am back"}`, phone).Expect(http.StatusOK)
	e.Eventually("what comes in moves its chat to the top", func() bool {
		a = e.Get("/api/chat", as).Expect(http.StatusOK)
		return a.Text("data.0.contact_id") == "6281100000020@c.us" && a.Number("data.0.messages") == 2
	})

	for _, c := range []struct {
		query string
		rows  []string
		meta  page
	}{
		{"?limit=1", []string{"6281100000020@c.us"}, page{1, 1, 3, 3, true, false}},
		{"?limit=2", []string{"6281100000020@c.us", "6281100000022@c.us"}, page{1, 2, 3, 2, true, false}},
		{"?limit=2&offset=1", []string{"6281100000022@c.us", "6281100000021@c.us"}, page{1, 2, 3, 2, false, true}},
		{"?limit=1&offset=2", []string{"6281100000021@c.us"}, page{3, 1, 3, 3, false, true}},
		{"?limit=100&offset=0", []string{"6281100000020@c.us", "6281100000022@c.us", "6281100000021@c.us"}, page{1, 100, 3, 1, false, false}},
		{"?offset=3", []string{}, page{1, 50, 3, 1, false, true}},
		{"?offset=5000", []string{}, page{101, 50, 3, 1, false, true}},
	} {
		a := e.Get("/api/chat"+c.query, as).Expect(http.StatusOK)
		if got := column(a, "contact_id"); !slices.Equal(got, c.rows) {
			t.Errorf("%s: %q, want %q", c.query, got, c.rows)
		}
		wantPage(t, a, c.meta)
	}
}

func readArchive(t *testing.T, e *parleytest.Env, contact string) {
	archived := func(want bool) {
		t.Helper()
		a := e.Get("/api/chat?limit=100").Expect(http.StatusOK)
		wantValue(t, a, rowWhere(a, "contact_id", contact)+".archived", want)
	}
	other := strings.TrimSuffix(contact, "@c.us") + "@s.us"
	newest := e.Get("/api/chat/detail?contact_id=" + contact).Expect(http.StatusOK)
	archived(false)
	for _, id := range []string{contact, other} { // the second time is no error
		a := e.Post("/api/chat/archive", `{"contact_id":"`+id+`"}`).Expect(http.StatusOK)
		wantKeys(t, a, "", "success", "message", "data", "meta")
		wantValue(t, a, "success", true)
		wantKeys(t, a, "data.0", recordKeys...)
		wantPage(t, a, page{1, 50, 120, 3, true, false})
		if was, is := column(newest, "message_id"), column(a, "message_id"); !slices.Equal(was, is) {
			t.Errorf("it answers %q, want the newest 50: %q", is, was)
		}
		archived(true)
	}
	for _, id := range []string{contact, other} {
		a := e.Post("/api/chat/un-archive", `{"contact_id":"`+id+`"}`).Expect(http.StatusOK)
		wantKeys(t, a, "", "success", "message", "data")
		wantKeys(t, a, "data", "status", "type", "timestamp")
		wantValue(t, a, "success", true)
		wantValue(t, a, "data.status", "UNARCHIVED")
		wantValue(t, a, "data.type", "un-archive")
		wantRecent(t, a, "data.timestamp")
		archived(false)
	}
}

func readBadArchiving(t *testing.T, e *parleytest.Env) {
	for _, path := range []string{"/api/chat/archive", "/api/chat/un-archive"} {
		e.Post(path, `{}`).ExpectFields("contact_id")
		for _, value := range []string{`null`, `1`, `true`, `[]`, `{}`, `["6281234567890@c.us"]`} {
			e.Post(path, `{"contact_id":`+value+`}`).ExpectFields("contact_id")
		}
		for _, id := range []string{"", "6281234567890", "1234@c.us", strings.Repeat("1", 46) + "@c.us", "6281234567890@x.us",
			"6281234567890@c.us\n"} {
			e.Post(path, `{"contact_id":`+quoted(id)+`}`).ExpectFields("contact_id")
		}
		e.Post(path, `{"contact_id":"120363020000000001@g.us"}`).ExpectFields("contact_id").ExpectError(422, "group")
		e.Post(path, `{"contact_id":"6281100000098@c.us"}`).ExpectFields("contact_id").ExpectError(422, "chat") // none was exchanged with it
		e.Post(path, "").Expect(http.StatusBadRequest)
		e.Call("PUT", path, `{"contact_id":"6281234567890@c.us"}`).Expect(http.StatusMethodNotAllowed)
	}
	// Somebody who was only looked up, or whose phone is there, is no chat either.
	e.Get("/api/contact/info?contact_id=6281100000098@c.us").Expect(http.StatusOK)
	e.Post("/api/sandbox/phones", `{"number":"6281100000098"}`).Expect(http.StatusOK)
	e.Post("/api/chat/archive", `{"contact_id":"6281100000098@c.us"}`).ExpectFields("contact_id")
}
