package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/network/sandbox"
	"parley/internal/store"
)

func TestOperations(t *testing.T) {
	e := newEnv(t)
	own := e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "hello"}).want(t, 200)
	inbound := e.call("POST", "/api/sandbox/phones/6281234567890/send", e.main, m{"type": "text", "message": "hi"}).want(t, 200)
	e.waitMessage(inbound["message_id"].(string))
	for range 2 { // doing it twice is no error
		for _, c := range []struct {
			method, path string
			body         m
			status, kind string
		}{
			{"PUT", "reaction", m{"message_id": inbound["message_id"], "reaction": "👍"}, "SENT", ""},
			{"PUT", "reaction", m{"message_id": own["id"], "reaction": ""}, "SENT", ""},
			{"POST", "seen", m{"message_id": inbound["id"]}, "READ", "seen"},
			{"PUT", "star", m{"message_id": own["message_id"], "starred": true}, "STARRED", "star"},
			{"DELETE", "delete?message_id=" + own["message_id"].(string), nil, "DELETED", "delete"},
			{"DELETE", "delete", m{"message_id": own["message_id"]}, "DELETED", "delete"},
			{"DELETE", "delete?unrelated=1", m{"message_id": own["message_id"]}, "DELETED", "delete"},
		} {
			var body any
			if c.body != nil {
				body = c.body
			}
			r := e.call(c.method, "/api/send-message/"+c.path, e.main, body)
			data := r.want(t, 200)
			kind, _ := data["type"].(string)
			if data["status"] != c.status || kind != c.kind || data["timestamp"] == "" {
				t.Errorf("%s: %s", c.path, r.text)
			}
		}
	}
	history := e.call("GET", "/api/chat/details?contact_id="+ayu, e.main, nil)
	rows := history.json["data"].([]any)
	if first, second := rows[0].(m), rows[1].(m); first["status"] != "READ" || fmt.Sprint(first["reactions"]) != "[👍]" ||
		first["from_me"] != "false" ||
		second["status"] != "DELETED" || second["body"] != "" || second["is_media"] != false {
		t.Errorf("history: %s", history.text)
	}
}

func TestOperationsThatAreRefused(t *testing.T) {
	e := newEnv(t)
	own := e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "hello"}).want(t, 200)
	inbound := e.call("POST", "/api/sandbox/phones/6281234567890/send", e.main, m{"type": "text", "message": "hi"}).want(t, 200)
	e.waitMessage(inbound["message_id"].(string))
	for _, c := range []struct {
		what, method, path, token string
		body                      any
		fields                    string
	}{
		{"seen of an own message", "POST", "seen", e.main, m{"message_id": own["message_id"]}, "message_id"},
		{"seen of nothing", "POST", "seen", e.main, m{}, "message_id"},
		{"seen of an unknown message", "POST", "seen", e.main, m{"message_id": "false_" + ayu + "_3EB0"}, "message_id"},
		{"seen of another channel's message", "POST", "seen", e.second, m{"message_id": inbound["message_id"]}, "message_id"},
		{"seen of nonsense", "POST", "seen", e.main, m{"message_id": "a_b_c"}, "message_id"},
		{"seen of a number", "POST", "seen", e.main, m{"message_id": 1}, "message_id"},
		{"delete of another's message", "DELETE", "delete?message_id=" + inbound["id"].(string), e.main, nil, "message_id"},
		{"delete of nothing", "DELETE", "delete", e.main, nil, "message_id"},
		{"delete of nothing in the body", "DELETE", "delete", e.main, m{}, "message_id"},
		{"two emojis", "PUT", "reaction", e.main, m{"message_id": own["id"], "reaction": "👍👍"}, "reaction"},
		{"a letter", "PUT", "reaction", e.main, m{"message_id": own["id"], "reaction": "x"}, "reaction"},
		{"no reaction and no message", "PUT", "reaction", e.main, m{}, "message_id reaction"},
		{"null reaction", "PUT", "reaction", e.main, m{"message_id": own["id"], "reaction": nil}, "reaction"},
		{"star without a word", "PUT", "star", e.main, m{"message_id": own["id"]}, "starred"},
		{"star with a string", "PUT", "star", e.main, m{"message_id": own["id"], "starred": "true"}, "starred"},
		{"typing to a group", "POST", "typing", e.main, m{"contact_id": "120363020000000001@g.us"}, "contact_id"},
	} {
		r := e.call(c.method, "/api/send-message/"+c.path, c.token, c.body)
		if r.StatusCode != 422 || len(r.wrong()) != len(strings.Fields(c.fields)) {
			t.Errorf("%s: %d %s", c.what, r.StatusCode, r.text)
		}
		for _, field := range strings.Fields(c.fields) {
			if r.wrong()[field] == nil {
				t.Errorf("%s: not on %s: %s", c.what, field, r.text)
			}
		}
	}
}

