package contract_test

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/app"
	"parley/internal/doctor"
	"parley/internal/parleytest"
	"parley/internal/postgrestest"
)

// TestOverview holds the overview to the contract.
func TestOverview(t *testing.T) {
	e := parleytest.Start(t)
	admin := parleytest.As(e.Admin)
	e.CreateChannel("second")
	phone := e.Phone("6281700001001")
	text := func(contact string) *parleytest.Response {
		return e.Post("/api/send-message/text", `{"contact_id":"`+contact+`","message":"hi"}`).Expect(200)
	}
	text(phone.Contact())
	text(phone.Contact())
	text("99900000000@c.us") // not on the network
	phone.Types("thanks")
	seen := phone.Received("thanks")
	e.Post("/api/send-message/seen", `{"message_id":"`+seen+`"}`).Expect(200) // is not counted as read
	phone.Reads()
	e.Post("/api/otp/code/request", `{"contact_id":"`+phone.Contact()+`"}`).Expect(200)
	code := phone.Expect("code").Codes[0]
	e.Post("/api/otp/code/validate", `{"contact_id":"`+phone.Contact()+`","code":"`+code+`"}`).Expect(200)
	e.Post("/api/otp/link/request", `{"contact_id":"`+phone.Contact()+`","expires":300}`).Expect(200)

	var a *parleytest.Response
	whole := func() bool {
		a = e.Get("/api/manage/overview", admin).Expect(200)
		return a.Number("data.last24h.delivered") == 3 && a.Number("data.last24h.read") == 2 && a.Number("data.last24h.failed") == 1
	}
	e.Eventually("everything is counted", whole)
	check := func() {
		t.Helper()
		wantKeys(t, a, "", "success", "message", "data")
		wantKeys(t, a, "data", "problems", "warnings", "queue", "needs", "channels",
			"last24h", "to_sent_ms", "to_sent_from", "to_delivered_ms", "waiting", "webhooks", "otp",
			"per_minute")
		wantKeys(t, a, "data.channels", "STOPPED", "STARTING", "SCAN_QR_CODE", "WORKING", "RECONNECTING", "LOGGED_OUT", "FAILED")
		wantValue(t, a, "data.channels.WORKING", 2.0)
		for name, want := range map[string]float64{"sent": 3, "delivered": 3, "read": 2, "failed": 1, "received": 1} {
			wantValue(t, a, "data.last24h."+name, want)
			sum := 0
			for i := range 60 {
				sum += a.Number(fmt.Sprintf("data.per_minute.%d.%s", i, name))
			}
			if sum != int(want) {
				t.Errorf("%d in the last hour's %s, want %v", sum, name, want)
			}
		}
		if n := a.Count("data.per_minute"); n != 60 {
			t.Errorf("%d minutes", n)
		}
		wantKeys(t, a, "data.to_delivered_ms", "p50", "p95")
		wantObject(t, a, "data.otp", map[string]any{"requested": 2.0, "delivered": 1.0, "approved": 1.0})
		wantValue(t, a, "data.waiting", 0.0)
	}
	check()
	wantKeys(t, a, "data.to_sent_ms", "p50", "p95")
	wantObject(t, a, "data.webhooks", map[string]any{"delivered": 0.0, "failed": 0.0, "waiting": 0.0, "attempts": 0.0,
		"failed_attempts": 0.0})

	e.Restart() // counters are stored
	if !whole() {
		t.Errorf("after a restart: %s", a.Body)
	}
	check()
	wantKeys(t, a, "data.to_sent_ms", "p50", "p95")

	channel := e.Get(channels+"/demo", admin).Expect(200)
	wantValue(t, channel, "data.sent_24h", 3.0)
	wantValue(t, channel, "data.failed_24h", 1.0)
	wantRecent(t, channel, "data.last_inbound_at")
	wantRecent(t, channel, "data.last_confirmed_at")
}

