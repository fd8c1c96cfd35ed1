package app

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/store"
)

// screen is a terminal that a test can read.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// banner waits until all of it was printed.
func (s *screen) banner(t *testing.T) string {
	t.Helper()
	for limit := time.After(2 * time.Minute); ; {
		s.mu.Lock()
		text := s.text.String()
		s.mu.Unlock()
		if strings.Contains(text, "Ctrl-C stops.") {
			return text
		}
		select {
		case <-limit:
			t.Fatalf("no banner: %s", text)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestBannerIsTrueAfterGoLive: a development server whose demo channel is on WhatsApp is not called a sandbox, and
// its banner has no example that would write to a stranger.
func TestBannerIsTrueAfterGoLive(t *testing.T) {
	cfg := Config{DataDir: Dir(t.TempDir()), Dev: true, Version: "devel", Program: "bin/parley"}
	shown := new(screen)
	cfg.Screen = shown
	r := start(t, cfg)
	for _, part := range []string{"SANDBOX · nothing leaves this machine", "Phone     Ayu", `"contact_id":"6281234567890@c.us"`} {
		if text := shown.banner(t); !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	r.end(t)

	data, err := OpenData(t.Context(), cfg.DataDir, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = data.Store.Tx(t.Context(), func(tx *store.Tx) error {
		if err := tx.DeleteChannel(context.Background(), DemoChannel); err != nil {
			return err
		}
		live := parley.Channel{Code: DemoChannel, Name: "Demo", Network: parley.WhatsApp}
		live.Begin(time.Now())
		live.Enabled = false // it must not dial
		return tx.AddChannel(context.Background(), live)
	})
	if err != nil {
		t.Fatal(err)
	}
	data.Close()

	shown = new(screen)
	cfg.Screen = shown
	start(t, cfg)
	text := shown.banner(t)
	for _, part := range []string{"LIVE · real phones on demo", "on whatsapp", ": bin/parley channel create try", "`bin/parley --help`",
		"; a new one: bin/parley open)"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	for _, part := range []string{"SANDBOX", "nothing leaves", "contact_id", "6281234567890", "+ "} {
		if strings.Contains(text, part) {
			t.Errorf("%q in\n%s", part, text)
		}
	}
}