// TestTyping looks at the phone itself: it shows the typing for up to 10 s, until the channel stops it
// or until the next message.
func TestTyping(t *testing.T) {
	e := newEnv(t)
	shows := func(path string, body m) time.Duration {
		t.Helper()
		r := e.call("POST", "/api/send-message/"+path, e.main, body)
		if r.want(t, 200); strings.Contains(path, "typing") && (r.text != "OK" || r.Header.Get("Content-Type") != "text/plain; charset=utf-8") {
			t.Errorf("%s: %q as %s", path, r.text, r.Header.Get("Content-Type"))
		}
		phone := must(e.config.Sandbox.Phone(t.Context(), "main", "6281234567890"))(t)
		return max(0, time.Until(phone.TypingUntil))
	}
	to := m{"contact_id": "6281234567890@s.us", "message": "Hello"}
	for range 2 {
		if left := shows("typing", to); left < 5*time.Second || left > 10*time.Second {
			t.Errorf("typing is shown for %s", left)
		}
	}
	for range 2 {
		if left := shows("stop-typing", to); left != 0 {
			t.Errorf("typing is shown for %s after it stopped", left)
		}
	}
	shows("typing", to)
	if left := shows("text", to); left != 0 {
		t.Errorf("typing is shown for %s after the message", left)
	}
}

// TestPhonesSeeOperations looks at the network's own record: what was done to a message reached the
// phone, as did what a message says beside its text.
func TestPhonesSeeOperations(t *testing.T) {
	e := newEnv(t)
	last := func() sandbox.Message {
		t.Helper()
		return must(e.config.Sandbox.Chat(t.Context(), "main", "6281234567890", "", "", 1))(t).Messages[0]
	}
	e.call("POST", "/api/send-message/location", e.main, m{"contact_id": ayu, "latitude": "-6.2", "longitude": "106.80",
		"title": "Here"}).want(t, 200)
	if got, want := last().Content, (parley.Location{Title: "Here", Latitude: "-6.2", Longitude: "106.80"}); got != want {
		t.Errorf("the phone got %+v, want %+v", got, want)
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "<title>Kopi</title>") }))
	defer page.Close()
	own := e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "See " + page.URL}).want(t, 200)
	if text := last().Content.(parley.Text); text.Preview == nil || text.Preview.Title != "Kopi" || text.Preview.URL != page.URL {
		t.Errorf("the phone got %+v", text)
	}
	for _, emoji := range []string{"👍", "❤️", ""} {
		e.call("PUT", "/api/send-message/reaction", e.main, m{"message_id": own["id"], "reaction": emoji}).want(t, 200)
		if got := last().Reaction; got != emoji {
			t.Errorf("the phone shows the reaction %q, want %q", got, emoji)
		}
	}
	inbound := e.call("POST", "/api/sandbox/phones/6281234567890/send", e.main, m{"type": "text", "message": "hi"}).want(t, 200)
	e.waitMessage(inbound["message_id"].(string))
	e.call("POST", "/api/send-message/seen", e.main, m{"message_id": inbound["message_id"]}).want(t, 200)
	if got := last(); got.Status != parley.Read {
		t.Errorf("the phone shows its message as %s", got.Status)
	}
}

