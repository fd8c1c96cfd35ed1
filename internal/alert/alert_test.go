package alert

import (
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/cluster"
	"parley/internal/gateway"
	"parley/internal/store"
)

func TestAlertIsSentOnceAndResolved(t *testing.T) {
	e := newEnv(t)
	rule := e.add(parley.AlertRule{Kind: parley.AlertLoggedOut, Name: "Out", URL: e.address})
	now := time.Now()
	if got := e.notices(now); got != "" {
		t.Errorf("nothing is wrong: %s", got)
	}
	e.logout("main")
	if got := e.notices(now); got != "alert.raised" {
		t.Fatalf("logged out: %s", got)
	}
	for range 3 {
		if got := e.notices(now.Add(time.Hour)); got != "" {
			t.Errorf("the same cause again: %s", got)
		}
	}
	e.pair("main")
	if got := e.notices(now.Add(2 * time.Hour)); got != "alert.resolved" {
		t.Errorf("resolved: %s", got)
	}
	alerts, _, err := e.config.Store.Alerts(t.Context(), parley.Page{Limit: 10})
	if err != nil || len(alerts) != 1 || alerts[0].ResolvedAt.IsZero() || alerts[0].NotifiedAt.IsZero() ||
		!strings.Contains(alerts[0].Sentence, "main is logged out") {
		t.Errorf("alerts: %v, %v", alerts, err)
	}
	if got := e.notices(now.Add(3 * time.Hour)); got != "" {
		t.Errorf("after it was resolved: %s", got)
	}
	if problem := e.Test(t.Context(), rule); problem != "" || e.takeReceived() != "alert.test" {
		t.Errorf("test: %s", problem)
	}
}

func TestAlertInQuietHours(t *testing.T) {
	e := newEnv(t)
	e.add(parley.AlertRule{Kind: parley.AlertLoggedOut, URL: e.address, Quiet: parley.QuietHours{From: "22:00", To: "07:00", Zone: "UTC"}})
	e.logout("main")
	e.logout("second")
	night := time.Date(2030, 1, 2, 23, 0, 0, 0, time.UTC)
	if got := e.notices(night); got != "" {
		t.Errorf("at night: %s", got)
	}
	e.pair("second") // over before anybody knew of it
	if got := e.notices(night.Add(time.Hour)); got != "" {
		t.Errorf("later at night: %s", got)
	}
	if got := e.notices(night.Add(9 * time.Hour)); got != "alert.raised" {
		t.Errorf("in the morning: %s", got)
	}
}

func TestAlertIsRetried(t *testing.T) {
	e := newEnv(t)
	e.status = 500
	e.add(parley.AlertRule{Kind: parley.AlertLoggedOut, URL: e.address})
	e.logout("main")
	now := time.Now()
	if got := e.notices(now); got != "alert.raised" {
		t.Fatalf("first: %s", got)
	}
	if got := e.notices(now.Add(time.Second)); got != "" {
		t.Errorf("without a pause: %s", got)
	}
	e.status = 200
	if got := e.notices(now.Add(time.Hour)); got != "alert.raised" {
		t.Errorf("again: %s", got)
	}
}

func TestAlertByMessage(t *testing.T) {
	e := newEnv(t)
	rule := e.add(parley.AlertRule{Kind: parley.AlertFailingSends, Channel: "main", Share: 50, Window: 15 * time.Minute, Contact: ayu})
	if problem := e.Test(t.Context(), rule); problem != "" {
		t.Error(problem)
	}
	for range leastSends {
		must(e.config.Gateway.Send(t.Context(), "main", []gateway.Draft{{To: fails, Content: parley.Text{Body: "x"}}},
			gateway.SendOptions{Wait: time.Minute}))(t)
	}
	now := time.Now()
	e.notices(now)
	e.notices(now.Add(time.Minute))
	if e.count("Parley alert: failing_sends") != 2 || e.count("10 of 10 messages of channel main failed") != 1 {
		t.Errorf("messages: %v", e.messages())
	}
	e.notices(now.Add(2 * time.Hour)) // the window is over
	if e.count("Resolved: ") != 1 {
		t.Errorf("messages: %v", e.messages())
	}
	for _, m := range e.messages() {
		if !strings.HasPrefix(m.IdempotencyKey, "alt_") || m.Request != m.IdempotencyKey || m.Token != "local_global" {
			t.Errorf("message: %+v", m)
		}
	}
}

