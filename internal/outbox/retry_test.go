package outbox_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store"
)

// TestChatsContinueWithTheConnection has every send meet a dead connection.
func TestChatsContinueWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var up atomic.Bool
		b.net.answer = func(*parley.Message) error {
			if !up.Load() {
				return network.NotConnected(nil)
			}
			return nil
		}
		start := time.Now()
		b.connect()
		for i := range 20 {
			b.send(parley.NewContactID(fmt.Sprintf("62812345678%02d", i)), "x")
		}
		b.idle()
		b.worker.SetSender(nil)
		b.idle()
		up.Store(true)
		b.connect()
		b.idle()
		b.expectAll(parley.Sent)
		if took := time.Since(start); took != 0 {
			t.Errorf("they rested %s after the connection was back", took)
		}
	})
}

// TestAConnectionThatCameBackDuringASend has the old connection fail a message when the new one is there.
func TestAConnectionThatCameBackDuringASend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		broken := make(chan struct{})
		b.net.hold = func(context.Context, *parley.Message) { <-broken }
		b.net.answer = func(m *parley.Message) error {
			if b.net.tries[m.ID] == 1 {
				return network.NotConnected(nil)
			}
			return nil
		}
		b.connect()
		b.send(ayu, "x")
		b.idle()
		b.worker.SetSender(nil)
		b.connect()
		b.idle()
		start := time.Now()
		close(broken)
		b.idle()
		b.expectAll(parley.Sent)
		if took := time.Since(start); took != 0 {
			t.Errorf("it rested %s", took)
		}
	})
}

func TestFirstUnknownOutcomeIsRetriedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var unknown atomic.Int32
		unknown.Store(1)
		b.net.answer = func(*parley.Message) error {
			if unknown.Add(-1) >= 0 {
				return network.OutcomeUnknown(nil)
			}
			return nil
		}
		b.connect()
		m := b.send(ayu, "one")
		b.send(ayu, "two")
		b.idle()
		b.expectAll(parley.Sent)
		if tries := b.net.triesOf(m); tries != 2 {
			t.Errorf("given to the network %d times under its id", tries)
		}

		unknown.Store(2) // the second time it rests
		m = b.send(ayu, "three")
		b.idle()
		if got := b.load(m); got.Status != parley.Pending || got.Attempts != 2 {
			t.Errorf("got %s after %d attempts", got.Status, got.Attempts)
		}
		time.Sleep(5 * time.Second)
		b.idle()
		b.expectAll(parley.Sent)
	})
}

// TestNotReadyDoesNotDelayItsChat has operations that cannot be done for an hour.
func TestNotReadyDoesNotDelayItsChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var ready atomic.Bool
		var done []string
		b.net.answer = func(m *parley.Message) error {
			star, ok := m.Content.(parley.Star)
			switch {
			case !ok:
				return nil
			case !ready.Load():
				return network.NotPossibleYet(nil)
			}
			done = append(done, fmt.Sprint(star.Starred))
			return nil
		}
		b.connect()
		target := b.send(ayu, "one")
		on := b.sendAs(parley.Message{Chat: ayu, Content: parley.Star{Target: target.Ref(), Starred: true}})
		b.send(ayu, "two")
		b.idle()
		if got := b.net.texts(ayu); !slices.Equal(got, []string{"one", "two"}) {
			t.Errorf("got %v", got)
		}
		time.Sleep(time.Hour)
		if got := b.load(on); got.Status != parley.Pending || got.Attempts != 0 {
			t.Errorf("the operation is %s after %d attempts", got.Status, got.Attempts)
		}
		ready.Store(true)
		off := b.sendAs(parley.Message{Chat: ayu, Content: parley.Star{Target: target.Ref()}})
		b.send(ayu, "three")
		b.idle()
		if got := b.net.texts(ayu); !slices.Equal(got, []string{"one", "two", "three"}) {
			t.Errorf("got %v", got)
		}
		if got := b.load(off).Status; got != parley.Pending {
			t.Errorf("the second change overtook the first: %s", got)
		}
		time.Sleep(10 * time.Minute)
		b.idle()
		if !slices.Equal(done, []string{"true", "false"}) {
			t.Errorf("done in this order: %v", done)
		}
		if b.load(target).Starred {
			t.Error("the first change counts, not the last")
		}
		if got := b.worker.Depth(); got != 0 {
			t.Errorf("%d still queued", got)
		}
	})
}

// TestAReceiptIsTheLostConfirmation has the network never answer, and the recipient have the message.
func TestAReceiptIsTheLostConfirmation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.net.burst = 1
		b.net.hold = func(ctx context.Context, m *parley.Message) {
			if m.Content.Text() == "one" {
				<-ctx.Done()
			}
		}
		b.net.answer = func(m *parley.Message) error {
			if m.Content.Text() == "one" {
				return network.OutcomeUnknown(nil)
			}
			return nil
		}
		b.connect()
		start := time.Now()
		one := b.send(ayu, "one")
		b.send(ayu, "two")
		b.idle()
		if got := b.net.texts(ayu); len(got) != 0 {
			t.Fatalf("sent %v", got)
		}
		b.receive(one)
		b.idle()
		if got := b.net.texts(ayu); !slices.Equal(got, []string{"two"}) {
			t.Errorf("after the receipt: %v", got)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("the next message waited %s", took)
		}
		if tries := b.net.triesOf(one); tries != 1 {
			t.Errorf("given to the network %d times", tries)
		}
		if got := b.load(one).Status; got != parley.Delivered {
			t.Errorf("got %s", got)
		}
		if got := b.worker.Depth(); got != 0 {
			t.Errorf("%d still queued", got)
		}
	})
}

