package app

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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

// checkReady answers nil when requests may come, else why they should go elsewhere. A server that cannot write is of no
// use, so the database must answer, and take a write.
func (s *server) checkReady(ctx context.Context) error {
	switch s.state.at.Load() {
	case starting:
		return parley.Errorf(parley.Unavailable, "The server is starting.")
	case draining:
		return parley.Errorf(parley.Unavailable, "The server is stopping.")
	}
	if err := s.data.Store.Writable(ctx); err != nil {
		return err
	}
	if _, err := s.data.Store.Revision(ctx); err != nil {
		return &parley.Error{Code: parley.Unavailable, Message: "The database does not answer.", Cause: err}
	}
	return nil
}

// measureWritable shows whether the database can be written to.
func (s *server) measureWritable() {
	s.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "parley_database_writable", Help: "1 if the database takes a write, 0 if it does not: the disk is full, it is locked or damaged.",
	}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if s.data.Store.Writable(ctx) != nil {
			return 0
		}
		return 1
	}))
}
