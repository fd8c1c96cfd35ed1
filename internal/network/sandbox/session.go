package sandbox

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store/sqldb"
	"parley/internal/wait"
)

var _ interface {
	network.Session
	network.Pairer
	network.PairByPasskey
	network.Typist
	network.Directory
	network.Groups
	network.GroupAdmin
	network.Blocker
} = (*session)(nil)

type session struct {
	world *world
	name  string // of the account
	sink  network.Sink

	ctx    context.Context // ends when the session is closed
	cancel context.CancelFunc
	runs   sync.WaitGroup

	up        atomic.Bool   // connected
	groupSlot chan struct{} // holds one while an event of a group is reported
	phones    phoneCache

	// Owned by run.
	backlog bool // what happened before the session is still to be found
	jobs    map[int64]*job
	saveAt  time.Time // when the cursors of phones may be saved again

	mu          sync.Mutex
	running     bool // run runs: while there is something to do
	status      parley.ChannelStatus
	states      []network.Event // changes and steps of pairing that are not reported yet, in order
	reconnectAt time.Time       // when a broken connection is restored; zero: it is not broken
	asked       passkeyRequest  // of a pairing that waits for a person
}

const loggedOutReason = "The account was logged out of this channel."

func newSession(w *world, channel parley.Channel, sink network.Sink) (*session, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &session{world: w, name: cmp.Or(channel.Name, string(channel.Code)), sink: sink, ctx: ctx, cancel: cancel,
		groupSlot: make(chan struct{}, 1), backlog: true, jobs: map[int64]*job{}, saveAt: time.Now().Add(saveEvery)}
	if !w.session.CompareAndSwap(nil, s) {
		cancel()
		return nil, fmt.Errorf("open sandbox channel %s: it has an open session", channel.Code)
	}
	w.drainPending() // the session finds it in the database
	s.setStatus(parley.ChannelStarting, "")
	if w.loggedOut.Load() {
		s.setStatus(parley.ChannelLoggedOut, loggedOutReason)
	} else {
		s.setStatus(parley.ChannelWorking, "")
	}
	return s, nil
}

// wake makes run look for something to do. The notification comes first: see rest.
func (w *world) wake(how chan struct{}) {
	wait.Notify(how)
	if s := w.session.Load(); s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.start()
	}
}

// start starts run, unless it runs or the session is closed. It is called with the lock held.
func (s *session) start() {
	if !s.running && s.ctx.Err() == nil {
		s.running = true
		s.runs.Go(s.run)
	}
}

// rest ends run if there is nothing to do, and reports whether it did.
func (s *session) rest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = len(s.states) > 0 || len(s.world.now) > 0 || len(s.world.soon) > 0
	return !s.running
}

func (s *session) setStatus(status parley.ChannelStatus, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status == status || s.ctx.Err() != nil {
		return
	}
	s.status = status
	s.reconnectAt = time.Time{}
	if status != parley.ChannelScanQRCode {
		s.asked = passkeyRequest{}
	}
	state := network.State{Status: status, Reason: reason}
	if status == parley.ChannelWorking || status == parley.ChannelReconnecting {
		state.Phone = network.Phone{Name: s.name, Number: s.world.number}
	}
	if status == parley.ChannelReconnecting {
		s.reconnectAt = time.Now().Add(reconnectIn)
	}
	s.states = append(s.states, state)
	s.up.Store(status == parley.ChannelWorking)
	wait.Notify(s.world.now)
	s.start()
}

func (s *session) connected() error {
	if s.up.Load() {
		return nil
	}
	if s.world.loggedOut.Load() {
		return network.NotConnected(errLoggedOut)
	}
	return network.NotConnected(nil)
}

// Pair logs the account in again. There is no code to scan: it works at once, unless the account asks for its passkey.
func (s *session) Pair(ctx context.Context) error {
	if s.world.loggedOut.Load() && s.world.wantsPasskey() {
		s.askPasskey()
		return nil
	}
	return s.setLoggedOut(ctx, false, parley.ChannelWorking, "")
}

// Logout ends the account's pairing until it is paired again.
func (s *session) Logout(ctx context.Context) error {
	return s.setLoggedOut(ctx, true, parley.ChannelLoggedOut, loggedOutReason)
}

