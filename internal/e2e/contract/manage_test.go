package contract_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/parleytest"
)

const (
	channels = "/api/manage/channels"
	tokens   = "/api/manage/tokens"
)

var (
	channelKeys = []string{"code", "name", "network", "simulated", "number", "status", "reason", "since", "enabled", "settings", "pace",
		"created_at", "evidence",
		"paired_at", "pairing", "last_inbound_at", "last_confirmed_at", "waiting", "sent_24h", "failed_24h", "faults", "labels"}
	tokenKeys = []string{"id", "name", "kind", "channel", "role", "created_at", "expires_at", "last_used_at", "last_used_from", "user_agent",
		"revoked_at", "dev"}
)

// TestManagement holds the management API to the contract.
func TestManagement(t *testing.T) {
	e := parleytest.Start(t)
	for name, test := range map[string]func(*testing.T, *parleytest.Env, parleytest.Option){
		"channels":         manageChannels,
		"codes":            manageCodes,
		"settings":         manageSettings,
		"bad channels":     manageBadChannels,
		"change":           manageChange,
		"start and stop":   manageStartAndStop,
		"pair and log out": managePairing,
		"delete":           manageDelete,
		"unknown channels": manageUnknown,
		"allow-list":       manageAllowList,
		"tokens":           manageTokens,
		"bad tokens":       manageBadTokens,
		"revoke":           manageRevoke,
		"shown once":       manageShownOnce,
	} {
		t.Run(name, func(t *testing.T) { test(t, within(t, e), parleytest.As(e.Admin)) })
	}
}

func manageChannels(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	made := e.Post(channels, `{"code":"shop","name":"Toko Ayu","network":"sandbox","colour":"red"}`, admin).Expect(http.StatusCreated)
	wantKeys(t, made, "", "success", "message", "data")
	wantKeys(t, made, "data", channelKeys...)
	wantKeys(t, made, "data.settings") // nothing but defaults
	wantValue(t, made, "success", true)
	wantValue(t, made, "data.code", "shop")
	wantValue(t, made, "data.name", "Toko Ayu")
	wantValue(t, made, "data.network", "sandbox")
	wantValue(t, made, "data.enabled", true)
	wantRecent(t, made, "data.created_at")
	var one *parleytest.Response
	e.Eventually("it works", func() bool {
		one = e.Get(channels+"/shop", admin).Expect(http.StatusOK)
		return one.Text("data.status") == "WORKING"
	})
	wantKeys(t, one, "", "success", "message", "data")
	wantKeys(t, one, "data", channelKeys...)
	wantValue(t, one, "data.reason", "")
	wantRecent(t, one, "data.since")
	wantValue(t, one, "data.created_at", made.Text("data.created_at"))
	health := e.Get("/api/channel/health", parleytest.As(e.Global), parleytest.On("shop"))
	if got, want := one.Text("data.number"), fmt.Sprint(health.Number("data.phone.number")); got != want || !strings.HasPrefix(got, "999") {
		t.Errorf("its number is %q, and in its health %q", got, want)
	}

	e.Post(channels, `{"code":"plain"}`, admin).Expect(http.StatusCreated) // with the rest by default
	plain := e.Get(channels+"/plain", admin).Expect(http.StatusOK)
	wantValue(t, plain, "data.name", "plain")
	wantValue(t, plain, "data.network", "sandbox")
	nulls := e.Post(channels, `{"code":"nulls","name":null,"network":null,"settings":null}`, admin).Expect(http.StatusCreated)
	wantValue(t, nulls, "data.name", "nulls")

	list := e.Get(channels, admin).Expect(http.StatusOK)
	wantKeys(t, list, "", "success", "message", "data", "meta")
	wantKeys(t, list, "meta", "next_cursor", "total", "statuses", "networks", "labels", "faults")
	codes := column(list, "code")
	if list.Number("meta.total") != len(codes) {
		t.Errorf("%d channels are listed, of %d in all", len(codes), list.Number("meta.total"))
	}
	for _, code := range []string{"demo", "shop", "plain", "nulls"} {
		if !slices.Contains(codes, code) {
			t.Errorf("%s is not listed: %q", code, codes)
		}
	}
	if !slices.IsSorted(codes) {
		t.Errorf("not in order: %q", codes)
	}
	for i := range codes {
		wantKeys(t, list, fmt.Sprintf("data.%d", i), channelKeys...)
	}
}

