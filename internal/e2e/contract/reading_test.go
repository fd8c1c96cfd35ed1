package contract_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/internal/parleytest"
)

// recordKeys are the members of every record of a chat; reply_to, quoted, media, location, contacts and error come where there
// are any.
var recordKeys = []string{"contact_id", "contact_name", "message_id", "id", "type", "from_me", "outgoing", "is_media", "body", "status",
	"reactions", "timestamp"}

// TestReadingHistory holds the history of a chat to the contract.
func TestReadingHistory(t *testing.T) {
	e := parleytest.Start(t)
	const long = "6281100000001@c.us"
	fillChat(e, long, 120)
	for name, test := range map[string]func(*testing.T, *parleytest.Env){
		"pages":          func(t *testing.T, e *parleytest.Env) { readPages(t, e, long) },
		"bad queries":    readBadQueries,
		"spellings":      func(t *testing.T, e *parleytest.Env) { readSpellings(t, e, long) },
		"nobody":         readNobody,
		"records":        readRecords,
		"statuses":       readStatuses,
		"reactions":      readReactions,
		"deletions":      readDeletions,
		"retention":      readRetention,
		"stopped":        readStopped,
		"other channels": readOtherChannels,
	} {
		t.Run(name, func(t *testing.T) { test(t, within(t, e)) })
	}
}

// fillChat sends texts m001, m002 and so on, by pools of up to a hundred.
func fillChat(e *parleytest.Env, contact string, count int) {
	e.T.Helper()
	var texts []string
	for i := range count {
		texts = append(texts, fmt.Sprintf(`"m%03d"`, i+1))
	}
	for hundred := range slices.Chunk(texts, 100) {
		var items []string
		for ten := range slices.Chunk(hundred, 10) {
			items = append(items, `{"type":"text","data":[`+strings.Join(ten, ",")+`]}`)
		}
		body := `{"contact_id":"` + contact + `","pools":[` + strings.Join(items, ",") + `]}`
		a := e.Post("/api/send-message/pool", body, parleytest.As(e.Global), parleytest.On("demo"), parleytest.With("Prefer", "wait=30")).
			Expect(http.StatusOK)
		if !a.Bool("success") {
			e.T.Fatalf("the chat was not filled: %s", a.Body)
		}
	}
}

func readPages(t *testing.T, e *parleytest.Env, contact string) {
	for _, c := range []struct {
		query string
		count int
		first string // the newest on the page
		last  string
		meta  page
	}{
		{"", 50, "m120", "m071", page{1, 50, 120, 3, true, false}},
		{"&limit=50&offset=0", 50, "m120", "m071", page{1, 50, 120, 3, true, false}},
		{"&limit=1", 1, "m120", "m120", page{1, 1, 120, 120, true, false}},
		{"&limit=100", 100, "m120", "m021", page{1, 100, 120, 2, true, false}},
		{"&limit=100&offset=100", 20, "m020", "m001", page{2, 100, 120, 2, false, true}},
		{"&offset=1", 50, "m119", "m070", page{1, 50, 120, 3, true, true}},
		{"&offset=49", 50, "m071", "m022", page{1, 50, 120, 3, true, true}},
		{"&offset=50", 50, "m070", "m021", page{2, 50, 120, 3, true, true}},
		{"&offset=69", 50, "m051", "m002", page{2, 50, 120, 3, true, true}},
		{"&offset=70", 50, "m050", "m001", page{2, 50, 120, 3, false, true}},
		{"&offset=100", 20, "m020", "m001", page{3, 50, 120, 3, false, true}},
		{"&limit=40&offset=80", 40, "m040", "m001", page{3, 40, 120, 3, false, true}},
		{"&limit=7&offset=13", 7, "m107", "m101", page{2, 7, 120, 18, true, true}},
		{"&offset=119", 1, "m001", "m001", page{3, 50, 120, 3, false, true}},
		{"&offset=120", 0, "", "", page{3, 50, 120, 3, false, true}},
		{"&offset=1000000", 0, "", "", page{20001, 50, 120, 3, false, true}},
		{"&limit=1&offset=9223372036854775806", 0, "", "", page{9223372036854775807, 1, 120, 120, false, true}},
	} {
		a := e.Get("/api/chat/detail?contact_id=" + contact + c.query).Expect(http.StatusOK)
		bodies := column(a, "body")
		if len(bodies) != c.count || c.count > 0 && (bodies[0] != c.first || bodies[c.count-1] != c.last) {
			t.Errorf("%q: %d records %v, want %d from %s to %s", c.query, len(bodies), bodies, c.count, c.first, c.last)
		}
		if !slices.IsSortedFunc(bodies, func(a, b string) int { return strings.Compare(b, a) }) {
			t.Errorf("%q: not newest first: %v", c.query, bodies)
		}
		wantPage(t, a, c.meta)
		wantKeys(t, a, "", "success", "message", "data", "meta")
		wantValue(t, a, "success", true)
	}
	// An offset that no machine can count to is still none too many.
	if a := e.Get("/api/chat/detail?contact_id=" + contact + "&offset=9223372036854775807").Expect(http.StatusOK); a.Count("data") != 0 ||
		!a.Bool("meta.has_prev_page") {
		t.Errorf("a large offset: %s", a.Body)
	}
}

