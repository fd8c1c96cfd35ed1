package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"parley"
	"parley/internal/callback"
	"parley/internal/safehttp"
)

// TestAlertRules creates rules, tries them and looks at the audit log.
func TestAlertRules(t *testing.T) {
	var notices []string
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, hr *http.Request) {
		var notice struct{ Type string }
		if err := json.NewDecoder(hr.Body).Decode(&notice); err != nil {
			t.Error(err)
		}
		notices = append(notices, notice.Type)
	}))
	defer receiver.Close()
	e := newEnv(t, func(c *Config) {
		policy := safehttp.Policy{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
		c.Callbacks = callback.New(callback.Config{Store: c.Store, Secrets: callback.NewSecrets(c.Store, c.Keyring), Log: c.Log,
			Client: policy.Client(safehttp.Options{MaxBody: 1 << 16}),
			Render: func(event *parley.Event, linkTo parley.MediaLink) ([]byte, error) { return encodeEvent(event, linkTo) }})
	})
	made := e.call("POST", "/api/manage/alerts", e.admin,
		m{"kind": "channel_logged_out", "name": "Out", "url": receiver.URL + "?key=hunter2"}).want(t, 201)
	if !strings.HasPrefix(made["secret"].(string), "whsec_") {
		t.Errorf("made: %v", made)
	}
	e.call("POST", "/api/manage/alerts/"+made["id"].(string)+"/test", e.admin, nil).want(t, 200)
	if len(notices) != 1 || notices[0] != "alert.test" {
		t.Errorf("notices: %v", notices)
	}
	if lines, rows := e.auditLog("?action=alert."); len(lines) != 2 || strings.Contains(string(must(json.Marshal(rows))(t)), "hunter2") {
		t.Errorf("audit log: %v", rows)
	}

	byMessage := m{"kind": "failing_sends", "channel": "main", "share": 50, "via": "second", "contact_id": ayu}
	made = e.call("POST", "/api/manage/alerts", e.admin, byMessage).want(t, 201)
	if made["secret"] != nil || made["window_minutes"] != 15.0 {
		t.Errorf("made: %v", made)
	}
	test := "/api/manage/alerts/" + made["id"].(string) + "/test"
	e.call("POST", test, e.admin, nil).want(t, 200)
	found := e.call("GET", "/api/manage/messages?channel=second", e.admin, nil)
	if strings.Count(found.text, "Parley alert: failing_sends") != 1 {
		t.Errorf("messages: %s", found.text)
	}
	e.call("POST", "/api/manage/channels/second/stop", e.admin, nil).want(t, 200)
	if refused := e.call("POST", test, e.admin, nil); refused.StatusCode != 200 || refused.json["success"] != false ||
		!strings.Contains(refused.text, "Start it with: parley channel start second") {
		t.Errorf("through a stopped channel: %d %s", refused.StatusCode, refused.text)
	}
}

func TestAlertRefuses(t *testing.T) {
	e := newEnv(t)
	good := func() m { return m{"kind": "disk", "url": "https://example.com/"} }
	for name, change := range map[string]m{
		"kind": {"kind": "weather"}, "no kind": {"kind": nil}, "url": {"url": "ftp://example.com"}, "no address": {"url": nil},
		"both": {"via": "main", "contact_id": ayu}, "channel": {"kind": "failing_sends", "channel": "none"},
		"disk of a channel": {"channel": "main"}, "share": {"kind": "failing_sends", "share": 0},
		"window": {"kind": "failing_sends", "window_minutes": 4}, "name": {"name": strings.Repeat("x", 61)},
		"no contact": {"url": nil, "via": "main"}, "no such via": {"url": nil, "via": "none", "contact_id": ayu},
		"quiet":   {"quiet": m{"from": "25:00", "to": "07:00", "zone": "UTC"}},
		"zone":    {"quiet": m{"from": "22:00", "to": "07:00", "zone": "Mars/Base"}},
		"no zone": {"quiet": m{"from": "22:00", "to": "07:00"}},
		"file":    {"quiet": m{"from": "22:00", "to": "07:00", "zone": "../../etc/passwd"}},
	} {
		rule := good()
		for field, value := range change {
			if rule[field] = value; value == nil {
				delete(rule, field)
			}
		}
		if got := e.call("POST", "/api/manage/alerts", e.admin, rule); got.StatusCode != 422 {
			t.Errorf("%s: %d %s", name, got.StatusCode, got.text)
		}
	}
	for _, path := range []string{"/alr_none", "/alr_none/test"} {
		method := map[bool]string{true: "POST", false: "DELETE"}[strings.HasSuffix(path, "test")]
		e.call(method, "/api/manage/alerts"+path, e.admin, nil).want(t, 404)
	}
	e.call("PUT", "/api/manage/alerts/alr_none", e.admin, good()).want(t, 404)
	id := e.call("POST", "/api/manage/alerts", e.admin, good()).want(t, 201)["id"].(string)
	e.call("PUT", "/api/manage/alerts/"+id, e.admin, m{"kind": "disk", "via": "main", "contact_id": ayu}).want(t, 422)
	e.call("PUT", "/api/manage/alerts/"+id, e.admin, m{"kind": "disk", "url": "https://example.com/b", "enabled": false}).want(t, 200)
	e.call("DELETE", "/api/manage/alerts/"+id, e.admin, nil).want(t, 200)
	for range maxAlertRules {
		e.call("POST", "/api/manage/alerts", e.admin, good()).want(t, 201)
	}
	e.call("POST", "/api/manage/alerts", e.admin, good()).want(t, 400)
}
