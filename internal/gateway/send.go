package gateway

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/internal/store"
)

// MaxQueue is how many messages of a channel may be queued. The whole queue is in memory, and a longer one would take a
// real network hours.
const MaxQueue = 10_000

// Draft is a message before it is accepted.
type Draft struct {
	To        parley.ContactID
	Content   parley.Content
	ReplyTo   parley.MessageID
	Request   string         // the id of the request that sends it
	Token     parley.TokenID // of that request; empty: it has none
	ExpiresAt time.Time      // zero: the channel decides
	Priority  parley.Priority
}

// SendOptions are options of Send. The zero value does not wait for the network.
type SendOptions struct {
	// Wait is how long to wait until the network confirms all messages. Zero: they are returned as PENDING.
	Wait time.Duration
	// Key, if not nil, is stored in the same transaction. If it already exists, the error is [parley.ErrExists].
	Key *store.StoredResponse
	// Accepted, if not nil, runs last in the same transaction, with the messages as they were stored. If it fails, nothing is
	// stored and Send returns its error.
	Accepted func(*store.Tx, []parley.Message) error
}

// Send accepts drafts in one transaction, in order, and enqueues them. When it returns without an error they are durable.
// It returns their status once all are confirmed or failed, or the wait is over. If one of several drafts fails, the later
// ones are not sent.
func (g *Gateway) Send(ctx context.Context, code parley.ChannelCode, drafts []Draft, options SendOptions) ([]parley.Message, error) {
	a, err := g.account(code)
	if err != nil {
		return nil, err
	}
	channel := a.snapshot()
	for i := range drafts {
		if err := channel.Accepts(drafts[i].To); err != nil {
			return nil, err
		}
		if err := g.checkDraft(channel, &drafts[i]); err != nil {
			return nil, err
		}
	}
	if a.worker.Depth()+len(drafts) > MaxQueue {
		return nil, &parley.Error{Code: parley.QueueFull, RetryAfter: 10 * time.Second,
			Message: fmt.Sprintf("The queue of channel %s is full: %d messages wait. Try again after the time in Retry-After.", code, MaxQueue)}
	}
	ms := a.newMessages(channel, drafts)
	var waiter *sendWaiter
	var timeout <-chan time.Time
	if options.Wait > 0 {
		waiter = &sendWaiter{done: make(chan struct{}), open: len(ms)}
		defer g.removeWaiter(waiter)
		timer := time.NewTimer(options.Wait)
		defer timer.Stop()
		timeout = timer.C
	}
	err = a.tx(ctx, func(tx *store.Tx) error {
		if err := a.acceptAll(ctx, tx, ms, drafts, options.Key); err != nil {
			return err
		}
		if waiter != nil {
			g.register(waiter, ms)
		}
		if options.Accepted == nil {
			return nil
		}
		return options.Accepted(tx, ms)
	})
	if err != nil {
		return nil, err
	}
	g.metrics.accepted.Add(float64(len(drafts)))
	if waiter != nil {
		select {
		case <-waiter.done:
		case <-timeout:
		case <-g.stopped:
		case <-a.moved: // the next owner sends what is left
		}
		ms = waiter.current()
	}
	for i := range ms {
		ms[i].Chat = drafts[i].To // as the request spells it; the store uses the network's spelling
	}
	return ms, nil
}

func (a *account) newMessages(channel parley.Channel, drafts []Draft) []parley.Message {
	now, driver := a.now(), a.g.Drivers[channel.Network]
	var pool parley.PoolID
	if len(drafts) > 1 {
		pool = parley.NewPoolID()
	}
	ms := make([]parley.Message, len(drafts))
	for i, d := range drafts {
		expires := d.ExpiresAt
		if expires.IsZero() {
			expires = now.Add(channel.Settings.MessageTTL())
		}
		ms[i] = parley.Message{
			Channel: channel.Code, Chat: d.To, ID: driver.NewID(), FromMe: true,
			Content: d.Content, ReplyTo: d.ReplyTo, Request: d.Request, Token: d.Token, Status: parley.Pending,
			Priority: d.Priority, Pool: pool, ExpiresAt: expires, CreatedAt: now, UpdatedAt: now,
		}
	}
	return ms
}

