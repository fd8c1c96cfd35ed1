// Package app puts the program together: it opens the data directory, starts the gateway and the HTTP server on it, and
// stops them in the right order.
//
// Invariants: one process owns a data directory, by an exclusive lock. Only Run and Migrate migrate, after a copy; backups
// and the doctor change nothing. No request is served before all parts are open, and nothing that a request uses is closed
// before it ends. The process ends within 30 s of a signal.
package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"parley"
	"parley/internal/alert"
	"parley/internal/api"
	"parley/internal/callback"
	"parley/internal/cluster"
	"parley/internal/console"
	"parley/internal/diagnostics"
	"parley/internal/doctor"
	"parley/internal/feed"
	"parley/internal/gateway"
	"parley/internal/media"
	"parley/internal/network"
	"parley/internal/network/sandbox"
	"parley/internal/otp"
	"parley/internal/requestlog"
	"parley/internal/safehttp"
	"parley/internal/token"
)

// Run runs the gateway until ctx ends, then stops it: no new requests are accepted, running ones finish, and unsent
// messages stay in the database.
func Run(ctx context.Context, cfg Config) error { return cfg.DataDir.explain(run(ctx, cfg)) }

func run(ctx context.Context, cfg Config) error {
	started := time.Now()
	limitMemory()
	cfg, err := cfg.normal()
	if err != nil {
		return err
	}
	if err := cfg.DataDir.Prepare(cfg.Log); err != nil {
		return err
	}
	lock, err := cfg.DataDir.Lock("parley " + cfg.mode())
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := cfg.DataDir.recoverRestore(cfg.Log); err != nil {
		return err
	}
	if err := cfg.DataDir.removeLeftovers(); err != nil {
		cfg.Log.Warn("what an earlier backup or restore left behind cannot be removed", "error", err)
	}
	s := &server{cfg: cfg, lock: lock, started: started, limits: usualLimits, changed: make(chan struct{}, 1), joined: make(chan struct{}, 1),
		nodesServed: make(chan error, 1),
		failed:      make(chan error, 1), slow: slowChecks{wake: make(chan struct{}, 1)}}
	if cfg.limits != nil {
		s.limits = *cfg.limits
	}
	s.requests, s.endRequests = context.WithCancel(context.WithoutCancel(ctx))
	defer s.endRequests()
	s.log = slog.New(slog.NewMultiHandler(cfg.Log.Handler(), s.recent.Handler()))
	if err := s.open(ctx); err != nil {
		return errors.Join(err, s.closeInTime())
	}
	err = s.run(ctx)
	return errors.Join(err, s.closeInTime())
}

type server struct {
	cfg     Config
	log     *slog.Logger
	recent  diagnostics.Recent // of log
	lock    *Lock
	started time.Time
	offline bool // in the process of a command: no listener, and no part runs
	state   atomic.Int32
	limits  stopLimits

	untrustedProxy atomic.Bool // a proxy on this machine forwards requests
	slow           slowChecks

	cluster      cluster.Membership
	node         *cluster.Cluster // nil: the database is a file
	nodeListener net.Listener     // for other nodes; nil: there are none
	nodeURL      string
	nodeTLS      *tls.Config // of connections between nodes
	nodeHTTP     *http.Server
	nodesServed  chan error    // why serving other nodes ended
	changed      chan struct{} // changes has something
	changes      pendingChanges
	joined       chan struct{} // this node became a member
	partsOpen    atomic.Bool   // the cluster may use them
	failed       chan error    // a part failed

	listener    net.Listener
	connections *connections // of listener, below TLS
	url         string
	metrics     *prometheus.Registry
	data        *Data
	admin       string // tokens for the command line
	global      string
	media       *media.Library
	sandbox     *sandbox.Network
	whatsapp    *realNetwork
	gateway     *gateway.Gateway
	otp         *otp.Issuer
	feed        *feed.Feed
	callback    *callback.Engine
	alerts      *alert.Engine
	requestLog  *requestlog.Log
	http        *http.Server
	handlers    *handlers

	webhookAddresses, callerAddresses safehttp.Policy // what operators set, and what any token may name

	requests    context.Context // parent of all request contexts
	endRequests context.CancelFunc
}

// open opens the parts, from the bottom up. close closes them, also after a failure.
func (s *server) open(ctx context.Context) error {
	if err := s.openListener(); err != nil {
		return err
	}
	s.metrics = prometheus.NewRegistry()
	if err := s.openFiles(ctx); err != nil {
		return err
	}
	s.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s.metrics.MustRegister(s.connections.collectors()...)
	s.measureWritable()
	s.makeParts()
	s.partsOpen.Store(true)
	return s.makeHandlers()
}

