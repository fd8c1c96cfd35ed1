package api

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/callback"
	"parley/internal/encrypt"
	"parley/internal/store"
)

const keyName = "Idempotency-Key"

// keyRoute is a route whose work the test sets.
func (e *env) keyRoute() *route {
	s := &server{config: e.config, fingerprints: e.config.Keyring.Derive("idempotency")}
	s.tx = s.config.Store.Tx
	return &route{router: &router{server: s}, method: http.MethodPost, row: row{access: ofAdmin}}
}

func (e *env) count(path string) int {
	e.t.Helper()
	r := e.call("GET", path, e.main, nil)
	r.want(e.t, 200)
	return int(r.json["meta"].(m)["total"].(float64))
}

func TestKeyReplays(t *testing.T) {
	e := newEnv(t)
	body := m{"contact_id": ayu, "message": "once"}
	first := e.call("POST", "/api/send-message/text", e.main, body, keyName, "order 17")
	first.want(t, 200)
	if first.Header.Get("Idempotent-Replayed") != "" {
		t.Error("the first one is no replay")
	}
	for what, token := range map[string]string{"same token": e.main, "Global token": e.global} {
		again := e.call("POST", "/api/send-message/text", token, body, keyName, "order 17", "X-Channel", "main")
		if again.text != first.text || again.Header.Get("Idempotent-Replayed") != "true" || again.StatusCode != 200 ||
			again.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v %s, want %s", what, again.Header, again.text, first.text)
		}
	}
	if n := e.count("/api/chat/detail?contact_id=" + ayu); n != 1 {
		t.Errorf("%d messages were sent", n)
	}
	other := e.call("POST", "/api/send-message/text", e.second, body, keyName, "order 17")
	if other.Header.Get("Idempotent-Replayed") != "" || other.text == first.text {
		t.Errorf("another channel's key: %s", other.text)
	}
	for what, r := range map[string]reply{
		"another body":   e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "twice"}, keyName, "order 17"),
		"another path":   e.call("POST", "/api/send-message/typing", e.main, m{"contact_id": ayu}, keyName, "order 17"),
		"another method": e.call("DELETE", "/api/send-message/delete?message_id=X", e.main, nil, keyName, "order 17"),
		"another query":  e.call("POST", "/api/send-message/text?x=1", e.main, body, keyName, "order 17"),
	} {
		if r.StatusCode != 422 || r.wrong()[keyName] == nil {
			t.Errorf("%s: %d %s", what, r.StatusCode, r.text)
		}
	}
}

func TestKeysThatAreNoKeys(t *testing.T) {
	e := newEnv(t)
	for _, key := range []string{"", strings.Repeat("x", 256), "é", "a\tb"} {
		r := e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "x"}, keyName, key)
		if r.StatusCode != 422 || r.wrong()[keyName] == nil {
			t.Errorf("%.20q: %d %s", key, r.StatusCode, r.text)
		}
	}
	for _, key := range []string{"x", strings.Repeat("x", 255), `"quoted"`, "a b", "~!@#"} {
		e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "x"}, keyName, key).want(t, 200)
	}
}

func TestRefusalsAreNotKept(t *testing.T) {
	e := newEnv(t)
	e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu}, keyName, "k").want(t, 422)
	e.call("POST", "/api/send-message/text", e.main, `{`, keyName, "k").want(t, 400)
	e.call("POST", "/api/manage/channels/main/stop", e.admin, nil).want(t, 200)
	body := m{"contact_id": ayu, "message": "x"}
	e.call("POST", "/api/send-message/text", e.main, body, keyName, "k").want(t, 400)
	e.call("POST", "/api/manage/channels/main/start", e.admin, nil).want(t, 200)
	r := e.call("POST", "/api/send-message/text", e.main, body, keyName, "k")
	if r.want(t, 200); r.Header.Get("Idempotent-Replayed") != "" {
		t.Errorf("a refusal was replayed: %s", r.text)
	}
	// A replay is given even while the channel could not do it again.
	e.call("POST", "/api/manage/channels/main/stop", e.admin, nil).want(t, 200)
	if r := e.call("POST", "/api/send-message/text", e.main, body, keyName, "k"); r.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%d %s", r.StatusCode, r.text)
	}
}

