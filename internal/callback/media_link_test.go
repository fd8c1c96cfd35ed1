package callback_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/store"
)

// linkIn returns the link to the file of a delivered message.
func linkIn(t *testing.T, h hit) string {
	t.Helper()
	var event struct {
		Data struct {
			Media struct{ URL string }
		}
	}
	if err := json.Unmarshal(h.body, &event); err != nil {
		t.Fatal(err)
	}
	return event.Data.Media.URL
}

// TestSignedLinks: every attempt makes its own signature, for a webhook that asks for it.
func TestSignedLinks(t *testing.T) {
	inBubble(t, func(e *env) {
		plain := e.webhook("https://plain.example/hook")
		signed := parley.Webhook{ID: parley.NewWebhookID(), URL: "https://signed.example/hook", SignedMedia: true, CreatedAt: time.Now()}
		e.tx(func(tx *store.Tx) error { return tx.AddWebhook(context.Background(), signed) })
		down := true
		e.servers.on("signed.example", func(*http.Request) (*http.Response, error) {
			if down {
				down = false
				return answer(500), nil
			}
			return answer(200), nil
		})
		e.start()
		m := parley.Message{Channel: shop, Chat: ann, ID: "3EB0A1", Status: parley.Received, CreatedAt: time.Now(),
			Content: parley.Image{Media: parley.Media{ID: strings.Repeat("0a", 16), Key: strings.Repeat("0a", 16), MIME: "image/png", Size: 3}}}
		e.tx(func(tx *store.Tx) error {
			if err := tx.AddMessage(context.Background(), &m); err != nil {
				return err
			}
			return tx.AddEvent(context.Background(), &parley.Event{Type: parley.MessageReceived, Channel: shop, At: time.Now(), Message: &m})
		})
		pass(time.Hour)
		if hits := e.servers.at("plain.example"); len(hits) != 1 || linkIn(t, hits[0]) != testLinks.Plain(parley.NewMediaID(&m)) {
			t.Errorf("%s got %+v", plain.ID, hits)
		}
		hits := e.servers.at("signed.example")
		if len(hits) != 2 {
			t.Fatalf("there were %d attempts", len(hits))
		}
		for i, h := range hits {
			u, err := url.Parse(linkIn(t, h))
			if err != nil {
				t.Fatal(err)
			}
			verify := func(at time.Time) error {
				return testLinks.Verify(parley.MediaID(path.Base(u.Path)), u.Query().Get("expires"), u.Query().Get("signature"), at)
			}
			if err := verify(h.at.Add(24*time.Hour - 2*time.Second)); err != nil {
				t.Errorf("attempt %d, a day later: %v", i, err)
			}
			if err := verify(h.at.Add(24*time.Hour + time.Second)); err != parley.ErrLinkExpired {
				t.Errorf("attempt %d, after that: %v", i, err)
			}
		}
		if linkIn(t, hits[0]) == linkIn(t, hits[1]) {
			t.Error("both attempts had the same signature")
		}
		if log := e.log.String(); strings.Contains(log, "signature=") {
			t.Errorf("a signature was logged: %s", log)
		}
	})
}
