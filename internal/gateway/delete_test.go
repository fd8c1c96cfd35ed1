package gateway_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/gateway"
	"parley/internal/network"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// traffic is messages that go out and come in on channel demo until it is ended.
type traffic struct {
	b        *bench
	sink     network.Sink  // of the channel when it began
	some     chan struct{} // gets one for each message that was accepted
	stop     context.CancelFunc
	ctx      context.Context
	running  sync.WaitGroup
	received int
}

func startTraffic(b *bench) *traffic {
	load := &traffic{b: b, sink: b.driver.sink("demo"), some: make(chan struct{}, 1)}
	load.ctx, load.stop = context.WithCancel(context.Background())
	for i := range 4 {
		load.running.Go(func() { load.send(parley.NewContactID(fmt.Sprintf("62812345678%02d", i))) })
	}
	load.running.Go(load.receive)
	return load
}

func (l *traffic) send(to parley.ContactID) {
	for n := 0; l.ctx.Err() == nil; n++ {
		_, err := l.b.g.Send(context.Background(), "demo", text(to, fmt.Sprint(n)), gateway.SendOptions{})
		switch parley.ToCode(err) {
		case parley.Internal:
			if err != nil {
				l.b.t.Errorf("send: %v", err)
			}
			select {
			case l.some <- struct{}{}:
			default:
			}
		case parley.NotFound, parley.BadRequest, parley.Unavailable:
			time.Sleep(time.Millisecond) // so that the load leaves room for what is tested
		default:
			l.b.t.Errorf("send: %v", err)
		}
	}
}

func (l *traffic) receive() {
	for ; l.ctx.Err() == nil; l.received++ {
		m := network.Message{From: ayu, ID: parley.MessageID(fmt.Sprint("IN", l.received)), Content: parley.Text{Body: "hi"}, At: time.Now()}
		if err := l.sink(context.Background(), m); err != nil { // it is not stored
			time.Sleep(time.Millisecond)
		}
	}
}

func (l *traffic) end() {
	l.stop()
	l.running.Wait()
}

// TestDeletedUnderLoad deletes a channel again and again while messages go out and come in, and makes another
// one with its code.
func TestDeletedUnderLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "parley.db")
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	b := newBenchOn(t, db)
	for round := range 100 {
		load := startTraffic(b)
		for range 10 {
			<-load.some
		}
		if _, err := b.g.DeleteChannel(t.Context(), "demo"); err != nil {
			t.Fatal(err)
		}
		b.awaitDeletions()
		if found := storetest.ChannelRows(t, path, "demo"); len(found) > 0 {
			t.Fatalf("round %d: under load there are %v", round, found)
		}
		early := round%2 == 0 // half of the time the code is used again while the load goes on
		if !early {
			load.end()
		}
		if _, err := b.g.CreateChannel(t.Context(), parley.Channel{Code: "demo", Network: parley.Sandbox}); err != nil {
			t.Fatal(err)
		}
		if !early {
			expectNew(t, path, round)
		}
		old := network.Message{From: budi, ID: "OLD", Content: parley.Text{Body: "hi"}, At: time.Now()}
		if err := load.sink(t.Context(), old); parley.ToCode(err) != parley.BadRequest {
			t.Fatalf("round %d: the new channel got what came for the old one: %v", round, err)
		}
		load.end()
	}
}

// expectNew makes sure that there is nothing of a channel but what a new one has.
func expectNew(t *testing.T, path string, round int) {
	t.Helper()
	found := storetest.ChannelRows(t, path, "demo")
	for _, fresh := range []string{"channel", "channel_state", "event"} {
		delete(found, fresh)
	}
	if len(found) > 0 {
		t.Fatalf("round %d: the new channel has %v", round, found)
	}
}

// TestAChannelCreatedAgainByAnotherProcess deletes a channel and makes another one with its code, before the gateway
// notices.
func TestAChannelCreatedAgainByAnotherProcess(t *testing.T) {
	b := newBench(t)
	sink := b.driver.sink("demo")
	b.tx(func(tx *store.Tx) error {
		if err := tx.DeleteChannel(t.Context(), "demo"); err != nil {
			return err
		}
		return tx.AddChannel(t.Context(), parley.Channel{Code: "demo", Network: parley.Sandbox, Enabled: true})
	})
	// The gateway has not noticed yet.
	if _, err := b.g.Send(t.Context(), "demo", text(ayu, "for the old one"), gateway.SendOptions{}); parley.ToCode(err) != parley.BadRequest {
		t.Errorf("a message for the channel that is gone: %v", err)
	}
	old := network.Message{From: ayu, ID: "OLD", Content: parley.Text{Body: "hi"}, At: time.Now()}
	if err := sink(t.Context(), old); parley.ToCode(err) != parley.BadRequest {
		t.Errorf("what came for the channel that is gone: %v", err)
	}
	b.refresh()
	if got := b.await(ayu, "for the new one", time.Minute); got.Status != parley.Sent {
		t.Errorf("a message for the new channel is %s", got.Status)
	}
	if err := sink(t.Context(), old); parley.ToCode(err) != parley.BadRequest {
		t.Errorf("what came for the channel that is gone, after the gateway noticed: %v", err)
	}
	if len(b.driver.forgotten) != 1 {
		t.Errorf("the network forgot %v", b.driver.forgotten)
	}
}

// TestANewChannelHasNotTheAccountOfTheDeletedOne: while the network cannot delete the keys of a deleted channel, also after a
// restart, a new channel with its code does not connect.
func TestANewChannelHasNotTheAccountOfTheDeletedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.driver.keeps = true
		if _, err := b.g.DeleteChannel(t.Context(), "demo"); err != nil {
			t.Fatal(err)
		}
		old := b.driver.session("demo")
		if _, err := b.g.CreateChannel(t.Context(), parley.Channel{Code: "demo", Network: parley.Sandbox}); err != nil {
			t.Fatal(err)
		}
		b.stop()
		b.start()
		time.Sleep(10 * time.Second) // of the fake clock: some attempts
		if c, _ := b.g.Channel("demo"); b.driver.session("demo") != old || c.State.Status != parley.ChannelStarting {
			t.Errorf("the new channel is %s", c.State.Status)
		}
		if err := b.g.CheckNetwork("demo"); parley.ToCode(err) != parley.Unavailable {
			t.Errorf("its network is %v", err)
		}
		deletions, err := b.store.Deletions(t.Context())
		if err != nil || len(deletions) != 1 || deletions[0].Problem == "" || !deletions[0].FinishedAt.IsZero() {
			t.Errorf("deletions: %+v, %v", deletions, err)
		}
		b.driver.mu.Lock()
		b.driver.keeps = false
		b.driver.mu.Unlock()
		b.awaitDeletions()
		if got := b.await(ayu, "hi", time.Minute); got.Status != parley.Sent {
			t.Errorf("a message of the new channel is %s", got.Status)
		}
		if !slices.Equal(b.driver.forgotten, []parley.ChannelCode{"demo"}) {
			t.Errorf("the network forgot %v", b.driver.forgotten)
		}
	})
}
