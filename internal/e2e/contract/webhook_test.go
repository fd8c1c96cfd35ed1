package contract_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/parleytest"
)

const webhooks = "/api/manage/webhooks"

var webhookKeys = []string{"id", "url", "channel", "events", "media_links", "enabled", "reason", "disabled_at", "failing_since",
	"failures", "warning",
	"created_at"}

// TestWebhooks holds the management of webhooks and of signing secrets to the contract.
func TestWebhooks(t *testing.T) {
	e := parleytest.Start(t)
	for name, test := range map[string]func(*testing.T, *parleytest.Env, parleytest.Option){
		"make":           webhookMake,
		"bad":            webhookBad,
		"change":         webhookChange,
		"bad changes":    webhookBadChanges,
		"switch":         webhookSwitch,
		"delete":         webhookDelete,
		"unknown":        webhookUnknown,
		"secret":         webhookSecret,
		"channel secret": channelSecret,
		"kept secrets":   webhookKeptSecrets,
		"test":           webhookTested,
	} {
		t.Run(name, func(t *testing.T) { test(t, within(t, e), parleytest.As(e.Admin)) })
	}
}

// makeWebhook makes one and returns its id and secret. It is gone after the test.
func makeWebhook(e *parleytest.Env, body string) (id, secret string) {
	e.T.Helper()
	a := e.Post(webhooks, body, parleytest.As(e.Admin)).Expect(http.StatusCreated)
	id = a.Text("data.id")
	e.T.Cleanup(func() { e.Delete(webhooks+"/"+id, parleytest.As(e.Admin)) })
	return id, a.Text("data.secret")
}

// quiet is an address where nothing listens, so that no test waits for it.
const quiet = "http://127.0.0.1:9/hook"

func webhookMake(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	e.CreateChannel("hooked")
	longest := "https://example.com/" + strings.Repeat("a", 2048-len("https://example.com/"))
	for _, c := range []struct {
		body    string
		url     string
		channel any
		events  []string
		warned  bool
	}{
		{`{"url":"https://example.com/hook"}`, "https://example.com/hook", nil, []string{}, false},
		// the same again is another
		{`{"url":"https://example.com/hook","channel":null,"events":null,"colour":"red"}`, "https://example.com/hook", nil, []string{}, false},
		// whether it may be reached is decided later
		{`{"url":"http://10.0.0.1:8080/?a=b&a=c#d","events":[]}`, "http://10.0.0.1:8080/?a=b&a=c#d", nil, []string{}, true},
		{`{"url":"HTTP://Example.com"}`, "HTTP://Example.com", nil, []string{}, true},
		{`{"url":"https://169.254.169.254/"}`, "https://169.254.169.254/", nil, []string{}, true},
		{`{"url":"` + longest + `","channel":"hooked"}`, longest, "hooked", []string{}, false},
		{`{"url":"https://example.com/","channel":"hooked","events":["message.received","otp.approved","message.received"]}`,
			"https://example.com/", "hooked", []string{"message.received", "otp.approved"}, false},
		{`{"url":"https://example.com/","events":["message.received","message.status","message.reaction","message.deleted","poll.vote",` +
			`"channel.status","channel.pairing","otp.approved","otp.failed","otp.expired","message.media"]}`,
			"https://example.com/", nil, []string{"message.received", "message.status", "message.reaction", "message.deleted", "poll.vote",
				"channel.status", "channel.pairing", "otp.approved", "otp.failed", "otp.expired", "message.media"}, false},
	} {
		made := e.Post(webhooks, c.body, admin).Expect(http.StatusCreated)
		wantKeys(t, made, "", "success", "message", "data")
		wantKeys(t, made, "data", append(slices.Clone(webhookKeys), "secret")...)
		wantSecret(t, made.Text("data.secret"))
		id := made.Text("data.id")
		one := e.Get(webhooks+"/"+id, admin).Expect(http.StatusOK)
		wantKeys(t, one, "", "success", "message", "data")
		list := e.Get(webhooks, admin).Expect(http.StatusOK)
		wantKeys(t, list, "", "success", "message", "data")
		for _, at := range []struct {
			a    *parleytest.Response
			path string
		}{{made, "data"}, {one, "data"}, {list, rowWhere(list, "id", id)}} {
			wantValue(t, at.a, at.path+".url", c.url)
			wantValue(t, at.a, at.path+".channel", c.channel)
			wantTexts(t, at.a, at.path+".events", c.events...)
			wantValue(t, at.a, at.path+".enabled", true)
			wantValue(t, at.a, at.path+".reason", "")
			wantValue(t, at.a, at.path+".disabled_at", nil)
			wantValue(t, at.a, at.path+".failing_since", nil)
			wantValue(t, at.a, at.path+".failures", 0.0)
			if got := at.a.Text(at.path + ".warning"); (got != "") != c.warned {
				t.Errorf("%s: the warning is %q", at.a.Request, got)
			}
			wantRecent(t, at.a, at.path+".created_at")
		}
		wantKeys(t, one, "data", webhookKeys...)
		wantKeys(t, list, rowWhere(list, "id", id), webhookKeys...)
	}
	list := e.Get(webhooks, admin).Expect(http.StatusOK)
	if made := column(list, "created_at"); !slices.IsSorted(made) {
		t.Errorf("not oldest first: %q", made)
	}
	for _, id := range column(list, "id") {
		e.Delete(webhooks+"/"+id, admin).Expect(http.StatusOK)
	}
}