func readBadQueries(t *testing.T, e *parleytest.Env) {
	for _, path := range []string{"/api/chat/detail", "/api/chat/details"} {
		refusesBadContacts(t, e, path)
		refusesBadPages(t, e, path+"?contact_id=6281234567890@c.us")
	}
	refusesBadPages(t, e, "/api/chat")
	e.Get("/api/chat/detail?limit=0&offset=-1").ExpectFields("contact_id", "limit", "offset")
	e.Get("/api/chat/detail?contact_id=6281234567890@c.us&colour=red").Expect(http.StatusOK) // unknown ones are ignored
	for _, query := range []string{"contact_id=%zz", "contact_id=%", "contact_id=%ff", "contact_id=6281234567890@c.us%00", "%ff=1"} {
		e.Get("/api/chat/detail?"+query).ExpectError(http.StatusBadRequest, "query")
	}
}

func readSpellings(t *testing.T, e *parleytest.Env, contact string) {
	var want []byte
	e.Eventually("the phone has received the messages", func() bool { // their status changes no more
		a := e.Get("/api/chat/detail?contact_id=" + contact + "&limit=3&offset=2").Expect(http.StatusOK)
		want = a.Body
		return slices.Equal(column(a, "status"), []string{"DELIVERED", "DELIVERED", "DELIVERED"})
	})
	number := strings.TrimSuffix(contact, "@c.us")
	for _, path := range []string{
		"/api/chat/details?contact_id=" + contact + "&limit=3&offset=2",
		"/api/chat/detail?contact_id=" + number + "@s.us&limit=3&offset=2",
		"/api/chat/details?offset=2&limit=3&contact_id=" + number + "%40s.us",
	} {
		if got := e.Get(path).Expect(http.StatusOK).Body; !bytes.Equal(got, want) {
			t.Errorf("%s answers %s, want %s", path, got, want)
		}
	}
	// Written to under one spelling and the other, it is one chat.
	const other = "6281100000002"
	for _, server := range []string{"@s.us", "@c.us"} {
		sent := e.Post("/api/send-message/text", `{"contact_id":"`+other+server+`","message":"to `+server+`"}`).Expect(http.StatusOK)
		if want := "true_" + other + "@c.us_" + sent.Text("data.id"); sent.Text("data.message_id") != want {
			t.Errorf("message_id %q, want %q", sent.Text("data.message_id"), want)
		}
	}
	a := e.Get("/api/chat/detail?contact_id=" + other + "@s.us").Expect(http.StatusOK)
	if got := column(a, "body"); !slices.Equal(got, []string{"to @c.us", "to @s.us"}) {
		t.Errorf("the chat has %q", got)
	}
}