func TestAReceiptEndsThePauseOfItsChat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.net.answer = func(m *parley.Message) error {
			if m.Content.Text() == "one" {
				return network.OutcomeUnknown(nil)
			}
			return nil
		}
		b.connect()
		start := time.Now()
		one := b.send(ayu, "one")
		b.send(ayu, "two")
		b.idle()
		b.receive(one)
		b.idle()
		if got := b.net.texts(ayu); !slices.Equal(got, []string{"two"}) {
			t.Errorf("after the receipt: %v", got)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("the next message waited %s", took)
		}
	})
}

// TestAMessageCancelledInFlightIsNotSentAgain has it withdrawn while the connection is lost.
func TestAMessageCancelledInFlightIsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		lost := make(chan struct{})
		b.net.hold = func(context.Context, *parley.Message) { <-lost }
		b.net.answer = func(m *parley.Message) error {
			if b.net.tries[m.ID] == 1 && m.Content.Text() == "regretted" {
				return network.NotConnected(nil)
			}
			return nil
		}
		b.connect()
		m := b.send(ayu, "regretted")
		b.idle()
		b.tx(func(tx *store.Tx) error {
			_, err := tx.AdvanceMessage(t.Context(), "demo", m.Ref(), parley.Deleted, nil, time.Now())
			tx.OnCommit(func() { b.worker.Cancel(m.Seq) })
			return err
		})
		b.send(ayu, "kept")
		b.idle()
		close(lost)
		time.Sleep(time.Minute)
		b.idle()
		if got := b.net.texts(ayu); !slices.Equal(got, []string{"kept"}) {
			t.Errorf("got %v", got)
		}
		if got := b.worker.Depth(); got != 0 {
			t.Errorf("%d still queued", got)
		}
	})
}

// TestConfirmedIsNotSentAgain has the store fail for an hour after the network confirmed a message whose
// text must go with the confirmation.
func TestConfirmedIsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		none := parley.Duration(0)
		b.settings.Store(&parley.ChannelSettings{Retention: &none})
		m := b.send(ayu, "once")
		b.store.broken.Store(true)
		b.connect()
		time.Sleep(time.Hour)
		if tries := b.net.triesOf(m); tries != 1 {
			t.Errorf("given to the network %d times", tries)
		}
		if stored := b.store.refused.Load(); stored > 150 {
			t.Errorf("%d attempts to store it in an hour", stored)
		}
		b.store.broken.Store(false)
		time.Sleep(time.Minute)
		b.idle()
		b.expectAll(parley.Sent)
		if tries := b.net.triesOf(m); tries != 1 {
			t.Errorf("given to the network %d times", tries)
		}
	})
}

// TestTheNetworkSaysWhenToTryAgain has a network that wants an hour between two attempts of a chat: no attempt is counted, also a new
// worker waits, and other chats go on.
func TestTheNetworkSaysWhenToTryAgain(t *testing.T) {
	for _, class := range []network.Class{network.Temporary, network.Unknown} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			refusals := 30 // more than the attempts that a message has
			b.net.answer = func(m *parley.Message) error {
				if m.Chat == budi || refusals == 0 {
					return nil
				}
				refusals--
				return &network.Error{Class: class, RetryAfter: 10 * time.Minute}
			}
			b.connect()
			first := b.send(ayu, "one")
			b.send(ayu, "two")
			b.idle()
			if b.send(budi, "other"); b.net.triesOf(first) != 1 {
				t.Errorf("tried %d times at once", b.net.triesOf(first))
			}
			time.Sleep(9 * time.Minute)
			b.restart()
			b.connect()
			b.idle()
			if tries := b.net.triesOf(first); tries != 1 {
				t.Errorf("tried %d times in nine minutes", tries)
			}
			time.Sleep(5 * time.Hour)
			b.idle()
			b.expectAll(parley.Sent)
			if got := b.load(first); got.Attempts != 0 || b.net.triesOf(first) != 31 {
				t.Errorf("%d attempts counted, %d made", got.Attempts, b.net.triesOf(first))
			}
			if want := []string{"other", "one", "two"}; !slices.Equal(b.net.order, want) {
				t.Errorf("the order was %v", b.net.order)
			}
		})
	}
}

func TestANetworkPausesTheChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		pause := &network.Error{Class: network.Temporary, RetryAfter: time.Minute, PauseChannel: true}
		b.net.answer = func(*parley.Message) error {
			if pause == nil {
				return nil
			}
			defer func() { pause = nil }()
			return pause
		}
		b.connect()
		start := time.Now()
		b.send(ayu, "one")
		b.idle()
		b.send(budi, "two")
		b.sendAs(parley.Message{Chat: budi, Content: parley.Text{Body: "urgent"}, Priority: parley.PriorityKnown})
		time.Sleep(59 * time.Second)
		b.connect() // a new connection is no reason to go on
		b.idle()
		if sent := append(b.net.texts(ayu), b.net.texts(budi)...); len(sent) > 0 {
			t.Errorf("sent while the channel should wait: %v", sent)
		}
		time.Sleep(time.Second)
		b.idle()
		b.expectAll(parley.Sent)
		for _, at := range b.net.times {
			if at.Sub(start) != time.Minute {
				t.Errorf("sent after %s", at.Sub(start))
			}
		}
	})
}
