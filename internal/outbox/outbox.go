// Package outbox sends the queue of one channel: in order per chat, at the channel's pace. Each message is retried until
// it is sent, fails or expires. The package knows neither HTTP nor a network, only a [Sender] and the store.
//
// Invariants:
//   - The store holds the queue. A new worker finds there whatever an earlier one left.
//   - At most one burst of a chat is in flight, so its messages keep their order.
//   - A retry uses the same message id, so the network can recognize a duplicate.
//   - A failure is durable before anyone hears of it. SENT is written shortly afterwards (confirm_writer.go).
//   - Only run touches the chat queues. Other goroutines pass functions to it, which it calls in order. It runs while there is
//     something to do: an idle channel costs no goroutine, no timer and no query.
package outbox

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/internal/store"
	"parley/internal/wait"
)

const (
	// sendTimeout bounds one call of the sender. After it the outcome is unknown and the same id is sent again.
	sendTimeout = 60 * time.Second
	// drainTimeout is how long sends in flight may continue when the worker stops.
	drainTimeout = 10 * time.Second
	// untrustedClockPause is how soon an untrusted clock is checked again.
	untrustedClockPause = 10 * time.Second
	// maxHeldBytes is how much content of queued messages a worker holds in memory.
	maxHeldBytes = 512 << 10
	// withdrawPause is how long a withdrawn message stays where it is.
	withdrawPause = 10 * time.Second
	// shortPause is the first pause after a store error, and after a send that could not be attempted.
	shortPause = time.Second
)

// Sender gives messages to a network; a network.Session is one.
type Sender interface {
	Send(ctx context.Context, ms []*parley.Message) []error
	Limits() (burst, calls int)
}

type Store interface {
	Tx(ctx context.Context, do func(*store.Tx) error) error
	Queue(ctx context.Context, channel parley.ChannelCode) ([]parley.Queued, error)
	Messages(ctx context.Context, channel parley.ChannelCode, seqs []int64) ([]parley.Message, error)
	Message(ctx context.Context, channel parley.ChannelCode, ref parley.MessageRef) (parley.Message, error)
}

// Config configures a worker. Fields without a default are required.
type Config struct {
	Channel parley.ChannelCode
	Store   Store
	Now     func() time.Time      // the channel's clock
	Current func() parley.Channel // with its current settings and account
	Pace    func() (least, most time.Duration)
	// ClockTrusted reports whether messages may expire by the clock. Otherwise expired messages neither fail nor leave.
	ClockTrusted func() bool
	MaySend      func() bool             // reports whether this process may send; nil: always
	OnDone       func(m *parley.Message) // called for each message that was sent or has failed
	// Check returns nil if a message to a contact may leave now, [*Held] if it must wait, or an error like those of a network. Nil: all may.
	Check func(ctx context.Context, m *parley.Message) error
	// OnRestricted is called after the network refused a first message, with the end of the restriction; zero: unknown. It may be nil.
	OnRestricted func(until time.Time)
	RemoveFile   func(media parley.Media) // called for each file that no message needs any more
	// DecryptSecret decrypts a secret to be sent. Its errors are classified like those of a network.
	DecryptSecret func(s parley.Secret) (parley.Content, error)
	// EncryptForResend encrypts a sent message whose channel stores no text; nil: a resend is not possible.
	EncryptForResend func(m *parley.Message) []byte
	Unstored         *Unstored // of all workers; nil: nobody asks
	Log              *slog.Logger
}

// Worker owns the queue of one channel. Up to maxHeldBytes of content stay in memory; the rest is read when it is sent.
type Worker struct {
	config Config
	wake   chan struct{} // holds one notification
	depth  [parley.Priorities]atomic.Int64

	ctx, sending context.Context // of Start; sends in flight outlive the first
	stopSending  context.CancelFunc
	runs         sync.WaitGroup // run

	mu          sync.Mutex
	awake       bool     // run runs
	ended       bool     // it never runs again
	input       []func() // called by run
	sender      Sender   // nil while there is no connection
	connections int      // how many there were

	// Owned by run.
	queues         chatQueues
	known          map[int64]*entry // by Seq: queued, in flight, or sent and not yet written
	using          Sender           // the sender that run saw last; nil: none
	connection     int              // its number
	burstsInFlight int
	releases       int       // how often held messages were released
	lastSend       time.Time // of a message in history, for the pace
	pausedUntil    time.Time // the network wants nothing of the channel before
	paceFraction   float64   // the next pause, between the minimum (0) and the maximum (1)
	heldBytes      int
	accountFrom    int64     // the AccountFrom for which the queue was checked
	nextExpiry     time.Time // not after the first expiry of the queue; zero: nothing expires
	sweepAt        time.Time // when to compare the queue with the store; zero: no need
	unsure         bool      // the store may have messages that were not enqueued: nothing is sent until the queue is read
	bursts         sync.WaitGroup
	confirms       *confirmWriter
}

// New makes a worker; Start starts it.
func New(c Config) *Worker {
	if c.MaySend == nil {
		c.MaySend = func() bool { return true }
	}
	w := &Worker{config: c, wake: make(chan struct{}, 1), known: map[int64]*entry{}, queues: chatQueues{
		byKey: map[queueKey]*chatQueue{}, later: map[*chatQueue]bool{}, sameChat: map[parley.ContactID]parley.ContactID{},
	}}
	w.confirms = newConfirmWriter(c, func(seqs []int64) {
		w.inRun(func() {
			for _, seq := range seqs {
				delete(w.known, seq)
			}
		})
	})
	return w
}

