package app

import (
	"context"
	"sync/atomic"

	"parley"
)

// readiness says whether requests should come here now. The zero value is not ready yet.
type readiness struct{ at atomic.Int32 }

const (
	starting int32 = iota
	ready
	draining
)

func (r *readiness) set(to int32) { r.at.Store(to) }

// checkReady answers nil when requests may come, else why they should go elsewhere.
func (s *server) checkReady(ctx context.Context) error {
	switch s.state.at.Load() {
	case starting:
		return parley.Errorf(parley.Unavailable, "starting")
	case draining:
		return parley.Errorf(parley.Unavailable, "draining")
	}
	if _, err := s.data.Store.Revision(ctx); err != nil {
		return &parley.Error{Code: parley.Unavailable, Message: "the database does not answer", Cause: err}
	}
	return nil
}
