package outbox

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"parley"
)

// recordAfter is how long the recorder gathers before it writes. A receipt that comes meanwhile
// moves the message further, and then there is nothing left to write.
const recordAfter = 150 * time.Millisecond

// recorder stores that messages were sent, a moment after whoever waited was told, many at a time.
// That loses nothing: what is not recorded when the process dies is pending, and is sent again under
// the id that the network knows. Whoever is about to read the status calls flush first.
type recorder struct {
	channel parley.ChannelCode
	store   parley.Store
	log     *slog.Logger
	now     func() time.Time
	done    func(seqs []int64) // told what was recorded

	wake  chan struct{} // holds one: something waits
	hurry chan struct{} // holds one: somebody waits for it

	mu              sync.Mutex
	waiting         []int64
	added, recorded int           // how many in all
	round           chan struct{} // closed when the next round ends
}

func newRecorder(c Config, done func([]int64)) *recorder {
	return &recorder{channel: c.Channel, store: c.Store, log: c.Log, now: c.Now, done: done,
		wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1), round: make(chan struct{})}
}

// add takes messages that were confirmed, by their Seq.
func (r *recorder) add(seqs []int64) {
	if len(seqs) == 0 {
		return
	}
	r.mu.Lock()
	r.waiting = append(r.waiting, seqs...)
	r.added += len(seqs)
	r.mu.Unlock()
	signal(r.wake)
}

// flush returns when everything that was added before is recorded, or when ctx ends.
func (r *recorder) flush(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for target := r.added; r.recorded < target; {
		round := r.round
		r.mu.Unlock()
		signal(r.hurry)
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
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.hurry:
	case <-ctx.Done():
		return true // the last round is run's
	}
	return r.write(ctx)
}

func (r *recorder) write(ctx context.Context) bool {
	r.mu.Lock()
	seqs := r.waiting
	r.waiting = nil
	r.mu.Unlock()
	var err error
	if len(seqs) > 0 {
		err = r.store.Tx(ctx, func(tx parley.Tx) error { return tx.ConfirmMessages(ctx, r.channel, seqs, r.now()) })
	}
	if err == nil {
		r.done(seqs)
	} else if ctx.Err() == nil {
		r.log.Error("record what was sent", "err", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.waiting = append(seqs, r.waiting...)
		return false
	}
	r.recorded += len(seqs)
	close(r.round)
	r.round = make(chan struct{})
	return true
}

// signal makes a channel that holds one hold one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
