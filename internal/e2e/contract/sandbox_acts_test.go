package contract_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

// TestSandboxActs holds what a phone can be made to do to the contract.
func TestSandboxActs(t *testing.T) {
	e := parleytest.Start(t)
	for name, test := range map[string]func(*testing.T, *parleytest.Env){
		"sending":     actsSend,
		"bad sending": actsSendBad,
		"reactions":   actsReact,
		"votes":       actsVote,
		"deletions":   actsDelete,
		"reading":     actsRead,
		"opening":     actsOpen,
		"offline":     actsOffline,
	} {
		t.Run(name, func(t *testing.T) { test(t, within(t, e)) })
	}
}

// wantActed checks the answer to something that a phone did.
func wantActed(t *testing.T, a *parleytest.Response) {
	t.Helper()
	wantKeys(t, a.Expect(http.StatusOK), "", "success", "message", "data")
	wantValue(t, a, "success", true)
	wantKeys(t, a, "data", "message_id", "id", "timestamp")
	wantValue(t, a, "data.id", toBareID(a.Text("data.message_id")))
	wantRecent(t, a, "data.timestamp")
}

func actsSend(t *testing.T, e *parleytest.Env) {
	const number, path = "6281800000001", phones + "/6281800000001/send"
	files := parleytest.Files(t)
	first := say(e, number, "first")
	longest := strings.Repeat("👍", 4096)
	for _, c := range []struct{ body, kind, shows string }{
		{`{"type":"text","message":"Hello"}`, "text", "Hello"},
		{`{"type":"text","message":"An answer","reply_to":"` + toBareID(first) + `"}`, "text", "An answer"},
		{`{"type":"text","message":"` + longest + `"}`, "text", longest},
		{`{"type":"image","caption":"A dot","file":{"url":"` + files + `/dot.png"}}`, "image", "A dot"},
		{`{"type":"image","file":{"url":"` + files + `/dot.png"}}`, "image", ""},
		{`{"type":"video","caption":"A film","file":{"url":"` + files + `/film.mp4"}}`, "video", "A film"},
		{`{"type":"video","videoUrl":"` + files + `/film.mp4"}`, "video", ""},
		{`{"type":"file","caption":"Notes","file":{"url":"` + files + `/notes.txt","filename":"my notes.txt"}}`, "file", "Notes"},
		{`{"type":"voice","audioUrl":"` + files + `/hello.ogg"}`, "voice", ""},
		{`{"type":"voice","file":{"url":"` + files + `/hello.ogg"}}`, "voice", ""},
		{`{"type":"sticker","file":{"url":"` + files + `/dot.png"}}`, "sticker", ""},
		{`{"type":"location","latitude":"-6.2","longitude":"106.8","title":"Monas"}`, "location", "Monas"},
		{`{"type":"location","latitude":"90","longitude":"180"}`, "location", ""},
	} {
		before := e.Get("/api/chat/detail?contact_id=" + number + "@c.us").Number("meta.total")
		said := e.Post(path, c.body)
		wantActed(t, said)
		if want := "false_" + number + "@c.us_" + said.Text("data.id"); said.Text("data.message_id") != want {
			t.Errorf("it has the id %q, want %q", said.Text("data.message_id"), want)
		}
		var a *parleytest.Response
		e.Eventually("the channel has it", func() bool {
			a = e.Get("/api/chat/detail?limit=1&contact_id=" + number + "@c.us").Expect(http.StatusOK)
			return a.Number("meta.total") == before+1
		})
		wantValue(t, a, "data.0.message_id", said.Text("data.message_id"))
		wantValue(t, a, "data.0.type", c.kind)
		wantValue(t, a, "data.0.body", c.shows)
		wantValue(t, a, "data.0.from_me", "false")
		wantValue(t, a, "data.0.status", "RECEIVED")
		wantValue(t, a, "data.0.is_media", c.kind != "text" && c.kind != "location")
		if strings.Contains(c.body, "reply_to") {
			wantValue(t, a, "data.0.reply_to", toBareID(first))
		}
	}
	// The number may be spelled as people do.
	e.Post(phones+"/+62-818-0000-0001/send", `{"type":"text","message":"spelled out"}`).Expect(http.StatusOK)
	e.Phone(number).Received("spelled out")
}

