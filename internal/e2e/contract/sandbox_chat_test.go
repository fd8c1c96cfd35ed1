package contract_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

var bubbleKeys = []string{"from_phone", "contact_id", "group_id", "message_id", "id", "type", "body", "codes", "links", "preview",
	"media", "location", "contacts", "poll", "votes", "reactions", "reply_to", "deleted", "status", "timestamp", "edited_at", "copies"}

// TestSandboxChat holds what a phone shows to the contract.
func TestSandboxChat(t *testing.T) {
	e := parleytest.Start(t)
	for name, test := range map[string]func(*testing.T, *parleytest.Env){
		"chats":    chatList,
		"chat":     chatBubbles,
		"kinds":    chatKinds,
		"pages":    chatPages,
		"offline":  chatOffline,
		"files":    chatFiles,
		"bad asks": chatBad,
	} {
		t.Run(name, func(t *testing.T) { test(t, within(t, e)) })
	}
}

// screen is the path of what a phone shows.
func screen(phone *parleytest.Phone) string {
	return "/api/sandbox/phones/" + phone.Contact()[:len(phone.Contact())-len("@c.us")]
}

func writes(e *parleytest.Env, phone *parleytest.Phone, text string) (messageID string) {
	e.T.Helper()
	return e.Post("/api/send-message/text", `{"contact_id":"`+phone.Contact()+`","message":`+quoted(text)+`}`).Expect(200).
		Text("data.message_id")
}

func chatList(t *testing.T, e *parleytest.Env) {
	phone := e.Phone("6281600001001")
	empty := e.Get(screen(phone) + "/chats").Expect(200)
	wantKeys(t, empty, "", "success", "message", "data")
	if empty.Count("data") != 0 {
		t.Errorf("a phone that nobody wrote to has chats: %s", empty.Body)
	}
	writes(e, phone, "one")
	writes(e, phone, "Your code is 481516")
	phone.Expect("481516")
	list := e.Get(screen(phone) + "/chats").Expect(200)
	wantKeys(t, list, "data.0", "channel", "name", "number", "contact_id", "last", "unread", "typing", "timestamp")
	wantKeys(t, list, "data.0.last", bubbleKeys...)
	wantValue(t, list, "data.0.channel", "demo")
	wantValue(t, list, "data.0.name", "Demo")
	wantValue(t, list, "data.0.unread", 2.0)
	wantValue(t, list, "data.0.typing", false)
	wantValue(t, list, "data.0.last.body", "Your code is 481516")
	wantValue(t, list, "data.0.last.codes.0", "481516")
	wantRecent(t, list, "data.0.timestamp")
	e.Post("/api/send-message/typing", `{"contact_id":"`+phone.Contact()+`"}`).Expect(200)
	wantValue(t, e.Get(screen(phone)+"/chats"), "data.0.typing", true)
	phone.Reads()
	wantValue(t, e.Get(screen(phone)+"/chats"), "data.0.unread", 0.0)
}

func chatBubbles(t *testing.T, e *parleytest.Env) {
	phone := e.Phone("6281600001002")
	first := writes(e, phone, "hello https://example.com/x")
	phone.Expect("hello")
	bare := first[strings.LastIndex(first, "_")+1:]
	phone.Sends(`{"type":"text","message":"hi","reply_to":"` + bare + `"}`)
	in := phone.Received("hi")
	e.Put("/api/send-message/reaction", `{"message_id":"`+in+`","reaction":"🎉"}`).Expect(200)
	phone.Sends(`{"type":"reaction","message_id":"` + first + `","reaction":"👍"}`)
	gone := writes(e, phone, "oops")
	phone.Expect("oops")
	e.Delete("/api/send-message/delete?message_id=" + gone).Expect(200)
	var a *parleytest.Response
	e.Eventually("all of it shows", func() bool {
		a = e.Get(screen(phone) + "/chat").Expect(200)
		return a.Bool("data.0.deleted") && a.Text("data.1.reactions.0") == "🎉" && a.Text("data.2.reactions.0") == "👍"
	})
	wantKeys(t, a, "", "success", "message", "data", "meta")
	wantKeys(t, a, "meta", "next_cursor")
	wantValue(t, a, "meta.next_cursor", nil)
	for i := range a.Count("data") {
		wantKeys(t, a, fmt.Sprintf("data.%d", i), bubbleKeys...)
	}
	if got := column(a, "body"); !slices.Equal(got, []string{"", "hi", "hello https://example.com/x"}) {
		t.Errorf("bodies %q", got)
	}
	wantValue(t, a, "data.0.status", "DELETED")
	wantValue(t, a, "data.1.from_phone", true)
	wantValue(t, a, "data.1.message_id", in)
	wantValue(t, a, "data.1.reply_to", bare)
	wantValue(t, a, "data.2.from_phone", false)
	wantValue(t, a, "data.2.message_id", first)
	wantValue(t, a, "data.2.links.0", "https://example.com/x")
	wantValue(t, a, "data.2.deleted", false)
}

