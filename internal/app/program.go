package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/api"
	"parley/internal/doctor"
	"parley/internal/gateway"
	"parley/internal/network/sandbox"
	"parley/internal/store"
	"parley/internal/wait"
)

// program is what the management API may read from the server and call on it.
func (s *server) program() api.Program {
	return api.Program{
		Version:      s.cfg.Version,
		StartedAt:    s.started,
		Mode:         s.cfg.mode(),
		DataDir:      string(s.cfg.DataDir),
		Settings:     s.cfg.Settings,
		EventLife:    cmp.Or(s.cfg.EventLife, gateway.DefaultEventRetention),
		OTPLife:      s.otp.Retention(),
		MessageLife:  s.cfg.MessageLife,
		DatabaseSize: s.data.Store.Size,
		Doctor:       s.examine,
		Attention:    s.attention,
		Backup:       s.backup,
		LastBackup:   s.cfg.DataDir.lastBackup,
		WriteBackup:  s.writeBackup,
		RecentLog:    s.recent.Lines,
		LogLevel:     s.cfg.LogLevel,
		ClientDate:   s.whatsapp.clientDate,
	}
}

// examineFor limits the check for damage within a request. A large database takes longer, and was checked at the start.
const examineFor = 10 * time.Second

// examine runs the checks of the doctor on this server.
func (s *server) examine(ctx context.Context) []doctor.Finding {
	findings := s.examineQuick(ctx, s.gateway.List().Channels, examineFor)
	slow := s.examineSlow(ctx)
	s.slow.store(slow)
	return append(findings, slow...)
}

// attention runs the checks that are quick, and adds the last findings of those that are not. The two together are what
// examine finds, except for damage of the database that nothing has noticed yet.
func (s *server) attention(ctx context.Context) []doctor.Finding {
	slow := s.slow.load()
	return append(s.examineQuick(ctx, s.gateway.List().Unwell, 0), slow...)
}

// examineQuick runs the checks that need neither the network nor another program. Of the channels it reports some. It looks for damage
// for a time.
func (s *server) examineQuick(ctx context.Context, reported []parley.Channel, damage time.Duration) []doctor.Finding {
	var settings, clock []doctor.Finding
	if s.cfg.SettingsFrom != nil {
		settings = []doctor.Finding{s.cfg.SettingsFrom.Look()}
	}
	if ahead, known := s.gateway.ClockAhead(); known {
		clock = []doctor.Finding{doctor.Clock(ahead)}
	}
	list, now := s.gateway.List(), time.Now()
	return slices.Concat(settings, doctor.Directory(string(s.cfg.DataDir)),
		s.cfg.examineData(ctx, s.data, list.Channels, slices.Concat(doctor.Channels(reported, true, now),
			doctor.Simulated(list.Simulated, len(list.Live) > 0, s.cfg.Dev)), damage),
		doctor.WhatsApp(list.Live, s.whatsapp.clientDate(), now),
		doctor.Restricted(list.Live, now), doctor.Accounts(list.Live, s.gateway.ExamineAccount),
		clock, []doctor.Finding{s.examineReady(ctx), s.reach().Look()},
		doctor.Private(s.cfg.AllowPrivate, s.cfg.AllowPrivateCallers), doctor.Links(s.cfg.PublicURL, s.cfg.BehindProxy))
}

// examineSlow runs the checks that reach something outside of this process.
func (s *server) examineSlow(ctx context.Context) []doctor.Finding {
	live := s.gateway.List().Live
	return slices.Concat(doctor.Fast(ctx, live, time.Now(), s.countSends), doctor.WhatsAppReach(ctx, live, s.cfg.ReachWhatsApp),
		doctor.Proxies(ctx, live, s.gateway.CheckProxy),
		s.cfg.examineMedia(ctx, s.media), s.examineNodes(ctx), []doctor.Finding{doctor.FFmpeg(ctx)})
}

// countSends counts what a channel sent since a time: to contacts that got their first message, and in all.
func (s *server) countSends(ctx context.Context, code parley.ChannelCode, since time.Time) (firsts, sent int64, err error) {
	activity, err := s.data.Store.ChannelActivity(ctx, since, []parley.ChannelCode{code})
	if err == nil {
		firsts, err = s.data.Store.CountFirsts(ctx, code, since)
	}
	return firsts, activity[code].Sent, err
}

// slowChecksLife is how long the findings of slow checks are used.
const slowChecksLife = 5 * time.Minute

// slowChecks has the last findings of the slow checks. They run again when somebody wants them and they are old.
type slowChecks struct {
	wake chan struct{}

	mu       sync.Mutex
	at       time.Time
	findings []doctor.Finding
}

func (c *slowChecks) store(findings []doctor.Finding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.findings, c.at = slices.Clone(findings), time.Now()
}

func (c *slowChecks) load() []doctor.Finding {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) > slowChecksLife {
		wait.Notify(c.wake)
	}
	return slices.Clone(c.findings)
}

// repeatSlowChecks runs the slow checks when they are wanted.
func (s *server) repeatSlowChecks(ctx context.Context) {
	if found := s.examineSlow(ctx); ctx.Err() == nil {
		s.slow.store(found)
	}
}

