// Package api is the HTTP interface: it checks requests, calls the gateway and writes responses.
//
// Invariants:
//   - All routes are listed in routes.go, one row each, and pass through one adapter, route, with one order of checks.
//   - openapi.yaml describes every route; tests validate every response against it.
//   - Only a [parley.Error] shows its text to a caller.
//   - No log line and no metric contains a token, a message text or a phone number.
//   - Buffers of a request are pooled: an endpoint must not keep a slice of the body.
package api

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/alert"
	"parley/internal/api/limit"
	"parley/internal/callback"
	"parley/internal/cluster"
	"parley/internal/encrypt"
	"parley/internal/feed"
	"parley/internal/gateway"
	"parley/internal/mcp"
	"parley/internal/media"
	"parley/internal/network/sandbox"
	"parley/internal/otp"
	"parley/internal/requestlog"
	"parley/internal/store"
	"parley/internal/token"
)

// Config holds the dependencies of the API. The fields of the first block are required.
type Config struct {
	Gateway   *gateway.Gateway
	Store     *store.DB
	tx        func(ctx context.Context, do func(*store.Tx) error) error // Store.Tx, except in tests
	Tokens    *token.Authority
	OTP       *otp.Issuer
	Keyring   *encrypt.Keyring
	Media     *media.Library
	Sandbox   *sandbox.Network
	Feed      *feed.Feed
	Callbacks *callback.Engine
	Alerts    *alert.Engine
	Requests  *requestlog.Log
	Log       *slog.Logger
	Metrics   *prometheus.Registry

	// Cluster says which node serves what; nil: this one serves everything.
	Cluster cluster.Membership
	// NodeTLS configures TLS to other nodes; nil: the usual one.
	NodeTLS *tls.Config
	// Program is the running program, for the management API.
	Program Program
	// URL is the local address of the server, for links, unless the request names a better one.
	URL string
	// PublicURL is the public address of the server, for all links; empty: not configured.
	PublicURL string
	// Ready returns an error while the server should get no requests; required.
	Ready func(ctx context.Context) error
	// OnAuthenticated is called with the context of every request that authenticated; nil: nothing is called.
	OnAuthenticated func(ctx context.Context)
	// OpenMetrics makes /metrics public, not only for this machine and admin tokens.
	OpenMetrics bool
	// Refuses reports whether webhooks never reach a URL, because its address is private; nil: none is refused.
	Refuses func(url string) bool
	// TrustedProxies are the proxies whose X-Forwarded-For is used. OneProxy means that only the peer is one: clients may have
	// addresses in these ranges, and an address that such a client put into the header is not believed.
	TrustedProxies []netip.Prefix
	OneProxy       bool
	// OnUntrustedProxy is called once, at the first request from an untrusted proxy on this machine; required.
	OnUntrustedProxy func()
	// RequestsPerSecond is the rate limit of a token, with a burst of twice as many; zero: none.
	RequestsPerSecond float64
	// MediaPerMinute limits the bytes fetched for a token per minute; zero: 200 MiB, negative: no limit.
	MediaPerMinute int64
	// AuthFailures is how many authentications of one address may fail before they return 429; zero: 30.
	AuthFailures int
	// StreamsPerToken is how many event streams a token may have open; zero: 1,000.
	StreamsPerToken int
	// MCPSending says on which channels language models may send.
	MCPSending mcp.Sending
	// Heartbeat is the longest silence of an event stream; zero: 15 s.
	Heartbeat time.Duration
}

type server struct {
	config     Config
	tx         func(ctx context.Context, do func(*store.Tx) error) error
	failures   *limit.Buckets[netip.Addr]
	proxyNoted atomic.Bool                    // OnUntrustedProxy was called
	perToken   *limit.Buckets[parley.TokenID] // nil: no limit
	refusals   *limit.Buckets[parley.TokenID] // that are logged
	fetches    *limit.Slots[parley.TokenID]
	fetched    *limit.Window[parley.TokenID] // bytes; nil: no limit
	flights    flights
	forwarder  *forwarder
	links      parley.MediaLinks // to files
	streams    *limit.Slots[parley.TokenID]
	mcpCalls   *limit.Slots[parley.TokenID]
	exports    *limit.Slots[parley.TokenID]
	receiving  *limit.Slots[parley.ChannelCode] // uploads
	largeCalls chan struct{}                    // by networks; one for each that is in memory

	fingerprints [][]byte // keys of request fingerprints: the first for new ones

	level    temporaryLevel
	backup   sync.Mutex // held during a backup
	words    pageWords
	pairings *limit.Buckets[string] // requests for codes, by the hash of a ticket
}

// API is the handler of the whole HTTP interface.
type API struct{ *router }

