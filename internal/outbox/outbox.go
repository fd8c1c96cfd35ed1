// Package outbox sends the queue of one channel: in order per chat, at the channel's pace, again and
// again until each message is sent, fails for good or expires. It knows neither HTTP nor a network,
// only a [Sender] and the store.
package outbox

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/internal/store"
	"parley/internal/wait"
)

const (
	// sendTimeout bounds one call of the sender; past it the outcome is unknown and the same id is
	// sent again.
	sendTimeout = 60 * time.Second
	// drainTimeout is how long sends under way may go on when the worker is stopped.
	drainTimeout = 10 * time.Second
	// sweepEvery is how often the queue is compared with the store, should a hand-over be lost.
	sweepEvery = time.Minute
	// doubtEvery is how soon a clock that is not trusted is looked at again.
	doubtEvery = 10 * time.Second
	// maxHeld is how many bytes of content a worker holds in memory for messages that wait.
	maxHeld = 512 << 10
	// blink is how long a chat rests after a send that could not be tried, unless a connection comes first,
	// and the first pause after something could not be stored.
	blink = time.Second
)

// Sender gives messages to a network; a network.Session is one.
type Sender interface {
	Send(ctx context.Context, ms []*parley.Message) []error
	Limits() (burst, calls int)
}

// Store is what a worker needs of the store.
type Store interface {
	Tx(ctx context.Context, do func(*store.Tx) error) error
	Queue(ctx context.Context, channel parley.ChannelCode) ([]parley.Queued, error)
	Messages(ctx context.Context, channel parley.ChannelCode, seqs []int64) ([]parley.Message, error)
	Message(ctx context.Context, channel parley.ChannelCode, ref parley.MessageRef) (parley.Message, error)
}

// Config says what a worker works on. All fields are required.
type Config struct {
	Channel  parley.ChannelCode
	Store    Store
	Now      func() time.Time              // the channel's clock
	Settings func() parley.ChannelSettings // as they are now
	// AccountFrom is the Seq up to which messages were accepted for an account that the channel had before:
	// they fail.
	AccountFrom func() int64
	// ClockTrusted reports whether the clock may be trusted with the end of messages. While it may not, what
	// seems to have waited too long neither fails nor is sent.
	ClockTrusted func() bool
	// Pace is the least and the most time to leave between two sends now; zeros: none.
	Pace       func() (least, most time.Duration)
	OnDone     func(m *parley.Message)  // told of every message that the worker is done with
	RemoveFile func(media parley.Media) // told of every file that no message needs any more
	// DecryptSecret decrypts a secret to be sent. Its errors are those of a network: permanent where the text is
	// not to be had any more.
	DecryptSecret func(s parley.Secret) (parley.Content, error)
	// EncryptForResend encrypts what is to be kept for a while of a message that was sent and whose text is not kept;
	// nil: nothing.
	EncryptForResend func(m *parley.Message) []byte
	Log              *slog.Logger
}

// Worker owns the queue of one channel. Messages come in by Enqueue after they were committed and leave when
// they are settled. What they say is in memory only of the first few, up to maxHeld: of the others it is read
// from the store when they are sent.
//
// Run is the only goroutine that touches the lanes; everything that happens elsewhere is handed to
// it through the fields under mu.
type Worker struct {
	Config
	wake  chan struct{} // holds one: "look again"
	depth [parley.Priorities]atomic.Int64

	mu       sync.Mutex
	pushed   []*parley.Message
	renamed  []renaming
	dropped  []int64  // by Seq
	received []int64  // by Seq: messages that receipts confirmed
	done     []*burst // bursts that came back
	recorded []int64  // by Seq: confirmations that are in the store
	sender   Sender   // nil while there is no connection
	online   int      // how often there was one

	// Owned by Run.
	lanes      lanes
	known      map[int64]*entry // by Seq: what is in a lane, under way, or sent and not yet recorded
	connection int              // the number of the connection that was last looked at
	underWay   int              // bursts
	lastSend   time.Time        // of a record, for the pace
	chance     float64          // where between the least and the most the next gap lies
	held       int              // bytes of content
	account    int64            // what AccountFrom was when the queue was last looked through for it
	nextExpiry time.Time        // not after the first expiry of what is queued; zero: nothing is
	nextSweep  time.Time
	bursts     sync.WaitGroup
	recorder   *recorder
}

// New makes a worker; Run starts it.
func New(c Config) *Worker {
	w := &Worker{Config: c, wake: make(chan struct{}, 1), known: map[int64]*entry{}, lanes: newLanes()}
	w.recorder = newRecorder(c, func(seqs []int64) {
		w.mu.Lock()
		w.recorded = append(w.recorded, seqs...)
		w.mu.Unlock()
		w.Wake()
	})
	return w
}

// Enqueue hands over messages that were just committed, in the order of their Seq. It never blocks.
func (w *Worker) Enqueue(ms ...*parley.Message) {
	for _, m := range ms {
		w.count(m.Priority, 1)
	}
	w.mu.Lock()
	w.pushed = append(w.pushed, ms...)
	w.mu.Unlock()
	w.Wake()
}