// examineData checks the database and what is in it, apart from the channels themselves, which were checked. It looks for damage for a
// time; zero: not at all.
func (c Config) examineData(
	ctx context.Context, data *Data, channels []parley.Channel, checked []doctor.Finding, damage time.Duration,
) []doctor.Finding {
	var findings []doctor.Finding
	if c.Database == "" { // else examineNodes checks it
		findings = append(findings, examineDatabase(ctx, data, damage))
	}
	now := time.Now()
	findings = append(findings, checked...)
	tokens, err := data.Store.Tokens(ctx)
	if err != nil {
		return append(findings, doctor.Broken(err))
	}
	findings = append(findings, doctor.DevTokens(tokens, c.Dev, now)...)
	counts, err := data.Store.Counters(ctx, now.Add(-24*time.Hour))
	if err != nil {
		return append(findings, doctor.Broken(err))
	}
	findings = append(findings, doctor.Codes(counts[store.CountCodes], counts[store.CountCodesDelivered])...)
	attacks, err := doctor.Attacks(ctx, data.Store, channels, now)
	if err != nil {
		return append(findings, doctor.Broken(err))
	}
	webhooks, err := doctor.Webhooks(ctx, data.Store, now)
	if err != nil {
		webhooks = []doctor.Finding{doctor.Broken(err)}
	}
	return slices.Concat(findings, attacks, webhooks)
}

// ExamineOffline checks a data directory without a server. It changes nothing; a database of another version is only
// reported.
func ExamineOffline(ctx context.Context, cfg Config) ([]doctor.Finding, error) {
	if cfg.Database != "" {
		return cfg.examineCluster(ctx)
	}
	dir := cfg.DataDir
	lock, err := dir.acquire("parley doctor", cfg.Log)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if err := dir.checkVersion(ctx); err != nil {
		return nil, err
	}
	data, err := OpenData(ctx, dir, cfg.Log)
	if err != nil {
		return nil, err
	}
	defer data.Close()
	channels, err := data.Store.Channels(ctx)
	if err != nil {
		return nil, dir.explain(err)
	}
	cfg.Dev = dir.IsDev()
	simulated, live := doctor.Sandboxes(channels, func(name parley.NetworkName) bool { return name == sandbox.Info.Name })
	findings := cfg.examineData(ctx, data, channels, slices.Concat(doctor.Channels(channels, false, time.Now()),
		doctor.Simulated(simulated, live, cfg.Dev)), examineFor)
	findings = append(findings, doctor.WhatsApp(channels, doctor.ClientDate(), time.Now())...)
	findings = append(findings, doctor.WhatsAppReach(ctx, channels, cfg.ReachWhatsApp)...)
	return append(findings, cfg.examineMediaOffline(ctx, data)...), nil
}

func (s *server) reach() doctor.Reach {
	r := s.cfg.Reach()
	r.Listen = s.listener.Addr().String() // with the real port
	r.UntrustedProxy = s.untrustedProxy.Load()
	return r
}

func (s *server) examineReady(ctx context.Context) doctor.Finding {
	ctx, cancel := context.WithTimeout(ctx, writableFor)
	defer cancel()
	if err := s.checkReady(ctx); err != nil {
		return doctor.NotReady(s.url, doctor.Reason(err))
	}
	return doctor.Ready(s.url, os.Getpid())
}

// writableFor limits a test write within a request.
const writableFor = 2 * time.Second

func examineDatabase(ctx context.Context, data *Data, damage time.Duration) doctor.Finding {
	checked := false
	if damage > 0 {
		check, cancel := context.WithTimeout(ctx, damage)
		defer cancel()
		err := data.Dir.explain(data.Store.Check(check))
		err = errors.Join(check.Err(), err)
		checked = err == nil
		if err != nil && (!errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil) {
			return doctor.Broken(err)
		}
	}
	size, err := data.Store.Size(ctx)
	if err != nil {
		return doctor.Broken(err)
	}
	write, cancel := context.WithTimeout(ctx, writableFor)
	defer cancel()
	return doctor.Database(data.Dir.Database(), size, checked, data.Store.Writable(write))
}

// Offline is the API on a data directory without a server, in the process of a command. It opens no session, sends and
// delivers nothing, and no channel is WORKING. It has the lock of the directory until it is closed.
type Offline struct {
	http.Handler
	// AdminToken is valid only here.
	AdminToken string

	server *server
}

// OpenOffline opens the API on a data directory for a command. It creates what is missing and rejects a database of
// another version.
func OpenOffline(ctx context.Context, cfg Config, command string) (*Offline, error) {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	dir := cfg.DataDir
	if cfg.Database != "" {
		return nil, &DataError{"No server runs on this data directory, and its data is in PostgreSQL. Start the server, or name a running one " +
			"with --url and a token."}
	}
	lock, err := dir.acquire(command, cfg.Log)
	if err != nil {
		return nil, dir.explain(err)
	}
	s := &server{cfg: cfg, lock: lock, log: cfg.Log, started: time.Now(), offline: true}
	o := &Offline{server: s}
	err = dir.checkVersion(ctx)
	if err == nil {
		err = s.openOffline(ctx)
	}
	if err != nil {
		return nil, errors.Join(dir.explain(err), o.Close())
	}
	o.AdminToken = s.admin
	o.Handler = s.newAPI()
	return o, nil
}

func (s *server) openOffline(ctx context.Context) error {
	s.limitAddresses()
	s.metrics = prometheus.NewRegistry()
	if err := s.openFiles(ctx); err != nil {
		return err
	}
	s.makeParts()
	return s.gateway.Refresh(ctx)
}

func (o *Offline) Close() error { return errors.Join(o.server.close(), o.server.lock.Close()) }
