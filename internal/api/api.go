// Package api is the HTTP interface: it checks requests, calls the gateway and writes responses.
//
// Invariants:
//   - All routes are listed in this file and pass through one adapter, route, with one order of checks.
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
	Log       *slog.Logger
	Metrics   *prometheus.Registry

	// Cluster says which node serves what; nil: this one serves everything.
	Cluster cluster.Membership
	// NodeTLS configures TLS to other nodes; nil: the usual one.
	NodeTLS *tls.Config
	// LocalToken is a Global token of this process, for messages of alerts.
	LocalToken string
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
	Config
	failures   *limit.Buckets[netip.Addr]
	proxyNoted atomic.Bool                    // OnUntrustedProxy was called
	perToken   *limit.Buckets[parley.TokenID] // nil: no limit
	refusals   *limit.Buckets[parley.TokenID] // that are logged
	fetches    *limit.Slots[parley.TokenID]
	fetched    *limit.Window[parley.TokenID] // bytes; nil: no limit
	flights    flights
	forwarder  *forwarder
	requestLog *requestLog
	self       http.Handler      // all routes, for requests of the server itself
	links      parley.MediaLinks // to files
	streams    *limit.Slots[parley.TokenID]
	mcpCalls   *limit.Slots[parley.TokenID]
	exports    *limit.Slots[parley.TokenID]
	receiving  *limit.Slots[parley.ChannelCode] // uploads

	fingerprints [][]byte // keys of request fingerprints: the first for new ones

	contactNames sync.Map // nameList by nameKey
	level        temporaryLevel
	backup       sync.Mutex // held during a backup
	words        pageWords
	alertNotices *prometheus.CounterVec // by type and result
	pairings     *limit.Buckets[string] // requests for codes, by the hash of a ticket
}

// API is the handler of the whole HTTP interface.
type API struct{ *router }

func New(c Config) *API {
	if c.Cluster == nil {
		c.Cluster = cluster.Single{}
	}
	s := &server{
		Config:       c,
		fetches:      limit.NewSlots[parley.TokenID](maxFetches),
		streams:      limit.NewSlots[parley.TokenID](cmp.Or(c.StreamsPerToken, streamsPerToken)),
		mcpCalls:     limit.NewSlots[parley.TokenID](mcpPerToken),
		exports:      limit.NewSlots[parley.TokenID](exportsAtOnce),
		receiving:    limit.NewSlots[parley.ChannelCode](maxReceiving),
		fingerprints: c.Keyring.Derive("idempotency"),
		words:        readPageWords("pair/words.json"),
		pairings:     limit.NewBuckets[string](pairEvery, pairBurst),
		forwarder:    newForwarder(c),
		requestLog:   newRequestLog(c),
		links:        parley.MediaLinks{Keys: c.Keyring.Derive(parley.MediaLinkKeys)},
	}
	if s.tx == nil {
		s.tx = c.Store.Tx
	}
	s.alertNotices = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_alert_notices_total", Help: "Attempts to send notices of alerts, by type and result.",
	}, []string{"type", "result"})
	c.Metrics.MustRegister(s.alertNotices)
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
	routes(mux, s)
	publicRoutes(mux, s)
	mux.finish()
	s.self = mux
	return &API{mux}
}

// routes adds all routes that need a token or a console session.
func routes(m *router, s *server) {
	messagingRoutes(m, s)
	sandboxRoutes(m, s)
	manageRoutes(m, s)
}