func actsSendBad(t *testing.T, e *parleytest.Env) {
	const number, path = "6281800000002", phones + "/6281800000002/send"
	files := parleytest.Files(t)
	for _, c := range []struct {
		body   string
		fields []string
	}{
		{`{}`, []string{"type"}},
		{`{"type":null}`, []string{"type"}},
		{`{"type":1}`, []string{"type"}},
		{`{"type":"song"}`, []string{"type"}},
		{`{"type":"poll","title":"x","options":["a","b"]}`, []string{"type"}}, // phones send none here
		{`{"type":"text"}`, []string{"message"}},
		{`{"type":"text","message":""}`, []string{"message"}},
		{`{"type":"text","message":1,"reply_to":"a b"}`, []string{"message", "reply_to"}},
		{`{"type":"text","message":"` + strings.Repeat("👍", 4097) + `"}`, []string{"message"}},
		{`{"type":"text","message":"x","reply_to":"3EB0000000000000000000"}`, []string{"reply_to"}},
		{`{"type":"image"}`, []string{"file.url"}},
		{`{"type":"image","file":"x"}`, []string{"file"}},
		{`{"type":"image","file":{}}`, []string{"file.url"}},
		{`{"type":"image","caption":"","file":{"url":"x"}}`, []string{"caption", "file.url"}},
		{`{"type":"image","file":{"url":"` + files + `/notes.txt"}}`, []string{"file.url"}},
		{`{"type":"image","file":{"url":"` + files + `/none.png"}}`, []string{"file.url"}},
		{`{"type":"voice","audioUrl":"` + files + `/dot.png"}`, []string{"audioUrl"}},
		{`{"type":"location"}`, []string{"latitude", "longitude"}},
		{`{"type":"location","latitude":"91","longitude":"-181","title":""}`, []string{"latitude", "longitude", "title"}},
		{`{"type":"reaction"}`, []string{"message_id", "reaction"}},
		{`{"type":"vote"}`, []string{"message_id", "options"}},
		{`{"type":"delete"}`, []string{"message_id"}},
		{`{"type":"delete","message_id":7}`, []string{"message_id"}},
		{`{"type":"delete","message_id":"not an id"}`, []string{"message_id"}},
	} {
		e.Post(path, c.body).ExpectFields(c.fields...)
	}
	e.Post(path, "").Expect(http.StatusBadRequest)
	wantValue(t, e.Get("/api/chat/detail?contact_id="+number+"@c.us"), "meta.total", 0.0)
}

func actsReact(t *testing.T, e *parleytest.Env) {
	const number, path = "6281800000003", phones + "/6281800000003/send"
	sent := say(e, number, "mine")
	e.Phone(number).Types("theirs")
	said := e.Phone(number).Received("theirs")
	// full and bare ids, either side's
	for id, full := range map[string]string{sent: sent, toBareID(sent): sent, said: said, toBareID(said): said} {
		for _, emoji := range []string{"❤️", "👍🏽", "👨‍👩‍👧", ""} {
			a := e.Post(path, `{"type":"reaction","message_id":"`+id+`","reaction":"`+emoji+`"}`)
			wantActed(t, a)
			wantValue(t, a, "data.message_id", full)
			e.Eventually("the channel has "+emoji, func() bool {
				list := e.Get("/api/chat/detail?contact_id=" + number + "@c.us").Expect(http.StatusOK)
				at := rowWhere(list, "message_id", full) + ".reactions"
				return emoji == "" && list.Count(at) == 0 || list.Count(at) == 1 && list.Text(at+".0") == emoji
			})
		}
	}
	for _, bad := range []string{`"x"`, `"❤️❤️"`, `" "`, `1`, `null`, `["❤️"]`} {
		e.Post(path, `{"type":"reaction","message_id":"`+sent+`","reaction":`+bad+`}`).ExpectFields("reaction")
	}
	other := say(e, "6281800000004", "to another phone")
	e.Post(path, `{"type":"reaction","message_id":"`+other+`","reaction":"❤️"}`).ExpectFields("message_id")
}

