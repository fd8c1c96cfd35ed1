package callback_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/internal/callback"
	"parley/internal/encrypt"
	"parley/internal/safehttp"
	"parley/internal/store"
)

// BenchmarkDeliver is what an event costs from the log to the answer of a webhook on this machine.
func BenchmarkDeliver(b *testing.B) {
	db, err := store.Open(b.Context(), filepath.Join(b.TempDir(), "parley.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	keyring, err := encrypt.OpenKeyFile(filepath.Join(b.TempDir(), "key"))
	if err != nil {
		b.Fatal(err)
	}
	var got atomic.Int64
	all := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if got.Add(1) == int64(b.N) {
			close(all)
		}
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(context.Background())
	seed(b, db, server.URL)
	engine := callback.New(callback.Config{
		Store: db, Secrets: callback.NewSecrets(db, keyring),
		Client: safehttp.Policy{AllowPrivate: loopback}.Client(safehttp.Options{MaxBody: callback.MaxResponse}),
		Render: encodeEvent, Log: slog.New(slog.DiscardHandler), Version: "1",
	})
	done := make(chan error)
	b.ResetTimer()
	go func() { done <- engine.Run(ctx) }()
	<-all
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
	cancel()
	if err := <-done; err != nil {
		b.Error(err)
	}
}

// seed stores b.N events in a hundred chats, and a webhook that wants them.
func seed(b *testing.B, db *store.DB, url string) {
	ctx := b.Context()
	err := db.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.AddChannel(ctx, parley.Channel{Code: shop}); err != nil {
			return err
		}
		if err := tx.AddWebhook(ctx, parley.Webhook{ID: "whk_1", URL: url, CreatedAt: time.Now()}); err != nil {
			return err
		}
		for i := range b.N {
			m := parley.Message{Channel: shop, Chat: parley.NewContactID(fmt.Sprint(6281100000000 + i%100)),
				ID:      parley.MessageID(fmt.Sprintf("3EB0%08X", i)),
				Content: parley.Text{Body: "Where is my parcel?"}, Status: parley.Received, CreatedAt: time.Now()}
			if err := tx.AddMessage(ctx, &m); err != nil {
				return err
			}
			if err := tx.AddEvent(ctx, &parley.Event{Type: parley.MessageReceived, Channel: shop, At: time.Now(), Chat: m.Chat,
				Message: &m}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