func manageCodes(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	for _, code := range []string{"a", "0", "9_-z", strings.Repeat("c", 32)} {
		wantValue(t, e.Post(channels, `{"code":"`+code+`"}`, admin).Expect(http.StatusCreated), "data.code", code)
		wantValue(t, e.Get(channels+"/"+code, admin).Expect(http.StatusOK), "data.code", code)
		e.Post(channels, `{"code":"`+code+`"}`, admin).ExpectFields("code").ExpectError(422, "already exists")
	}
	for _, code := range []string{`""`, `"A"`, `"Shop"`, `"-a"`, `"_a"`, `"a b"`, `"a.b"`, `"a/b"`, `"é"`, `"a\n"`,
		quoted(strings.Repeat("c", 33)), quoted(strings.Repeat("c", 2000)),
		`1`, `true`, `null`, `["a"]`, `{}`} {
		e.Post(channels, `{"code":`+code+`}`, admin).ExpectFields("code")
	}
	e.Post(channels, `{}`, admin).ExpectFields("code")
}

func manageSettings(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	for i, c := range []struct {
		settings string
		want     map[string]any
	}{
		{`{}`, map[string]any{}},
		{`{"pace":"1h"}`, map[string]any{"pace": "1h"}},
		{`{"pace":"0s"}`, map[string]any{}},
		{`{"ttl":"1s"}`, map[string]any{"ttl": "1s"}},
		{`{"ttl":"720h"}`, map[string]any{"ttl": "720h"}},
		{`{"retention":"0s"}`, map[string]any{"retention": "0s"}},
		{`{"retention":"876000h"}`, map[string]any{"retention": "876000h"}}, // a hundred years
		{`{"pace":null,"ttl":null,"retention":null,"allow_only":null,"colour":1}`, map[string]any{}},
		{`{"allow_only":[]}`, map[string]any{}},
		{`{"pace":"1.5s","ttl":"90m","retention":"24h","allow_only":["6282000000001@s.us","6282000000002@c.us"]}`,
			map[string]any{"pace": "1.5s", "ttl": "1h30m", "retention": "24h"}},
	} {
		code := fmt.Sprintf("settings%d", i)
		made := e.Post(channels, `{"code":"`+code+`","settings":`+c.settings+`}`, admin).Expect(http.StatusCreated)
		for _, a := range []*parleytest.Response{made, e.Get(channels+"/"+code, admin).Expect(http.StatusOK)} {
			keys := []string{}
			for name, value := range c.want {
				keys = append(keys, name)
				wantValue(t, a, "data.settings."+name, value)
			}
			if strings.Contains(c.settings, "@") {
				keys = append(keys, "allow_only")
				wantTexts(t, a, "data.settings.allow_only", "6282000000001@c.us", "6282000000002@c.us")
			}
			wantKeys(t, a, "data.settings", keys...)
		}
	}
}