func actsVote(t *testing.T, e *parleytest.Env) {
	const number, path = "6281800000005", phones + "/6281800000005/send"
	poll := func(more string) string {
		return e.Post("/api/send-message/poll", `{"contact_id":"`+number+`@c.us","title":"When?","options":["Now","Later","Never"]`+more+`}`).
			Expect(http.StatusOK).Text("data.message_id")
	}
	single, several := poll(""), poll(`,"is_multiple_answer":true`)
	vote := func(id, options string) *parleytest.Response {
		return e.Post(path, `{"type":"vote","message_id":"`+id+`","options":`+options+`}`)
	}
	for _, a := range []*parleytest.Response{
		vote(single, `["Now"]`), vote(toBareID(single), `["Later"]`), vote(single, `[]`), vote(several, `["Now","Never"]`),
		vote(several, `["Now","Later","Never"]`),
	} {
		wantActed(t, a)
	}
	text := say(e, number, "no poll")
	for _, a := range []*parleytest.Response{
		vote(single, `["Now","Later"]`), vote(several, `["Now","Now"]`), vote(several, `["Tomorrow"]`), vote(single, `"Now"`),
		vote(single, `null`),
	} {
		a.ExpectFields("options")
	}
	vote(single, `[""]`).ExpectFields("options.0")
	vote(single, `["Now",1]`).ExpectFields("options.1")
	vote(text, `["Now"]`).ExpectFields("message_id")
	// A vote is no record of its own.
	wantValue(t, e.Get("/api/chat/detail?contact_id="+number+"@c.us"), "meta.total", 3.0)
}

func actsDelete(t *testing.T, e *parleytest.Env) {
	const number, path = "6281800000006", phones + "/6281800000006/send"
	e.Phone(number).Types("a slip")
	said := e.Phone(number).Received("a slip")
	sent := say(e, number, "ours")
	for _, id := range []string{said, toBareID(said)} { // twice is no error
		a := e.Post(path, `{"type":"delete","message_id":"`+id+`"}`)
		wantActed(t, a)
		wantValue(t, a, "data.message_id", said)
		e.Eventually("the channel has it deleted", func() bool {
			list := e.Get("/api/chat/detail?contact_id=" + number + "@c.us").Expect(http.StatusOK)
			row := rowWhere(list, "message_id", said)
			return list.Text(row+".status") == "DELETED" && list.Text(row+".body") == ""
		})
	}
	e.Post(path, `{"type":"delete","message_id":"`+sent+`"}`).ExpectFields("message_id") // not its own
}

