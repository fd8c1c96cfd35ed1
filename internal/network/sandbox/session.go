package sandbox

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/internal/network"
)

var _ network.Session = (*session)(nil)

// session is a channel's connection to its world.
type session struct {
	world *world
	name  string // what the account calls itself
	sink  network.Sink

	ctx    context.Context // ends when the session is closed
	cancel context.CancelFunc
	done   chan struct{} // closed when run has ended

	up atomic.Bool // connected

	mu     sync.Mutex
	status parley.ChannelStatus
	untold []network.State // changes that the sink does not know yet, in order
	backAt time.Time       // when a broken connection is made again
}

// newSession connects a channel and starts the goroutine that tells it everything.
func newSession(w *world, channel parley.Channel, sink network.Sink) (*session, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &session{world: w, name: channel.Name, sink: sink, ctx: ctx, cancel: cancel, done: make(chan struct{})}
	if s.name == "" {
		s.name = string(channel.Code)
	}
	if !w.session.CompareAndSwap(nil, s) {
		cancel()
		return nil, fmt.Errorf("open sandbox channel %s: it has an open session", channel.Code)
	}
	s.become(parley.Starting, "")
	if w.loggedOut.Load() {
		s.become(parley.LoggedOut, loggedOutReason)
	} else {
		s.become(parley.Working, "")
	}
	go s.run()
	return s, nil
}

const loggedOutReason = "The account was logged out of this channel."

// become takes note of a change of the connection; the sink is told in its turn.
func (s *session) become(status parley.ChannelStatus, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status == status || s.ctx.Err() != nil {
		return
	}
	s.status = status
	s.backAt = time.Time{}
	state := network.State{Status: status, Reason: reason}
	if status == parley.Working || status == parley.Reconnecting {
		state.Phone = network.Phone{Name: s.name, Number: s.world.number}
	}
	if status == parley.Reconnecting {
		s.backAt = time.Now().Add(reconnectIn)
	}
	s.untold = append(s.untold, state)
	s.up.Store(status == parley.Working)
	signal(s.world.work.now)
}

// connected says whether something can be sent now.
func (s *session) connected() error {
	if s.up.Load() {
		return nil
	}
	if s.world.loggedOut.Load() {
		return network.NotConnected(errLoggedOut)
	}
	return network.NotConnected(nil)
}

// Pair logs the account in again. There is nobody to scan anything here: it works at once.
func (s *session) Pair(ctx context.Context) error {
	if s.ctx.Err() != nil {
		return network.NotConnected(nil)
	}
	if err := s.world.setLoggedOut(ctx, false); err != nil {
		return err
	}
	s.become(parley.Working, "")
	return nil
}

// Logout ends the account's pairing until it is paired again.
func (s *session) Logout(ctx context.Context) error {
	if s.ctx.Err() != nil {
		return network.NotConnected(nil)
	}
	if err := s.world.setLoggedOut(ctx, true); err != nil {
		return err
	}
	s.become(parley.LoggedOut, loggedOutReason)
	return nil
}

// Close ends the session.
func (s *session) Close() error {
	s.mu.Lock()
	s.cancel()
	s.up.Store(false)
	s.mu.Unlock()
	<-s.done
	s.world.session.CompareAndSwap(s, nil)
	return nil
}
