package whatsapp

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/proto/waSyncAction"
	"go.mau.fi/whatsmeow/types"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/whatsapptest"
)

// hang is how long a test waits for something. Only a program that hangs reaches it.
const hang = 2 * time.Minute

const (
	ownerNumber  = "6281234567890"
	friendNumber = "6289876543210"
	otherNumber  = "6289876543211"
	absentNumber = "6289999999999"
	code         = parley.ChannelCode("test")
)

var friendID, otherID = parley.NewContactID(friendNumber), parley.NewContactID(otherNumber)

// world is a network on this machine with an owner, two contacts and a driver.
type world struct {
	*whatsapptest.Server
	t                    testing.TB
	owner, friend, other *whatsapptest.Phone
	dir                  string
	driver               *Driver
	link                 *whatsapptest.Link
	settings             parley.ChannelSettings

	mu   sync.Mutex
	kept map[parley.MessageID]*parley.Message // what the gateway would keep
	busy int                                  // how often its store fails
}

// newWorld starts a network and opens the driver; nothing is paired.
func newWorld(t testing.TB, friend ...whatsapptest.Option) *world {
	t.Helper()
	configureLibraries() // before the server of any test uses libsignal
	return newWorldOn(t, whatsapptest.StartTest(t), friend...)
}

func newWorldOn(t testing.TB, server *whatsapptest.Server, friend ...whatsapptest.Option) *world {
	t.Helper()
	w := &world{Server: server, t: t, dir: t.TempDir(), kept: map[parley.MessageID]*parley.Message{}}
	w.owner = w.Phone(ownerNumber, whatsapptest.Named("Shop"))
	w.friend = w.Phone(friendNumber, append([]whatsapptest.Option{whatsapptest.Named("Ayu")}, friend...)...)
	w.other = w.Phone(otherNumber, whatsapptest.Named("Budi"))
	for phone, name := range map[*whatsapptest.Phone]string{w.friend: "Ayu A.", w.other: "Budi B."} {
		must(t, w.owner.Change(t.Context(), contactPatch(phone, name)))
	}
	w.open()
	return w
}

// contactPatch puts somebody into the owner's address book.
func contactPatch(p *whatsapptest.Phone, name string) appstate.PatchInfo {
	return appstate.PatchInfo{Type: appstate.WAPatchCriticalUnblockLow, Mutations: []appstate.MutationInfo{{
		Index: []string{appstate.IndexContact, p.JID().String()}, Version: 2,
		Value: &waSyncAction.SyncActionValue{ContactAction: &waSyncAction.ContactAction{FullName: new(name), FirstName: new(name)}},
	}}}
}

// open opens the driver on the world's database, as a start of the program does.
func (w *world) open() {
	w.t.Helper()
	trust := w.Trust()
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("WHATSAPP_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	d, err := Open(w.t.Context(), Config{
		Path: filepath.Join(w.dir, "whatsapp.db"), Log: log,
		Media:           func(_ context.Context, key string) (io.ReadCloser, error) { return os.Open(filepath.Join(w.dir, key)) },
		MessageForRetry: w.message,
		Endpoint:        w.Endpoint(), Trust: &Trust{Root: trust.Root, CA: trust.CA},
	})
	must(w.t, err)
	d.maxBackoff = 200 * time.Millisecond
	w.driver = d
	w.t.Cleanup(func() { must(w.t, d.Close()) })
}

// devices lists the devices in the driver's database.
func (w *world) devices() (all []types.JID) {
	w.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.dir, "whatsapp.db"))
	must(w.t, err)
	defer db.Close()
	rows, err := db.QueryContext(w.t.Context(), `SELECT jid FROM devices`)
	must(w.t, err)
	defer rows.Close()
	for rows.Next() {
		var text string
		must(w.t, rows.Scan(&text))
		jid, err := types.ParseJID(text)
		must(w.t, err)
		all = append(all, jid)
	}
	must(w.t, rows.Err())
	return all
}

// losesAck sends a message whose confirmation the network loses, and waits for it briefly.
func (w *world) losesAck(s *session, m *parley.Message) error {
	w.Inject(whatsapptest.LoseAck().To(w.friend))
	before := w.driver.ackTimeout
	w.driver.ackTimeout = 2 * time.Second
	defer func() { w.driver.ackTimeout = before }()
	return send(s, m)
}

// message is the gateway's store.
func (w *world) message(_ context.Context, _ parley.ChannelCode, chat parley.ContactID, id parley.MessageID) (*parley.Message, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy > 0 {
		w.busy--
		return nil, errors.New("the store is busy")
	}
	if m := w.kept[id]; m != nil && m.Chat == chat {
		return m, nil
	}
	return nil, parley.ErrNotFound
}

func (w *world) keep(ms ...*parley.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range ms {
		w.kept[m.ID] = m
	}
}

// start opens the channel's session.
func (w *world) start() (*session, *inbox) {
	w.t.Helper()
	in := newInbox(w.t)
	s, err := w.driver.Open(w.t.Context(), parley.Channel{Code: code, Name: "Test", Network: parley.WhatsApp, Settings: w.settings},
		in.sink)
	must(w.t, err)
	w.t.Cleanup(func() { must(w.t, s.Close()) })
	return s.(*session), in
}

// scan links the session to the owner's phone by the first QR code that it shows after the first skip events.
func (w *world) scan(in *inbox, skip int) {
	w.t.Helper()
	qr := expect(in, skip, func(p network.Pairing) bool { return p.Step == parley.QRStep })
	link, err := w.owner.Scan(w.t.Context(), qr.Code)
	must(w.t, err)
	w.link = link
}