func TestConcurrentDuplicatesWait(t *testing.T) {
	e := newEnv(t)
	const callers = 50
	var wg sync.WaitGroup
	texts := make([]string, callers)
	replayed := make([]string, callers)
	for i := range callers {
		wg.Go(func() {
			r := e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "once"}, keyName, "same")
			texts[i], replayed[i] = r.text, r.Header.Get("Idempotent-Replayed")
		})
	}
	wg.Wait()
	firsts := 0
	for i := range callers {
		if texts[i] != texts[0] {
			t.Errorf("different answers: %s and %s", texts[i], texts[0])
		}
		if replayed[i] == "" {
			firsts++
		}
	}
	if n := e.count("/api/chat/detail?contact_id=" + ayu); n != 1 || firsts != 1 {
		t.Errorf("%d messages, %d first answers", n, firsts)
	}
}

// TestAnswerThatWasLost plays a process that died after it accepted the work: the key is there, its
// response is not.
func TestAnswerThatWasLost(t *testing.T) {
	e := newEnv(t)
	lose := func(scope, key string) {
		t.Helper()
		err := e.config.Store.Tx(t.Context(), func(tx *store.Tx) error {
			return tx.SetStoredResponse(t.Context(), store.StoredResponse{Scope: scope, Key: key})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	inbound := e.call("POST", "/api/sandbox/phones/6281234567890/send", e.main, m{"type": "text", "message": "hi"}).want(t, 200)
	own := e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "hello"}).want(t, 200)
	e.waitMessage(inbound["message_id"].(string))
	for i, c := range []struct {
		method, path, token, scope string
		body                       any
	}{
		{"POST", "/api/send-message/text", e.main, "main", m{"contact_id": ayu, "message": "a"}},
		{"POST", "/api/send-message/location", e.main, "main", m{"contact_id": ayu, "latitude": "1", "longitude": "2"}},
		{"POST", "/api/send-message/poll", e.main, "main", m{"contact_id": ayu, "title": "a", "options": []string{"x", "y"}}},
		{"PUT", "/api/send-message/reaction", e.main, "main", m{"message_id": inbound["message_id"], "reaction": "👍"}},
		{"POST", "/api/send-message/seen", e.main, "main", m{"message_id": inbound["message_id"]}},
		{"POST", "/api/chat/archive", e.main, "main", m{"contact_id": ayu}},
		{"POST", "/api/send-message/pool", e.global, "*global", m{"contact_id": ayu, "pools": []m{{"type": "text", "data": []string{"a", "b"}}}}},
		{"DELETE", "/api/send-message/delete?message_id=" + own["message_id"].(string), e.main, "main", nil},
	} {
		key := fmt.Sprint("key ", i)
		first := e.call(c.method, c.path, c.token, c.body, keyName, key)
		first.want(t, 200)
		before := e.count("/api/chat/detail?contact_id=" + ayu)
		lose(c.scope, key)
		for range 2 { // the second time from the store again
			again := e.call(c.method, c.path, c.token, c.body, keyName, key)
			again.want(t, 200)
			if again.Header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("%s: no replay", c.path)
			}
			if !sameButStatus(first.text, again.text) {
				t.Errorf("%s: %s, want %s", c.path, again.text, first.text)
			}
		}
		if after := e.count("/api/chat/detail?contact_id=" + ayu); after != before {
			t.Errorf("%s: a message was sent again", c.path)
		}
	}
}

// sameButStatus compares answers, where a message may have gone on from SENT meanwhile.
func sameButStatus(a, b string) bool {
	fold := strings.NewReplacer("DELIVERED", "SENT", `"READ"`, `"SENT"`)
	cut := func(s string) string {
		before, _, _ := strings.Cut(fold.Replace(s), `"timestamp"`)
		return before
	}
	return cut(a) == cut(b)
}