func readNobody(t *testing.T, e *parleytest.Env) {
	for _, id := range []string{"6281100000099@c.us", shortestContact, longestContact} {
		a := e.Get("/api/chat/detail?contact_id=" + id).Expect(http.StatusOK)
		if a.Count("data") != 0 {
			t.Errorf("records of nobody: %s", a.Body)
		}
		wantPage(t, a, page{1, 50, 0, 1, false, false})
	}
	a := e.Get("/api/chat/detail?contact_id=6281100000099@c.us&limit=10&offset=25").Expect(http.StatusOK)
	wantPage(t, a, page{3, 10, 0, 1, false, true})
}

// isMedia reports whether messages of a kind carry a file.
func isMedia(kind string) bool { return parley.Kind(kind).IsMedia() }

// readRecords checks the record of every kind of message, out and in.
func readRecords(t *testing.T, e *parleytest.Env) {
	const contact, number = "6281100000003@c.us", "6281100000003"
	files := parleytest.Files(t)
	first := e.Post("/api/send-message/text", `{"contact_id":"`+contact+`","message":"Hello 👋"}`).Expect(http.StatusOK)
	for _, c := range []struct{ endpoint, fields, kind, body string }{
		{"text", `"message":"An answer","reply_to":"` + first.Text("data.id") + `"`, "text", "An answer"},
		{"image", `"caption":"A dot","file":{"url":"` + files + `/dot.png"}`, "image", "A dot"},
		{"image", `"file":{"url":"` + files + `/dot.png"}`, "image", ""},
		{"video", `"caption":"A film","file":{"url":"` + files + `/film.mp4"}`, "video", "A film"},
		{"file", `"file":{"url":"` + files + `/notes.txt"}`, "file", ""},
		{"voice", `"audioUrl":"` + files + `/hello.ogg"`, "voice", ""},
		{"sticker", `"file":{"url":"` + files + `/dot.png"}`, "sticker", ""},
		{"location", `"latitude":"-6.2","longitude":"106.8","title":"Monas"`, "location", "Monas"},
		{"location", `"latitude":"-6.2","longitude":"106.8"`, "location", ""},
		{"poll", `"title":"When?","options":["Now","Later"]`, "poll", "When?"},
	} {
		sent := e.Post("/api/send-message/"+c.endpoint, `{"contact_id":"`+contact+`",`+c.fields+`}`).Expect(http.StatusOK)
		a := e.Get("/api/chat/detail?limit=1&contact_id=" + contact).Expect(http.StatusOK)
		keys := recordKeys
		if strings.Contains(c.fields, "reply_to") {
			keys = append(slices.Clone(keys), "reply_to", "quoted")
			wantValue(t, a, "data.0.reply_to", first.Text("data.id"))
			wantValue(t, a, "data.0.quoted.id", first.Text("data.id"))
		}
		if isMedia(c.kind) {
			keys = append(slices.Clone(keys), "media")
			wantValue(t, a, "data.0.media.status", "ready")
		}
		if c.kind == "poll" {
			keys = append(slices.Clone(keys), "poll")
		}
		if c.kind == "location" {
			keys = append(slices.Clone(keys), "location")
			wantKeys(t, a, "data.0.location", "latitude", "longitude", "title", "address")
		}
		wantKeys(t, a, "data.0", keys...)
		wantValue(t, a, "data.0.message_id", sent.Text("data.message_id"))
		wantValue(t, a, "data.0.id", sent.Text("data.id"))
		wantValue(t, a, "data.0.from_me", "true")
		wantValue(t, a, "data.0.type", c.kind)
		wantValue(t, a, "data.0.body", c.body)
		wantValue(t, a, "data.0.is_media", isMedia(c.kind))
		wantTexts(t, a, "data.0.reactions")
		wantRecent(t, a, "data.0.timestamp")
	}
	for _, c := range []struct{ sends, kind, body string }{
		{`{"type":"text","message":"Oh hello","reply_to":"` + first.Text("data.id") + `"}`, "text", "Oh hello"},
		{`{"type":"image","caption":"Mine","file":{"url":"` + files + `/dot.png"}}`, "image", "Mine"},
		{`{"type":"location","latitude":"1","longitude":"2","title":"Here"}`, "location", "Here"},
	} {
		said := e.Phone(number).Sends(c.sends)
		e.Phone(number).Received(c.body)
		a := e.Get("/api/chat/detail?limit=1&contact_id=" + contact).Expect(http.StatusOK)
		keys := recordKeys
		if strings.Contains(c.sends, "reply_to") {
			keys = append(slices.Clone(keys), "reply_to", "quoted")
			wantValue(t, a, "data.0.quoted.id", first.Text("data.id"))
		}
		if c.kind == "location" {
			keys = append(slices.Clone(keys), "location")
		}
		if isMedia(c.kind) {
			keys = append(slices.Clone(keys), "media")
			e.Eventually("its file was fetched", func() bool {
				a = e.Get("/api/chat/detail?limit=1&contact_id=" + contact).Expect(http.StatusOK)
				return a.Text("data.0.media.status") == "ready"
			})
			wantKeys(t, a, "data.0.media", "id", "url", "mimetype", "size", "filename", "width", "height", "sha256", "status")
			sum := sha256.Sum256(served(t, files+"/dot.png"))
			wantValue(t, a, "data.0.media.sha256", hex.EncodeToString(sum[:]))
			wantValue(t, a, "data.0.media.mimetype", "image/png")
			wantValue(t, a, "data.0.media.width", 4.0)
		}
		wantKeys(t, a, "data.0", keys...)
		wantValue(t, a, "data.0.message_id", said.Text("data.message_id"))
		wantValue(t, a, "data.0.message_id", "false_"+contact+"_"+said.Text("data.id"))
		wantValue(t, a, "data.0.from_me", "false")
		wantValue(t, a, "data.0.type", c.kind)
		wantValue(t, a, "data.0.is_media", c.kind == "image")
		wantValue(t, a, "data.0.status", "RECEIVED")
	}
	// Votes, reactions, marks and stars are no records of their own.
	before := e.Get("/api/chat/detail?contact_id=" + contact).Number("meta.total")
	if before != 14 {
		t.Fatalf("%d records, want 14", before)
	}
	inbound := e.Phone(number).Received("Oh hello")
	e.Phone(number).Sends(`{"type":"reaction","message_id":"` + first.Text("data.id") + `","reaction":"❤️"}`)
	e.Put("/api/send-message/reaction", `{"message_id":"`+inbound+`","reaction":"👍"}`).Expect(http.StatusOK)
	e.Put("/api/send-message/star", `{"message_id":"`+inbound+`","starred":true}`).Expect(http.StatusOK)
	e.Post("/api/send-message/seen", `{"message_id":"`+inbound+`"}`).Expect(http.StatusOK)
	e.Eventually("the reaction is there", func() bool {
		a := e.Get("/api/chat/detail?limit=1&offset=13&contact_id=" + contact)
		return a.Text("data.0.body") == "Hello 👋" && a.Count("data.0.reactions") == 1
	})
	if after := e.Get("/api/chat/detail?contact_id=" + contact).Number("meta.total"); after != before {
		t.Errorf("%d records after operations, want %d", after, before)
	}
}