// openListener listens. Requests wait until the parts are open.
func (s *server) openListener() error {
	shown, err := loadCertificate(s.cfg, s.log)
	if err != nil {
		return err
	}
	if s.listener, err = listen(s.cfg); err != nil {
		return err
	}
	s.url = listenerURL(s.listener, shown != nil)
	own := s.listener.Addr().(*net.TCPAddr).AddrPort() // requests may not name our own port, even where loopback is allowed
	s.connections = s.limitConnections(s.listener)
	s.listener = secured(s.connections, shown)
	s.limitAddresses(own)
	return s.openNode()
}

// limitAddresses says which addresses may be reached. Our own are never among them.
func (s *server) limitAddresses(own ...netip.AddrPort) {
	s.webhookAddresses = safehttp.Policy{AllowPrivate: s.cfg.AllowPrivate, Forbid: own}
	s.callerAddresses = safehttp.Policy{AllowPrivate: s.cfg.AllowPrivateCallers, Forbid: own}
}

func (s *server) openFiles(ctx context.Context) (err error) {
	if err := s.openDatabase(ctx); err != nil {
		return err
	}
	s.admin, s.global = s.data.Tokens.Local(parley.AdminToken), s.data.Tokens.Local(parley.GlobalToken)
	if s.sandbox, err = sandbox.Open(ctx, cmp.Or(s.cfg.Database, s.cfg.DataDir.Sandbox()), s.member(), s.log); err != nil {
		return err
	}
	if err := s.openMedia(ctx); err != nil {
		return err
	}
	s.sandbox.OpenFile = s.openFile
	s.whatsapp, err = s.newRealNetwork(s.log)
	return err
}

// makeParts creates the parts. None runs yet.
func (s *server) makeParts() {
	s.otp = otp.New(otp.Config{
		Store:        s.data.Store,
		Keyring:      s.data.Keyring,
		Now:          func(code parley.ChannelCode) time.Time { return s.gateway.Now(code) },
		Network:      func(name parley.NetworkName) network.Info { return s.gateway.Network(name) },
		Log:          s.log,
		Metrics:      s.metrics,
		Retention:    s.cfg.OTPLife,
		ClockTrusted: func() bool { return s.gateway.ClockTrusted() },
		MaxAhead:     func() time.Duration { return s.gateway.MaxAhead() },

		ContactsPerHour: s.cfg.OTPContacts,
		PrefixPerHour:   s.cfg.OTPPrefix,
		Owns:            func(code parley.ChannelCode) bool { return s.cluster.Owns(string(code)) },
		LookUpNumber: func(ctx context.Context, code parley.ChannelCode, c parley.ContactID) error {
			return s.gateway.LookUpNumber(ctx, code, c)
		},
		QueuedAhead: func(code parley.ChannelCode, priority parley.Priority) int {
			return s.gateway.QueuedAhead(code, priority)
		},
	})
	secrets := callback.NewSecrets(s.data.Store, s.data.Keyring)
	s.whatsapp.config.Credentials, s.whatsapp.config.Proxies = secrets, s.webhookAddresses
	drivers := map[parley.NetworkName]network.Driver{parley.Sandbox: s.sandbox, parley.WhatsApp: s.whatsapp,
		parley.Cloud: s.newCloud(secrets)}
	if s.cfg.network != nil {
		driver := s.cfg.network(secrets)
		drivers[driver.Info().Name] = driver
	}
	s.gateway = gateway.New(gateway.Config{
		Store:            s.data.Store,
		Drivers:          drivers,
		Media:            s.media,
		Limits:           s.cfg.Storage.OrDefault(),
		Keyring:          s.data.Keyring,
		Log:              s.log,
		Metrics:          s.metrics,
		EventRetention:   s.cfg.EventLife,
		MessageRetention: s.cfg.MessageLife,
		EventCap:         s.cfg.EventCap,
		Cluster:          s.cluster,
		Offline:          s.offline,
		LoginLinks:       s.otp,
	})
	links := parley.MediaLinks{Base: s.address(), Keys: s.data.Keyring.Derive(parley.MediaLinkKeys)}
	s.feed = feed.New(feed.Config{Store: s.data.Store, Keyring: s.data.Keyring, Log: s.log, Metrics: s.metrics, Links: links,
		Names: s.gateway.KnownName})
	options := safehttp.Options{MaxBody: callback.MaxResponse, HeaderTimeout: callback.WebhookTimeout}
	s.callback = callback.New(callback.Config{
		Store:   s.data.Store,
		Secrets: secrets,
		Client:  s.webhookAddresses.Client(options),
		Callers: s.callerAddresses.Client(options),
		Render:  s.feed.Render,
		Links:   links,
		Log:     s.log,
		Metrics: s.metrics,
		Version: s.cfg.Version,

		AtOnce:       s.cfg.Deliveries,
		Owns:         s.cluster.Owns,
		Leads:        s.cluster.Leads,
		ClockTrusted: s.gateway.ClockTrusted,
	})
	s.alerts = alert.New(alert.Config{Store: s.data.Store, Gateway: s.gateway, Callbacks: s.callback, Cluster: s.cluster, Log: s.log,
		Metrics: s.metrics, DataDir: string(s.cfg.DataDir), ClientDate: s.whatsapp.clientDate, Token: token.LocalToken(parley.GlobalToken).ID})
	s.requestLog = requestlog.New(s.data.Store, s.log, s.metrics)
}

