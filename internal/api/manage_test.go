package api

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestManageChannels(t *testing.T) {
	e := newEnv(t)
	made := e.call("POST", "/api/manage/channels", e.admin, m{"code": "shop", "settings": m{"ttl": "2h",
		"allow_only": []string{"6281234567890@s.us"}}}).want(t, 201)
	settings := made["settings"].(m)
	if made["name"] != "shop" || made["network"] != "sandbox" || settings["ttl"] != "2h" || settings["allow_only"].([]any)[0] != ayu {
		t.Errorf("made: %v", made)
	}
	changed := e.call("PATCH", "/api/manage/channels/shop", e.admin, m{"name": "Toko"}).want(t, 200)
	if changed["name"] != "Toko" || changed["settings"].(m)["ttl"] != "2h" {
		t.Errorf("changed: %v", changed)
	}
	changed = e.call("PATCH", "/api/manage/channels/shop", e.admin, m{"settings": m{"retention": "0s"}}).want(t, 200)
	if settings := changed["settings"].(m); settings["ttl"] != nil || settings["retention"] != "0s" || changed["name"] != "Toko" {
		t.Errorf("settings: %v", settings)
	}
	token := e.call("POST", "/api/manage/tokens", e.admin, m{"kind": "channel", "channel": "shop"}).want(t, 201)
	e.call("GET", "/api/channel/health", token["token"].(string), nil).want(t, 200)
	e.call("DELETE", "/api/manage/channels/shop", e.admin, nil).want(t, 202)
	for _, c := range [][2]string{{"GET", ""}, {"PATCH", ""}, {"DELETE", ""}, {"POST", "/start"}, {"POST", "/stop"}, {"POST", "/pair"},
		{"POST", "/logout"}} {
		var body any
		if c[0] == "PATCH" {
			body = m{"name": "x"}
		}
		if r := e.call(c[0], "/api/manage/channels/shop"+c[1], e.admin, body); r.StatusCode != 404 {
			t.Errorf("%s %s of a channel that is gone: %d %s", c[0], c[1], r.StatusCode, r.text)
		}
	}
}

func TestManageThatIsRefused(t *testing.T) {
	e := newEnv(t)
	for _, c := range []struct {
		path   string
		body   m
		fields string
	}{
		{"channels", m{}, "code"},
		{"channels", m{"code": "UPPER"}, "code"},
		{"channels", m{"code": "main"}, "code"},
		{"channels", m{"code": "x", "network": "smoke", "name": ""}, "network name"},
		{"channels", m{"code": "x", "settings": 1}, "settings"},
		{"channels", m{"code": "x", "settings": m{"pace": "fast", "ttl": "-1h", "retention": 5, "allow_only": []any{1, "x"}}},
			"settings.pace settings.ttl settings.retention settings.allow_only.0 settings.allow_only.1"},
		{"tokens", m{}, "kind"},
		{"tokens", m{"kind": "root"}, "kind"},
		{"tokens", m{"kind": "channel"}, "channel"},
		{"tokens", m{"kind": "channel", "channel": "nobody"}, "channel"},
		{"tokens", m{"kind": "admin", "channel": "main"}, "channel"},
		{"tokens", m{"kind": "global", "expires_at": "2020-01-01T00:00:00Z"}, "expires_at"},
		{"tokens", m{"kind": "global", "expires_at": "tomorrow", "name": strings.Repeat("x", 101)}, "expires_at name"},
	} {
		r := e.call("POST", "/api/manage/"+c.path, e.admin, c.body)
		if r.StatusCode != 422 || len(r.wrong()) != len(strings.Fields(c.fields)) {
			t.Errorf("%s %v: %d %s", c.path, c.body, r.StatusCode, r.text)
		}
		for _, field := range strings.Fields(c.fields) {
			if r.wrong()[field] == nil {
				t.Errorf("%s %v: not on %s: %s", c.path, c.body, field, r.text)
			}
		}
	}
}

func TestManageTokens(t *testing.T) {
	e := newEnv(t)
	ends := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	made := e.call("POST", "/api/manage/tokens", e.admin, m{"kind": "global", "name": "CI", "expires_at": ends}).want(t, 201)
	secret := made["token"].(string)
	e.call("GET", "/api/channel/health", secret, nil, "X-Channel", "main").want(t, 200)
	list := e.call("GET", "/api/manage/tokens", e.admin, nil)
	if list.want(t, 200); !strings.Contains(list.text, made["id"].(string)) || strings.Contains(list.text, secret) {
		t.Errorf("list: %s", list.text)
	}
	for range 2 {
		if revoked := e.call("DELETE", "/api/manage/tokens/"+made["id"].(string), e.admin, nil).want(t, 200); revoked["revoked_at"] == nil {
			t.Errorf("revoked: %v", revoked)
		}
		e.call("GET", "/api/channel/health", secret, nil, "X-Channel", "main").want(t, 401)
	}
	e.call("DELETE", "/api/manage/tokens/tok_unknown", e.admin, nil).want(t, 404)
}

