package contract_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/parleytest"
)

// outcome is what became of one message of a pool.
type outcome struct {
	Type      string  `json:"type"`
	Status    string  `json:"status"`
	MessageID *string `json:"message_id"`
	ID        *string `json:"id"`
	Error     *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// outcomes reads the answer to a pool, which is always 200 and of one form.
func outcomes(a *parleytest.Response, success bool) (list []outcome) {
	a.T.Helper()
	a.Expect(http.StatusOK)
	message := map[bool]string{true: "OK", false: "Failed to send pool message"}[success]
	if a.Value("success") != success || a.Value("message") != message {
		a.T.Errorf("want success %t and %q: %s", success, message, a.Body)
	}
	if got := jsonKeys(a, ""); !slices.Equal(got, []string{"message", "pools", "success"}) {
		a.T.Errorf("the answer has %v", got)
	}
	text, ok := a.Value("pools").(string)
	if !ok {
		a.T.Fatalf("pools is no string: %s", a.Body)
	}
	var rows []map[string]any
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		a.T.Fatalf("pools is not the text of an array: %v: %s", err, text)
	}
	for _, row := range rows {
		var keys []string
		for key := range row {
			keys = append(keys, key)
		}
		if slices.Sort(keys); !slices.Equal(keys, []string{"error", "id", "message_id", "status", "type"}) {
			a.T.Errorf("an outcome has %v", keys)
		}
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		a.T.Fatal(err)
	}
	return list
}

// expectOutcomes demands types with their statuses, as "text SENT", where a failure has its code
// beside: "text FAILED not_sent". What was not sent has no ids, everything else has both.
func expectOutcomes(a *parleytest.Response, contact string, success bool, want ...string) []outcome {
	a.T.Helper()
	list := outcomes(a, success)
	var got []string
	for _, o := range list {
		line := o.Type + " " + o.Status
		if o.Error != nil {
			line += " " + o.Error.Code
			if !isSentence(o.Error.Message) {
				a.T.Errorf("the reason is no sentence: %q", o.Error.Message)
			}
		}
		got = append(got, line)
		switch notSent := o.Error != nil && o.Error.Code == "not_sent"; {
		case notSent && (o.ID != nil || o.MessageID != nil):
			a.T.Errorf("what was not sent has an id: %s", a.Body)
		case !notSent && (o.ID == nil || o.MessageID == nil || !bareIDForm.MatchString(*o.ID) || *o.MessageID != "true_"+contact+"_"+*o.ID):
			a.T.Errorf("the ids are wrong: %s", a.Body)
		}
	}
	if !slices.Equal(got, want) {
		a.T.Errorf("the outcomes are %q, want %q", got, want)
	}
	return list
}

// texts is a pool of texts, one for each.
func texts(contact string, messages ...any) object {
	return object{"contact_id": contact, "pools": []any{object{"type": "text", "data": messages}}}
}

// pool posts a pool with the Global token.
func pool(e *parleytest.Env, body object, options ...parleytest.Option) *parleytest.Response {
	e.T.Helper()
	return submit(e, "pool", body, append([]parleytest.Option{parleytest.As(e.Global)}, options...)...)
}

// bodiesAt lists what reached a phone, as "text Hello".
func bodiesAt(phone *parleytest.Phone) (list []string) {
	for _, m := range phone.Messages() {
		list = append(list, m.Type+" "+m.Body)
	}
	return list
}

func expectBodies(e *parleytest.Env, phone *parleytest.Phone, want ...string) {
	e.T.Helper()
	if got := bodiesAt(phone); !slices.Equal(got, want) {
		e.T.Errorf("the phone got %q, want %q", got, want)
	}
}