// TestAmbiguousBareID: a bare id that names several messages of a channel names none. Others choose the
// ids of what they send, so it can happen.
func TestAmbiguousBareID(t *testing.T) {
	e := newEnv(t)
	now := time.Now()
	err := e.config.Store.Tx(t.Context(), func(tx *store.Tx) error {
		for _, chat := range []parley.ContactID{"6281100000001@c.us", "6281100000002@c.us"} {
			if err := tx.AddMessage(t.Context(), &parley.Message{Channel: "main", Chat: chat, ID: "ABCDEF012345", Content: parley.Text{Body: "Hi"},
				Status: parley.Received, CreatedAt: now, UpdatedAt: now}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := e.call("POST", "/api/send-message/seen", e.main, m{"message_id": "ABCDEF012345"}); r.StatusCode != 422 ||
		!strings.Contains(r.text, "Send the full id") {
		t.Errorf("the bare id: %d %s", r.StatusCode, r.text)
	}
	e.call("POST", "/api/send-message/seen", e.main, m{"message_id": "false_6281100000002@c.us_ABCDEF012345"}).want(t, 200)
	for chat, status := range map[string]string{"6281100000001@c.us": "RECEIVED", "6281100000002@c.us": "READ"} {
		if r := e.call("GET", "/api/chat/detail?contact_id="+chat, e.main, nil); !strings.Contains(r.text, status) {
			t.Errorf("%s: %s, want %s", chat, r.text, status)
		}
	}
	e.call("POST", "/api/send-message/text", e.main, m{"contact_id": "6281100000001@c.us", "message": "x",
		"reply_to": "ABCDEF012345"}).want(t, 200)
}

func TestStoppedChannel(t *testing.T) {
	e := newEnv(t)
	e.call("POST", "/api/manage/channels/main/stop", e.admin, nil).want(t, 200)
	for _, path := range []string{"/api/send-message/text", "/api/send-message/typing"} {
		r := e.call("POST", path, e.main, m{"contact_id": ayu, "message": "x"})
		if r.StatusCode != 400 || !strings.Contains(r.text, "STOPPED") || !strings.Contains(r.text, "parley channel start main") {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.text)
		}
	}
	e.call("GET", "/api/chat/detail?contact_id="+ayu, e.main, nil).want(t, 200)
	if health := e.call("GET", "/api/channel/health", e.main, nil).want(t, 200); health["status"] != "STOPPED" || health["up_time"] != "0s" {
		t.Errorf("health: %v", health)
	}
}

func TestPages(t *testing.T) {
	e := newEnv(t)
	for i := range 5 {
		e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": fmt.Sprint(i)}).want(t, 200)
	}
	for query, want := range map[string]string{
		"": `{"current_page":1,"per_page":50,"total":5,"total_pages":1,"has_next_page":false,` +
			`"has_prev_page":false}`,
		"&limit=2": `{"current_page":1,"per_page":2,"total":5,"total_pages":3,"has_next_page":true,` +
			`"has_prev_page":false}`,
		"&limit=2&offset=2": `{"current_page":2,"per_page":2,"total":5,"total_pages":3,"has_next_page":true,` +
			`"has_prev_page":true}`,
		"&limit=2&offset=3": `{"current_page":2,"per_page":2,"total":5,"total_pages":3,"has_next_page":false,` +
			`"has_prev_page":true}`,
		"&limit=2&offset=4": `{"current_page":3,"per_page":2,"total":5,"total_pages":3,"has_next_page":false,` +
			`"has_prev_page":true}`,
		"&limit=100&offset=99999999999999999999": `{"current_page":92233720368547759,"per_page":100,"total":5,"total_pages":1,` +
			`"has_next_page":false,"has_prev_page":true}`,
	} {
		r := e.call("GET", "/api/chat/detail?contact_id="+ayu+query, e.main, nil)
		if r.want(t, 200); !strings.Contains(r.text, `"meta":`+want) {
			t.Errorf("%s: %s, want %s", query, r.text[strings.Index(r.text, `"meta"`):], want)
		}
	}
	for _, query := range []string{"limit=0", "limit=101", "limit=x", "limit=1.5", "offset=-1", "limit=", "limit=1&limit=2"} {
		for _, path := range []string{"/api/chat/detail?contact_id=" + ayu + "&", "/api/chat?", "/api/groups?", "/api/contact?"} {
			if r := e.call("GET", path+query, e.main, nil); r.StatusCode != 422 {
				t.Errorf("%s%s: %d %s", path, query, r.StatusCode, r.text)
			}
		}
	}
	empty := e.call("GET", "/api/chat/detail?contact_id=6281111111111@c.us", e.main, nil)
	if empty.want(t, 200); !strings.Contains(empty.text, `"data":[]`) || !strings.Contains(empty.text, `"total":0,"total_pages":1`) {
		t.Errorf("empty: %s", empty.text)
	}
}

func TestArchive(t *testing.T) {
	e := newEnv(t)
	if r := e.call("POST", "/api/chat/archive", e.main, m{"contact_id": ayu}); r.StatusCode != 422 || r.wrong()["contact_id"] == nil {
		t.Errorf("unknown chat: %d %s", r.StatusCode, r.text)
	}
	e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "x"}).want(t, 200)
	for range 2 {
		r := e.call("POST", "/api/chat/archive", e.main, m{"contact_id": ayu})
		r.want(t, 200)
		if rows := r.json["data"].([]any); len(rows) != 1 || r.json["meta"].(m)["per_page"] != 50.0 {
			t.Errorf("archive: %s", r.text)
		}
	}
	archived := func() any {
		return e.call("GET", "/api/chat", e.main, nil).json["data"].([]any)[0].(m)["archived"]
	}
	if archived() != true {
		t.Error("not archived")
	}
	if data := e.call("POST", "/api/chat/un-archive", e.main, m{"contact_id": ayu}).want(t, 200); data["type"] != "un-archive" ||
		archived() != false {
		t.Errorf("un-archive: %v", data)
	}
}

func TestContactsAreStrings(t *testing.T) {
	e := newEnv(t)
	for _, path := range []string{"/api/contact?limit=1", "/api/contact/info?contact_id=" + ayu} {
		plain := e.call("GET", path, e.main, nil)
		plain.want(t, 200)
		wild := e.call("GET", path, e.main, nil, "Accept", "*/*")
		asJSON := e.call("GET", path, e.main, nil, "Accept", "text/html, application/json;q=0.9")
		if plain.Header.Get("Content-Type") != "text/plain; charset=utf-8" || wild.Header.Get("Content-Type") != "text/plain; charset=utf-8" ||
			asJSON.Header.Get("Content-Type") != "application/json" || !sameButSeen(plain.text, asJSON.text) || !json.Valid([]byte(plain.text)) {
			t.Errorf("%s: %s %s, %s %s", path, plain.Header.Get("Content-Type"), plain.text, asJSON.Header.Get("Content-Type"), asJSON.text)
		}
	}
	info := e.call("GET", "/api/contact/info?contact_id=99900000000@c.us", e.main, nil).want(t, 200)
	if info["on_network"] != false || info["picture_url"] != nil {
		t.Errorf("info: %v", info)
	}
	for _, path := range []string{"/api/contact/info", "/api/contact/picture", "/api/chat/detail"} {
		if r := e.call("GET", path, e.main, nil); r.StatusCode != 422 || r.wrong()["contact_id"] == nil {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.text)
		}
	}
}

