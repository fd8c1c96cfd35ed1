package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/internal/encrypt"
	"parley/internal/store"
)

// env is a feed that runs on a store of its own.
type env struct {
	*testing.T
	store   *counting
	keyring *encrypt.Keyring
	feed    *Feed
	n       int
}

// counting is a store that counts how often the log is read.
type counting struct {
	*store.DB
	reads atomic.Int64
}

func (c *counting) Events(ctx context.Context, after int64, filter parley.EventFilter, limit int) ([]parley.Event, int64, error) {
	c.reads.Add(1)
	return c.DB.Events(ctx, after, filter, limit)
}

func start(t *testing.T, change ...func(*Config)) *env {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(t.Context(), filepath.Join(dir, "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	keyring, err := encrypt.OpenKeyFile(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	e := &env{T: t, store: &counting{DB: db}, keyring: keyring}
	config := Config{Store: e.store, Keyring: keyring, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, f := range change {
		f(&config)
	}
	e.feed = New(config)
	running, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { e.feed.Run(running) })
	t.Cleanup(func() { stop(); wg.Wait() })
	err = db.Tx(t.Context(), func(tx *store.Tx) error {
		for _, code := range []parley.ChannelCode{"main", "other"} {
			if err := tx.AddChannel(t.Context(), parley.Channel{Code: code, Network: parley.Sandbox, CreatedAt: time.Now()}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// add adds events of a channel, in one transaction. Each carries its number.
func (e *env) add(channel parley.ChannelCode, count int) {
	e.Helper()
	err := e.store.Tx(context.Background(), func(tx *store.Tx) error {
		for i := range count {
			data := fmt.Appendf(nil, `{"n":%d}`, e.n+i)
			event := parley.Event{Type: parley.OTPFailed, Channel: channel, At: time.Now(), Chat: "6281100000001@c.us", Data: data}
			if err := tx.AddEvent(context.Background(), &event); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		e.Error(err)
	}
	e.n += count
}

// expect takes events off a reader, which must be these numbers in order.
func (e *env) expect(r *Reader, from, to int) {
	e.Helper()
	for n := from; n < to; n++ {
		item, err := r.Next(e.Context())
		if err != nil {
			e.Fatalf("event %d: %v", n, err)
		}
		if want := fmt.Sprintf(`"data":{"n":%d}`, n); !strings.Contains(string(item.Body), want) {
			e.Fatalf("got %s, want %s", item.Body, want)
		}
	}
}

func TestReaderCatchesUpAndFollows(t *testing.T) {
	e := start(t)
	e.add("main", 3*pageSize+7)
	r := e.feed.Subscribe(0, parley.EventFilter{})
	defer r.Close()
	e.expect(r, 0, 3*pageSize+7)
	e.add("main", 5)
	e.expect(r, 3*pageSize+7, e.n)
}

// TestNoGapAndNoDouble has readers come, at any place, while events are added all the time: each gets
// every event after its place, once and in order.
func TestNoGapAndNoDouble(t *testing.T) {
	e := start(t)
	const events = 500
	var wg sync.WaitGroup
	wg.Go(func() {
		for e.n < events {
			e.add("main", 1+e.n%3)
		}
	})
	for range 20 {
		wg.Go(func() {
			last := int64(0)
			for seen := 0; seen < events; {
				r := e.feed.Subscribe(last, parley.EventFilter{})
				for range 40 { // then it goes, and comes back
					item, err := r.Next(t.Context())
					if errors.Is(err, ErrSlow) {
						break
					}
					if err != nil {
						t.Error(err)
						break
					}
					if want := fmt.Sprintf(`{"n":%d}`, seen); !strings.Contains(string(item.Body), want) {
						t.Errorf("got %s, want %s", item.Body, want)
						r.Close()
						return
					}
					last = item.Event.Seq
					if seen++; seen == events {
						break
					}
				}
				r.Close()
			}
		})
	}
	wg.Wait()
}

func TestFilter(t *testing.T) {
	e := start(t)
	e.add("other", 2)
	e.add("main", 1)
	r := e.feed.Subscribe(0, parley.EventFilter{Channel: "main", Types: []parley.EventType{parley.OTPFailed}})
	defer r.Close()
	e.expect(r, 2, 3)
	e.add("other", 1)
	e.add("main", 1)
	e.expect(r, 4, 5)
	if r.Ready() {
		t.Error("an event that is not wanted counts as ready")
	}
	if n := e.feed.Listeners("main", parley.OTPFailed); n != 1 {
		t.Errorf("%d listeners on main, want 1", n)
	}
	if n := e.feed.Listeners("other", parley.OTPFailed) + e.feed.Listeners("main", parley.OTPExpired); n != 0 {
		t.Errorf("%d listeners to what nobody wants", n)
	}
	r.Close()
	if n := e.feed.Listeners("main", parley.OTPFailed); n != 0 {
		t.Errorf("%d listeners after the only one closed", n)
	}
}

func TestSlowReaderIsCutOffAndResumes(t *testing.T) {
	const few = 4
	e := start(t, func(c *Config) { c.Buffer = few })
	slow := e.feed.Subscribe(0, parley.EventFilter{})
	defer slow.Close()
	other := e.feed.Subscribe(0, parley.EventFilter{})
	defer other.Close()
	e.add("main", 1)
	e.expect(slow, 0, 1)
	e.expect(other, 0, 1)
	slow.Ready() // it is live now
	for e.n < (few+2)*pageSize {
		from := e.n
		e.add("main", pageSize)
		e.expect(other, from, e.n) // it was published
	}
	last, n := parley.Event{}, 1
	for ; ; n++ {
		item, err := slow.Next(t.Context())
		if errors.Is(err, ErrSlow) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		last = item.Event
	}
	if n >= e.n {
		t.Fatalf("a reader that fell behind got all %d events", n)
	}
	again := e.feed.Subscribe(last.Seq, parley.EventFilter{})
	defer again.Close()
	e.expect(again, n, e.n)
}

func TestCloseEndsReaders(t *testing.T) {
	e := start(t)
	r := e.feed.Subscribe(0, parley.EventFilter{})
	defer r.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := r.Next(context.Background())
		ended <- err
	}()
	e.feed.Close()
	e.feed.Close() // twice is no harm
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("an open reader ended with %v", err)
	}
	late := e.feed.Subscribe(0, parley.EventFilter{})
	defer late.Close()
	if _, err := late.Next(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("a reader that came later ended with %v", err)
	}
}

// TestNoReadsWithoutSubscribers makes sure that the log is not read while nobody follows it.
func TestNoReadsWithoutSubscribers(t *testing.T) {
	e := start(t)
	r := e.feed.Subscribe(0, parley.EventFilter{})
	e.add("main", 1)
	e.expect(r, 0, 1)
	r.Close()
	e.add("main", 1) // wakes the feed, which sees that nobody is left
	again := e.feed.Subscribe(0, parley.EventFilter{})
	defer again.Close()
	before := e.store.reads.Load()
	for range 50 {
		e.add("main", 1)
	}
	if reads := e.store.reads.Load() - before; reads > 1 { // the look that it may have been at
		t.Errorf("the log was read %d times for nobody", reads)
	}
	e.expect(again, 0, e.n)
}

// TestPurgedCursor has a reader come back to a place whose followers are all gone.
func TestPurgedCursor(t *testing.T) {
	e := start(t)
	e.add("main", 10)
	first := e.feed.Subscribe(0, parley.EventFilter{})
	defer first.Close()
	e.expect(first, 0, 10)
	e.add("main", 1)
	e.expect(first, 10, 11)
	err := e.store.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.PurgeEvents(t.Context(), 1e9, time.Now().Add(time.Hour), 1e9, 100)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	late := e.feed.Subscribe(3, parley.EventFilter{})
	defer late.Close()
	e.add("main", 1)
	e.expect(late, 11, 12)
	e.expect(first, 11, 12)
}

// TestEventOfNoChannel goes to readers of all channels, and to no reader of one channel.
func TestEventOfNoChannel(t *testing.T) {
	e := start(t)
	all := e.feed.Subscribe(0, parley.EventFilter{})
	defer all.Close()
	one := e.feed.Subscribe(0, parley.EventFilter{Channel: "main"})
	defer one.Close()
	publish := func() {
		event := parley.NewGapEvent(parley.Webhook{ID: "whk_1", Channel: "main", Cursor: 1}, 2, time.Now())
		err := e.store.Tx(t.Context(), func(tx *store.Tx) error { return tx.AddEvent(t.Context(), event) })
		if err != nil {
			t.Fatal(err)
		}
		e.add("main", 1)
	}
	for n := range 2 { // from the log, and live
		publish()
		item, err := all.Next(t.Context())
		if err != nil || item.Event.Type != parley.WebhookGap || item.Event.Channel != "" {
			t.Fatalf("got %s (%v)", item.Body, err)
		}
		e.expect(all, n, n+1)
		e.expect(one, n, n+1)
	}
}

// TestFilterThatFindsNothing has a reader far behind whose filter finds nothing for pages. It reads on by itself and joins
// the others at the end: what is read for it is not published to anybody.
func TestFilterThatFindsNothing(t *testing.T) {
	e := start(t, func(c *Config) { c.Buffer = 4 })
	const backlog = 12_000 // more than two calls of the store look at
	e.add("main", backlog)
	r := e.feed.Subscribe(0, parley.EventFilter{Types: []parley.EventType{parley.OTPFailed, parley.PollVoted}, Channel: "other"})
	defer r.Close()
	types := e.feed.Subscribe(0, parley.EventFilter{Types: []parley.EventType{parley.OTPExpired}})
	defer types.Close()
	hang, cancel := context.WithCancel(t.Context())
	for range 2 { // the pages that are full of what it does not want
		if err := types.catchUp(hang); err != nil {
			t.Fatal(err)
		}
		if types.live != nil {
			t.Fatalf("the reader joined at %d of %d", types.cursor, backlog)
		}
	}
	cancel()
	if _, err := types.Next(hang); !errors.Is(err, context.Canceled) {
		t.Errorf("a reader whose owner has gone ended with %v", err)
	}
	if types.cursor != 10_000 {
		t.Errorf("two pages went to %d", types.cursor)
	}
	if err := types.catchUp(t.Context()); err != nil || types.live == nil {
		t.Errorf("at the end of the log the reader did not join: %v", err)
	}
	e.add("other", 1)
	e.expect(r, backlog, backlog+1)
}

// TestEncryptedText opens the text of a channel that keeps none; what cannot be opened stays empty.
func TestEncryptedText(t *testing.T) {
	e := start(t)
	add := func(channel, secretContext parley.ChannelCode, id parley.MessageID) {
		m := parley.Message{Channel: channel, Chat: "6281100000001@c.us", ID: id, Content: parley.Text{Body: "the text"},
			Status: parley.Received, CreatedAt: time.Now(), UpdatedAt: time.Now()}
		encrypted := e.keyring.Encrypt([]byte("the text"), parley.EventTextContext(secretContext))
		err := e.store.Tx(t.Context(), func(tx *store.Tx) error {
			if err := tx.AddMessage(t.Context(), &m); err != nil {
				return err
			}
			if err := tx.EraseMessage(t.Context(), channel, m.Ref()); err != nil {
				return err
			}
			return tx.AddEvent(t.Context(),
				&parley.Event{Type: parley.MessageReceived, Channel: channel, At: m.CreatedAt, Message: &m, Encrypted: encrypted})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	add("main", "main", "3EB0A1")
	add("main", "other", "3EB0A2")
	r := e.feed.Subscribe(0, parley.EventFilter{})
	defer r.Close()
	for _, want := range []string{`"body":"the text"`, `"body":""`} {
		item, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(item.Body), want) {
			t.Errorf("got %s, want %s", item.Body, want)
		}
	}
}

// BenchmarkManyReaders measures what one event costs with 200 readers.
func BenchmarkManyReaders(b *testing.B) {
	db, err := store.Open(b.Context(), filepath.Join(b.TempDir(), "parley.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	f := New(Config{Store: db, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	running, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { f.Run(running) })
	defer func() { stop(); wg.Wait() }()
	var readers sync.WaitGroup
	for range 200 {
		readers.Go(func() {
			r := f.Subscribe(0, parley.EventFilter{})
			defer r.Close()
			for range b.N {
				if _, err := r.Next(running); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	for range b.N {
		err := db.Tx(b.Context(), func(tx *store.Tx) error {
			return tx.AddEvent(b.Context(), &parley.Event{Type: parley.OTPFailed, Channel: "main", At: time.Now(), Data: []byte(`{"n":1}`)})
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	readers.Wait()
}
