package contract_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/parleytest"
)

// TestSandboxMessages checks the list of messages that reach a phone.
func TestSandboxMessages(t *testing.T) {
	t.Parallel() // much of it is waiting
	e := parleytest.Start(t)
	for name, test := range map[string]func(*testing.T, *parleytest.Env){
		"what arrives":    sandboxArrivals,
		"queries":         sandboxQueries,
		"bad queries":     sandboxBadQueries,
		"waiting":         sandboxWaiting,
		"nothing in time": sandboxTooLate,
		"codes and links": sandboxCodes,
	} {
		t.Run(name, func(t *testing.T) { test(t, within(t, e)) })
	}
}

var arrivedKeys = []string{"message_id", "group_id", "type", "body", "codes", "links", "media", "reply_to", "status",
	"timestamp", "edited_at", "copies", "disappearing_seconds", "cursor"}

// sandboxArrivals checks every kind of message as it reaches a phone.
func sandboxArrivals(t *testing.T, e *parleytest.Env) {
	const number, path = "6281700000013", phones + "/6281700000013/messages"
	files := parleytest.Files(t)
	first := say(e, number, "first")
	sum := regexp.MustCompile(`^[0-9a-f]{64}$`)
	for _, c := range []struct {
		endpoint, fields, body string
		media                  map[string]any
	}{
		{"text", `"message":"again","reply_to":"` + toBareID(first) + `"`, "again", nil},
		{"image", `"caption":"A dot","file":{"url":"` + files + `/dot.png"}`, "A dot", map[string]any{"mimetype": "image/png",
			"filename": "dot.png", "width": 4.0, "height": 3.0}},
		{"video", `"file":{"url":"` + files + `/film.mp4","filename":"my film.mp4"}`, "", map[string]any{"mimetype": "video/mp4",
			"filename": "my film.mp4"}},
		{"file", `"caption":"Notes","file":{"url":"` + files + `/notes.txt"}`, "Notes", map[string]any{"filename": "notes.txt", "size": 13.0}},
		{"voice", `"audioUrl":"` + files + `/hello.ogg"`, "", map[string]any{"mimetype": "audio/ogg; codecs=opus", "seconds": 1.0}},
		{"sticker", `"file":{"url":"` + files + `/dot.png"}`, "", map[string]any{"mimetype": "image/webp", "filename": "dot.webp",
			"width": 512.0, "height": 512.0}},
		{"location", `"latitude":"-6.2","longitude":"106.8","title":"Monas"`, "Monas", nil},
		{"poll", `"title":"When?","options":["Now","Later"]`, "When?", nil},
	} {
		cursor := cursorNow(e)
		sent := e.Post("/api/send-message/"+c.endpoint, `{"contact_id":"`+number+`@c.us",`+c.fields+`}`).Expect(http.StatusOK)
		a := e.Get(path + "?wait=10&after=" + cursor).Expect(http.StatusOK)
		if a.Count("data") != 1 {
			t.Fatalf("%s: %s", c.endpoint, a.Body)
		}
		wantKeys(t, a, "data.0", arrivedKeys...)
		wantValue(t, a, "data.0.message_id", sent.Text("data.message_id"))
		wantValue(t, a, "data.0.type", c.endpoint)
		wantValue(t, a, "data.0.body", c.body)
		wantTexts(t, a, "data.0.codes")
		wantTexts(t, a, "data.0.links")
		wantValue(t, a, "data.0.copies", 1.0)
		wantRecent(t, a, "data.0.timestamp")
		wantKeys(t, a, "meta", "cursor")
		wantValue(t, a, "meta.cursor", a.Text("data.0.cursor"))
		if strings.Contains(c.fields, "reply_to") {
			wantValue(t, a, "data.0.reply_to", toBareID(first))
		} else {
			wantValue(t, a, "data.0.reply_to", nil)
		}
		if c.media == nil {
			wantValue(t, a, "data.0.media", nil)
			continue
		}
		for name, value := range c.media {
			wantValue(t, a, "data.0.media."+name, value)
		}
		if got := a.Text("data.0.media.sha256"); !sum.MatchString(got) || a.Number("data.0.media.size") <= 0 {
			t.Errorf("%s: the file is %v", c.endpoint, a.Value("data.0.media"))
		}
	}
	// What the phone itself says is not what reaches it.
	e.Phone(number).Types("my own words")
	e.Phone(number).Received("my own words")
	if all := e.Get(path).Expect(http.StatusOK); slices.Contains(column(all, "body"), "my own words") || all.Count("data") != 9 {
		t.Errorf("what reached the phone: %s", all.Body)
	}
	// What the channel deletes, the phone shows no more.
	e.Delete("/api/send-message/delete?message_id=" + first).Expect(http.StatusOK)
	deleted := e.Get(path).Expect(http.StatusOK)
	row := rowWhere(deleted, "message_id", first)
	wantValue(t, deleted, row+".status", "DELETED")
	wantValue(t, deleted, row+".body", "")
	if strings.Contains(string(deleted.Body), `"first"`) {
		t.Errorf("the phone still shows it: %s", deleted.Body)
	}
}

