package gateway_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/encrypt"
	"parley/internal/gateway"
	"parley/internal/media"
	"parley/internal/network"
	"parley/internal/safehttp"
	"parley/internal/store"
)

// bench is a gateway on a store in memory and a scripted network.
type bench struct {
	t       *testing.T
	store   *store.DB
	media   *media.Library
	driver  *driver
	keyring *encrypt.Keyring
	g       *gateway.Gateway
	config  gateway.Config // of g

	ahead                  time.Duration // of the machine's clock
	eventLife, messageLife time.Duration
	limits                 store.StorageLimits
	links                  gateway.LoginLinks
	cancel                 context.CancelFunc
	done                   chan struct{}
}

func newBench(t *testing.T) *bench {
	t.Helper()
	db, err := store.Open(t.Context(), "memory:"+t.Name())
	if err != nil {
		t.Fatal(err)
	}
	return newBenchOn(t, db)
}

func newBenchOn(t *testing.T, db *store.DB) *bench {
	t.Helper()
	files, err := media.Open(media.Config{Dir: t.TempDir(), Store: db}, safehttp.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := encrypt.OpenKeyFile(filepath.Join(t.TempDir(), "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, store: db, media: files, keyring: keyring, driver: &driver{sessions: map[parley.ChannelCode]*session{}}}
	b.tx(func(tx *store.Tx) error {
		return tx.AddChannel(t.Context(), parley.Channel{Code: "demo", Name: "Demo", Network: parley.Sandbox, Enabled: true})
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

// awaitDeletions waits until nothing of a deleted channel is left.
func (b *bench) awaitDeletions() {
	b.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		deletions, err := b.store.Deletions(b.t.Context())
		if err != nil {
			b.t.Fatal(err)
		}
		if !slices.ContainsFunc(deletions, func(d store.Deletion) bool { return d.FinishedAt.IsZero() }) {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("not finished: %+v", deletions)
		}
	}
}

func (b *bench) start() {
	ahead := b.ahead
	b.config = gateway.Config{
		Clock: func() time.Time { return time.Now().Add(ahead) },
		Store: b.store, Media: b.media, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
		Drivers: map[parley.NetworkName]network.Driver{
			parley.Sandbox: b.driver, parley.WhatsApp: live{b.driver}, "modest": modest{b.driver}},
		Keyring: b.keyring, LoginLinks: b.links, EventRetention: b.eventLife, MessageRetention: b.messageLife, Limits: b.limits,
	}
	b.g = gateway.New(b.config)
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel, b.done = cancel, make(chan struct{})
	g, done := b.g, b.done
	go func() {
		defer close(done)
		if err := g.Run(ctx); err != nil {
			b.t.Error(err)
		}
	}()
	<-b.g.Ready()
}

func (b *bench) stop() {
	b.cancel()
	<-b.done
}

func (b *bench) restart() {
	b.stop()
	b.start()
}

func (b *bench) refresh() {
	b.t.Helper()
	if err := b.g.Refresh(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) tx(do func(*store.Tx) error) {
	b.t.Helper()
	if err := b.store.Tx(b.t.Context(), do); err != nil {
		b.t.Fatal(err)
	}
}

func text(to parley.ContactID, body string) []gateway.Draft {
	return []gateway.Draft{{To: to, Content: parley.Text{Body: body}}}
}

// accept sends a text without waiting for the network.
func (b *bench) accept(to parley.ContactID, body string) parley.Message {
	b.t.Helper()
	return b.await(to, body, 0)
}

// await sends a text and waits for what becomes of it.
func (b *bench) await(to parley.ContactID, body string, wait time.Duration) parley.Message {
	b.t.Helper()
	ms, err := b.g.Send(b.t.Context(), "demo", text(to, body), gateway.SendOptions{Wait: wait})
	if err != nil {
		b.t.Error(err)
		return parley.Message{}
	}
	return ms[0]
}

// begin is await for a test that has something to do meanwhile.
func (b *bench) begin(to parley.ContactID, body string, wait time.Duration) (answer func() parley.Message) {
	answered := make(chan parley.Message, 1)
	go func() { answered <- b.await(to, body, wait) }()
	return func() parley.Message { return <-answered }
}

func (b *bench) load(m parley.Message) parley.Message {
	b.t.Helper()
	now, err := b.g.CurrentMessages(b.t.Context(), "demo", []parley.MessageRef{m.Ref()})
	if err != nil {
		b.t.Fatal(err)
	}
	return now[0]
}

// driver opens sessions that keep what they are given.
type driver struct {
	answer func(*parley.Message) error // nil: everything is confirmed
	refuse parley.ChannelCode          // the channel whose session cannot be opened
	hang   parley.ChannelCode          // the channel whose session does not open until hold is closed
	hold   chan struct{}
	number string // of the accounts; empty: 99900000001
	// fetch gets the file that a reference is of; nil: the reference is the file.
	fetch func(ctx context.Context, code parley.ChannelCode, reference string) (file string, err error)

	evidence func() network.Evidence // nil: it has none
	types    bool                    // its sessions can show typing
	typed    atomic.Int64            // how often they did
	rejected atomic.Int64            // calls

	mu        sync.Mutex
	sessions  map[parley.ChannelCode]*session
	keeps     bool // DeleteChannel fails
	forgotten []parley.ChannelCode
}

func (d *driver) Info() network.Info {
	return network.Info{Name: parley.Sandbox, Title: "Sandbox", Simulated: true, Groups: true, Kinds: parley.Kinds}
}

func (d *driver) NewID() parley.MessageID { return network.RandomID("") }

// live is the driver in the place of a real network.
type live struct{ *driver }

func (live) Info() network.Info {
	return network.Info{Name: parley.WhatsApp, Title: "WhatsApp", Groups: true, Kinds: parley.Kinds}
}

func (d *driver) Open(ctx context.Context, c parley.Channel, sink network.Sink) (network.Session, error) {
	if c.Code == d.refuse {
		return nil, errors.New("no")
	}
	if c.Code == d.hang && d.hold != nil {
		<-d.hold
	}
	d.mu.Lock()
	s := d.sessions[c.Code]
	if s == nil || s.closed {
		s = &session{driver: d, code: c.Code, given: given(s)}
		d.sessions[c.Code] = s
	}
	s.sink = sink
	d.mu.Unlock()
	s.tell(network.State{Status: parley.ChannelWorking, Phone: network.Phone{Name: "Toko", Number: cmp.Or(d.number, "99900000001")}})
	if d.types {
		return typist{s}, nil
	}
	return s, nil
}

func (d *driver) Evidence(parley.ChannelCode) (network.Evidence, bool) {
	if d.evidence == nil {
		return network.Evidence{}, false
	}
	return d.evidence(), true
}

func given(s *session) []parley.Message {
	if s == nil {
		return nil
	}
	return s.given
}

func (d *driver) DeleteChannel(ctx context.Context, code parley.ChannelCode) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.keeps {
		return errors.New("the keys cannot be deleted")
	}
	d.forgotten = append(d.forgotten, code)
	return nil
}

func (d *driver) session(code parley.ChannelCode) *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sessions[code]
}

// sink is where what arrives on a channel's session goes.
func (d *driver) sink(code parley.ChannelCode) network.Sink {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sessions[code].sink
}

func (d *driver) texts(code parley.ChannelCode, chat parley.ContactID) (texts []string) {
	s := d.session(code)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.given {
		if m.Chat == chat {
			texts = append(texts, m.Content.Text())
		}
	}
	return texts
}

type session struct {
	driver *driver
	code   parley.ChannelCode
	sink   network.Sink
	closed bool

	mu    sync.Mutex
	given []parley.Message
}

// typist is a session that can show typing and reject calls.
type typist struct{ *session }

func (t typist) RejectCall(context.Context, network.PhoneCall) error {
	t.driver.rejected.Add(1)
	return nil
}

func (t typist) Typing(context.Context, parley.ContactID, bool) error {
	t.driver.typed.Add(1)
	return nil
}

func (s *session) tell(state network.State) { s.sink(context.Background(), state) }

func (s *session) Limits() (burst, calls int) { return 16, 2 }

func (s *session) Send(ctx context.Context, ms []*parley.Message) []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := make([]error, len(ms))
	for i, m := range ms {
		s.given = append(s.given, *m)
		if s.driver.answer != nil {
			errs[i] = s.driver.answer(m)
		}
	}
	return errs
}

func (s *session) Fetch(ctx context.Context, reference []byte, to *os.File) (err error) {
	file := string(reference)
	if s.driver.fetch != nil {
		if file, err = s.driver.fetch(ctx, s.code, file); err != nil {
			return err
		}
	}
	_, err = to.WriteString(file)
	return err
}

func (s *session) Close() error {
	s.closed = true
	return nil
}
