package cloud

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/network"
	"parley/internal/safehttp"
	"parley/internal/store"
)

// Info describes the network.
var Info = network.Info{
	Name: parley.Cloud, Title: "WhatsApp's official API",
	Kinds: []parley.Kind{parley.KindText, parley.KindImage, parley.KindVideo, parley.KindFile, parley.KindVoice, parley.KindSticker,
		parley.KindLocation, parley.KindContact, parley.KindTemplate, parley.KindReaction, parley.KindSeen, parley.KindStar, parley.KindArchive},
	ReplyWindow: 24 * time.Hour,
	Credentials: []network.Credential{{Name: "phone_number_id", Kind: network.CredentialID}, {Name: "waba_id", Kind: network.CredentialID},
		{Name: "access_token", Kind: network.CredentialSecret}, {Name: "app_secret", Kind: network.CredentialSecret},
		{Name: "graph_url", Kind: network.CredentialURL},
		{Name: "webhook", Kind: network.CredentialChoice, Choices: []string{"number", AppWebhook, NoWebhook}}},
}

// Config configures a driver. All fields are required, except where they say so.
type Config struct {
	Store       *store.DB
	Credentials network.Credentials
	Calls       *safehttp.Client // of the API; its responses are small
	Files       *safehttp.Client // of uploads and downloads
	Media       func(ctx context.Context, key string) (io.ReadCloser, error)
	// Settings returns the current settings of a channel; nil: those that it was opened with.
	Settings func(code parley.ChannelCode) parley.ChannelSettings
	// MaySend reports whether this process may send now: in a cluster another node may have taken over. Nil: it may.
	MaySend func() bool
	Version string // of the program: digits and dots
	// Address is where Meta is to report to for a channel; empty: nowhere. It may be nil.
	Address func(parley.Channel) string
	// AllowHTTP allows addresses of test servers without TLS.
	AllowHTTP bool
	Log       *slog.Logger
	Metrics   prometheus.Registerer
}

// Driver is the network. Sessions have no goroutine and no connection while nothing happens.
type Driver struct {
	config  Config
	metrics metrics
	checks  chan struct{} // one slot per check of a channel that is under way

	mu       sync.Mutex
	sessions map[parley.ChannelCode]*session
	forged   map[parley.ChannelCode]time.Time // when a call had a wrong signature
}

// maxChecks is how many channels are checked at a time.
const maxChecks = 32

var (
	_ network.Driver      = (*Driver)(nil)
	_ network.Receiver    = (*Driver)(nil)
	_ network.Enroller    = (*Driver)(nil)
	_ network.Examiner    = (*Driver)(nil)
	_ network.FileChecker = (*Driver)(nil)
)

func New(c Config) *Driver {
	return &Driver{config: c, metrics: newMetrics(c.Metrics), checks: make(chan struct{}, maxChecks),
		sessions: map[parley.ChannelCode]*session{}}
}

func (*Driver) Info() network.Info { return Info }

func (*Driver) NewID() parley.MessageID { return network.RandomID("WA") }

// Open starts a session. A channel that worked before can send at once; the check that follows corrects that.
func (d *Driver) Open(ctx context.Context, c parley.Channel, sink network.Sink) (network.Session, error) {
	s := &session{d: d, channel: identity{c.ID, c.Code}, cloud: c.Settings.Cloud, sink: sink, opened: time.Now(), rate: usualRate}
	s.ctx, s.end = context.WithCancel(context.Background())
	first := network.State{Status: parley.ChannelStarting}
	if err := s.setState(ctx, first); err != nil {
		return nil, err
	}
	if c.Number != "" {
		first.Status, first.Phone = parley.ChannelWorking, network.Phone{Name: c.PhoneName, Number: c.Number}
		if err := s.setState(ctx, first); err != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	d.sessions[c.Code] = s
	d.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(0, s.check)
	return s, nil
}

// session returns the open session of a channel; nil: it has none.
func (d *Driver) session(code parley.ChannelCode) *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sessions[code]
}

// DeleteChannel does nothing: the store deletes the rows and the credentials of a channel with it.
func (d *Driver) DeleteChannel(context.Context, parley.ChannelCode) error { return nil }

type metrics struct {
	resends, doubles, badSignatures prometheus.Counter
	ignored                         *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := metrics{
		resends:       counter("parley_cloud_resend_total", "Messages sent again because their outcome stayed unknown."),
		doubles:       counter("parley_cloud_double_total", "Messages that the official network confirmed twice."),
		badSignatures: counter("parley_cloud_bad_signature_total", "Calls whose signature was wrong."),
		ignored: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "parley_cloud_ignored_total",
			Help: "Parts of calls that nothing was done with."}, []string{"field"}),
	}
	r.MustRegister(m.resends, m.doubles, m.badSignatures, m.ignored)
	return m
}