func manageBadChannels(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	before := e.Get(channels, admin).Count("data")
	many := `["6282000000001@c.us"` + strings.Repeat(`,"6282000000001@c.us"`, 1000) + `]`
	for _, c := range []struct {
		body   string
		fields []string
	}{
		{`{"code":"bad","name":""}`, []string{"name"}},
		{`{"code":"bad","name":1}`, []string{"name"}},
		{`{"code":"bad","name":"` + strings.Repeat("é", 61) + `"}`, []string{"name"}},
		{`{"code":"bad","network":"smoke"}`, []string{"network"}},
		{`{"code":"bad","network":""}`, []string{"network"}},
		{`{"code":"bad","network":1}`, []string{"network"}},
		{`{"code":"bad","settings":[]}`, []string{"settings"}},
		{`{"code":"bad","settings":"x"}`, []string{"settings"}},
		{`{"code":"bad","settings":{"pace":5}}`, []string{"settings.pace"}},
		{`{"code":"bad","settings":{"pace":"-1s"}}`, []string{"settings.pace"}},
		{`{"code":"bad","settings":{"pace":"1h1s"}}`, []string{"settings.pace"}},
		{`{"code":"bad","settings":{"pace":"5"}}`, []string{"settings.pace"}},
		{`{"code":"bad","settings":{"pace":""}}`, []string{"settings.pace"}},
		{`{"code":"bad","settings":{"ttl":"0s"}}`, []string{"settings.ttl"}},
		{`{"code":"bad","settings":{"ttl":"999ms"}}`, []string{"settings.ttl"}},
		{`{"code":"bad","settings":{"ttl":"720h1s"}}`, []string{"settings.ttl"}},
		{`{"code":"bad","settings":{"retention":"-1s"}}`, []string{"settings.retention"}},
		{`{"code":"bad","settings":{"retention":"876001h"}}`, []string{"settings.retention"}},
		{`{"code":"bad","settings":{"retention":"a week"}}`, []string{"settings.retention"}},
		{`{"code":"bad","settings":{"allow_only":"6282000000001@c.us"}}`, []string{"settings.allow_only"}},
		{`{"code":"bad","settings":{"allow_only":` + many + `}}`, []string{"settings.allow_only"}},
		{`{"code":"bad","settings":{"allow_only":[1,"x","6282000000001@c.us",null,"x@g.us","1@g.us"]}}`,
			[]string{"settings.allow_only.0", "settings.allow_only.1", "settings.allow_only.3", "settings.allow_only.4"}},
		{`{"code":"BAD","name":"","network":"smoke","settings":{"pace":1,"ttl":1,"retention":1,"allow_only":1}}`,
			[]string{"code", "name", "network", "settings.pace", "settings.ttl", "settings.retention", "settings.allow_only"}},
	} {
		e.Post(channels, c.body, admin).ExpectFields(c.fields...)
	}
	for _, body := range []string{"", "[]", "{"} {
		e.Post(channels, body, admin).Expect(http.StatusBadRequest)
	}
	if after := e.Get(channels, admin).Count("data"); after != before {
		t.Errorf("%d channels, want %d as before", after, before)
	}
	wantValue(t, e.Post(channels, `{"code":"longname","name":"`+strings.Repeat("é", 60)+`"}`, admin).Expect(http.StatusCreated),
		"data.name", strings.Repeat("é", 60))
}

func manageChange(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	e.Post(channels, `{"code":"changing","name":"Before","settings":{"ttl":"2h","pace":"1s"}}`, admin).Expect(http.StatusCreated)
	for _, c := range []struct {
		body, name string
		settings   map[string]any
	}{
		{`{}`, "Before", map[string]any{"ttl": "2h", "pace": "1s"}},
		{`{"name":"After"}`, "After", map[string]any{"ttl": "2h", "pace": "1s"}},
		{`{"name":null,"settings":null}`, "After", map[string]any{"ttl": "2h", "pace": "1s"}},
		{`{"settings":{"ttl":"3h"}}`, "After", map[string]any{"ttl": "3h"}}, // settings are given whole
		{`{"settings":{"retention":"1h"},"name":"At last"}`, "At last", map[string]any{"retention": "1h"}},
		{`{"settings":{}}`, "At last", map[string]any{}},
		{`{"code":"other","network":"whatsapp","enabled":false}`, "At last", map[string]any{}}, // what cannot be changed is ignored
	} {
		changed := e.Call("PATCH", channels+"/changing", c.body, admin).Expect(http.StatusOK)
		wantKeys(t, changed, "", "success", "message", "data")
		for _, a := range []*parleytest.Response{changed, e.Get(channels+"/changing", admin).Expect(http.StatusOK)} {
			wantKeys(t, a, "data", channelKeys...)
			wantValue(t, a, "data.code", "changing")
			wantValue(t, a, "data.network", "sandbox")
			wantValue(t, a, "data.enabled", true)
			wantValue(t, a, "data.name", c.name)
			keys := []string{}
			for name, value := range c.settings {
				keys = append(keys, name)
				wantValue(t, a, "data.settings."+name, value)
			}
			wantKeys(t, a, "data.settings", keys...)
		}
	}
	for _, c := range []struct {
		body   string
		fields []string
	}{
		{`{"name":""}`, []string{"name"}},
		{`{"name":1}`, []string{"name"}},
		{`{"name":"` + strings.Repeat("é", 61) + `"}`, []string{"name"}},
		{`{"settings":1}`, []string{"settings"}},
		{`{"name":"","settings":{"ttl":"0s","allow_only":["x"]}}`, []string{"name", "settings.ttl", "settings.allow_only.0"}},
	} {
		e.Call("PATCH", channels+"/changing", c.body, admin).ExpectFields(c.fields...)
	}
	e.Call("PATCH", channels+"/changing", "", admin).Expect(http.StatusBadRequest)
	// A change of settings does not move a clock back.
	as := []parleytest.Option{parleytest.As(e.Global), parleytest.On("changing")}
	e.Post("/api/sandbox/clock", `{"advance":86400}`, as...).Expect(http.StatusOK)
	e.Call("PATCH", channels+"/changing", `{"settings":{"ttl":"1h"}}`, admin).Expect(http.StatusOK)
	if at, err := time.Parse(time.RFC3339, e.Get("/api/channel/health", as...).Text("data.timestamp")); err != nil ||
		time.Until(at) < 23*time.Hour {
		t.Errorf("the clock says %s (%v), want a day ahead", at, err)
	}
}