// sameButSeen compares answers of two moments, between which somebody was seen.
func sameButSeen(a, b string) bool {
	seen := regexp.MustCompile(`"last_seen_at":"[^"]*"`)
	return seen.ReplaceAllString(a, "") == seen.ReplaceAllString(b, "")
}

func TestCheckPhoneNumber(t *testing.T) {
	e := newEnv(t)
	for _, spelling := range []string{"6281234567890", "+62 812-3456-7890", "0062 (812) 3456 7890", "6281234567890@c.us"} {
		data := e.call("GET", "/api/channel/check-phone-number?phone="+url.QueryEscape(spelling), e.main, nil).want(t, 200)
		if data["is_exists"] != true || data["contact_id"] != ayu {
			t.Errorf("%s: %v", spelling, data)
		}
	}
	if data := e.call("GET", "/api/channel/check-phone-number?phone=99900000000", e.main, nil).want(t, 200); data["is_exists"] != false ||
		data["contact_id"] != nil {
		t.Errorf("not on the network: %v", data)
	}
	for _, query := range []string{"", "?phone=", "?phone=hello", "?phone=12"} {
		if r := e.call("GET", "/api/channel/check-phone-number"+query, e.main, nil); r.StatusCode != 422 || r.wrong()["phone"] == nil {
			t.Errorf("%s: %d %s", query, r.StatusCode, r.text)
		}
	}
}