// waitMessage waits until the gateway has a message.
func (e *env) waitMessage(id string) {
	e.t.Helper()
	ref := must(parley.ParseMessageRef(id))(e.t)
	changes, stop := e.config.Gateway.Activity()
	defer stop()
	for {
		if _, err := e.config.Store.Message(e.t.Context(), "main", ref); err == nil {
			return
		}
		select {
		case <-changes:
		case <-time.After(testTimeout):
			e.t.Fatalf("message %s does not come", id)
		}
	}
}

func TestKeysOfWorkWithoutMessages(t *testing.T) {
	e := newEnv(t)
	for _, c := range []struct {
		method, path, token string
		body                any
	}{
		{"POST", "/api/send-message/typing", e.main, m{"contact_id": ayu}},
		{"POST", "/api/groups/create", e.main, m{"name": "Family", "participants": []m{{"id": ayu}}}},
		{"POST", "/api/sandbox/phones", e.main, m{}},
		{"POST", "/api/manage/channels", e.admin, m{"code": "third"}},
	} {
		first := e.call(c.method, c.path, c.token, c.body, keyName, "k"+c.path)
		again := e.call(c.method, c.path, c.token, c.body, keyName, "k"+c.path)
		if first.StatusCode >= 300 || again.StatusCode != first.StatusCode || again.text != first.text ||
			again.Header.Get("Idempotent-Replayed") != "true" || again.Header.Get("Content-Type") != first.Header.Get("Content-Type") {
			t.Errorf("%s: %d %s, then %d %s", c.path, first.StatusCode, first.text, again.StatusCode, again.text)
		}
	}
}

func TestTokensAreNotKeptUnderKeys(t *testing.T) {
	e := newEnv(t)
	body := m{"kind": "global"}
	first := e.call("POST", "/api/manage/tokens", e.admin, body, keyName, "k").want(t, 201)
	again := e.call("POST", "/api/manage/tokens", e.admin, body, keyName, "k").want(t, 201)
	if first["id"] != again["id"] || first["token"] == "" || again["token"] != "" {
		t.Errorf("first %v, again %v", first["id"], again)
	}
}

// TestKeysCountAfterTheKeyFileChanged retries a request after secret.key got a new first line.
func TestKeysCountAfterTheKeyFileChanged(t *testing.T) {
	e := newEnv(t)
	body := m{"contact_id": ayu, "message": "once"}
	send := func() reply { return e.call("POST", "/api/send-message/text", e.main, body, keyName, "k") }
	first := send()
	first.want(t, 200)
	path := filepath.Join(t.TempDir(), "key")
	fresh := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32)))
	old := must(os.ReadFile(e.keyFile))(t)
	if err := os.WriteFile(path, append([]byte(fresh+"\n"), old...), 0o600); err != nil {
		t.Fatal(err)
	}
	e.config.Keyring, e.config.Metrics = must(encrypt.OpenKeyFile(path))(t), prometheus.NewRegistry()
	e.server.Config.Handler = New(e.config)
	if again := send(); again.text != first.text || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%d %s", again.StatusCode, again.text)
	}
	body["message"] = "twice"
	send().want(t, 422)
}

// dying plays a process that dies after its first transaction: what it did there is done, and nothing after it.
func dying(db *store.DB) func(context.Context, func(*store.Tx) error) error {
	worked := false
	return func(ctx context.Context, do func(*store.Tx) error) error {
		if worked {
			return errors.New("the process died")
		}
		worked = true
		return db.Tx(ctx, do)
	}
}

