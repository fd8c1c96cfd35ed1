package contract_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/app"
	"parley/internal/parleytest"
)

// sendings are all endpoints that send or do something, each with a body that it takes.
func sendings(e *parleytest.Env, files, contact, own, theirs string) []endpoint {
	file := func(name string) object { return object{"url": files + "/" + name} }
	return []endpoint{
		{method: "POST", path: "text", body: object{"contact_id": contact, "message": "Hello"}},
		{method: "POST", path: "image", body: object{"contact_id": contact, "file": file("dot.png")}},
		{method: "POST", path: "file", body: object{"contact_id": contact, "file": file("notes.txt")}},
		{method: "POST", path: "video", body: object{"contact_id": contact, "file": file("film.mp4")}},
		{method: "POST", path: "voice", body: object{"contact_id": contact, "audioUrl": files + "/hello.ogg"}},
		{method: "POST", path: "sticker", body: object{"contact_id": contact, "file": file("dot.png")}},
		{method: "POST", path: "location", body: object{"contact_id": contact, "latitude": "1", "longitude": "1"}},
		{method: "POST", path: "poll", body: object{"contact_id": contact, "title": "When?", "options": []any{"now", "later"}}},
		{method: "PUT", path: "reaction", body: object{"message_id": own, "reaction": "👍"}},
		{method: "POST", path: "seen", body: object{"message_id": theirs}},
		{method: "PUT", path: "star", body: object{"message_id": own, "starred": true}},
		{method: "POST", path: "typing", body: object{"contact_id": contact}},
		{method: "POST", path: "stop-typing", body: object{"contact_id": contact}},
		{method: "DELETE", path: "delete", body: object{"message_id": own}},
	}
}

// messages are those endpoints of sendings that send a message.
func messages(all []endpoint) []endpoint { return all[:8] }

// paced makes a channel that sends one message and lets all others wait for an hour.
func paced(e *parleytest.Env, code string) (token string) {
	e.T.Helper()
	token = e.CreateChannel(code)
	setPace(e, code, "1h")
	expectSent(submit(e, "text", object{"contact_id": "6281234567890@c.us", "message": "the one"}, parleytest.As(token)))
	return token
}

func setPace(e *parleytest.Env, code, pace string) {
	e.T.Helper()
	e.Call("PATCH", "/api/manage/channels/"+code, `{"settings":{"pace":"`+pace+`"}}`, parleytest.As(e.Admin)).Expect(http.StatusOK)
}

func readStatus(e *parleytest.Env, contact, id string, options ...parleytest.Option) string {
	e.T.Helper()
	status, _ := findHistory(e, contact, id, options...)["status"].(string)
	return status
}

// TestContractWaiting holds what is promised of sends that take their time, fail or cannot be made.
func TestContractWaiting(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	collect := testDefaultWait(e)
	t.Run("prefer", func(t *testing.T) { testPrefer(t, e) })
	t.Run("late", func(t *testing.T) { testLate(t, e) })
	t.Run("failed", func(t *testing.T) { testFailed(t, e) })
	t.Run("statuses", func(t *testing.T) { testStatuses(t, e) })
	t.Run("order", func(t *testing.T) { testOrder(t, e) })
	t.Run("reconnecting", func(t *testing.T) { testReconnecting(t, e) })
	t.Run("expiry", func(t *testing.T) { testExpiry(t, e) })
	t.Run("waiting", func(t *testing.T) { testWaitingOn(t, e) })
	t.Run("unusable", func(t *testing.T) { testUnusable(t, e) })
	t.Run("allow-list", func(t *testing.T) { testAllowList(t, e) })
	t.Run("ten seconds", collect)
}

// testDefaultWait sends something that is not confirmed, while other tests run. What it returns
// looks at the answer.
func testDefaultWait(e *parleytest.Env) (collect func(t *testing.T)) {
	token := paced(e, "patient")
	type result struct {
		answer *parleytest.Response
		err    error
		took   time.Duration
	}
	done := make(chan result, 1)
	go func() {
		began := time.Now()
		a, err := e.TryCall("POST", "/api/send-message/text", `{"contact_id":"6281234567890@c.us","message":"later"}`, parleytest.As(token))
		done <- result{a, err, time.Since(began)}
	}()
	return func(t *testing.T) {
		r := <-done
		if r.err != nil {
			t.Fatal(r.err)
		}
		r.answer.T = t
		expectPending(r.answer)
		expectSendData(r.answer, "6281234567890@c.us")
		if r.took < 10*time.Second {
			t.Errorf("the answer took only %s", r.took)
		}
	}
}

