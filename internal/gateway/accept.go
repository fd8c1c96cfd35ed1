package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley"
	"parley/internal/store"
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
	ExpiresAt time.Time // not to be sent after; zero: as the channel says
	Priority  parley.Priority
}

// SendOptions are what is agreed on the sending of messages. The zero value waits for nothing and keeps nothing
// beside them.
type SendOptions struct {
	// Wait is how long the network may take to confirm them all. Zero: nobody waits, and they are answered
	// as they were accepted, however fast the network was: pending.
	Wait time.Duration
	// Key, if not nil, is stored in the transaction that accepts them; where it is there already the error
	// is [parley.ErrExists].
	Key *parley.Answer
	// InTx, if not nil, stores more in that transaction, before the messages: if it fails, nothing is kept
	// and its error is returned.
	InTx func(*store.Tx) error
}

// Send stores drafts in one transaction, in order, and has the channel's worker send them. When it returns
// without an error they are durable, whatever happens to the process, and as they stand once all are
// settled or the wait is over. With several drafts, after one fails the later ones are not sent.
//
// It sleeps once, from handing them in to their end, not once more for the disk: that is a switch less for
// each request, and nothing is asked more often.
func (g *Gateway) Send(ctx context.Context, code parley.ChannelCode, drafts []Draft, terms SendOptions) ([]parley.Message, error) {
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
	s := newSending(a.messages(channel, drafts), terms.Wait)
	g.Store.Begin(ctx, a.storing(ctx, s, terms), s.kept)
	<-s.done // even if ctx ends: the caller must know whether they are durable
	if s.err != nil {
		return nil, s.err
	}
	if terms.Wait > 0 {
		g.waiting.remove(s)
	}
	g.measures.accepted.Add(float64(len(drafts)))
	sent := slices.Clone(s.messages) // the writer may still be copying them for the worker
	for i := range sent {
		sent[i].Chat = s.asked[i]
	}
	return sent, nil
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
			Priority: d.Priority, Pool: pool, ExpiresAt: expires, CreatedAt: now, UpdatedAt: now,
		}
	}
	return ms
}

// storing is the transaction that accepts messages. It has them handed to the worker in the order of their
// commits.
func (a *account) storing(ctx context.Context, s *sending, terms SendOptions) func(*store.Tx) error {
	return a.checked(ctx, func(tx *store.Tx) error {
		if terms.InTx != nil {
			if err := terms.InTx(tx); err != nil {
				return err
			}
		}
		if terms.Wait > 0 {
			tx.OnCommit(func() { a.g.waiting.add(s) }) // before the worker has them
		}
		key := terms.Key
		if key != nil {
			for i := range s.messages {
				s.messages[i].IdempotencyKey = key.Key
			}
		}
		if err := a.storeAll(ctx, tx, s.messages); err != nil || key == nil {
			return err
		}
		key.Channel = a.snapshot().Code
		key.Messages = key.Messages[:0]
		for i := range s.messages {
			ref := s.messages[i].Ref()
			ref.Chat = s.asked[i]
			key.Messages = append(key.Messages, ref)
		}
		return tx.AddStoredResponse(ctx, *key)
	})
}

// storeAll writes messages, which get their ids thereby, and has them handed to the worker once they are
// committed.
func (a *account) storeAll(ctx context.Context, tx *store.Tx, ms []parley.Message) error {
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
		a.current().worker.Enqueue(queued...)
	})
	return nil
}

// current is the account that runs the channel now: another one where this one ended meanwhile.
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

func (a *account) storeOne(ctx context.Context, tx *store.Tx, m *parley.Message) error {
	if d, ok := m.Content.(parley.Delete); ok {
		if err := a.withdraw(ctx, tx, d.Target, m.CreatedAt); err != nil {
			return err
		}
	}
	return tx.AddMessage(ctx, m)
}

// withdraw keeps a message that is deleted before it was sent from being sent at all. The deletion
// goes to the network nevertheless: the send may be under way at this moment.
func (a *account) withdraw(ctx context.Context, tx *store.Tx, target parley.MessageRef, now time.Time) error {
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
	tx.OnCommit(func() { a.worker.Cancel(m.Seq) })
	return nil
}

// CurrentMessages returns messages that were accepted earlier as they stand now, for a request that is asked
// again. They have the spelling of the contact that is in the references.
func (g *Gateway) CurrentMessages(ctx context.Context, code parley.ChannelCode, refs []parley.MessageRef) ([]parley.Message, error) {
	g.flush(ctx, code)
	ms := make([]parley.Message, len(refs))
	for i, ref := range refs {
		var err error
		if ms[i], err = g.Store.Message(ctx, code, ref); err != nil {
			return nil, fmt.Errorf("message %s: %w", ref.ID, err)
		}
		ms[i].Chat = ref.Chat // as it was asked for
	}
	return ms, nil
}

// History reads a chat's records, newest first, and how many there are. What was answered to be sent
// reads as sent.
func (g *Gateway) History(ctx context.Context, code parley.ChannelCode, chat parley.ContactID, page parley.Page) ([]parley.Message, int64, error) {
	g.flush(ctx, code)
	return g.Store.History(ctx, code, chat, page)
}

// flushLimit is how long a reader waits for statuses to be stored.
const flushLimit = 2 * time.Second

// flush has the store know what became of a channel's messages. If that takes long, something is
// wrong with the store, and reading will tell.
func (g *Gateway) flush(ctx context.Context, code parley.ChannelCode) {
	a, err := g.account(code)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flushLimit)
	defer cancel()
	if err := a.worker.Flush(ctx); err != nil {
		g.Log.Warn("statuses are behind", "channel", code, "error", err)
	}
}

// gone forgives that a row is not there any more: its channel was deleted meanwhile.
func gone(err error) error {
	if errors.Is(err, parley.ErrNotFound) {
		return nil
	}
	return err
}
