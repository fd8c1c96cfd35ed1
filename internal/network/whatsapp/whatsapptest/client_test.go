package whatsapptest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mau.fi/libsignal/logger"
	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	waLog "go.mau.fi/whatsmeow/util/log"
	"google.golang.org/protobuf/proto"
	_ "modernc.org/sqlite"

	"parley/internal/network/whatsapp/whatsapptest"
)

// quiet swallows what libsignal would print to stdout when a test makes decryption fail.
type quiet struct{}

func (quiet) Debug(string, string)   {}
func (quiet) Info(string, string)    {}
func (quiet) Warning(string, string) {}
func (quiet) Error(string, string)   {}
func (quiet) Configure(string)       {}

func TestMain(m *testing.M) {
	var l logger.Loggable = quiet{}
	logger.Setup(&l)
	// Every client's loop reads these without a lock: they are set once, before the first client.
	whatsmeow.KeepAliveIntervalMin, whatsmeow.KeepAliveIntervalMax = time.Second, 1500*time.Millisecond
	whatsmeow.KeepAliveResponseDeadline = 5 * time.Second // a busy machine answers a healthy client sooner
	os.Exit(m.Run())
}

// testTimeout is how long a test waits for a signal. Only a program that hangs reaches it.
const testTimeout = 2 * time.Minute

// within is a context that ends before a hanging test would.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// client is an unmodified whatsmeow client that remembers its events.
type client struct {
	*whatsmeow.Client
	t testing.TB

	mu     sync.Mutex
	events []any
	more   chan struct{}
	refuse func(any) bool
	ended  bool // the server ends the connection: whatsmeow's Disconnect at the same moment is a data race of its own
}

// newClient makes a client with an empty store on disk, as a gateway has.
func newClient(t testing.TB, s *whatsapptest.Server) *client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	dsn := "file:" + path + "?_pragma=foreign_keys(1)&_pragma=journal_mode(WAL)" +
		"&_pragma=busy_timeout(10000)&_pragma=synchronous(OFF)&_txlock=immediate"
	db, err := sqlstore.New(within(t), "sqlite", dsn, waLog.Noop)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	log := waLog.Noop
	if os.Getenv("LOOPBACK_LOG") != "" {
		log = waLog.Stdout("client", "DEBUG", false)
	}
	c := &client{Client: whatsmeow.NewClient(db.NewDevice(), log), t: t, more: make(chan struct{})}
	if err := s.Trust().Apply(c.Client); err != nil {
		t.Fatal(err)
	}
	c.AddEventHandlerWithSuccessStatus(c.keep)
	t.Cleanup(func() {
		if !c.ended {
			c.Disconnect()
		}
	})
	return c
}

func (c *client) keep(e any) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuse != nil && c.refuse(e) {
		return false
	}
	c.events = append(c.events, e)
	close(c.more)
	c.more = make(chan struct{})
	return true
}

// expect waits for an event of a type that matches.
func expect[E any](c *client, match func(E) bool) E {
	c.t.Helper()
	timeout := time.After(testTimeout)
	for {
		c.mu.Lock()
		for _, e := range c.events {
			if typed, ok := e.(E); ok && (match == nil || match(typed)) {
				c.mu.Unlock()
				return typed
			}
		}
		more := c.more
		c.mu.Unlock()
		select {
		case <-more:
		case <-timeout:
			c.t.Fatalf("no event %v came, only %v", reflect.TypeFor[E](), c.types())
		}
	}
}

// count is how many events of a type came so far.
func count[E any](c *client, match func(E) bool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := 0
	for _, e := range c.events {
		if typed, ok := e.(E); ok && (match == nil || match(typed)) {
			found++
		}
	}
	return found
}

// dropEvents drops the events so far, so that the next expect waits for a new one.
func (c *client) dropEvents() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = nil
}

func (c *client) types() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, e := range c.events {
		all = append(all, fmt.Sprintf("%T", e))
	}
	return all
}

// pair connects the client and links it to a phone by QR code.
func (c *client) pair(phone *whatsapptest.Phone) *whatsapptest.Link {
	c.t.Helper()
	if err := c.Connect(); err != nil {
		c.t.Fatal(err)
	}
	qr := expect[*events.QR](c, nil)
	link, err := phone.Scan(within(c.t), qr.Codes[0])
	if err != nil {
		c.t.Fatal(err)
	}
	expect[*events.Connected](c, nil)
	return link
}

// text sends a text and fails the test if the network does not confirm it.
func (c *client) text(to types.JID, text string) whatsmeow.SendResponse {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), testTimeout)
	defer cancel()
	r, err := c.SendMessage(ctx, to, &waE2E.Message{Conversation: proto.String(text)})
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// message waits for an inbound text.
func (c *client) message(text string) *events.Message {
	c.t.Helper()
	return expect(c, func(e *events.Message) bool {
		return e.Message.GetConversation() == text || e.Message.GetExtendedTextMessage().GetText() == text
	})
}

// receipt waits for a receipt of one of the types for a message of the client.
func (c *client) receipt(id string, kinds ...types.ReceiptType) *events.Receipt {
	c.t.Helper()
	return expect(c, func(e *events.Receipt) bool {
		return slices.Contains(e.MessageIDs, id) && slices.Contains(kinds, e.Type)
	})
}

func must[V any](t testing.TB) func(V, error) V {
	return func(v V, err error) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// world is a server with an owner whose client is linked, and a friend.
type world struct {
	*whatsapptest.Server
	t             testing.TB
	owner, friend *whatsapptest.Phone
	client        *client
	link          *whatsapptest.Link
}

func newWorld(t testing.TB, friend ...whatsapptest.Option) *world {
	t.Helper()
	s := whatsapptest.StartTest(t)
	w := &world{Server: s, t: t}
	w.owner = s.Phone("6281234567890", whatsapptest.Named("Owner"))
	w.friend = s.Phone("6289876543210", append([]whatsapptest.Option{whatsapptest.Named("Friend")}, friend...)...)
	w.client = newClient(t, s)
	w.link = w.client.pair(w.owner)
	w.awaitSettings()
	return w
}

// awaitSettings waits until the client has fetched all settings and acknowledged everything: what whatsmeow does in
// the background with its store is not guarded against what a test does to it.
func (w *world) awaitSettings() {
	w.t.Helper()
	expect(w.client, func(e *events.AppStateSyncComplete) bool { return e.Name == appstate.WAPatchRegularLow })
	if err := w.link.Idle(within(w.t)); err != nil {
		w.t.Fatal(err)
	}
}

const greeting = "good morning"

// greet lets both sides write once, so that they have a session.
func (w *world) greet() {
	w.t.Helper()
	w.client.receipt(w.client.text(w.friend.JID(), greeting).ID, types.ReceiptTypeDelivered)
	must[string](w.t)(w.friend.Send(within(w.t), w.owner, greeting))
	w.client.message(greeting)
}
