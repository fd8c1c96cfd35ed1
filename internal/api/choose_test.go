package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/network/sandbox"
	"parley/internal/otp"
	"parley/internal/store"
)

// liveNetwork simulates a real network, with phones of its own.
type liveNetwork struct {
	*sandbox.Network
	sink   network.Sink // of the last session
	opened atomic.Int32
}

func (n *liveNetwork) Info() network.Info {
	info := n.Network.Info()
	info.Name, info.Title, info.Simulated, info.Proxies = parley.WhatsApp, "WhatsApp", false, true
	return info
}

func (n *liveNetwork) Open(ctx context.Context, c parley.Channel, sink network.Sink) (network.Session, error) {
	n.sink = sink
	n.opened.Add(1)
	return n.Network.Open(ctx, c, sink)
}

// newLive makes an API with a real network, before any channel is served.
func newLive(t *testing.T) (*env, *liveNetwork) {
	t.Helper()
	live := &liveNetwork{}
	e := newEnv(t, func(c *Config) {
		live.Network = must(sandbox.Open(t.Context(), filepath.Join(t.TempDir(), "live.db"), nil, c.Log))(t)
		t.Cleanup(func() { live.Network.Close() })
		c.Gateway.Drivers[parley.WhatsApp] = live
	})
	return e, live
}

// addLive adds a channel on the real network.
func (e *env) addLive(code parley.ChannelCode) {
	e.t.Helper()
	must(e.config.Gateway.CreateChannel(e.t.Context(), parley.Channel{Code: code, Network: parley.WhatsApp,
		Settings: parley.ChannelSettings{Pace: new(parley.Duration)}}))(e.t)
	e.waitWorking(code)
}

// TestSandboxNeverStandsIn draws a channel 1,000 times at every endpoint that chooses one, beside a live channel in several
// states. The sandbox channels get nothing, although they exchanged messages with some of the contacts last.
func TestSandboxNeverStandsIn(t *testing.T) {
	e, live := newLive(t)
	for i := range 20 { // a pool prefers the channel that a contact talked to last
		e.call("POST", "/api/send-message/text", e.main, m{"contact_id": drawn(500*i + 1), "message": "from the sandbox"}).want(t, 200)
	}
	e.addLive("live")
	before := e.newestOfSandbox()
	become := func(status parley.ChannelStatus) {
		if err := live.sink(t.Context(), network.State{Status: status}); err != nil {
			t.Fatal(err)
		}
		e.waitStatus("live", status)
	}
	change := func(change func(*parley.Channel)) {
		must(e.config.Gateway.UpdateChannel(t.Context(), "live", change))(t)
	}
	for n, state := range []struct {
		name  string
		set   func()
		works bool // it can be chosen
		sends bool // what names no channel is accepted for it
	}{
		{"working", func() {}, true, true},
		{"reconnecting", func() { become(parley.ChannelReconnecting) }, false, true},
		{"not paired", func() { become(parley.ChannelScanQRCode) }, false, false},
		{"allow-list", func() {
			become(parley.ChannelWorking)
			change(func(c *parley.Channel) { c.Settings.AllowOnly = []parley.ContactID{ayu} })
		}, false, false},
		{"stopped", func() { change(func(c *parley.Channel) { c.Enabled = false }) }, false, false},
	} {
		t.Run(state.name, func(t *testing.T) {
			state.set()
			first := 2000 * n
			e.draw(t, "/api/send-message/text", first, state.sends)
			e.draw(t, "/api/send-message/pool", first+1000, state.works)
			e.draw(t, "/api/otp/code/request", first, state.sends) // codes for contacts that got a message meet no limit
			e.draw(t, "/api/otp/code/global", first+1000, state.works)
			e.draw(t, "/api/otp/link/request", first, state.sends)
			e.draw(t, "/api/otp/link/global", first, state.works)
		})
	}
	if after := e.newestOfSandbox(); after != before {
		t.Errorf("the newest messages of the sandbox channels are %s, before %s", after, before)
	}
	named := e.call("POST", "/api/otp/link/global", e.global, m{"contact_id": ayu, "expires": 300}, "X-Channel", "main").want(t, 200)
	if link := named["link"].(string); !strings.Contains(link, "/phone/") {
		t.Errorf("a channel of the sandbox that was named made %s", link)
	}
}