func TestGroups(t *testing.T) {
	e := newEnv(t)
	made := e.call("POST", "/api/groups/create", e.main, m{"name": "Aaa", "participants": []m{{"id": ayu}}}).want(t, 200)
	list := e.call("GET", "/api/groups", e.main, nil)
	if first := list.json["data"].([]any)[0].(m); first["id"] != made["id"] || first["name"] != "Aaa" || first["is_owner"] != true {
		t.Errorf("groups: %s", list.text)
	}
	members := e.call("GET", "/api/groups/participants?group_id="+made["id"].(string), e.main, nil)
	if members.want(t, 200); !strings.Contains(members.text, ayu) {
		t.Errorf("members: %s", members.text)
	}
	for query, field := range map[string]string{"": "group_id", "?group_id=1@g.us": "group_id", "?group_id=" + ayu: "group_id"} {
		if r := e.call("GET", "/api/groups/participants"+query, e.main, nil); r.StatusCode != 422 || r.wrong()[field] == nil {
			t.Errorf("%s: %d %s", query, r.StatusCode, r.text)
		}
	}
	r := e.call("POST", "/api/groups/create", e.main, m{"name": "", "participants": []any{m{}, 1, m{"id": "x"}}})
	for _, field := range []string{"name", "participants.0.id", "participants.1", "participants.2.id"} {
		if r.wrong()[field] == nil {
			t.Errorf("not on %s: %s", field, r.text)
		}
	}
}

func TestGlobalTokenWithOneChannel(t *testing.T) {
	e := newEnv(t)
	e.call("DELETE", "/api/manage/channels/second", e.admin, nil).want(t, 202)
	if health := e.call("GET", "/api/channel/health", e.global, nil).want(t, 200); health["code"] != "main" {
		t.Errorf("health: %v", health)
	}
	if r := e.call("GET", "/api/channel/health", e.second, nil); r.StatusCode != 401 && r.StatusCode != 400 {
		t.Errorf("a token of a channel that is gone: %d %s", r.StatusCode, r.text)
	}
	e.call("DELETE", "/api/manage/channels/main", e.admin, nil).want(t, 202)
	if r := e.call("GET", "/api/channel/health", e.global, nil); r.StatusCode != 400 {
		t.Errorf("no channel: %d %s", r.StatusCode, r.text)
	}
}