// renaming says that the network spells the number of a contact in another way.
type renaming struct{ from, to parley.ContactID }

// MergeChats makes one queue of what waits for a contact under two spellings of its number. It is called when that is committed,
// in the order of commits: what is pushed later has the new spelling.
func (w *Worker) MergeChats(from, to parley.ContactID) {
	w.mu.Lock()
	w.renamed = append(w.renamed, renaming{from, to})
	w.mu.Unlock()
	w.Wake()
}

// Cancel takes a message, named by its Seq, out of the queue. If it is under way, this attempt is the last.
func (w *Worker) Cancel(seq int64) {
	w.mu.Lock()
	w.dropped = append(w.dropped, seq)
	w.mu.Unlock()
	w.Wake()
}

// SetSender sets the connection to send on; nil means that there is none now. What rests for want of a connection
// is due at once, also if s is the sender that is used already: it is connected again.
func (w *Worker) SetSender(s Sender) {
	w.mu.Lock()
	if w.sender = s; s != nil {
		w.online++
	}
	w.mu.Unlock()
	w.Wake()
}

// Wake makes the worker look again: at new settings, or at a clock that was moved.
func (w *Worker) Wake() { wait.Notify(w.wake) }

// Flush returns when the store knows of everything that was sent so far, or when ctx ends.
func (w *Worker) Flush(ctx context.Context) error { return w.recorder.flush(ctx) }

// ConfirmByReceipt takes note of messages, by Seq, that receipts confirmed. The store knows that already. One that
// waits or is under way is not sent again, and its chat goes on.
func (w *Worker) ConfirmByReceipt(seqs []int64) {
	rest := w.recorder.drop(seqs)
	if len(rest) == 0 {
		return
	}
	w.mu.Lock()
	w.received = append(w.received, rest...)
	w.mu.Unlock()
	w.Wake()
}

// Depth is how many messages wait or are under way.
func (w *Worker) Depth() int { return w.Ahead(parley.PriorityNormal) }

// Ahead is how many messages leave before a new one of a priority: those that wait or are under way and
// have it, or a higher one.
func (w *Worker) Ahead(priority parley.Priority) int {
	n := int64(0)
	for p := priority; p < parley.Priorities; p++ {
		n += w.depth[p].Load()
	}
	return int(n)
}

func (w *Worker) count(p parley.Priority, n int64) { w.depth[p].Add(n) }

// Run sends until ctx ends, and then waits for what is under way. What is still queued is in the
// store and is found again by the next Run.
func (w *Worker) Run(ctx context.Context) error {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	recording, stopRecorder := context.WithCancel(context.WithoutCancel(ctx))
	var recorder sync.WaitGroup
	recorder.Go(func() { w.recorder.run(recording) })
	defer recorder.Wait()
	defer stopRecorder()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := w.Now()
		w.sweep(ctx, now)
		w.takeIn()
		next := now.Add(blink)
		if w.failOld(now) {
			w.expire(now)
			w.start(sending, now)
			next = w.nextLook(now)
		}
		timer.Reset(max(0, next.Sub(now)))
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-timer.C:
		}
	}
	grace := time.AfterFunc(drainTimeout, stop)
	defer grace.Stop()
	w.bursts.Wait()
	return nil
}

// sweep reads from the store what the worker does not know of: everything at the start, and later
// what may have been lost on the way.
func (w *Worker) sweep(ctx context.Context, now time.Time) {
	if now.Before(w.nextSweep) {
		return
	}
	w.takeIn() // what was handed over is known; only the rest is news
	queue, err := w.Store.Queue(ctx, w.Channel)
	if err != nil {
		w.Log.Error("read the queue", "channel", w.Channel, "error", err)
		w.nextSweep = now.Add(blink)
		return
	}
	w.nextSweep = now.Add(sweepEvery)
	for _, q := range queue {
		if w.known[q.Seq] == nil {
			w.count(q.Priority, 1)
			if longest := now.Add(2 * lastRetry); q.NextAttempt.After(longest) { // the clock was ahead
				q.NextAttempt = longest
			}
			w.enqueue(&entry{Queued: q})
		}
	}
}

// takeIn moves what others handed over into the lanes.
func (w *Worker) takeIn() {
	w.mu.Lock()
	pushed, renamed, dropped, received, done, recorded, online := w.pushed, w.renamed, w.dropped, w.received, w.done, w.recorded, w.online
	w.pushed, w.renamed, w.dropped, w.received, w.done, w.recorded = nil, nil, nil, nil, nil, nil
	w.mu.Unlock()
	connected := online != w.connection
	w.connection = online
	for _, b := range done {
		w.takeBack(b)
	}
	for _, m := range pushed {
		if w.known[m.Seq] != nil { // the sweep was faster
			w.count(m.Priority, -1)
			continue
		}
		w.enqueue(w.newEntry(m))
	}
	for _, r := range renamed {
		w.lanes.rename(r.from, r.to)
	}
	for _, seq := range recorded {
		delete(w.known, seq)
	}
	for _, seq := range dropped {
		if e := w.known[seq]; e != nil && !w.removeQueued(e) {
			e.dropped = true
		}
	}
	for _, seq := range received {
		if e := w.known[seq]; e != nil && !w.removeQueued(e) {
			w.confirm(e)
		}
	}
	if connected {
		w.lanes.wake()
	}
}