func TestWorkIsDoneOnceByAProcessThatDies(t *testing.T) {
	e := newEnv(t)
	e.config.Callbacks = callback.New(callback.Config{Store: e.config.Store, Secrets: callback.NewSecrets(e.config.Store, e.config.Keyring)})
	handler := func(tx func(context.Context, func(*store.Tx) error) error) http.Handler {
		c := e.config
		c.tx, c.Metrics = tx, prometheus.NewRegistry()
		return New(c)
	}
	e.server.Config.Handler = handler(nil)
	hook := e.call("POST", "/api/manage/webhooks", e.admin, m{"url": "https://crm.example/hook"}).want(t, 201)["id"].(string)
	failed := parley.Delivery{Webhook: parley.WebhookID(hook), Event: 1, Channel: "main", State: parley.DeliveryFailed, EndedAt: time.Now()}
	if err := e.config.Store.Tx(t.Context(), func(tx *store.Tx) error {
		return tx.AddDeliveries(t.Context(),
			[]parley.Delivery{failed})
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, path string
		body         any
		secret       string // what is shown once
	}{
		{"POST", "/api/manage/tokens", m{"kind": "global"}, "token"},
		{"POST", "/api/manage/channels", m{"code": "third", "network": "sandbox"}, ""},
		{"POST", "/api/manage/webhooks", m{"url": "https://crm.example/other"}, "secret"},
		{"PATCH", "/api/manage/webhooks/" + hook, m{"enabled": false}, ""},
		{"POST", "/api/manage/webhooks/" + hook + "/rotate", nil, "secret"},
		{"POST", "/api/manage/channels/main/secret/rotate", nil, "secret"},
		{"POST", "/api/manage/deliveries/replay", m{"state": "failed"}, ""},
		{"DELETE", "/api/manage/webhooks/" + hook, nil, ""},
	} {
		e.server.Config.Handler = handler(dying(e.config.Store))
		first := e.call(c.method, c.path, e.admin, c.body, keyName, "k"+c.path+c.method)
		e.server.Config.Handler = handler(nil)
		again := e.call(c.method, c.path, e.admin, c.body, keyName, "k"+c.path+c.method)
		if first.StatusCode >= 300 || again.StatusCode != first.StatusCode || again.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s %s: %d %s, then %d %s", c.method, c.path, first.StatusCode, first.text, again.StatusCode, again.text)
			continue
		}
		one, _ := first.json["data"].(m)
		two, _ := again.json["data"].(m)
		if one["id"] != two["id"] || one["code"] != two["code"] {
			t.Errorf("%s %s: %v, then %v", c.method, c.path, one, two)
		}
		if c.secret != "" && (one[c.secret] == "" || two[c.secret] != "") {
			t.Errorf("%s %s: the %s is %v, then %v", c.method, c.path, c.secret, one[c.secret], two[c.secret])
		}
	}
	if tokens := must(e.config.Store.Tokens(t.Context()))(t); len(tokens) != 5 {
		t.Errorf("there are %d tokens", len(tokens))
	}
	if hooks := must(e.config.Store.Webhooks(t.Context()))(t); len(hooks) != 1 {
		t.Errorf("there are %d webhooks", len(hooks))
	}
}

