package store_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"parley"
	"parley/internal/postgrestest"
	"parley/internal/store"
)

// TestPostgresHandOverHoldsNothing: while a webhook moves to another node, one node stores that a delivery has finished, and the other
// one plans or moves the next one of its chat. Whichever commits first, that one is due afterwards. It stayed held for ever, and so did
// everything of its chat, if each of the two transactions could not see what the other one had done.
func TestPostgresHandOverHoldsNothing(t *testing.T) {
	address := postgrestest.Start(t).Schema(t)
	nodes := make([]*store.DB, 2)
	for i := range nodes {
		db, err := store.Open(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		nodes[i] = db
	}
	raw, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(nodes[0].Tx(t.Context(), func(tx *store.Tx) error {
		return tx.AddChannel(t.Context(), parley.Channel{Code: main, Network: parley.Sandbox})
	}))
	plans := func(ds []parley.Delivery) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			if _, err := tx.LockWebhooks([]parley.WebhookID{ds[0].Webhook}); err != nil {
				return err
			}
			return tx.AddDeliveries(t.Context(), ds)
		}
	}
	for name, finishesFirst := range map[string]bool{"finished, then planned": true, "planned, then finished": false} {
		w := fullWebhook(parley.WebhookID("whk_" + name[:4]))
		first, second := []parley.Delivery{delivery(w.ID, ann, 1)}, []parley.Delivery{delivery(w.ID, ann, 2)}
		must(nodes[0].Tx(t.Context(), func(tx *store.Tx) error { return tx.AddWebhook(t.Context(), w) }))
		must(nodes[0].Tx(t.Context(), plans(first)))
		finish := func(tx *store.Tx) error {
			d := finished(first[0], parley.DeliveryDone, start)
			return tx.UpdateDeliveries(t.Context(), []store.DeliveryResult{{Delivery: d}})
		}
		earlier, later := plans(second), finish
		if finishesFirst {
			earlier, later = finish, plans(second)
		}
		done := make(chan error, 1)
		must(nodes[0].Tx(t.Context(), func(tx *store.Tx) error {
			if err := earlier(tx); err != nil {
				return err
			}
			if _, err := tx.DueDeliveries(t.Context(), first[0].Endpoint(), start, 1); err != nil { // everything before it was written
				return err
			}
			go func() { done <- nodes[1].Tx(context.WithoutCancel(t.Context()), later) }()
			for len(done) == 0 { // until the other node has committed, or waits for this one
				var waits bool
				if err := raw.QueryRow(`SELECT EXISTS (SELECT 1 FROM pg_stat_activity
					WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0)`).Scan(&waits); err != nil || waits {
					return err
				}
				time.Sleep(time.Millisecond)
			}
			return nil
		}))
		must(<-done)
		due, err := nodes[0].DueDeliveries(t.Context(), first[0].Endpoint(), start, 10)
		must(err)
		if len(due) != 1 || due[0].Event != 2 {
			t.Errorf("%s: due are %+v", name, due)
		}
	}
}
