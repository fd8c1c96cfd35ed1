package outbox

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"parley"
)

func (w *Worker) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for w.ctx.Err() == nil {
		now := w.config.Now()
		w.applyInput()
		w.sweep(w.ctx, now)
		next := now.Add(shortPause)
		if !w.unsure && w.config.MaySend() && w.failOldAccount(now) {
			w.expire(now)
			w.start(w.sending, now)
			if next = w.nextWake(now); next.IsZero() {
				if w.rest() {
					return
				}
				continue
			}
		}
		timer.Reset(max(0, next.Sub(now)))
		select {
		case <-w.ctx.Done():
		case <-w.wake:
		case <-timer.C:
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.awake, w.ended = false, true
}

// rest ends run unless there is input. It reports whether run must return.
func (w *Worker) rest() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.wake:
		return false
	default:
	}
	w.awake = len(w.input) > 0
	return !w.awake
}

// sweep reads messages from the store that the worker does not know. What was enqueued must be known.
func (w *Worker) sweep(ctx context.Context, now time.Time) {
	if !w.unsure && (w.sweepAt.IsZero() || now.Before(w.sweepAt)) {
		return
	}
	queue, err := w.config.Store.Queue(ctx, w.config.Channel)
	if err != nil {
		w.config.Log.Error("read the queue", "channel", w.config.Channel, "error", err)
		w.sweepAt = now.Add(shortPause)
		return
	}
	w.sweepAt, w.unsure = time.Time{}, false
	for _, q := range queue {
		if w.known[q.Seq] == nil {
			w.depth[q.Priority].Add(1)
			if longest := now.Add(2 * maxRetryPause); q.NextAttempt.After(longest) { // the clock was ahead
				q.NextAttempt = longest
			}
			w.insert(&entry{Queued: q, found: true})
		}
	}
}

func (w *Worker) applyInput() {
	w.mu.Lock()
	input := w.input
	w.input = nil
	reconnected := w.connections != w.connection
	w.using, w.connection = w.sender, w.connections // not newer than the input, which may cancel what would be sent
	w.mu.Unlock()
	for _, do := range input {
		do()
	}
	if reconnected {
		w.queues.reconnected()
	}
}

// dequeue removes a message from the queue. It reports false if the message is in flight, or sent and not yet written.
func (w *Worker) dequeue(e *entry) bool {
	if len(w.queues.remove(e.Chat, func(other *entry) bool { return other == e })) == 0 {
		return false
	}
	w.remove(e)
	return true
}

// confirmInFlight cancels a burst once receipts have confirmed all its messages: the network's response is not needed.
func confirmInFlight(e *entry) {
	if e.burst == nil || e.confirmed {
		return
	}
	e.confirmed = true
	if e.burst.unconfirmed--; e.burst.unconfirmed == 0 {
		e.burst.cancel()
	}
}

// newEntry makes an entry that holds the content if there is room: most messages leave at once.
func (w *Worker) newEntry(m *parley.Message) *entry {
	e := &entry{Queued: m.Queued()}
	if size := contentSize(m.Content); w.heldBytes+size <= maxHeldBytes {
		e.message, e.heldBytes = m, size
		w.heldBytes += size
	}
	return e
}

func (w *Worker) releaseContent(e *entry) {
	w.heldBytes -= e.heldBytes
	e.message, e.heldBytes = nil, 0
}

func (w *Worker) insert(e *entry) {
	w.known[e.Seq] = e
	w.queues.add(e)
	if e.Seq <= w.accountFrom {
		w.accountFrom = 0 // check the queue again
	}
	w.checkExpiryAt(e.ExpiresAt)
}

func (w *Worker) remove(e *entry) {
	delete(w.known, e.Seq)
	w.depth[e.Priority].Add(-1)
	w.releaseContent(e)
}

