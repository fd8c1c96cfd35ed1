package cloud

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	io_prometheus "github.com/prometheus/client_model/go"

	"parley"
	"parley/internal/network"
	"parley/internal/network/cloud/cloudtest"
)

func count(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	var m io_prometheus.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

func TestChallenge(t *testing.T) {
	w := newWorld(t)
	query := func(mode, token, challenge string) url.Values {
		return url.Values{"hub.mode": {mode}, "hub.verify_token": {token}, "hub.challenge": {challenge}}
	}
	if text, err := w.driver.Challenge(t.Context(), w.channel, query("subscribe", "verify", "1158")); err != nil || text != "1158" {
		t.Errorf("got %q, %v", text, err)
	}
	for _, q := range []url.Values{query("subscribe", "other", "1"), query("subscribe", "", "1"), query("unsubscribe", "verify", "1"),
		query("subscribe", "verify", "<script>"), query("subscribe", "verify", strings.Repeat("1", 257)), {}} {
		if text, err := w.driver.Challenge(t.Context(), w.channel, q); parley.ToCode(err) != parley.Forbidden || text != "" {
			t.Errorf("%v gets %q, %v", q, text, err)
		}
	}
	empty := w.channel
	empty.ID = 999 // it has no credentials
	if _, err := w.driver.Challenge(t.Context(), empty, query("subscribe", "", "1")); parley.ToCode(err) != parley.Forbidden {
		t.Errorf("a channel without credentials: %v", err)
	}
}

// TestSignature has only who knows the app secret report anything.
func TestSignature(t *testing.T) {
	w := newWorld(t)
	body := cloudtest.Encode(w.number.Body("messages", map[string]any{"messages": []any{map[string]any{
		"from": friendNumber, "id": "wamid.1", "timestamp": "1", "type": "text", "text": map[string]string{"body": "é 👋 <&>"}}}}))
	verify := func(signature string, body []byte) error {
		calls, err := w.driver.Verify(t.Context(), w.channel, http.Header{signatureHeader: {signature}}, body)
		if (err == nil) != (len(calls) == 1) {
			t.Errorf("%d calls, %v", len(calls), err)
		}
		return err
	}
	good := "sha256=" + cloudtest.Sign(w.meta.AppSecret, body)
	w.must(verify(good, body))
	for name, err := range map[string]error{
		"no signature":     verify("", body),
		"another secret":   verify("sha256="+cloudtest.Sign("another", body), body),
		"another body":     verify(good, append(body, ' ')),
		"an empty secret":  verify("sha256="+cloudtest.Sign("", body), body),
		"half a signature": verify(good[:40], body),
	} {
		if parley.ToCode(err) != parley.Unauthenticated {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := count(t, w.driver.metrics.badSignatures); n != 5 {
		t.Errorf("%v bad signatures are counted", n)
	}
	w.setAccount(func(a *account) { a.AppSecret = "rotated" })
	w.must(verify(good, body)) // for a day
	w.must(verify("sha256="+cloudtest.Sign("rotated", body), body))
	w.setAccount(func(a *account) {}) // the first one was replaced twice
	if err := verify(good, body); parley.ToCode(err) != parley.Unauthenticated {
		t.Errorf("an old secret: %v", err)
	}
}

// TestOtherNumbers has the app's own address get reports about several numbers. Those of another app are not among them.
func TestOtherNumbers(t *testing.T) {
	w := newWorld(t)
	_, other := w.addChannel("other", "6281100000002")
	foreign, foreignNumber := w.addChannel("foreign", "6281100000003")
	old := w.channel
	w.channel = foreign
	w.setAccount(func(a *account) { a.AppSecret = "of another app" })
	w.channel = old
	entry := func(n *cloudtest.Number) any { return n.Body("messages", map[string]any{})["entry"].([]any)[0] }
	body := cloudtest.Encode(map[string]any{"entry": []any{entry(w.number), entry(other), entry(foreignNumber), entry(w.number)}})
	header := http.Header{signatureHeader: {"sha256=" + cloudtest.Sign(w.meta.AppSecret, body)}}
	calls, err := w.driver.Verify(t.Context(), w.channel, header, body)
	if err != nil || len(calls) != 2 || calls[0].Channel != code || calls[1].Channel != "other" ||
		strings.Count(string(calls[0].Body), "phone_number_id") != 2 {
		t.Errorf("got %+v, %v", calls, err)
	}
}

// TestHiddenNumber has somebody hide the number, show it, and hide it again.
func TestHiddenNumber(t *testing.T) {
	w := newWorld(t)
	s, in := w.open()
	phone := w.number.Phone(friendNumber)
	phone.Hide("ID.1349xyz", true)
	phone.Text("who am I?")
	hidden := await(w, in, func(m network.Message) bool { return m.Content.Text() == "who am I?" }).From
	if number := hidden.Number(); len(number) != 20 || number[0] != '0' || hidden.CanExist() {
		t.Errorf("the contact is %s", hidden)
	}
	reply := w.text("somebody")
	reply.Chat = hidden
	w.must(s.Send(t.Context(), []*parley.Message{reply})[0])
	await(w, in, func(r network.Receipt) bool {
		return r.IDs[0] == reply.ID && r.From == hidden && r.Status == parley.Delivered
	})
	stranger := w.text("nobody")
	stranger.Chat = hiddenContact("ID.other")
	if err := s.Send(t.Context(), []*parley.Message{stranger})[0]; err != network.ErrImpossibleNumber {
		t.Errorf("to an unknown id: %v", err)
	}
	phone.Hide("ID.1349xyz", false)
	phone.Text("it is me")
	if m := await(w, in, func(m network.Message) bool { return m.Content.Text() == "it is me" }); m.From != friend {
		t.Errorf("it is from %s", m.From)
	}
	await(w, in, func(a network.Alias) bool { return a.Asked == hidden && a.Contact == friend })
	phone.Hide("ID.1349xyz", true)
	phone.Text("me again")
	if m := await(w, in, func(m network.Message) bool { return m.Content.Text() == "me again" }); m.From != friend {
		t.Errorf("it is from %s", m.From)
	}
}

// TestAnotherUserID has Meta change the id of somebody who hides the number: a chat goes on, but a number stays with whom it was.
func TestAnotherUserID(t *testing.T) {
	w := newWorld(t)
	s, in := w.open()
	phone := w.number.Phone(friendNumber)
	writes := func(text string, userID string, hidden bool) parley.ContactID {
		t.Helper()
		phone.Hide(userID, hidden)
		phone.Text(text)
		return await(w, in, func(m network.Message) bool { return m.Content.Text() == text }).From
	}
	changes := func(previous, current, number string) {
		update := map[string]any{"user_id": map[string]string{"previous": previous, "current": current}, "timestamp": "1"}
		if number != "" {
			update["wa_id"] = number
		}
		w.number.Report("user_id_update", map[string]any{"user_id_update": []any{update}})
	}
	first := writes("one", "ID.1", true)
	changes("ID.1", "ID.2", "")
	if from := writes("two", "ID.2", true); from != first {
		t.Errorf("the chat went on as %s, not %s", from, first)
	}
	reply := w.text("")
	reply.Chat, reply.Content = first, parley.Text{Body: "Share your number, please", AskNumber: true}
	w.must(s.Send(t.Context(), []*parley.Message{reply})[0])
	if shown := phone.Shows(); len(shown) != 1 || shown[0].Interactive == nil || shown[0].Interactive.Body.Text != reply.Content.Text() {
		t.Errorf("the phone shows %+v", shown)
	}
	if from := writes("three", "ID.2", false); from != friend {
		t.Errorf("with the number it is from %s", from)
	}
	await(w, in, func(a network.Alias) bool { return a.Asked == first && a.Contact == friend })
	changes("ID.2", "ID.3", "")
	if from := writes("four", "ID.3", true); from != hiddenContact("ID.3") {
		t.Errorf("after another number it is from %s", from)
	}
	changes("ID.3", "ID.4", "6281234567899")
	if from := writes("five", "ID.4", true); from != "6281234567899@c.us" {
		t.Errorf("with the new number it is from %s", from)
	}
}

// TestOddReports has everything be missing that can be. Nothing is refused, because Meta would repeat it for a week.
func TestOddReports(t *testing.T) {
	w := newWorld(t)
	s, in := w.open()
	m := w.text("hi")
	w.must(s.Send(t.Context(), []*parley.Message{m})[0])
	for _, value := range []map[string]any{
		{},
		{"messages": []any{map[string]any{}}},
		{"messages": []any{map[string]any{"id": "wamid.a", "type": "text"}}},
		{"user_id_update": []any{map[string]any{"wa_id": "1"}}},
		{"messages": []any{map[string]any{"id": "wamid.b", "type": "system", "system": map[string]string{"type": "user_changed_number"}}}},
		{"messages": []any{map[string]any{"id": "wamid.c", "from": friendNumber, "type": "reaction",
			"reaction": map[string]string{"message_id": "wamid.x"}}}},
		{"messages": "nonsense"},
		{"statuses": []any{map[string]any{}, map[string]any{"id": "wamid.x", "status": "delivered"},
			map[string]any{"id": "wamid.x", "status": "new"},
			map[string]any{"id": "wamid.y", "status": "failed", "biz_opaque_callback_data": opaque(w.channel.ID, "WAUNKNOWN")}}},
		{"errors": []any{map[string]any{"code": 1}}},
	} {
		w.number.Report("messages", value)
	}
	w.number.Report("smb_message_echoes", map[string]any{})
	w.number.Report("something new", map[string]any{})
	for _, kind := range []string{"unsupported", "order", "interactive", "button", "request_welcome", "poll"} {
		w.number.Phone(friendNumber).Send(kind, map[string]string{"text": "from " + kind}, "")
	}
	w.number.Phone(friendNumber).Text("last")
	await(w, in, func(m network.Message) bool { return m.Content.Text() == "last" })
	if n := w.number.Refusals(); n != 0 {
		t.Errorf("%d calls were refused", n)
	}
	messages := 0
	for _, e := range in.events {
		if m, ok := e.(network.Message); ok {
			messages++
			if m.Content.Text() == "" || m.From != friend || time.Since(m.At) > time.Hour {
				t.Errorf("there came %+v", m)
			}
		}
	}
	if messages != 7 {
		t.Errorf("there came %d messages, want 7", messages)
	}
}

// TestShuffledStatuses has statuses come twice and in any order: the sink gets them all, and decides.
func TestShuffledStatuses(t *testing.T) {
	w := newWorld(t)
	s, in := w.open()
	w.number.SetStatuses(cloudtest.StatusesShuffled)
	m := w.text("hi")
	w.must(s.Send(t.Context(), []*parley.Message{m})[0])
	w.number.Phone(friendNumber).Read()
	w.number.ReleaseStatuses()
	for _, status := range []parley.Status{parley.Delivered, parley.Read} {
		await(w, in, func(r network.Receipt) bool { return r.Status == status && r.IDs[0] == m.ID })
	}
}

// TestBearer has a file be elsewhere: the token does not go there.
func TestBearer(t *testing.T) {
	a := account{GraphURL: "http://127.0.0.1:8080/v25.0"}
	for address, want := range map[string]bool{
		"https://lookaside.fbsbx.com/x": true, "https://scontent.fbcdn.net/x": true, "http://127.0.0.1:8080/files/1": true,
		"http://lookaside.fbsbx.com/x": false, "https://fbsbx.com.evil.example/x": false, "https://evilfbsbx.com/x": false,
		"http://127.0.0.1:8081/files/1": false, "https://127.0.0.1:8080/x": false, "": false, "https://graph.facebook.com/x": false,
	} {
		if got := a.trusts(address); got != want {
			t.Errorf("%q: %t", address, got)
		}
	}
	if !(account{}).trusts("https://graph.facebook.com/x") {
		t.Error("the API itself is not trusted")
	}
}

// TestBadFiles has a file be another one than was announced, or lead elsewhere.
func TestBadFiles(t *testing.T) {
	w := newWorld(t)
	s, in := w.open()
	for i, redirect := range []string{"", w.meta.URL + "/elsewhere"} {
		id := w.meta.AddFile([]byte("data"), "application/pdf")
		w.number.Phone(friendNumber).Send("document", map[string]string{"id": id, "mime_type": "application/pdf", "caption": fmt.Sprint(i),
			"sha256": "3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7"}, "")
		m := await(w, in, func(m network.Message) bool { return m.Content.Text() == fmt.Sprint(i) })
		to, err := os.Create(filepath.Join(t.TempDir(), "file"))
		w.must(err)
		defer to.Close()
		w.must(s.Fetch(t.Context(), m.File, to)) // the hash is that of the file
		w.meta.SpoilFile(id, redirect)
		if err := s.Fetch(t.Context(), m.File, to); err == nil {
			t.Errorf("file %d is fetched", i)
		}
	}
}

// TestChoices names what a contact tapped by the ids that the business gave it.
func TestChoices(t *testing.T) {
	for text, want := range map[string]parley.Choice{
		`{"type":"button","button":{"text":"Yes","payload":"P1"}}`:                                      {Type: parley.ButtonChoice, ID: "P1"},
		`{"type":"interactive","interactive":{"button_reply":{"id":"b2","title":"Yes"}}}`:               {Type: parley.ButtonChoice, ID: "b2"},
		`{"type":"interactive","interactive":{"list_reply":{"id":"r3","title":"Yes"}}}`:                 {Type: parley.ListChoice, ID: "r3"},
		`{"type":"interactive","interactive":{"nfm_reply":{"body":"Yes","response_json":"{\"a\":1}"}}}`: {Type: parley.FormChoice},
	} {
		var m reportedMessage
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		c, _ := m.content()
		if said, ok := c.(parley.Text); !ok || said.Body != "Yes" || said.Choice == nil || *said.Choice != want {
			t.Errorf("%s is %+v", text, c)
		}
	}
}