func testPrefer(t *testing.T, e *parleytest.Env) {
	for header, want := range map[string]struct{ status, applied string }{
		"": {"SENT", ""}, "respond-async": {"PENDING", "respond-async"}, "Respond-Async": {"PENDING", "respond-async"},
		"wait=0": {"PENDING", "wait=0"}, "wait=5": {"SENT", "wait=5"}, "wait=30": {"SENT", "wait=30"}, "wait=31": {"SENT", "wait=30"},
		"wait=-1": {"SENT", ""}, "wait=soon": {"SENT", ""}, "wait=1.5": {"SENT", ""}, "wait=": {"SENT", ""}, "wait": {"SENT", ""},
		"return=minimal": {"SENT", ""}, "return=minimal, respond-async": {"PENDING", "respond-async"},
	} {
		part(t, e, header, func(e *parleytest.Env) {
			phone, _ := newPhone(e)
			a := submit(e, "text", object{"contact_id": phone.Contact(), "message": "Hello"}, parleytest.With("Prefer", header)).
				Expect(http.StatusOK)
			expectSendData(a, phone.Contact())
			if !a.Bool("success") || a.Text("data.status") != want.status || a.Header.Get("Preference-Applied") != want.applied {
				e.T.Errorf("%s with Preference-Applied %q, want %q", a.Body, a.Header.Get("Preference-Applied"), want)
			}
			if arrived := phone.Expect("Hello"); arrived.MessageID != a.Text("data.message_id") {
				e.T.Errorf("the phone got %+v", arrived)
			}
		})
	}
	files := parleytest.Files(t)
	phone, _ := newPhone(e)
	own := expectSent(submit(e, "text", object{"contact_id": phone.Contact(), "message": "own"})).Text("data.message_id")
	phone.Types("theirs")
	theirs := phone.Received("theirs")
	for _, ep := range sendings(e, files, phone.Contact(), own, theirs) {
		if strings.Contains(ep.path, "typing") { // answers when it is done
			continue
		}
		part(t, e, ep.path, func(e *parleytest.Env) {
			a := expectPending(ep.call(e, ep.body, parleytest.With("Prefer", "respond-async")))
			if a.Header.Get("Preference-Applied") != "respond-async" {
				e.T.Errorf("headers: %v", a.Header)
			}
			if id := a.Text("data.id"); id != "" && ep.path != "reaction" {
				e.Eventually("it is sent", func() bool { return readStatus(e, phone.Contact(), id) != "PENDING" })
			}
		})
	}
	part(t, e, "what was asked for is done", func(e *parleytest.Env) {
		e.Eventually("it is deleted and seen", func() bool {
			return readStatus(e, phone.Contact(), toBareID(own)) == "DELETED" && readStatus(e, phone.Contact(), toBareID(theirs)) == "READ"
		})
	})
}

// testLate: a confirmation that comes after three seconds.
func testLate(t *testing.T, e *parleytest.Env) {
	part(t, e, "confirmed late", func(e *parleytest.Env) {
		phone, number := newPhone(e)
		phone.Becomes(`{"online":false}`) // a receipt would tell of the message before its confirmation
		e.Post("/api/sandbox/faults", `{"fault":"late","times":1,"to":"`+number+`"}`).Expect(http.StatusOK)
		began := time.Now()
		first := expectPending(submit(e, "text", object{"contact_id": phone.Contact(), "message": "one"}, parleytest.With("Prefer", "wait=0")))
		// waits behind it
		expectSent(submit(e, "text", object{"contact_id": phone.Contact(), "message": "two"}, parleytest.With("Prefer", "wait=30")))
		if took := time.Since(began); took < 2500*time.Millisecond {
			e.T.Errorf("the second was sent after %s, before the first was confirmed", took)
		}
		if status := readStatus(e, phone.Contact(), first.Text("data.id")); status != "SENT" {
			e.T.Errorf("the first is %s", status)
		}
		expectBodies(e, phone, "text one", "text two")
	})
}

