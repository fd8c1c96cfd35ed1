package api

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"parley"
	"parley/internal/callback"
	"parley/internal/safehttp"
)

// alertEnv is an env whose alerts reach a server on this machine.
type alertEnv struct {
	*env
	server *server

	mu      sync.Mutex
	notices []m
	status  int
}

func newAlertEnv(t *testing.T) (e *alertEnv, address string) {
	e = &alertEnv{status: 200}
	policy := safehttp.Policy{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	e.env = newEnv(t, func(c *Config) {
		c.Callbacks = callback.New(callback.Config{Store: c.Store, Secrets: callback.NewSecrets(c.Store, c.Keyring), Log: c.Log,
			Client: policy.Client(safehttp.Options{MaxBody: 1 << 16}),
			Render: func(event *parley.Event, linkTo parley.MediaLink) ([]byte, error) { return event.Body(linkTo) }})
	})
	schema := must(openapi3.NewLoader().LoadFromData(OpenAPI()))(t).Components.Schemas["AlertNotice"].Value
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		body, _ := io.ReadAll(hr.Body)
		notice := m{}
		if err := json.Unmarshal(body, &notice); err != nil {
			t.Error(err)
		}
		if err := schema.VisitJSON(map[string]any(notice), openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("not as described: %v", err)
		}
		notice["signed"] = hr.Header.Get("webhook-signature") != "" && hr.Header.Get("webhook-id") == notice["id"]
		e.mu.Lock()
		defer e.mu.Unlock()
		e.notices = append(e.notices, notice)
		w.WriteHeader(e.status)
	}))
	t.Cleanup(receiver.Close)
	e.server = e.handler.(*API).server
	e.server.LocalToken = e.global
	return e, receiver.URL
}

