package outbox

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/internal/store"
	"parley/internal/wait"
)

// How long the recorder gathers before it writes. A receipt that comes meanwhile moves the message
// further, and then there is nothing left to write: so it waits longer when there is much to do.
const (
	recordAfter = 150 * time.Millisecond
	recordLater = 400 * time.Millisecond
	isMuch      = 256 // messages
)

// recorder stores that messages were sent, a moment after whoever waited was told, many at a time.
// That loses nothing: what is not recorded when the process dies is pending, and is sent again under
// the id that the network knows. Whoever is about to read the status calls flush first.
type recorder struct {
	channel parley.ChannelCode
	store   Store
	log     *slog.Logger
	now     func() time.Time
	done    func(seqs []int64) // told what was recorded

	wake  chan struct{} // holds one: something waits
	hurry chan struct{} // holds one: somebody waits for it

	mu              sync.Mutex
	waiting         []int64         // by Seq, in order; zero: nothing is left to write
	place           map[int64]int   // in waiting
	added, recorded int             // how many in all
	round           chan struct{}   // closed when the next round ends
	dropped         []int64         // what was taken out, and nobody was told yet
	took            []time.Duration // how long messages took until they were confirmed, to be counted
}

func newRecorder(c Config, done func([]int64)) *recorder {
	return &recorder{channel: c.Channel, store: c.Store, log: c.Log, now: c.Now, done: done,
		wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1), round: make(chan struct{}), place: map[int64]int{}}
}

// add takes messages that were confirmed, by their Seq, and how long they took.
func (r *recorder) add(seqs []int64, took []time.Duration) {
	if len(seqs) == 0 {
		return
	}
	r.mu.Lock()
	for _, seq := range seqs {
		r.place[seq] = len(r.waiting)
		r.waiting = append(r.waiting, seq)
	}
	r.added += len(seqs)
	r.took = append(r.took, took...)
	r.mu.Unlock()
	wait.Notify(r.wake)
}

// drop takes messages out that the store knows to be further than sent. It returns those that are not there.
func (r *recorder) drop(seqs []int64) (rest []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, seq := range seqs {
		i, ok := r.place[seq]
		if !ok {
			rest = append(rest, seq)
			continue
		}
		r.waiting[i] = 0
		delete(r.place, seq)
		r.dropped = append(r.dropped, seq)
	}
	return rest
}

// flush returns when everything that was added before is recorded, or when ctx ends.
func (r *recorder) flush(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for target := r.added; r.recorded < target; {
		round := r.round
		r.mu.Unlock()
		wait.Notify(r.hurry)
		var err error
		select {
		case <-round:
		case <-ctx.Done():
			err = ctx.Err()
		}
		r.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

// run records until ctx ends, and then what is left.
func (r *recorder) run(ctx context.Context) {
	for {
		select {
		case <-r.wake:
		case <-ctx.Done():
			r.write(context.WithoutCancel(ctx))
			return
		}
		pause := recordAfter
		for !r.gather(ctx, pause) {
			pause = blink // the store does not work now
		}
	}
}

// gather waits a while and records what came together. It reports whether that worked.
func (r *recorder) gather(ctx context.Context, pause time.Duration) bool {
	if !r.rest(ctx, pause) {
		return true // the last round is run's
	}
	if pause == recordAfter && r.hasMuch() && !r.rest(ctx, recordLater-recordAfter) {
		return true
	}
	return r.write(ctx)
}

// rest waits until the time is over or somebody is in a hurry, and reports whether ctx goes on.
func (r *recorder) rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.hurry:
		wait.Notify(r.hurry) // for the next rest before the same round
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

func (r *recorder) hasMuch() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting) >= isMuch
}

func (r *recorder) write(ctx context.Context) bool {
	r.mu.Lock()
	select {
	case <-r.hurry: // whoever it was waits for this round
	default:
	}
	gathered := len(r.waiting)
	seqs := slices.DeleteFunc(r.waiting, func(seq int64) bool { return seq == 0 })
	done := append(r.dropped, seqs...)
	took := r.took
	r.waiting, r.dropped, r.took = nil, nil, nil
	clear(r.place)
	r.mu.Unlock()
	var err error
	if len(took) > 0 {
		err = r.store.Tx(ctx, func(tx *store.Tx) error {
			if err := tx.ConfirmMessages(ctx, r.channel, seqs, r.now()); err != nil {
				return err
			}
			return gone(tx.CountSendTimes(ctx, r.channel, took))
		})
	}
	if err == nil {
		r.done(done)
	} else if ctx.Err() == nil {
		r.log.Error("record what was sent", "error", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.waiting = append(seqs, r.waiting...)
		r.dropped = append(done[:len(done)-len(seqs)], r.dropped...)
		r.took = append(took, r.took...)
		for i, seq := range r.waiting {
			r.place[seq] = i
		}
		r.recorded += gathered - len(seqs)
		return false
	}
	r.recorded += gathered
	close(r.round)
	r.round = make(chan struct{})
	return true
}