func (s *session) setLoggedOut(ctx context.Context, out bool, status parley.ChannelStatus, reason string) error {
	if s.ctx.Err() != nil {
		return network.NotConnected(nil)
	}
	err := s.world.setLoggedOut(ctx, out)
	if err == nil {
		s.setStatus(status, reason)
	}
	return err
}

func (s *session) Close() error {
	s.mu.Lock()
	s.cancel()
	s.up.Store(false)
	s.mu.Unlock()
	s.runs.Wait()
	s.saveCursors()
	s.world.session.CompareAndSwap(s, nil)
	return nil
}

const (
	collectFor = 60 * time.Millisecond // receipts are collected, to report many in one event; a real network is slower
	saveEvery  = time.Second           // how often the phones' cursors are saved

	firstRetry = 10 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// run reports until there is nothing to do: an idle channel costs no goroutine.
func (s *session) run() {
	for {
		stateAt, open := s.reportStates()
		if !open {
			return
		}
		var next time.Time
		switch {
		case !s.up.Load():
		case s.backlog && !s.scheduleBacklog(): // without it, new receipts could overtake older ones
			next = time.Now().Add(lastRetry)
		default:
			s.backlog = false
			next = s.runJobs(s.jobs)
		}
		if unsaved := s.world.hasUnsavedCursors(); unsaved && !time.Now().Before(s.saveAt) {
			s.saveCursors()
			s.saveAt = time.Now().Add(saveEvery)
		} else if unsaved {
			next = earlier(next, s.saveAt)
		}
		if next = earlier(next, stateAt); next.IsZero() && s.rest() {
			return
		}
		s.wait(next)
	}
}

// reportStates reports the changes of the connection, in order, until the sink accepted all. It returns when there will be
// another one, zero if that is unknown, and whether the session is still open.
func (s *session) reportStates() (next time.Time, open bool) {
	for failures := 0; s.ctx.Err() == nil; {
		s.mu.Lock()
		if !s.reconnectAt.IsZero() && !time.Now().Before(s.reconnectAt) {
			s.mu.Unlock()
			s.setStatus(parley.ChannelWorking, "")
			continue
		}
		if !s.asked.until.IsZero() && !time.Now().Before(s.asked.until) {
			s.publishStep(network.Pairing{Step: parley.TimeoutStep}, passkeyRequest{})
			s.mu.Unlock()
			s.setStatus(parley.ChannelLoggedOut, loggedOutReason)
			continue
		}
		if len(s.states) == 0 {
			defer s.mu.Unlock()
			return earlier(s.reconnectAt, s.asked.until), true
		}
		state := s.states[0]
		s.mu.Unlock()
		if err := s.sink(s.ctx, state); err != nil {
			failures++
			s.pause(backoff(failures))
			continue
		}
		failures = 0
		s.mu.Lock()
		s.states = s.states[1:]
		s.mu.Unlock()
	}
	return time.Time{}, false
}

// wait returns when there is something to do, at the latest at a time; zero: none.
func (s *session) wait(until time.Time) {
	var due <-chan time.Time
	if !until.IsZero() {
		due = time.After(time.Until(until))
	}
	select {
	case <-s.ctx.Done():
	case <-due:
	case <-s.world.now:
	case <-s.world.soon:
		s.pause(collectFor)
	}
}

// pause waits for a while, or until something should be reported at once.
func (s *session) pause(d time.Duration) {
	select {
	case <-s.ctx.Done():
	case <-time.After(d):
	case <-s.world.now:
	}
}

func (s *session) logError(what string, err error) {
	if errors.Is(err, context.Canceled) {
		return // the session is being closed
	}
	s.world.net.log.Error("sandbox: "+what, "channel", s.world.code, "error", err)
}

// earlier returns the earlier of two times; a zero one is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func backoff(failures int) time.Duration { return min(firstRetry<<min(failures-1, 8), lastRetry) }

const (
	typingFor = 10 * time.Second // then it fades, as on the real network
	about     = "Lives in the sandbox."
)

func (s *session) Typing(ctx context.Context, to parley.ContactID, on bool) error {
	if err := s.connected(); err != nil {
		return err
	}
	var until time.Time
	if on {
		until = time.Now().Add(typingFor)
	}
	if group := to.Group(); group != "" {
		return s.typingInGroup(ctx, group, until)
	}
	p, err := s.world.find(ctx, to.Number())
	if err != nil {
		return err
	}
	s.world.setTyping(p.id, until)
	return nil
}

// The totals and pages of contacts and groups. None of them may read all rows of a world.
const (
	contactTotal = `SELECT contact_count FROM worlds WHERE id = $1`
	groupColumns = `id, name, created_at, description, locked, announce, approval, (SELECT count(*) FROM members WHERE grp = groups.id),
		timer`
	groupTotal  = `SELECT group_count FROM worlds WHERE id = $1`
	contactPage = `SELECT ` + phoneColumns + ` FROM phones WHERE world = $1 AND name <> '' ORDER BY name, number LIMIT $2 OFFSET $3`
	groupPage   = `SELECT ` + groupColumns + ` FROM groups
		WHERE world = $1 AND gone = 0 ORDER BY name, id LIMIT $2 OFFSET $3`
)

func readPage[T any](ctx context.Context, s *session, total, query string, page parley.Page, scan func(scanner) (T, error)) (
	list []T, count int64, err error) {
	if err := s.connected(); err != nil {
		return nil, 0, err
	}
	db, world := s.world.net.db.Read(ctx), s.world.id.Load()
	if err = db.QueryRow(total, []any{world}, &count); err == nil {
		list, err = sqldb.Collect(db, scan, query, world, page.Limit, page.Offset)
	}
	return list, count, err
}

// Contacts lists the phones that have a name.
func (s *session) Contacts(ctx context.Context, page parley.Page) ([]parley.Contact, int64, error) {
	return readPage(ctx, s, contactTotal, contactPage, page, func(row scanner) (parley.Contact, error) {
		p, err := s.world.scanView(row)
		c := p.contact()
		c.About, c.OnNetwork, c.Timer = "", false, 0 // only in the details of one contact
		return c, err
	})
}

func (s *session) Contact(ctx context.Context, id parley.ContactID) (parley.Contact, error) {
	p, err := s.lookUp(ctx, id)
	if err != nil {
		return parley.Contact{}, err
	}
	return p.contact(), nil
}

func (s *session) CheckNumber(ctx context.Context, number string) (parley.ContactID, bool, error) {
	digits, err := parley.ParseNumber(number)
	if err != nil {
		return "", false, s.connected() // not a number
	}
	id := parley.NewContactID(digits)
	p, err := s.lookUp(ctx, id)
	return id, p.OnNetwork, err
}

// RejectCall ends a call. A simulated phone only hears that nobody talks.
func (s *session) RejectCall(context.Context, network.PhoneCall) error { return s.connected() }

// SetBlocked blocks a phone: what it writes to the channel does not arrive. Groups go on.
func (s *session) SetBlocked(ctx context.Context, id parley.ContactID, blocked bool) error {
	if err := s.connected(); err != nil {
		return err
	}
	return s.world.write(ctx, "block a phone", func(tx *sqldb.Tx) error {
		p, err := s.world.phone(tx, id.Number())
		if err != nil {
			return err
		}
		tx.OnCommit(s.world.clearPhones)
		return tx.Do(`UPDATE phones SET blocked = $2, changed = 1 WHERE id = $1`, p.id, blocked)
	})
}

// lookUp returns the phone of a number without creating it.
func (s *session) lookUp(ctx context.Context, id parley.ContactID) (Phone, error) {
	if err := s.connected(); err != nil {
		return Phone{}, err
	}
	p, err := s.world.lookUp(ctx, id.Number())
	if errors.Is(err, sql.ErrNoRows) {
		p, err = &phone{Phone: newPhone(id.Number())}, nil
	}
	if err != nil {
		return Phone{}, fmt.Errorf("look up phone: %w", err)
	}
	return s.world.view(p), nil
}

func (p Phone) contact() parley.Contact {
	c := parley.Contact{ID: p.ContactID, Name: p.Name, IsBlocked: p.Blocked || p.Blocks, OnNetwork: p.OnNetwork,
		LastSeenAt: p.LastSeenAt, Timer: p.Timer}
	if p.OnNetwork {
		c.About = about
	}
	if p.NumberHidden {
		c.Username = "user" + strings.TrimLeft(strings.TrimPrefix(p.ContactID.Number(), "0"+hiddenPrefix), "0")
	}
	return c
}
