package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley"
)

// MaxQueue is how many messages a channel may have waiting. They are all in memory, and a longer
// queue would take a real network hours.
const MaxQueue = 10_000

// Draft is a message to send, before the gateway took it.
type Draft struct {
	To        parley.ContactID
	Content   parley.Content
	ReplyTo   parley.MessageID
	Request   string    // the id of the request that sends it
	Urgent    bool      // goes ahead of everything else in the channel's queue
	ExpiresAt time.Time // not to be sent after; zero: as the channel says
}

// Accepted are messages that the gateway took: they are on disk.
type Accepted struct {
	g    *Gateway
	done chan struct{} // closed when all are settled

	mu       sync.Mutex
	messages []parley.Message
	open     int  // not settled
	told     bool // whoever waited has the messages: they must not change any more
}

// Accept stores drafts in one transaction, in order, and hands them to the channel's worker. When it
// returns they are durable, whatever happens to the process. With several drafts, after one fails
// the later ones are not sent. The key, if not nil, is stored in the same transaction; where it is
// there already the error is [parley.ErrExists].
func (g *Gateway) Accept(ctx context.Context, code parley.ChannelCode, drafts []Draft, key *parley.Answer) (*Accepted, error) {
	return g.AcceptWith(ctx, code, drafts, key, nil)
}

// AcceptWith is Accept with more to store in the same transaction, before the messages: if that fails,
// nothing is kept and its error is returned.
func (g *Gateway) AcceptWith(ctx context.Context, code parley.ChannelCode, drafts []Draft, key *parley.Answer, also func(parley.Tx) error) (*Accepted, error) {
	a, err := g.account(code)
	if err != nil {
		return nil, err
	}
	channel := a.snapshot()
	for _, d := range drafts {
		if err := channel.Accepts(d.To); err != nil {
			return nil, err
		}
	}
	if a.worker.Depth()+len(drafts) > MaxQueue {
		return nil, &parley.Error{Code: parley.TooMany, RetryAfter: 10 * time.Second,
			Message: fmt.Sprintf("Channel %s has %d messages waiting and takes no more until some are sent.", code, MaxQueue)}
	}
	acc := &Accepted{g: g, done: make(chan struct{}), messages: a.messages(channel, drafts), open: len(drafts)}
	if err := a.store(ctx, acc, key, also); err != nil {
		return nil, err
	}
	g.measures.accepted.Add(float64(len(drafts)))
	return acc, nil
}

// messages makes messages of drafts.
func (a *account) messages(channel parley.Channel, drafts []Draft) []parley.Message {
	now := a.now()
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
			Channel: channel.Code, Chat: d.To, FromMe: true,
			Content: d.Content, ReplyTo: d.ReplyTo, Request: d.Request, Status: parley.Pending,
			Urgent: d.Urgent, Pool: pool, ExpiresAt: expires, CreatedAt: now, UpdatedAt: now,
		}
	}
	return ms
}

// store writes messages and key, and has them handed to the worker in the order of their commits.
func (a *account) store(ctx context.Context, acc *Accepted, key *parley.Answer, also func(parley.Tx) error) error {
	return a.g.Store.Tx(ctx, func(tx parley.Tx) error {
		if a.retired.Load() {
			return errGoingLive(a.snapshot().Code)
		}
		if also != nil {
			if err := also(tx); err != nil {
				return err
			}
		}
		tx.OnCommit(func() { a.g.waiting.add(acc) }) // before the worker has them
		if err := a.storeAll(ctx, tx, acc.messages); err != nil || key == nil {
			return err
		}
		key.Channel = a.snapshot().Code
		key.Messages = key.Messages[:0]
		for i := range acc.messages {
			key.Messages = append(key.Messages, acc.messages[i].Ref())
		}
		return tx.AddAnswer(ctx, *key)
	})
}

// storeAll writes messages, which get their ids thereby, and has them handed to the worker once they are
// committed.
func (a *account) storeAll(ctx context.Context, tx parley.Tx, ms []parley.Message) error {
	for i := range ms {
		ms[i].ID = "" // one of an earlier run was not kept
		if err := a.storeOne(ctx, tx, &ms[i]); err != nil {
			return err
		}
	}
	tx.OnCommit(func() {
		queued := make([]*parley.Message, len(ms)) // the worker's own copies
		for i := range ms {
			m := ms[i]
			queued[i] = &m
		}
		a.worker.Push(queued...)
	})
	return nil
}