// readStatuses walks messages through what can become of them.
func readStatuses(t *testing.T, e *parleytest.Env) {
	const number = "6281100000004"
	phone := e.Phone(number)
	status := func(body string) string {
		a := e.Get("/api/chat/detail?contact_id=" + number + "@c.us").Expect(http.StatusOK)
		return a.Text(rowWhere(a, "body", body) + ".status")
	}
	phone.Becomes(`{"online":false}`)
	e.Post("/api/send-message/text", `{"contact_id":"`+number+`@c.us","message":"away"}`).Expect(http.StatusOK)
	if got := status("away"); got != "SENT" {
		t.Errorf("to a phone that is offline: %s", got)
	}
	phone.Becomes(`{"online":true}`)
	e.Eventually("delivered", func() bool { return status("away") == "DELIVERED" })
	phone.Reads()
	e.Eventually("read", func() bool { return status("away") == "READ" })

	phone.Types("hello")
	id := phone.Received("hello")
	if got := status("hello"); got != "RECEIVED" {
		t.Errorf("inbound: %s", got)
	}
	e.Post("/api/send-message/seen", `{"message_id":"`+id+`"}`).Expect(http.StatusOK)
	e.Eventually("marked as seen", func() bool { return status("hello") == "READ" })

	e.Post("/api/send-message/voice", `{"contact_id":"`+number+`@c.us","audioUrl":"`+parleytest.Files(t)+`/hello.ogg"}`).Expect(http.StatusOK)
	phone.Reads()
	e.Eventually("played", func() bool {
		a := e.Get("/api/chat/detail?limit=1&contact_id=" + number + "@c.us")
		return a.Text("data.0.type") == "voice" && a.Text("data.0.status") == "PLAYED"
	})

	const nobody = "99911000000@c.us"
	e.Post("/api/send-message/text", `{"contact_id":"`+nobody+`","message":"anybody?"}`).Expect(http.StatusOK)
	a := e.Get("/api/chat/detail?contact_id=" + nobody).Expect(http.StatusOK)
	wantKeys(t, a, "data.0", append(slices.Clone(recordKeys), "error")...)
	wantKeys(t, a, "data.0.error", "code", "message")
	wantValue(t, a, "data.0.status", "FAILED")
	wantValue(t, a, "data.0.body", "anybody?")
	wantValue(t, a, "data.0.error.code", "not_on_network")
}

