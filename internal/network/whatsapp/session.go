package whatsapp

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"parley"
	"parley/internal/network"
	"parley/internal/wait"
)

var _ interface {
	network.Session
	network.Pairer
	network.PairByCode
	network.PairByPasskey
	network.QueueAware
	network.Typist
	network.Directory
	network.Groups
} = (*session)(nil)

// session is a channel's presence on the network.
type session struct {
	d         *Driver
	code      parley.ChannelCode
	findProxy findProxy    // nil: it has no proxy of its own
	media     *http.Client // of files
	sink      network.Sink

	ctx    context.Context // ends when the session is closed
	cancel context.CancelFunc
	done   sync.WaitGroup // run and publishStates

	requests   chan request               // for run
	passkeys   chan passkeyAnswer         // for a pairing
	queueDepth atomic.Pointer[func() int] // how many messages wait to be sent; nil: not known

	current atomic.Pointer[connection] // nil: not connected
	sinkMu  sync.Mutex                 // one event from the network at a time
	device  types.JID                  // whose keys it uses; only run and Close, after it, use it
	devices deviceLists
	// refreshes counts how often the devices of a chat were asked for again because the network names others.
	refreshes hourly[types.JID]
	tokens    recent[types.JID, int64] // the week in which a contact was last given a privacy token
	// polls has the options of polls, because votes carry only hashes. They are never written to disk: a channel may
	// store no text.
	polls            recent[parley.MessageID, []string]
	groups           groupInfos
	groupSent        recent[types.MessageID, *waE2E.Message]    // for retries
	callers          recent[string, types.JID]                  // who made the latest calls
	otherDeviceSends recent[types.MessageID, struct{}]          // of the account's other devices: their receipts come here too
	aliases          recent[parley.ContactID, parley.ContactID] // numbers that the network spells differently
	uploads          waiters[*events.MediaRetry]                // files that the account's phone uploads again
	unreadable       recent[types.MessageID, struct{}]
	asked            hourly[types.JID] // counts messages that the phone was asked for, by sender
	evidence         evidence
	clock            clock

	mu          sync.Mutex
	status      network.State   // as published last, or queued
	unpublished []network.Event // events that wait for the sink, in order
	changed     chan struct{}   // holds one: there is something untold
	restricted  network.Restriction
	calmDowns   int // how often in a row the network asked the account to slow down
}

type request struct {
	pair   *pairOptions // nil: a logout
	result chan error
}

func newSession(d *Driver, c parley.Channel, sink network.Sink) *session {
	s := &session{d: d, code: c.Code, findProxy: d.findProxy(c), media: d.media, sink: sink,
		requests: make(chan request), passkeys: make(chan passkeyAnswer),
		changed: make(chan struct{}, 1)}
	if s.findProxy != nil {
		s.media = &http.Client{Transport: &limitedTransport{d.dialer.client(s.findProxy, nil).Transport, d.mediaLimits.maxBytes,
			d.mediaLimits.idleTimeout}}
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.setState(parley.ChannelStarting, "", network.Phone{})
	s.done.Go(s.run)
	s.done.Go(s.publishStates)
	return s
}

// setState enqueues a changed state for the sink.
func (s *session) setState(status parley.ChannelStatus, reason string, phone network.Phone) {
	s.mu.Lock()
	state := network.State{Status: status, Reason: reason, Phone: phone}
	if state == s.status {
		s.mu.Unlock()
		return
	}
	s.status = state
	s.mu.Unlock()
	s.enqueue(state)
}

func (s *session) enqueue(e network.Event) {
	s.mu.Lock()
	s.unpublished = append(s.unpublished, e)
	s.mu.Unlock()
	wait.Notify(s.changed)
}

// stepTries is how often a step of pairing is offered to a sink that refuses it. Soon it is worth nothing.
const stepTries = 3

// publishStates passes queued states and pairing steps to the sink, in order.
func (s *session) publishStates() {
	for tries := 0; s.ctx.Err() == nil; {
		s.mu.Lock()
		var next network.Event
		if len(s.unpublished) > 0 {
			next = s.unpublished[0]
		}
		s.mu.Unlock()
		if next == nil {
			select {
			case <-s.changed:
			case <-s.ctx.Done():
			}
			continue
		}
		err := s.sink(s.ctx, next)
		if _, step := next.(network.Pairing); err != nil && !(step && tries >= stepTries) {
			tries++
			s.pause(retryDelay(tries))
			continue
		}
		tries = 0
		s.mu.Lock()
		s.unpublished = s.unpublished[1:]
		s.mu.Unlock()
	}
}

// pause waits for a while, or until the session is closed. It reports whether it is still open.
func (s *session) pause(d time.Duration) bool { return wait.Sleep(s.ctx, d) }

// connected returns the current connection or a NotConnected error.
func (s *session) connected() (*connection, error) {
	if conn := s.current.Load(); conn != nil && s.ctx.Err() == nil {
		return conn, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status.Reason == "" {
		return nil, network.NotConnected(nil)
	}
	return nil, network.NotConnected(errors.New(s.status.Reason))
}

func (s *session) Logout(ctx context.Context) error { return s.submit(ctx, request{}) }

// submit has run do something.
func (s *session) submit(ctx context.Context, r request) error {
	r.result = make(chan error, 1)
	select {
	case s.requests <- r:
	case <-s.ctx.Done():
		return network.NotConnected(nil)
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-r.result:
		return err
	case <-s.ctx.Done():
		return network.NotConnected(nil)
	}
}

func (s *session) Close() error {
	s.cancel()
	s.done.Wait()
	if err := s.d.keys.Release(context.Background(), s.device); err != nil {
		s.d.config.Log.Warn("store the keys of a closed channel: its next messages skip some", "channel", s.code, "error", err)
	}
	if s.findProxy != nil {
		s.media.CloseIdleConnections()
	}
	s.d.removeSession(s)
	return nil
}