func messagingRoutes(m *router, s *server) {
	m.add("POST /api/send-message/text", ofChannel, body, sending(s, readText))
	m.add("POST /api/send-message/image", ofChannel, body, sending(s, readImage))
	m.add("POST /api/send-message/video", ofChannel, body, sending(s, readVideo))
	m.add("POST /api/send-message/file", ofChannel, body, sending(s, readFile))
	m.add("POST /api/send-message/voice", ofChannel, body, sending(s, readVoice))
	m.add("POST /api/send-message/sticker", ofChannel, body, sending(s, readSticker))
	m.add("POST /api/send-message/location", ofChannel, body, sending(s, readLocation))
	m.add("POST /api/send-message/contact", ofChannel, body, sending(s, readContacts))
	m.add("POST /api/send-message/poll", ofChannel, body, sending(s, readPoll), "/api/send-message/polling")
	m.add("POST /api/send-message/pool", ofGlobal, body, pooling(s))

	m.add("PUT /api/send-message/reaction", ofChannel, body, drafting(s, s.react, operationResponse), "/api/send-message/react")
	m.add("PUT /api/send-message/edit", ofChannel, body, drafting(s, s.edit, operationResponse))
	m.add("POST /api/send-message/seen", ofChannel, body, drafting(s, s.see, operationResponse))
	m.add("DELETE /api/send-message/delete", ofChannel, queryOrBody, drafting(s, s.delete, operationResponse))
	m.add("PUT /api/send-message/star", ofChannel, body, drafting(s, s.star, operationResponse))
	m.add("POST /api/send-message/typing", ofChannel, body, handleText(s.typing(true)))
	m.add("POST /api/send-message/stop-typing", ofChannel, body, handleText(s.typing(false)))

	m.add("GET /api/chat", ofChannel, query, handle(s.chats), "/api/chat/{$}", "/api/chat/all")
	m.add("GET /api/chat/detail", ofChannel, query, handle(s.history), "/api/chat/details")
	m.add("POST /api/chat/archive", ofChannel, body, drafting(s, s.archive(true), s.archiveResponse))
	m.add("POST /api/chat/un-archive", ofChannel, body, drafting(s, s.archive(false), operationResponse), "/api/chat/unarchive")

	m.add("GET /api/messages", ofChannel, query, handle(s.listMessages))
	m.add("GET /api/messages/{message_id}", ofChannel, query, handle(s.readMessage))
	m.add("POST /api/media", ofChannel, upload, work{do: handle(s.addUpload).do, anywhere: true})
	m.add("GET /api/media/{id}", ofChannel, nothing, work{do: s.readFile, signed: s.readSignedFile, anywhere: true})

	m.add("GET /api/contact", ofChannel, query, handleString(onUsable(s.contacts)), "/api/contact/{$}", "/api/contact/all")
	m.add("GET /api/contact/info", ofChannel, query, handleString(onUsable(s.contactInfo)), "/api/contact/detail")
	m.add("GET /api/contact/picture", ofChannel, query, handle(onUsable(s.picture)))
	m.add("GET /api/groups", ofChannel, query, handle(onUsable(s.groups)), "/api/groups/all")
	m.add("POST /api/groups/create", ofChannel, body, handle(onUsable(s.createGroup)))
	m.add("GET /api/groups/participants", ofChannel, query, handle(onUsable(s.participants)))
	m.add("POST /api/groups/participant", ofChannel, body, handle(onUsable(s.participants)))
	m.add("POST /api/groups/add", ofChannel, body, handle(onUsable(s.updateMembers(true))))
	m.add("POST /api/groups/remove", ofChannel, body, handle(onUsable(s.updateMembers(false))))
	m.add("POST /api/groups/leave", ofChannel, body, handle(onUsable(s.leaveGroup)))
	m.add("GET /api/groups/invite", ofChannel, query, handle(onUsable(s.inviteLink)))
	m.add("GET /api/channel/health", ofChannel, nothing, handle(s.health))
	m.add("GET /api/channel/check-phone-number", ofChannel, query, handle(onUsable(s.checkNumber)))

	m.add("POST /api/otp/code/request", ofChannel, body, work{do: s.requestCode})
	m.add("POST /api/otp/code/global", ofGlobal, body, work{do: s.requestGlobalCode})
	m.add("POST /api/otp/code/validate", ofChannel, body, certainly(handle(s.validateCode)))
	m.add("POST /api/otp/link/request", ofChannel, body, linking(s, ownChannel))
	m.add("POST /api/otp/link/global", ofGlobal, body, linking(s, s.workingChannels))
	m.add("GET /api/otp/link/{id}", ofAny, nothing, handle(s.link))

	m.stream("GET /api/events", ofAny)
	m.add("GET /api/events/recent", ofAny, query, handle(s.recentEvents))
	m.mcp("POST /mcp")
}