// TestDeleteIgnoresOtherBodies: a body that names no message is ignored if the query names one.
func TestDeleteIgnoresOtherBodies(t *testing.T) {
	e := newEnv(t)
	sent := e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "Hello"}).want(t, 200)
	path := "/api/send-message/delete?message_id=" + sent["message_id"].(string)
	for _, body := range []string{`{}`, `[]`, `null`, `x`, `{"message_id":null}`, `{"id":"3EB0"}`} {
		e.call("DELETE", path, e.main, body).want(t, 200)
		e.call("DELETE", path, e.main, body, "Content-Type", "text/plain").want(t, 200)
	}
	if r := e.call("DELETE", path, e.main, `{"message_id":"3EB0"}`); r.StatusCode != 422 || r.wrong()["message_id"] == nil {
		t.Errorf("another message in the body: %d %s", r.StatusCode, r.text)
	}
}

func TestChatsByCursor(t *testing.T) {
	e := newEnv(t)
	const all = 7
	for i := range all {
		e.call("POST", "/api/send-message/text", e.main, m{"contact_id": fmt.Sprintf("62812900047%02d@c.us", i), "message": "Hi"}).want(t, 200)
	}
	seen := map[any]bool{}
	path := "/api/chat?limit=3"
	for n := 1; path != ""; n++ {
		page := e.call("GET", path, e.main, nil)
		for _, row := range page.json["data"].([]any) {
			seen[row.(m)["contact_id"]] = true
		}
		meta := page.json["meta"].(m)
		next, more := meta["next_cursor"].(string)
		_, numbered := meta["current_page"]
		if meta["total"] != float64(all) || meta["has_next_page"] != more || meta["has_prev_page"] != (n > 1) || numbered != (n == 1) {
			t.Errorf("page %d: %s", n, page.text)
		}
		if path = ""; more {
			path = "/api/chat?limit=3&cursor=" + next
		}
	}
	if len(seen) != all {
		t.Errorf("%d of %d chats are on the pages", len(seen), all)
	}
	if wrong := e.call("GET", "/api/chat?cursor=c1.1&offset=1", e.main, nil).wrong(); wrong["offset"] == nil {
		t.Errorf("a cursor and an offset: %v", wrong)
	}
}

func TestForward(t *testing.T) {
	e := newEnv(t)
	inbound := e.call("POST", "/api/sandbox/phones/6281234567890/send", e.main, m{"type": "text", "message": "hi @62"}).want(t, 200)
	e.waitMessage(inbound["message_id"].(string))
	budi := "6281234567891@c.us"
	r := e.call("POST", "/api/send-message/forward", e.main, m{"message_id": inbound["message_id"], "contact_id": budi})
	if data := r.want(t, 200); data["status"] != "SENT" || data["message"] != "hi @62" || data["message_id"] == inbound["message_id"] {
		t.Errorf("the response is %s", r.text)
	}
	page := must(e.config.Sandbox.Messages(t.Context(), "main", "6281234567891", sandbox.Query{}))(t)
	if got := page.Messages[0]; got.Body != "hi @62" || !parley.IsForwarded(got.Content) {
		t.Errorf("the phone shows %+v", got)
	}
	row := e.call("GET", "/api/chat/detail?contact_id="+budi, e.main, nil).json["data"].([]any)[0].(m)
	if row["forwarded"] != true || row["from_me"] != "true" {
		t.Errorf("history has %v", row)
	}
	e.call("DELETE", "/api/send-message/delete?message_id="+row["message_id"].(string), e.main, nil).want(t, 200)
	for what, body := range map[string]m{
		"nothing":         {"contact_id": ayu},
		"a deleted one":   {"message_id": row["message_id"], "contact_id": ayu},
		"another channel": {"message_id": "3EB0ABCDEF", "contact_id": ayu},
	} {
		if r := e.call("POST", "/api/send-message/forward", e.main, body); r.StatusCode != 422 || r.wrong()["message_id"] == nil {
			t.Errorf("%s: %s", what, r.text)
		}
	}
}