func actsRead(t *testing.T, e *parleytest.Env) {
	const number, path = "6281800000007", phones + "/6281800000007/read"
	statuses := func() []string {
		return column(e.Get("/api/chat/detail?contact_id="+number+"@c.us").Expect(http.StatusOK), "status")
	}
	reads := func(body string, want float64) {
		t.Helper()
		a := e.Post(path, body).Expect(http.StatusOK)
		wantKeys(t, a, "data", "read")
		wantValue(t, a, "data.read", want)
	}
	reads("", 0) // nothing there
	first := say(e, number, "first")
	second := say(e, number, "second")
	say(e, number, "third")
	e.Eventually("all are delivered", func() bool { return slices.Equal(statuses(), []string{"DELIVERED", "DELIVERED", "DELIVERED"}) })
	reads(`{"message_id":"`+second+`"}`, 1)
	reads(`{"message_id":"`+second+`"}`, 0)
	e.Eventually("only the second is read", func() bool { return slices.Equal(statuses(), []string{"DELIVERED", "READ", "DELIVERED"}) })
	reads(`{"message_id":"`+toBareID(first)+`"}`, 1)
	e.Eventually("the first is read too", func() bool { return slices.Equal(statuses(), []string{"DELIVERED", "READ", "READ"}) })
	reads(`{"message_id":null}`, 1) // all: one was left
	e.Eventually("all are read", func() bool { return slices.Equal(statuses(), []string{"READ", "READ", "READ"}) })
	reads(`{}`, 0)

	e.Phone(number).Types("its own")
	own := e.Phone(number).Received("its own")
	for _, id := range []string{quoted(own), `"3EB0000000000000000000"`, `"not an id"`, `""`, `7`, `[]`,
		quoted(say(e, "6281800000008", "elsewhere"))} {
		e.Post(path, `{"message_id":`+id+`}`).ExpectFields("message_id")
	}
	e.Post(path, `{`).Expect(http.StatusBadRequest)
}

func actsOpen(t *testing.T, e *parleytest.Env) {
	const number, path = "6281800000009", phones + "/6281800000009/open"
	for link, text := range map[string]string{
		"https://wa.me/99900000001?text=Log%20me%20in%20K7QM":               "Log me in K7QM",
		"https://wa.me/99900000001?text=a+b%26c%3D%C3%A9&x=1":               "a b&c=é",
		"whatsapp://send?phone=99900000001&text=From%20the%20app":           "From the app",
		"http://127.0.0.1:7275/phone#text=In%20the%20fragment&ticket=abc":   "In the fragment",
		"https://wa.me/1?text=" + strings.Repeat("x", 4000) + "%0Asecond":   strings.Repeat("x", 4000) + "\nsecond",
		"https://example.com/?a=1&text=Any%20address%20with%20a%20text&b=2": "Any address with a text",
	} {
		a := e.Post(path, `{"link":`+quoted(link)+`}`)
		wantActed(t, a)
		if id := e.Phone(number).Received(text); id != a.Text("data.message_id") {
			t.Errorf("%.80s sent %s, the channel has %s", link, a.Text("data.message_id"), id)
		}
	}
	for _, bad := range []string{`null`, `""`, `1`, `[]`, `"https://wa.me/99900000001"`, `"https://wa.me/1?text="`, `"no link"`,
		`"https://exa mple/%zz?text=x"`,
		quoted("https://wa.me/1?text=" + strings.Repeat("x", 8192-21+1))} {
		e.Post(path, `{"link":`+bad+`}`).ExpectFields("link")
	}
	e.Post(path, `{}`).ExpectFields("link")
	e.Post(path, "").Expect(http.StatusBadRequest)
}

// actsOffline checks that what a phone does offline is delivered when it is online again.
func actsOffline(t *testing.T, e *parleytest.Env) {
	const number = "6281800000010"
	phone := e.Phone(number)
	sent := say(e, number, "ours")
	phone.Becomes(`{"online":false}`)
	wantActed(t, phone.Types("one"))
	wantActed(t, phone.Types("two"))
	phone.Sends(`{"type":"reaction","message_id":"` + sent + `","reaction":"❤️"}`)
	a := e.Get("/api/chat/detail?contact_id=" + number + "@c.us").Expect(http.StatusOK)
	wantValue(t, a, "meta.total", 1.0)
	wantTexts(t, a, "data.0.reactions")
	phone.Becomes(`{"online":true}`)
	e.Eventually("all events are published", func() bool {
		a = e.Get("/api/chat/detail?contact_id=" + number + "@c.us").Expect(http.StatusOK)
		return a.Number("meta.total") == 3 && a.Count("data.2.reactions") == 1
	})
	if got := column(a, "body"); !slices.Equal(got, []string{"two", "one", "ours"}) {
		t.Errorf("they came as %q", got)
	}
}