func sandboxQueries(t *testing.T, e *parleytest.Env) {
	const number, path = "6281700000014", phones + "/6281700000014/messages"
	empty := e.Get(path).Expect(http.StatusOK)
	if empty.Count("data") != 0 || empty.Text("meta.cursor") == "" {
		t.Errorf("a phone that nothing reached: %s", empty.Body)
	}
	start := cursorNow(e)
	fillChat(e, number+"@c.us", 105)
	e.Post("/api/send-message/file",
		`{"contact_id":"`+number+`@c.us","caption":"Rechnung","file":{"url":"`+parleytest.Files(t)+`/notes.txt","filename":"Jänner.TXT"}}`).
		Expect(http.StatusOK)
	say(e, number, "Straße FÜR alle")

	for _, c := range []struct {
		query       string
		count       int
		first, last string
	}{
		{"", 50, "m001", "m050"},
		{"?after=", 50, "m001", "m050"},
		{"?limit=1", 1, "m001", "m001"},
		{"?limit=100", 100, "m001", "m100"},
		{"?after=" + start, 50, "m001", "m050"},
		{"?contains=m10", 6, "m100", "m105"},
		{"?contains=M10", 6, "m100", "m105"},
		{"?contains=m10&limit=2", 2, "m100", "m101"},
		{"?contains=stra%C3%9Fe+f%C3%BCr", 1, "Straße FÜR alle", "Straße FÜR alle"},
		{"?contains=j%C3%A4nner", 1, "Rechnung", "Rechnung"}, // the name of the file
		{"?contains=nowhere", 0, "", ""},
		{"?type=file", 1, "Rechnung", "Rechnung"},
		{"?type=text&contains=alle", 1, "Straße FÜR alle", "Straße FÜR alle"},
		{"?type=voice", 0, "", ""},
		{"?type=file&contains=m0", 0, "", ""},
		{"?limit=5&wait=30", 5, "m001", "m005"}, // what is there need not be waited for
	} {
		a := e.Get(path + c.query).Expect(http.StatusOK)
		bodies := column(a, "body")
		if len(bodies) != c.count || c.count > 0 && (bodies[0] != c.first || bodies[c.count-1] != c.last) {
			t.Errorf("%q: %d messages %q, want %d from %s to %s", c.query, len(bodies), bodies, c.count, c.first, c.last)
		}
		if c.count > 0 {
			wantValue(t, a, "meta.cursor", a.Text(fmt.Sprintf("data.%d.cursor", c.count-1)))
		}
	}
	// From cursor to cursor, everything comes once and in order.
	var all []string
	for cursor := start; ; {
		a := e.Get(path + "?type=text&limit=20&after=" + cursor).Expect(http.StatusOK)
		if a.Count("data") == 0 {
			wantValue(t, a, "meta.cursor", cursor)
			break
		}
		all = append(all, column(a, "body")...)
		cursor = a.Text("meta.cursor")
	}
	if len(all) != 106 || all[0] != "m001" || all[104] != "m105" || !slices.IsSorted(all[:105]) {
		t.Errorf("from cursor to cursor: %q", all)
	}
}

func sandboxBadQueries(t *testing.T, e *parleytest.Env) {
	const path = phones + "/6281700000015/messages"
	for query, fields := range map[string][]string{
		"limit=0": {"limit"}, "limit=101": {"limit"}, "limit=x": {"limit"}, "limit=": {"limit"}, "limit=1&limit=1": {"limit"},
		"limit=1.0": {"limit"},
		"wait=-1":   {"wait"}, "wait=31": {"wait"}, "wait=soon": {"wait"}, "wait=0.5": {"wait"}, "wait=": {"wait"},
		"type=song": {"type"}, "type=": {"type"}, "type=reaction": {"type"}, "type=TEXT": {"type"}, "type=text&type=text": {"type"},
		"after=x": {"after"}, "after=c-1": {"after"}, "after=c": {"after"}, "after=c01": {"after"}, "after=%20": {"after"}, "after=" +
			strings.Repeat("c", 101): {"after"},
		"contains=" + strings.Repeat("x", 4097): {"contains"},
		"limit=0&wait=31&type=song":             {"limit", "wait", "type"},
	} {
		e.Get(path + "?" + query).ExpectFields(fields...)
	}
	e.Get(path + "?contains=" + strings.Repeat("x", 4096)).Expect(http.StatusOK)
	e.Get(path + "?wait=0&limit=1").Expect(http.StatusOK)
}