func TestSandboxAPI(t *testing.T) {
	e := newEnv(t)
	cursor := e.call("GET", "/api/sandbox/cursor", e.main, nil).want(t, 200)["cursor"].(string)
	phone := e.call("POST", "/api/sandbox/phones", e.main, m{"name": "Budi"}).want(t, 200)
	number := phone["number"].(string)
	base := "/api/sandbox/phones/" + number
	e.call("POST", "/api/send-message/text", e.main, m{"contact_id": number + "@c.us",
		"message": "Your code is 481516. See https://example.com/x", "linkPreview": false}).want(t, 200)
	got := e.call("GET", base+"/messages?wait=10&contains=CODE&after="+cursor, e.main, nil)
	got.want(t, 200)
	row := got.json["data"].([]any)[0].(m)
	if row["codes"].([]any)[0] != "481516" || row["links"].([]any)[0] != "https://example.com/x" || row["copies"] != 1.0 ||
		got.json["meta"].(m)["cursor"] != row["cursor"] {
		t.Errorf("messages: %s", got.text)
	}
	late := e.call("GET", base+"/messages?wait=1&contains=nothing", e.main, nil)
	if message, _ := late.json["message"].(string); late.StatusCode != 404 || !strings.Contains(message, "481516") {
		t.Errorf("wait that times out: %d %s", late.StatusCode, late.text)
	}
	if empty := e.call("GET", base+"/messages?contains=nothing", e.main, nil); !strings.Contains(empty.text, `"data":[]`) ||
		empty.json["meta"].(m)["cursor"] == "" {
		t.Errorf("no wait: %s", empty.text)
	}
	changed := e.call("PATCH", base, e.main, m{"online": false, "reads": "never", "delay_ms": 5}).want(t, 200)
	if changed["online"] != false || changed["reads"] != "never" || changed["delay_ms"] != 5.0 || changed["name"] != "Budi" {
		t.Errorf("changed: %v", changed)
	}
	for _, body := range []m{{"online": "no"}, {"reads": "often"}, {"delay_ms": -1}, {"delay_ms": 60001}, {"name": 1}} {
		if r := e.call("PATCH", base, e.main, body); r.StatusCode != 422 {
			t.Errorf("%v: %d %s", body, r.StatusCode, r.text)
		}
	}
	opened := e.call("POST", base+"/open", e.main, m{"link": "https://wa.me/999?text=Log%20me%20in%20K7"})
	opened.want(t, 200)
	if r := e.call("POST", base+"/open", e.main, m{"link": "https://example.com"}); r.StatusCode != 422 {
		t.Errorf("a link without a text: %d", r.StatusCode)
	}
	e.call("DELETE", "/api/sandbox", e.main, nil).want(t, 200)
	if r := e.call("GET", "/api/sandbox/phones", e.main, nil); strings.Contains(r.text, number) {
		t.Errorf("after a reset: %s", r.text)
	}
	for _, body := range []m{{}, {"advance": 0}, {"advance": 1.5}, {"advance": "1"}} {
		if r := e.call("POST", "/api/sandbox/clock", e.main, body); r.StatusCode != 422 || r.wrong()["advance"] == nil {
			t.Errorf("%v: %d %s", body, r.StatusCode, r.text)
		}
	}
}

// TestLogLevelGoesBack checks that a temporary level ends, and that a later one restarts the time.
func TestLogLevelGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var level slog.LevelVar
		var l temporaryLevel
		wants := func(when string, want slog.Level, changed bool) {
			t.Helper()
			synctest.Wait()
			if got := level.Level(); got != want || (l.data(&level).Until != nil) != changed {
				t.Errorf("%s: %v, %+v", when, got, l.data(&level))
			}
		}
		wants("at first", slog.LevelInfo, false)
		l.set(&level, slog.LevelDebug, 10*time.Minute)
		wants("changed", slog.LevelDebug, true)
		time.Sleep(9 * time.Minute)
		l.set(&level, slog.LevelWarn, 10*time.Minute)
		time.Sleep(9 * time.Minute)
		wants("changed again", slog.LevelWarn, true)
		time.Sleep(time.Minute)
		wants("in the end", slog.LevelInfo, false)
		l.set(&level, slog.LevelError, time.Minute)
		time.Sleep(time.Minute)
		wants("once more", slog.LevelInfo, false)
	})
}