// TestAlertMessageIsRetried: after a message that failed, the next attempt is another message. An attempt whose result was lost is
// not sent twice.
func TestAlertMessageIsRetried(t *testing.T) {
	e := newEnv(t)
	rule := e.add(parley.AlertRule{Kind: parley.AlertLoggedOut, Channel: "main", Contact: fails})
	e.logout("main")
	now := time.Now()
	for i, want := range []int{1, 2} {
		e.notices(now.Add(time.Duration(i) * time.Hour))
		if ms := e.messages(); len(ms) != want || ms[0].Status != parley.Failed {
			t.Errorf("messages: %v", ms)
		}
	}
	rule.Contact = ayu
	e.add(rule)
	waiting := must(e.config.Store.WaitingAlerts(t.Context()))(t)
	if waiting[0].Problem == "" {
		t.Error("the alert does not say what the problem was")
	}
	if problem := e.sendNotice(t.Context(), rule, &waiting[0], raised); problem != "" { // and the process dies
		t.Errorf("sent: %s", problem)
	}
	e.notices(now.Add(3 * time.Hour))
	e.notices(now.Add(5 * time.Hour))
	if ms := e.messages(); len(ms) != 3 || ms[0].Chat != ayu || ms[0].Status == parley.Failed {
		t.Errorf("messages: %v", ms)
	}
	alerts := must(e.config.Store.WaitingAlerts(t.Context()))(t)
	if len(alerts) != 1 || alerts[0].NotifiedAt.IsZero() || alerts[0].Problem != "" {
		t.Errorf("alerts: %v", alerts)
	}
}

// TestAlertMessageOfUnusableChannel: the alert says why no message can be sent.
func TestAlertMessageOfUnusableChannel(t *testing.T) {
	e := newEnv(t)
	rule := e.add(parley.AlertRule{Kind: parley.AlertLoggedOut, Contact: ayu})
	e.logout("second")
	if problem := e.Test(t.Context(), rule); !strings.Contains(problem, "Pair it with: parley channel pair second") {
		t.Errorf("logged out: %q", problem)
	}
	rule.Via = "gone"
	if problem := e.Test(t.Context(), rule); !strings.Contains(problem, "gone") {
		t.Errorf("deleted: %q", problem)
	}
}

// member is a node of a cluster that serves some channels.
type member struct {
	cluster.Single
	serves []string
}

func (m member) Owns(key string) bool { return slices.Contains(m.serves, key) }
func (m member) Leads() bool          { return false }

// TestAlertOfNodes: the node that serves a channel finds its problem, and the one that serves the channel of the message sends it.
func TestAlertOfNodes(t *testing.T) {
	e := newEnv(t)
	e.add(parley.AlertRule{Kind: parley.AlertLoggedOut, Channel: "main", Contact: ayu})
	e.logout("main")
	now := time.Now()
	steps := []struct{ node, alerts, messages int }{{2, 0, 0}, {1, 1, 0}, {1, 1, 0}, {2, 1, 1}, {2, 1, 1}, {1, 1, 1}}
	for i, step := range steps {
		e.config.Cluster = member{serves: []string{map[int]string{1: "main", 2: "second"}[step.node]}}
		e.notices(now.Add(time.Duration(i) * time.Second))
		alerts := must(e.config.Store.WaitingAlerts(t.Context()))(t)
		if len(alerts) != step.alerts || len(e.messages()) != step.messages {
			t.Errorf("step %d at node %d: %d alerts, %d messages", i, step.node, len(alerts), len(e.messages()))
		}
	}
}

// TestAlertIsNotResolvedWhileSent: a node that read an alert before another began to notify leaves it for the next check. Else
// people would know of the problem, and never of its end.
func TestAlertIsNotResolvedWhileSent(t *testing.T) {
	e := newEnv(t)
	always := parley.QuietHours{From: "00:00", To: "23:59", Zone: "UTC"}
	rule := e.add(parley.AlertRule{Kind: parley.AlertLoggedOut, URL: e.address, Quiet: always})
	e.logout("main")
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	e.notices(now)
	asRead := must(e.config.Store.WaitingAlerts(t.Context()))(t)
	rule.Quiet = parley.QuietHours{}
	if err := e.notify(t.Context(), rule, asRead[0], now); err != nil { // at the other node
		t.Fatal(err)
	}
	err := e.config.Store.Tx(t.Context(), func(tx *store.Tx) error { return resolve(t.Context(), tx, asRead[0], now) })
	if err != nil {
		t.Fatal(err)
	}
	if left := must(e.config.Store.WaitingAlerts(t.Context()))(t); len(left) != 1 || !left[0].ResolvedAt.IsZero() {
		t.Errorf("alerts: %v", left)
	}
	e.pair("main")
	e.takeReceived()
	if err := e.storeCauses(t.Context(), nil, must(e.config.Store.WaitingAlerts(t.Context()))(t), now); err != nil {
		t.Fatal(err)
	}
	left := must(e.config.Store.WaitingAlerts(t.Context()))(t)
	if err := e.notify(t.Context(), rule, left[0], now); err != nil || e.takeReceived() != "alert.resolved" {
		t.Errorf("alerts: %v, %v", left, err)
	}
}
