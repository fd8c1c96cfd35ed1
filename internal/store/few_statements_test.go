package store_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/otp/rule"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// TestStatementsCopyNoPages: SQLite could undo a statement of several rows alone, and copies every page for that which it changes. Those
// of sends let it off: it was a tenth of their time.
func TestStatementsCopyNoPages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "parley.db")
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	for _, statement := range store.OfSends {
		if step := storetest.CopiesPages(t, path, statement); step != "" {
			t.Errorf("SQLite copies pages because of a %s: %s", step, statement)
		}
	}
	if storetest.CopiesPages(t, path, `INSERT INTO message (chat, position) VALUES (1, nullif(1, 0)), (1, 2)`) == "" {
		t.Error("a function is not found")
	}
}

// TestFewStatements: what happens to many messages, codes or deliveries at once takes a few statements, each of which is a round trip to
// PostgreSQL. Rows that are inserted share one there.
func TestFewStatements(t *testing.T) {
	const many, most = 200, 12
	ran := 0
	db, err := store.OpenNarrow(t.Context(), filepath.Join(t.TempDir(), "parley.db"), func(query string, _ []any) {
		if !strings.HasPrefix(query, "INSERT") {
			ran++
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx := func(do func(*store.Tx) error) int {
		t.Helper()
		ran = 0
		if err := db.Tx(t.Context(), do); err != nil {
			t.Fatal(err)
		}
		return ran
	}
	var seqs []int64
	var webhooks []parley.WebhookID
	var codes []parley.ChannelCode
	tx(func(tx *store.Tx) error {
		if err := tx.AddChannel(t.Context(), parley.Channel{Code: main, Network: parley.Sandbox}); err != nil {
			return err
		}
		for i := range many {
			m := outgoing(fmt.Sprint("A", i))
			contact := parley.NewContactID(fmt.Sprint(6281200000000 + i))
			code := parley.OTPCode{ID: parley.OTPID(fmt.Sprint("otc_", i)), Channel: main, Contact: contact, Hash: []byte{1}, ExpiresAt: start}
			c := parley.Channel{Code: parley.ChannelCode(fmt.Sprint("c", i)), Network: parley.Sandbox}
			w := parley.Webhook{ID: parley.WebhookID(fmt.Sprint("whk_", i)), Channel: c.Code}
			for _, err := range []error{tx.AddMessage(t.Context(), &m), tx.PutLedger(t.Context(), rule.Ledger{Code: code}),
				tx.AddChannel(t.Context(), c), tx.AddWebhook(t.Context(), w)} {
				if err != nil {
					return err
				}
			}
			seqs, webhooks, codes = append(seqs, m.Seq), append(webhooks, w.ID), append(codes, c.Code)
		}
		return nil
	})
	found := 0
	for what, do := range map[string]func(tx *store.Tx) error{
		"messages fail": func(tx *store.Tx) error {
			moved, err := tx.FailMessages(t.Context(), main, seqs, &parley.Failure{Code: parley.Expired}, start)
			found = len(moved)
			return err
		},
		"codes expire": func(tx *store.Tx) error {
			expired, err := tx.ExpireCodes(t.Context(), main, start.Add(-time.Hour), start.Add(time.Hour), 2*many)
			found = len(expired)
			return err
		},
		"deliveries are planned": func(tx *store.Tx) error {
			existing, err := tx.LockWebhooks(append(webhooks, "whk_none"))
			if found = len(existing); err == nil {
				err = tx.FindChannels(t.Context(), append(codes, "none"))
			}
			for _, code := range codes {
				if err == nil {
					err = tx.CheckChannel(t.Context(), code, 0)
				}
			}
			return err
		},
	} {
		if n := tx(do); n > most || found != many {
			t.Errorf("%s: %d statements for %d of %d", what, n, found, many)
		}
	}
}