// TestNeeds makes sure that the overview lists what somebody should look at, with what to do about it.
func TestNeeds(t *testing.T) {
	postgrestest.Skip(t, "a node has more findings")
	e := parleytest.Start(t)
	admin := parleytest.As(e.Admin)
	e.CreateChannel("gone")
	e.CreateChannel("resting")
	if n := e.Get("/api/manage/overview", admin).Expect(200).Count("data.needs"); n != 0 {
		t.Errorf("%d needs where all is well", n)
	}
	e.Post(channels+"/resting/stop", "", admin).Expect(200) // as somebody wants it
	e.Post(channels+"/gone/logout", "", admin).Expect(200)
	hook, _ := makeWebhook(e, `{"url":"`+quiet+`","channel":"demo"}`)
	e.Post("/api/send-message/text", `{"contact_id":"6281700002001@c.us","message":"hi"}`).Expect(200)
	var a *parleytest.Response
	e.Eventually("both are reported", func() bool {
		a = e.Get("/api/manage/overview", admin).Expect(200)
		return a.Count("data.needs") == 2
	})
	byKind := map[string]string{}
	for i := range 2 {
		at := fmt.Sprintf("data.needs.%d", i)
		wantKeys(t, a, at, "kind", "code", "severity", "channel", "webhook", "url", "sentence", "remedy", "since", "until", "alike", "action")
		wantKeys(t, a, at+".action", "name", "label", "href")
		wantRecent(t, a, at+".since")
		byKind[a.Text(at+".kind")] = at
	}
	wantValue(t, a, byKind["channel"]+".severity", "problem")
	wantValue(t, a, byKind["channel"]+".channel", "gone")
	wantValue(t, a, byKind["channel"]+".alike", 1.0)
	for code, want := range map[string]int{"gone": 1, "resting": 0} {
		if n := e.Get("/api/manage/overview?channel="+code, admin).Expect(200).Count("data.needs"); n != want {
			t.Errorf("%d needs of channel %s, want %d", n, code, want)
		}
	}
	wantObject(t, a, byKind["channel"]+".action", map[string]any{"name": "pair", "label": "Pair", "href": "/console/channels/gone/pair"})
	wantValue(t, a, byKind["webhook"]+".severity", "warning")
	wantValue(t, a, byKind["webhook"]+".webhook", hook)
	wantValue(t, a, byKind["webhook"]+".code", "webhook_failing")
	wantValue(t, a, "data.needs.0.severity", "problem") // the worst comes first
	wantValue(t, a, "data.problems", 1.0)
	wantValue(t, a, "data.warnings", 1.0)
	found := e.Get("/api/manage/doctor", admin).Expect(200)
	wantValue(t, found, "data.problems", 1.0)
	wantValue(t, found, "data.warnings", 1.0)
	if s := a.Text(byKind["channel"] + ".sentence"); !strings.HasPrefix(s, "Channel gone is logged out and sends nothing.") {
		t.Errorf("the sentence is %q", s)
	}
	e.Eventually("its deliveries wait", func() bool {
		return e.Get("/api/manage/overview", admin).Number("data.webhooks.waiting") > 0
	})
}

