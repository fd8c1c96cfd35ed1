package contract_test

import (
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"parley"
	"parley/internal/parleytest"
)

// TestContractText holds POST /send-message/text to what is promised of it.
func TestContractText(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	shop := e.CreateChannel("shop")
	phone, _ := newPhone(e)
	text := endpoint{
		method: "POST", path: "text", body: object{"contact_id": phone.Contact(), "message": "Hello"},
		fields: []member{
			{name: "contact_id", kind: "string", required: true},
			{name: "message", kind: "string", required: true},
			{name: "reply_to", kind: "string"},
			{name: "linkPreview", kind: "flag"},
			{name: "linkPreviewHighQuality", kind: "flag"},
		},
	}
	part(t, e, "answer", func(e *parleytest.Env) {
		a := expectSent(text.call(e, text.body))
		expectSendData(a, phone.Contact())
		if a.Text("data.message") != "Hello" {
			e.T.Errorf("the message is %q", a.Text("data.message"))
		}
		if a.Header.Get("Content-Type") != "application/json" || a.Header.Get("Preference-Applied") != "" {
			e.T.Errorf("headers: %v", a.Header)
		}
		arrived := phone.Expect("Hello")
		if arrived.MessageID != a.Text("data.message_id") || arrived.Type != "text" || arrived.Copies != 1 || arrived.ReplyTo != "" {
			e.T.Errorf("the phone got %+v", arrived)
		}
		other := expectSent(text.call(e, text.body))
		if other.Text("data.id") == a.Text("data.id") {
			e.T.Error("two messages have one id")
		}
	})
	text.expectTypes(t, e)
	text.expectContacts(t, e)
	text.expectReplies(t, e, shop, phone)
	text.expectLengths(t, e, "message", 1, 4096, func(e *parleytest.Env, text string) {
		arrived := newest(phone)
		if arrived.Body != text {
			e.T.Errorf("%d bytes arrived, want %d", len(arrived.Body), len(text))
		}
	})
	testTextsArriveIntact(t, e, text)
	testOnePerson(t, e)
	testSeveralErrors(t, e)
	testFlags(t, e, text)
	testPreview(t, e, text)
	testPreviewNeverFails(t, e, text)
}

// newest is what reached a phone last.
func newest(phone *parleytest.Phone) parleytest.Arrived {
	arrived := phone.Messages()
	return arrived[len(arrived)-1]
}

func testTextsArriveIntact(t *testing.T, e *parleytest.Env, text endpoint) {
	for name, sent := range map[string]string{
		"lines":           "one\ntwo\r\nthree\n\n\tfour",
		"right to left":   "שלום עולם: مرحبا بالعالم (123) \u202eabc\u202c",
		"emoji":           "👩‍👩‍👧‍👦 🇮🇩 👍🏽 ❤️ 1️⃣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
		"combined":        "e\u0301 ≠ \u00e9, a\u0308\u0323, ไม่, हिन्दी",
		"blanks":          "  \u00a0 before and after \u3000 ",
		"only blanks":     "   ",
		"controls":        "bell \a, escape \x1b[31m, delete \x7f, backspace \b",
		"quotes":          `"double" 'single' \back\slash\ <b>&amp;</b> %s %d ${x} {{y}}`,
		"SQL":             "'; DROP TABLE message; --",
		"outside the BMP": "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \U0010FFFF \uFFFD \uFEFF",
		"formats":         "*bold* _italic_ ~struck~ ```code```",
	} {
		part(t, e, "intact "+name, func(e *parleytest.Env) {
			phone, _ := newPhone(e)
			a := expectSent(text.call(e, text.body.with("contact_id", phone.Contact()).with("message", sent)))
			if got := newest(phone).Body; got != sent {
				e.T.Errorf("%q arrived as %q", sent, got)
			}
			if got := a.Text("data.message"); got != sent {
				e.T.Errorf("%q is answered as %q", sent, got)
			}
			if got := findHistory(e, phone.Contact(), a.Text("data.id"))["body"]; got != sent {
				e.T.Errorf("%q is kept as %q", sent, got)
			}
		})
	}
	part(t, e, "intact when escaped", func(e *parleytest.Env) {
		phone, _ := newPhone(e)
		expectSent(e.Post("/api/send-message/text", `{"contact_id":"`+phone.Contact()+`","message":"\u0041\u00e9\ud83d\ude00\/\"\\\n\u202e"}`))
		if got, want := newest(phone).Body, "Aé😀/\"\\\n\u202e"; got != want {
			e.T.Errorf("%q arrived, want %q", got, want)
		}
	})
	for name, message := range map[string]string{"NUL": `a\u0000b`, "half a pair": `\ud83d`, "wrong half": `\ude00\ud83d`,
		"no UTF-8": "\xff\xfe"} {
		part(t, e, "refused: "+name, func(e *parleytest.Env) {
			e.Post("/api/send-message/text", `{"contact_id":"6281234567890@c.us","message":"`+message+`"}`).ExpectError(http.StatusBadRequest, ".")
		})
	}
}