// check checks the rules at a time, and returns the types of the notices that were sent.
func (e *alertEnv) check(at time.Time) string {
	e.t.Helper()
	if err := e.server.checkAlerts(e.t.Context(), at); err != nil {
		e.t.Fatal(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var types []string
	for _, n := range e.notices {
		types = append(types, n["type"].(string))
		if n["signed"] != true {
			e.t.Errorf("not signed: %v", n)
		}
	}
	e.notices = nil
	return strings.Join(types, " ")
}

func TestAlertIsSentOnceAndResolved(t *testing.T) {
	e, address := newAlertEnv(t)
	made := e.call("POST", "/api/manage/alerts", e.admin, m{"kind": "channel_logged_out", "name": "Out", "url": address}).want(t, 201)
	if !strings.HasPrefix(made["secret"].(string), "whsec_") {
		t.Errorf("made: %v", made)
	}
	now := time.Now()
	if got := e.check(now); got != "" {
		t.Errorf("nothing is wrong: %s", got)
	}
	e.call("POST", "/api/manage/channels/main/logout", e.admin, nil).want(t, 200)
	e.waitStatus("main", parley.ChannelLoggedOut)
	if got := e.check(now); got != "alert.raised" {
		t.Fatalf("logged out: %s", got)
	}
	for range 3 {
		if got := e.check(now.Add(time.Hour)); got != "" {
			t.Errorf("the same cause again: %s", got)
		}
	}
	e.call("POST", "/api/manage/channels/main/pair", e.admin, nil).want(t, 200)
	e.waitWorking("main")
	if got := e.check(now.Add(2 * time.Hour)); got != "alert.resolved" {
		t.Errorf("resolved: %s", got)
	}
	list := e.call("GET", "/api/manage/alerts", e.admin, nil).want(t, 200)
	alert := list["alerts"].([]any)[0].(m)
	if alert["resolved_at"] == nil || alert["notified_at"] == nil || !strings.Contains(alert["sentence"].(string), "main is logged out") {
		t.Errorf("alert: %v", alert)
	}
	if got := e.check(now.Add(3 * time.Hour)); got != "" {
		t.Errorf("after it was resolved: %s", got)
	}
	e.call("POST", "/api/manage/alerts/"+made["id"].(string)+"/test", e.admin, nil).want(t, 200)
	if got := e.check(now.Add(3 * time.Hour)); got != "alert.test" {
		t.Errorf("test: %s", got)
	}
}

func TestAlertInQuietHours(t *testing.T) {
	e, address := newAlertEnv(t)
	e.call("POST", "/api/manage/alerts", e.admin, m{"kind": "channel_logged_out", "url": address,
		"quiet": m{"from": "22:00", "to": "07:00", "zone": "UTC"}}).want(t, 201)
	e.call("POST", "/api/manage/channels/main/logout", e.admin, nil).want(t, 200)
	e.call("POST", "/api/manage/channels/second/logout", e.admin, nil).want(t, 200)
	e.waitStatus("main", parley.ChannelLoggedOut)
	e.waitStatus("second", parley.ChannelLoggedOut)
	night := time.Date(2030, 1, 2, 23, 0, 0, 0, time.UTC)
	if got := e.check(night); got != "" {
		t.Errorf("at night: %s", got)
	}
	e.call("POST", "/api/manage/channels/second/pair", e.admin, nil).want(t, 200) // over before anybody knew of it
	e.waitWorking("second")
	if got := e.check(night.Add(time.Hour)); got != "" {
		t.Errorf("later at night: %s", got)
	}
	if got := e.check(night.Add(9 * time.Hour)); got != "alert.raised" {
		t.Errorf("in the morning: %s", got)
	}
}

func TestAlertIsRetried(t *testing.T) {
	e, address := newAlertEnv(t)
	e.status = 500
	e.call("POST", "/api/manage/alerts", e.admin, m{"kind": "channel_logged_out", "url": address + "?key=hunter2"}).want(t, 201)
	e.call("POST", "/api/manage/channels/main/logout", e.admin, nil).want(t, 200)
	e.waitStatus("main", parley.ChannelLoggedOut)
	now := time.Now()
	if got := e.check(now); got != "alert.raised" {
		t.Fatalf("first: %s", got)
	}
	if got := e.check(now.Add(time.Second)); got != "" {
		t.Errorf("without a pause: %s", got)
	}
	e.status = 200
	if got := e.check(now.Add(time.Hour)); got != "alert.raised" {
		t.Errorf("again: %s", got)
	}
	if lines, rows := e.auditLog("?action=alert."); len(lines) != 1 || strings.Contains(string(must(json.Marshal(rows))(t)), "hunter2") {
		t.Errorf("audit log: %v", rows)
	}
}

func TestAlertByMessage(t *testing.T) {
	e, _ := newAlertEnv(t)
	made := e.call("POST", "/api/manage/alerts", e.admin,
		m{"kind": "failing_sends", "channel": "main", "share": 50, "via": "second", "contact_id": ayu}).want(t, 201)
	if made["secret"] != nil || made["window_minutes"] != 15.0 {
		t.Errorf("made: %v", made)
	}
	id := made["id"].(string)
	e.call("POST", "/api/manage/alerts/"+id+"/test", e.admin, nil).want(t, 200)
	for range leastSends {
		e.call("POST", "/api/send-message/text", e.main, m{"contact_id": "99912345670@c.us", "message": "x"}).want(t, 200)
	}
	now := time.Now()
	e.check(now)
	e.check(now.Add(time.Minute))
	found := e.call("GET", "/api/manage/messages?channel=second", e.admin, nil)
	found.want(t, 200)
	if strings.Count(found.text, "Parley alert: failing_sends") != 2 ||
		strings.Count(found.text, "10 of 10 messages of channel main failed") != 1 {
		t.Errorf("messages: %s", found.text)
	}
	e.check(now.Add(2 * time.Hour)) // the window is over
	if found := e.call("GET", "/api/manage/messages?channel=second", e.admin, nil); strings.Count(found.text, "Resolved: ") != 1 {
		t.Errorf("messages: %s", found.text)
	}
}

// TestAlertMessageIsRetried: after a message that failed, the next attempt is another message. An attempt whose result was lost is
// not sent twice.
func TestAlertMessageIsRetried(t *testing.T) {
	e, _ := newAlertEnv(t)
	rule := m{"kind": "channel_logged_out", "channel": "main", "via": "second", "contact_id": "99912345670@c.us"} // which always fails
	id := e.call("POST", "/api/manage/alerts", e.admin, rule).want(t, 201)["id"].(string)
	e.call("POST", "/api/manage/channels/main/logout", e.admin, nil).want(t, 200)
	e.waitStatus("main", parley.ChannelLoggedOut)
	statuses := func(want string) {
		t.Helper()
		found := e.call("GET", "/api/manage/messages?channel=second", e.admin, nil)
		found.want(t, 200)
		var got []string
		for _, row := range found.json["data"].([]any) {
			got = append(got, row.(m)["status"].(string))
		}
		if all := strings.Join(got, " "); all != want {
			t.Errorf("messages %q, want %q", all, want)
		}
	}
	now := time.Now()
	e.check(now)
	statuses("FAILED")
	e.check(now.Add(time.Hour))
	statuses("FAILED FAILED")
	rule["contact_id"] = ayu
	e.call("PUT", "/api/manage/alerts/"+id, e.admin, rule).want(t, 200)
	waiting := must(e.config.Store.WaitingAlerts(t.Context()))(t)
	stored := must(e.config.Store.AlertRule(t.Context(), parley.AlertRuleID(id)))(t)
	if problem := e.server.sendNotice(t.Context(), stored, &waiting[0], alertRaised); problem != "" { // and the process dies
		t.Errorf("sent: %s", problem)
	}
	e.check(now.Add(3 * time.Hour))
	e.check(now.Add(5 * time.Hour))
	found := e.call("GET", "/api/manage/messages?channel=second&contact="+strings.TrimSuffix(ayu, "@c.us"), e.admin, nil)
	if n := strings.Count(found.text, "Parley alert: "); n != 1 {
		t.Errorf("%d messages: %s", n, found.text)
	}
	alerts := e.call("GET", "/api/manage/alerts", e.admin, nil).want(t, 200)["alerts"].([]any)
	if a := alerts[0].(m); len(alerts) != 1 || a["notified_at"] == nil || a["problem"] != "" {
		t.Errorf("alerts: %v", alerts)
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