// TestServer checks what the server reports about the program.
func TestServer(t *testing.T) {
	level := new(slog.LevelVar)
	e := parleytest.Start(t, func(c *app.Config) { c.LogLevel, c.SettingsFrom = level, &doctor.Settings{} })
	admin := parleytest.As(e.Admin)
	a := e.Get("/api/manage/server", admin).Expect(200)
	wantKeys(t, a, "data", "version", "started_at", "up_time", "database_bytes", "data_dir_free_bytes", "go_version", "channels", "mode",
		"default_channel", "networks", "ffmpeg", "last_backup", "retention", "url", "local_url", "log_level", "cluster", "whatsapp_client")
	wantValue(t, a, "data.version", "test")
	wantValue(t, a, "data.mode", "dev")
	wantValue(t, a, "data.url", e.URL)
	wantValue(t, a, "data.local_url", e.URL)
	wantValue(t, a, "data.channels", 1.0)
	wantValue(t, a, "data.last_backup", nil)
	wantObject(t, a, "data.retention", map[string]any{"events": "720h", "messages": "0s", "otp": "24h"})
	wantObject(t, a, "data.log_level", map[string]any{"level": "info", "until": nil})
	wantRecent(t, a, "data.started_at")
	if a.Number("data.database_bytes") <= 0 || a.Number("data.data_dir_free_bytes") <= 0 {
		t.Errorf("no sizes: %s", a.Body)
	}
	if got := a.Text("data.networks.0.name"); got != "sandbox" {
		t.Errorf("the first network is %q", got)
	}

	t.Run("backup", func(t *testing.T) {
		postgrestest.Skip(t, "the database is not a file")
		e := within(t, e)
		made := e.Post("/api/manage/backup", "", admin).Expect(200)
		wantKeys(t, made, "data", "path", "bytes")
		info, err := os.Stat(made.Text("data.path"))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() != int64(made.Number("data.bytes")) || info.Mode().Perm() != 0o600 || !strings.HasPrefix(made.Text("data.path"),
			string(e.Data)) {
			t.Errorf("%s has %d bytes, mode %04o: %s", made.Text("data.path"), info.Size(), info.Mode().Perm(), made.Body)
		}
		again := e.Post("/api/manage/backup", "", admin).Expect(200)
		last := e.Get("/api/manage/server", admin).Expect(200)
		wantValue(t, last, "data.last_backup.path", again.Text("data.path"))
		wantValue(t, last, "data.last_backup.bytes", float64(again.Number("data.bytes")))
		wantRecent(t, last, "data.last_backup.at")
	})

	t.Run("doctor", func(t *testing.T) {
		postgrestest.Skip(t, "a node has more findings")
		e := within(t, e)
		a := e.Get("/api/manage/doctor", admin).Expect(200)
		wantKeys(t, a, "data.findings.0", "name", "code", "level", "sentence", "remedy", "channel", "webhook", "since")
		var names []string
		for i := range a.Count("data.findings") {
			names = append(names, a.Text(fmt.Sprintf("data.findings.%d.name", i)))
		}
		slices.Sort(names)
		if want := []string{"addresses", "channel demo", "config", "data", "exposure", "ffmpeg", "server"}; !slices.Equal(names, want) {
			t.Errorf("checks %q, want %q", names, want)
		}
	})

	t.Run("an untrusted proxy", func(t *testing.T) {
		e := within(t, e)
		e.Get("/api/channel/health", parleytest.With("X-Forwarded-For", "203.0.113.9")).Expect(200)
		a := e.Get("/api/manage/doctor", admin).Expect(200)
		if body := string(a.Body); !strings.Contains(body, "requests come through a proxy on this machine that is not trusted") ||
			!strings.Contains(body, "set --behind-proxy") {
			t.Errorf("the doctor says %s", body)
		}
		if running, _ := e.Data.Running(); !running.Reach.UntrustedProxy || running.URL != e.URL { // for the command line
			t.Errorf("the lock file says %+v", running)
		}
	})

	t.Run("log level", func(t *testing.T) {
		e := within(t, e)
		a := e.Call("PATCH", "/api/manage/log-level", `{"level":"debug","minutes":1}`, admin).Expect(200)
		wantKeys(t, a, "data", "level", "until")
		wantValue(t, a, "data.level", "debug")
		if until, err := time.Parse(time.RFC3339, a.Text("data.until")); err != nil || time.Until(until) > time.Minute || time.Until(until) < 0 {
			t.Errorf("until %q", a.Text("data.until"))
		}
		if level.Level() != slog.LevelDebug {
			t.Errorf("the log is at %v", level.Level())
		}
		for body, field := range map[string]string{`{}`: "level", `{"level":"loud"}`: "level", `{"level":"info","minutes":0}`: "minutes",
			`{"level":"info","minutes":1441}`: "minutes"} {
			e.Call("PATCH", "/api/manage/log-level", body, admin).ExpectFields(field)
		}
	})
}

// TestLogLevelFixed makes sure that a server whose log cannot be changed says so.
func TestLogLevelFixed(t *testing.T) {
	e := parleytest.Start(t, func(c *app.Config) { c.LogLevel = nil })
	e.Call("PATCH", "/api/manage/log-level", `{"level":"debug"}`, parleytest.As(e.Admin)).ExpectError(400, "cannot be changed")
	wantValue(t, e.Get("/api/manage/server", parleytest.As(e.Admin)), "data.log_level", nil)
}

// TestListedOTPs holds the list of codes and links to the contract.
func TestListedOTPs(t *testing.T) {
	e := parleytest.Start(t)
	admin := parleytest.As(e.Admin)
	token := e.CreateChannel("codes")
	ask := func(path, number string, option ...parleytest.Option) string {
		return e.Post("/api/otp/"+path+"/request", `{"contact_id":"`+number+`@c.us","expires":300}`, option...).Expect(200).Text("data.id")
	}
	code, link := ask("code", "6281700003001"), ask("link", "6281700003002")
	other := ask("code", "6281700003003", parleytest.As(token))
	wrong := e.Post("/api/otp/code/validate", `{"contact_id":"6281700003001@c.us","code":"x"}`).Expect(200)
	wantValue(t, wrong, "data.status", "INVALID")
	a := e.Get("/api/manage/otp", admin).Expect(200)
	if got, want := column(a, "id"), []string{other, link, code}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for i := range 3 {
		wantKeys(t, a, fmt.Sprintf("data.%d", i), "id", "kind", "channel", "contact_id", "status", "created_at", "expires_at", "ended_at",
			"attempts")
		wantValue(t, a, fmt.Sprintf("data.%d.status", i), "PENDING")
		wantRecent(t, a, fmt.Sprintf("data.%d.created_at", i))
	}
	wantValue(t, a, "data.0.channel", "codes")
	wantValue(t, a, "data.1.kind", "link")
	wantValue(t, a, "data.2.kind", "code")
	wantValue(t, a, "data.2.contact_id", "6281700003001@c.us")
	wantValue(t, a, "data.2.attempts", 1.0)
	e.Post("/api/sandbox/clock", `{"advance":301}`).Expect(200)
	a = e.Get("/api/manage/otp?channel=demo&limit=1", admin).Expect(200)
	wantValue(t, a, "data.0.status", "EXPIRED")
	if a.Count("data") != 1 {
		t.Errorf("more than asked for: %s", a.Body)
	}
	e.Get("/api/manage/otp?limit=201", admin).ExpectFields("limit")
}

