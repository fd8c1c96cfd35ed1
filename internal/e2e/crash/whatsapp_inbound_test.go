package crash_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"parley/internal/e2e/runs"
	"parley/internal/network/whatsapp/whatsapptest"
	"parley/internal/store"
)

// TestKillLoopWhatsAppInbound ends the program with SIGKILL again and again while phones write to it, so that
// it dies while it receives messages: decrypted, stored, published, or not yet. The network resends what it
// did not acknowledge; each message must be in the history once, and published once.
//
// PARLEY_KILLS and PARLEY_INBOUND make it longer: see "make kills" and "make torture".
func TestKillLoopWhatsAppInbound(t *testing.T) {
	kills, messages := number(t, "PARLEY_KILLS", 6), number(t, "PARLEY_INBOUND", 240)
	const channels, contacts = 5, 8
	record := runs.Begin(t)
	w := startWhatsApp(t, channels, contacts)
	w.record = record
	each := (messages + len(w.chats) - 1) / len(w.chats)
	total := each * len(w.chats)
	taken, allowed := newCounts(), make(chan struct{}, total)
	for _, c := range w.chats {
		w.write(c, each, allowed, taken)
	}
	share := total / (kills + 1)
	for i := range kills {
		switch i % 3 {
		case 0: // it dies wherever it happens to be
			allow(allowed, share)
			if err := taken.await(i*share + rand.N(max(1, share-chatWindow))); err != nil {
				t.Fatalf("before kill %d: %v\n%s", i, err, w.tail())
			}
			w.crash()
		case 1: // before it keeps what it was given
			letGo := w.holdDatabase()
			allow(allowed, share)
			<-time.After(50*time.Millisecond + rand.N(200*time.Millisecond))
			w.crash(letGo)
		case 2: // between keeping something and acknowledging it
			w.wa.Inject(whatsapptest.LoseReceipt())
			allow(allowed, share)
			w.awaitFaults()
			w.crash()
		}
	}
	allow(allowed, total-kills*share)
	if err := taken.await(total); err != nil {
		t.Errorf("not everything was acknowledged: %v", err)
	}
	record.Messages = total
	w.judgeInbound(each)
	w.judgeSealing()
	again := 0
	for _, e := range w.wa.Traces() {
		for _, d := range e.Deliveries {
			if d.Device != 0 && d.Given > 1 {
				again++
			}
		}
	}
	if again < kills/3 {
		t.Errorf("%d messages were given again after %d kills: the program did not die while it took messages in", again, w.crashes)
	}
	t.Logf("%d inbound messages, %d kills: %d were given again; slowest recovery %s", total, w.crashes, again, w.slowest)
}

// holdDatabase keeps the program from writing to its database, as long as that waits for others, until the
// database is let go.
func (w *whatsappWorld) holdDatabase() (letGo func()) {
	w.t.Helper()
	db, err := store.Open(w.t.Context(), filepath.Join(w.data, "parley.db"))
	if err != nil {
		w.t.Fatal(err)
	}
	held, over := make(chan struct{}), make(chan struct{})
	var holding sync.WaitGroup
	holding.Go(func() {
		err := db.Tx(w.t.Context(), func(*store.Tx) error {
			close(held)
			<-over
			return nil
		})
		if err != nil {
			w.t.Errorf("hold the database: %v", err)
		}
	})
	<-held
	return func() {
		close(over)
		holding.Wait()
		if err := db.Close(); err != nil {
			w.t.Error(err)
		}
	}
}

// chatWindow is how many messages of a chat may be unacknowledged before its contact waits.
const chatWindow = 3

// allow lets the phones write some more.
func allow(allowed chan<- struct{}, messages int) {
	for range messages {
		allowed <- struct{}{}
	}
}

// write has the contact of a chat write when it may, and counts what the program acknowledged.
func (w *whatsappWorld) write(c whatsappChat, messages int, allowed <-chan struct{}, taken *counts) {
	ctx := w.t.Context()
	written := make(chan string, chatWindow-2) // one more is waited for, and one waits to be put here
	w.watchers.Go(func() {
		defer close(written)
		for n := range messages {
			select {
			case <-allowed:
			case <-ctx.Done():
				return
			}
			id, err := c.contact.Send(ctx, c.channel.owner, fmt.Sprint("in ", n))
			if err != nil {
				w.t.Errorf("a phone cannot write: %v", err)
				return
			}
			select {
			case written <- id:
			case <-ctx.Done():
				return
			}
		}
	})
	w.watchers.Go(func() {
		for id := range written {
			if _, err := c.contact.AwaitReceipt(ctx, id, ""); err != nil { // "" says that it was delivered
				return // the test is over
			}
			taken.add()
		}
	})
}

// judgeInbound compares the history and the event log with what the phones wrote.
func (w *whatsappWorld) judgeInbound(each int) {
	w.t.Helper()
	published := w.received()
	want := numbered("in", 0, each, 1)
	var kept, log runs.Comparison
	for _, c := range w.chats {
		_, texts := w.history(c)
		kept.Compare(texts, want)
		log.Compare(published[c.contact.Number()], want)
		delete(published, c.contact.Number())
	}
	for _, texts := range published {
		w.t.Errorf("%d messages were published in a chat that does not exist", len(texts))
	}
	w.record.Add(kept)
	w.record.Skipped += log.Lost
	if kept.Sum()+log.Sum() > 0 {
		w.t.Errorf("in the history: %s; in the event log: %s\n%s", kept, log, w.tail())
	}
	w.t.Logf("in the history: %s; in the event log: %s", kept, log)
}
