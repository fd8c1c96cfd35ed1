package api

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/cluster"
	"parley/internal/gateway"
	"parley/internal/token"
)

// hopHeader marks a request that another node forwarded: "ADDRESS TOKEN SIGNATURE". ADDRESS is that of the client. TOKEN is
// the kind of a token that only the other node knows, that of its own command line; else it is "-", and the token is verified
// again. The signature is made with a key that only nodes have.
const hopHeader = "Parley-Hop"

// How long a node that cannot be reached may hold up a request.
const (
	dialTimeout     = 3 * time.Second
	longestResponse = 65 * time.Second // no request of ours takes longer to be answered
)

// keepAlive ends an idle connection to a node that is gone.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second, Interval: time.Second, Count: 3}

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
			DialContext:         (&net.Dialer{Timeout: dialTimeout, KeepAliveConfig: keepAlive}).DialContext,
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

// sign returns the signature of a request from a client's address.
func (f *forwarder) sign(key []byte, method, uri, values string) string {
	mac := hmac.New(sha256.New, key)
	io.WriteString(mac, method+"\n"+uri+"\n"+values)
	return hex.EncodeToString(mac.Sum(nil))
}

// hop is what the header of a forwarded request says.
type hop struct {
	from  string
	token parley.TokenKind // empty: the token must be verified
}

// verify reads the header of a forwarded request.
func (f *forwarder) verify(hr *http.Request) (hop, bool) {
	header := hr.Header.Get(hopHeader)
	end := strings.LastIndexByte(header, ' ')
	if end < 0 {
		return hop{}, false
	}
	values, signature := header[:end], header[end+1:]
	for _, key := range f.keys {
		if hmac.Equal([]byte(signature), []byte(f.sign(key, hr.Method, hr.RequestURI, values))) {
			from, kind, _ := strings.Cut(values, " ")
			return hop{from, parley.TokenKind(strings.TrimSuffix(kind, "-"))}, true
		}
	}
	return hop{}, false
}

type hopKey struct{}

// FromNodes serves requests that other nodes forwarded, and refuses all others.
func (a *API) FromNodes(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		h, ok := a.forwarder.verify(hr)
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

// elsewhere is the error of a request that another node must serve.
type elsewhere struct {
	node    cluster.Node
	channel parley.ChannelCode // to be named in X-Channel; empty: the request names it
}

func (e *elsewhere) Error() string { return "another node serves it" }

// here returns nil if this node serves a channel or webhook, else what to do instead.
func (s *server) here(ctx context.Context, key string) error {
	node, ok := s.Cluster.Owner(ctx, key)
	switch {
	case node.Self:
		return nil
	case !ok, isForwardedByNode(ctx): // one hop only
		return errMoves
	case node.URL == "":
		return &parley.Error{Code: parley.Unavailable, RetryAfter: 5 * time.Second,
			Message: "Another node serves this, and it has no --node-url. Ask the operator."}
	}
	return &elsewhere{node: node}
}

var errMoves = &parley.Error{Code: parley.Unavailable, RetryAfter: time.Second,
	Message: "This channel moves to another node. Try again in a moment."}

// hereForChannel is here for a channel.
func (s *server) hereForChannel(ctx context.Context, c parley.Channel) error {
	return s.here(ctx, gateway.ShardKey(c))
}

// checkNode returns nil if this node serves the request, as far as that is known before its fields are read.
func (rt *route) checkNode(ctx context.Context, r *request) error {
	if rt.access == ofChannel {
		return rt.hereForChannel(ctx, r.channel)
	}
	if code := r.http.PathValue("code"); code != "" {
		c, ok := rt.Gateway.Channel(parley.ChannelCode(code))
		if !ok {
			c.Code = parley.ChannelCode(code)
		}
		return rt.hereForChannel(ctx, c)
	}
	if strings.HasPrefix(rt.path, "/api/manage/webhooks/{id}") {
		return rt.here(ctx, r.http.PathValue("id"))
	}
	return nil
}

// forwardTo has another node serve the request, and returns the status of its response.
func (rt *route) forwardTo(w http.ResponseWriter, r *request, to *elsewhere) (status int) {
	began := time.Now()
	f := rt.forwarder
	target, err := url.Parse(to.node.URL)
	if err != nil {
		a := refusal(errMoves)
		write(w, r.id, a)
		return a.status
	}
	kind := parley.TokenKind("-")
	if token.IsLocal(r.token) {
		kind = r.token.Kind
	}
	values := rt.addressOf(r.http).String() + " " + string(kind)
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
			if r.body.Len() > 0 {
				p.Out.Body, p.Out.ContentLength = io.NopCloser(bytes.NewReader(r.body.Bytes())), int64(r.body.Len())
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			f.total.WithLabelValues("failed").Inc()
			rt.Log.Warn("a node did not answer a forwarded request", "node", to.node.ID, "url", to.node.URL, "error", err)
			write(w, r.id, refusal(&parley.Error{Code: parley.Unavailable, RetryAfter: 2 * time.Second,
				Message: "The node that serves this channel does not answer. Try again soon."}))
		},
	}
	proxy.ServeHTTP(seen, r.http)
	f.seconds.Observe(time.Since(began).Seconds())
	if seen.status != http.StatusServiceUnavailable {
		f.total.WithLabelValues("ok").Inc()
	}
	return seen.status
}
