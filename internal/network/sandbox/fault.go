package sandbox

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// FaultKind says what goes wrong with a send.
type FaultKind string

const (
	FaultRefuse   FaultKind = "refuse"         // the network refuses it for good, with a reason
	FaultLate     FaultKind = "late"           // it arrives, and its confirmation comes seconds later
	FaultTwice    FaultKind = "twice"          // the network is given it twice, and tells everything twice
	FaultDrop     FaultKind = "drop_socket"    // it arrives, and the connection breaks before the confirmation
	FaultLogOut   FaultKind = "log_out"        // the account is logged out instead
	FaultReachout FaultKind = "reachout_limit" // refused: no new contacts for now, as the real network's error 463
)

// FaultKinds lists every fault.
var FaultKinds = []FaultKind{FaultRefuse, FaultLate, FaultTwice, FaultDrop, FaultLogOut, FaultReachout}

// Fault is ordered for the next sends that match it. Operations (a reaction, a deletion and so on)
// match only when their kind is named.
type Fault struct {
	Fault  FaultKind
	Times  int         // how many sends; zero: one
	To     string      // a number; empty: any
	Kind   parley.Kind // empty: every message
	Reason string      // what a refusal says; empty: a sentence of the network's own

	id      int64
	contact parley.ContactID
}

const (
	maxFaultTimes = 1000
	maxFaults     = 100 // waiting on a channel

	lateBy        = 3 * time.Second // longer than a patient client waits, shorter than the gateway's own wait
	reachoutFor   = 24 * time.Hour
	reconnectIn   = time.Second
	refusedReason = "The network refused the message."
)

// AddFault orders a fault behind those that wait already.
func (n *Network) AddFault(ctx context.Context, channel parley.ChannelCode, f Fault) error {
	if err := f.check(); err != nil {
		return err
	}
	w, err := n.world(ctx, channel)
	if err != nil {
		return err
	}
	if w.faults.len() >= maxFaults {
		return parley.InvalidField("fault", fmt.Sprintf("fault must wait: %d faults are ordered already.", maxFaults))
	}
	err = n.db.Write(ctx, func(tx *sqldb.Tx) error {
		made := f
		err := tx.QueryRow(`INSERT INTO faults (world, fault, times, contact, kind, reason) VALUES ($1, $2, $3, $4, $5, $6) RETURNING id`,
			[]any{w.id, string(f.Fault), f.Times, string(f.contact), string(f.Kind), f.Reason}, &made.id)
		tx.OnCommit(func() { w.faults.add(made) })
		return err
	})
	if err != nil {
		return fmt.Errorf("add fault: %w", err)
	}
	return nil
}

// check validates a fault and fills in what was left out.
func (f *Fault) check() error {
	var wrong []parley.FieldError
	if !slices.Contains(FaultKinds, f.Fault) {
		wrong = append(wrong, parley.FieldError{Field: "fault", Sentence: "fault must be refuse, late, twice, drop_socket, log_out or reachout_limit."})
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
		number, err := ParseNumber(f.To)
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

// Faults lists the faults that still wait, in order, with the sends left to each.
func (n *Network) Faults(ctx context.Context, channel parley.ChannelCode) ([]Fault, error) {
	w, err := n.world(ctx, channel)
	if err != nil {
		return nil, err
	}
	return w.faults.list(), nil
}

// WaitingFaults counts the faults that wait on a channel. One that was not asked for yet has none in memory,
// and counts none.
func (n *Network) WaitingFaults(channel parley.ChannelCode) int {
	n.mu.Lock()
	w := n.worlds[channel]
	n.mu.Unlock()
	if w == nil {
		return 0
	}
	return w.faults.len()
}

// ClearFaults drops the faults that still wait.
func (n *Network) ClearFaults(ctx context.Context, channel parley.ChannelCode) error {
	w, err := n.world(ctx, channel)
	if err != nil {
		return err
	}
	err = n.db.Write(ctx, func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`DELETE FROM faults WHERE world = $1`, w.id)
		tx.OnCommit(w.faults.clear)
		return err
	})
	if err != nil {
		return fmt.Errorf("clear faults: %w", err)
	}
	return nil
}

// faults is a channel's queue of faults. The queue in memory decides; the database follows it.
type faults struct {
	waiting atomic.Int32 // so that a send without faults costs nothing
	mu      sync.Mutex
	queue   []Fault
}

func (q *faults) len() int { return int(q.waiting.Load()) }

func (q *faults) list() []Fault {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.queue)
}

func (q *faults) add(f Fault) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, f)
	q.waiting.Store(int32(len(q.queue)))
}

func (q *faults) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = nil
	q.waiting.Store(0)
}

// take uses up one send of the first fault that matches.
func (q *faults) take(to parley.ContactID, kind parley.Kind) (Fault, bool) {
	if q.waiting.Load() == 0 {
		return Fault{}, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.queue {
		f := &q.queue[i]
		if f.contact != "" && f.contact != to || f.Kind != "" && f.Kind != kind || f.Kind == "" && !kind.IsRecord() {
			continue
		}
		f.Times--
		taken := *f
		if f.Times == 0 {
			q.queue = slices.Delete(q.queue, i, i+1)
			q.waiting.Store(int32(len(q.queue)))
		}
		return taken, true
	}
	return Fault{}, false
}

// saveFault stores how many sends are left to a fault.
func (n *Network) saveFault(ctx context.Context, f Fault) error {
	return n.db.Write(ctx, func(tx *sqldb.Tx) error {
		query := `UPDATE faults SET times = $2 WHERE id = $1`
		if f.Times == 0 {
			query = `DELETE FROM faults WHERE id = $1 AND $2 = 0`
		}
		_, err := tx.Exec(query, f.id, f.Times)
		return err
	})
}

// loadFaults fills a world's queue from the database.
func (w *world) loadFaults(c *sqldb.Conn) error {
	rows, err := c.Query(`SELECT id, fault, times, contact, kind, reason FROM faults WHERE world = $1 ORDER BY id`, w.id)
	if err != nil {
		return err
	}
	defer rows.Close()
	w.faults.clear()
	for rows.Next() {
		var f Fault
		if err := rows.Scan(&f.id, &f.Fault, &f.Times, &f.contact, &f.Kind, &f.Reason); err != nil {
			return err
		}
		f.To = f.contact.Number()
		w.faults.add(f)
	}
	return rows.Err()
}
