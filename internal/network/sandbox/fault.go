package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store/sqldb"
)

// FaultKind says what goes wrong with a send.
type FaultKind string

const (
	FaultRefuse   FaultKind = "refuse"         // the network rejects it finally, with a reason
	FaultLate     FaultKind = "late"           // it arrives, and its confirmation comes seconds later
	FaultTwice    FaultKind = "twice"          // the network receives and confirms it twice
	FaultDrop     FaultKind = "drop_socket"    // it arrives, and the connection breaks before the confirmation
	FaultLogOut   FaultKind = "log_out"        // the account is logged out instead
	FaultReachout FaultKind = "reachout_limit" // refused: no new contacts for now, as the real network's error 463
	FaultPasskey  FaultKind = "passkey"        // of a pairing and not of a send: the account asks for its passkey

	// As on the official network.
	FaultUnknown  FaultKind = "unknown"         // it arrives and the response is lost: sent again, unless a receipt comes first
	FaultWindow   FaultKind = "window_closed"   // refused: the contact did not write in the last day
	FaultTemplate FaultKind = "template_paused" // refused: the template is paused
	FaultHeldBack FaultKind = "held_back"       // refused: too much marketing for this contact
)

var FaultKinds = []FaultKind{FaultRefuse, FaultLate, FaultTwice, FaultDrop, FaultLogOut, FaultReachout, FaultUnknown, FaultWindow,
	FaultTemplate, FaultHeldBack, FaultPasskey}

// Fault applies to the next sends that match it. Operations (a reaction, a deletion and so on) match only if it names their
// kind.
type Fault struct {
	Fault  FaultKind
	Times  int         // how many sends; zero: one
	To     string      // a number; empty: any
	Kind   parley.Kind // empty: every message
	Reason string      // what a refusal says; empty: a default sentence
	// Seconds is how long FaultReachout restricts the account; nil: for a day, zero: the network does not say until when.
	Seconds *int

	id      int64
	contact parley.ContactID
}

const (
	maxFaults = 100 // waiting on a channel

	lateBy        = 3 * time.Second  // longer than clients wait, shorter than the gateway waits
	unknownWait   = 10 * time.Second // for a receipt, after a response was lost
	reachoutFor   = 24 * time.Hour
	reconnectIn   = time.Second
	refusedReason = "The network refused the message."
)

