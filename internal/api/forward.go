package api

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/cluster"
	"parley/internal/gateway"
	"parley/internal/socket"
	"parley/internal/token"
)

// hopHeader marks a request that another node forwarded: "ADDRESS TOKEN TIME BODY SIGNATURE". ADDRESS is that of the client.
// TOKEN is the kind of a token that only the other node knows, that of its own command line; else it is "-", and the token is
// verified again. TIME is in Unix seconds by the database's clock. BODY is the SHA-256 of the body. The signature is made with a
// key that only nodes have.
const hopHeader = "Parley-Hop"

// signatureLife is how long a forwarded request is valid.
const signatureLife = 2 * time.Minute

// How long a node that cannot be reached may hold up a request. A request to a node that is no longer a member ends at once.
const (
	dialTimeout     = 3 * time.Second
	longestResponse = 3 * time.Minute // no request of ours takes longer to be answered
	memberCheck     = time.Second
)

// forwarder sends requests to the nodes that serve their channels.
type forwarder struct {
	keys      [][]byte // the first signs, all verify
	transport *http.Transport
	total     *prometheus.CounterVec
	seconds   prometheus.Histogram
}

func newForwarder(c Config) *forwarder {
	f := &forwarder{
		keys: c.Keyring.Derive("requests between nodes"),
		transport: &http.Transport{TLSClientConfig: c.NodeTLS, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute,
			DialContext:         socket.Dialer(dialTimeout).DialContext,
			TLSHandshakeTimeout: dialTimeout, ResponseHeaderTimeout: longestResponse, DisableCompression: true},
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_forwarded_total", Help: "Requests forwarded to another node, by result: ok, or failed if the node did not answer.",
		}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "parley_forward_seconds", Help: "How long forwarded requests took.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}),
	}
	if _, single := c.Cluster.(cluster.Single); !single {
		c.Metrics.MustRegister(f.total, f.seconds)
	}
	return f
}

// sign returns the signature of a request with some values of the header.
func (f *forwarder) sign(key []byte, method, uri, values string) string {
	mac := hmac.New(sha256.New, key)
	io.WriteString(mac, method+"\n"+uri+"\n"+values)
	return hex.EncodeToString(mac.Sum(nil))
}

// hop is what the header of a forwarded request says.
type hop struct {
	from  string
	token parley.TokenKind // empty: the token must be verified
	sent  time.Time
	body  string // its SHA-256
}

func (h hop) String() string {
	return strings.Join([]string{h.from, cmp.Or(string(h.token), "-"), strconv.FormatInt(h.sent.Unix(), 10), h.body}, " ")
}

func parseHop(values string) (h hop, ok bool) {
	fields := strings.Split(values, " ")
	if len(fields) != 4 {
		return hop{}, false
	}
	seconds, err := strconv.ParseInt(fields[2], 10, 64)
	return hop{fields[0], parley.TokenKind(strings.TrimPrefix(fields[1], "-")), time.Unix(seconds, 0), fields[3]}, err == nil
}

func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// verify reads the header of a forwarded request. The caller compares the body.
func (f *forwarder) verify(hr *http.Request, now time.Time) (hop, bool) {
	header := hr.Header.Get(hopHeader)
	end := strings.LastIndexByte(header, ' ')
	if end < 0 {
		return hop{}, false
	}
	values, signature := header[:end], header[end+1:]
	for _, key := range f.keys {
		if hmac.Equal([]byte(signature), []byte(f.sign(key, hr.Method, hr.RequestURI, values))) {
			h, ok := parseHop(values)
			return h, ok && now.Sub(h.sent).Abs() <= signatureLife
		}
	}
	return hop{}, false
}

type hopKey struct{}

// FromNodes serves requests that other nodes forwarded, and refuses all others.
func (a *API) FromNodes(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		h, ok := a.forwarder.verify(hr, a.server.Cluster.Now())
		if ok {
			body, err := io.ReadAll(io.LimitReader(hr.Body, maxBody+1))
			ok = err == nil && hashOf(body) == h.body
			hr.Body = io.NopCloser(bytes.NewReader(body))
		}
		if !ok {
			a.Refuse(w, hr, parley.Errorf(parley.Forbidden, "This address is only for other nodes of the cluster, with the same secret.key."))
			return
		}
		hr = hr.WithContext(context.WithValue(hr.Context(), hopKey{}, h))
		hr.Header.Del(hopHeader)
		if addr, err := netip.ParseAddr(h.from); err == nil {
			hr.RemoteAddr = netip.AddrPortFrom(addr, 0).String()
		}
		handler.ServeHTTP(w, hr)
	})
}

func isForwardedByNode(ctx context.Context) bool {
	_, forwarded := ctx.Value(hopKey{}).(hop)
	return forwarded
}

// tokenOfNode returns the token that another node vouches for.
func tokenOfNode(ctx context.Context) (parley.Token, bool) {
	h, _ := ctx.Value(hopKey{}).(hop)
	return token.LocalToken(h.token), h.token != ""
}

// otherNode is the error of a request that another node must serve.
type otherNode struct {
	node    cluster.Node
	channel parley.ChannelCode // to be named in X-Channel; empty: the request names it
}