func sandboxRoutes(m *router, s *server) {
	m.add("GET /api/sandbox/cursor", ofChannel, nothing, s.onSandbox(s.cursor))
	m.add("GET /api/sandbox/phones", ofChannel, nothing, s.onSandbox(s.phones))
	m.add("POST /api/sandbox/phones", ofChannel, optionalBody, s.onSandbox(s.createPhone))
	m.add("PATCH /api/sandbox/phones/{number}", ofChannel, body, s.onSandbox(s.changePhone))
	m.add("GET /api/sandbox/phones/{number}/messages", ofChannel, query, s.onSandbox(s.phoneMessages))
	m.add("GET /api/sandbox/phones/{number}/chats", ofChannel, nothing, s.onSandbox(s.phoneChats))
	m.add("GET /api/sandbox/phones/{number}/chat", ofChannel, query, s.onSandbox(s.phoneChat))
	m.add("GET /api/sandbox/phones/{number}/media/{message_id}", ofChannel, nothing, work{do: s.ofSandbox(s.phoneFile)})
	m.add("POST /api/sandbox/phones/{number}/send", ofChannel, body, s.onSandbox(s.sayOnce(s.sendAsPhone)))
	m.add("POST /api/sandbox/phones/{number}/group", ofChannel, body, s.onSandbox(s.changeGroupAsPhone))
	m.add("POST /api/sandbox/phones/{number}/read", ofChannel, optionalBody, s.onSandbox(s.readAsPhone))
	m.add("POST /api/sandbox/phones/{number}/open", ofChannel, body, s.onSandbox(s.sayOnce(s.openAsPhone)))
	m.add("GET /api/sandbox/faults", ofChannel, nothing, s.onSandbox(s.listFaults))
	m.add("POST /api/sandbox/faults", ofChannel, body, s.onSandbox(s.addFault))
	m.add("DELETE /api/sandbox/faults", ofChannel, nothing, s.onSandbox(s.clearFaults))
	m.add("POST /api/sandbox/clock", ofChannel, body, s.onSandbox(s.moveClock))
	m.add("GET /api/sandbox/listeners", ofChannel, query, s.onSandbox(s.listeners))
	m.add("DELETE /api/sandbox", ofChannel, nothing, s.onSandbox(s.resetSandbox))
}