func wantSecret(t *testing.T, secret string) {
	t.Helper()
	encoded, ok := strings.CutPrefix(secret, "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(key) < 24 || len(key) > 64 {
		t.Errorf("%q is no secret: %v", secret, err)
	}
}

func webhookBad(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	before := e.Get(webhooks, admin).Count("data")
	good := `"url":"https://example.com/hook"`
	for _, c := range []struct {
		body   string
		fields []string
	}{
		{`{}`, []string{"url"}},
		{`{"url":null}`, []string{"url"}},
		{`{"url":1}`, []string{"url"}},
		{`{"url":""}`, []string{"url"}},
		{`{"url":"example.com/hook"}`, []string{"url"}},
		{`{"url":"ftp://example.com/hook"}`, []string{"url"}},
		{`{"url":"https://"}`, []string{"url"}},
		{`{"url":"https://user:password@example.com/"}`, []string{"url"}},
		{`{"url":"https://example.com:0/"}`, []string{"url"}},
		{`{"url":"https://2130706433/"}`, []string{"url"}},
		{`{"url":"https://example.com/` + strings.Repeat("a", 2048) + `"}`, []string{"url"}},
		{`{` + good + `,"channel":""}`, []string{"channel"}},
		{`{` + good + `,"channel":1}`, []string{"channel"}},
		{`{` + good + `,"channel":"nobody"}`, []string{"channel"}},
		{`{` + good + `,"channel":"DEMO"}`, []string{"channel"}},
		{`{` + good + `,"channel":"` + strings.Repeat("x", 33) + `"}`, []string{"channel"}},
		{`{` + good + `,"events":"message.received"}`, []string{"events"}},
		{`{` + good + `,"events":{}}`, []string{"events"}},
		{`{` + good + `,"events":["message.received","message.sent"]}`, []string{"events.1"}},
		{`{` + good + `,"events":["MESSAGE.RECEIVED",""," message.received","*",1,null]}`, []string{"events.0", "events.1", "events.2",
			"events.3", "events.4", "events.5"}},
		{`{` + good + `,"events":["message.received"` + strings.Repeat(`,"message.received"`, 100) + `]}`, []string{"events"}},
		{`{"url":"x","channel":"nobody","events":[1]}`, []string{"url", "channel", "events.0"}}, // everything at once
	} {
		e.Post(webhooks, c.body, admin).ExpectFields(c.fields...)
	}
	e.Post(webhooks, `{`+good+`,"events":["message.sent"]}`, admin).ExpectError(422, "message.received, message.status,") // says what there is
	for _, body := range []string{"", "[]", "{"} {
		e.Post(webhooks, body, admin).Expect(http.StatusBadRequest)
	}
	if after := e.Get(webhooks, admin).Count("data"); after != before {
		t.Errorf("%d webhooks, want %d as before", after, before)
	}
}