// TestContractPool holds POST /send-message/pool to what is promised of it.
func TestContractPool(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	g := newGallery(t)
	t.Run("sent", func(t *testing.T) { testPoolSent(t, e, g) })
	t.Run("fields", func(t *testing.T) { testPoolFields(t, e, g) })
	t.Run("bounds", func(t *testing.T) { testPoolBounds(t, e) })
	t.Run("failing", func(t *testing.T) { testPoolFailing(t, e) })
	t.Run("waiting", func(t *testing.T) { testPoolWaiting(t, e) })
	t.Run("channels", func(t *testing.T) { testPoolChannels(t, e) })
}

func testPoolSent(t *testing.T, e *parleytest.Env, g *gallery) {
	part(t, e, "objects of all types", func(e *parleytest.Env) {
		phone, _ := newPhone(e)
		first := expectSent(submit(e, "text", object{"contact_id": phone.Contact(), "message": "first"}))
		body := object{"contact_id": phone.Contact(), "pools": []any{
			object{"type": "text", "data": object{"message": "Halo 👋\nאחת", "reply_to": first.Text("data.id"), "linkPreview": "false"}},
			object{"type": "image", "data": object{"caption": "A dot", "file": object{"mimeType": "image/png", "filename": "titik.png",
				"url": g.url + "/dot.png"}}},
			object{"type": "video", "data": object{"caption": "A film", "file": object{"url": g.url + "/film.mp4"}}},
			object{"type": "video", "data": object{"videoUrl": g.url + "/film.webm"}},
			object{"type": "file", "data": object{"caption": "A list", "file": object{"url": g.url + "/notes.txt"}}},
			object{"type": "voice", "data": object{"audioUrl": g.url + "/tone.ogg"}},
			object{"type": "voice", "data": object{"file": object{"url": g.url + "/tone.ogg?of=any-end", "filename": "suara.ogg"}}},
			object{"type": "text", "data": object{"message": "last", "unheard_of": 1}, "unheard_of": 2},
		}}
		list := expectOutcomes(pool(e, body), phone.Contact(), true,
			"text SENT", "image SENT", "video SENT", "video SENT", "file SENT", "voice SENT", "voice SENT", "text SENT")
		expectBodies(e, phone, "text first", "text Halo 👋\nאחת", "image A dot", "video A film", "video ", "file A list", "voice ",
			"voice ", "text last")
		arrived := phone.Messages()
		for i, o := range list {
			if arrived[i+1].MessageID != *o.MessageID {
				e.T.Errorf("message %d is %s, want %s", i, arrived[i+1].MessageID, *o.MessageID)
			}
		}
		if arrived[1].ReplyTo != first.Text("data.id") {
			e.T.Errorf("the reply is one to %q", arrived[1].ReplyTo)
		}
	})
	part(t, e, "arrays of all types", func(e *parleytest.Env) {
		phone, number := newPhone(e)
		body := object{"contact_id": number + "@s.us", "pools": []any{
			object{"type": "text", "data": []any{"one", "two"}},
			object{"type": "image", "data": []any{g.url + "/dot.png", g.url + "/dot.jpg"}},
			object{"type": "video", "data": []any{g.url + "/film.mp4"}},
			object{"type": "file", "data": []any{g.url + "/notes.txt", g.url + "/paper.pdf"}},
			object{"type": "voice", "data": []any{g.url + "/tone.opus"}},
			object{"type": "text", "data": []any{"three"}},
		}}
		expectOutcomes(pool(e, body), phone.Contact(), true,
			"text SENT", "text SENT", "image SENT", "image SENT", "video SENT", "file SENT", "file SENT", "voice SENT", "text SENT")
		expectBodies(e, phone, "text one", "text two", "image ", "image ", "video ", "file ", "file ", "voice ", "text three")
		var files []any
		a := e.Get("/api/sandbox/phones/" + number + "/messages").Expect(http.StatusOK)
		for i := range a.Count("data") {
			if name := a.Value(fmt.Sprintf("data.%d.media.filename", i)); name != nil {
				files = append(files, name)
			}
		}
		if want := []any{"dot.png", "dot.jpg", "film.mp4", "notes.txt", "paper.pdf", "tone.opus"}; !slices.Equal(files, want) {
			e.T.Errorf("the phone got %v, want %v", files, want)
		}
	})
}

