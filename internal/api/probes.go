package api

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"parley"
)

// live answers as long as the process can answer at all.
func (s *server) live(context.Context, *request) error { return nil }

// ready says whether the server should get requests.
func (s *server) ready(ctx context.Context, _ *request) error {
	if s.Ready != nil {
		if err := s.Ready(ctx); err != nil {
			return &parley.Error{Code: parley.Unavailable, Message: "The server is not ready.", Cause: err}
		}
	}
	select {
	case <-s.Gateway.Ready():
	default:
		return parley.Errorf(parley.Unavailable, "The channels are being started.")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if _, err := s.Store.Revision(ctx); err != nil {
		return &parley.Error{Code: parley.Unavailable, Message: "The database does not answer.", Cause: err}
	}
	return nil
}

// metrics serves the figures, to this machine only unless the operator opened them.
func (s *server) metrics() http.Handler {
	figures := promhttp.HandlerFor(s.Metrics, promhttp.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		if !s.OpenMetrics && !s.isLocal(hr) {
			a := errorAnswer(http.StatusForbidden, "Metrics are shown to this machine only.", nil)
			write(w, w.Header().Get("X-Request-Id"), a)
			return
		}
		figures.ServeHTTP(w, hr)
	})
}

// isLocal reports whether a request comes from this machine and was not passed on by a proxy on it.
func (s *server) isLocal(hr *http.Request) bool {
	return !isForwarded(hr.Header) && s.addressOf(hr).IsLoopback()
}

// jwks answers the public keys. They may be kept for a while: a new key is published before others
// need it.
func (s *server) jwks(context.Context, *request) (answer, error) {
	return answer{
		status: http.StatusOK, contentType: typeJSON, body: s.Tokens.JWKS(),
		header: []field{{"Cache-Control", "public, max-age=300"}},
	}, nil
}