func testFailed(t *testing.T, e *parleytest.Env) {
	files := parleytest.Files(t)
	for code, contact := range map[string]string{"not_on_network": "99912345670@c.us", "blocked": "99912345672@c.us"} {
		for _, ep := range messages(sendings(e, files, contact, "", "")) {
			part(t, e, ep.path+" "+code, func(e *parleytest.Env) {
				a := expectFailed(ep.call(e, ep.body), code)
				if got := jsonKeys(a, "data"); !slices.Equal(got, []string{"error", "id", "message", "message_id", "status", "timestamp"}) {
					e.T.Errorf("the data has %v", got)
				}
				if got := jsonKeys(a, "data.error"); !slices.Equal(got, []string{"code", "message"}) || a.Text("message") == "" {
					e.T.Errorf("the answer is %s", a.Body)
				}
				if a.Text("data.message_id") != "true_"+contact+"_"+a.Text("data.id") {
					e.T.Errorf("the ids are %s", a.Body)
				}
				row := findHistory(e, contact, a.Text("data.id"))
				reason, _ := row["error"].(map[string]any)
				if row["status"] != "FAILED" || reason["code"] != code {
					e.T.Errorf("history has %v", row)
				}
			})
		}
		part(t, e, "nothing arrived: "+code, func(e *parleytest.Env) { expectBodies(e, e.Phone(strings.TrimSuffix(contact, "@c.us"))) })
	}
	part(t, e, "a failure after the answer", func(e *parleytest.Env) {
		a := expectPending(submit(e, "text", object{"contact_id": "99912345670@c.us", "message": "x"}, parleytest.With("Prefer",
			"respond-async")))
		e.Eventually("it is failed", func() bool { return readStatus(e, "99912345670@c.us", a.Text("data.id")) == "FAILED" })
	})
	part(t, e, "refused with a reason", func(e *parleytest.Env) {
		phone, number := newPhone(e)
		e.Post("/api/sandbox/faults", `{"fault":"refuse","times":1,"to":"`+number+`","reason":"The account is full."}`).Expect(http.StatusOK)
		a := expectFailed(submit(e, "text", object{"contact_id": phone.Contact(), "message": "x"}), "refused")
		if a.Text("data.error.message") != "The account is full." {
			e.T.Errorf("the answer is %s", a.Body)
		}
		expectSent(submit(e, "text", object{"contact_id": phone.Contact(), "message": "y"})) // one failure is no other's
		expectBodies(e, phone, "text y")
	})
	part(t, e, "no new contacts for now", func(e *parleytest.Env) {
		token := e.CreateChannel("restricted")
		e.Post("/api/sandbox/faults", `{"fault":"reachout_limit","times":1}`, parleytest.As(token)).Expect(http.StatusOK)
		expectFailed(submit(e, "text", object{"contact_id": "6281234567890@c.us", "message": "x"}, parleytest.As(token)), "restricted")
		health := e.Get("/api/channel/health", parleytest.As(token)).Expect(http.StatusOK)
		until, err := time.Parse(time.RFC3339, health.Text("data.restricted_until"))
		if err != nil || time.Until(until) < time.Hour || health.Text("data.status") != "WORKING" {
			e.T.Errorf("health is %s", health.Body)
		}
		// Until the restriction ends, other first messages wait: each refusal makes it worse.
		waits := expectPending(submit(e, "text", object{"contact_id": "6281234567891@c.us", "message": "x"}, parleytest.As(token),
			parleytest.With("Prefer", "respond-async")))
		read := e.Get("/api/chat/detail?contact_id=6281234567891@c.us", parleytest.As(token)).Expect(http.StatusOK)
		if read.Text("data.0.id") != waits.Text("data.id") || read.Text("data.0.waiting.reason") != "restricted" ||
			read.Text("data.0.waiting.until") != health.Text("data.restricted_until") {
			e.T.Errorf("it waits for %s", read.Body)
		}
	})
}