func testPoolFields(t *testing.T, e *parleytest.Env, g *gallery) {
	phone, _ := newPhone(e)
	of := func(kind string, data any, fields ...member) endpoint {
		return endpoint{
			method: "POST", path: "pool", options: []parleytest.Option{parleytest.As(e.Global)},
			body: object{"contact_id": phone.Contact(), "pools": []any{object{"type": kind, "data": data}}}, fields: fields,
		}
	}
	common := []member{
		{name: "contact_id", kind: "string", required: true},
		{name: "pools", kind: "array", required: true},
		{name: "pools.0.type", kind: "string", required: true},
		{name: "pools.0.data", kind: "object array", required: true},
	}
	within := func(name, kind string, required bool) member {
		return member{name: "pools.0.data." + name, kind: kind, required: required}
	}
	file := object{"file": object{"url": g.url + "/dot.png"}}
	fileFields := []member{within("caption", "string", false), within("file.url", "string", true), within("file.filename", "string", false),
		within("file.mimeType", "string", false), within("reply_to", "string", false)}
	wholeFile := member{name: "pools.0.data.file", kind: "object", required: true, missing: "pools.0.data.file.url"}
	text := of("text", object{"message": "Hello"}, append(common, within("message", "string", true), within("reply_to", "string", false),
		within("linkPreview", "flag", false), within("linkPreviewHighQuality", "flag", false))...)
	t.Run("text", func(t *testing.T) { text.expectTypes(t, e) })
	t.Run("image", func(t *testing.T) { of("image", file, append(fileFields, wholeFile)...).expectTypes(t, e) })
	t.Run("file", func(t *testing.T) { of("file", file, append(fileFields, wholeFile)...).expectTypes(t, e) })
	t.Run("video", func(t *testing.T) {
		of("video", object{"file": object{"url": g.url + "/film.mp4"}}, append(fileFields, wholeFile)...).expectTypes(t, e)
	})
	t.Run("voice", func(t *testing.T) {
		of("voice", object{"audioUrl": g.url + "/tone.ogg"}, within("audioUrl", "string", true), within("reply_to", "string",
			false)).expectTypes(t, e)
	})
	text.expectContacts(t, e)

	const contact = "6281234567890@c.us"
	for _, kind := range []string{"Text", "TEXT", " text", "", "location", "poll", "audio", "document", "sticker"} {
		part(t, e, fmt.Sprintf("type %q", kind), func(e *parleytest.Env) {
			expectInvalid(pool(e, object{"contact_id": contact, "pools": []any{object{"type": kind, "data": object{"message": "x"}}}}),
				"pools.0.type")
		})
	}
	for what, item := range map[string]any{"string": "Hello", "number": 7, "null": nil, "boolean": true, "array": []any{}} {
		part(t, e, "an item that is "+what, func(e *parleytest.Env) {
			expectInvalid(pool(e, object{"contact_id": contact, "pools": []any{object{"type": "text", "data": []any{"x"}}, item}}), "pools.1")
		})
		part(t, e, "a text in an array that is "+what, func(e *parleytest.Env) {
			if what == "string" {
				item = ""
			}
			expectInvalid(pool(e, texts(contact, "x", "y", item)), "pools.0.data.2")
		})
		part(t, e, "an address in an array that is "+what, func(e *parleytest.Env) {
			expectInvalid(pool(e, object{"contact_id": contact, "pools": []any{object{"type": "image", "data": []any{g.url + "/dot.png", item}}}}),
				"pools.0.data.1")
		})
	}
	part(t, e, "everything that is wrong", func(e *parleytest.Env) {
		a := expectInvalid(pool(e, object{"contact_id": "1@c.us", "pools": []any{
			object{"type": "text", "data": object{"message": ""}},
			object{"type": "image", "data": object{"caption": strings.Repeat("x", 1025), "file": object{"url": "x"}}},
			object{"type": "voice", "data": object{"audioUrl": g.url + "/tone.txt"}},
			object{"type": "text", "data": []any{"fine", strings.Repeat("é", 4097)}},
			object{"type": "video", "data": object{}},
			object{"type": "file", "data": []any{"ftp://127.0.0.1/x"}},
			object{"type": "none", "data": "x"},
			object{},
		}}), "contact_id", "pools.0.data.message", "pools.1.data.caption", "pools.1.data.file.url", "pools.2.data.audioUrl", "pools.3.data.1",
			"pools.4.data.file.url", "pools.5.data.0", "pools.6.type", "pools.6.data", "pools.7.type", "pools.7.data")
		if !strings.HasSuffix(a.Text("message"), " (and 11 more errors)") {
			e.T.Errorf("the message is %q", a.Text("message"))
		}
	})
	for name, c := range map[string]struct {
		item  object
		field string
	}{
		"a file that is not there": {object{"type": "file", "data": object{"file": object{"url": g.url + "/nowhere"}}}, "pools.1.data.file.url"},
		"a picture that is none": {object{"type": "image", "data": object{"file": object{"url": g.url + "/page.html"}}},
			"pools.1.data.file.url"},
		"a picture in an array": {object{"type": "image", "data": []any{g.url + "/dot.png", g.url + "/notes.txt"}}, "pools.1.data.1"},
		"a sound that is none":  {object{"type": "voice", "data": object{"audioUrl": g.url + "/wrong.mp3"}}, "pools.1.data.audioUrl"},
		"a sound's file": {object{"type": "voice", "data": object{"file": object{"url": g.url + "/dot.png"}}},
			"pools.1.data.file.url"},
		"a film that is none": {object{"type": "video", "data": object{"videoUrl": g.url + "/dot.png"}}, "pools.1.data.videoUrl"},
		"a reply to nothing": {object{"type": "text", "data": object{"message": "x", "reply_to": "3EB0000000000000000000"}},
			"pools.1.data.reply_to"},
		"a reply to a full id": {object{"type": "text", "data": object{"message": "x", "reply_to": "true_6281234567890@c.us_3EB0"}},
			"pools.1.data.reply_to"},
		"a text of 4097 characters": {object{"type": "text", "data": []any{strings.Repeat("字", 4097)}}, "pools.1.data.0"},
	} {
		part(t, e, "nothing is sent for "+name, func(e *parleytest.Env) {
			phone, _ := newPhone(e)
			body := object{"contact_id": phone.Contact(), "pools": []any{object{"type": "text", "data": []any{"never sent"}}, c.item,
				object{"type": "text", "data": []any{"nor this"}}}}
			expectInvalid(pool(e, body), c.field)
			expectBodies(e, phone)
		})
	}
}