func webhookChange(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	id, _ := makeWebhook(e, `{"url":"https://example.com/a","channel":"demo","events":["message.received"]}`)
	path := webhooks + "/" + id
	patch := func(body string) *parleytest.Response {
		a := e.Call("PATCH", path, body, admin).Expect(http.StatusOK)
		wantKeys(t, a, "", "success", "message", "data")
		wantKeys(t, a, "data", webhookKeys...)
		if read := e.Get(path, admin); string(mustJSON(valueAt(a, "data"))) != string(mustJSON(valueAt(read, "data"))) {
			t.Errorf("answered %s, but it is %s", a.Body, read.Body)
		}
		return a
	}
	a := patch(`{}`) // nothing changes
	wantValue(t, a, "data.url", "https://example.com/a")
	wantTexts(t, a, "data.events", "message.received")
	a = patch(`{"url":null,"events":null,"enabled":null,"channel":null,"colour":1}`)
	wantValue(t, a, "data.url", "https://example.com/a")
	wantTexts(t, a, "data.events", "message.received")
	a = patch(`{"url":"http://example.com/b"}`)
	wantValue(t, a, "data.url", "http://example.com/b")
	if a.Text("data.warning") == "" {
		t.Error("http is taken without a warning")
	}
	wantTexts(t, a, "data.events", "message.received")
	a = patch(`{"url":"https://example.com/b","events":["poll.vote","otp.failed"]}`)
	wantTexts(t, a, "data.events", "poll.vote", "otp.failed")
	wantValue(t, a, "data.warning", "")
	a = patch(`{"events":[]}`)
	wantTexts(t, a, "data.events")
	wantValue(t, a, "data.channel", "demo")
	wantValue(t, a, "data.enabled", true)
}

func webhookBadChanges(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	id, _ := makeWebhook(e, `{"url":"https://example.com/a"}`)
	for _, c := range []struct {
		body   string
		fields []string
	}{
		{`{"url":""}`, []string{"url"}},
		{`{"url":1}`, []string{"url"}},
		{`{"url":"gopher://example.com"}`, []string{"url"}},
		{`{"events":"message.received"}`, []string{"events"}},
		{`{"events":["x"]}`, []string{"events.0"}},
		{`{"enabled":1}`, []string{"enabled"}},
		{`{"enabled":"true"}`, []string{"enabled"}},
		{`{"channel":"demo"}`, []string{"channel"}}, // make another
		{`{"url":1,"events":[1],"enabled":2,"channel":3}`, []string{"url", "events.0", "enabled", "channel"}},
	} {
		e.Call("PATCH", webhooks+"/"+id, c.body, admin).ExpectFields(c.fields...)
	}
	e.Call("PATCH", webhooks+"/"+id, "", admin).Expect(http.StatusBadRequest)
	wantValue(t, e.Get(webhooks+"/"+id, admin).Expect(http.StatusOK), "data.url", "https://example.com/a")
}

func webhookSwitch(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	e.CreateChannel("switched")
	id, _ := makeWebhook(e, `{"url":"`+quiet+`","channel":"switched"}`)
	path := webhooks + "/" + id
	off := e.Call("PATCH", path, `{"enabled":false}`, admin).Expect(http.StatusOK)
	wantValue(t, off, "data.enabled", false)
	since := wantRecent(t, off, "data.disabled_at")
	if off.Text("data.reason") == "" {
		t.Error("it does not say why it is off")
	}
	again := e.Call("PATCH", path, `{"enabled":false}`, admin).Expect(http.StatusOK) // twice keeps the first time
	if got := wantRecent(t, again, "data.disabled_at"); !got.Equal(since) {
		t.Errorf("off since %s, want %s", got, since)
	}

	// Switching it on forgets that it failed.
	data := besides(t, e)
	w, err := data.Store.Webhook(t.Context(), webhookID(id))
	if err != nil {
		t.Fatal(err)
	}
	w.Failures, w.FailingSince, w.Reason = 7, time.Now().Add(-time.Hour), "It failed for five days."
	update(t, data, w)
	failing := e.Get(path, admin).Expect(http.StatusOK)
	wantValue(t, failing, "data.failures", 7.0)
	wantValue(t, failing, "data.reason", "It failed for five days.")
	on := e.Call("PATCH", path, `{"enabled":true}`, admin).Expect(http.StatusOK)
	wantValue(t, on, "data.enabled", true)
	wantValue(t, on, "data.reason", "")
	wantValue(t, on, "data.disabled_at", nil)
	wantValue(t, on, "data.failing_since", nil)
	wantValue(t, on, "data.failures", 0.0)
}