func (s *server) makeHandlers() error {
	routes := s.newAPI()
	pages, err := console.New(console.Config{
		API: routes, Store: s.data.Store, Log: s.log, Version: s.cfg.Version, Mode: s.cfg.mode(), Live: s.isLive, PublicURL: s.cfg.PublicURL,
	})
	if err != nil {
		return fmt.Errorf("open the console: %w", err)
	}
	s.handlers = &handlers{Handler: pages}
	s.http = newHTTPServer(s.requests, s.handlers, s.log)
	s.nodeHTTP = newHTTPServer(s.requests, routes.FromNodes(s.handlers), s.log)
	return nil
}

func (s *server) newAPI() *api.API {
	return api.New(api.Config{
		Cluster:   s.cluster,
		NodeTLS:   s.nodeTLS,
		Gateway:   s.gateway,
		Store:     s.data.Store,
		Tokens:    s.data.Tokens,
		OTP:       s.otp,
		Keyring:   s.data.Keyring,
		Media:     s.media,
		Sandbox:   s.sandbox,
		Feed:      s.feed,
		Callbacks: s.callback,
		Alerts:    s.alerts,
		Requests:  s.requestLog,
		Log:       s.log,
		Metrics:   s.metrics,

		Program:           s.program(),
		URL:               s.url,
		PublicURL:         s.cfg.PublicURL,
		Ready:             s.checkReady,
		OnAuthenticated:   keepConnection,
		OpenMetrics:       s.cfg.MetricsOpen,
		Refuses:           s.webhookAddresses.Refuses,
		TrustedProxies:    s.cfg.TrustedProxies,
		OneProxy:          s.cfg.oneProxy,
		OnUntrustedProxy:  s.noteUntrustedProxy,
		RequestsPerSecond: s.cfg.RequestsPerSecond,
		MediaPerMinute:    s.cfg.MediaPerMinute,
		MCPSending:        s.cfg.mcpSending(),
	})
}

func (s *server) isLive() bool { return len(s.liveChannels()) > 0 }