func testPoolBounds(t *testing.T, e *parleytest.Env) {
	items := func(n, each int) object {
		var list []any
		for i := range n {
			var data []any
			for j := range each {
				data = append(data, fmt.Sprintf("%d.%d", i, j))
			}
			list = append(list, object{"type": "text", "data": data})
		}
		return object{"contact_id": "6281234567890@c.us", "pools": list}
	}
	for name, body := range map[string]object{
		"30 items": items(30, 1), "100 messages": items(10, 10), "one message": items(1, 1),
		"4096 characters": texts("6281234567890@c.us", strings.Repeat("😀", 4096)),
	} {
		part(t, e, name, func(e *parleytest.Env) {
			phone, _ := newPhone(e)
			var want []string
			for _, item := range body["pools"].([]any) {
				for _, text := range item.(object)["data"].([]any) {
					want = append(want, "text "+text.(string))
				}
			}
			list := outcomes(pool(e, body.with("contact_id", phone.Contact())), true)
			if len(list) != len(want) {
				e.T.Errorf("%d outcomes, want %d", len(list), len(want))
			}
			expectBodies(e, phone, want...)
		})
	}
	for name, c := range map[string]struct {
		body  object
		field string
	}{
		"no item": {object{"contact_id": "6281234567890@c.us", "pools": []any{}}, "pools"}, "31 items": {items(31, 1), "pools"},
		"no message": {items(1, 0), "pools.0.data"}, "11 messages in an item": {items(1, 11), "pools.0.data"},
		"101 messages": {items(10, 10).with("pools", append(items(10, 10)["pools"].([]any), object{"type": "text",
			"data": object{"message": "x"}})), "pools"},
	} {
		part(t, e, name, func(e *parleytest.Env) { expectInvalid(pool(e, c.body), c.field) })
	}
}