func webhookDelete(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	id, _ := makeWebhook(e, `{"url":"https://example.com/"}`)
	a := e.Delete(webhooks+"/"+id, admin).Expect(http.StatusOK)
	wantKeys(t, a, "", "success", "message", "data")
	wantKeys(t, a, "data")
	if slices.Contains(column(e.Get(webhooks, admin), "id"), id) {
		t.Error("it is still listed")
	}
	e.Get(webhooks+"/"+id, admin).Expect(http.StatusNotFound)
	e.Get(webhooks+"/"+id+"/secret", admin).Expect(http.StatusNotFound)
	e.Delete(webhooks+"/"+id, admin).Expect(http.StatusNotFound)

	// A channel takes its own with it, and only those.
	e.CreateChannel("going")
	own, _ := makeWebhook(e, `{"url":"https://example.com/","channel":"going"}`)
	all, _ := makeWebhook(e, `{"url":"https://example.com/"}`)
	e.Delete(channels+"/going", admin).Expect(http.StatusAccepted)
	e.Get(webhooks+"/"+own, admin).Expect(http.StatusNotFound)
	e.Get(webhooks+"/"+all, admin).Expect(http.StatusOK)
}

func webhookUnknown(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	for _, id := range []string{"whk_0", "%20", "x%2Fy", strings.Repeat("x", 500)} {
		path := webhooks + "/" + id
		wantOnlyMessage(t, e.Get(path, admin).Expect(http.StatusNotFound))
		wantOnlyMessage(t, e.Call("PATCH", path, `{"enabled":true}`, admin).Expect(http.StatusNotFound))
		wantOnlyMessage(t, e.Delete(path, admin).Expect(http.StatusNotFound))
		wantOnlyMessage(t, e.Post(path+"/test", "", admin).Expect(http.StatusNotFound))
		wantOnlyMessage(t, e.Get(path+"/secret", admin).Expect(http.StatusNotFound))
		wantOnlyMessage(t, e.Post(path+"/rotate", "", admin).Expect(http.StatusNotFound))
		wantOnlyMessage(t, e.Get(channels+"/"+id+"/secret", admin).Expect(http.StatusNotFound))
		wantOnlyMessage(t, e.Post(channels+"/"+id+"/secret/rotate", "", admin).Expect(http.StatusNotFound))
	}
	e.Call("PATCH", webhooks+"/whk_0", `{"enabled":1}`, admin).ExpectFields("enabled") // wrong fields are reported first
}

func webhookSecret(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	id, made := makeWebhook(e, `{"url":"https://example.com/"}`)
	_, other := makeWebhook(e, `{"url":"https://example.com/"}`)
	if made == other {
		t.Error("two webhooks have one secret")
	}
	rotated := rotates(t, e, webhooks+"/"+id+"/secret", webhooks+"/"+id+"/rotate", made)
	list := e.Get(webhooks, admin).Expect(http.StatusOK)
	one := e.Get(webhooks+"/"+id, admin).Expect(http.StatusOK)
	for _, a := range []*parleytest.Response{list, one} {
		if strings.Contains(string(a.Body), "whsec_") {
			t.Errorf("%s shows a secret", a.Request)
		}
	}
	for _, secret := range []string{made, other, rotated} {
		if e.Log.Contains(strings.TrimPrefix(secret, "whsec_")) {
			t.Error("a secret is in the log")
		}
	}
}

func channelSecret(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	e.CreateChannel("secretive")
	path := channels + "/secretive/secret"
	first := e.Get(path, admin).Expect(http.StatusOK).Text("data.secret") // made when it is first asked for
	rotates(t, e, path, path+"/rotate", first)
	if other := e.Get(channels+"/demo/secret", admin).Expect(http.StatusOK).Text("data.secret"); other == first {
		t.Error("two channels have one secret")
	}
}

// rotates checks that a secret is shown, changed and shown again. It returns the new one.
func rotates(t *testing.T, e *parleytest.Env, show, rotate, first string) string {
	t.Helper()
	admin := parleytest.As(e.Admin)
	wantSecret(t, first)
	before := e.Get(show, admin).Expect(http.StatusOK)
	wantKeys(t, before, "", "success", "message", "data")
	wantKeys(t, before, "data", "secret", "old_until")
	wantValue(t, before, "data.secret", first)
	wantValue(t, before, "data.old_until", nil)
	changed := e.Post(rotate, "", admin).Expect(http.StatusOK)
	wantKeys(t, changed, "data", "secret", "old_until")
	second := changed.Text("data.secret")
	wantSecret(t, second)
	if second == first {
		t.Error("the new secret is the old one")
	}
	until, err := time.Parse(time.RFC3339, changed.Text("data.old_until"))
	if left := time.Until(until); err != nil || left < 23*time.Hour || left > 25*time.Hour {
		t.Errorf("the old one signs until %s, want for 24 hours", changed.Text("data.old_until"))
	}
	after := e.Get(show, admin).Expect(http.StatusOK)
	wantValue(t, after, "data.secret", second)
	wantValue(t, after, "data.old_until", changed.Text("data.old_until"))
	return second
}