func testStatuses(t *testing.T, e *parleytest.Env) {
	files := parleytest.Files(t)
	part(t, e, "delivered, read, played", func(e *parleytest.Env) {
		phone, _ := newPhone(e)
		text := expectSent(submit(e, "text", object{"contact_id": phone.Contact(), "message": "x"})).Text("data.id")
		voice := expectSent(submit(e, "voice", object{"contact_id": phone.Contact(), "audioUrl": files + "/hello.ogg"})).Text("data.id")
		are := func(ofText, ofVoice string) {
			e.T.Helper()
			e.Eventually(ofText+" and "+ofVoice, func() bool {
				return readStatus(e, phone.Contact(), text) == ofText && readStatus(e, phone.Contact(), voice) == ofVoice
			})
		}
		are("DELIVERED", "DELIVERED")
		phone.Reads()
		are("READ", "PLAYED")
		phone.Reads()
		are("READ", "PLAYED")
	})
	part(t, e, "offline", func(e *parleytest.Env) {
		const contact = "99912345671@c.us"
		id := expectSent(submit(e, "text", object{"contact_id": contact, "message": "x"})).Text("data.id")
		phone, _ := newPhone(e) // another one gets its receipts meanwhile
		other := expectSent(submit(e, "text", object{"contact_id": phone.Contact(), "message": "x"})).Text("data.id")
		e.Eventually("the other is delivered", func() bool { return readStatus(e, phone.Contact(), other) == "DELIVERED" })
		if status := readStatus(e, contact, id); status != "SENT" {
			e.T.Errorf("a message to a phone that is offline is %s", status)
		}
		if a := submit(e, "text", object{"contact_id": contact, "message": "y"}, parleytest.With("Prefer",
			"wait=1")); a.Text("data.status") != "SENT" {
			e.T.Errorf("the answer is %s", a.Body)
		}
		e.Phone("99912345671").Becomes(`{"online":true}`)
		e.Eventually("it is delivered", func() bool { return readStatus(e, contact, id) == "DELIVERED" })
	})
	part(t, e, "answering and never reading", func(e *parleytest.Env) {
		const answers, never = "99912345673@c.us", "99912345674@c.us"
		read := expectSent(submit(e, "text", object{"contact_id": answers, "message": "x"})).Text("data.id")
		unread := expectSent(submit(e, "text", object{"contact_id": never, "message": "x"})).Text("data.id")
		e.Phone("99912345673").Received("You wrote: x")
		e.Phone("99912345674").Reads()
		e.Eventually("one is read and one is not", func() bool {
			return readStatus(e, answers, read) == "READ" && readStatus(e, never, unread) == "DELIVERED"
		})
	})
}

// testOrder: what is accepted first arrives first, for each contact, however many wait.
func testOrder(t *testing.T, e *parleytest.Env) {
	part(t, e, "per contact", func(e *parleytest.Env) {
		const contacts, each = 4, 25
		var phones [contacts]*parleytest.Phone
		for i := range phones {
			phones[i], _ = newPhone(e)
		}
		failures := make([]error, contacts)
		var wg sync.WaitGroup
		for i, phone := range phones {
			wg.Go(func() {
				for n := range each {
					body := fmt.Sprintf(`{"contact_id":"%s","message":"%d"}`, phone.Contact(), n)
					a, err := e.TryCall("POST", "/api/send-message/text", body, parleytest.With("Prefer", "respond-async"))
					if err == nil && a.Status != http.StatusOK {
						err = fmt.Errorf("answer %d: %s", a.Status, a.Body)
					}
					if err != nil {
						failures[i] = err
						return
					}
				}
			})
		}
		wg.Wait()
		var want []string
		for n := range each {
			want = append(want, fmt.Sprint("text ", n))
		}
		for i, phone := range phones {
			if failures[i] != nil {
				e.T.Fatal(failures[i])
			}
			e.Eventually("all arrived", func() bool { return len(phone.Messages()) == each })
			expectBodies(e, phone, want...)
		}
	})
}