func testPoolFailing(t *testing.T, e *parleytest.Env) {
	part(t, e, "in the middle", func(e *parleytest.Env) {
		phone, number := newPhone(e)
		files := parleytest.Files(e.T)
		e.Post("/api/sandbox/faults", `{"fault":"refuse","times":1,"to":"`+number+`","type":"image","reason":"The picture is not wanted."}`).
			Expect(http.StatusOK)
		body := object{"contact_id": phone.Contact(), "pools": []any{
			object{"type": "text", "data": []any{"one"}}, object{"type": "image", "data": []any{files + "/dot.png"}},
			object{"type": "text", "data": []any{"two"}}, object{"type": "voice", "data": []any{files + "/hello.ogg"}},
		}}
		list := expectOutcomes(pool(e, body), phone.Contact(), false, "text SENT", "image FAILED refused", "text FAILED not_sent",
			"voice FAILED not_sent")
		if list[1].Error.Message != "The picture is not wanted." {
			e.T.Errorf("the reason is %q", list[1].Error.Message)
		}
		expectSent(submit(e, "text", object{"contact_id": phone.Contact(), "message": "later"}))
		expectBodies(e, phone, "text one", "text later")
		history := e.Get("/api/chat/detail?contact_id=" + phone.Contact()).Expect(http.StatusOK)
		for i, want := range []string{"later", "", "two", "", "one"} {
			if got := history.Text(fmt.Sprintf("data.%d.body", i)); got != want {
				e.T.Errorf("row %d of the history is %q, want %q", i, got, want)
			}
		}
		if history.Text("data.2.status") != "FAILED" {
			e.T.Errorf("what was not sent is %s", history.Body)
		}
	})
	for code, contact := range map[string]string{"not_on_network": "99912345670@c.us", "blocked": "99912345672@c.us"} {
		part(t, e, code, func(e *parleytest.Env) {
			expectOutcomes(pool(e, texts(contact, "one", "two", "three")), contact, false, "text FAILED "+code, "text FAILED not_sent",
				"text FAILED not_sent")
			expectOutcomes(pool(e, texts(contact, "one")), contact, false, "text FAILED "+code)
		})
	}
	part(t, e, "at the end", func(e *parleytest.Env) {
		phone, number := newPhone(e)
		e.Post("/api/sandbox/faults", `{"fault":"twice","times":2,"to":"`+number+`"}`).Expect(http.StatusOK) // harmless
		e.Post("/api/sandbox/faults", `{"fault":"refuse","times":1,"to":"`+number+`"}`).Expect(http.StatusOK)
		expectOutcomes(pool(e, texts(phone.Contact(), "one", "two", "three")), phone.Contact(), false, "text SENT", "text SENT",
			"text FAILED refused")
		expectBodies(e, phone, "text one", "text two")
	})
}

