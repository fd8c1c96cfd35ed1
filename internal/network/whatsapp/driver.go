package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.mau.fi/whatsmeow/types"

	"parley"
	"parley/internal/network"
)

// Config says what a driver works with. The fields of the first block are required.
type Config struct {
	Path  string // of the SQLite file with the devices' keys, which nothing else may write
	Log   *slog.Logger
	Media func(key string) (*os.File, error) // opens the file of an outgoing message

	// MessageForRetry finds a message of a chat, whoever sent it: to make it again for a device that could
	// not read it, to quote it, and to name the options of a poll. It has the text that the recipient sees.
	// What it answers with an error or nil is done without. Nil: nothing is ever found.
	MessageForRetry func(ctx context.Context, channel parley.ChannelCode, chat parley.ContactID, id parley.MessageID) (*parley.Message, error)

	// TempDir is the folder for the encrypted copies of files while they are uploaded. Empty: the system's,
	// where a copy stays if the program is killed.
	TempDir string

	// Endpoint is the address of a server on this machine that stands in for WhatsApp, and Trust what to
	// know it by. Empty: the real network.
	Endpoint string
	Trust    *Trust
}

// connectAtOnce is how many sessions may be making a connection at the same time.
const connectAtOnce = 8

// Driver is the real network.
type Driver struct {
	Config
	db        *database
	dialer    *dialer
	media     *http.Client
	fetching  *bounded      // what media works with
	turns     chan struct{} // holds one for each connection that is being made
	absent    absentees
	contained atomic.Int64 // stanzas whose handling panicked

	// What tests make quicker.
	maxBackoff                       time.Duration // between two connections
	ackTimeout                       time.Duration
	silentFor, pingTimeout, askAgain time.Duration
	typingFor                        time.Duration
	codePatience                     time.Duration // of a pairing
	uploadPatience                   time.Duration
	receiptPause                     func(tries int) time.Duration // before a receipt for an unknown message is given again

	mu       sync.Mutex
	sessions map[parley.ChannelCode]*session
	closed   bool
}

// Open opens the driver with its database.
func Open(ctx context.Context, c Config) (*Driver, error) {
	settle()
	dialer, err := newDialer(c.Endpoint, c.Trust)
	if err != nil {
		return nil, fmt.Errorf("whatsapp: %w", err)
	}
	db, err := openDatabase(ctx, c.Path, newLogger(c.Log, ""))
	if err != nil {
		return nil, fmt.Errorf("whatsapp: open %s: %w", c.Path, err)
	}
	fetching := &bounded{dialer.client(nil).Transport, maxDownload, stallLimit}
	return &Driver{
		Config: c, db: db, dialer: dialer, media: &http.Client{Transport: fetching}, fetching: fetching, turns: make(chan struct{}, connectAtOnce),
		maxBackoff: idleBackoff, ackTimeout: ackTimeout, silentFor: silentFor, pingTimeout: pingTimeout, askAgain: askAgainAfter, typingFor: typingFor, codePatience: codePatience,
		uploadPatience: uploadPatience, receiptPause: retryPause, sessions: map[parley.ChannelCode]*session{},
	}, nil
}

// Open starts a channel's session.
func (d *Driver) Open(_ context.Context, channel parley.Channel, sink network.Sink) (network.Session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errors.New("whatsapp: the driver is closed")
	}
	if d.sessions[channel.Code] != nil {
		return nil, fmt.Errorf("whatsapp: channel %s has an open session", channel.Code)
	}
	s := newSession(d, channel.Code, sink)
	d.sessions[channel.Code] = s
	return s, nil
}

// Forget removes the keys of a channel's device. The phone lists the device until its owner removes it there,
// or the channel was logged out before.
func (d *Driver) Forget(ctx context.Context, code parley.ChannelCode) error {
	if d.session(code) != nil {
		return fmt.Errorf("whatsapp: forget channel %s: its session is open", code)
	}
	return d.db.forget(ctx, code)
}

// Close closes the sessions that are still open, and the database. It may be called twice.
func (d *Driver) Close() error {
	d.mu.Lock()
	again := d.closed
	d.closed = true
	var open []*session
	for _, s := range d.sessions {
		open = append(open, s)
	}
	d.mu.Unlock()
	if again {
		return nil
	}
	var closing sync.WaitGroup
	for _, s := range open {
		closing.Go(func() { s.Close() })
	}
	closing.Wait()
	d.media.CloseIdleConnections()
	return d.db.close()
}

// session finds the open session of a channel.
func (d *Driver) session(code parley.ChannelCode) *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sessions[code]
}

// left forgets a session that was closed.
func (d *Driver) left(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sessions[s.code] == s {
		delete(d.sessions, s.code)
	}
}

// nameOf is what the account of a device calls itself; empty: it is not known. It is read from the
// database, since whatsmeow writes its copy in memory without a lock.
func (d *Driver) nameOf(ctx context.Context, jid types.JID) string {
	name, err := d.db.keys.PushName(ctx, jid)
	if err != nil {
		return ""
	}
	return name
}

// Evidence returns what an open channel last saw; false: it is not open.
func (d *Driver) Evidence(code parley.ChannelCode) (network.Evidence, bool) {
	s := d.session(code)
	if s == nil {
		return network.Evidence{}, false
	}
	s.mu.Lock()
	restricted := s.restricted
	s.mu.Unlock()
	e := &s.evidence
	ahead, seen := s.clock.read()
	return network.Evidence{Connected: load(&e.connectedAt), Heard: load(&e.heardAt), Confirmed: load(&e.confirmedAt),
		Received: load(&e.receivedAt), RestrictedUntil: restricted, ClockAhead: ahead, ClockSeen: seen, NetworkTime: s.clock.newest()}, true
}

// evidence is kept in nanoseconds, so that noting it costs nothing.
type evidence struct{ connectedAt, heardAt, confirmedAt, receivedAt atomic.Int64 }

func (e *evidence) connected() { e.connectedAt.Store(time.Now().UnixNano()) }
func (e *evidence) confirmed() { e.confirmedAt.Store(time.Now().UnixNano()) }
func (e *evidence) received()  { e.receivedAt.Store(time.Now().UnixNano()) }

func (s *session) heard() { s.evidence.heardAt.Store(time.Now().UnixNano()) }

func load(at *atomic.Int64) time.Time {
	if n := at.Load(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}