// testOnePerson: the two spellings of a contact are one chat, and answers have the first.
func testOnePerson(t *testing.T, e *parleytest.Env) {
	part(t, e, "one person in two spellings", func(e *parleytest.Env) {
		phone, number := newPhone(e)
		first := expectSent(submit(e, "text", object{"contact_id": number + "@s.us", "message": "one"}))
		expectSendData(first, number+"@c.us")
		second := expectSent(submit(e, "text", object{"contact_id": number + "@c.us", "message": "two", "reply_to": first.Text("data.id")}))
		expectSendData(second, number+"@c.us")
		for _, spelling := range []string{"@c.us", "@s.us"} {
			history := e.Get("/api/chat/detail?contact_id=" + number + spelling).Expect(http.StatusOK)
			if history.Count("data") != 2 || history.Text("data.0.body") != "two" ||
				history.Text("data.1.message_id") != first.Text("data.message_id") {
				e.T.Errorf("the history of %s: %s", spelling, history.Body)
			}
		}
		if arrived := phone.Messages(); len(arrived) != 2 || arrived[0].Body != "one" || arrived[1].Body != "two" {
			e.T.Errorf("the phone got %+v", arrived)
		}
	})
}

func testSeveralErrors(t *testing.T, e *parleytest.Env) {
	part(t, e, "several errors at once", func(e *parleytest.Env) {
		two := expectInvalid(submit(e, "text", object{"contact_id": "1@c.us", "message": ""}), "contact_id", "message")
		if !strings.HasSuffix(two.Text("message"), ". (and 1 more errors)") {
			e.T.Errorf("two errors: %s", two.Body)
		}
		all := expectInvalid(submit(e, "text", object{"contact_id": 1, "message": []any{}, "reply_to": "a b", "linkPreview": "yes",
			"linkPreviewHighQuality": 2}),
			"contact_id", "message", "reply_to", "linkPreview", "linkPreviewHighQuality")
		if !strings.HasSuffix(all.Text("message"), ". (and 4 more errors)") {
			e.T.Errorf("five errors: %s", all.Body)
		}
		one := expectInvalid(submit(e, "text", object{"contact_id": "6281234567890@c.us"}), "message")
		if strings.Contains(one.Text("message"), "more error") {
			e.T.Errorf("one error: %s", one.Body)
		}
	})
}

// flagSpellings are the ways to write the two flags, as JSON.
var flagSpellings = map[string]bool{`true`: true, `"true"`: true, `1`: true, `"1"`: true, `false`: false, `"false"`: false, `0`: false,
	`"0"`: false}

func testFlags(t *testing.T, e *parleytest.Env, text endpoint) {
	for _, flag := range []string{"linkPreview", "linkPreviewHighQuality"} {
		for spelling := range flagSpellings {
			part(t, e, flag+" "+spelling, func(e *parleytest.Env) {
				expectSent(text.call(e, text.body.with(flag, json.RawMessage(spelling))))
			})
		}
		for _, bad := range []string{`"yes"`, `"no"`, `"True"`, `"FALSE"`, `" true"`, `"true "`, `""`, `"2"`, `"01"`, `2`, `-1`, `0.5`, `1.0`,
			`1e0`, `[true]`, `{"true":true}`} {
			part(t, e, flag+" "+bad, func(e *parleytest.Env) {
				expectInvalid(text.call(e, text.body.with(flag, json.RawMessage(bad))), flag)
			})
		}
	}
}