// readReactions checks that a record shows the reactions that stand now, one of each side.
func readReactions(t *testing.T, e *parleytest.Env) {
	const number = "6281100000005"
	phone := e.Phone(number)
	sent := e.Post("/api/send-message/text", `{"contact_id":"`+number+`@c.us","message":"mine"}`).Expect(http.StatusOK).Text("data.message_id")
	phone.Types("theirs")
	received := phone.Received("theirs")
	standing := func(body string, want ...string) {
		t.Helper()
		e.Eventually(fmt.Sprintf("%q has the reactions %q", body, want), func() bool {
			a := e.Get("/api/chat/detail?contact_id=" + number + "@c.us").Expect(http.StatusOK)
			list, ok := a.Value(rowWhere(a, "body", body) + ".reactions").([]any)
			got := []string{}
			for _, v := range list {
				got = append(got, v.(string))
			}
			slices.Sort(got)
			slices.Sort(want)
			return ok && slices.Equal(got, want)
		})
	}
	react := func(id, emoji string) {
		t.Helper()
		e.Put("/api/send-message/reaction", `{"message_id":"`+id+`","reaction":"`+emoji+`"}`).Expect(http.StatusOK)
	}
	phoneReacts := func(id, emoji string) {
		t.Helper()
		phone.Sends(`{"type":"reaction","message_id":"` + id + `","reaction":"` + emoji + `"}`)
	}
	standing("mine")
	phoneReacts(sent, "❤️")
	standing("mine", "❤️")
	standing("theirs")
	react(sent, "👍")
	standing("mine", "❤️", "👍")
	phoneReacts(sent, "😂") // another one replaces the first
	standing("mine", "😂", "👍")
	phoneReacts(sent, "")
	standing("mine", "👍")
	react(sent, "")
	standing("mine")
	react(received, "🙏")
	phoneReacts(received, "🎉")
	standing("theirs", "🙏", "🎉")
	react(received, "🙏") // twice is once
	standing("theirs", "🙏", "🎉")
}

