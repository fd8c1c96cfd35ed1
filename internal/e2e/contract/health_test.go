package contract_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/network/whatsapp/whatsapptest"
	"parley/internal/parleytest"
	"parley/internal/store"
)

var (
	healthKeys = []string{"name", "code", "network", "simulated", "status", "reason", "since", "up_time", "start_at", "timestamp",
		"phone", "waiting"}
	upTimeForm = regexp.MustCompile(`^(\d+h)?(\d+m)?\d+s$`)
)

// TestChannelHealth follows the health of channels through their lives.
func TestChannelHealth(t *testing.T) {
	t.Parallel() // much of it is waiting
	e := parleytest.Start(t)
	t.Run("working", func(t *testing.T) { healthWorking(t, within(t, e)) })
	t.Run("stop and start", func(t *testing.T) { healthStopped(t, within(t, e)) })
	t.Run("before it ever worked", func(t *testing.T) { healthBefore(t, within(t, e)) })
	t.Run("logged out", func(t *testing.T) { healthLoggedOut(t, within(t, e)) })
	t.Run("restricted", func(t *testing.T) { healthRestricted(t, within(t, e)) })

	old := e.Get("/api/channel/health").Expect(http.StatusOK)
	e.Restart()
	a := e.Get("/api/channel/health").Expect(http.StatusOK)
	wantValue(t, a, "data.status", "WORKING")
	wantValue(t, a, "data.phone.number", old.Value("data.phone.number"))
	if !wantRecent(t, a, "data.start_at").After(wantRecent(t, old, "data.start_at")) {
		t.Errorf("start_at was %s and is %s after a restart", old.Text("data.start_at"), a.Text("data.start_at"))
	}
}

func healthWorking(t *testing.T, e *parleytest.Env) {
	a := e.Get("/api/channel/health").Expect(http.StatusOK)
	wantKeys(t, a, "", "success", "message", "data")
	wantKeys(t, a, "data", healthKeys...)
	wantKeys(t, a, "data.phone", "name", "number")
	wantValue(t, a, "success", true)
	wantValue(t, a, "data.name", "Demo")
	wantValue(t, a, "data.code", "demo")
	wantValue(t, a, "data.network", "sandbox")
	wantValue(t, a, "data.status", "WORKING")
	wantValue(t, a, "data.reason", "")
	wantValue(t, a, "data.phone.name", "Demo")
	wantValue(t, a, "data.waiting", 0.0)
	// The number is an integer and one of no country.
	var raw struct {
		Data struct {
			Phone struct{ Number json.RawMessage }
		}
	}
	if err := json.Unmarshal(a.Body, &raw); err != nil || !regexp.MustCompile(`^999\d{8}$`).Match(raw.Data.Phone.Number) {
		t.Errorf("the number is %s (%v)", raw.Data.Phone.Number, err)
	}
	start, now := wantRecent(t, a, "data.start_at"), wantRecent(t, a, "data.timestamp")
	wantRecent(t, a, "data.since")
	up, err := time.ParseDuration(a.Text("data.up_time"))
	if err != nil || !upTimeForm.MatchString(a.Text("data.up_time")) {
		t.Fatalf("up_time %q", a.Text("data.up_time"))
	}
	if off := now.Sub(start) - up; off < -time.Second || off > 2*time.Second {
		t.Errorf("up for %s since %s, and it is %s", up, a.Text("data.start_at"), a.Text("data.timestamp"))
	}
	e.Get("/api/channel/health?limit=0&anything=%C3%A4").Expect(http.StatusOK) // it takes no parameters, and minds none
	byGlobal := e.Get("/api/channel/health", parleytest.As(e.Global), parleytest.On("demo")).Expect(http.StatusOK)
	wantValue(t, byGlobal, "data.code", "demo")
}

