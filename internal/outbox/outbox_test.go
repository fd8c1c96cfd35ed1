package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store"
)

const ayu, budi = parley.ContactID("6281234567890@c.us"), parley.ContactID("6281234567891@c.us")

func TestMessagesGoOutInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for i := range 50 {
			b.send(ayu, fmt.Sprint("a", i))
			b.send(budi, fmt.Sprint("b", i))
		}
		b.connect()
		b.idle()
		for _, chat := range []parley.ContactID{ayu, budi} {
			got := b.net.texts(chat)
			if len(got) != 50 || !slices.IsSortedFunc(got, func(x, y string) int { return number(x) - number(y) }) {
				t.Errorf("%s got %v", chat, got)
			}
		}
		b.expectAll(parley.Sent)
	})
}

// TestOrderAfterMergedChats has the network learn another spelling of a number while the first message to it is
// under way: what is accepted after that waits for it.
func TestOrderAfterMergedChats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		learned, goOn := make(chan struct{}), make(chan struct{})
		b.net.hold = func(_ context.Context, m *parley.Message) {
			if m.Content.Text() == "first" {
				close(learned)
				<-goOn
			}
		}
		b.connect()
		b.send(ayu, "first")
		<-learned
		b.send(ayu, "second")
		b.send(budi, "third")
		b.idle() // the third has left: nobody knew that it is the same contact
		b.tx(func(tx *store.Tx) error {
			tx.OnCommit(func() { b.worker.MergeChats(ayu, budi) })
			return tx.AddAlias(t.Context(), "demo", ayu, budi)
		})
		b.send(budi, "fourth")
		b.send(ayu, "fifth")
		b.idle()
		if !slices.Equal(b.net.order, []string{"third"}) {
			t.Errorf("others did not wait: %v", b.net.order)
		}
		close(goOn)
		b.idle()
		if want := []string{"third", "first", "second", "fourth", "fifth"}; !slices.Equal(b.net.order, want) {
			t.Errorf("the order was %v", b.net.order)
		}
		b.expectAll(parley.Sent)
	})
}

func TestTemporaryFailureIsRetriedWithTheSameID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		failures := 3
		b.net.answer = func(m *parley.Message) error {
			if m.Chat == ayu && failures > 0 {
				failures--
				return errors.New("the network is having a bad moment")
			}
			return nil
		}
		b.connect()
		first := b.send(ayu, "first")
		b.send(ayu, "second")
		b.send(budi, "other")
		b.idle()
		if got := b.net.texts(budi); len(got) != 1 {
			t.Errorf("another chat waited: %v", got)
		}
		if got := b.net.texts(ayu); len(got) != 0 {
			t.Errorf("sent too early: %v", got)
		}
		if m := b.load(first); m.Attempts != 1 || m.NextAttempt.IsZero() {
			t.Errorf("the delay is not stored: %d attempts, next %s", m.Attempts, m.NextAttempt)
		}
		time.Sleep(time.Minute) // the back-off, on the fake clock
		b.idle()
		if got := b.net.texts(ayu); !slices.Equal(got, []string{"first", "second"}) {
			t.Errorf("got %v", got)
		}
		if tries := b.net.tries[first.ID]; tries != 4 {
			t.Errorf("tried %d times under the same id, want 4", tries)
		}
		b.expectAll(parley.Sent)
	})
}

func TestPermanentFailureFailsTheMessageAndItsPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.net.answer = func(m *parley.Message) error {
			if m.Content.Text() == "bad" {
				return network.Refuse(parley.Blocked, "They block us.")
			}
			return nil
		}
		pool := parley.NewPoolID()
		for _, text := range []string{"good", "bad", "after", "last"} {
			b.sendAs(parley.Message{Chat: ayu, Content: parley.Text{Body: text}, Pool: pool})
		}
		b.send(ayu, "another request")
		b.connect()
		b.idle()
		if got := b.net.texts(ayu); !slices.Equal(got, []string{"good", "another request"}) {
			t.Errorf("got %v", got)
		}
		var codes []parley.FailureCode
		for _, m := range b.all() {
			if m.Failure != nil {
				codes = append(codes, m.Failure.Code)
			}
		}
		if want := []parley.FailureCode{parley.Blocked, parley.NotSent, parley.NotSent}; !slices.Equal(codes, want) {
			t.Errorf("failures %v, want %v", codes, want)
		}
		if got := b.worker.Depth(); got != 0 {
			t.Errorf("%d still queued", got)
		}
		if got := b.doneCount(); got != 5 {
			t.Errorf("OnDone was called %d times, want 5", got)
		}
	})
}

func TestEverythingExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		m := b.send(ayu, "never")
		time.Sleep(24*time.Hour - time.Second)
		b.idle()
		if got := b.load(m).Status; got != parley.Pending {
			t.Fatalf("%s a second early", got)
		}
		time.Sleep(2 * time.Second)
		b.idle()
		if got := b.load(m); got.Status != parley.Failed || got.Failure.Code != parley.Expired {
			t.Errorf("got %s, %+v", got.Status, got.Failure)
		}
		b.connect()
		b.idle()
		if got := b.net.texts(ayu); len(got) != 0 {
			t.Errorf("sent after it expired: %v", got)
		}
	})
}

// TestADoubtedClockNeitherFailsNorSends holds what seems too old until the clock is trusted. Other chats go on.
func TestADoubtedClockNeitherFailsNorSends(t *testing.T) {
	for what, priority := range map[string]parley.Priority{"a message": parley.PriorityNormal, "an urgent one": parley.PriorityKnown} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				old := b.sendAs(parley.Message{Chat: ayu, Content: parley.Text{Body: "old"}, Priority: priority})
				behind := b.send(ayu, "behind it")
				b.doubt.Store(true)
				time.Sleep(25 * time.Hour)
				fresh := b.send(budi, "fresh")
				b.connect()
				time.Sleep(5 * time.Minute)
				b.idle()
				for m, want := range map[*parley.Message]parley.Status{&old: parley.Pending, &behind: parley.Pending, &fresh: parley.Sent} {
					if got := b.load(*m).Status; got != want {
						t.Errorf("%q is %s, want %s", m.Content.Text(), got, want)
					}
				}
				b.doubt.Store(false)
				time.Sleep(11 * time.Second)
				b.idle()
				for _, m := range []parley.Message{old, behind} {
					if got := b.load(m); got.Status != parley.Failed || got.Failure.Code != parley.Expired {
						t.Errorf("%q is %s, %+v", m.Content.Text(), got.Status, got.Failure)
					}
				}
				if got := b.net.texts(ayu); len(got) != 0 {
					t.Errorf("sent too late: %v", got)
				}
			})
		})
	}
}

// TestAClockThatWasAheadDelaysNothing finds an attempt that was planned by a clock that was weeks ahead.
func TestAClockThatWasAheadDelaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		m := b.send(ayu, "soon")
		b.idle()
		b.tx(func(tx *store.Tx) error {
			return tx.DelayMessage(t.Context(), "demo", m.Ref(), 1, time.Now().Add(30*24*time.Hour))
		})
		b.restart()
		b.connect()
		time.Sleep(15 * time.Minute)
		b.idle()
		if got := b.load(m).Status; got != parley.Sent {
			t.Errorf("it is %s", got)
		}
	})
}

func TestFailsAfterTwentyAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.net.answer = func(*parley.Message) error { return errors.New("no") }
		b.connect()
		m := b.send(ayu, "poison")
		time.Sleep(3 * time.Hour)
		b.idle()
		if got := b.load(m); got.Status != parley.Failed || got.Failure.Code != parley.GaveUp {
			t.Errorf("got %s, %+v", got.Status, got.Failure)
		}
		if tries := b.net.tries[m.ID]; tries != 20 {
			t.Errorf("tried %d times", tries)
		}
	})
}

func TestWaitsForAConnectionWithoutCountingAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var up atomic.Bool
		b.net.answer = func(*parley.Message) error {
			if !up.Load() {
				return network.NotConnected(nil)
			}
			return nil
		}
		b.connect()
		m := b.send(ayu, "patience")
		time.Sleep(5 * time.Minute)
		up.Store(true)
		time.Sleep(2 * time.Second)
		b.idle()
		if got := b.load(m); got.Status != parley.Sent || got.Attempts != 0 {
			t.Errorf("got %s after %d attempts", got.Status, got.Attempts)
		}
	})
}

func TestUnknownOutcomeConfirmedByAReceiptIsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.net.answer = func(*parley.Message) error { return network.OutcomeUnknown(nil) }
		b.connect()
		m := b.send(ayu, "did it arrive?")
		b.idle() // it was tried twice: the second time at once
		b.tx(func(tx *store.Tx) error {
			_, err := tx.AdvanceMessage(t.Context(), "demo", m.Ref(), parley.Delivered, nil, time.Now())
			return err
		})
		time.Sleep(time.Minute)
		b.idle()
		if tries := b.net.tries[m.ID]; tries != 2 {
			t.Errorf("given to the network %d times", tries)
		}
		if got := b.load(m).Status; got != parley.Delivered {
			t.Errorf("got %s", got)
		}
		if b.worker.Depth() != 0 {
			t.Error("still queued")
		}
	})
}

func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.settings.Store(&parley.ChannelSettings{Pace: new(parley.Duration(2 * time.Second))})
		b.connect()
		start := time.Now()
		for i := range 5 {
			b.send(parley.NewContactID(fmt.Sprintf("62812345678%02d", i)), "x")
		}
		time.Sleep(time.Minute)
		b.idle()
		for i, at := range b.net.times {
			if got, want := at.Sub(start), time.Duration(i)*2*time.Second; got != want {
				t.Errorf("message %d left after %s, want %s", i, got, want)
			}
		}
		if len(b.net.times) != 5 {
			t.Errorf("%d left", len(b.net.times))
		}
	})
}

// TestCarefulPace has a channel without a pace of its own, on the real network: it sends at no regular
// beat, what is urgent first, and an operation delays no message.
func TestCarefulPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.real.Store(true)
		for i := range 20 {
			b.send(parley.NewContactID(fmt.Sprintf("62812345678%02d", i)), "x")
		}
		b.sendAs(parley.Message{Chat: ayu, Content: parley.Text{Body: "code"}, Priority: parley.PriorityKnown})
		b.idle() // so that the worker knows of all of them when it can send
		b.connect()
		time.Sleep(2 * time.Minute)
		b.idle()
		b.expectAll(parley.Sent)
		if got := b.net.order[0]; got != "code" {
			t.Errorf("first out was %q", got)
		}
		different := map[time.Duration]bool{}
		for i := range b.net.times[1:] {
			gap := b.net.times[i+1].Sub(b.net.times[i])
			if different[gap] = true; gap < time.Second || gap > 2*time.Second {
				t.Errorf("message %d left %s after the one before", i+1, gap)
			}
		}
		if len(different) < 5 {
			t.Errorf("the gaps were %v", different)
		}

		start := time.Now()
		b.sendAs(parley.Message{Chat: ayu, Content: parley.Archive{Archived: true}})
		b.idle()
		b.send(ayu, "right after it")
		b.idle()
		if got := time.Since(start); got != 0 {
			t.Errorf("a message behind an operation left after %s", got)
		}
		b.expectAll(parley.Sent)
	})
}

func TestAFasterPaceCountsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.settings.Store(&parley.ChannelSettings{Pace: new(parley.Duration(time.Hour))})
		b.connect()
		b.send(ayu, "one")
		b.send(budi, "two")
		b.idle()
		b.settings.Store(&parley.ChannelSettings{})
		b.worker.Wake()
		b.idle()
		b.expectAll(parley.Sent)
	})
}

func TestUrgentGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.net.burst, b.net.calls = 1, 1
		for i := range 3 {
			b.send(ayu, fmt.Sprint(i))
			b.send(budi, fmt.Sprint(i))
		}
		b.sendAs(parley.Message{Chat: budi, Content: parley.Text{Body: "code"}, Priority: parley.PriorityKnown})
		b.idle() // so that the worker knows of all of them when it can send
		b.connect()
		b.idle()
		if got := b.net.order[0]; got != "code" {
			t.Errorf("first out was %q of %v", got, b.net.order)
		}
	})
}

// TestCodesUnderAttack has strangers' codes and other messages waiting at a pace of a second. A code for a
// known contact leaves next all the same; strangers' codes leave in order, before the other messages.
func TestCodesUnderAttack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.settings.Store(&parley.ChannelSettings{Pace: new(parley.Duration(time.Second))})
		code := func(to parley.ContactID, text string, p parley.Priority) {
			b.sendAs(parley.Message{Chat: to, Content: parley.Text{Body: text}, Priority: p})
		}
		const strangers = 300
		want := []string{"s0", "s1", "s2", "known", "known too"}
		for i := range strangers {
			b.send(parley.NewContactID(fmt.Sprintf("6281234%05d", i)), "other")
		}
		for i := range strangers {
			code(parley.NewContactID(fmt.Sprintf("6281235%05d", i)), fmt.Sprintf("s%d", i), parley.PriorityStranger)
			if i > 2 {
				want = append(want, fmt.Sprintf("s%d", i))
			}
		}
		b.idle() // so that the worker knows of all of them when it can send
		b.connect()
		time.Sleep(2500 * time.Millisecond)
		b.idle()
		if known, all := b.worker.Ahead(parley.PriorityKnown), b.worker.Ahead(parley.PriorityStranger); known != 0 || all != strangers-3 {
			t.Errorf("%d and %d codes wait, want 0 and %d", known, all, strangers-3)
		}
		code(ayu, "known", parley.PriorityKnown)
		code(budi, "known too", parley.PriorityKnown)
		b.idle()
		if known := b.worker.Ahead(parley.PriorityKnown); known != 2 {
			t.Errorf("%d codes wait for known contacts, want 2", known)
		}
		time.Sleep((2*strangers + 3) * time.Second)
		b.idle()
		b.expectAll(parley.Sent)
		for range strangers {
			want = append(want, "other")
		}
		if !slices.Equal(b.net.order, want) {
			t.Errorf("left in the order %v", b.net.order)
		}
	})
}

// TestPriorityAfterARestart has a code leave a queue with an ordinary message too: that one goes back
// behind the codes of others.
func TestPriorityAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.net.burst, b.net.calls = 1, 1
		b.send(ayu, "other")
		first := b.sendAs(parley.Message{Chat: ayu, Content: parley.Text{Body: "replaced"}, Priority: parley.PriorityKnown})
		b.sendAs(parley.Message{Chat: ayu, Content: parley.Text{Body: "code"}, Priority: parley.PriorityKnown})
		b.sendAs(parley.Message{Chat: budi, Content: parley.Text{Body: "stranger"}, Priority: parley.PriorityStranger})
		b.idle()
		b.worker.Cancel(first.Seq)
		b.idle()
		b.connect()
		b.idle()
		if want := []string{"code", "stranger", "other"}; !slices.Equal(b.net.order, want) {
			t.Errorf("left in the order %v, want %v", b.net.order, want)
		}
	})
}

func TestUrgentDoesNotWaitForARetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.net.answer = func(m *parley.Message) error {
			if m.Content.Text() == "slow" {
				return errors.New("later")
			}
			return nil
		}
		b.connect()
		b.send(ayu, "slow")
		b.idle()
		b.sendAs(parley.Message{Chat: ayu, Content: parley.Text{Body: "code"}, Priority: parley.PriorityKnown})
		b.idle()
		if got := b.net.texts(ayu); !slices.Equal(got, []string{"code"}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestCancelledMessageIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		m := b.send(ayu, "regretted")
		b.send(ayu, "kept")
		b.idle() // the first look at the store is over: there it still is to be sent
		b.worker.Cancel(m.Seq)
		b.idle()
		b.connect()
		b.idle()
		if got := b.net.texts(ayu); !slices.Equal(got, []string{"kept"}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestANewWorkerReadsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.send(ayu, "one")
		b.send(ayu, "two")
		b.restart()
		b.connect()
		b.send(ayu, "three")
		b.idle()
		if got := b.net.texts(ayu); !slices.Equal(got, []string{"one", "two", "three"}) {
			t.Errorf("got %v", got)
		}
	})
}