func manageRoutes(m *router, s *server) {
	m.add("GET /api/manage/channels", ofAdmin, query, handle(s.listChannels))
	m.add("POST /api/manage/channels", ofAdmin, body, handleCreated(s.createChannel))
	m.add("GET /api/manage/channels/{code}", ofAdmin, nothing, handle(s.readChannel))
	m.add("PATCH /api/manage/channels/{code}", ofAdmin, body, handle(s.changeChannel))
	m.add("DELETE /api/manage/channels/{code}", ofAdmin, nothing, handleAs(http.StatusAccepted, s.deleteChannel))
	m.add("GET /api/manage/deletions", ofAdmin, nothing, handle(s.listDeletions))
	m.add("POST /api/manage/channels/{code}/start", ofAdmin, nothing, handle(s.startChannel))
	m.add("POST /api/manage/channels/{code}/stop", ofAdmin, nothing, handle(s.stopChannel))
	m.add("POST /api/manage/channels/{code}/pair", ofAdmin, optionalBody, handle(s.pairChannel))
	m.add("GET /api/manage/channels/{code}/pairing", ofAdmin, nothing, handle(s.readPairing))
	m.add("POST /api/manage/channels/{code}/pair-link", ofAdmin, nothing, handle(s.makePairLink))
	m.add("POST /api/manage/channels/{code}/go-live", ofAdmin, body, handle(s.goLive))
	m.add("POST /api/manage/channels/{code}/logout", ofAdmin, nothing, handle(s.logoutChannel))
	m.add("GET /api/manage/tokens", ofAdmin, nothing, handle(s.listTokens))
	m.add("POST /api/manage/tokens", ofAdmin, body, handleCreated(s.createToken))
	m.add("PATCH /api/manage/tokens/{id}", ofAdmin, body, handle(s.changeToken))
	m.add("DELETE /api/manage/tokens/{id}", ofAdmin, nothing, handle(s.revokeToken))
	m.add("POST /api/manage/signing-key/rotate", ofAdmin, optionalBody, handle(s.rotateSigningKey))
	m.add("POST /api/manage/sign-in-link", ofAdmin, optionalBody, handle(s.makeSignInLink))
	m.add("GET /api/manage/audit", ofAdmin, query, handle(s.listAudit))
	m.add("GET /api/manage/alerts", ofAdmin, query, handle(s.listAlerts))
	m.add("POST /api/manage/alerts", ofAdmin, body, handleCreated(s.createAlert))
	m.add("PUT /api/manage/alerts/{id}", ofAdmin, body, handle(s.replaceAlert))
	m.add("DELETE /api/manage/alerts/{id}", ofAdmin, nothing, handle(s.deleteAlert))
	m.add("POST /api/manage/alerts/{id}/test", ofAdmin, nothing, handle(s.testAlert))
	m.add("GET /api/manage/sessions", ofAdmin, nothing, handle(s.listSessions))
	m.add("DELETE /api/manage/sessions", ofAdmin, nothing, handle(s.endOtherSessions))
	m.add("DELETE /api/manage/sessions/{id}", ofAdmin, nothing, handle(s.endSession))
	m.add("GET /api/manage/me", ofAdmin, nothing, handle(s.readMe))
	m.add("GET /api/manage/listen-secret", ofAdmin, nothing, ofSecret(listenSecret, s.showSecret))
	m.add("GET /api/manage/webhooks", ofAdmin, nothing, handle(s.listWebhooks))
	m.add("POST /api/manage/webhooks", ofAdmin, body, handleCreated(s.createWebhook))
	m.add("GET /api/manage/webhooks/{id}", ofAdmin, nothing, handle(s.readWebhook))
	m.add("PATCH /api/manage/webhooks/{id}", ofAdmin, body, handle(s.changeWebhook))
	m.add("DELETE /api/manage/webhooks/{id}", ofAdmin, nothing, handle(s.deleteWebhook))
	m.add("POST /api/manage/webhooks/{id}/retry", ofAdmin, nothing, handle(s.retryWebhook))
	m.add("POST /api/manage/webhooks/{id}/test", ofAdmin, nothing, handle(s.testWebhook))
	m.add("GET /api/manage/webhooks/{id}/secret", ofAdmin, nothing, ofSecret(s.webhookSecret, s.showSecret))
	m.add("POST /api/manage/webhooks/{id}/rotate", ofAdmin, nothing, ofSecret(s.webhookSecret, s.rotateSecret))
	m.add("GET /api/manage/channels/{code}/secret", ofAdmin, nothing, ofSecret(s.channelSecret, s.showSecret))
	m.add("POST /api/manage/channels/{code}/secret/rotate", ofAdmin, nothing, ofSecret(s.channelSecret, s.rotateSecret))
	m.add("GET /api/manage/deliveries", ofAdmin, query, handle(s.listDeliveries))
	m.add("GET /api/manage/deliveries/export", ofAdmin, query, work{do: s.exportDeliveries})
	m.add("GET /api/manage/deliveries/{id}", ofAdmin, nothing, handle(s.readDelivery))
	m.add("POST /api/manage/deliveries/{id}/retry", ofAdmin, nothing, handle(s.retryDelivery))
	m.add("POST /api/manage/deliveries/replay", ofAdmin, body, handle(s.replayDeliveries))

	m.add("GET /api/manage/channels/{code}/timeline", ofAdmin, query, handle(s.channelTimeline))
	m.add("GET /api/manage/channels/{code}/requests", ofAdmin, query, handle(s.listRequests))
	m.add("GET /api/manage/chats", ofAdmin, query, handle(s.listChats))
	m.add("GET /api/manage/channels/{code}/chats", ofAdmin, query, handle(s.listChats))
	m.add("GET /api/manage/channels/{code}/chats/{chat}", ofAdmin, query, handle(s.readChat))
	m.add("GET /api/manage/contacts/{contact}", ofAdmin, nothing, handle(s.readContact))
	m.add("GET /api/manage/messages", ofAdmin, query, handle(s.listMessages))
	m.add("GET /api/manage/messages/export", ofAdmin, query, work{do: s.exportMessages})
	m.add("GET /api/manage/messages/{message_id}", ofAdmin, query, handle(s.readMessage))
	m.add("GET /api/manage/messages/{message_id}/media", ofAdmin, query, work{do: s.readMessageFile})
	m.add("GET /api/manage/find", ofAdmin, query, handle(s.findByID))
	m.add("GET /api/manage/otp", ofAdmin, query, handle(s.listOTPs))
	m.add("GET /api/manage/overview", ofAdmin, query, handle(s.readOverview))
	m.add("GET /api/manage/stats", ofAdmin, query, handle(s.readStats))
	m.add("GET /api/manage/server", ofAdmin, nothing, handle(s.readServer))
	m.add("GET /api/manage/nodes", ofAdmin, nothing, handle(s.listNodes))
	m.add("POST /api/manage/nodes/{id}/drain", ofAdmin, nothing, handle(s.drainNode))
	m.add("GET /api/manage/doctor", ofAdmin, nothing, handle(s.askDoctor))
	m.add("POST /api/manage/backup", ofAdmin, nothing, handle(s.makeBackup))
	m.add("GET /api/manage/backup/file", ofAdmin, nothing, work{do: s.readBackup})
	m.add("GET /api/manage/backup/now", ofAdmin, nothing, work{do: s.streamBackup})
	m.add("GET /api/manage/diagnostics", ofAdmin, nothing, work{do: s.readDiagnostics})
	m.add("GET /api/manage/diagnostics/contents", ofAdmin, nothing, handle(s.listDiagnostics))
	m.add("PATCH /api/manage/log-level", ofAdmin, body, handle(s.changeLogLevel))

	m.stream("GET /api/manage/events", ofAdmin)
	m.add("GET /api/manage/events/recent", ofAdmin, query, handle(s.recentEvents))
}