// TestPhonesActOnceThoughTheProcessDies loses the response after the simulated network did its part.
func TestPhonesActOnceThoughTheProcessDies(t *testing.T) {
	e := newEnv(t)
	handler := func(tx func(context.Context, func(*store.Tx) error) error) http.Handler {
		c := e.config
		c.tx, c.Metrics = tx, prometheus.NewRegistry()
		return New(c)
	}
	works := handler(nil)
	e.server.Config.Handler = works
	const number = "6281234567890"
	phone := "/api/sandbox/phones/" + number
	link := e.call("POST", "/api/otp/link/request", e.main, m{"contact_id": number + "@c.us", "expires": 600}).want(t, 200)
	group := e.call("POST", "/api/groups/create", e.main, m{"name": "Family", "participants": []m{{"id": number + "@c.us"}}}).want(t, 200)
	for i, c := range []struct {
		path   string
		body   m
		again  int    // the status of the retry
		counts string // what lists what was done
		stored int    // transactions that succeed before the process dies
	}{
		{phone + "/send", m{"type": "text", "message": "once"}, 200, phone + "/chat?limit=100", 0},
		{phone + "/send", m{"type": "text", "message": "once", "group_id": group["id"]}, 200,
			phone + "/chat?limit=100&group_id=" + fmt.Sprint(group["id"]), 0},
		{phone + "/send", m{"type": "file", "file": m{"data": base64.StdEncoding.EncodeToString([]byte("a file")), "filename": "a.txt"}}, 200,
			phone + "/chat?limit=100", 1}, // that of the file
		{phone + "/open", m{"id": link["id"]}, 200, phone + "/chat?limit=100", 0},
		{"/api/sandbox/faults", m{"fault": "late"}, 409, "/api/sandbox/faults", 1}, // that of the key
		{"/api/sandbox/phones", m{}, 409, "/api/sandbox/phones", 1},
		{"/api/sandbox/clock", m{"advance": 25 * 60 * 60}, 200, "", 0},
	} {
		listed := func() int {
			if c.counts == "" {
				return int(time.Until(e.config.Gateway.Now("main")).Round(time.Minute) / time.Minute)
			}
			list := e.call("GET", c.counts, e.main, nil)
			list.want(t, 200)
			return len(slices.DeleteFunc(list.json["data"].([]any), func(row any) bool { return row.(m)["from_phone"] == false })) // replies
		}
		stored := 0
		e.server.Config.Handler = handler(func(ctx context.Context, do func(*store.Tx) error) error {
			if stored++; stored > c.stored {
				return errors.New("the process died")
			}
			return e.config.Store.Tx(ctx, do)
		})
		first := e.call("POST", c.path, e.main, c.body, keyName, fmt.Sprint("k", i))
		e.server.Config.Handler = works
		before := listed()
		again := e.call("POST", c.path, e.main, c.body, keyName, fmt.Sprint("k", i))
		if first.StatusCode != 200 || again.StatusCode != c.again {
			t.Errorf("%s: %d %s, then %d %s", c.path, first.StatusCode, first.text, again.StatusCode, again.text)
		}
		one, _ := first.json["data"].(m)
		two, _ := again.json["data"].(m)
		if c.again == 200 && (one["message_id"] != two["message_id"] || one["timestamp"] != two["timestamp"]) {
			t.Errorf("%s: %v, then %v", c.path, one, two)
		}
		if after := listed(); after != before {
			t.Errorf("%s %v was done again: %d, then %d", c.path, c.body, before, after)
		}
	}
	// After its life a key may be used again, and a fault that was refused was not added.
	e.call("POST", phone+"/send", e.main, m{"type": "text", "message": "once"}, keyName, "k0").want(t, 200)
	bad := m{"fault": "late", "to": "none"}
	e.call("POST", "/api/sandbox/faults", e.main, bad, keyName, "bad").want(t, 422)
	e.call("POST", "/api/sandbox/faults", e.main, m{"fault": "late"}, keyName, "bad").want(t, 200)
}