// sandboxWaiting checks that a wait ends with the message that it is for, and not before.
func sandboxWaiting(t *testing.T, e *parleytest.Env) {
	const number = "6281700000016"
	type reply struct {
		answer *parleytest.Response
		err    error
	}
	waits := func(query string) <-chan reply {
		done := make(chan reply, 1)
		go func() {
			a, err := e.TryCall("GET", phones+"/"+number+"/messages?wait=30&"+query, "")
			done <- reply{a, err}
		}()
		return done
	}
	text, film := waits("contains=second"), waits("type=video")
	after := waits("after=" + cursorNow(e))
	say(e, number, "first")
	say(e, number, "SECOND")
	e.Post("/api/send-message/video", `{"contact_id":"`+number+`@c.us","videoUrl":"`+parleytest.Files(t)+`/film.mp4"}`).Expect(http.StatusOK)
	for want, done := range map[string]<-chan reply{"SECOND": text, "": film, "first": after} {
		r := <-done
		if r.err != nil {
			t.Fatal(r.err)
		}
		wantValue(t, r.answer.Expect(http.StatusOK), "data.0.body", want)
	}
}

// sandboxTooLate checks what a wait says in which nothing matched.
func sandboxTooLate(t *testing.T, e *parleytest.Env) {
	const number, path = "6281700000017", phones + "/6281700000017/messages"
	say(e, number, "before the cursor")
	cursor := cursorNow(e)
	began := time.Now()
	nothing := e.Get(path + "?wait=1&after=" + cursor).Expect(http.StatusNotFound)
	if took := time.Since(began); took < time.Second {
		t.Errorf("it waited only for %s", took)
	}
	wantOnlyMessage(t, nothing)
	if message := nothing.Text("message"); !strings.Contains(message, number) || !strings.Contains(message, "Nothing arrived") ||
		strings.Contains(message, "before the cursor") {
		t.Errorf("nothing arrived: %q", message)
	}
	say(e, number, "Your order is on its way")
	say(e, number, "Your code is 4711")
	a := e.Get(path + "?wait=1&type=text&contains=invoice&after=" + cursor).Expect(http.StatusNotFound)
	for _, part := range []string{"text message", number, `"invoice"`, "Your order is on its way", "Your code is 4711", "2 messages"} {
		if !strings.Contains(a.Text("message"), part) {
			t.Errorf("the message %q does not have %q", a.Text("message"), part)
		}
	}
	// Without a wait nothing is no error.
	if none := e.Get(path + "?contains=invoice&after=" + cursor).Expect(http.StatusOK); none.Count("data") != 0 ||
		none.Text("meta.cursor") != cursor {
		t.Errorf("without a wait: %s", none.Body)
	}
}

func sandboxCodes(t *testing.T, e *parleytest.Env) {
	const number = "6281700000018"
	for text, want := range map[string]struct{ codes, links []string }{
		"Your code is 481516.":                                  {[]string{"481516"}, nil},
		"Kode verifikasi Anda: K7QMX2":                          {[]string{"K7QMX2"}, nil},
		"Use code abcd\nnow":                                    {nil, nil},
		"Hello there":                                           {nil, nil},
		"Call +62 812-3456-7890 before 17:30, Rp 150.000":       {nil, nil},
		"See https://example.com/a?b=1234 (and http://x.test).": {nil, []string{"https://example.com/a?b=1234", "http://x.test"}},
		"*9081* is your OTP, or open https://example.com/otp":   {[]string{"9081"}, []string{"https://example.com/otp"}},
	} {
		cursor := cursorNow(e)
		say(e, number, text)
		a := e.Get(phones + "/" + number + "/messages?wait=10&after=" + cursor).Expect(http.StatusOK)
		wantTexts(t, a, "data.0.codes", want.codes...)
		wantTexts(t, a, "data.0.links", want.links...)
	}
}