// testReconnecting: a channel whose connection broke takes messages, which wait.
func testReconnecting(t *testing.T, e *parleytest.Env) {
	part(t, e, "accepted meanwhile", func(e *parleytest.Env) {
		token := e.CreateChannel("shaky")
		as := parleytest.As(token)
		phone := e.PhoneFor(token, "6281234567890")
		e.Post("/api/sandbox/faults", `{"fault":"drop_socket","times":1}`, as).Expect(http.StatusOK)
		status := func() string { return e.Get("/api/channel/health", as).Text("data.status") }
		first := expectPending(submit(e, "text", object{"contact_id": phone.Contact(), "message": "one"}, as, parleytest.With("Prefer",
			"respond-async")))
		e.Eventually("it is reconnecting", func() bool { return status() == "RECONNECTING" })
		second := submit(e, "text", object{"contact_id": phone.Contact(), "message": "two"}, as, parleytest.With("Prefer", "respond-async"))
		expectPending(second)
		stillBroken := status() == "RECONNECTING"
		if a := pool(e, texts(phone.Contact(), "never sent"), parleytest.On("shaky")); stillBroken && status() == "RECONNECTING" {
			expectOutcomes(a, phone.Contact(), false, "text FAILED not_sent")
		}
		if !stillBroken {
			e.T.Error("the connection came back too fast to see anything")
		}
		e.Eventually("both are sent", func() bool {
			return readStatus(e, phone.Contact(), first.Text("data.id"), as) != "PENDING" && readStatus(e, phone.Contact(), second.Text("data.id"),
				as) != "PENDING"
		})
		expectBodies(e, phone, "text one", "text two") // the first was given to the network again, under its id
		if status() != "WORKING" {
			e.T.Errorf("the channel is %s", status())
		}
	})
}

