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

// How long the confirmWriter gathers before it writes. A receipt that arrives meanwhile advances the message further,
// and then its confirmation need not be written. So it waits longer under load.
const (
	gatherTime     = 150 * time.Millisecond
	gatherTimeLoad = 400 * time.Millisecond
	underLoad      = 256 // messages
	maxConfirm     = 200 // messages in one transaction: requests wait behind it
)

// confirmWriter writes SENT in batches, shortly after the requests were notified. Nothing is lost: a confirmation that
// was not written before a crash leaves the message PENDING, and it is sent again under the same id. Call flush before
// a status is read.
type confirmWriter struct {
	channel parley.ChannelCode
	store   Store
	log     *slog.Logger
	now     func() time.Time
	onWrite func(seqs []int64)

	wake  chan struct{} // holds one: there is something to write
	hurry chan struct{} // holds one: flush waits

	mu             sync.Mutex
	seqs           []int64         // to be written; zero: dropped
	index          map[int64]int   // in seqs
	added, handled int             // how many in all
	round          chan struct{}   // closed after the next write
	dropped        []int64         // not reported to onWrite yet
	took           []time.Duration // from acceptance to confirmation, for the counters
}

func newConfirmWriter(c Config, onWrite func([]int64)) *confirmWriter {
	return &confirmWriter{channel: c.Channel, store: c.Store, log: c.Log, now: c.Now, onWrite: onWrite,
		wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1), round: make(chan struct{}), index: map[int64]int{}}
}

func (c *confirmWriter) add(seqs []int64, took []time.Duration) {
	if len(seqs) == 0 {
		return
	}
	c.mu.Lock()
	for _, seq := range seqs {
		c.index[seq] = len(c.seqs)
		c.seqs = append(c.seqs, seq)
	}
	c.added += len(seqs)
	c.took = append(c.took, took...)
	c.mu.Unlock()
	wait.Notify(c.wake)
}

// drop removes messages that the store has advanced beyond SENT. It returns those that it does not have.
func (c *confirmWriter) drop(seqs []int64) (rest []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, seq := range seqs {
		i, ok := c.index[seq]
		if !ok {
			rest = append(rest, seq)
			continue
		}
		c.seqs[i] = 0
		delete(c.index, seq)
		c.dropped = append(c.dropped, seq)
	}
	return rest
}

// flush returns when everything that was added before is written, or when ctx ends.
func (c *confirmWriter) flush(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for target := c.added; c.handled < target; {
		round := c.round
		c.mu.Unlock()
		wait.Notify(c.hurry)
		var err error
		select {
		case <-round:
		case <-ctx.Done():
			err = ctx.Err()
		}
		c.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

// run writes until ctx ends, and then writes the rest.
func (c *confirmWriter) run(ctx context.Context) {
	for {
		select {
		case <-c.wake:
		case <-ctx.Done():
			c.write(context.WithoutCancel(ctx))
			return
		}
		pause := gatherTime
		for !c.gather(ctx, pause) {
			pause = shortPause // the store failed
		}
	}
}

// gather waits and writes what was added meanwhile. It reports whether that worked, or ctx has ended.
func (c *confirmWriter) gather(ctx context.Context, pause time.Duration) bool {
	if !c.sleep(ctx, pause) {
		return true
	}
	if pause == gatherTime && c.isUnderLoad() && !c.sleep(ctx, gatherTimeLoad-gatherTime) {
		return true
	}
	return c.write(ctx)
}

// sleep waits for a time or for a flush, and reports whether ctx goes on.
func (c *confirmWriter) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.hurry:
		wait.Notify(c.hurry) // for the next sleep before the same write
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

func (c *confirmWriter) isUnderLoad() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seqs) >= underLoad
}

// persist writes confirmations. If it fails, all of them are written again: those that are stored do not change.
func (c *confirmWriter) persist(ctx context.Context, seqs []int64, took []time.Duration) error {
	for ; len(seqs) > maxConfirm; seqs = seqs[maxConfirm:] {
		err := c.store.Tx(ctx, func(tx *store.Tx) error { return tx.ConfirmMessages(ctx, c.channel, seqs[:maxConfirm], c.now()) })
		if err != nil {
			return err
		}
	}
	return c.store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.ConfirmMessages(ctx, c.channel, seqs, c.now()); err != nil {
			return err
		}
		return ignoreNotFound(tx.CountSendTimes(ctx, c.channel, took))
	})
}

func (c *confirmWriter) write(ctx context.Context) bool {
	c.mu.Lock()
	select {
	case <-c.hurry: // this write serves it
	default:
	}
	gathered := len(c.seqs)
	seqs := slices.DeleteFunc(c.seqs, func(seq int64) bool { return seq == 0 })
	done := append(c.dropped, seqs...)
	took := c.took
	c.seqs, c.dropped, c.took = nil, nil, nil
	clear(c.index)
	c.mu.Unlock()
	var err error
	if len(took) > 0 {
		err = c.persist(ctx, seqs, took)
	}
	if err == nil {
		c.onWrite(done)
	} else if ctx.Err() == nil {
		c.log.Error("store confirmations", "error", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.seqs = append(seqs, c.seqs...)
		c.dropped = append(done[:len(done)-len(seqs)], c.dropped...)
		c.took = append(took, c.took...)
		for i, seq := range c.seqs {
			c.index[seq] = i
		}
		c.handled += gathered - len(seqs)
		return false
	}
	c.handled += gathered
	close(c.round)
	c.round = make(chan struct{})
	return true
}