// awaitStatus waits until a channel has a status, and returns it.
func awaitStatus(e *parleytest.Env, code, status string) *parleytest.Response {
	e.T.Helper()
	var a *parleytest.Response
	e.Eventually(code+" is "+status, func() bool {
		a = e.Get(channels+"/"+code, parleytest.As(e.Admin)).Expect(http.StatusOK)
		return a.Text("data.status") == status
	})
	return a
}

func manageStartAndStop(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	as := parleytest.As(e.CreateChannel("stopping"))
	number := e.Get(channels+"/stopping", admin).Text("data.number")
	for range 2 { // twice is no error
		a := e.Post(channels+"/stopping/stop", "", admin).Expect(http.StatusOK)
		wantKeys(t, a, "data", channelKeys...)
		wantValue(t, a, "data.enabled", false)
		wantValue(t, a, "data.status", "STOPPED")
		wantValue(t, a, "data.number", number)
	}
	e.Post(sendText, textTo("6282000000003"), as).ExpectError(http.StatusBadRequest, "STOPPED").ExpectError(http.StatusBadRequest,
		"parley channel start stopping")
	for _, act := range []string{"pair", "logout"} {
		e.Post(channels+"/stopping/"+act, "", admin).ExpectError(http.StatusBadRequest, "STOPPED")
	}
	for range 2 {
		a := e.Post(channels+"/stopping/start", `{"ignored":true}`, admin).Expect(http.StatusOK)
		wantKeys(t, a, "data", channelKeys...)
		wantValue(t, a, "data.enabled", true)
	}
	wantValue(t, awaitStatus(e, "stopping", "WORKING"), "data.reason", "")
	wantValue(t, e.Post(sendText, textTo("6282000000003"), as).Expect(http.StatusOK), "data.status", "SENT")
	e.Get(channels+"/stopping/stop", admin).Expect(http.StatusMethodNotAllowed)
}

func managePairing(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	as := parleytest.As(e.CreateChannel("pairing"))
	for range 2 {
		wantKeys(t, e.Post(channels+"/pairing/logout", "", admin).Expect(http.StatusOK), "data", channelKeys...)
	}
	out := awaitStatus(e, "pairing", "LOGGED_OUT")
	if out.Text("data.reason") == "" {
		t.Error("it does not say why")
	}
	wantValue(t, out, "data.enabled", true)
	e.Post(sendText, textTo("6282000000004"), as).ExpectError(http.StatusBadRequest, "LOGGED_OUT").ExpectError(http.StatusBadRequest,
		"parley channel pair pairing")
	// To start it is not to pair it.
	e.Post(channels+"/pairing/stop", "", admin).Expect(http.StatusOK)
	e.Post(channels+"/pairing/start", "", admin).Expect(http.StatusOK)
	awaitStatus(e, "pairing", "LOGGED_OUT")
	for range 2 {
		wantKeys(t, e.Post(channels+"/pairing/pair", "", admin).Expect(http.StatusOK), "data", channelKeys...)
	}
	awaitStatus(e, "pairing", "WORKING")
	wantValue(t, e.Post(sendText, textTo("6282000000004"), as).Expect(http.StatusOK), "data.status", "SENT")
}