func (a *account) acceptAll(ctx context.Context, tx *store.Tx, ms []parley.Message, drafts []Draft, key *store.StoredResponse) error {
	if key != nil {
		for i := range ms {
			ms[i].IdempotencyKey = key.Key
		}
	}
	if err := a.enqueue(ctx, tx, ms); err != nil || key == nil {
		return err
	}
	key.Channel = a.code
	key.Messages = key.Messages[:0]
	for i := range ms {
		ref := ms[i].Ref()
		ref.Chat = drafts[i].To
		key.Messages = append(key.Messages, ref)
	}
	return tx.AddStoredResponse(ctx, *key)
}

// enqueue stores messages, and gives them to the worker after the commit. Commits run in order, so the
// queue has the order of the store.
func (a *account) enqueue(ctx context.Context, tx *store.Tx, ms []parley.Message) error {
	for i := range ms {
		if d, ok := ms[i].Content.(parley.Delete); ok {
			if err := a.cancelPending(ctx, tx, d.Target, ms[i].CreatedAt); err != nil {
				return err
			}
		}
		if file := parley.MediaIn(ms[i].Content); file != nil && file.Key != "" {
			if err := tx.UseFile(ctx, file.Key); err != nil {
				return err
			}
		}
		if err := tx.EnqueueMessage(ctx, &ms[i]); err != nil {
			return err
		}
	}
	tx.OnUnknown(func() { a.current().worker.Reread() }) // a retry of the request may find them accepted
	tx.OnCommit(func() {
		queued := make([]*parley.Message, len(ms)) // the worker changes its own copies
		for i := range ms {
			m := ms[i]
			queued[i] = &m
		}
		a.current().worker.Enqueue(queued...)
	})
	return nil
}

// current is the account that runs the channel now, in case this one was closed and replaced.
func (a *account) current() *account {
	a.mu.RLock()
	closed := a.closed
	a.mu.RUnlock()
	if !closed {
		return a
	}
	a.g.mu.RLock()
	defer a.g.mu.RUnlock()
	if now := a.g.accounts[a.code]; now != nil && now.id == a.id {
		return now
	}
	return a // the next one reads the queue from the store
}

// cancelPending cancels a message that is deleted before it was sent. The deletion goes to the network nevertheless: the
// message may be in flight.
func (a *account) cancelPending(ctx context.Context, tx *store.Tx, target parley.MessageRef, now time.Time) error {
	m, err := tx.Message(ctx, a.code, target)
	if err != nil {
		return err
	}
	if m.Status != parley.Pending {
		return nil // it is deleted once the network confirms
	}
	if _, err := tx.AdvanceMessage(ctx, m.Channel, m.Ref(), parley.Deleted, nil, now); err != nil {
		return err
	}
	tx.OnCommit(func() { a.worker.Cancel(m.Seq) })
	return nil
}

// sendWaiter is a request that waits until all its messages are confirmed or failed.
type sendWaiter struct {
	done chan struct{} // closed when all are

	mu       sync.Mutex
	messages []parley.Message
	open     int // neither confirmed nor failed
}

// register makes a waiter wait for messages, before they are committed: the worker may find them in the store at once.
// It replaces those of an earlier run of the transaction.
func (g *Gateway) register(w *sendWaiter, ms []parley.Message) {
	g.removeWaiter(w)
	w.mu.Lock()
	w.messages = slices.Clone(ms)
	w.mu.Unlock()
	for i := range ms {
		g.waiters.Store(ms[i].ID, func(m *parley.Message) { w.update(i, m) })
	}
}

func (g *Gateway) removeWaiter(w *sendWaiter) {
	for _, m := range w.current() {
		g.waiters.Delete(m.ID)
	}
}

// update applies a new status. A receipt may be faster than the confirmation that it implies: the request gets SENT.
func (w *sendWaiter) update(i int, m *parley.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	own := &w.messages[i]
	if own.Status.IsFinal() {
		return
	}
	own.Status, own.Failure, own.UpdatedAt = m.Status, m.Failure, m.UpdatedAt
	if m.Status == parley.Delivered || m.Status == parley.Read || m.Status == parley.Played {
		own.Status = parley.Sent
	}
	if w.open--; w.open == 0 {
		close(w.done)
	}
}

func (w *sendWaiter) current() []parley.Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.messages)
}

func (g *Gateway) statusChanged(m *parley.Message) {
	if update, ok := g.waiters.Load(m.ID); ok {
		update.(func(*parley.Message))(m)
	}
	g.metrics.statusChanged(m)
	if g.activity.HasSubscribers() {
		g.activity.Publish(toActivity(m))
	}
}
