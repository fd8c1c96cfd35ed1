package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
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
)

// FaultKinds lists every fault.
var FaultKinds = []FaultKind{FaultRefuse, FaultLate, FaultTwice, FaultDrop, FaultLogOut, FaultReachout}

// Fault applies to the next sends that match it. Operations (a reaction, a deletion and so on) match only if it names their
// kind.
type Fault struct {
	Fault  FaultKind
	Times  int         // how many sends; zero: one
	To     string      // a number; empty: any
	Kind   parley.Kind // empty: every message
	Reason string      // what a refusal says; empty: a default sentence

	id      int64
	contact parley.ContactID
}

const (
	maxFaultTimes = 1000
	maxFaults     = 100 // waiting on a channel

	lateBy        = 3 * time.Second // longer than clients wait, shorter than the gateway waits
	reachoutFor   = 24 * time.Hour
	reconnectIn   = time.Second
	refusedReason = "The network refused the message."
)

// AddFault adds a fault to the queue.
func (n *Network) AddFault(ctx context.Context, channel parley.ChannelCode, f Fault) error {
	if err := f.check(); err != nil {
		return err
	}
	w, err := n.world(ctx, channel)
	if err != nil {
		return err
	}
	if w.faults.len() >= maxFaults {
		return parley.InvalidField("fault", fmt.Sprintf("fault must wait: %d faults are queued already.", maxFaults))
	}
	return w.write(ctx, "add fault", func(tx *sqldb.Tx) error {
		added := f
		var err error
		added.id, err = tx.Insert(`INSERT INTO faults (world, fault, times, contact, kind, reason) VALUES ($1, $2, $3, $4, $5, $6)`,
			w.id.Load(), string(f.Fault), f.Times, string(f.contact), string(f.Kind), f.Reason)
		tx.OnCommit(func() { w.faults.add(added) })
		return err
	})
}

// check validates a fault and fills in what was left out.
func (f *Fault) check() error {
	var wrong []parley.FieldError
	if !slices.Contains(FaultKinds, f.Fault) {
		wrong = append(wrong, parley.FieldError{Field: "fault",
			Sentence: "fault must be refuse, late, twice, drop_socket, log_out or reachout_limit."})
	}
	if f.Times == 0 {
		f.Times = 1
	}
	if f.Fault == FaultRefuse && f.Reason == "" {
		f.Reason = refusedReason
	}
	if f.Times < 1 || f.Times > maxFaultTimes {
		wrong = append(wrong, parley.FieldError{Field: "times", Sentence: fmt.Sprintf("times must be between 1 and %d.", maxFaultTimes)})
	}
	if f.To != "" {
		number, err := parley.ParseNumber(f.To)
		if err != nil {
			wrong = append(wrong, parley.FieldError{Field: "to", Sentence: "to must be a phone number in digits, for example 6281234567890."})
		}
		f.To, f.contact = number, parley.ContactOf(number)
	}
	if f.Kind != "" {
		if _, err := parley.DecodeContent(f.Kind, "", nil); err != nil {
			wrong = append(wrong, parley.FieldError{Field: "type", Sentence: "type must be a kind of message, for example text."})
		}
	}
	if len(wrong) > 0 {
		return parley.InvalidFields(wrong)
	}
	return nil
}

// Faults lists the queued faults in order, each with its remaining sends.
func (n *Network) Faults(ctx context.Context, channel parley.ChannelCode) ([]Fault, error) {
	w, err := n.world(ctx, channel)
	if err != nil {
		return nil, err
	}
	return w.faults.list(), nil
}

// WaitingFaults counts the queued faults of a channel. It is 0 for a channel that was not used since the start.
func (n *Network) WaitingFaults(channel parley.ChannelCode) int {
	n.mu.Lock()
	w := n.worlds[channel]
	n.mu.Unlock()
	if w == nil {
		return 0
	}
	return w.faults.len()
}

// ClearFaults deletes the queued faults.
func (n *Network) ClearFaults(ctx context.Context, channel parley.ChannelCode) error {
	w, err := n.world(ctx, channel)
	if err != nil {
		return err
	}
	return w.write(ctx, "clear faults", func(tx *sqldb.Tx) error {
		tx.OnCommit(func() { w.faults.set(nil) })
		return tx.Do(`DELETE FROM faults WHERE world = $1`, w.id.Load())
	})
}