// TestChannelTimeline holds what a channel's status was to the contract.
func TestChannelTimeline(t *testing.T) {
	e := parleytest.Start(t)
	admin := parleytest.As(e.Admin)
	e.CreateChannel("line")
	e.Post(channels+"/line/stop", "", admin).Expect(200)
	e.Post(channels+"/line/start", "", admin).Expect(200)
	path := channels + "/line/timeline"
	var a *parleytest.Response
	e.Eventually("it works again", func() bool {
		a = e.Get(path, admin).Expect(200)
		return a.Text("data.0.status") == "WORKING"
	})
	var statuses []string
	for i := range a.Count("data") {
		at := fmt.Sprintf("data.%d", i)
		wantKeys(t, a, at, "status", "reason", "at")
		wantRecent(t, a, at+".at")
		statuses = append(statuses, a.Text(at+".status"))
	}
	if want := []string{"WORKING", "STARTING", "STOPPED", "WORKING"}; !slices.Equal(statuses, want) {
		t.Errorf("%q, want %q", statuses, want)
	}
	wantValue(t, a, "data.2.reason", "It was stopped.")
	for _, query := range []string{"days=0", "days=31", "days=x"} {
		e.Get(path+"?"+query, admin).ExpectFields("days")
	}
	e.Get(path+"?days=30", admin).Expect(200)
	e.Get(channels+"/nobody/timeline", admin).ExpectError(404, "channel does not exist")
}

// TestTokenUse makes sure that it is known from where a token was used.
func TestTokenUse(t *testing.T) {
	e := parleytest.Start(t)
	made := e.Post(tokens, `{"kind":"global","name":"used"}`, parleytest.As(e.Admin)).Expect(201)
	wantValue(t, made, "data.last_used_from", nil)
	e.Get("/api/channel/health", parleytest.As(made.Text("data.token")), parleytest.With("User-Agent", "shop/1.2 "+strings.Repeat("é",
		300))).Expect(200)
	e.Eventually("its use is known", func() bool {
		a := e.Get(tokens, parleytest.As(e.Admin)).Expect(200)
		i := slices.Index(column(a, "id"), made.Text("data.id"))
		at := fmt.Sprintf("data.%d.", i)
		agent := a.Text(at + "user_agent")
		return a.Text(at+"last_used_from") == "127.0.0.1" && strings.HasPrefix(agent, "shop/1.2 é") && len(agent) <= 200
	})
}

// wantObject compares an object whole.
func wantObject(t *testing.T, a *parleytest.Response, path string, want map[string]any) {
	t.Helper()
	if got, _ := a.Value(path).(map[string]any); !maps.Equal(got, want) {
		t.Errorf("%s: %s is %v, want %v", a.Request, path, got, want)
	}
}

// TestStats holds the figures over time to the contract.
func TestStats(t *testing.T) {
	e := parleytest.Start(t)
	admin := parleytest.As(e.Admin)
	e.Post("/api/send-message/text", `{"contact_id":"6281700001001@c.us","message":"hi"}`).Expect(200)
	e.Eventually("it is counted", func() bool { return e.Get("/api/manage/stats", admin).Expect(200).Number("data.total.sent") == 1 })
	for span, points := range map[string]int{"": 144, "?span=1h": 60, "?span=24h": 144, "?span=7d": 168, "?span=30d": 180} {
		a := e.Get("/api/manage/stats"+span, admin).Expect(200)
		wantKeys(t, a, "data", "span", "step_seconds", "from", "points", "total")
		if n := a.Count("data.points"); n != points {
			t.Errorf("%s: %d points, want %d", span, n, points)
		}
		wantValue(t, a, fmt.Sprintf("data.points.%d.sent", points-1), 1.0)
		wantValue(t, a, "data.total.sent", 1.0)
	}
	e.CreateChannel("second")
	wantValue(t, e.Get("/api/manage/stats?channel=second", admin).Expect(200), "data.total.sent", 0.0)
	wantValue(t, e.Get("/api/manage/stats?webhook=whk_none", admin).Expect(200), "data.total.sent", 0.0)
	e.Get("/api/manage/stats?channel=none", admin).Expect(422)
	e.Get("/api/manage/stats?span=2h", admin).Expect(422)
}