func (w *Worker) inRun(do func()) {
	w.mu.Lock()
	w.input = append(w.input, do)
	w.mu.Unlock()
	w.Wake()
}

// Enqueue adds messages that were just committed, in the order of their Seq. It never blocks.
func (w *Worker) Enqueue(ms ...*parley.Message) {
	for _, m := range ms {
		w.depth[m.Priority].Add(1)
	}
	w.inRun(func() {
		for _, m := range ms {
			if w.known[m.Seq] != nil { // the sweep found it first
				w.depth[m.Priority].Add(-1)
				continue
			}
			w.insert(w.newEntry(m))
		}
	})
}

// Sweep makes the worker compare its queue with the store, in case an Enqueue was lost.
func (w *Worker) Sweep() { w.inRun(func() { w.sweepAt = w.config.Now() }) }

// Reread makes the worker read the queue from the store before it sends anything that is enqueued later. Call it when a message may
// have been committed although its transaction failed: a later one must not overtake it.
func (w *Worker) Reread() { w.inRun(func() { w.unsure = true }) }

// MergeChats merges the queues of two spellings of a contact's number. Call it on commit of the alias: messages that are
// enqueued later have the new spelling.
func (w *Worker) MergeChats(from, to parley.ContactID) {
	w.inRun(func() { w.queues.merge(from, to) })
}

// Cancel removes a message from the queue by its Seq, after the store says that it must not be sent. If it is in flight, that attempt
// is the last.
func (w *Worker) Cancel(seq int64) {
	w.inRun(func() {
		if e := w.known[seq]; e != nil && !w.dequeue(e) {
			e.cancelled = true
		}
	})
}

// Withdraw keeps a message that is queued from being sent for a while, in which the caller must cancel it in the store and call
// Cancel. It reports whether the network may have the message nevertheless: it is in flight, or an attempt had an unknown outcome.
func (w *Worker) Withdraw(ctx context.Context, seq int64) (mayHaveLeft bool, err error) {
	done := make(chan bool, 1)
	w.inRun(func() {
		e := w.known[seq]
		if e == nil { // it was enqueued by nobody yet, or it is done
			done <- true
			return
		}
		queued := false
		w.queues.each(func(other *entry) { queued = queued || other == e })
		if queued {
			e.awaitsConnection, e.NextAttempt = false, w.config.Now().Add(withdrawPause)
		}
		done <- !queued || e.found || e.unknownOutcome
	})
	select {
	case mayHaveLeft = <-done:
		return mayHaveLeft, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// SetSender sets the connection to send on; nil: there is none. Messages that wait for a connection become due, also if
// s is the current sender: then it has reconnected.
func (w *Worker) SetSender(s Sender) {
	w.mu.Lock()
	if w.sender = s; s != nil {
		w.connections++
	}
	w.mu.Unlock()
	w.Wake()
}

// Wake makes the worker check again, after settings or a clock changed.
func (w *Worker) Wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ctx == nil || w.ended:
	case w.awake:
		wait.Notify(w.wake)
	default:
		w.awake = true
		w.runs.Go(w.run)
	}
}

// Flush returns when all confirmations so far are in the store, or when ctx ends.
func (w *Worker) Flush(ctx context.Context) error { return w.confirms.flush(ctx) }

// ConfirmByReceipt confirms messages by Seq after the store advanced or failed them because of a receipt. They are not sent again.
func (w *Worker) ConfirmByReceipt(seqs []int64) {
	rest := w.confirms.drop(seqs)
	if len(rest) == 0 {
		return
	}
	w.inRun(func() {
		for _, seq := range rest {
			if e := w.known[seq]; e != nil && !w.dequeue(e) {
				confirmInFlight(e)
			}
		}
	})
}

// Depth is how many messages are queued or in flight.
func (w *Worker) Depth() int { return w.Ahead(parley.PriorityNormal) }

// Ahead is how many messages leave before a new one of a priority.
func (w *Worker) Ahead(priority parley.Priority) int {
	n := int64(0)
	for p := priority; p < parley.Priorities; p++ {
		n += w.depth[p].Load()
	}
	return int(n)
}

// Start makes the worker send until ctx ends; then call Wait. If the store may have messages of the queue, it reads them before it
// sends anything.
func (w *Worker) Start(ctx context.Context, mayBeQueued bool) {
	w.mu.Lock()
	w.unsure = mayBeQueued
	w.ctx = ctx
	w.sending, w.stopSending = context.WithCancel(context.WithoutCancel(ctx))
	w.confirms.ctx = ctx
	idle := !mayBeQueued && len(w.input) == 0
	w.mu.Unlock()
	if !idle {
		w.Wake()
	}
}

// Wait waits for bursts in flight, and stores their outcomes. Call it after the context of Start has ended.
func (w *Worker) Wait() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.runs.Wait()
	if w.ctx == nil {
		return
	}
	grace := time.AfterFunc(drainTimeout, w.stopSending)
	w.bursts.Wait()
	grace.Stop()
	w.stopSending()
	w.confirms.close()
}
