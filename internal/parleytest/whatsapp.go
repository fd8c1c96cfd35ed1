package parleytest

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/app"
	"parley/internal/network/whatsapp/whatsapptest"
)

// OnLoopback is a gateway whose WhatsApp channels are on a network on this machine that speaks the real
// protocol, with phones that encrypt and decrypt.
type OnLoopback struct {
	*Env
	Net *whatsapptest.Server
}

// StartOnLoopback runs a gateway and the network, until the test ends.
func StartOnLoopback(t testing.TB, change ...func(*app.Config)) *OnLoopback {
	t.Helper()
	net := whatsapptest.StartTest(t)
	return &OnLoopback{Env: Start(t, append(change, standIn(t, net.Trust()))...), Net: net}
}

func standIn(t testing.TB, trust whatsapptest.Trust) func(*app.Config) {
	t.Helper()
	raw, err := json.Marshal(trust)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "trust.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return func(c *app.Config) { c.WhatsAppEndpoint, c.WhatsAppTrust = trust.Address, file }
}

// WhatsAppChannel creates a channel on the network, without a pace, and returns a token for it. It is not
// linked to an account.
func (e *OnLoopback) WhatsAppChannel(code string) (token string) {
	e.T.Helper()
	e.Post("/api/manage/channels", `{"code":"`+code+`","network":"whatsapp","settings":{"pace":"0s"}}`, As(e.Admin)).Expect(http.StatusCreated)
	e.Becomes(code, parley.ChannelScanQRCode)
	return e.CreateToken("channel", code)
}

// Becomes waits until a channel has a status, and returns the reason.
func (e *Env) Becomes(code string, status parley.ChannelStatus) (reason string) {
	e.T.Helper()
	e.Eventually("channel "+code+" is "+string(status), func() bool {
		channel := e.Get("/api/manage/channels/"+code, As(e.Admin)).Expect(http.StatusOK)
		reason = channel.Text("data.reason")
		return channel.Text("data.status") == string(status)
	})
	return reason
}

// Pair links a channel to the account of a phone, which scans the QR code of the event log.
func (e *OnLoopback) Pair(code string, owner *whatsapptest.Phone) *whatsapptest.Link {
	e.T.Helper()
	events := e.Events(parley.ChannelPairing)
	e.Post("/api/manage/channels/"+code+"/pair", `{}`, As(e.Admin)).Expect(http.StatusOK)
	shown := events.Expect(func(event Event) bool { return event.Channel == code && event.Data["step"] == "qr" })
	link, err := owner.Scan(e.T.Context(), shown.Data["code"].(string))
	if err != nil {
		e.T.Fatal(err)
	}
	e.Becomes(code, parley.ChannelWorking)
	return link
}

type Event struct {
	ID, Type, Channel string
	Seq               int64
	Data              map[string]any
}

// Events follows the event log of all channels from now on, until the test ends.
func (e *Env) Events(types ...parley.EventType) *EventStream {
	e.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	path := "/api/manage/events"
	if len(types) > 0 {
		names := make([]string, len(types))
		for i, t := range types {
			names[i] = string(t)
		}
		path += "?types=" + strings.Join(names, ",")
	}
	req, err := http.NewRequestWithContext(ctx, "GET", e.URL+path, nil)
	if err != nil {
		e.T.Fatal(err)
	}
	As(e.Admin)(req)
	client := &http.Client{Transport: &http.Transport{}}
	resp, err := client.Do(req)
	if err != nil {
		e.T.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		e.T.Fatalf("%s: status %d", path, resp.StatusCode)
	}
	s := &EventStream{t: e.T, added: make(chan struct{})}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer resp.Body.Close()
		s.read(bufio.NewScanner(resp.Body))
	})
	e.T.Cleanup(func() {
		cancel()
		reading.Wait()
		client.CloseIdleConnections()
	})
	return s
}

type EventStream struct {
	t     testing.TB
	mu    sync.Mutex
	all   []Event
	added chan struct{} // closed when there is more
}

func (s *EventStream) read(lines *bufio.Scanner) {
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if !ok {
			continue
		}
		var event Event
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			s.t.Errorf("an event that is no JSON: %v", err)
			return
		}
		s.mu.Lock()
		s.all = append(s.all, event)
		close(s.added)
		s.added = make(chan struct{})
		s.mu.Unlock()
	}
}

// All are the events so far.
func (s *EventStream) All() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// Expect waits for an event that matches.
func (s *EventStream) Expect(match func(Event) bool) Event {
	s.t.Helper()
	timeout := time.After(WaitLimit)
	for seen := 0; ; {
		s.mu.Lock()
		rest, added := s.all[seen:], s.added
		seen = len(s.all)
		s.mu.Unlock()
		for _, event := range rest {
			if match(event) {
				return event
			}
		}
		select {
		case <-added:
		case <-timeout:
			s.t.Fatalf("the event did not come; there came %+v", s.All())
		}
	}
}
