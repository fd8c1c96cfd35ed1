package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"parley"
)

// inConsole calls the console's door to the API as a session with a role.
func (e *env) inConsole(role parley.Role, method, path, channel string, body any) reply {
	e.t.Helper()
	door := e.handler.(*API).Console(func(context.Context, *http.Request) (parley.Ticket, error) {
		return parley.Ticket{Hash: []byte("session"), Role: role, Name: "Ayu at the desk"}, nil
	})
	hr := httptest.NewRequest(method, "/console"+path, bytes.NewReader(must(json.Marshal(body))(e.t)))
	hr.Header.Set("Content-Type", "application/json")
	hr.Header.Set("X-Channel", channel)
	w := httptest.NewRecorder()
	door.ServeHTTP(w, hr)
	r := reply{Response: w.Result(), text: w.Body.String()}
	json.Unmarshal(w.Body.Bytes(), &r.json)
	return r
}

// listed are the chats of a response as "channel id name unread last".
func (r reply) listed(t testing.TB) (lines []string) {
	t.Helper()
	r.want(t, 200)
	for _, row := range r.json["data"].([]any) {
		c := row.(m)
		lines = append(lines, fmt.Sprintf("%v %v %v %v %v", c["channel"], c["id"], c["name"], c["unread"], c["last"].(m)["body"]))
	}
	return lines
}