// TestALaterMessageDoesNotOvertake commits a message whose transaction seemed to fail, so it was not enqueued.
func TestALaterMessageDoesNotOvertake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.connect()
		b.send(ayu, "one")
		b.idle()
		b.tx(func(tx *store.Tx) error {
			now := time.Now()
			return tx.AddMessage(t.Context(), &parley.Message{Channel: "demo", Chat: ayu, FromMe: true, Content: parley.Text{Body: "two"},
				CreatedAt: now, ExpiresAt: now.Add(time.Hour)})
		})
		b.store.hidden.Store(true)
		b.worker.Reread()
		b.idle()
		b.store.hidden.Store(false)
		b.send(ayu, "three")
		b.idle()
		if got := b.net.texts(ayu); !slices.Equal(got, []string{"one", "two", "three"}) {
			t.Errorf("got %v", got)
		}
	})
}

// TestIdleWorkerRests counts goroutines: a channel with nothing to send has none, and the sweep still finds what was never enqueued.
func TestIdleWorkerRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.connect()
		b.send(ayu, "one")
		time.Sleep(time.Minute)
		b.idle()
		before := strings.Count(stacks(), "synctest bubble") // the runtime has goroutines of its own, which come and go
		b.tx(func(tx *store.Tx) error {
			now := time.Now()
			return tx.AddMessage(t.Context(), &parley.Message{Channel: "demo", Chat: ayu, FromMe: true, Content: parley.Text{Body: "two"},
				CreatedAt: now, ExpiresAt: now.Add(24 * time.Hour)})
		})
		time.Sleep(time.Hour)
		if got := b.net.texts(ayu); !slices.Equal(got, []string{"one"}) {
			t.Errorf("got %v", got)
		}
		b.worker.Sweep()
		time.Sleep(time.Minute)
		b.idle()
		if got := b.net.texts(ayu); !slices.Equal(got, []string{"one", "two"}) {
			t.Errorf("got %v", got)
		}
		if after := strings.Count(stacks(), "synctest bubble"); after > before || strings.Contains(stacks(), "outbox.(*Worker).run(") {
			t.Errorf("%d goroutines, %d before:\n%s", after, before, stacks())
		}
	})
}

func stacks() string {
	text := make([]byte, 1<<20)
	return string(text[:runtime.Stack(text, true)])
}

// TestConfirmationsAreStoredAfterAnOutage has the store fail after the network took a message.
func TestConfirmationsAreStoredAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		m := b.send(ayu, "once")
		b.store.broken.Store(true)
		b.connect()
		b.idle()
		if b.doneCount() != 1 {
			t.Error("OnDone was not called")
		}
		time.Sleep(5 * time.Second)
		b.store.broken.Store(false)
		if got := b.load(m).Status; got != parley.Sent {
			t.Errorf("got %s", got)
		}
		if tries := b.net.tries[m.ID]; tries != 1 {
			t.Errorf("given to the network %d times", tries)
		}
	})
}

// TestManyConfirmationsAreStoredInParts has a thousand confirmations written, while requests wait behind each transaction.
func TestManyConfirmationsAreStoredInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for i := range 1000 {
			b.send(ayu, fmt.Sprint(i))
		}
		before := b.store.count.Load()
		b.connect()
		b.idle()
		for _, m := range b.all() {
			if m.Status != parley.Sent {
				t.Fatalf("message %d is %s", m.Seq, m.Status)
			}
		}
		if n := b.store.count.Load() - before; n < 5 {
			t.Errorf("there were %d transactions", n)
		}
	})
}