func (a *account) storeOne(ctx context.Context, tx parley.Tx, m *parley.Message) error {
	if d, ok := m.Content.(parley.Delete); ok {
		if err := a.withdraw(ctx, tx, d.Target, m.CreatedAt); err != nil {
			return err
		}
	}
	return tx.AddMessage(ctx, m)
}

// withdraw keeps a message that is deleted before it was sent from being sent at all. The deletion
// goes to the network nevertheless: the send may be under way at this moment.
func (a *account) withdraw(ctx context.Context, tx parley.Tx, target parley.MessageRef, now time.Time) error {
	m, err := tx.Message(ctx, a.snapshot().Code, target)
	if err != nil {
		return err
	}
	if m.Status != parley.Pending {
		return nil // it is deleted once the network confirms
	}
	if _, err := tx.AdvanceMessage(ctx, m.Channel, m.Ref(), parley.Deleted, nil, now); err != nil {
		return err
	}
	tx.OnCommit(func() { a.worker.Drop(m.Ref()) })
	return nil
}

// Wait returns the messages as they stand once all are settled, or after d, or when ctx ends. Without
// a wait they are as they were accepted, however fast the network was: pending. It is called once.
func (acc *Accepted) Wait(ctx context.Context, d time.Duration) []parley.Message {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-acc.done:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	acc.g.waiting.remove(acc)
	acc.mu.Lock()
	defer acc.mu.Unlock()
	acc.told = true
	if d <= 0 {
		for i := range acc.messages {
			m := &acc.messages[i]
			m.Status, m.Failure, m.UpdatedAt = parley.Pending, nil, m.CreatedAt
		}
	}
	return acc.messages
}

// settle takes over what became of a message. A receipt may be faster than the confirmation that it
// implies; whoever waits for that is told that it was sent.
func (acc *Accepted) settle(i int, m *parley.Message) {
	acc.mu.Lock()
	defer acc.mu.Unlock()
	own := &acc.messages[i]
	if acc.told || own.Status.IsSettled() {
		return
	}
	own.Status, own.Failure, own.UpdatedAt = m.Status, m.Failure, m.UpdatedAt
	if m.Status == parley.Delivered || m.Status == parley.Read || m.Status == parley.Played {
		own.Status = parley.Sent
	}
	if acc.open--; acc.open == 0 {
		close(acc.done)
	}
}

// Stand returns messages that were accepted earlier as they stand now, for a request that is asked
// again.
func (g *Gateway) Stand(ctx context.Context, code parley.ChannelCode, refs []parley.MessageRef) ([]parley.Message, error) {
	g.flush(ctx, code)
	ms := make([]parley.Message, len(refs))
	for i, ref := range refs {
		var err error
		if ms[i], err = g.Store.Message(ctx, code, ref); err != nil {
			return nil, fmt.Errorf("message %s: %w", ref.ID, err)
		}
	}
	return ms, nil
}

// History reads a chat's records, newest first, and how many there are. What was answered to be sent
// reads as sent.
func (g *Gateway) History(ctx context.Context, code parley.ChannelCode, chat parley.ContactID, page parley.Page) ([]parley.Message, int64, error) {
	g.flush(ctx, code)
	return g.Store.History(ctx, code, chat, page)
}

// flush has the store know what became of a channel's messages. If that takes long, something is
// wrong with the store, and reading will tell.
func (g *Gateway) flush(ctx context.Context, code parley.ChannelCode) {
	a, err := g.account(code)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := a.worker.Flush(ctx); err != nil {
		g.Log.Warn("statuses are behind", "channel", code, "err", err)
	}
}

// waiting knows which requests wait for which messages.
type waiting struct {
	mu   sync.Mutex
	byID map[parley.MessageID]waiter
}

type waiter struct {
	accepted *Accepted
	index    int
}

func (w *waiting) add(acc *Accepted) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range acc.messages {
		w.byID[acc.messages[i].ID] = waiter{acc, i}
	}
}

func (w *waiting) remove(acc *Accepted) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range acc.messages {
		delete(w.byID, acc.messages[i].ID)
	}
}

// settled tells whoever waits for a message what became of it.
func (g *Gateway) settled(m *parley.Message) {
	g.waiting.mu.Lock()
	waiter, ok := g.waiting.byID[m.ID]
	g.waiting.mu.Unlock()
	if ok {
		waiter.accepted.settle(waiter.index, m)
	}
	g.measures.settled(m)
	if g.activity.Watched() {
		g.activity.Publish(activityOf(m))
	}
}

// gone forgives that a row is not there any more: its channel was deleted meanwhile.
func gone(err error) error {
	if errors.Is(err, parley.ErrNotFound) {
		return nil
	}
	return err
}