// faultQueue is a channel's queue of faults. The queue in memory decides; the database follows it.
type faultQueue struct {
	size  atomic.Int32 // lets a send without faults skip the lock
	mu    sync.Mutex
	queue []Fault
}

func (q *faultQueue) len() int { return int(q.size.Load()) }

func (q *faultQueue) list() []Fault {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.queue)
}

func (q *faultQueue) add(f Fault) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, f)
	q.size.Store(int32(len(q.queue)))
}

func (q *faultQueue) set(list []Fault) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = list
	q.size.Store(int32(len(list)))
}

// next returns the first fault that matches, with one send less.
func (q *faultQueue) next(to parley.ContactID, kind parley.Kind) (Fault, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.queue {
		f := &q.queue[i]
		if f.contact != "" && f.contact != to || f.Kind != "" && f.Kind != kind || f.Kind == "" && !kind.InHistory() {
			continue
		}
		f.Times--
		used := *f
		if f.Times == 0 {
			q.queue = slices.Delete(q.queue, i, i+1)
			q.size.Store(int32(len(q.queue)))
		}
		return used, true
	}
	return Fault{}, false
}

// saveFault stores the remaining sends of a fault.
func (w *world) saveFault(ctx context.Context, f Fault) error {
	return w.tx(ctx, func(tx *sqldb.Tx) error {
		query := `UPDATE faults SET times = $2 WHERE id = $1`
		if f.Times == 0 {
			query = `DELETE FROM faults WHERE id = $1 AND $2 = 0`
		}
		return tx.Do(query, f.id, f.Times)
	})
}

// loadFaults fills a world's queue from the database.
func (w *world) loadFaults(c *sqldb.Conn) error {
	list, err := sqldb.Collect(c, func(row scanner) (f Fault, err error) {
		err = row.Scan(&f.id, &f.Fault, &f.Times, &f.contact, &f.Kind, &f.Reason)
		f.To = f.contact.Number()
		return f, err
	}, `SELECT id, fault, times, contact, kind, reason FROM faults WHERE world = $1 ORDER BY id`, w.id.Load())
	w.faults.set(list)
	return err
}

var (
	errSocket    = errors.New("the connection broke during the send")
	errLate      = errors.New("no confirmation yet")
	errLoggedOut = errors.New("logged out")
)

// sendWithFault sends one message of a burst with the first fault that matches it, if any.
func (b *burst) sendWithFault(ctx context.Context, i int) {
	s, m := b.session, b.ms[i]
	if err := s.connected(); err != nil || b.failed[m.Chat] {
		b.fail(i, err)
		return
	}
	f, ok := s.world.faults.next(m.Chat, m.Content.Kind())
	if !ok {
		b.write(ctx, []int{i}, 1)
		return
	}
	err := s.world.saveFault(ctx, f)
	if err != nil {
		err = fmt.Errorf("use fault: %w", err)
	} else if f.Fault.arrives() {
		copies := 1
		if f.Fault == FaultTwice {
			copies = 2
		}
		if b.write(ctx, []int{i}, copies); b.errs[i] != nil {
			return
		}
	}
	if err == nil {
		err = s.apply(ctx, f)
	}
	if err != nil {
		b.fail(i, err)
	}
}

// arrives reports whether the message reaches the phone in spite of the fault.
func (k FaultKind) arrives() bool { return k == FaultLate || k == FaultTwice || k == FaultDrop }

// apply does what a fault does to the connection and returns the error of the send.
func (s *session) apply(ctx context.Context, f Fault) error {
	switch f.Fault {
	case FaultRefuse:
		return network.Refuse(parley.Refused, f.Reason)
	case FaultReachout:
		until := time.Now().Add(reachoutFor).UTC().Truncate(time.Second)
		return network.RefuseUntil(parley.Restricted, fmt.Sprintf(
			"The network does not let this account write to new contacts until %s (error 463).", until.Format(time.RFC3339)), until)
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

// waitLate delays a confirmation.
func (s *session) waitLate(ctx context.Context) error {
	timer := time.NewTimer(lateBy)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return network.OutcomeUnknown(errors.Join(errLate, ctx.Err()))
	case <-s.ctx.Done():
		return network.OutcomeUnknown(errLate)
	}
}