func healthStopped(t *testing.T, e *parleytest.Env) {
	as, admin := parleytest.As(e.CreateChannel("health")), parleytest.As(e.Admin)
	working := e.Get("/api/channel/health", as).Expect(http.StatusOK)
	wantValue(t, working, "data.name", "health") // its code, as it was given no name

	e.Eventually("it was up for a while", func() bool {
		up, err := time.ParseDuration(e.Get("/api/channel/health", as).Text("data.up_time"))
		return err == nil && up >= time.Second
	})

	e.Post("/api/manage/channels/health/stop", "", admin).Expect(http.StatusOK)
	stopped := e.Get("/api/channel/health", as).Expect(http.StatusOK)
	wantKeys(t, stopped, "data", healthKeys...)
	wantValue(t, stopped, "data.status", "STOPPED")
	wantValue(t, stopped, "data.up_time", "0s")
	wantValue(t, stopped, "data.start_at", working.Text("data.start_at"))
	wantValue(t, stopped, "data.phone.number", working.Value("data.phone.number"))
	if stopped.Text("data.reason") == "" {
		t.Error("it does not say why it is stopped")
	}
	if since := wantRecent(t, stopped, "data.since"); since.Before(wantRecent(t, working, "data.since")) {
		t.Errorf("stopped since %s", since)
	}

	e.Post("/api/manage/channels/health/start", "", admin).Expect(http.StatusOK)
	var again *parleytest.Response
	e.Eventually("it works again", func() bool {
		again = e.Get("/api/channel/health", as).Expect(http.StatusOK)
		return again.Text("data.status") == "WORKING"
	})
	wantValue(t, again, "data.reason", "")
	if !wantRecent(t, again, "data.start_at").After(wantRecent(t, working, "data.start_at")) {
		t.Errorf("start_at was %s and is %s", working.Text("data.start_at"), again.Text("data.start_at"))
	}
}

// healthBefore looks at channels that never worked: one that was stored as stopped, and one to which nobody linked an
// account.
func healthBefore(t *testing.T, e *parleytest.Env) {
	data := besides(t, e)
	now := time.Now().UTC()
	err := data.Store.Tx(t.Context(), func(tx *store.Tx) error {
		return tx.AddChannel(t.Context(), parley.Channel{Code: "asleep", Name: "Asleep", Network: parley.Sandbox, CreatedAt: now,
			State: parley.ChannelState{Status: parley.ChannelStopped, Since: now}})
	})
	if err != nil {
		t.Fatal(err)
	}
	// Has the gateway read what is stored.
	e.Call("PATCH", "/api/manage/channels/asleep", `{"name":"Sleeps"}`, parleytest.As(e.Admin)).Expect(http.StatusOK)
	e.Post("/api/manage/channels", `{"code":"foreign","network":"whatsapp"}`, parleytest.As(e.Admin)).Expect(http.StatusCreated)
	for code, status := range map[string]string{"asleep": "STOPPED", "foreign": "SCAN_QR_CODE"} {
		var a *parleytest.Response
		e.Eventually(code+" is known", func() bool {
			a = e.Get("/api/channel/health", parleytest.As(e.Global), parleytest.On(code))
			return a.Status == http.StatusOK && a.Text("data.status") == status
		})
		wantKeys(t, a, "data", healthKeys...)
		wantValue(t, a, "data.start_at", "")
		wantValue(t, a, "data.up_time", "0s")
		wantKeys(t, a, "data.phone", "name", "number")
		wantValue(t, a, "data.phone.number", 0.0)
		wantValue(t, a, "data.phone.name", "")
		wantRecent(t, a, "data.since")
	}
	e.Get("/api/groups", parleytest.As(e.Global), parleytest.On("foreign")).ExpectError(http.StatusBadRequest, "SCAN_QR_CODE")
	// The sandbox API is for channels on the sandbox network, whatever else is wrong.
	e.Get("/api/sandbox/phones", parleytest.As(e.Global), parleytest.On("foreign")).ExpectError(http.StatusBadRequest, "sandbox")
	e.Post("/api/sandbox/clock", `{"advance":0}`, parleytest.As(e.Global), parleytest.On("foreign")).ExpectError(http.StatusBadRequest,
		"sandbox")
}

