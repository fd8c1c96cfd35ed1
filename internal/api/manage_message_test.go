package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/store"
)

// TestRealCodesAreHidden makes sure that of a one-time code to a real phone nothing is shown, not even what
// history has of it, and that it cannot be searched for.
func TestRealCodesAreHidden(t *testing.T) {
	e := newEnv(t)
	now := time.Now()
	err := e.config.Store.Tx(t.Context(), func(tx *store.Tx) error {
		if err := tx.AddChannel(t.Context(), parley.Channel{Code: "real", Network: parley.WhatsApp, CreatedAt: now}); err != nil {
			return err
		}
		for i, c := range []parley.Content{parley.Text{Body: "Good morning"}, parley.Secret{Shown: "Your code is ••••••",
			OTP: "otc_1"}} {
			id := parley.MessageID(fmt.Sprint("A", i))
			m := parley.Message{ID: id, Channel: "real", Chat: ayu, FromMe: true, Content: c, CreatedAt: now, UpdatedAt: now}
			if err := tx.AddMessage(t.Context(), &m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.config.Gateway.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	found := e.call("GET", "/api/manage/messages?channel=real", e.admin, nil)
	found.want(t, http.StatusOK)
	rows := found.json["data"].([]any)
	if len(rows) != 2 {
		t.Fatalf("%d messages: %s", len(rows), found.text)
	}
	for i, want := range []string{"••••••", "Good morning"} {
		if got := rows[i].(m)["body"]; got != want {
			t.Errorf("message %d says %q, want %q", i, got, want)
		}
	}
	id := rows[0].(m)["message_id"].(string)
	if detail := e.call("GET", "/api/manage/messages/"+id+"?channel=real", e.admin, nil); detail.StatusCode != http.StatusOK ||
		strings.Contains(detail.text, "Your code") {
		t.Errorf("its detail: %d %s", detail.StatusCode, detail.text)
	}
}

func TestParseAgo(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0s": 0, "30s": 30 * time.Second, "15m": 15 * time.Minute, "1h": time.Hour, "2d": 48 * time.Hour, "1w": 168 * time.Hour,
	} {
		if got, ok := parseAgo(text); !ok || got != want {
			t.Errorf("%s: %s, %v", text, got, ok)
		}
	}
	for _, text := range []string{"s", "5", "-1h", "1.5h", "1y", "1h30m", "99999d", "½d", "１d"} {
		if got, ok := parseAgo(text); ok {
			t.Errorf("%s is taken for %s", text, got)
		}
	}
}
