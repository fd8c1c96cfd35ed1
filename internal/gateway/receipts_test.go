package gateway_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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
	if err := report("other", gone[0].ID); parley.ToCode(err) != parley.BadRequest {
		t.Errorf("a receipt of a deleted channel: %v", err)
	}
	if m := b.load(kept); m.Status != parley.Delivered {
		t.Errorf("the message of the other channel is %s", m.Status)
	}
}

// TestAFailureAfterSent has the network report that messages failed which it had confirmed, in flight or delivered.
func TestAFailureAfterSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		before := b.lastEvent()
		report := func(status parley.Status, ms ...parley.Message) error {
			r := network.Receipt{From: ayu, Status: status, At: time.Now()}
			for _, m := range ms {
				r.IDs = append(r.IDs, m.ID)
			}
			if status == parley.Failed {
				r.Failure = &parley.Failure{Code: parley.Restricted, Message: "Too many messages.", Until: time.Now().Add(time.Hour)}
			}
			return b.driver.session("demo").sink(t.Context(), r)
		}
		if err := report(parley.Failed, b.await(ayu, "at once", time.Minute)); err != nil {
			t.Fatal(err)
		}
		code := b.send(parley.Secret{Shown: "•••• is your code", OTP: "otc_1",
			Encrypted: b.keyring.Encrypt([]byte("1234 is your code"), "otc_1")})
		delivered, reaction := b.send(parley.Text{Body: "delivered"}), b.send(parley.Reaction{Emoji: "👍", Target: code.Ref()})
		if err := report(parley.Delivered, delivered); err != nil {
			t.Fatal(err)
		}
		for range 2 { // it comes again
			err := report(parley.Failed, code, delivered, reaction, parley.Message{ID: "UNKNOWN"})
			if unknown, ok := errors.AsType[*network.UnknownMessages](err); !ok || len(unknown.IDs) != 1 || unknown.IDs[0] != "UNKNOWN" {
				t.Errorf("got %v", err)
			}
		}
		b.driver.answer = func(*parley.Message) error { return network.OutcomeUnknown(nil) }
		early := b.begin(ayu, "early", time.Minute)
		synctest.Wait()
		b.driver.answer = nil
		sent := b.driver.session("demo").given
		if err := report(parley.Failed, sent[len(sent)-1]); err != nil {
			t.Fatal(err)
		}
		if m := early(); m.Status != parley.Failed || m.Failure == nil || m.Failure.Code != parley.Restricted {
			t.Errorf("the request that waited got %s %+v", m.Status, m.Failure)
		}
		time.Sleep(time.Hour)
		if n := len(b.driver.texts("demo", ayu)); n != len(sent) {
			t.Error("what failed was sent again")
		}
		if m := b.load(code); m.Status != parley.Failed || m.Failure == nil || m.Failure.Message != "Too many messages." {
			t.Errorf("the code is %s %+v", m.Status, m.Failure)
		}
		var timeline []string
		for _, e := range b.events(before) {
			line := string(e.Type)
			if e.Message != nil {
				line += fmt.Sprint(" ", e.Message.Status, " ", e.Message.Content.Text())
			}
			timeline = append(timeline, line)
		}
		want := []string{"message.status SENT at once", "message.status FAILED at once",
			"message.status SENT •••• is your code", "message.status SENT delivered", "message.reaction SENT •••• is your code",
			"message.status DELIVERED delivered", "message.status FAILED •••• is your code", "otp.failed", "message.status FAILED early"}
		if !slices.Equal(timeline, want) {
			t.Errorf("got\n%s", strings.Join(timeline, "\n"))
		}
		if err := report(parley.Delivered, code); err != nil || b.load(code).Status != parley.Delivered {
			t.Errorf("what failed was delivered nevertheless: %v, %s", err, b.load(code).Status)
		}
	})
}