// webhookKeptSecrets checks that what is kept under an idempotency key holds no secret.
func webhookKeptSecrets(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	key := parleytest.With("Idempotency-Key", "one-webhook")
	made := e.Post(webhooks, `{"url":"https://example.com/once"}`, admin, key).Expect(http.StatusCreated)
	id := made.Text("data.id")
	again := e.Post(webhooks, `{"url":"https://example.com/once"}`, admin, key).Expect(http.StatusCreated)
	wantHeader(t, again, "Idempotent-Replayed", "true")
	wantValue(t, again, "data.id", id)
	wantValue(t, again, "data.secret", "")
	key = parleytest.With("Idempotency-Key", "one-rotation")
	first := e.Post(webhooks+"/"+id+"/rotate", "", admin, key).Expect(http.StatusOK)
	second := e.Post(webhooks+"/"+id+"/rotate", "", admin, key).Expect(http.StatusOK)
	wantHeader(t, second, "Idempotent-Replayed", "true")
	wantValue(t, second, "data.secret", "")
	wantValue(t, e.Get(webhooks+"/"+id+"/secret", admin), "data.secret", first.Text("data.secret"))
	e.Delete(webhooks+"/"+id, admin).Expect(http.StatusOK)
}

// webhookTested checks what an address gets as a test, and what is said of its answer.
func webhookTested(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	e.CreateChannel("tested")
	status := http.StatusNoContent
	var seen []*http.Request
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen, bodies = append(seen, r), append(bodies, string(body))
		w.WriteHeader(status)
		if status >= 300 {
			fmt.Fprint(w, "out to lunch")
		}
	}))
	defer server.Close()
	id, secret := makeWebhook(e, `{"url":"`+server.URL+`/hook","channel":"tested"}`)
	test := func() *parleytest.Response {
		a := e.Post(webhooks+"/"+id+"/test", "", admin).Expect(http.StatusOK)
		wantKeys(t, a, "", "success", "message", "data")
		wantKeys(t, a, "data", "code", "took_ms", "problem", "answer")
		return a
	}
	taken := test()
	wantValue(t, taken, "success", true)
	wantValue(t, taken, "data.code", 204.0)
	wantValue(t, taken, "data.problem", "")
	status = http.StatusTeapot
	refused := test()
	wantValue(t, refused, "success", false)
	wantValue(t, refused, "data.code", 418.0)
	wantValue(t, refused, "data.answer", "out to lunch")
	if refused.Text("data.problem") == "" {
		t.Error("it does not say what was wrong")
	}
	if len(seen) != 2 { // once each
		t.Fatalf("the address was asked %d times", len(seen))
	}
	for i, r := range seen {
		h := r.Header
		signed := h.Get("webhook-id") + "." + h.Get("webhook-timestamp") + "." + bodies[i]
		if r.Method != http.MethodPost || r.URL.Path != "/hook" || !slices.Contains(strings.Fields(h.Get("webhook-signature")),
			signature(secret, signed)) {
			t.Errorf("not signed: %s %s %v %s", r.Method, r.URL, h, bodies[i])
		}
	}
	server.Close()
	gone := test()
	wantValue(t, gone, "success", false)
	wantValue(t, gone, "data.code", nil)
	if gone.Text("data.problem") == "" {
		t.Error("it does not say what was wrong")
	}
	// A test is no delivery, and no failure.
	wantValue(t, e.Get("/api/manage/deliveries?webhook="+id, admin).Expect(http.StatusOK), "meta.total", 0.0)
	wantValue(t, e.Get(webhooks+"/"+id, admin), "data.failures", 0.0)
}

// signature makes one as Standard Webhooks says.
func signature(secret, signed string) string {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(signed))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