// site is a web site with pages to preview, which counts who looks.
type site struct {
	url   string
	looks atomic.Int64
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{}
	mux := http.NewServeMux()
	mux.HandleFunc("/article", func(w http.ResponseWriter, r *http.Request) {
		s.looks.Add(1)
		fmt.Fprint(w, `<html><head><title>Plain</title><meta property="og:title" content="Kopi &amp; Teh ☕">
			<meta property="og:description" content="Two drinks."><meta property="og:image" content="/wide.png"></head><body>x</body></html>`)
	})
	mux.HandleFunc("/other", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `<title>Other</title>`) })
	mux.HandleFunc("/wide.png", func(w http.ResponseWriter, r *http.Request) { png.Encode(w, image.NewRGBA(image.Rect(0, 0, 800, 40))) })
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `<title>Endless</title>`)
		for r.Context().Err() == nil {
			if _, err := fmt.Fprint(w, strings.Repeat("and so on ", 5_000)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/late-title", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `<html><head><!--`+strings.Repeat("x", 1<<20)+`--><title>Late</title>`)
	})
	mux.HandleFunc("/silent", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/broken", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "<title>Broken</title>", http.StatusInternalServerError)
	})
	mux.HandleFunc("/plain", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, "<title>No</title>")
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func testPreview(t *testing.T, e *parleytest.Env, text endpoint) {
	site, db := newSite(t), openStore(e)
	preview := func(e *parleytest.Env, body object) *parley.Preview {
		e.T.Helper()
		a := expectSent(text.call(e, body))
		content, ok := toContent(a, e, db).(parley.Text)
		if !ok || content.Body != body["message"] {
			e.T.Fatalf("what was sent is %+v", content)
		}
		return content.Preview
	}
	linked := text.body.with("message", "Read "+site.url+"/article, then "+site.url+"/other.")
	part(t, e, "preview of the first link", func(e *parleytest.Env) {
		p := preview(e, linked)
		if p == nil || p.URL != site.url+"/article" || p.Title != "Kopi & Teh ☕" || p.Description != "Two drinks." {
			e.T.Fatalf("the preview is %+v", p)
		}
		if p.Width != 400 || p.Height != 20 || len(p.Thumbnail) == 0 {
			e.T.Errorf("the picture in high quality is %d×%d, %d bytes", p.Width, p.Height, len(p.Thumbnail))
		}
	})
	for spelling, on := range flagSpellings {
		part(t, e, "linkPreview "+spelling, func(e *parleytest.Env) {
			before := site.looks.Load()
			p := preview(e, linked.with("linkPreview", json.RawMessage(spelling)))
			if looked := site.looks.Load() > before; looked != on || (p != nil) != on {
				e.T.Errorf("looked: %t, preview: %+v", looked, p)
			}
		})
		part(t, e, "linkPreviewHighQuality "+spelling, func(e *parleytest.Env) {
			width := map[bool]int{true: 400, false: 100}[on]
			if p := preview(e, linked.with("linkPreviewHighQuality", json.RawMessage(spelling))); p == nil || p.Width != width {
				e.T.Errorf("the preview is %+v, want a picture %d wide", p, width)
			}
		})
	}
	part(t, e, "no link", func(e *parleytest.Env) {
		for _, message := range []string{"No link: example.com, www.example.com, mailto:a@b.c, ftp://x.test/", "http:// https://"} {
			if p := preview(e, text.body.with("message", message)); p != nil {
				e.T.Errorf("%q has a preview %+v", message, p)
			}
		}
	})
}

func testPreviewNeverFails(t *testing.T, e *parleytest.Env, text endpoint) {
	site, db := newSite(t), openStore(e)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	bad := map[string]string{
		"nothing there": site.url + "/nowhere", "an error": site.url + "/broken", "no page": site.url + "/plain",
		"nobody listens": gone.URL, "no such host": "http://parley.invalid/", "a title beyond 1 MiB": site.url + "/late-title",
		"our own server": e.URL + "/docs", "a silent server": site.url + "/silent",
	}
	for name, url := range bad {
		part(t, e, "preview fails: "+name, func(e *parleytest.Env) {
			a := expectSent(text.call(e, text.body.with("message", "See "+url)))
			content := toContent(a, e, db).(parley.Text)
			if content.Body != "See "+url || content.Preview != nil || a.Text("data.message") != "See "+url {
				e.T.Errorf("what was sent is %+v", content)
			}
		})
	}
	part(t, e, "an endless page", func(e *parleytest.Env) {
		a := expectSent(text.call(e, text.body.with("message", "See "+site.url+"/endless")))
		if p := toContent(a, e, db).(parley.Text).Preview; p == nil || p.Title != "Endless" {
			e.T.Errorf("the preview is %+v", p)
		}
	})
	part(t, e, "many links", func(e *parleytest.Env) {
		links := slices.Repeat([]string{site.url + "/nowhere"}, 50)
		expectSent(text.call(e, text.body.with("message", strings.Join(links, " "))))
	})
}