func (e *otherNode) Error() string { return "another node serves it" }

// checkOwner returns nil if this node serves a channel or webhook, else what to do instead.
func (s *server) checkOwner(ctx context.Context, key string) error {
	node, ok := s.Cluster.Owner(ctx, key)
	switch {
	case node.Self:
		return nil
	case !ok, isForwardedByNode(ctx): // one hop only
		return errMoving
	case node.URL == "":
		return &parley.Error{Code: parley.Unavailable, RetryAfter: 5 * time.Second,
			Message: "Another node serves this, and it has no --node-url. Ask the operator."}
	}
	return &otherNode{node: node}
}

var errMoving = &parley.Error{Code: parley.Unavailable, RetryAfter: time.Second,
	Message: "This channel moves to another node. Try again in a moment."}

// checkChannelOwner is checkOwner for a channel.
func (s *server) checkChannelOwner(ctx context.Context, c parley.Channel) error {
	return s.checkOwner(ctx, gateway.ShardKey(c))
}

// checkNode returns nil if this node serves the request, as far as that is known before its fields are read.
func (rt *route) checkNode(ctx context.Context, r *request) error {
	if rt.anywhere {
		return nil
	}
	if rt.access == ofChannel {
		return rt.checkChannelOwner(ctx, r.channel)
	}
	if code := r.http.PathValue("code"); code != "" {
		c, ok := rt.Gateway.Channel(parley.ChannelCode(code))
		if !ok {
			c.Code = parley.ChannelCode(code)
		}
		return rt.checkChannelOwner(ctx, c)
	}
	if strings.HasPrefix(rt.path, "/api/manage/webhooks/{id}") {
		return rt.checkOwner(ctx, r.http.PathValue("id"))
	}
	return nil
}

// checkStillOwner replaces an error if another node may serve the channel meanwhile: what this one knows may be out of date.
func (rt *route) checkStillOwner(err error) error {
	if err == nil || rt.access != ofChannel || rt.Cluster.MaySend() {
		return err
	}
	moving := *errMoving
	moving.Cause = err
	return &moving
}

// forwardTo has another node serve the request, and returns the status of its response. If the node did not respond, the error says
// what this one did.
func (rt *route) forwardTo(w http.ResponseWriter, r *request, to *otherNode) (status int, refused error) {
	began := time.Now()
	f := rt.forwarder
	target, err := url.Parse(to.node.URL)
	if err != nil {
		a := refusal(errMoving)
		write(w, r.id, a)
		return a.status, errMoving
	}
	said := hop{from: rt.addressOf(r.http).String(), sent: rt.Cluster.Now(), body: hashOf(r.body.Bytes())}
	if token.IsLocal(r.token) {
		said.token = r.token.Kind
	}
	values := said.String()
	ctx, cancel := context.WithCancel(r.http.Context())
	defer cancel()
	go rt.cancelWithoutMember(ctx, cancel, to.node.ID)
	seen := &statusWriter{ResponseWriter: w, status: http.StatusOK}
	proxy := &httputil.ReverseProxy{
		Transport:     f.transport,
		FlushInterval: -1, // streams
		Rewrite: func(p *httputil.ProxyRequest) {
			asked, err := url.ParseRequestURI(r.http.RequestURI) // the console's own path
			if err == nil {
				p.Out.URL = asked
			}
			p.Out.URL.Scheme, p.Out.URL.Host = target.Scheme, target.Host
			p.Out.Host = r.http.Host
			p.Out.Header.Set("X-Request-Id", r.id)
			p.Out.Header.Set(hopHeader, values+" "+f.sign(f.keys[0], p.Out.Method, p.Out.URL.RequestURI(), values))
			if to.channel != "" {
				p.Out.Header.Set("X-Channel", string(to.channel))
			}
			p.Out.Body, p.Out.ContentLength = http.NoBody, 0
			if r.body.Len() > 0 {
				p.Out.Body, p.Out.ContentLength = io.NopCloser(bytes.NewReader(r.body.Bytes())), int64(r.body.Len())
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			f.total.WithLabelValues("failed").Inc()
			rt.Log.Warn("a node did not answer a forwarded request", "node", to.node.ID, "url", to.node.URL, "error", err)
			refused = errNoAnswer
			write(w, r.id, refusal(refused))
		},
	}
	proxy.ServeHTTP(seen, r.http.WithContext(ctx))
	f.seconds.Observe(time.Since(began).Seconds())
	if seen.status != http.StatusServiceUnavailable {
		f.total.WithLabelValues("ok").Inc()
	}
	return seen.status, refused
}

var errNoAnswer = &parley.Error{Code: parley.Unavailable, RetryAfter: 2 * time.Second,
	Message: "The node that serves this channel does not answer. Try again soon."}

// cancelWithoutMember cancels a request once the node that it was forwarded to is no longer a member.
func (rt *route) cancelWithoutMember(ctx context.Context, cancel func(), node int64) {
	ticker := time.NewTicker(memberCheck)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		nodes, err := rt.Cluster.Nodes(ctx)
		if err == nil && !slices.ContainsFunc(nodes, func(n cluster.Node) bool { return n.ID == node }) {
			cancel()
		}
	}
}
