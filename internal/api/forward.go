package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/cluster"
	"parley/internal/gateway"
	"parley/internal/socket"
)

// How long a node that cannot be reached may hold up a request. A request to a node that is no longer a member ends at once.
const (
	dialTimeout     = 3 * time.Second
	longestResponse = 3 * time.Minute // no request of ours takes longer to be answered
	memberCheck     = time.Second
)

// forwarder sends requests to the nodes that serve their channels.
type forwarder struct {
	hops      hopSigner
	transport *http.Transport
	total     *prometheus.CounterVec
	seconds   prometheus.Histogram
}

func newForwarder(c Config) *forwarder {
	f := &forwarder{
		hops: hopSigner{keys: c.Keyring.Derive("requests between nodes")},
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

// otherNode is the error of a request that another node must serve.
type otherNode struct {
	node    cluster.Node
	channel parley.ChannelCode // to be named in X-Channel; empty: the request names it
}

func (e *otherNode) Error() string { return "another node serves it" }

// checkOwner returns nil if this node serves a channel or webhook, else what to do instead.
func (s *server) checkOwner(ctx context.Context, key string) error {
	node, ok := s.config.Cluster.Owner(ctx, key)
	switch {
	case node.Self:
		return nil
	case !ok, IsForwarded(ctx): // one hop only
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
		c, ok := rt.config.Gateway.Channel(parley.ChannelCode(code))
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
	if err == nil || rt.access != ofChannel || rt.config.Cluster.MaySend() {
		return err
	}
	moving := *errMoving
	moving.Cause = err
	return &moving
}

// forwardTo has another node serve the request, and returns the status of its response. After an error nothing was written: the node
// did not respond.
func (s *server) forwardTo(w http.ResponseWriter, r *request, to *otherNode) (status int, refused error) {
	began := time.Now()
	f := s.forwarder
	target, err := url.Parse(to.node.URL)
	if err != nil {
		return 0, errMoving
	}
	ctx, cancel := context.WithCancel(r.http.Context())
	defer cancel()
	go s.cancelWithoutMember(ctx, cancel, to.node.ID)
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
			p.Out.Host = ""
			p.Out.Header = s.forwardedHeader(r, to)
			f.hops.sign(p.Out, s.newHop(r, to.node.ID))
			p.Out.Body, p.Out.ContentLength = http.NoBody, 0
			if r.body.Len() > 0 {
				p.Out.Body, p.Out.ContentLength = io.NopCloser(bytes.NewReader(r.body.Bytes())), int64(r.body.Len())
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			if resp.Header.Get(hopHeader) != "" {
				return errHopRefused
			}
			if r.certain && resp.StatusCode == http.StatusServiceUnavailable {
				return errNoAnswer // it may be serving the channel no longer
			}
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			f.total.WithLabelValues("failed").Inc()
			s.config.Log.Warn("a node did not answer a forwarded request", "node", to.node.ID, "url", to.node.URL, "error", err)
			refused = errNoAnswer
		},
	}
	proxy.ServeHTTP(seen, r.http.WithContext(ctx))
	f.seconds.Observe(time.Since(began).Seconds())
	if refused != nil {
		return 0, refused
	}
	if seen.status != http.StatusServiceUnavailable {
		f.total.WithLabelValues("ok").Inc()
	}
	return seen.status, refused
}

var errNoAnswer = &parley.Error{Code: parley.Unavailable, RetryAfter: 2 * time.Second,
	Message: "The node that serves this channel does not answer. Try again soon."}

// cancelWithoutMember cancels a request once the node that it was forwarded to is no longer a member.
func (s *server) cancelWithoutMember(ctx context.Context, cancel func(), node int64) {
	ticker := time.NewTicker(memberCheck)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		nodes, err := s.config.Cluster.Nodes(ctx)
		if err == nil && !slices.ContainsFunc(nodes, func(n cluster.Node) bool { return n.ID == node }) {
			cancel()
		}
	}
}