func manageDelete(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	as := parleytest.As(e.CreateChannel("leaving"))
	say(e, "6282000000005", "Hello", as)
	token := as
	a := e.Delete(channels+"/leaving", admin).Expect(http.StatusAccepted)
	wantKeys(t, a, "", "success", "message", "data")
	wantKeys(t, a, "data", "id", "code", "state", "started_at", "finished_at", "messages_deleted", "messages_left", "problem")
	wantValue(t, a, "data.code", "leaving")
	if codes := column(e.Get(channels, admin), "code"); slices.Contains(codes, "leaving") {
		t.Errorf("it is still listed: %q", codes)
	}
	e.Get(channels+"/leaving", admin).Expect(http.StatusNotFound)
	e.Delete(channels+"/leaving", admin).Expect(http.StatusNotFound)
	e.Get("/api/channel/health", parleytest.As(e.Global), parleytest.On("leaving")).ExpectError(http.StatusBadRequest, "X-Channel")
	// Another channel with its code starts empty.
	as = parleytest.As(e.CreateChannel("leaving"))
	wantValue(t, e.Get("/api/chat", as).Expect(http.StatusOK), "meta.total", 0.0)
	wantValue(t, e.Get("/api/chat/detail?contact_id=6282000000005@c.us", as).Expect(http.StatusOK), "meta.total", 0.0)
	if got := e.Get(phones+"/6282000000005/messages", as).Expect(http.StatusOK).Count("data"); got != 0 {
		t.Errorf("the phone has %d messages of the channel that is gone", got)
	}
	e.Get("/api/chat", token).Expect(http.StatusUnauthorized)
	// The list shows the deletion until it is long over. A viewer may read it.
	made := e.Post("/api/manage/tokens", `{"name":"v","kind":"admin","role":"viewer"}`, admin).Expect(http.StatusCreated)
	viewer := parleytest.As(made.Text("data.token"))
	e.AwaitDeletions()
	list := e.Get("/api/manage/deletions", viewer).Expect(http.StatusOK)
	i := slices.Index(column(list, "id"), a.Text("data.id"))
	if i < 0 {
		t.Fatalf("it is not listed: %s", list.Body)
	}
	done := fmt.Sprintf("data.%d.", i)
	wantValue(t, list, done+"state", "finished")
	wantValue(t, list, done+"messages_deleted", 1.0)
	wantValue(t, list, done+"messages_left", 0.0)
	wantValue(t, list, done+"problem", "")
	e.Get("/api/manage/deletions", as).Expect(http.StatusForbidden)
	// The audit log tells who deleted it.
	audit := e.Get("/api/manage/audit?action=channel.delete", admin).Expect(http.StatusOK)
	if !slices.Contains(column(audit, "object"), "leaving") {
		t.Errorf("the audit log: %s", audit.Body)
	}
}

func manageUnknown(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	for _, code := range []string{"nobody", "NOBODY", "%20", "a%2Fb", strings.Repeat("x", 500)} {
		wantOnlyMessage(t, e.Get(channels+"/"+code, admin).Expect(http.StatusNotFound))
		wantOnlyMessage(t, e.Call("PATCH", channels+"/"+code, `{"name":"x"}`, admin).Expect(http.StatusNotFound))
		wantOnlyMessage(t, e.Delete(channels+"/"+code, admin).Expect(http.StatusNotFound))
		for _, act := range []string{"start", "stop", "pair", "logout"} {
			wantOnlyMessage(t, e.Post(channels+"/"+code+"/"+act, "", admin).Expect(http.StatusNotFound))
		}
	}
	// Wrong fields are reported first.
	e.Call("PATCH", channels+"/nobody", `{"name":1}`, admin).ExpectFields("name")
}