func testPoolWaiting(t *testing.T, e *parleytest.Env) {
	part(t, e, "respond-async", func(e *parleytest.Env) {
		phone, _ := newPhone(e)
		a := pool(e, texts(phone.Contact(), "one", "two"), parleytest.With("Prefer", "respond-async"))
		expectOutcomes(a, phone.Contact(), true, "text PENDING", "text PENDING")
		if got := a.Header.Get("Preference-Applied"); got != "respond-async" {
			e.T.Errorf("Preference-Applied is %q", got)
		}
		phone.Expect("two")
		expectBodies(e, phone, "text one", "text two")
	})
	part(t, e, "one wait for the whole pool", func(e *parleytest.Env) {
		phone := e.PhoneFor(paced(e, "slowpool"), "6281234567891")
		began := time.Now()
		a := pool(e, texts(phone.Contact(), "one", "two", "three"), parleytest.On("slowpool"), parleytest.With("Prefer", "wait=1"))
		if took := time.Since(began); took < time.Second {
			e.T.Errorf("the answer took only %s", took)
		}
		expectOutcomes(a, phone.Contact(), true, "text PENDING", "text PENDING", "text PENDING")
		setPace(e, "slowpool", "0s")
		phone.Expect("three")
		if got, want := bodiesAt(phone), []string{"text one", "text two", "text three"}; !slices.Equal(got, want) {
			e.T.Errorf("the phone got %q, want %q", got, want)
		}
		e.Delete("/api/manage/channels/slowpool", parleytest.As(e.Admin)).Expect(http.StatusAccepted)
	})
}

