package whatsapp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.mau.fi/whatsmeow/types"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/keystore"
	"parley/internal/safehttp"
	"parley/internal/store/sqldb"
)

// Config configures a driver. The fields of the first block are required.
type Config struct {
	Path  string // of the SQLite file with the devices' keys, which nothing else may write; or "postgres://…"
	Log   *slog.Logger
	Media func(ctx context.Context, key string) (io.ReadCloser, error) // opens the file of an outgoing message

	// MessageForRetry returns a message of a chat, from either side, with the text that the recipient sees. It is used
	// to encrypt a message again, to quote it, and to name the options of a poll. An error or nil means not found. It
	// may be nil.
	MessageForRetry func(ctx context.Context, channel parley.ChannelCode, chat parley.ContactID, id parley.MessageID) (*parley.Message,
		error)

	// TempDir holds the encrypted copies of files during uploads. Empty: the system's folder, where a killed process
	// leaves copies.
	TempDir string

	// Version is the version of WhatsApp Web that the driver says it is: three numbers, "built-in", or "auto" (the default), which
	// is the one built in, and after WhatsApp refused that the current one.
	Version string

	// DeviceName and Platform are what phones show in their list of linked devices; empty: "Parley" and "desktop". They are said when
	// a channel is paired.
	DeviceName, Platform string

	// Member ties the writes to a membership of a cluster; nil: there is no cluster.
	Member *sqldb.Member

	// MayConnect reports whether this process may connect devices now: in a cluster, another node may have taken over. Nil: there
	// is no cluster.
	MayConnect func() bool

	// Credentials has the proxies of channels, which may be at addresses within Proxies. It may be nil: then no channel has one.
	Credentials network.Credentials
	Proxies     safehttp.Policy

	// Dials is how many sessions may be making a connection at the same time; zero: [DefaultDials].
	Dials int

	// Endpoint is the address of a local server that replaces WhatsApp in tests, with its Trust. Empty: the real
	// network.
	Endpoint string
	Trust    *Trust
}

// DefaultDials is how many sessions may be making a connection at the same time, unless Config says so.
const DefaultDials = 8

// Driver is the real network.
type Driver struct {
	config      Config
	keys        *keystore.Store // of all devices, and which channel has which device
	dialer      *dialer
	media       *http.Client
	mediaLimits *limitedTransport                   // the transport of media
	dialSlots   chan struct{}                       // one slot per connection that is being dialled
	absent      recent[parley.ContactID, time.Time] // since when numbers are not on the network
	panics      atomic.Int64                        // stanzas whose handling panicked
	versions    versions

	// Tests change these.
	maxBackoff                    time.Duration // between two connections
	ackTimeout                    time.Duration
	silenceLimit, pingTimeout     time.Duration
	queryTimeout, queryRetryAfter time.Duration
	typingTimeout                 time.Duration
	codeTimeout                   time.Duration // of a pairing
	calmDown                      time.Duration // the first pause after the network asked for one
	reuploadTimeout               time.Duration
	receiptRetryDelay             func(tries int) time.Duration // before a receipt for an unknown message is offered again
	receiveLog                    string

	mu       sync.Mutex
	sessions map[parley.ChannelCode]*session
	closed   bool
}

func Open(ctx context.Context, c Config) (*Driver, error) {
	configureLibraries()
	dialer, err := newDialer(c.Endpoint, c.Trust, c.Proxies)
	if err != nil {
		return nil, fmt.Errorf("whatsapp: %w", err)
	}
	keys, err := keystore.Open(ctx, c.Path, c.Member, newLogger(c.Log, ""))
	if err != nil {
		return nil, fmt.Errorf("whatsapp: %w", err)
	}
	fetching := &limitedTransport{dialer.client(nil, nil).Transport, maxDownload, downloadIdleTimeout}
	d := &Driver{
		config: c, keys: keys, dialer: dialer, media: &http.Client{Transport: fetching}, mediaLimits: fetching,
		dialSlots:  make(chan struct{}, cmp.Or(c.Dials, DefaultDials)),
		maxBackoff: idleBackoff, ackTimeout: ackTimeout, silenceLimit: silenceLimit, pingTimeout: pingTimeout,
		queryTimeout: deviceQueryTimeout, queryRetryAfter: queryRetryAfter, typingTimeout: typingTimeout, codeTimeout: codeTimeout,
		calmDown:        firstCalmDown,
		reuploadTimeout: reuploadTimeout, receiptRetryDelay: retryDelay, receiveLog: receiveLog, sessions: map[parley.ChannelCode]*session{},
	}
	if err := d.openVersions(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("whatsapp: %w", err), keys.Close())
	}
	return d, nil
}

