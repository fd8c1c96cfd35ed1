package outbox_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/outbox"
	"parley/internal/store"
)

// bench is a worker on a store in memory and a scripted network.
type bench struct {
	t        *testing.T
	store    *breakable
	net      *fakeNetwork
	worker   *outbox.Worker
	real     atomic.Bool // it is on WhatsApp, else in the sandbox
	doubt    atomic.Bool // the clock is not trusted
	settings atomic.Pointer[parley.ChannelSettings]

	accountFrom atomic.Int64
	cancel      context.CancelFunc
	done        chan struct{}

	mu     sync.Mutex
	onDone []parley.Message
	sent   []parley.Message // everything that was enqueued
}

func newBench(t *testing.T) *bench {
	t.Helper()
	db, err := store.Open(t.Context(), "memory:"+t.Name())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, store: &breakable{DB: db}, net: &fakeNetwork{burst: 16, calls: 2, tries: map[parley.MessageID]int{}}}
	b.settings.Store(&parley.ChannelSettings{})
	b.tx(func(tx *store.Tx) error {
		return tx.AddChannel(t.Context(), parley.Channel{Code: "demo", Name: "Demo", Network: parley.Sandbox})
	})
	b.start()
	t.Cleanup(func() {
		b.stop()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) start() {
	b.worker = outbox.New(outbox.Config{
		Channel: "demo", Store: b.store, Now: time.Now, ClockTrusted: func() bool { return !b.doubt.Load() }, Log: slog.New(slog.DiscardHandler),
		EncryptForResend: func(*parley.Message) []byte { return nil },
		Current: func() parley.Channel {
			return parley.Channel{Settings: *b.settings.Load(), AccountFrom: b.accountFrom.Load()}
		},
		Pace: func() (least, most time.Duration) {
			var info network.Info
			if b.real.Load() {
				info.LeastPace, info.MostPace = time.Second, 2*time.Second
			}
			return info.Pace(parley.Channel{Settings: *b.settings.Load()})
		},
		RemoveFile: func(parley.Media) {},
		OnDone: func(m *parley.Message) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.onDone = append(b.onDone, *m)
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel, b.done = cancel, make(chan struct{})
	worker, done := b.worker, b.done
	go func() {
		defer close(done)
		worker.Start(ctx, true)
		<-ctx.Done()
		worker.Wait()
	}()
}

func (b *bench) stop() {
	b.cancel()
	<-b.done
}

func (b *bench) restart() {
	b.stop()
	b.start()
}

func (b *bench) connect() { b.worker.SetSender(b.net) }

// receive has a receipt of a message come in, as the gateway takes it.
func (b *bench) receive(m parley.Message) {
	b.t.Helper()
	r := store.Receipt{Channel: "demo", Chat: m.Chat, IDs: []parley.MessageID{m.ID}, Status: parley.Delivered, At: time.Now()}
	var advanced []store.Advanced
	b.tx(func(tx *store.Tx) (err error) {
		advanced, err = tx.AdvanceMessages(b.t.Context(), r)
		return err
	})
	b.worker.ConfirmByReceipt(advanced[0].Seqs)
}

// idle waits until all goroutines wait.
func (b *bench) idle() { synctest.Wait() }

func (b *bench) tx(do func(*store.Tx) error) {
	b.t.Helper()
	if err := b.store.Tx(b.t.Context(), do); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) send(to parley.ContactID, text string) parley.Message {
	return b.sendAs(parley.Message{Chat: to, Content: parley.Text{Body: text}})
}

func (b *bench) sendAs(m parley.Message) parley.Message {
	b.t.Helper()
	m.Channel, m.ID, m.FromMe = "demo", parley.MessageID(rand.Text()), true
	m.CreatedAt = time.Now()
	m.ExpiresAt = m.CreatedAt.Add(24 * time.Hour)
	b.tx(func(tx *store.Tx) error {
		if err := tx.AddMessage(b.t.Context(), &m); err != nil {
			return err
		}
		tx.OnCommit(func() {
			queued := m
			b.worker.Enqueue(&queued)
		})
		return nil
	})
	b.sent = append(b.sent, m)
	return m
}

func (b *bench) load(m parley.Message) parley.Message {
	b.t.Helper()
	if err := b.worker.Flush(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	now, err := b.store.Message(b.t.Context(), "demo", m.Ref())
	if err != nil {
		b.t.Fatal(err)
	}
	return now
}

func (b *bench) all() (ms []parley.Message) {
	for _, m := range b.sent {
		ms = append(ms, b.load(m))
	}
	return ms
}

func (b *bench) expectAll(want parley.Status) {
	b.t.Helper()
	for _, m := range b.all() {
		if m.Status != want {
			b.t.Errorf("%s is %s, want %s", m.Content.Text(), m.Status, want)
		}
	}
	if got := b.worker.Depth(); got != 0 {
		b.t.Errorf("%d still queued", got)
	}
	if got := b.doneCount(); got != len(b.sent) {
		b.t.Errorf("OnDone was called %d times, want %d", got, len(b.sent))
	}
}

func (b *bench) doneCount() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.onDone)
}

// breakable is a store whose transactions fail while it is broken.
type breakable struct {
	*store.DB
	broken  atomic.Bool
	hidden  atomic.Bool  // the queue cannot be read
	refused atomic.Int32 // transactions
	count   atomic.Int32 // of transactions that were run
}

func (s *breakable) Tx(ctx context.Context, do func(*store.Tx) error) error {
	if s.broken.Load() {
		s.refused.Add(1)
		return errors.New("the disk is full")
	}
	s.count.Add(1)
	return s.DB.Tx(ctx, do)
}

func (s *breakable) Queue(ctx context.Context, channel parley.ChannelCode) ([]parley.Queued, error) {
	if s.hidden.Load() {
		return nil, errors.New("the database does not answer")
	}
	return s.DB.Queue(ctx, channel)
}

// fakeNetwork keeps what it is given, in order.
type fakeNetwork struct {
	burst, calls int
	takes        time.Duration
	answer       func(*parley.Message) error
	hold         func(ctx context.Context, m *parley.Message) // before it answers

	mu    sync.Mutex
	got   map[parley.ContactID][]string
	order []string
	times []time.Time
	tries map[parley.MessageID]int
}

func (n *fakeNetwork) Limits() (burst, calls int) { return n.burst, n.calls }

func (n *fakeNetwork) Send(ctx context.Context, ms []*parley.Message) []error {
	if n.takes > 0 {
		time.Sleep(n.takes) // on the fake clock
	}
	if n.hold != nil {
		for _, m := range ms {
			n.hold(ctx, m)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	errs := make([]error, len(ms))
	failed := map[parley.ContactID]bool{}
	for i, m := range ms {
		if failed[m.Chat] {
			errs[i] = network.ErrHeldBack
			continue
		}
		n.tries[m.ID]++
		if n.answer != nil {
			errs[i] = n.answer(m)
		}
		if errs[i] != nil {
			failed[m.Chat] = network.ToClass(errs[i]) != network.NotReady
			continue
		}
		if n.got == nil {
			n.got = map[parley.ContactID][]string{}
		}
		n.got[m.Chat] = append(n.got[m.Chat], m.Content.Text())
		n.order = append(n.order, m.Content.Text())
		n.times = append(n.times, time.Now())
	}
	return errs
}

func (n *fakeNetwork) texts(chat parley.ContactID) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.got[chat])
}

// triesOf is how often it was given a message.
func (n *fakeNetwork) triesOf(m parley.Message) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.tries[m.ID]
}

func number(s string) (n int) {
	fmt.Sscan(s[1:], &n)
	return n
}