func publicRoutes(m *router, s *server) {
	m.add("GET /livez", public, nothing, handleText(s.live))
	m.add("GET /readyz", public, nothing, handleText(s.ready))
	m.serve("GET /metrics", s.metrics())
	m.add("GET /.well-known/jwks.json", public, nothing, work{do: s.jwks})
	m.serve("GET /phone/{number}", servePhone())
	m.add("POST /phone/{number}/send", public, body, handle(s.tap))
	m.serve("GET /phone.js", serveFile("phone/phone.js", typeScript))
	m.serve("GET /phone.css", serveFile("phone/phone.css", typeStyle))
	m.serve("GET /pair", servePairPage())
	m.add("POST /pair/begin", public, optionalBody, handle(s.beginPairLink))
	m.add("GET /pair/state", public, nothing, handle(s.pairLinkState))
	m.serve("GET /pair.js", serveFile("pair/pair.js", typeScript))
	m.serve("GET /pair.css", serveFile("pair/pair.css", typeStyle))
	m.serve("GET /openapi.json", serveFile("openapi.json", typeJSON[0]))
	m.serve("GET /openapi.yaml", serveFile("openapi.json", "application/yaml")) // JSON is YAML
	m.serve("GET /docs", serveDocs(), "/docs/{$}")
	m.serve("GET /docs/{file}", serveDocs())
}

// Routes lists every route as "METHOD /path", for tests of the documentation.
func Routes() []string {
	m := newRouter(&server{}, prometheus.NewRegistry())
	routes(m, m.server)
	publicRoutes(m, m.server)
	return m.names
}

// router is a ServeMux whose patterns are paths. Each path dispatches by method, so that a path returns 405 for
// other methods, even if another path with a wildcard matches.
type router struct {
	*server
	checkSession sessionCheck // of the console; nil: tokens authenticate
	mux          *http.ServeMux
	duration     *prometheus.HistogramVec
	names        []string
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

// add adds a route, given as "METHOD /path", also under other spellings of its path that clients use. A spelling that ends in
// {$} is the path with a slash at its end, which is no route of its own: OpenAPI tools reject such paths.
func (m *router) add(pattern string, who access, in input, w work, spellings ...string) {
	method, path, _ := strings.Cut(pattern, " ")
	if action := auditedActions[pattern]; action != "" {
		w = m.audited(action, w)
	}
	if action := consoleActions[pattern]; action != "" {
		w = m.auditedInConsole(action, w)
	}
	rt := m.route(pattern, who, in, w)
	m.handle(rt, rt)
	for _, spelling := range spellings {
		if strings.HasSuffix(spelling, "/{$}") {
			m.mux.Handle(spelling, m.paths[path])
			continue
		}
		rt := m.route(method+" "+spelling, who, in, w)
		m.handle(rt, rt)
	}
}

// serve adds a handler that writes its own responses, also under other spellings of its path.
func (m *router) serve(pattern string, h http.Handler, spellings ...string) {
	rt := m.route(pattern, public, nothing, work{})
	m.handle(rt, &rawRoute{rt, h})
	for _, spelling := range spellings {
		m.mux.Handle(spelling, m.paths[rt.path])
	}
}

func (m *router) route(pattern string, who access, in input, w work) *route {
	method, path, _ := strings.Cut(pattern, " ")
	return &route{
		server: m.server, checkSession: m.checkSession, method: method, path: path, access: who, input: in, work: w,
		duration: m.duration, ok: sync.OnceValue(func() prometheus.Observer { return m.duration.WithLabelValues(pattern, "200") }),
	}
}

func (m *router) handle(rt *route, h http.Handler) {
	m.names = append(m.names, rt.name())
	p := m.paths[rt.path]
	if p == nil {
		p = &methods{access: rt.access, by: map[string]http.Handler{}}
		m.paths[rt.path] = p
		m.mux.Handle(rt.path, p)
	}
	p.by[rt.method] = h
}

// finish adds the responses to other methods and unknown paths.
func (m *router) finish() {
	for path, p := range m.paths {
		p.other = m.route("OTHER "+path, p.access, noRoute, refusing(methodNotAllowed(p.allow())))
	}
	unknownPath := parley.Errorf(parley.NotFound, "This path does not exist. The reference is at /docs.")
	m.notFound = m.route("ANY /api/", anyToken, noRoute, refusing(unknownPath))
	m.noPath = m.route("ANY /", public, noRoute, refusing(unknownPath))
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