func TestForwardOfAFile(t *testing.T) {
	e := newEnv(t)
	inbound := e.sentByPhone("file", "a.txt", []byte("some bytes"))
	r := e.call("POST", "/api/send-message/forward", e.main, m{"message_id": inbound["message_id"], "contact_id": ayu})
	sent := e.record(r.want(t, 200)["id"], func(row m) bool { return row["forwarded"] == true })
	path := strings.TrimPrefix(sent["media"].(m)["url"].(string), e.server.URL)
	if file := e.call("GET", path, e.main, nil); file.text != "some bytes" || sent["media"].(m)["filename"] != "a.txt" {
		t.Errorf("the file is %q of %v", file.text, sent)
	}
}

func TestReadChat(t *testing.T) {
	e := newEnv(t)
	var ids []string
	for _, text := range []string{"one", "two"} {
		sent := e.call("POST", "/api/sandbox/phones/6281234567890/send", e.main, m{"type": "text", "message": text}).want(t, 200)
		ids = append(ids, sent["message_id"].(string))
		e.waitMessage(ids[len(ids)-1])
	}
	for read, status := range map[bool]string{true: "READ", false: "UNREAD"} {
		r := e.call("PUT", "/api/chat/read", e.main, m{"contact_id": ayu, "read": read})
		if data := r.want(t, 200); data["status"] != status || data["type"] != "read" {
			t.Errorf("read %t: %s", read, r.text)
		}
	}
	for _, id := range ids {
		if got := e.call("GET", "/api/messages/"+id, e.main, nil).want(t, 200); got["status"] != "READ" {
			t.Errorf("%s is %v", id, got["status"])
		}
	}
	if r := e.call("PUT", "/api/chat/read", e.main, m{"contact_id": ayu}); r.StatusCode != 422 || r.wrong()["read"] == nil {
		t.Errorf("without read: %s", r.text)
	}
}

func TestDisappearing(t *testing.T) {
	e := newEnv(t)
	set := func(to m, seconds any) reply {
		to["seconds"] = seconds
		return e.call("PUT", "/api/chat/disappearing", e.main, to)
	}
	if r := set(m{"contact_id": ayu}, 86400); r.StatusCode != 422 || r.wrong()["contact_id"] == nil {
		t.Errorf("a stranger: %s", r.text)
	}
	e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "hi"}).want(t, 200)
	for seconds, status := range map[int]string{604800: "ON", 0: "OFF"} {
		data := set(m{"contact_id": ayu}, seconds).want(t, 200)
		info := e.call("GET", "/api/contact/info?contact_id="+ayu, e.main, nil, "Accept", "application/json").want(t, 200)
		if data["status"] != status || data["type"] != "disappearing" || info["disappearing_seconds"] != float64(seconds) {
			t.Errorf("%d: %v, %v", seconds, data, info)
		}
	}
	for _, wrong := range []any{nil, 1, -1, "x", 86401} {
		if r := set(m{"contact_id": ayu}, wrong); r.StatusCode != 422 || r.wrong()["seconds"] == nil {
			t.Errorf("%v: %s", wrong, r.text)
		}
	}
	if r := set(m{}, 0); r.StatusCode != 422 || r.wrong()["contact_id"] == nil {
		t.Errorf("without a chat: %s", r.text)
	}
}

func TestBlock(t *testing.T) {
	e := newEnv(t)
	for _, blocked := range []bool{true, false} {
		data := e.call("PUT", "/api/contact/block", e.main, m{"contact_id": ayu, "blocked": blocked}).want(t, 200)
		info := e.call("GET", "/api/contact/info?contact_id="+ayu, e.main, nil, "Accept", "application/json").want(t, 200)
		if data["blocked"] != blocked || info["is_blocked"] != blocked {
			t.Errorf("blocked %t: %v, %v", blocked, data, info)
		}
	}
	if r := e.call("PUT", "/api/contact/block", e.main, m{"contact_id": ayu}); r.StatusCode != 422 || r.wrong()["blocked"] == nil {
		t.Errorf("without blocked: %s", r.text)
	}
}