// manageAllowList checks a channel that may write to a few only.
func manageAllowList(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	as := parleytest.As(e.CreateChannel("careful"))
	const allowed, other = "6282000000006", "6282000000007"
	e.Call("PATCH", channels+"/careful", `{"settings":{"allow_only":["`+allowed+`@s.us"]}}`, admin).Expect(http.StatusOK)
	wantValue(t, e.Post(sendText, textTo(allowed), as).Expect(http.StatusOK), "data.status", "SENT")
	e.Post(sendText, textTo(other), as).ExpectError(http.StatusForbidden, "parley channel allow careful "+other)
	e.Post("/api/groups/create", `{"name":"x","participants":[{"id":"`+allowed+`@c.us"},{"id":"`+other+`@c.us"}]}`, as).
		ExpectError(http.StatusForbidden, "parley channel allow")
	e.Post("/api/groups/create", `{"name":"x","participants":[{"id":"`+allowed+`@c.us"}]}`, as).Expect(http.StatusOK)
	e.Call("PATCH", channels+"/careful", `{"settings":{}}`, admin).Expect(http.StatusOK)
	wantValue(t, e.Post(sendText, textTo(other), as).Expect(http.StatusOK), "data.status", "SENT")
}

func manageTokens(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	longest := strings.Repeat("é", 100)
	ends := time.Now().Add(24 * time.Hour).UTC().Truncate(time.Second)
	for _, c := range []struct {
		body    string
		name    string
		kind    string
		channel any
		expires any
	}{
		{`{"kind":"channel","channel":"demo"}`, "", "channel", "demo", nil},
		{`{"kind":"global","name":"CI","colour":"red"}`, "CI", "global", nil, nil},
		{`{"kind":"admin","name":"` + longest + `","channel":null,"expires_at":null}`, longest, "admin", nil, nil},
		{`{"kind":"global","expires_at":"` + ends.Format(time.RFC3339) + `"}`, "", "global", nil, ends.Format("2006-01-02T15:04:05.000Z")},
		{`{"kind":"global","expires_at":"` + ends.In(time.FixedZone("WIB", 7*3600)).Format(time.RFC3339) + `"}`, "", "global", nil,
			ends.Format("2006-01-02T15:04:05.000Z")},
	} {
		a := e.Post(tokens, c.body, admin).Expect(http.StatusCreated)
		wantKeys(t, a, "", "success", "message", "data")
		wantKeys(t, a, "data", append(slices.Clone(tokenKeys), "token")...)
		wantValue(t, a, "success", true)
		wantRecent(t, a, "data.created_at")
		list := e.Get(tokens, admin).Expect(http.StatusOK)
		row := rowWhere(list, "id", a.Text("data.id"))
		wantKeys(t, list, row, tokenKeys...)
		for _, at := range []struct {
			a    *parleytest.Response
			path string
		}{{a, "data"}, {list, row}} {
			wantValue(t, at.a, at.path+".name", c.name)
			wantValue(t, at.a, at.path+".kind", c.kind)
			wantValue(t, at.a, at.path+".channel", c.channel)
			wantValue(t, at.a, at.path+".expires_at", c.expires)
			wantValue(t, at.a, at.path+".last_used_at", nil)
			wantValue(t, at.a, at.path+".revoked_at", nil)
		}
		// And it is what it says.
		path, options := "/api/channel/health", []parleytest.Option{parleytest.As(a.Text("data.token"))}
		switch c.kind {
		case "admin":
			path = channels
		case "global":
			options = append(options, parleytest.On("demo"))
		}
		e.Get(path, options...).Expect(http.StatusOK)
	}
	list := e.Get(tokens, admin).Expect(http.StatusOK)
	wantKeys(t, list, "", "success", "message", "data")
	if made := column(list, "created_at"); !slices.IsSorted(made) {
		t.Errorf("not oldest first: %q", made)
	}
}