// TestSandboxTicketApprovesNoRealLink taps pages of simulated phones with all that a stranger may have: a ticket of the sandbox, and
// the text and the id of a link to a real channel for the same contact.
func TestSandboxTicketApprovesNoRealLink(t *testing.T) {
	e, _ := newLive(t)
	e.addLive("live")
	body := m{"contact_id": ayu, "expires": 300}
	tap := func(ticket, text string) reply {
		return e.call("POST", "/phone/6281234567890/send", "", m{"ticket": ticket, "text": text})
	}
	sandboxed := e.call("POST", "/api/otp/link/request", e.main, body).want(t, 200)
	_, ticket, _ := strings.Cut(sandboxed["link"].(string), "#ticket=")
	real := e.call("POST", "/api/otp/link/global", e.global, body).want(t, 200)
	address := must(url.Parse(real["link"].(string)))(t)
	id, prompt := real["id"].(string), address.Query().Get("text")
	if address.Host != "wa.me" || !strings.Contains(prompt, real["code"].(string)) {
		t.Fatalf("the link is %s", address)
	}
	tap(ticket, prompt).want(t, 200) // a text like any other, to the sandbox channel
	tap(id+ticket[len(id):], prompt).want(t, 404)

	// Even a valid ticket is of no use for a link to a real channel.
	moved := must(e.config.OTP.NewLink(otp.LinkRequest{Channel: parley.Channel{Code: "live", Network: parley.Sandbox},
		Contact: parley.ContactID(drawn(1)), Expires: time.Minute, Now: time.Now()}))(t)
	if err := e.config.Store.Tx(t.Context(), func(tx *store.Tx) error { return tx.AddLink(t.Context(), moved.OTPLink) }); err != nil {
		t.Fatal(err)
	}
	_, ticket, _ = strings.Cut(moved.Address, "#ticket=")
	e.call("POST", "/phone/"+strings.TrimSuffix(drawn(1), "@c.us")+"/send", "", m{"ticket": ticket, "text": moved.Code}).want(t, 404)

	// It is not that the page is broken: the sandbox link can be approved. By then the channel has read the texts before it.
	_, ticket, _ = strings.Cut(sandboxed["link"].(string), "#ticket=")
	answer := tap(ticket, must(url.Parse(sandboxed["link"].(string)))(t).Query().Get("text")).want(t, 200)["answer"]
	if text, _ := answer.(string); !strings.HasPrefix(text, "You are logged in") {
		t.Errorf("the phone got %v", answer)
	}
	for _, id := range []string{id, string(moved.ID)} {
		if state := e.call("GET", "/api/otp/link/"+id, e.global, nil).want(t, 200); state["status"] != "PENDING" || state["tries"] != 0.0 {
			t.Errorf("%s is %v", id, state)
		}
	}
}

func drawn(i int) string { return fmt.Sprintf("62813%08d@c.us", i) }

// draw sends a request that names no channel 1,000 times, for the contacts from first on. may says whether any is accepted.
func (e *env) draw(t *testing.T, path string, first int, may bool) {
	const draws = 1000
	var next, accepted atomic.Int64
	var last atomic.Value
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := next.Add(1); i <= draws && !t.Failed(); i = next.Add(1) {
				r := httptest.NewRequest("POST", path, bytes.NewReader(drawBody(t, path, drawn(first+int(i)))))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Authorization", "Bearer "+e.global)
				r.Header.Set("Prefer", "respond-async")
				w := httptest.NewRecorder()
				e.handler.ServeHTTP(w, r)
				body := w.Body.String()
				last.Store(body)
				if w.Code < 300 && !strings.Contains(body, "not_sent") {
					accepted.Add(1)
				}
				if strings.Contains(body, "/phone/") || strings.Contains(body, `"channel":"main"`) || strings.Contains(body, `"channel":"second"`) {
					t.Errorf("%s chose the sandbox: %s", path, body)
				}
			}
		})
	}
	wg.Wait()
	if n := accepted.Load(); (n > 0) != may {
		t.Errorf("%s: %d of %d accepted, last %v", path, n, draws, last.Load())
	}
}

func drawBody(t *testing.T, path, contact string) []byte {
	body := m{"contact_id": contact}
	switch path {
	case "/api/send-message/pool":
		body["pools"] = []m{{"type": "text", "data": []string{"halo"}}}
	case "/api/send-message/text":
		body["message"] = "halo"
	default:
		body["expires"] = 300
	}
	return must(json.Marshal(body))(t)
}

// newestOfSandbox names the newest messages of the two sandbox channels.
func (e *env) newestOfSandbox() string {
	e.t.Helper()
	var newest []string
	for _, code := range []string{"main", "second"} {
		listed := e.call("GET", "/api/manage/messages?limit=1&channel="+code, e.admin, nil)
		listed.want(e.t, 200)
		for _, row := range listed.json["data"].([]any) {
			newest = append(newest, row.(m)["message_id"].(string))
		}
	}
	return strings.Join(newest, ", ")
}