func chatKinds(t *testing.T, e *parleytest.Env) {
	phone := e.Phone("6281600001003")
	poll := e.Post("/api/send-message/poll", `{"contact_id":"`+phone.Contact()+`","title":"Lunch?","options":["Soto","Bakso"]}`).Expect(200)
	phone.Expect("Lunch?")
	phone.Sends(`{"type":"vote","message_id":"` + poll.Text("data.message_id") + `","options":["Bakso"]}`)
	phone.Sends(`{"type":"location","latitude":"-6.2","longitude":"106.8","title":"Monas"}`)
	e.Post("/api/send-message/voice", `{"contact_id":"`+phone.Contact()+`","audioUrl":"`+parleytest.Files(t)+`/hello.ogg"}`).Expect(200)
	a := e.Get(screen(phone) + "/chat").Expect(200)
	wantValue(t, a, "data.0.type", "voice")
	wantKeys(t, a, "data.0.media", "mimetype", "filename", "bytes", "width", "height", "seconds", "waveform")
	wantValue(t, a, "data.0.media.mimetype", "audio/ogg; codecs=opus")
	wantValue(t, a, "data.0.media.seconds", 1.0)
	if n := a.Count("data.0.media.waveform"); n != 64 {
		t.Errorf("a waveform of %d values", n)
	}
	wantValue(t, a, "data.1.location.title", "Monas")
	wantValue(t, a, "data.1.location.latitude", "-6.2")
	wantValue(t, a, "data.2.poll.title", "Lunch?")
	wantValue(t, a, "data.2.poll.options.1.votes", 1.0)
	wantValue(t, a, "data.2.votes.0", "Bakso")
}

func chatPages(t *testing.T, e *parleytest.Env) {
	phone := e.Phone("6281600001004")
	var want []string
	for i := range 5 {
		writes(e, phone, fmt.Sprintf("m%d", i))
		want = append([]string{fmt.Sprintf("m%d", i)}, want...)
	}
	var got []string
	for before := ""; ; {
		page := e.Get(screen(phone) + "/chat?limit=2" + before).Expect(200)
		got = append(got, column(page, "body")...)
		if page.Value("meta.next_cursor") == nil {
			break
		}
		before = "&cursor=" + page.Text("meta.next_cursor")
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func chatOffline(t *testing.T, e *parleytest.Env) {
	phone := e.Phone("6281600001005")
	writes(e, phone, "cursor")
	phone.Expect("cursor")
	e.Eventually("it was delivered", func() bool { return phone.Messages()[0].Status == "DELIVERED" })
	phone.Becomes(`{"online":false}`)
	writes(e, phone, "meanwhile")
	if got := column(e.Get(screen(phone)+"/chat").Expect(200), "body"); !slices.Equal(got, []string{"cursor"}) {
		t.Errorf("an offline phone shows %q", got)
	}
	wantValue(t, e.Get(screen(phone)+"/chats"), "data.0.unread", 1.0)
	phone.Becomes(`{"online":true}`)
	if got := column(e.Get(screen(phone)+"/chat").Expect(200), "body"); !slices.Equal(got, []string{"meanwhile", "cursor"}) {
		t.Errorf("back online it shows %q", got)
	}
}

func chatFiles(t *testing.T, e *parleytest.Env) {
	files := parleytest.Files(t)
	picture := served(t, files+"/dot.png")
	phone := e.Phone("6281600001006")
	sent := e.Post("/api/send-message/image", `{"contact_id":"`+phone.Contact()+`","file":{"url":"`+files+`/dot.png"}}`).Expect(200)
	path := screen(phone) + "/media/"
	file := e.Get(path + sent.Text("data.message_id")).Expect(200)
	if !bytes.Equal(file.Body, picture) {
		t.Errorf("%d bytes, want %d", len(file.Body), len(picture))
	}
	wantHeader(t, file, "Content-Type", "image/png")
	wantHeader(t, file, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")

	phone.Becomes(`{"online":false}`) // what it sends waits
	own := phone.Sends(`{"type":"image","file":{"url":"` + files + `/dot.png"}}`).Text("data.message_id")
	if file = e.Get(path + own).Expect(200); !bytes.Equal(file.Body, picture) {
		t.Errorf("what waits on the phone: %d bytes", len(file.Body))
	}
	phone.Becomes(`{"online":true}`)
	e.Eventually("the channel has it", func() bool {
		return e.Get(foundMessages+"/"+own+"?channel=demo", parleytest.As(e.Admin)).Status == 200
	})
	if file = e.Get(path + own).Expect(200); !bytes.Equal(file.Body, picture) {
		t.Errorf("what the channel took: %d bytes", len(file.Body))
	}

	text := writes(e, phone, "no file")
	e.Get(path+text).ExpectError(404, "no file")
	e.Get(path+"3EB0C4312F6A1D2E9B8870").ExpectError(404, "message does not exist")
	phone.Sends(`{"type":"delete","message_id":"` + own + `"}`)
	e.Get(path+own).ExpectError(404, "no file")
}

func chatBad(_ *testing.T, e *parleytest.Env) {
	for query, field := range map[string]string{"limit=0": "limit", "limit=201": "limit", "cursor=nonsense": "cursor"} {
		e.Get("/api/sandbox/phones/6281600001007/chat?" + query).ExpectFields(field)
	}
	for _, path := range []string{"/chats", "/chat", "/media/3EB0C4312F6A1D2E9B8870"} {
		e.Get("/api/sandbox/phones/abc" + path).ExpectFields("number")
	}
}