func testPoolChannels(t *testing.T, e *parleytest.Env) {
	shop := e.CreateChannel("shop")
	manage := func(e *parleytest.Env, channel, what string) {
		e.T.Helper()
		e.Post("/api/manage/channels/"+channel+"/"+what, "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	}
	works := func(e *parleytest.Env, channel string) {
		e.T.Helper()
		e.Eventually(channel+" works", func() bool {
			return e.Get("/api/channel/health", parleytest.As(e.Global), parleytest.On(channel)).Text("data.status") == "WORKING"
		})
	}
	part(t, e, "who may", func(e *parleytest.Env) {
		body := texts("6281234567890@c.us", "never sent")
		submit(e, "pool", body).ExpectError(http.StatusForbidden, "Global token")
		submit(e, "pool", body, parleytest.As(e.Admin)).ExpectError(http.StatusForbidden, "Global token")
		submit(e, "pool", body, parleytest.As("")).Expect(http.StatusUnauthorized)
		pool(e, body, parleytest.On("nowhere")).ExpectError(http.StatusBadRequest, "X-Channel")
	})
	part(t, e, "pinned", func(e *parleytest.Env) {
		for channel, token := range map[string]string{"demo": e.Token, "shop": shop} {
			_, number := newPhone(e)
			expectOutcomes(pool(e, texts(number+"@c.us", "here"), parleytest.On(channel)), number+"@c.us", true, "text SENT")
			expectBodies(e, e.PhoneFor(token, number), "text here")
		}
	})
	part(t, e, "the one that last talked with the contact", func(e *parleytest.Env) {
		for i := range 5 { // by chance this would go right once in a thousand
			for channel, token := range map[string]string{"demo": e.Token, "shop": shop} {
				_, number := newPhone(e)
				contact := number + "@c.us"
				expectSent(submit(e, "text", object{"contact_id": contact, "message": "hello from " + channel}, parleytest.As(token)))
				expectOutcomes(pool(e, texts(contact, "again")), contact, true, "text SENT")
				if got := bodiesAt(e.PhoneFor(token, number)); !slices.Equal(got, []string{"text hello from " + channel, "text again"}) {
					e.T.Errorf("contact %d of %s got %q there", i, channel, got)
				}
			}
		}
	})
	part(t, e, "what the contact wrote counts too", func(e *parleytest.Env) {
		_, number := newPhone(e)
		contact, onDemo, onShop := number+"@c.us", e.Phone(number), e.PhoneFor(shop, number)
		expectSent(submit(e, "text", object{"contact_id": contact, "message": "hello"}, parleytest.As(shop)))
		onDemo.Types("It is me")
		onDemo.Received("It is me")
		expectOutcomes(pool(e, texts(contact, "one")), contact, true, "text SENT")
		expectBodies(e, onDemo, "text one")
		onShop.Types("And here")
		onShop.Received("And here")
		expectOutcomes(pool(e, texts(contact, "two")), contact, true, "text SENT")
		expectBodies(e, onShop, "text hello", "text two")
	})
	part(t, e, "any that works", func(e *parleytest.Env) {
		_, number := newPhone(e)
		contact := number + "@c.us"
		expectSent(submit(e, "text", object{"contact_id": contact, "message": "hello"}, parleytest.As(shop)))
		manage(e, "shop", "stop")
		expectOutcomes(pool(e, texts(contact, "from the other")), contact, true, "text SENT")
		expectBodies(e, e.Phone(number), "text from the other")
		expectOutcomes(pool(e, texts(contact, "pinned"), parleytest.On("shop")), contact, false, "text FAILED not_sent")
		manage(e, "shop", "start")
		works(e, "shop")
		manage(e, "shop", "logout")
		e.Eventually("shop is logged out", func() bool {
			return e.Get("/api/channel/health", parleytest.As(shop)).Text("data.status") == "LOGGED_OUT"
		})
		expectOutcomes(pool(e, texts(contact, "pinned"), parleytest.On("shop")), contact, false, "text FAILED not_sent")
		manage(e, "shop", "pair")
		works(e, "shop")
		expectBodies(e, e.PhoneFor(shop, number), "text hello")
	})
	part(t, e, "none works", func(e *parleytest.Env) {
		manage(e, "shop", "stop")
		manage(e, "demo", "stop")
		body := object{"contact_id": "6281234567890@c.us", "pools": []any{
			object{"type": "text", "data": []any{"never", "sent"}}, object{"type": "image", "data": []any{"http://127.0.0.1:9/never-fetched.png"}},
		}}
		for _, options := range [][]parleytest.Option{nil, {parleytest.On("demo")}, {parleytest.On("shop")}} {
			expectOutcomes(pool(e, body, options...), "6281234567890@c.us", false, "text FAILED not_sent", "text FAILED not_sent",
				"image FAILED not_sent")
		}
		expectInvalid(pool(e, body.with("pools.0.data.1", "")), "pools.0.data.1")
		for _, channel := range []string{"demo", "shop"} {
			manage(e, channel, "start")
			works(e, channel)
		}
		for _, token := range []string{e.Token, shop} {
			if got := bodiesAt(e.PhoneFor(token, "6281234567890")); slices.Contains(got, "text never") {
				e.T.Errorf("what was not sent arrived later: %q", got)
			}
		}
	})
	part(t, e, "contacts that are not allowed", func(e *parleytest.Env) {
		allow := func(channel, list string) {
			e.Call("PATCH", "/api/manage/channels/"+channel, `{"settings":{"allow_only":[`+list+`]}}`, parleytest.As(e.Admin)).Expect(http.StatusOK)
		}
		_, number := newPhone(e)
		contact := number + "@c.us"
		allow("demo", `"6281234567890@c.us"`)
		pool(e, texts(contact, "x"), parleytest.On("demo")).ExpectError(http.StatusForbidden, "parley channel allow demo "+number)
		expectOutcomes(pool(e, texts(contact, "by the one that may")), contact, true, "text SENT")
		expectBodies(e, e.PhoneFor(shop, number), "text by the one that may")
		allow("shop", `"6281234567890@c.us"`)
		pool(e, texts(contact, "x")).ExpectError(http.StatusForbidden, "parley channel allow ")
		expectOutcomes(pool(e, texts("6281234567890@s.us", "allowed")), "6281234567890@c.us", true, "text SENT")
		allow("demo", "")
		allow("shop", "")
	})
}