// readDeletions checks that what was deleted stays, without what it said.
func readDeletions(t *testing.T, e *parleytest.Env) {
	const number, contact = "6281100000006", "6281100000006@c.us"
	phone := e.Phone(number)
	sent := e.Post("/api/send-message/text", `{"contact_id":"`+contact+`","message":"a slip"}`).Expect(http.StatusOK)
	phone.Types("another slip")
	received := phone.Received("another slip")
	picture := e.Post("/api/send-message/image",
		`{"contact_id":"`+contact+`","caption":"a wrong picture","file":{"url":"`+parleytest.Files(t)+`/dot.png"}}`).Expect(http.StatusOK)
	before := e.Get("/api/chat/detail?contact_id=" + contact).Expect(http.StatusOK)

	for _, id := range []string{sent.Text("data.message_id"), picture.Text("data.id")} {
		deleted := e.Delete("/api/send-message/delete?message_id=" + id).Expect(http.StatusOK)
		wantValue(t, deleted, "data.status", "DELETED")
	}
	phone.Sends(`{"type":"delete","message_id":"` + received + `"}`)
	var after *parleytest.Response
	e.Eventually("all three are deleted", func() bool {
		after = e.Get("/api/chat/detail?contact_id=" + contact).Expect(http.StatusOK)
		return slices.Equal(column(after, "status"), []string{"DELETED", "DELETED", "DELETED"})
	})
	if got := column(after, "body"); !slices.Equal(got, []string{"", "", ""}) {
		t.Errorf("they still say %q", got)
	}
	for _, name := range []string{"message_id", "id", "type", "from_me", "timestamp"} {
		if was, is := column(before, name), column(after, name); !slices.Equal(was, is) {
			t.Errorf("%s was %q and is %q", name, was, is)
		}
	}
	if after.Number("meta.total") != 3 {
		t.Errorf("they do not stay: %s", after.Body)
	}
	deleteUnsent(t, e)
	if strings.Contains(string(after.Body), "slip") || strings.Contains(string(after.Body), "wrong") {
		t.Errorf("the deleted text is still shown: %s", after.Body)
	}
}

// deleteUnsent deletes a message before it could be sent.
func deleteUnsent(t *testing.T, e *parleytest.Env) {
	t.Helper()
	as, async := parleytest.As(e.CreateChannel("unsent")), parleytest.With("Prefer", "respond-async")
	const contact = "6281100000010@c.us"
	e.Post("/api/sandbox/faults", `{"fault":"drop_socket"}`, as).Expect(http.StatusOK)
	e.Post("/api/send-message/text", `{"contact_id":"`+contact+`","message":"breaks the connection"}`, as, async).Expect(http.StatusOK)
	e.Eventually("it reconnects", func() bool { return e.Get("/api/channel/health", as).Text("data.status") == "RECONNECTING" })
	unsent := e.Post("/api/send-message/text", `{"contact_id":"`+contact+`","message":"never said"}`, as, async).Expect(http.StatusOK).
		Text("data.message_id")
	e.Delete("/api/send-message/delete?message_id="+unsent, as, async).Expect(http.StatusOK)
	e.Eventually("it is deleted", func() bool {
		a := e.Get("/api/chat/detail?limit=1&contact_id="+contact, as).Expect(http.StatusOK)
		if a.Text("data.0.status") == "DELETED" && a.Text("data.0.body") != "" {
			t.Errorf("it is deleted and still says %q", a.Text("data.0.body"))
		}
		return a.Text("data.0.status") == "DELETED"
	})
}