// run serves until ctx ends or a part fails.
func (s *server) run(ctx context.Context) error {
	if s.cfg.opened != nil {
		s.cfg.opened(s)
	}
	checked, err := s.checkBefore(ctx)
	if err != nil {
		return err
	}
	if s.cfg.Dev {
		if err := prepareDev(ctx, s.data, s.url); err != nil {
			return fmt.Errorf("prepare the sandbox: %w", err)
		}
	}

	// The parts outlive ctx: requests under way still need them. A part that fails stops all.
	parts, stopParts := context.WithCancel(context.WithoutCancel(ctx))
	defer stopParts()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if err := s.startNode(ctx); err != nil {
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { onEach(parts, s.changed, s.readChanges) })
	running.Go(func() { onEach(parts, s.joined, s.logJoin) })
	running.Go(func() { s.feed.Run(parts) })
	running.Go(func() { tuneMemory(parts) })
	running.Go(func() { onEach(parts, s.slow.wake, s.repeatSlowChecks) })
	for name, part := range map[string]func(context.Context) error{
		"gateway": s.gateway.Run, "one-time passwords": s.otp.Run, "callbacks": s.callback.Run, "alerts": s.alerts.Run,
		"request log": s.requestLog.Run,
		"serve":       func(context.Context) error { return s.http.Serve(s.listener) },
		"serve nodes": s.awaitNodes, "cluster": s.awaitFailure,
	} {
		running.Go(func() {
			if err := part(parts); err != nil && !errors.Is(err, http.ErrServerClosed) {
				fail(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	if !checked {
		running.Go(func() { s.checkRest(ctx) })
	}
	running.Go(func() { s.reportDamage(parts) })
	if s.awaitStart(ctx) {
		s.becomeReady(ctx)
		if s.cfg.Dev && s.cfg.Screen != nil {
			running.Go(func() { s.show(parts) })
		}
	}
	<-ctx.Done()
	err = context.Cause(ctx)
	began := time.Now()
	s.handOver()
	s.drain()
	stopParts()
	if errors.Is(err, context.Canceled) {
		err = nil // a requested stop is not an error
	}
	if !within(s.limits.parts-time.Since(began), func() { s.handlers.stop(); running.Wait() }) {
		s.log.Error("some parts did not stop in time: they are left")
		err = errors.Join(err, errStuck)
	}
	return err
}

// onEach calls do after each notification, until ctx ends.
func onEach(ctx context.Context, notified <-chan struct{}, do func(context.Context)) {
	for {
		select {
		case <-notified:
			do(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// awaitStart waits until the channels have started, and reports whether they did before ctx ended. A development server
// also waits until its channel works, so that the first request can use it.
func (s *server) awaitStart(ctx context.Context) bool {
	select {
	case <-s.gateway.Ready():
	case <-ctx.Done():
		return false
	}
	if s.cfg.Dev {
		s.gateway.AwaitStart(ctx, DemoChannel)
	}
	return ctx.Err() == nil
}

// noteUntrustedProxy makes the proxy visible to the doctor, also on the command line.
func (s *server) noteUntrustedProxy() {
	s.untrustedProxy.Store(true)
	s.describe()
}

// describe writes the address and the tokens of this server to the lock file.
func (s *server) describe() {
	err := s.lock.Announce(Running{
		PID: os.Getpid(), Command: "parley " + s.cfg.mode(), URL: s.url, PublicURL: s.cfg.PublicURL, Reach: s.reach(),
		AdminToken: s.admin, GlobalToken: s.global, Media: s.cfg.MediaElsewhere(),
	})
	if err != nil {
		s.log.Warn("the command line will not find this server by its data directory", "error", err)
	}
}

func (s *server) becomeReady(ctx context.Context) {
	s.describe()
	s.state.Store(ready)
	channels, working := s.gateway.Channels(), 0
	for _, c := range channels {
		if c.State.Status == parley.ChannelWorking {
			working++
		}
	}
	attrs := []any{"listen", s.url, "data", string(s.cfg.DataDir), "channels", len(channels), "working", working,
		"took", time.Since(s.started).Round(time.Millisecond).String()}
	if s.cfg.PublicURL != "" {
		attrs = append(attrs, "public_url", s.cfg.PublicURL)
	}
	if len(s.cfg.AllowPrivate) > 0 {
		attrs = append(attrs, "allow_private", s.cfg.AllowPrivate)
	}
	if len(s.cfg.AllowPrivateCallers) > 0 {
		attrs = append(attrs, "allow_private_callers", s.cfg.AllowPrivateCallers)
	}
	s.log.Info("parley "+s.cfg.Version+" ready", attrs...)
	if tokens, err := s.data.Store.Tokens(ctx); err == nil {
		for _, f := range doctor.DevTokens(tokens, s.cfg.Dev, time.Now()) {
			s.log.Warn(f.Found, "hint", f.Remedy)
		}
		if len(tokens) == 0 {
			s.log.Warn("nobody can use it yet: there is no token", "hint", "parley token create --help")
		}
	}
	if s.cfg.OnReady != nil {
		s.cfg.OnReady(s.url)
	}
}

func (s *server) drain() {
	s.state.Store(draining)
	s.feed.Close() // streams never end by themselves
	s.log.Info("stopping: finishing what is under way", "at_most", s.limits.requests.String())
	ctx, cancel := context.WithTimeout(context.Background(), s.limits.requests)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		s.endRequests()
		s.http.Close()
		s.log.Warn("some requests were not finished in time; what they sent is kept", "error", err)
	}
	s.nodeHTTP.Close()
}

// fail ends the process because of an error.
func (s *server) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// closeInTime closes everything, unless something hangs.
func (s *server) closeInTime() error {
	var err error
	if !within(s.limits.files, func() { err = s.close() }) {
		s.log.Error("the databases could not be closed in time: they are left as after a crash, which loses nothing")
		return errStuck
	}
	return err
}

// close closes what open opened, from the top down.
func (s *server) close() error {
	var errs []error
	if s.listener != nil {
		s.listener.Close() // closed already unless the start failed
	}
	if s.whatsapp != nil {
		errs = append(errs, s.whatsapp.Close())
	}
	if s.media != nil {
		s.media.Close()
	}
	if s.sandbox != nil {
		errs = append(errs, s.sandbox.Close())
	}
	if s.node != nil {
		ctx, cancel := context.WithTimeout(context.Background(), s.limits.files)
		errs = append(errs, s.node.Leave(ctx))
		cancel()
	}
	if s.nodeListener != nil {
		s.nodeListener.Close()
	}
	if s.data != nil {
		errs = append(errs, s.data.Close())
	}
	return errors.Join(errs...)
}
