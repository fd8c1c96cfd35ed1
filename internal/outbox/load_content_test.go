package outbox_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store"
)

// TestContentIsReadWhenItIsSent has more wait than may be in memory.
func TestContentIsReadWhenItIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		thumbnail := bytes.Repeat([]byte{0xff}, 64<<10)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		const count = 100
		for i := range count {
			b.tx(func(tx *store.Tx) error {
				m := parley.Message{Channel: "demo", Chat: ayu, ID: parley.MessageID(rand.Text()), FromMe: true, CreatedAt: time.Now(),
					Content: parley.Text{Body: fmt.Sprint("a", i), Preview: &parley.Preview{URL: "https://example.com",
						Thumbnail: slices.Clone(thumbnail)}}}
				if err := tx.AddMessage(t.Context(), &m); err != nil {
					return err
				}
				tx.OnCommit(func() { b.worker.Enqueue(&m) })
				return nil
			})
		}
		b.idle()
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > count*int64(len(thumbnail))/3 {
			t.Errorf("%d messages that wait take %d KiB", count, grown>>10)
		}
		sizes := map[int]int{}
		b.net.answer = func(m *parley.Message) error {
			sizes[len(m.Content.(parley.Text).Preview.Thumbnail)]++
			return nil
		}
		b.connect()
		b.idle()
		got := b.net.texts(ayu)
		if len(got) != count || !slices.IsSortedFunc(got, func(x, y string) int { return number(x) - number(y) }) {
			t.Errorf("sent %d: %v", len(got), got)
		}
		if sizes[len(thumbnail)] != count {
			t.Errorf("thumbnails by size: %v", sizes)
		}
	})
}

// TestMessagesForAnotherAccountFail has the account change while messages wait, are retried and are in flight.
func TestMessagesForAnotherAccountFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.net.burst = 1
		lost := make(chan struct{})
		b.net.hold = func(_ context.Context, m *parley.Message) {
			if m.Content.Text() == "under way" {
				<-lost
			}
		}
		b.net.answer = func(m *parley.Message) error {
			if m.Content.Text() == "under way" {
				return network.OutcomeUnknown(nil)
			}
			return nil
		}
		b.connect()
		old := []parley.Message{b.send(ayu, "under way"), b.send(ayu, "behind it")}
		b.idle()
		b.worker.SetSender(nil) // the account is logged out
		old = append(old, b.send(budi, "waits"))
		b.idle()
		b.accountFrom.Store(old[2].Seq) // another one is paired
		b.connect()
		b.idle()
		close(lost)
		b.send(budi, "for the new one")
		b.idle()
		time.Sleep(time.Minute)
		b.idle()
		if got := append(b.net.texts(ayu), b.net.texts(budi)...); !slices.Equal(got, []string{"for the new one"}) {
			t.Errorf("the new account sent %v", got)
		}
		for _, m := range old {
			if got := b.load(m); got.Status != parley.Failed || got.Failure.Code != parley.AccountChanged {
				t.Errorf("%s is %s, %+v", m.Content.Text(), got.Status, got.Failure)
			}
		}
		if got := b.worker.Depth(); got != 0 {
			t.Errorf("%d still queued", got)
		}
		if got := b.doneCount(); got != 4 {
			t.Errorf("OnDone was called %d times", got)
		}
	})
}

// TestAnotherAccountSendsNothingWhileTheStoreFails has the old messages stay until they can be failed.
func TestAnotherAccountSendsNothingWhileTheStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		old := b.send(ayu, "old")
		b.idle()
		b.accountFrom.Store(old.Seq)
		b.store.broken.Store(true)
		b.connect()
		time.Sleep(time.Minute)
		if got := b.net.texts(ayu); len(got) != 0 {
			t.Errorf("sent %v", got)
		}
		b.store.broken.Store(false)
		b.send(ayu, "new")
		time.Sleep(time.Minute)
		b.idle()
		if got := b.net.texts(ayu); !slices.Equal(got, []string{"new"}) {
			t.Errorf("sent %v", got)
		}
	})
}