func manageBadTokens(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	before := e.Get(tokens, admin).Count("data")
	for _, c := range []struct {
		body   string
		fields []string
	}{
		{`{}`, []string{"kind"}},
		{`{"kind":null}`, []string{"kind"}},
		{`{"kind":1}`, []string{"kind"}},
		{`{"kind":"root"}`, []string{"kind"}},
		{`{"kind":"CHANNEL","channel":"demo"}`, []string{"kind"}},
		{`{"kind":"channel"}`, []string{"channel"}},
		{`{"kind":"channel","channel":null}`, []string{"channel"}},
		{`{"kind":"channel","channel":""}`, []string{"channel"}},
		{`{"kind":"channel","channel":1}`, []string{"channel"}},
		{`{"kind":"channel","channel":"nobody"}`, []string{"channel"}},
		{`{"kind":"channel","channel":"DEMO"}`, []string{"channel"}},
		{`{"kind":"channel","channel":"` + strings.Repeat("x", 33) + `"}`, []string{"channel"}},
		{`{"kind":"global","channel":"demo"}`, []string{"channel"}},
		{`{"kind":"admin","channel":"demo"}`, []string{"channel"}},
		{`{"kind":"global","name":""}`, []string{"name"}},
		{`{"kind":"global","name":1}`, []string{"name"}},
		{`{"kind":"global","name":"` + strings.Repeat("é", 101) + `"}`, []string{"name"}},
		{`{"kind":"global","expires_at":"2020-01-01T00:00:00Z"}`, []string{"expires_at"}},
		{`{"kind":"global","expires_at":"` + time.Now().Add(-time.Second).UTC().Format(time.RFC3339) + `"}`, []string{"expires_at"}},
		{`{"kind":"global","expires_at":"tomorrow"}`, []string{"expires_at"}},
		{`{"kind":"global","expires_at":"2999-01-01"}`, []string{"expires_at"}},
		{`{"kind":"global","expires_at":""}`, []string{"expires_at"}},
		{`{"kind":"global","expires_at":32503680000}`, []string{"expires_at"}},
		{`{"kind":"root","channel":[],"name":{},"expires_at":true}`, []string{"kind", "channel", "name", "expires_at"}},
	} {
		e.Post(tokens, c.body, admin).ExpectFields(c.fields...)
	}
	for _, body := range []string{"", "[]", "{"} {
		e.Post(tokens, body, admin).Expect(http.StatusBadRequest)
	}
	if after := e.Get(tokens, admin).Count("data"); after != before {
		t.Errorf("%d tokens, want %d as before", after, before)
	}
}

func manageRevoke(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	made := e.Post(tokens, `{"kind":"global"}`, admin).Expect(http.StatusCreated)
	id := made.Text("data.id")
	first := e.Delete(tokens+"/"+id, admin).Expect(http.StatusOK)
	wantKeys(t, first, "data", tokenKeys...)
	wantRecent(t, first, "data.revoked_at")
	e.Get("/api/chat", parleytest.As(made.Text("data.token")), parleytest.On("demo")).Expect(http.StatusUnauthorized)
	second := e.Delete(tokens+"/"+id, admin).Expect(http.StatusOK) // twice is no error, and changes nothing
	wantValue(t, second, "data.revoked_at", first.Text("data.revoked_at"))
	list := e.Get(tokens, admin).Expect(http.StatusOK) // it stays on the list
	wantValue(t, list, rowWhere(list, "id", id)+".revoked_at", first.Text("data.revoked_at"))
	for _, unknown := range []string{"tok_unknown", id + "x", strings.ToUpper(id), "%20", "x%2Fy"} {
		wantOnlyMessage(t, e.Delete(tokens+"/"+unknown, admin).Expect(http.StatusNotFound))
	}
	e.Get(tokens+"/"+id, admin).Expect(http.StatusMethodNotAllowed)
}

// manageShownOnce checks that a token is shown when it is created and never again.
func manageShownOnce(t *testing.T, e *parleytest.Env, admin parleytest.Option) {
	key := parleytest.With("Idempotency-Key", "one-token")
	made := e.Post(tokens, `{"kind":"global","name":"Once"}`, admin, key).Expect(http.StatusCreated)
	raw := made.Text("data.token")
	again := e.Post(tokens, `{"kind":"global","name":"Once"}`, admin, key).Expect(http.StatusCreated)
	wantHeader(t, again, "Idempotent-Replayed", "true")
	wantValue(t, again, "data.id", made.Text("data.id")) // it was not made twice
	wantValue(t, again, "data.token", "")
	e.Get("/api/chat", parleytest.As(raw), parleytest.On("demo")).Expect(http.StatusOK)
	signature := raw[strings.LastIndex(raw, ".")+1:]
	for _, a := range []*parleytest.Response{again, e.Get(tokens, admin), e.Delete(tokens+"/"+made.Text("data.id"), admin),
		e.Get(tokens, admin)} {
		if strings.Contains(string(a.Body), signature) {
			t.Errorf("%s shows the token again", a.Request)
		}
	}
	if strings.Contains(e.Log.String(), signature) {
		t.Error("the token is in the log")
	}
}
