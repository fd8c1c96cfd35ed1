package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"parley"
)

// live always succeeds: the process responds.
func (s *server) live(context.Context, *request) error { return nil }

// readyLimit is below the common probe timeout of two seconds.
const readyLimit = 1800 * time.Millisecond

func (s *server) ready(ctx context.Context, _ *request) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- s.checkReady(ctx) }() // a hanging disk ignores the context
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return parley.Errorf(parley.Unavailable, "The database does not respond.")
	}
}

func (s *server) checkReady(ctx context.Context) error {
	select {
	case <-s.config.Gateway.Ready():
		return s.config.Ready(ctx)
	default:
		return parley.Errorf(parley.Unavailable, "The channels are starting.")
	}
}

// metrics serves this machine and admin tokens, and everybody if OpenMetrics is set.
func (s *server) metrics() http.Handler {
	figures := promhttp.HandlerFor(s.config.Metrics, promhttp.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		if err := s.mayReadMetrics(hr); err != nil {
			write(w, w.Header().Get("X-Request-Id"), refusal(err))
			return
		}
		figures.ServeHTTP(w, hr)
	})
}

func (s *server) mayReadMetrics(hr *http.Request) error {
	const sentence = "Metrics are readable only on this machine. From elsewhere, or through a proxy, send an admin token."
	if s.config.OpenMetrics || s.isLocal(hr) {
		return nil
	}
	if len(hr.Header["Authorization"]) == 0 {
		return parley.Errorf(parley.Forbidden, sentence)
	}
	token, err := s.authenticate(hr.Context(), hr)
	if err == nil && token.Kind != parley.AdminToken {
		return parley.Errorf(parley.Forbidden, sentence)
	}
	return err
}

// isLocal reports whether a request was made on this machine: it comes from loopback, names this machine as its
// host (against pages of other sites in a local browser), and was not forwarded. A trusted local proxy may add
// no header, so behind one no request is local.
func (s *server) isLocal(hr *http.Request) bool {
	addr := s.clientAddress(hr)
	return addr.IsLoopback() && !s.trusts(addr) && !isForwarded(hr.Header) && NamesThisMachine(hr.Host)
}

// jwks returns the public keys. Caching is safe: a new key is published before it is used.
func (s *server) jwks(context.Context, *request) (response, error) {
	return response{
		status: http.StatusOK, contentType: typeJSON, body: s.config.Tokens.JWKS(),
		header: []field{{"Cache-Control", "public, max-age=300"}},
	}, nil
}

type healthData struct {
	Name            string               `json:"name"`
	Code            parley.ChannelCode   `json:"code"`
	Network         parley.NetworkName   `json:"network"`
	Simulated       bool                 `json:"simulated"` // its phones are not real
	Status          parley.ChannelStatus `json:"status"`
	Reason          string               `json:"reason"`
	Since           string               `json:"since"`
	UpTime          string               `json:"up_time"`
	StartAt         string               `json:"start_at"`
	Timestamp       string               `json:"timestamp"`
	Phone           phoneData            `json:"phone"`
	Waiting         int                  `json:"waiting"`
	Restricted      bool                 `json:"restricted,omitzero"`
	RestrictedUntil *string              `json:"restricted_until,omitempty"`
}

type phoneData struct {
	Name   string `json:"name"`
	Number int64  `json:"number"` // 0: not known
}

func (s *server) health(_ context.Context, r *request) (any, error) {
	c := r.channel
	now := time.Now()
	number, _ := strconv.ParseInt(c.Number, 10, 64)
	restricted, until := s.config.Gateway.Restriction(c.Code)
	data := healthData{
		Name: c.Name, Code: c.Code, Network: c.Network, Simulated: s.config.Gateway.Network(c.Network).Simulated,
		Status: c.State.Status, Reason: c.State.Reason, Since: parley.Stamp(c.State.Since),
		UpTime: "0s", Timestamp: parley.Stamp(s.config.Gateway.Now(c.Code)),
		Phone:      phoneData{Name: c.PhoneName, Number: number},
		Waiting:    s.config.Gateway.QueueDepth(c.Code),
		Restricted: restricted, RestrictedUntil: stampOrNil(until),
	}
	if !c.State.WorkingAt.IsZero() {
		data.StartAt = parley.Stamp(c.State.WorkingAt)
		if c.State.Status == parley.ChannelWorking {
			data.UpTime = max(0, now.Sub(c.State.WorkingAt)).Truncate(time.Second).String()
		}
	}
	return ok("OK", data), nil
}