// paired returns a session that works, and whose settings are fetched.
func (w *world) paired() (*session, *inbox) {
	w.t.Helper()
	s, in := w.start()
	in.status(parley.ChannelScanQRCode)
	must(w.t, s.Pair(w.t.Context()))
	w.scan(in, 0)
	expect(in, 0, func(e network.State) bool { return e.Status == parley.ChannelWorking && e.Phone.Name == "Shop" })
	w.awaitSettings(s)
	return s, in
}

// awaitSettings waits until the session has the account's settings, contacts included.
func (w *world) awaitSettings(s *session) {
	w.t.Helper()
	conn := s.current.Load()
	deadline := time.After(hang)
	for {
		version, _, err := conn.client.Store.AppState.GetAppStateVersion(w.t.Context(), string(appstate.WAPatchCriticalUnblockLow))
		must(w.t, err)
		if _, total, err := s.Contacts(w.t.Context(), parley.Page{Limit: 1}); err == nil && version > 0 && total >= 2 {
			break
		}
		select {
		case <-conn.synced:
		case <-deadline:
			w.t.Fatal("the settings did not come")
		}
	}
	must(w.t, w.link.Idle(within(w.t)))
}

// within bounds a wait.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	t.Cleanup(cancel)
	return ctx
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// outgoing makes a message as the gateway keeps it.
func (w *world) outgoing(to parley.ContactID, c parley.Content) *parley.Message {
	m := &parley.Message{Channel: code, Chat: to, ID: network.RandomID("3EB0"), FromMe: true, Content: c, CreatedAt: time.Now()}
	w.keep(m)
	return m
}

func (w *world) text(to parley.ContactID, body string) *parley.Message {
	return w.outgoing(to, parley.Text{Body: body})
}

// fetch gets the file of a message that came.
func (w *world) fetch(s *session, m network.Message) ([]byte, error) {
	w.t.Helper()
	file, err := os.CreateTemp(w.t.TempDir(), "file")
	must(w.t, err)
	defer file.Close()
	if err := s.Fetch(within(w.t), m.File, file); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file.Name())
	must(w.t, err)
	return data, nil
}

// fetched gets a file that is there.
func (w *world) fetched(s *session, m network.Message) []byte {
	w.t.Helper()
	data, err := w.fetch(s, m)
	must(w.t, err)
	return data
}

// sent sends a message and fails the test unless it is confirmed.
func (w *world) sent(s *session, m *parley.Message) *parley.Message {
	w.t.Helper()
	must(w.t, send(s, m))
	return m
}

func send(s *session, m *parley.Message) error {
	return s.Send(context.Background(), []*parley.Message{m})[0]
}

// sealedAll fails the test if anything was sent that its recipient cannot read.
func (w *world) sealedAll() {
	w.t.Helper()
	if all := w.Unencrypted(); len(all) != 0 {
		w.t.Errorf("sent without a ciphertext for the recipient: %+v", all)
	}
}

// inbox is a sink that keeps what it takes.
type inbox struct {
	t       testing.TB
	mu      sync.Mutex
	events  []network.Event
	changed chan struct{}
	refuse  func(network.Event) error
}

func newInbox(t testing.TB) *inbox { return &inbox{t: t, changed: make(chan struct{})} }

func (in *inbox) sink(_ context.Context, e network.Event) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.refuse != nil {
		if err := in.refuse(e); err != nil {
			return err
		}
	}
	in.events = append(in.events, e)
	close(in.changed)
	in.changed = make(chan struct{})
	return nil
}

func (in *inbox) refuseWith(f func(network.Event) error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.refuse = f
}

// count is how many events there are, to skip them.
func (in *inbox) count() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.events)
}

func (in *inbox) all() []network.Event {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.events)
}

// expect waits for an event of a type that matches, after the first skip ones.
func expect[E network.Event](in *inbox, skip int, match func(E) bool) E {
	in.t.Helper()
	timeout := time.After(hang)
	for {
		in.mu.Lock()
		for _, e := range in.events[min(skip, len(in.events)):] {
			if e, ok := e.(E); ok && match(e) {
				in.mu.Unlock()
				return e
			}
		}
		changed := in.changed
		in.mu.Unlock()
		select {
		case <-changed:
		case <-timeout:
			in.t.Fatalf("it did not come; there came %s", describeAll(in.all()))
		}
	}
}

func describeAll(events []network.Event) string {
	var all string
	for _, e := range events {
		all += fmt.Sprintf("\n\t%T %+v", e, e)
	}
	return all
}

// status waits for a status.
func (in *inbox) status(s parley.ChannelStatus) network.State { return in.statusAfter(0, s) }

func (in *inbox) statusAfter(skip int, s parley.ChannelStatus) network.State {
	in.t.Helper()
	return expect(in, skip, func(e network.State) bool { return e.Status == s })
}

// said waits for a text from somebody.
func (in *inbox) said(body string) network.Message {
	in.t.Helper()
	return expect(in, 0, func(m network.Message) bool { return m.Content.Text() == body })
}

// got waits for a receipt for a message.
func (in *inbox) got(status parley.Status, id parley.MessageID) network.Receipt {
	in.t.Helper()
	return expect(in, 0, func(r network.Receipt) bool { return r.Status == status && slices.Contains(r.IDs, id) })
}