// AddFault adds a fault to the queue. The caller has checked its fields.
func (n *Network) AddFault(ctx context.Context, channel parley.ChannelCode, f Fault) error {
	w, err := n.world(ctx, channel)
	if err != nil {
		return err
	}
	if len(w.queuedFaults()) >= maxFaults {
		return parley.InvalidField("fault", fmt.Sprintf("fault must wait: %d faults are queued already.", maxFaults))
	}
	f.Times = max(f.Times, 1)
	if f.Fault == FaultRefuse {
		f.Reason = cmp.Or(f.Reason, refusedReason)
	}
	if f.To != "" {
		if f.To, err = parley.ParseNumber(f.To); err != nil {
			return parley.InvalidField("to", "to must be a phone number in digits, for example 6281234567890.")
		}
		f.contact = parley.NewContactID(f.To)
	}
	seconds := -1
	if f.Seconds != nil {
		seconds = *f.Seconds
	}
	return w.write(ctx, "add fault", func(tx *sqldb.Tx) (err error) {
		f.id, err = tx.Insert(`INSERT INTO faults (world, fault, times, contact, kind, reason, seconds) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			w.id.Load(), string(f.Fault), f.Times, string(f.contact), string(f.Kind), f.Reason, seconds)
		tx.OnCommit(func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.setFaults(append(w.faults, f))
		})
		return err
	})
}

// Faults lists the queued faults in order, each with its remaining sends.
func (n *Network) Faults(ctx context.Context, channel parley.ChannelCode) ([]Fault, error) {
	w, err := n.world(ctx, channel)
	if err != nil {
		return nil, err
	}
	return w.queuedFaults(), nil
}

// WaitingFaults counts the queued faults of a channel. It is 0 for a channel that was not used since the start.
func (n *Network) WaitingFaults(channel parley.ChannelCode) int {
	if w := n.inMemory(channel); w != nil {
		return len(w.queuedFaults())
	}
	return 0
}

// AllWaitingFaults counts the queued faults of all channels.
func (n *Network) AllWaitingFaults() int { return int(n.faults.Load()) }

// setFaults replaces the queue. It is called with the lock held.
func (w *world) setFaults(queue []Fault) {
	w.net.faults.Add(int64(len(queue) - len(w.faults)))
	w.faults = queue
}

func (n *Network) ClearFaults(ctx context.Context, channel parley.ChannelCode) error {
	w, err := n.world(ctx, channel)
	if err != nil {
		return err
	}
	return w.write(ctx, "clear faults", func(tx *sqldb.Tx) error {
		tx.OnCommit(func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.setFaults(nil)
		})
		return tx.Do(`DELETE FROM faults WHERE world = $1`, w.id.Load())
	})
}

func (w *world) queuedFaults() []Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.faults)
}

// applies reports whether a fault is one of a send.
func (f *Fault) applies(to parley.ContactID, kind parley.Kind) bool {
	return f.Fault != FaultPasskey && (f.contact == "" || f.contact == to) && (f.Kind == kind || f.Kind == "" && kind.InHistory())
}

// nextFault returns the first fault that matches, with one use less.
func (w *world) nextFault(matches func(*Fault) bool) (Fault, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.faults {
		f := &w.faults[i]
		if !matches(f) {
			continue
		}
		f.Times--
		used := *f
		if f.Times == 0 {
			w.setFaults(slices.Delete(slices.Clone(w.faults), i, i+1))
		}
		return used, true
	}
	return Fault{}, false
}

func (w *world) saveFault(ctx context.Context, f Fault) error {
	return w.write(ctx, "use fault", func(tx *sqldb.Tx) error {
		query := `UPDATE faults SET times = $2 WHERE id = $1`
		if f.Times == 0 {
			query = `DELETE FROM faults WHERE id = $1 AND $2 = 0`
		}
		return tx.Do(query, f.id, f.Times)
	})
}

func (w *world) loadFaults(c *sqldb.Conn) error {
	list, err := sqldb.Collect(c, func(row scanner) (f Fault, err error) {
		var seconds int
		err = row.Scan(&f.id, &f.Fault, &f.Times, &f.contact, &f.Kind, &f.Reason, &seconds)
		if f.To = f.contact.Number(); seconds >= 0 {
			f.Seconds = &seconds
		}
		return f, err
	}, `SELECT id, fault, times, contact, kind, reason, seconds FROM faults WHERE world = $1 ORDER BY id`, w.id.Load())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setFaults(list)
	return err
}

var (
	errSocket    = errors.New("the connection broke during the send")
	errLate      = errors.New("no confirmation yet")
	errResponse  = errors.New("the response was lost")
	errLoggedOut = errors.New("logged out")
)

func (b *burst) sendWithFault(ctx context.Context, i int) {
	s, m := b.session, b.ms[i]
	if err := s.connected(); err != nil || b.failed[m.Chat] {
		b.fail(i, err)
		return
	}
	if s.world.takeUnsure(m.ID) {
		b.sendAgain(ctx, i)
		return
	}
	f, ok := s.world.nextFault(func(f *Fault) bool { return f.applies(m.Chat, m.Content.Kind()) })
	if !ok {
		b.write(ctx, []int{i}, 1)
		return
	}
	if err := s.world.saveFault(ctx, f); err != nil {
		b.fail(i, err)
		return
	}
	copies := map[FaultKind]int{FaultLate: 1, FaultTwice: 2, FaultDrop: 1, FaultUnknown: 1}[f.Fault] // that reach the phone in spite of it
	if copies > 0 {
		if b.write(ctx, []int{i}, copies); b.errs[i] != nil {
			return
		}
	}
	if f.Fault == FaultUnknown {
		s.world.noteUnsure(m.ID)
	}
	if err := s.apply(ctx, f); err != nil {
		b.fail(i, err)
	}
}

// sendAgain sends a message that the network may have, and reports that.
func (b *burst) sendAgain(ctx context.Context, i int) {
	m := b.ms[i]
	for copies := 1; copies <= 2 && b.errs[i] == nil; copies++ {
		if copies == 2 {
			if b.write(ctx, []int{i}, 1); b.errs[i] != nil {
				b.session.world.noteUnsure(m.ID)
				return
			}
		}
		if err := b.session.sink(ctx, network.Copies{To: m.Chat, ID: m.ID, Copies: copies}); err != nil {
			b.session.world.noteUnsure(m.ID)
			b.fail(i, err)
		}
	}
}

// noteUnsure notes that the response of a message was lost, until takeUnsure takes that back.
func (w *world) noteUnsure(id parley.MessageID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unsure == nil {
		w.unsure = map[parley.MessageID]bool{}
	}
	w.unsure[id] = true
}

func (w *world) takeUnsure(id parley.MessageID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.unsure[id]
	delete(w.unsure, id)
	return was
}

// isCalm reports whether no fault waits for the next sends.
func (w *world) isCalm() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.faults) == 0 && len(w.unsure) == 0
}

func (s *session) apply(ctx context.Context, f Fault) error {
	switch f.Fault {
	case FaultRefuse:
		return network.Refuse(parley.Refused, f.Reason)
	case FaultReachout:
		return f.restriction(time.Now())
	case FaultUnknown:
		return &network.Error{Class: network.Unknown, Cause: errResponse, RetryAfter: unknownWait}
	case FaultWindow:
		return network.Refuse(parley.OutsideWindow, "This contact has not written in the last 24 hours. Send a template instead.")
	case FaultTemplate:
		return network.RefuseUntil(parley.TemplateProblem, "The network paused the template because of its quality.", time.Now().Add(3*time.Hour))
	case FaultHeldBack:
		return network.RefuseUntil(parley.HeldBack, "The network held this message back. Try again tomorrow.", time.Now().Add(24*time.Hour))
	case FaultLogOut:
		if err := s.Logout(ctx); err != nil {
			return err
		}
		return network.NotConnected(errLoggedOut)
	case FaultDrop:
		s.setStatus(parley.ChannelReconnecting, "The connection broke. It is being restored.")
		return network.OutcomeUnknown(errSocket)
	case FaultLate:
		return s.waitLate(ctx)
	}
	return nil
}

func (f *Fault) restriction(now time.Time) error {
	length := reachoutFor
	if f.Seconds != nil {
		length = time.Duration(*f.Seconds) * time.Second
	}
	if length == 0 {
		return network.Refuse(parley.Restricted, "The network does not let this account write to new contacts now (error 463).")
	}
	until := now.Add(length).UTC().Truncate(time.Second)
	return network.RefuseUntil(parley.Restricted, fmt.Sprintf(
		"The network does not let this account write to new contacts until %s (error 463).", until.Format(time.RFC3339)), until)
}

func (s *session) waitLate(ctx context.Context) error {
	select {
	case <-time.After(lateBy):
		return nil
	case <-ctx.Done():
		return network.OutcomeUnknown(errors.Join(errLate, ctx.Err()))
	case <-s.ctx.Done():
		return network.OutcomeUnknown(errLate)
	}
}