// removeQueued takes a message out of the queue. It reports false where it is not there: it is under way, or
// done with and not yet recorded.
func (w *Worker) removeQueued(e *entry) bool {
	if len(w.lanes.remove(e.Chat, func(other *entry) bool { return other == e })) == 0 {
		return false
	}
	w.forget(e)
	return true
}

// confirm notes that a receipt confirmed a message that is under way. When all of its burst are, nobody needs
// the network's answer any more.
func (w *Worker) confirm(e *entry) {
	if e.burst == nil || e.confirmed {
		return
	}
	e.confirmed = true
	if e.burst.open--; e.burst.open == 0 {
		e.burst.cancel()
	}
}

// newEntry makes the entry of a message that was just accepted. It holds what the message says if there is
// room: most are sent at once.
func (w *Worker) newEntry(m *parley.Message) *entry {
	e := &entry{Queued: m.Queued()}
	if size := sizeOf(m.Content); w.held+size <= maxHeld {
		e.message, e.held = m, size
		w.held += size
	}
	return e
}

// release drops what an entry holds.
func (w *Worker) release(e *entry) {
	w.held -= e.held
	e.message, e.held = nil, 0
}

func (w *Worker) enqueue(e *entry) {
	w.known[e.Seq] = e
	w.lanes.add(e)
	if e.Seq <= w.account {
		w.account = 0 // look through the queue again
	}
	if !e.ExpiresAt.IsZero() && (w.nextExpiry.IsZero() || e.ExpiresAt.Before(w.nextExpiry)) {
		w.nextExpiry = e.ExpiresAt
	}
}

func (w *Worker) forget(e *entry) {
	delete(w.known, e.Seq)
	w.count(e.Priority, -1)
	w.release(e)
}

// start sends as much as the connection and the pace allow.
func (w *Worker) start(ctx context.Context, now time.Time) {
	w.mu.Lock()
	sender, online := w.sender, w.online
	w.mu.Unlock()
	if sender == nil {
		return
	}
	size, calls := sender.Limits()
	pace := w.pace()
	if pace > 0 {
		size = 1
	}
	for w.underWay < calls && !now.Before(w.lastSend.Add(pace)) {
		taken := w.lanes.take(size, now)
		if len(taken) == 0 {
			return
		}
		if taken[0].Kind.IsRecord() { // marking something as seen keeps no message waiting
			w.lastSend = now
			if pace > 0 {
				w.chance = rand.Float64()
				pace = w.pace()
			}
		}
		w.underWay++
		b := newBurst(ctx, taken, online)
		w.bursts.Go(func() {
			w.send(ctx, sender, b)
			b.cancel()
			w.mu.Lock()
			w.done = append(w.done, b)
			w.mu.Unlock()
			w.Wake()
		})
	}
}

// pace is the time between the last send and the next one.
func (w *Worker) pace() time.Duration {
	least, most := w.Pace()
	return least + time.Duration(w.chance*float64(most-least))
}

// takeBack puts what a burst left unfinished back into its lanes.
func (w *Worker) takeBack(b *burst) {
	w.underWay--
	w.lanes.release(b.entries)
	for i, e := range b.entries {
		e.burst, e.confirmed = nil, false
		v := b.verdicts[i]
		if v.rest.IsZero() {
			if b.recorded || v.status != parley.Sent {
				delete(w.known, e.Seq)
			} // else the recorder has it yet
			w.count(e.Priority, -1)
			w.release(e)
			continue
		}
		w.release(e)
		if e.dropped {
			w.forget(e)
			continue
		}
		e.NextAttempt, e.waits = v.rest, v.waits
		if v.waits && b.connection != w.connection { // there was another one meanwhile
			e.NextAttempt, e.waits = time.Time{}, false
		}
		e.unknown = e.unknown || v.unknown
		if v.notReady {
			e.beside = true
			e.notReady++
		}
		w.enqueue(e)
	}
	for _, pool := range b.failedPools {
		for _, e := range w.lanes.remove(pool.Chat, func(e *entry) bool { return e.Pool == pool.ID }) {
			w.forget(e)
			w.OnDone(&parley.Message{Seq: e.Seq, Channel: w.Channel, Chat: e.Chat, ID: e.ID, FromMe: true, Pool: e.Pool,
				Status: parley.FailedForGood, Failure: notSent(), UpdatedAt: w.Now()})
		}
	}
}

// nextLook is when something falls due if nothing happens before.
func (w *Worker) nextLook(now time.Time) time.Time {
	next := w.nextSweep
	if t := w.lanes.nextDue(now); !t.IsZero() && t.Before(next) {
		next = t
	}
	if !w.nextExpiry.IsZero() && w.nextExpiry.Before(next) {
		next = w.nextExpiry
	}
	if t := w.lastSend.Add(w.pace()); t.After(now) && t.Before(next) {
		next = t
	}
	return next
}