func healthLoggedOut(t *testing.T, e *parleytest.Env) {
	as, admin := parleytest.As(e.CreateChannel("leaving")), parleytest.As(e.Admin)
	working := e.Get("/api/channel/health", as).Expect(http.StatusOK)
	e.Post("/api/manage/channels/leaving/logout", "", admin).Expect(http.StatusOK)
	var a *parleytest.Response
	e.Eventually("it is logged out", func() bool {
		a = e.Get("/api/channel/health", as).Expect(http.StatusOK)
		return a.Text("data.status") == "LOGGED_OUT"
	})
	wantValue(t, a, "data.up_time", "0s")
	wantValue(t, a, "data.start_at", working.Text("data.start_at"))
	e.Get("/api/contact", as).ExpectError(http.StatusBadRequest, "parley channel pair leaving")
	e.Post("/api/manage/channels/leaving/pair", "", admin).Expect(http.StatusOK)
	e.Eventually("it works again", func() bool { return e.Get("/api/channel/health", as).Text("data.status") == "WORKING" })
}

// healthRestricted checks that the network's refusal of new contacts shows, and stops only first messages.
func healthRestricted(t *testing.T, e *parleytest.Env) {
	token := e.CreateChannel("limited")
	as := parleytest.As(token)
	e.Post("/api/sandbox/faults", `{"fault":"reachout_limit"}`, as).Expect(http.StatusOK)
	refused := e.Post("/api/send-message/text", `{"contact_id":"6281300000001@c.us","message":"Hello"}`, as).Expect(http.StatusOK)
	wantValue(t, refused, "data.error.code", "restricted")
	a := e.Get("/api/channel/health", as).Expect(http.StatusOK)
	wantValue(t, a, "data.status", "WORKING")
	until, err := time.Parse(time.RFC3339, a.Text("data.restricted_until"))
	if err != nil || !until.After(time.Now()) || !stampForm.MatchString(a.Text("data.restricted_until")) {
		t.Errorf("restricted_until %q", a.Text("data.restricted_until"))
	}
	friend := e.PhoneFor(token, "6281300000002")
	friend.Types("I know you").Expect(http.StatusOK)
	friend.Received("I know you")
	wantValue(t, e.Post("/api/send-message/text", `{"contact_id":"6281300000002@c.us","message":"Hello"}`, as).Expect(http.StatusOK),
		"data.status", "SENT")
}

// TestClockIsOff checks that a clock which differs from the network's is reported, and no longer once it is
// put right.
func TestClockIsOff(t *testing.T) {
	e := parleytest.StartOnLoopback(t)
	admin := parleytest.As(e.Admin)
	e.Net.SetClock(20 * time.Second)
	e.WhatsAppChannel("shop")
	link := e.Pair("shop", e.Net.Phone(ownNumber, whatsapptest.Named("Shop")))
	of := func(path, list, field string) (sentence string) {
		a := e.Get(path, admin).Expect(200)
		for i := range a.Count(list) {
			if at := fmt.Sprintf("%s.%d.", list, i); a.Text(at+field) == "clock" {
				sentence = a.Text(at + "sentence")
			}
		}
		return sentence
	}
	need := of("/api/manage/overview", "data.needs", "kind")
	if !strings.HasPrefix(need, "The clock of this machine is ") || !strings.Contains(need, " s behind WhatsApp's.") {
		t.Errorf("what is needed is %q", need)
	}
	if found := of("/api/manage/doctor", "data.findings", "name"); found == "" || !strings.HasPrefix(need, found) {
		t.Errorf("the doctor found %q", found)
	}
	e.Net.SetClock(0)
	link.End(whatsapptest.Cut)
	e.Eventually("it is all right", func() bool { return of("/api/manage/overview", "data.needs", "kind") == "" })
	if found := of("/api/manage/doctor", "data.findings", "name"); found != "agrees with WhatsApp's" {
		t.Errorf("the doctor found %q", found)
	}
}
