package product_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"parley/internal/parleytest"
	"parley/internal/store"
)

const ayu = "6281234567890@c.us"

// key is the option that sends an idempotency key.
func key(k string) parleytest.Option { return parleytest.With("Idempotency-Key", k) }

func isReplay(a *parleytest.Response) bool { return a.Header.Get("Idempotent-Replayed") == "true" }

// expectReplay fails the test where an answer is not the first one again.
func expectReplay(t *testing.T, first, second *parleytest.Response) {
	t.Helper()
	if isReplay(first) || !isReplay(second) {
		t.Errorf("%s: replayed is %v, then %v", first.Request, isReplay(first), isReplay(second))
	}
	if second.Status != first.Status || string(second.Body) != string(first.Body) ||
		second.Header.Get("Content-Type") != first.Header.Get("Content-Type") {
		t.Errorf("%s: answered %d %s, then %d %s", first.Request, first.Status, first.Body, second.Status, second.Body)
	}
}

// TestOneKeyManyRequests sends one request with one key 200 times at once.
func TestOneKeyManyRequests(t *testing.T) {
	e := parleytest.Start(t)
	const requests = 200
	answers := make([]*parleytest.Response, requests)
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range requests {
		wg.Go(func() {
			<-start
			var err error
			answers[i], err = e.TryCall("POST", "/api/send-message/text", `{"contact_id":"`+ayu+`","message":"only once"}`, key("order-1"))
			if err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	replays := 0
	for _, a := range answers {
		a.Expect(http.StatusOK)
		if string(a.Body) != string(answers[0].Body) {
			t.Errorf("two answers differ: %s and %s", a.Body, answers[0].Body)
		}
		if isReplay(a) {
			replays++
		}
	}
	if replays != requests-1 {
		t.Errorf("%d of %d answers are replays", replays, requests)
	}
	if got := e.Phone("6281234567890").Messages(); len(got) != 1 || got[0].Copies != 1 ||
		got[0].MessageID != answers[0].Text("data.message_id") {
		t.Errorf("the phone got %+v", got)
	}
	if total := e.Get("/api/chat/detail?contact_id=" + ayu).Number("meta.total"); total != 1 {
		t.Errorf("the history has %d messages", total)
	}
}

// TestKeyScopes checks among which requests a key is one key.
func TestKeyScopes(t *testing.T) {
	e := parleytest.Start(t)
	other := e.CreateChannel("shop")
	const path, body = "/api/send-message/text", `{"contact_id":"` + ayu + `","message":"Hello"}`
	first := e.Post(path, body, key("k")).Expect(http.StatusOK)
	expectReplay(t, first, e.Post(path, body, key("k")))

	t.Run("another request", func(t *testing.T) {
		refused := map[string]*parleytest.Response{
			"one byte more": e.Post(path, body+" ", key("k")),
			"another byte":  e.Post(path, strings.Replace(body, "Hello", "Hallo", 1), key("k")),
			"another query": e.Post(path+"?x=1", body, key("k")),
			"another path":  e.Post("/api/send-message/typing", body, key("k")),
			"another method": e.Put("/api/send-message/reaction", `{"message_id":"`+first.Text("data.message_id")+`","reaction":"👍"}`,
				key("k")),
			"no body at all":   e.Delete("/api/send-message/delete?message_id="+first.Text("data.message_id"), key("k")),
			"of the sandbox":   e.Post("/api/sandbox/phones", "", key("k")),
			"with bad content": e.Post(path, `{"contact_id":"`+ayu+`","message":""}`, key("k")),
		}
		for name, a := range refused {
			if a.Status != http.StatusUnprocessableEntity {
				t.Errorf("%s: answer %d: %s", name, a.Status, a.Body)
			}
			if name != "with bad content" {
				a.ExpectFields("Idempotency-Key")
			}
		}
	})
	t.Run("another token", func(t *testing.T) {
		expectReplay(t, first, e.Post(path, body, key("k"), parleytest.As(e.CreateToken("channel", "demo"))))
		expectReplay(t, first, e.Post(path, body, key("k"), parleytest.As(e.Global), parleytest.On("demo")))
	})
	t.Run("another channel", func(t *testing.T) {
		a := e.Post(path, body, key("k"), parleytest.As(other)).Expect(http.StatusOK)
		if isReplay(a) || a.Text("data.id") == first.Text("data.id") {
			t.Errorf("another channel got the answer of this one: %s", a.Body)
		}
		e.PhoneFor(other, "6281234567890").Expect("Hello")
	})
	t.Run("the longest key", func(t *testing.T) {
		long := key(strings.Repeat("k", 255))
		expectReplay(t, e.Post(path, body, long).Expect(http.StatusOK), e.Post(path, body, long))
		spaced := key("a key: with, \"all\" ~ printable {characters}")
		expectReplay(t, e.Post(path, body, spaced).Expect(http.StatusOK), e.Post(path, body, spaced))
	})
	t.Run("another preference", func(t *testing.T) { // it is no part of the request
		expectReplay(t, first, e.Post(path, body, key("k"), parleytest.With("Prefer", "respond-async")))
	})
	t.Run("a day later", func(t *testing.T) {
		e.Post("/api/sandbox/clock", `{"advance":86400}`).Expect(http.StatusOK)
		a := e.Post(path, body, key("k")).Expect(http.StatusOK)
		if isReplay(a) || a.Text("data.id") == first.Text("data.id") {
			t.Errorf("the key still counts after 24 hours: %s", a.Body)
		}
	})
}

// TestKeysOnEveryKindOfRequest repeats one request of each kind and compares.
func TestKeysOnEveryKindOfRequest(t *testing.T) {
	e := parleytest.Start(t)
	files := parleytest.Files(t)
	phone := e.Phone("6281234567890")
	phone.Types("react to me")
	theirs := phone.Received("react to me")
	mine := e.Post("/api/send-message/text", `{"contact_id":"`+ayu+`","message":"delete me"}`).Expect(http.StatusOK).Text("data.message_id")
	const send, manage = "/api/send-message/", "/api/manage/channels"
	fill := strings.NewReplacer("AYU", ayu, "FILES", files, "MINE", mine, "THEIRS", theirs)
	for _, r := range []struct{ method, path, body, as string }{
		{"POST", send + "text", `{"contact_id":"AYU","message":"one"}`, e.Token},
		{"POST", send + "image", `{"contact_id":"AYU","file":{"url":"FILES/dot.png"}}`, e.Token},
		{"POST", send + "video", `{"contact_id":"AYU","videoUrl":"FILES/film.mp4"}`, e.Token},
		{"POST", send + "file", `{"contact_id":"AYU","file":{"url":"FILES/notes.txt"}}`, e.Token},
		{"POST", send + "voice", `{"contact_id":"AYU","audioUrl":"FILES/hello.ogg"}`, e.Token},
		{"POST", send + "sticker", `{"contact_id":"AYU","file":{"url":"FILES/dot.png"}}`, e.Token},
		{"POST", send + "location", `{"contact_id":"AYU","latitude":"1","longitude":"2"}`, e.Token},
		{"POST", send + "poll", `{"contact_id":"AYU","title":"?","options":["a","b"]}`, e.Token},
		{"POST", send + "pool", `{"contact_id":"AYU","pools":[{"type":"text","data":["two","three"]}]}`, e.Global},
		{"PUT", send + "reaction", `{"message_id":"THEIRS","reaction":"👍"}`, e.Token},
		{"POST", send + "seen", `{"message_id":"THEIRS"}`, e.Token},
		{"PUT", send + "star", `{"message_id":"THEIRS","starred":true}`, e.Token},
		{"POST", send + "typing", `{"contact_id":"AYU"}`, e.Token},
		{"POST", send + "stop-typing", `{"contact_id":"AYU"}`, e.Token},
		{"DELETE", send + "delete?message_id=MINE", ``, e.Token},
		{"POST", "/api/chat/archive", `{"contact_id":"AYU"}`, e.Token},
		{"POST", "/api/chat/un-archive", `{"contact_id":"AYU"}`, e.Token},
		{"POST", "/api/groups/create", `{"name":"Family","participants":[{"id":"AYU"}]}`, e.Token},
		{"POST", "/api/sandbox/phones", ``, e.Token},
		{"PATCH", "/api/sandbox/phones/6281234567890", `{"name":"Ayu"}`, e.Token},
		{"POST", "/api/sandbox/phones/6281234567890/send", `{"type":"text","message":"said once"}`, e.Token},
		{"POST", "/api/sandbox/phones/6281234567890/read", ``, e.Token},
		{"POST", "/api/sandbox/clock", `{"advance":60}`, e.Token},
		{"POST", manage, `{"code":"shop"}`, e.Admin},
		{"PATCH", manage + "/shop", `{"name":"Toko"}`, e.Admin},
		{"POST", manage + "/shop/stop", ``, e.Admin},
		{"POST", manage + "/shop/start", ``, e.Admin},
		{"DELETE", manage + "/shop", ``, e.Admin},
	} {
		k := key("key of " + r.method + " " + r.path)
		first := e.Call(r.method, fill.Replace(r.path), fill.Replace(r.body), k, parleytest.As(r.as))
		if first.Status >= 300 {
			t.Errorf("%s %s: answer %d: %s", r.method, r.path, first.Status, first.Body)
		}
		expectReplay(t, first, e.Call(r.method, fill.Replace(r.path), fill.Replace(r.body), k, parleytest.As(r.as)))
	}

	// What was said and made twice over happened once.
	for _, text := range []string{"one", "two", "three", "?"} {
		if n := len(having(phone.Messages(), text)); n != 1 {
			t.Errorf("the phone has %q %d times", text, n)
		}
	}
	phone.Received("said once")
	history := string(e.Get("/api/chat/detail?limit=100&contact_id=" + ayu).Body)
	if n := strings.Count(history, `"said once"`); n != 1 {
		t.Errorf("the history has it %d times", n)
	}
	if n := strings.Count(string(e.Get("/api/groups").Body), `"Family"`); n != 1 {
		t.Errorf("the group is there %d times", n)
	}
}

// having picks the messages with a text.
func having(list []parleytest.Arrived, body string) (some []parleytest.Arrived) {
	for _, m := range list {
		if m.Body == body {
			some = append(some, m)
		}
	}
	return some
}

// TestTokensAreShownOnce checks that a retry does not show a token again, which is nowhere stored.
func TestTokensAreShownOnce(t *testing.T) {
	e := parleytest.Start(t)
	const path, body = "/api/manage/tokens", `{"kind":"global","name":"shop"}`
	first := e.Post(path, body, key("t"), parleytest.As(e.Admin)).Expect(http.StatusCreated)
	second := e.Post(path, body, key("t"), parleytest.As(e.Admin)).Expect(http.StatusCreated)
	if !isReplay(second) || second.Text("data.id") != first.Text("data.id") || second.Text("data.token") != "" {
		t.Errorf("made %s, and again: %s", first.Text("data.id"), second.Body)
	}
	if n := strings.Count(string(e.Get(path, parleytest.As(e.Admin)).Body), `"shop"`); n != 1 {
		t.Errorf("%d tokens were made", n)
	}
}

// TestKeyAfterRefusal checks that a request that was refused has not used its key up.
func TestKeyAfterRefusal(t *testing.T) {
	e := parleytest.Start(t)
	const path = "/api/send-message/text"
	e.Post(path, `{"contact_id":"`+ayu+`","message":""}`, key("k")).ExpectFields("message")
	e.Post(path, `{"contact_id":`, key("k")).Expect(http.StatusBadRequest)
	e.Post(path, `{}`, key("k"), parleytest.As(e.Global), parleytest.On("nope")).Expect(http.StatusBadRequest)
	e.Post("/api/manage/channels/demo/stop", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	e.Post(path, `{"contact_id":"`+ayu+`","message":"Hello"}`, key("k")).Expect(http.StatusBadRequest) // the channel is stopped
	pool := e.Post("/api/send-message/pool", `{"contact_id":"`+ayu+`","pools":[{"type":"text","data":["Hello"]}]}`, key("k"),
		parleytest.As(e.Global))
	if pool.Expect(http.StatusOK).Bool("success") {
		t.Errorf("a pool without a channel: %s", pool.Body)
	}
	e.Post("/api/manage/channels/demo/start", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	first := e.Post(path, `{"contact_id":"`+ayu+`","message":"Hello"}`, key("k")).Expect(http.StatusOK)
	expectReplay(t, first, e.Post(path, `{"contact_id":"`+ayu+`","message":"Hello"}`, key("k")))
	e.Eventually("the pool is sent with the same key", func() bool {
		again := e.Post("/api/send-message/pool", `{"contact_id":"`+ayu+`","pools":[{"type":"text","data":["Hello"]}]}`, key("k"),
			parleytest.As(e.Global))
		return again.Bool("success") && !isReplay(again)
	})

	// A refusal by the network is an answer like any other: the work was accepted.
	e.Post("/api/sandbox/faults", `{"fault":"refuse","reason":"No."}`).Expect(http.StatusOK)
	refused := e.Post(path, `{"contact_id":"`+ayu+`","message":"Refused"}`, key("refused")).Expect(http.StatusOK)
	if refused.Bool("success") {
		t.Errorf("it was not refused: %s", refused.Body)
	}
	expectReplay(t, refused, e.Post(path, `{"contact_id":"`+ayu+`","message":"Refused"}`, key("refused")))
}

// TestKeysSurviveRestarts repeats requests after the process ended, also one whose answer was lost:
// it is then given from the current message.
func TestKeysSurviveRestarts(t *testing.T) {
	e := parleytest.Start(t)
	const path, body = "/api/send-message/text", `{"contact_id":"` + ayu + `","message":"Hello"}`
	const pool = `{"contact_id":"` + ayu + `","pools":[{"type":"text","data":["One","Two"]}]}`
	kept := e.Post(path, body, key("kept")).Expect(http.StatusOK)
	lost := e.Post(path, body, key("lost"), parleytest.With("Prefer", "respond-async")).Expect(http.StatusOK)
	lostPool := e.Post("/api/send-message/pool", pool, key("lost"), parleytest.As(e.Global)).Expect(http.StatusOK)
	e.Phone("6281234567890").Expect("Two")
	e.Restart()
	expectReplay(t, kept, e.Post(path, body, key("kept")))
	expectReplay(t, lost, e.Post(path, body, key("lost")))

	eraseResponse(t, e, "demo", "lost")
	eraseResponse(t, e, "*global", "lost")
	again := e.Post(path, body, key("lost")).Expect(http.StatusOK)
	if !isReplay(again) || again.Text("data.message_id") != lost.Text("data.message_id") || again.Text("data.status") == "PENDING" {
		t.Errorf("answered %s, and after the loss %v %s", lost.Body, isReplay(again), again.Body)
	}
	e.Post(path, body+" ", key("lost")).ExpectFields("Idempotency-Key")
	pooled := e.Post("/api/send-message/pool", pool, key("lost"), parleytest.As(e.Global)).Expect(http.StatusOK)
	if !isReplay(pooled) || !pooled.Bool("success") || ids(pooled.Text("pools")) != ids(lostPool.Text("pools")) {
		t.Errorf("answered %s, and after the loss %v %s", lostPool.Body, isReplay(pooled), pooled.Body)
	}
	expectStored(t, again, e.Post(path, body, key("lost")))
	if got := e.Phone("6281234567890").Messages(); len(got) != 4 {
		t.Errorf("the phone got %d messages: %+v", len(got), got)
	}
}

// expectStored is expectReplay for an answer that was a replay already.
func expectStored(t *testing.T, first, second *parleytest.Response) {
	t.Helper()
	if !isReplay(second) || string(second.Body) != string(first.Body) {
		t.Errorf("answered %s, then %s", first.Body, second.Body)
	}
}

// ids keeps only the ids of a pool's outcome.
func ids(pools string) (list string) {
	for part := range strings.SplitSeq(pools, `"`) {
		if strings.HasPrefix(part, "true_") {
			list += part + " "
		}
	}
	return list
}

// eraseResponse leaves a key as a crash between accepting and answering would: stored, without its
// answer.
func eraseResponse(t *testing.T, e *parleytest.Env, scope, k string) {
	t.Helper()
	data := e.OpenData()
	defer data.Close()
	err := data.Store.Tx(t.Context(), func(tx *store.Tx) error {
		a, err := tx.StoredResponse(t.Context(), scope, k)
		if err != nil {
			return err
		}
		a.StatusCode, a.ContentType, a.Body = 0, "", nil
		return tx.SetStoredResponse(t.Context(), a)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRespondAsync checks that a caller that does not want to wait always gets the same answer, not
// SENT now and then because the network was fast.
func TestRespondAsync(t *testing.T) {
	e := parleytest.Start(t)
	for range 200 {
		a := e.Post("/api/send-message/text", `{"contact_id":"`+ayu+`","message":"Hello"}`, parleytest.With("Prefer", "respond-async")).
			Expect(http.StatusOK)
		if a.Text("data.status") != "PENDING" || a.Header.Get("Preference-Applied") != "respond-async" {
			t.Fatalf("answered %v %s", a.Header, a.Body)
		}
	}
}

// TestWebhooksCarryTheRequestID follows one send by the id that its caller gave it.
func TestWebhooksCarryTheRequestID(t *testing.T) {
	e := parleytest.Start(t)
	ids := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { ids <- r.Header.Get("X-Request-Id") }))
	defer server.Close()
	e.Post("/api/manage/webhooks", `{"url":"`+server.URL+`","events":["message.status","message.received"]}`, parleytest.As(e.Admin)).
		Expect(http.StatusCreated)
	e.Post("/api/send-message/text", `{"contact_id":"6281234567890@c.us","message":"Halo"}`, parleytest.With("X-Request-Id", "order-4711")).
		Expect(http.StatusOK)
	for range 2 { // SENT, DELIVERED
		if id := <-ids; id != "order-4711" {
			t.Errorf("the event has %q", id)
		}
	}
	e.Phone("6281234567890").Types("thanks")
	if id := <-ids; id == "order-4711" || len(id) < 16 || strings.TrimSpace(id) != id {
		t.Errorf("an inbound message has %q", id)
	}
}