func TestChatsOfTheConsole(t *testing.T) {
	e := newEnv(t)
	e.call("POST", "/api/sandbox/phones", e.main, m{"number": "6281290004711", "name": "Budi Santoso"}).want(t, 200)
	e.call("POST", "/api/sandbox/phones/6281290004711/send", e.main, m{"type": "text", "message": "Halo"}).want(t, 200)
	e.call("POST", "/api/send-message/text", e.second, m{"contact_id": ayu, "message": "Hello"}).want(t, 200)
	for !strings.Contains(e.call("GET", "/api/manage/chats", e.admin, nil).text, "Halo") {
		if t.Context().Err() != nil {
			t.Fatal("the message was not received")
		}
	}
	wants := func(path string, want ...string) {
		t.Helper()
		if got := e.call("GET", path, e.admin, nil).listed(t); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", path, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	budis, ayus := "main 6281290004711@c.us Budi Santoso 1 Halo", "second "+ayu+" Ayu 0 Hello"
	wants("/api/manage/channels/main/chats", budis)
	wants("/api/manage/channels/second/chats", ayus)
	for _, search := range []string{"santoso", "BUDI", "62812900", "%2B62%20812-9000", "6281290004711@c.us"} {
		wants("/api/manage/chats?search="+search, budis)
	}
	wants("/api/manage/channels/second/chats?search=budi")
	wants("/api/manage/chats?search=nobody")
	wants("/api/manage/chats?search=%25")
	e.call("GET", "/api/manage/channels/none/chats", e.admin, nil).want(t, 404)
	if wrong := e.call("GET", "/api/manage/chats?cursor=x&limit=0", e.admin, nil).wrong(); wrong["cursor"] == nil || wrong["limit"] == nil {
		t.Errorf("wrong: %v", wrong)
	}
	page := e.call("GET", "/api/manage/chats?limit=1", e.admin, nil)
	first := page.listed(t)
	meta := page.json["meta"].(m)
	second := e.call("GET", "/api/manage/chats?limit=1&cursor="+meta["next_cursor"].(string), e.admin, nil)
	if both := strings.Join(append(first, second.listed(t)...), "\n"); !strings.Contains(both, budis) || !strings.Contains(both, ayus) {
		t.Errorf("pages: %s", both)
	}
}

func TestConversationOfTheConsole(t *testing.T) {
	e := newEnv(t)
	var ids []string
	billing := e.token(parley.Token{Kind: parley.ChannelToken, Channel: "main", Name: "billing"})
	for i := range 5 {
		sent := e.call("POST", "/api/send-message/text", billing, m{"contact_id": ayu, "message": fmt.Sprint("Message ", i+1)}).want(t, 200)
		ids = append(ids, sent["id"].(string))
	}
	body := m{"contact_id": ayu, "message": "Reply", "reply_to": ids[1]}
	sent := e.inConsole(parley.Support, "POST", "/api/send-message/text", "main", body).want(t, 200)
	e.inConsole(parley.Support, "PUT", "/api/send-message/reaction", "main", m{"message_id": sent["message_id"], "reaction": "👍"}).want(t, 200)
	path := "/api/manage/channels/main/chats/" + ayu
	read := func(query string) (positions string, newest m) {
		t.Helper()
		chat := e.call("GET", path+query, e.admin, nil).want(t, 200)
		for _, row := range chat["history"].([]any) {
			positions += fmt.Sprint(row.(m)["position"], " ")
		}
		if chat["messages"] != 6.0 || chat["id"] != ayu {
			t.Errorf("chat: %v", chat)
		}
		return positions, chat["history"].([]any)[0].(m)
	}
	for query, want := range map[string]string{
		"": "6 5 4 3 2 1 ", "?limit=2": "6 5 ", "?limit=2&before=3": "2 1 ", "?limit=3&message=" + ids[1]: "3 2 1 ",
		"?limit=2&message=true_" + ayu + "_" + ids[3]: "5 4 ",
	} {
		if got, _ := read(query); got != want {
			t.Errorf("%s: positions %s, want %s", query, got, want)
		}
	}
	_, last := read("")
	by, _ := last["sent_by"].(m)
	if by["name"] != "Ayu at the desk" || by["role"] != "support" || last["quoted"].(m)["body"] != "Message 2" || last["own_reaction"] != "👍" {
		t.Errorf("reply: %v", last)
	}
	_, old := read("?limit=1&before=3")
	if by, _ = old["sent_by"].(m); by["kind"] != "token" || by["name"] != "billing" || by["id"] == "" || by["role"] != nil {
		t.Errorf("a program's message: %v", old)
	}
	detail := e.call("GET", "/api/manage/messages/"+ids[1]+"?channel=main", e.admin, nil).want(t, 200)
	if !reflect.DeepEqual(detail["sent_by"], old["sent_by"]) {
		t.Errorf("its details: %v", detail["sent_by"])
	}
	e.call("GET", "/api/manage/channels/main/chats/"+ayu+"?message=none", e.admin, nil).want(t, 404)
	e.call("GET", "/api/manage/channels/main/chats/6281290004711", e.admin, nil).want(t, 404)
	e.call("GET", "/api/manage/channels/main/chats/%3Cscript%3E", e.admin, nil).want(t, 404)
	digits := strings.TrimSuffix(ayu, "@c.us")
	if chat := e.call("GET", "/api/manage/channels/main/chats/"+digits, e.admin, nil).want(t, 200); chat["id"] != ayu {
		t.Errorf("by number: %v", chat["id"])
	}
}

func TestContactOfTheConsole(t *testing.T) {
	e := newEnv(t)
	for _, token := range []string{e.main, e.second} {
		e.call("POST", "/api/send-message/text", token, m{"contact_id": ayu, "message": "Hello"}).want(t, 200)
	}
	e.call("POST", "/api/otp/code/request", e.main, m{"contact_id": ayu, "name": "Shop"}).want(t, 200)
	contact := e.call("GET", "/api/manage/contacts/6281234567890", e.admin, nil)
	data := contact.want(t, 200)
	if len(data["chats"].([]any)) != 2 || len(data["otps"].([]any)) != 1 || data["number"] != "6281234567890" {
		t.Errorf("contact: %s", contact.text)
	}
	e.call("GET", "/api/manage/contacts/6281290004711", e.admin, nil).want(t, 404)
}

// TestAuditOfTheConsole: what a person sends from the console is in the audit log, what a program sends is not.
func TestAuditOfTheConsole(t *testing.T) {
	e := newEnv(t)
	e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "From a program"}).want(t, 200)
	body := m{"contact_id": ayu, "message": "From a person"}
	sent := e.inConsole(parley.Support, "POST", "/api/send-message/text", "main", body).want(t, 200)
	id := sent["id"].(string)
	e.inConsole(parley.Viewer, "POST", "/api/send-message/text", "main", m{"contact_id": ayu, "message": "No"}).want(t, 403)
	e.inConsole(parley.Support, "POST", "/api/send-message/text", "main", m{"contact_id": "x", "message": "No"}).want(t, 422)
	e.inConsole(parley.Support, "PUT", "/api/send-message/react", "main", m{"message_id": id, "reaction": "👍"}).want(t, 200)
	e.inConsole(parley.Support, "DELETE", "/api/send-message/delete", "main", m{"message_id": id}).want(t, 200)
	e.inConsole(parley.Operator, "POST", "/api/sandbox/clock", "main", m{"advance": 60}).want(t, 200)
	e.inConsole(parley.Operator, "DELETE", "/api/sandbox", "second", nil).want(t, 200)
	e.inConsole(parley.Support, "POST", "/api/chat/archive", "main", m{"contact_id": ayu}).want(t, 200)
	lines, rows := e.auditLog("")
	want := []string{"message.send " + id, "access.refused", "message.react " + id, "message.delete " + id, "sandbox.clock main",
		"sandbox.reset second", "chat.archive"}
	for i := range want {
		if len(lines) != len(want) || !strings.HasPrefix(lines[i], want[i]) {
			t.Fatalf("log: %v\nwant %v", lines, want)
		}
	}
	entry := rows[len(rows)-1].(m)
	if entry["actor_kind"] != "session" || entry["actor_name"] != "Ayu at the desk" || entry["after"].(m)["channel"] != "main" {
		t.Errorf("entry: %v", entry)
	}
	if text := string(must(json.Marshal(rows))(t)); strings.Contains(text, "From a person") || strings.Contains(text, "628123") {
		t.Errorf("the log has a text or a number: %s", text)
	}
}

// TestNumberPart reads numbers as people write them.
func TestNumberPart(t *testing.T) {
	for text, want := range map[string][2]string{
		"+62 812-3003-9595": {"6281230039595", ""}, "0062 812 3003": {"628123003", ""}, "0812-3003-9595": {"", "81230039595"},
		"(0812) 3003.9595": {"", "81230039595"}, "39595": {"39595", "39595"}, "6281230039595@c.us": {"6281230039595", "6281230039595"},
		"628": {"628", ""}, "62": {}, "": {}, "Ayu": {}, "order 12345": {}, "0": {}, "0000": {}, "+": {}, "12345678901234567890": {}, "+0812": {},
		"120363000039595@g.us": {},
	} {
		if start, end := numberPart(text); start != want[0] || end != want[1] {
			t.Errorf("%q begins with %q and ends with %q, not %q", text, start, end, want)
		}
	}
}