// WhatsApp bans accounts that send like machines. A channel without a pace of its own waits a random time between these
// bounds before each send: about 40 messages a minute.
const (
	leastPace = 1 * time.Second
	mostPace  = 2 * time.Second
)

// Info describes WhatsApp. It needs no open driver.
var Info = network.Info{
	Name: parley.WhatsApp, Title: "WhatsApp", Pairing: []network.PairingMethod{network.PairingByQR, network.PairingByCode},
	Groups: true, Kinds: allButTemplates(), LeastPace: leastPace, MostPace: mostPace, Proxies: true,
}

func allButTemplates() []parley.Kind {
	return slices.DeleteFunc(slices.Clone(parley.Kinds), func(k parley.Kind) bool { return k == parley.KindTemplate })
}

func (d *Driver) Info() network.Info { return Info }

// NewID chooses an id as WhatsApp's web clients do. It needs no open driver.
func NewID() parley.MessageID { return network.RandomID("3EB0") }

func (d *Driver) NewID() parley.MessageID { return NewID() }

func (d *Driver) Open(_ context.Context, channel parley.Channel, sink network.Sink) (network.Session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errors.New("whatsapp: the driver is closed")
	}
	if d.sessions[channel.Code] != nil {
		return nil, fmt.Errorf("whatsapp: channel %s has an open session", channel.Code)
	}
	s := newSession(d, channel, sink)
	d.sessions[channel.Code] = s
	return s, nil
}

// DeleteChannel removes the keys of a channel's device. The phone lists the device until its owner removes it, unless the
// channel was logged out.
func (d *Driver) DeleteChannel(ctx context.Context, code parley.ChannelCode) error {
	if d.session(code) != nil {
		return fmt.Errorf("whatsapp: delete channel %s: its session is open", code)
	}
	rec, err := d.keys.Channel(ctx, code)
	if err != nil {
		return err
	}
	if err := d.keys.RemoveDevice(ctx, rec.JID); err != nil {
		return err
	}
	return d.keys.DeleteChannel(ctx, code)
}

// PrepareRestored deletes the Signal sessions of a restored database. Old sessions would encrypt with keys that were
// used since the backup, and recipients would drop those messages as duplicates. The next message starts new sessions.
func PrepareRestored(ctx context.Context, path string, log *slog.Logger) error {
	keys, err := keystore.Open(ctx, path, nil, newLogger(log, ""))
	if err != nil {
		return fmt.Errorf("open the keys of linked devices: %w", err)
	}
	return errors.Join(keys.DeleteSessions(ctx), keys.Close())
}

// Close closes the sessions that are still open, and the database. It may be called twice.
func (d *Driver) Close() error {
	d.mu.Lock()
	again := d.closed
	d.closed = true
	open := slices.Collect(maps.Values(d.sessions))
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
	return d.keys.Close()
}

func (d *Driver) session(code parley.ChannelCode) *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sessions[code]
}

func (d *Driver) removeSession(s *session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sessions[s.code] == s {
		delete(d.sessions, s.code)
	}
}

// pushName returns the account's own name, or "". It reads the database, because whatsmeow writes its copy in memory
// without a lock.
func (d *Driver) pushName(ctx context.Context, jid types.JID) string {
	name, _ := d.keys.PushName(ctx, jid)
	return name
}

// Evidence returns when an open channel last showed that it works; false: it is not open.
func (d *Driver) Evidence(code parley.ChannelCode) (network.Evidence, bool) {
	s := d.session(code)
	if s == nil {
		return network.Evidence{}, false
	}
	e := &s.evidence
	ahead, seen := s.clock.aheadBy()
	return network.Evidence{Connected: loadTime(&e.connectedAt), Heard: loadTime(&e.heardAt), Confirmed: loadTime(&e.confirmedAt),
		Received: loadTime(&e.receivedAt), ClockAhead: ahead, ClockSeen: seen,
		NetworkTime: s.clock.newest()}, true
}

// evidence holds times in nanoseconds.
type evidence struct{ connectedAt, heardAt, confirmedAt, receivedAt atomic.Int64 }

func (e *evidence) connected() { e.connectedAt.Store(time.Now().UnixNano()) }
func (e *evidence) confirmed() { e.confirmedAt.Store(time.Now().UnixNano()) }
func (e *evidence) received()  { e.receivedAt.Store(time.Now().UnixNano()) }

func (s *session) heard() { s.evidence.heardAt.Store(time.Now().UnixNano()) }

func loadTime(at *atomic.Int64) time.Time {
	if n := at.Load(); n != 0 {
		return time.Unix(0, n)
	}
	return time.Time{}
}

// CopyKeys copies the keys of all devices from a file to an empty PostgreSQL database, or back, and returns the number of rows.
func CopyKeys(ctx context.Context, from, to string) (rows int64, err error) {
	return keystore.CopyTo(ctx, from, to)
}
