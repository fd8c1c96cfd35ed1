package outbox

import (
	"context"
	"errors"
	"maps"
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
	config  Config
	onWrite func(seqs []int64)

	ctx   context.Context // of the worker; it is set before the first confirmation
	hurry chan struct{}   // holds one: flush waits
	runs  sync.WaitGroup

	mu             sync.Mutex
	running        bool            // run runs: while there is something to write
	seqs           []int64         // added and not handled
	unwritten      map[int64]bool  // those of them that were not dropped
	dropped        []int64         // not reported to onWrite yet
	took           []time.Duration // from acceptance to confirmation, for the counters
	added, handled int             // how many in all
	round          chan struct{}   // closed after the next write
}

// Unstored are the workers with confirmations that are not stored yet, of all channels. Nil is valid and knows none.
type Unstored struct {
	mu  sync.Mutex
	all map[*confirmWriter]bool
}

func (u *Unstored) set(c *confirmWriter, unstored bool) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == nil {
		u.all = map[*confirmWriter]bool{}
	}
	if unstored {
		u.all[c] = true
	} else {
		delete(u.all, c)
	}
}

// Flush returns when all confirmations so far are in the store, or when ctx ends.
func (u *Unstored) Flush(ctx context.Context) {
	u.mu.Lock()
	all := slices.Collect(maps.Keys(u.all))
	u.mu.Unlock()
	for _, c := range all {
		if c.flush(ctx) != nil {
			return
		}
	}
}

func newConfirmWriter(c Config, onWrite func([]int64)) *confirmWriter {
	return &confirmWriter{config: c, onWrite: onWrite, hurry: make(chan struct{}, 1),
		round: make(chan struct{}), unwritten: map[int64]bool{}}
}

func (c *confirmWriter) add(seqs []int64, took []time.Duration) {
	if len(seqs) == 0 {
		return
	}
	c.mu.Lock()
	for _, seq := range seqs {
		c.unwritten[seq] = true
	}
	c.seqs = append(c.seqs, seqs...)
	c.added += len(seqs)
	c.took = append(c.took, took...)
	if !c.running {
		c.running = true
		c.config.Unstored.set(c, true)
		c.runs.Go(c.run)
	}
	c.mu.Unlock()
}

// drop removes messages that the store has advanced beyond SENT. It returns those that it does not have.
func (c *confirmWriter) drop(seqs []int64) (rest []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, seq := range seqs {
		if c.unwritten[seq] {
			delete(c.unwritten, seq)
			c.dropped = append(c.dropped, seq)
		} else {
			rest = append(rest, seq)
		}
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
		select {
		case <-round:
			c.mu.Lock()
		case <-ctx.Done():
			c.mu.Lock()
			return ctx.Err()
		}
	}
	return nil
}

func (c *confirmWriter) run() {
	for more := true; more && c.ctx.Err() == nil; {
		c.sleep(c.ctx, gatherTime)
		if c.isUnderLoad() {
			c.sleep(c.ctx, gatherTimeLoad-gatherTime)
		}
		for c.ctx.Err() == nil && !c.write(c.ctx) {
			c.sleep(c.ctx, shortPause)
		}
		c.mu.Lock()
		if more = len(c.seqs) > 0; !more {
			c.running = false
			c.config.Unstored.set(c, false)
		}
		c.mu.Unlock()
	}
}

// close writes what is left. Nothing may be added meanwhile.
func (c *confirmWriter) close() {
	c.runs.Wait()
	c.write(context.WithoutCancel(c.ctx))
	c.config.Unstored.set(c, false)
}

// sleep waits for a time, for a flush or for the end of ctx.
func (c *confirmWriter) sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-c.hurry:
		wait.Notify(c.hurry) // for the next sleep before the same write
	case <-ctx.Done():
	}
}

func (c *confirmWriter) isUnderLoad() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seqs) >= underLoad
}

// persist writes confirmations. If it fails, all of them are written again: those that are stored do not change.
func (c *confirmWriter) persist(ctx context.Context, seqs []int64, took []time.Duration) error {
	for ; len(seqs) > maxConfirm; seqs = seqs[maxConfirm:] {
		err := c.config.Store.Tx(ctx, func(tx *store.Tx) error {
			return tx.ConfirmMessages(ctx, c.config.Channel, seqs[:maxConfirm], c.config.Now())
		})
		if err != nil {
			return err
		}
	}
	return c.config.Store.Tx(ctx, func(tx *store.Tx) error {
		return errors.Join(tx.ConfirmMessages(ctx, c.config.Channel, seqs, c.config.Now()),
			parley.IgnoreNotFound(tx.CountSendTimes(ctx, c.config.Channel, took)))
	})
}

// write writes what was gathered. After an error it stays gathered.
func (c *confirmWriter) write(ctx context.Context) bool {
	c.mu.Lock()
	select {
	case <-c.hurry: // this write serves it
	default:
	}
	gathered, dropped, took := len(c.seqs), len(c.dropped), c.took
	seqs := slices.DeleteFunc(slices.Clone(c.seqs), func(seq int64) bool { return !c.unwritten[seq] })
	done := slices.Concat(c.dropped, seqs)
	c.mu.Unlock()
	if len(took) > 0 {
		if err := c.persist(ctx, seqs, took); err != nil {
			if ctx.Err() == nil {
				c.config.Log.Error("store confirmations", "error", err)
			}
			return false
		}
	}
	c.onWrite(done)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seqs, c.dropped, c.took = c.seqs[gathered:], c.dropped[dropped:], c.took[len(took):]
	for _, seq := range seqs {
		delete(c.unwritten, seq)
	}
	c.handled += gathered
	close(c.round)
	c.round = make(chan struct{})
	return true
}