// TestAFailureIsStoredAfterAnOutage has the store fail after the network refused a message.
func TestAFailureIsStoredAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.net.answer = func(*parley.Message) error { return network.Refuse(parley.Blocked, "They block us.") }
		m := b.send(ayu, "no")
		b.store.broken.Store(true)
		b.connect()
		b.idle()
		if b.doneCount() != 0 {
			t.Error("OnDone was called before the failure was durable")
		}
		b.store.broken.Store(false)
		time.Sleep(2 * time.Second)
		b.idle()
		if got := b.load(m).Status; got != parley.Failed {
			t.Errorf("got %s", got)
		}
	})
}

// TestSentAndNotStoredIsNotQueuedAgain lets the sweep see rows that are pending in the store.
func TestSentAndNotStoredIsNotQueuedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		m := b.send(ayu, "once")
		b.store.broken.Store(true)
		b.connect()
		for range 3 {
			time.Sleep(time.Minute)
			b.worker.Sweep()
		}
		b.idle()
		if tries := b.net.tries[m.ID]; tries != 1 {
			t.Errorf("given to the network %d times", tries)
		}
		b.store.broken.Store(false)
	})
}

func TestStopWaitsForBurstsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.net.takes = 3 * time.Second
		b.connect()
		m := b.send(ayu, "nearly there")
		b.idle()
		b.stop()
		if got := b.load(m).Status; got != parley.Sent {
			t.Errorf("got %s", got)
		}
	})
}

func TestConfirmedOperationsTakeEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.connect()
		own, edited := b.send(ayu, "hello"), b.send(ayu, "good by")
		b.idle()
		theirs := parley.Message{Channel: "demo", Chat: ayu, ID: "THEIRS", Content: parley.Text{Body: "hi"}, Status: parley.Received,
			CreatedAt: time.Now()}
		b.tx(func(tx *store.Tx) error { return tx.AddMessage(t.Context(), &theirs) })
		for _, c := range []parley.Content{
			parley.Reaction{Emoji: "👍", Target: theirs.Ref()},
			parley.Seen{Target: theirs.Ref()},
			parley.Star{Target: theirs.Ref(), Starred: true},
			parley.Archive{Archived: true},
			parley.Edit{Body: "good bye", Target: edited.Ref()},
			parley.Delete{Target: own.Ref()},
		} {
			b.sendAs(parley.Message{Chat: ayu, Content: c})
		}
		b.idle()
		if m := b.load(theirs); m.Status != parley.Read || !m.Starred {
			t.Errorf("theirs is %s, starred %t", m.Status, m.Starred)
		}
		if m := b.load(own); m.Status != parley.Deleted || m.Content.Text() != "" {
			t.Errorf("own is %s and says %q", m.Status, m.Content.Text())
		}
		if m := b.load(edited); m.Status != parley.Sent || m.Content.Text() != "good bye" || m.EditedAt.IsZero() {
			t.Errorf("the edited message is %s and says %q since %s", m.Status, m.Content.Text(), m.EditedAt)
		}
		history, total, err := b.store.History(t.Context(), "demo", ayu, parley.Page{Limit: 10})
		if err != nil || total != 3 || len(history[0].Reactions) != 1 {
			t.Errorf("history: %d records, %v, %v", total, history[0].Reactions, err)
		}
		if chat, err := b.store.Chat(t.Context(), "demo", ayu); err != nil || !chat.Archived {
			t.Errorf("chat: %+v, %v", chat, err)
		}
	})
}

func TestTextIsErasedWithoutRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		none := parley.Duration(0)
		b.settings.Store(&parley.ChannelSettings{Retention: &none})
		b.connect()
		m := b.send(ayu, "secret")
		b.idle()
		if got := b.load(m); got.Status != parley.Sent || got.Content.Text() != "" {
			t.Errorf("%s, still says %q", got.Status, got.Content.Text())
		}
		if got := b.net.texts(ayu); !slices.Equal(got, []string{"secret"}) {
			t.Errorf("sent %v", got)
		}
	})
}