func (w *Worker) start(ctx context.Context, now time.Time) {
	sender := w.using
	if sender == nil || now.Before(w.pausedUntil) {
		return
	}
	size, calls := sender.Limits()
	pace := w.pace()
	if pace > 0 || w.config.Current().Settings.Careful != nil { // the next one is checked after this one is counted
		size = 1
	}
	for w.burstsInFlight < calls && !now.Before(w.lastSend.Add(pace)) {
		due := w.queues.dequeueDue(size, now)
		if len(due) == 0 {
			return
		}
		before := w.lastSend
		if due[0].Kind.InHistory() { // operations such as "seen" do not count for the pace
			w.lastSend = now
			if pace > 0 {
				w.paceFraction = rand.Float64()
				pace = w.pace()
			}
		}
		w.burstsInFlight++
		b := &burst{lastSend: before, releases: w.releases, entries: due, connection: w.connection, unconfirmed: len(due),
			outcomes: make([]outcome, len(due))}
		b.ctx, b.cancel = context.WithTimeout(ctx, sendTimeout)
		for _, e := range due {
			e.burst = b
		}
		w.bursts.Go(func() {
			w.send(ctx, sender, b)
			b.cancel()
			w.inRun(func() { w.finishBurst(b) })
		})
	}
}

// pace is the time between the last send and the next one.
func (w *Worker) pace() time.Duration {
	least, most := w.config.Pace()
	return least + time.Duration(w.paceFraction*float64(most-least))
}

// finishBurst returns unfinished messages of a burst to their queues.
func (w *Worker) finishBurst(b *burst) {
	w.burstsInFlight--
	if !slices.ContainsFunc(b.outcomes, func(o outcome) bool { return o.held == "" }) {
		w.lastSend = b.lastSend // nothing left
	}
	w.queues.release(b.entries)
	for i, e := range b.entries {
		e.burst, e.confirmed = nil, false
		o := b.outcomes[i]
		switch {
		case o.retryAt.IsZero() || e.cancelled:
			w.remove(e)
			if o.status == parley.Sent && !b.stored { // the sweep must not add it again before it is written
				w.known[e.Seq] = e
			}
		default:
			if o.pausesChannel && o.retryAt.After(w.pausedUntil) {
				w.pausedUntil = o.retryAt
				w.config.Log.Warn("the network makes the channel wait", "channel", w.config.Channel, "until", o.retryAt)
			}
			if o.held != "" && b.releases != w.releases {
				o.held, o.retryAt = "", w.config.Now()
			}
			w.releaseContent(e)
			w.requeue(e, o, b.connection != w.connection)
		}
	}
	for i, failed := range b.entries {
		if b.outcomes[i].status != parley.Failed || failed.Pool == "" {
			continue
		}
		for _, e := range w.queues.remove(failed.Chat, func(e *entry) bool { return e.Pool == failed.Pool }) {
			w.remove(e)
			w.config.OnDone(&parley.Message{Seq: e.Seq, Channel: w.config.Channel, Chat: e.Chat, ID: e.ID, FromMe: true, Pool: e.Pool,
				Status: parley.Failed, Failure: poolFailed(), UpdatedAt: w.config.Now()})
		}
	}
}

// requeue inserts a message again after an attempt that neither succeeded nor finished it.
func (w *Worker) requeue(e *entry, o outcome, reconnected bool) {
	e.NextAttempt, e.awaitsConnection, e.held = o.retryAt, o.awaitsConnection, o.held
	if o.awaitsConnection && reconnected {
		e.NextAttempt, e.awaitsConnection = time.Time{}, false
	}
	e.unknownOutcome = e.unknownOutcome || o.unknown
	if o.notReady {
		e.aside = true
		e.notReady++
	}
	w.insert(e)
}

// nextWake is when there is something to do without further input; zero: never. A burst in flight is input when it returns.
func (w *Worker) nextWake(now time.Time) (next time.Time) {
	times := []time.Time{w.sweepAt}
	if len(w.known) > 0 {
		times = append(times, w.queues.nextDue(now), w.nextExpiry)
		for _, at := range []time.Time{w.lastSend.Add(w.pace()), w.pausedUntil} {
			if at.After(now) {
				times = append(times, at)
			}
		}
	}
	for _, at := range times {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}