// TestGroupOfAProcessThatDied retries a request whose process died while the network made a group.
func TestGroupOfAProcessThatDied(t *testing.T) {
	e := newEnv(t)
	create := func(key string, who string) reply {
		return e.call("POST", "/api/groups/create", e.main, m{"name": "Family", "participants": []m{{"id": who}}}, keyName, key)
	}
	create("k", ayu).want(t, 200)
	before := e.count("/api/groups")
	err := e.config.Store.Tx(t.Context(), func(tx *store.Tx) error {
		return tx.SetStoredResponse(t.Context(), store.StoredResponse{Scope: "main", Key: "k"})
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if r := create("k", ayu); r.StatusCode != 409 || !strings.Contains(r.text, "result is unknown") {
			t.Errorf("%d %s", r.StatusCode, r.text)
		}
	}
	if n := e.count("/api/groups"); n != before {
		t.Errorf("there are %d groups, and were %d", n, before)
	}
	// What the network refused was certainly not done.
	const nobody = "6281234567899"
	e.call("POST", "/api/sandbox/phones", e.main, m{"number": nobody}).want(t, 200)
	e.call("PATCH", "/api/sandbox/phones/"+nobody, e.main, m{"on_network": false}).want(t, 200)
	create("refused", nobody+"@c.us").want(t, 400)
	e.call("PATCH", "/api/sandbox/phones/"+nobody, e.main, m{"on_network": true}).want(t, 200)
	create("refused", nobody+"@c.us").want(t, 200)
}

// TestKeysCountWhileTheClockIsDoubted looks a key up that is old only by a clock that jumped.
func TestKeysCountWhileTheClockIsDoubted(t *testing.T) {
	e := newEnv(t)
	old := store.StoredResponse{
		Scope: "*admin", Key: "k", CreatedAt: time.Now().Add(-2 * keyLife), StatusCode: 200, ContentType: "application/json", Body: []byte("{}"),
	}
	rt := e.keyRoute()
	hr := must(http.NewRequest("POST", "/x", nil))(t)
	old.Fingerprint = fingerprint(newRequest(hr), rt.fingerprints[0])
	if err := e.config.Store.Tx(t.Context(), func(tx *store.Tx) error { return tx.AddStoredResponse(t.Context(), old) }); err != nil {
		t.Fatal(err)
	}
	hr.Header.Set(keyName, "k")
	did := 0
	rt.do = func(context.Context, *request) (response, error) {
		did++
		return jsonResponse(m{})
	}
	e.ahead.Store(int64(2 * keyLife))
	for want, ahead := range []time.Duration{2 * keyLife, 0} {
		e.ahead.Store(int64(ahead))
		if _, err := rt.idempotent(t.Context(), newRequest(hr)); err != nil || did != want {
			t.Errorf("with a clock that is %s ahead the work was done %d times, %v", ahead, did, err)
		}
	}
}

func TestKeysEndAfterADay(t *testing.T) {
	e := newEnv(t)
	rt := e.keyRoute()
	made := 0
	rt.do = func(_ context.Context, r *request) (response, error) {
		made++
		return jsonResponse(m{"made": made})
	}
	old := store.StoredResponse{
		Scope: "*admin", Key: "k", Fingerprint: []byte("other"), CreatedAt: time.Now().Add(-keyLife),
		StatusCode: 200, ContentType: "application/json", Body: []byte("{}"),
	}
	if err := e.config.Store.Tx(t.Context(), func(tx *store.Tx) error { return tx.AddStoredResponse(t.Context(), old) }); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`{"made":1}`, `{"made":1}`} {
		hr := must(http.NewRequest("POST", "/x", nil))(t)
		hr.Header.Set(keyName, "k")
		r := newRequest(hr)
		a, err := rt.idempotent(t.Context(), r)
		if err != nil || string(a.body) != want {
			t.Errorf("request %d: %s, %v", i, a.body, err)
		}
	}
	// On the sandbox a day passes when the clock is moved.
	send := func() reply {
		return e.call("POST", "/api/send-message/text", e.main, m{"contact_id": ayu, "message": "x"}, keyName, "day")
	}
	send().want(t, 200)
	e.call("POST", "/api/sandbox/clock", e.main, m{"advance": 3600}).want(t, 200)
	if send().Header.Get("Idempotent-Replayed") != "true" {
		t.Error("an hour later the key is forgotten")
	}
	e.call("POST", "/api/sandbox/clock", e.main, m{"advance": 24 * 3600}).want(t, 200)
	if send().Header.Get("Idempotent-Replayed") != "" {
		t.Error("a day later the key still counts")
	}
}

// TestKeyAfterRotation retries a request after the secret key was replaced. Nobody can say that it is the same, so it is not done again.
func TestKeyAfterRotation(t *testing.T) {
	e := newEnv(t)
	body := m{"contact_id": ayu, "message": "once"}
	e.call("POST", "/api/send-message/text", e.main, body, keyName, "order 17").want(t, 200)
	if _, err := e.config.Store.EndKeyed(t.Context(), time.Time{}, time.Now(), func(*store.Tx, store.Ended) error { return nil }); err != nil {
		t.Fatal(err)
	}
	again := e.call("POST", "/api/send-message/text", e.main, body, keyName, "order 17")
	if again.StatusCode != http.StatusConflict || !strings.Contains(again.text, "before the server's secret key was rotated") {
		t.Errorf("%d %s", again.StatusCode, again.text)
	}
	if n := e.count("/api/chat/detail?contact_id=" + ayu); n != 1 {
		t.Errorf("%d messages were sent", n)
	}
}