func New(c Config) *API {
	if c.Cluster == nil {
		c.Cluster = cluster.Single{}
	}
	s := &server{
		config:       c,
		tx:           c.tx,
		fetches:      limit.NewSlots[parley.TokenID](maxFetches),
		streams:      limit.NewSlots[parley.TokenID](cmp.Or(c.StreamsPerToken, streamsPerToken)),
		mcpCalls:     limit.NewSlots[parley.TokenID](mcpPerToken),
		exports:      limit.NewSlots[parley.TokenID](exportsAtOnce),
		receiving:    limit.NewSlots[parley.ChannelCode](maxReceiving),
		fingerprints: c.Keyring.Derive("idempotency"),
		words:        readPageWords("pair/words.json"),
		pairings:     limit.NewBuckets[string](pairEvery, pairBurst),
		largeCalls:   make(chan struct{}, maxLargeCalls),
		forwarder:    newForwarder(c),
		links:        parley.MediaLinks{Keys: c.Keyring.Derive(parley.MediaLinkKeys)},
	}
	if s.tx == nil {
		s.tx = c.Store.Tx
	}
	s.failures = limit.NewBuckets[netip.Addr](authForgiven, cmp.Or(max(0, c.AuthFailures), authFailures))
	s.refusals = limit.NewBuckets[parley.TokenID](refusedEvery, refusedBurst)
	if c.RequestsPerSecond > 0 {
		every := time.Duration(float64(time.Second) / c.RequestsPerSecond)
		s.perToken = limit.NewBuckets[parley.TokenID](every, max(1, int(2*c.RequestsPerSecond)))
	}
	if c.MediaPerMinute >= 0 {
		s.fetched = limit.NewWindow[parley.TokenID](cmp.Or(c.MediaPerMinute, mediaPerMinute), time.Minute)
	}
	mux := newRouter(s, c.Metrics)
	mux.add(tokenRoutes(s))
	mux.add(publicRoutes(s))
	mux.add(networkRoutes(s))
	mux.finish()
	return &API{mux}
}

// router is a ServeMux whose patterns are paths. Each path dispatches by method, so that a path returns 405 for
// other methods, even if another path with a wildcard matches.
type router struct {
	*server
	checkSession sessionCheck // of the console; nil: tokens authenticate
	mux          *http.ServeMux
	duration     *prometheus.HistogramVec
	paths        map[string]*methods
	notFound     http.Handler // under /api, where authentication comes first
	noPath       http.Handler // elsewhere
}

type methods struct {
	access access // the same for all methods of a path
	by     map[string]http.Handler
	other  http.Handler
}

func (p *methods) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	method := hr.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	h := p.by[method]
	if h == nil {
		h = p.other
	}
	h.ServeHTTP(w, hr)
}

// allow is the value of the header Allow. GET implies HEAD.
func (p *methods) allow() string {
	names := slices.Collect(maps.Keys(p.by))
	if p.by[http.MethodGet] != nil {
		names = append(names, http.MethodHead)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func newRouter(s *server, metrics prometheus.Registerer) *router {
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "parley_http_request_duration_seconds",
		Help:    "Duration of requests, by route and status.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
	}, []string{"route", "status"})
	metrics.MustRegister(duration)
	return emptyRouter(s, duration)
}

func emptyRouter(s *server, duration *prometheus.HistogramVec) *router {
	return &router{server: s, duration: duration, mux: http.NewServeMux(), paths: map[string]*methods{}}
}

// add adds the routes of a row.
func (m *router) add(rows []row) {
	for _, row := range rows {
		method, paths, _ := strings.Cut(row.pattern, " ")
		first, _, _ := strings.Cut(paths, " ")
		for path := range strings.FieldsSeq(paths) {
			if strings.HasSuffix(path, "/{$}") {
				m.mux.Handle(path, m.paths[first])
				continue
			}
			m.handle(m.route(method, path, row))
		}
	}
}

func (m *router) route(method, path string, of row) *route {
	rt := &route{router: m, row: of, method: method, path: path}
	rt.ok = sync.OnceValue(func() prometheus.Observer { return m.duration.WithLabelValues(rt.name(), "200") })
	return rt
}

func (m *router) handle(rt *route) {
	p := m.paths[rt.path]
	if p == nil {
		p = &methods{access: rt.access, by: map[string]http.Handler{}}
		m.paths[rt.path] = p
		m.mux.Handle(rt.path, p)
	}
	p.by[rt.method] = rt
	if rt.handler != nil {
		p.by[rt.method] = &rawRoute{rt, rt.handler}
	}
}

// finish adds the responses to other methods and unknown paths.
func (m *router) finish() {
	for path, p := range m.paths {
		p.other = m.route("OTHER", path, row{access: p.access, input: noRoute, work: refusing(methodNotAllowed(p.allow()))})
	}
	unknownPath := parley.Errorf(parley.NotFound, "This path does not exist. The reference is at /docs.")
	m.notFound = m.route("ANY", "/api/", row{access: anyToken, input: noRoute, work: refusing(unknownPath)})
	m.noPath = m.route("ANY", "/", row{access: public, input: noRoute, work: refusing(unknownPath)})
	m.mux.Handle("/api", m.notFound)
	m.mux.Handle("/api/", m.notFound)
	m.mux.Handle("/", m.noPath)
}

func refusing(err error) work {
	return work{do: func(context.Context, *request) (response, error) { return response{}, err }}
}

// ServeHTTP returns 404 for a path that is not clean, where the mux would redirect.
func (m *router) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	path := hr.URL.Path
	if !strings.HasPrefix(path, "/") || strings.Contains(path, "//") || strings.Contains(path, "/./") || strings.Contains(path, "/../") ||
		strings.HasSuffix(path, "/.") || strings.HasSuffix(path, "/..") {
		if strings.HasPrefix(path, "/api/") {
			m.notFound.ServeHTTP(w, hr)
		} else {
			m.noPath.ServeHTTP(w, hr)
		}
		return
	}
	m.mux.ServeHTTP(w, hr)
}