// readRetention checks a channel that keeps no text.
func readRetention(t *testing.T, e *parleytest.Env) {
	e.Post("/api/manage/channels", `{"code":"discreet","settings":{"retention":"0s"}}`, parleytest.As(e.Admin)).Expect(http.StatusCreated)
	as, on := parleytest.As(e.Global), parleytest.On("discreet")
	e.Eventually("channel discreet works", func() bool { return e.Get("/api/channel/health", as, on).Text("data.status") == "WORKING" })
	e.Post("/api/send-message/text", `{"contact_id":"6281100000007@c.us","message":"between us"}`, as, on).Expect(http.StatusOK)
	arrived := e.Get("/api/sandbox/phones/6281100000007/messages", as, on).Expect(http.StatusOK)
	wantValue(t, arrived, "data.0.body", "between us") // it was said
	a := e.Get("/api/chat/detail?contact_id=6281100000007@c.us", as, on).Expect(http.StatusOK)
	wantValue(t, a, "data.0.body", "") // and is not kept
	wantValue(t, a, "meta.total", 1.0)

	// What waits to be sent has to be kept until then, and is not shown.
	e.Post("/api/sandbox/faults", `{"fault":"log_out"}`, as, on).Expect(http.StatusOK)
	e.Post("/api/send-message/text", `{"contact_id":"6281100000007@c.us","message":"not yet"}`, as, on, parleytest.With("Prefer",
		"respond-async")).Expect(http.StatusOK)
	a = e.Get("/api/chat/detail?contact_id=6281100000007@c.us", as, on).Expect(http.StatusOK)
	wantValue(t, a, "data.0.status", "PENDING")
	wantValue(t, a, "data.0.body", "")
}

// readStopped checks what a channel that does not run answers: its history can be read, its account
// cannot be asked, and that comes before what is wrong with the fields.
func readStopped(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("resting"))
	e.Post("/api/send-message/text", `{"contact_id":"6281100000008@c.us","message":"before"}`, as).Expect(http.StatusOK)
	e.Post("/api/manage/channels/resting/stop", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	wantValue(t, e.Get("/api/chat/detail?contact_id=6281100000008@s.us", as).Expect(http.StatusOK), "data.0.body", "before")
	wantValue(t, e.Get("/api/chat", as).Expect(http.StatusOK), "data.0.contact_id", "6281100000008@c.us")
	for _, path := range []string{
		"/api/groups", "/api/groups?limit=0", "/api/contact", "/api/contact?offset=-1", "/api/contact/info?contact_id=6281100000008@c.us",
		"/api/contact/info",
		"/api/contact/picture?contact_id=6281100000008@c.us", "/api/contact/picture", "/api/groups/participants",
		"/api/channel/check-phone-number",
		"/api/channel/check-phone-number?phone=6281100000008",
	} {
		e.Get(path, as).ExpectError(http.StatusBadRequest, "STOPPED").ExpectError(http.StatusBadRequest, "parley channel start resting")
	}
	for _, path := range []string{"/api/chat/archive", "/api/chat/un-archive", "/api/groups/create", "/api/send-message/typing",
		"/api/send-message/stop-typing"} {
		e.Post(path, `{"contact_id":"6281100000008@c.us","name":"Club","participants":[{"id":"6281100000008@c.us"}]}`, as).
			ExpectError(http.StatusBadRequest, "STOPPED")
		e.Post(path, `{}`, as).ExpectError(http.StatusBadRequest, "STOPPED")
	}
}

// readOtherChannels checks that a chat of one channel is none of another's.
func readOtherChannels(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("apart"))
	e.Post("/api/send-message/text", `{"contact_id":"6281100000009@c.us","message":"on demo"}`).Expect(http.StatusOK)
	wantPage(t, e.Get("/api/chat/detail?contact_id=6281100000009@c.us", as).Expect(http.StatusOK), page{1, 50, 0, 1, false, false})
	wantPage(t, e.Get("/api/chat", as).Expect(http.StatusOK), page{1, 50, 0, 1, false, false})
	e.Post("/api/chat/archive", `{"contact_id":"6281100000009@c.us"}`, as).ExpectFields("contact_id")
	e.Post("/api/send-message/text", `{"contact_id":"6281100000009@c.us","message":"on apart"}`, as).Expect(http.StatusOK)
	for as, want := range map[string]string{e.Token: "on demo", e.CreateToken("channel", "apart"): "on apart"} {
		a := e.Get("/api/chat/detail?contact_id=6281100000009@c.us", parleytest.As(as)).Expect(http.StatusOK)
		wantTexts(t, a, "data.0.reactions")
		wantValue(t, a, "data.0.body", want)
		wantValue(t, a, "meta.total", 1.0)
	}
}
