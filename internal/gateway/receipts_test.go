package gateway_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/gateway"
	"parley/internal/network"
	"parley/internal/store"
)

// TestReceiptsAtOnce reports the receipts of two channels from many goroutines, one with an unknown message each.
func TestReceiptsAtOnce(t *testing.T) {
	const contacts, each = 20, 15
	b := newBench(t)
	b.tx(func(tx *store.Tx) error {
		return tx.AddChannel(t.Context(), parley.Channel{Code: "other", Name: "Other", Network: parley.Sandbox, Enabled: true})
	})
	b.refresh()
	var reporting sync.WaitGroup
	sent := map[parley.ChannelCode][]parley.MessageRef{}
	for _, code := range []parley.ChannelCode{"demo", "other"} {
		session := b.driver.session(code)
		for i := range contacts {
			to := parley.ContactID(fmt.Sprintf("62812000%05d@c.us", i))
			ids := []parley.MessageID{"UNKNOWN"}
			for n := range each {
				ms, err := b.g.Send(t.Context(), code, text(to, fmt.Sprint(n)), gateway.SendOptions{Wait: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				ids, sent[code] = append(ids, ms[0].ID), append(sent[code], ms[0].Ref())
			}
			reporting.Go(func() {
				for _, status := range []parley.Status{parley.Delivered, parley.Read} {
					err := session.sink(t.Context(), network.Receipt{From: to, IDs: ids, Status: status, At: time.Now()})
					unknown, ok := errors.AsType[*network.UnknownMessages](err)
					if !ok || len(unknown.IDs) != 1 || unknown.IDs[0] != "UNKNOWN" {
						t.Errorf("%s of %s: %v", status, to, err)
					}
				}
			})
		}
	}
	reporting.Wait()
	for code, refs := range sent {
		now, err := b.g.CurrentMessages(t.Context(), code, refs)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range now {
			if m.Status != parley.Read {
				t.Errorf("%s of %s is %s", m.ID, code, m.Status)
			}
		}
	}
}

// TestReceiptsOfADeletedChannel deletes a channel while its receipts and those of another one are reported.
func TestReceiptsOfADeletedChannel(t *testing.T) {
	b := newBench(t)
	b.tx(func(tx *store.Tx) error {
		return tx.AddChannel(t.Context(), parley.Channel{Code: "other", Name: "Other", Network: parley.Sandbox, Enabled: true})
	})
	b.refresh()
	kept := b.await(ayu, "kept", time.Minute)
	gone, err := b.g.Send(t.Context(), "other", text(ayu, "gone"), gateway.SendOptions{Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	report := func(code parley.ChannelCode, id parley.MessageID) error {
		return b.driver.session(code).sink(t.Context(), network.Receipt{From: ayu, IDs: []parley.MessageID{id}, Status: parley.Delivered,
			At: time.Now()})
	}
	var reporting sync.WaitGroup
	for range 8 {
		reporting.Go(func() {
			if err := report("demo", kept.ID); err != nil {
				t.Errorf("a receipt of the other channel: %v", err)
			}
		})
		reporting.Go(func() { report("other", gone[0].ID) }) // stored or rejected
	}
	if _, err := b.g.DeleteChannel(t.Context(), "other"); err != nil {
		t.Error(err)
	}
	reporting.Wait()
	if err := report("other", gone[0].ID); parley.CodeOf(err) != parley.BadRequest {
		t.Errorf("a receipt of a deleted channel: %v", err)
	}
	if m := b.load(kept); m.Status != parley.Delivered {
		t.Errorf("the message of the other channel is %s", m.Status)
	}
}