func testExpiry(t *testing.T, e *parleytest.Env) {
	expires := func(e *parleytest.Env, code, token, settings string, before, after int) {
		e.T.Helper()
		as := parleytest.As(token)
		e.Call("PATCH", "/api/manage/channels/"+code, `{"settings":`+settings+`}`, parleytest.As(e.Admin)).Expect(http.StatusOK)
		contact := "6281234567891@c.us"
		id := expectPending(submit(e, "text", object{"contact_id": contact, "message": "late"}, as, parleytest.With("Prefer", "respond-async"))).
			Text("data.id")
		e.Post("/api/manage/channels/"+code+"/stop", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
		e.Post("/api/sandbox/clock", fmt.Sprintf(`{"advance":%d}`, before), as).Expect(http.StatusOK)
		if status := readStatus(e, contact, id, as); status != "PENDING" {
			e.T.Errorf("after %d s it is %s", before, status)
		}
		e.Post("/api/sandbox/clock", fmt.Sprintf(`{"advance":%d}`, after-before), as).Expect(http.StatusOK)
		e.Eventually("it is expired", func() bool { return readStatus(e, contact, id, as) == "FAILED" })
		row := findHistory(e, contact, id, as)
		if reason, _ := row["error"].(map[string]any); reason["code"] != "expired" {
			e.T.Errorf("history has %v", row)
		}
		expectBodies(e, e.PhoneFor(token, "6281234567891"))
	}
	part(t, e, "after a day", func(e *parleytest.Env) {
		expires(e, "daily", paced(e, "daily"), `{"pace":"1h"}`, 24*3600-60, 24*3600+1)
	})
	part(t, e, "as the channel says", func(e *parleytest.Env) {
		expires(e, "hasty", paced(e, "hasty"), `{"pace":"1h","ttl":"10m"}`, 9*60, 10*60+1)
	})
}

// testWaitingOn: what waits can be deleted before it is sent, and outlives a stop.
func testWaitingOn(t *testing.T, e *parleytest.Env) {
	part(t, e, "deleted, stopped, sent", func(e *parleytest.Env) {
		token := paced(e, "calm")
		as, async := parleytest.As(token), parleytest.With("Prefer", "respond-async")
		phone := e.PhoneFor(token, "6281234567891")
		var ids []string
		for _, text := range []string{"one", "two", "three"} {
			a := expectPending(submit(e, "text", object{"contact_id": phone.Contact(), "message": text}, as, async))
			ids = append(ids, a.Text("data.id"))
		}
		expectOperation(e.Delete("/api/send-message/delete?message_id="+ids[1], as, async), "PENDING", "delete")
		if status := readStatus(e, phone.Contact(), ids[1], as); status != "DELETED" {
			e.T.Errorf("a message that is deleted while it waits is %s", status)
		}
		if health := e.Get("/api/channel/health", as); health.Text("data.status") != "WORKING" {
			e.T.Errorf("health is %s", health.Body)
		}
		e.Post("/api/manage/channels/calm/stop", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
		setPace(e, "calm", "0s")
		if status := readStatus(e, phone.Contact(), ids[0], as); status != "PENDING" {
			e.T.Errorf("on a channel that is stopped it is %s", status)
		}
		e.Post("/api/manage/channels/calm/start", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
		e.Post("/api/sandbox/clock", `{"advance":3600}`, as).Expect(http.StatusOK)
		phone.Expect("three")
		expectBodies(e, phone, "text one", "text three")
	})
}

// testUnusable: on a channel that cannot send, everything is 400 with the status and the remedy,
// whatever else is wrong.
func testUnusable(t *testing.T, e *parleytest.Env) {
	files := parleytest.Files(t)
	phone, _ := newPhone(e)
	own := expectSent(submit(e, "text", object{"contact_id": phone.Contact(), "message": "own"})).Text("data.message_id")
	phone.Types("theirs")
	theirs := phone.Received("theirs")
	expectUnusable := func(t *testing.T, status, remedy string, options ...parleytest.Option) {
		t.Helper()
		part(t, e, "becomes "+status, func(e *parleytest.Env) {
			e.Eventually("the channel is "+status, func() bool {
				a := e.Post("/api/send-message/typing", `{"contact_id":"6281234567890@c.us"}`, options...)
				return a.Status == http.StatusBadRequest && strings.Contains(a.Text("message"), status)
			})
		})
		for _, ep := range sendings(e, files, phone.Contact(), own, theirs) {
			part(t, e, ep.path+" "+status, func(e *parleytest.Env) {
				for _, body := range []object{ep.body, {}} {
					a := ep.call(e, body, options...).ExpectError(http.StatusBadRequest, status)
					a.ExpectError(http.StatusBadRequest, remedy)
				}
			})
		}
	}
	manage := func(what string) {
		t.Helper()
		e.Post("/api/manage/channels/demo/"+what, "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	}
	manage("stop")
	expectUnusable(t, "STOPPED", "parley channel start demo")
	manage("start")
	e.Eventually("it works", func() bool { return e.Get("/api/channel/health").Text("data.status") == "WORKING" })
	manage("logout")
	expectUnusable(t, "LOGGED_OUT", "parley channel pair demo")
	manage("pair")
	e.Eventually("it works", func() bool { return e.Get("/api/channel/health").Text("data.status") == "WORKING" })

	if err := app.AddChannel(t.Context(), openStore(e), parley.Channel{Code: "stuck", Network: "pigeons"}); err != nil {
		t.Fatal(err)
	}
	// Has the gateway read what is stored.
	e.Call("PATCH", "/api/manage/channels/stuck", `{"name":"Stuck"}`, parleytest.As(e.Admin)).Expect(http.StatusOK)
	expectUnusable(t, "FAILED", "parley channel show stuck", parleytest.As(e.Global), parleytest.On("stuck"))
	part(t, e, "it works again", func(e *parleytest.Env) {
		expectSent(submit(e, "text", object{"contact_id": phone.Contact(), "message": "again"}))
		expectBodies(e, phone, "text own", "text again")
	})
}

// testAllowList: before a channel goes live it writes only to those that it may.
func testAllowList(t *testing.T, e *parleytest.Env) {
	files := parleytest.Files(t)
	token := e.CreateChannel("soon")
	as := parleytest.As(token)
	phone := e.PhoneFor(token, "6281234567891")
	own := expectSent(submit(e, "text", object{"contact_id": phone.Contact(), "message": "own"}, as)).Text("data.message_id")
	phone.Types("theirs")
	theirs := phone.Received("theirs")
	e.Call("PATCH", "/api/manage/channels/soon", `{"settings":{"allow_only":["6281234567890@s.us"]}}`, parleytest.As(e.Admin)).
		Expect(http.StatusOK)
	for _, ep := range sendings(e, files, phone.Contact(), own, theirs) {
		part(t, e, ep.path, func(e *parleytest.Env) {
			ep.call(e, ep.body, as).ExpectError(http.StatusForbidden, "parley channel allow soon 6281234567891")
			if _, ok := ep.body["contact_id"]; ok {
				ep.call(e, ep.body.with("contact_id", "6281234567890@c.us"), as).Expect(http.StatusOK)
				expectInvalid(ep.call(e, ep.body.with("contact_id", "x"), as), "contact_id")
			}
		})
	}
	part(t, e, "nothing arrived", func(e *parleytest.Env) { expectBodies(e, phone, "text own") })
}
