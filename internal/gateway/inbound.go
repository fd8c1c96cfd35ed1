package gateway

import (
	"context"
	"errors"
	"fmt"

	"parley"
	"parley/internal/media"
	"parley/internal/network"
	"parley/internal/otp"
	"parley/internal/store"
)

// sink takes what arrives on the channel's session. It returns nil only when what arrived is safely
// kept: then the network may forget it.
func (a *account) sink(ctx context.Context, e network.Event) error {
	switch e := e.(type) {
	case network.State:
		if err := a.changeAccount(ctx, e.Phone); err != nil {
			return err
		}
		a.setState(ctx, e)
		return nil
	case network.Message:
		return a.receive(ctx, e)
	case network.Receipt:
		return a.receipt(ctx, e)
	case network.Reaction:
		return a.reaction(ctx, e)
	case network.Deletion:
		return a.deletion(ctx, e)
	case network.Vote:
		return a.vote(ctx, e)
	case network.Alias:
		return a.alias(ctx, e)
	case network.Pairing:
		return a.paired(ctx, parley.Pairing(e))
	}
	return fmt.Errorf("unknown event %T", e)
}

// receive stores a message that somebody sent to the channel, once. Its file is fetched afterwards: nobody
// waits for it.
func (a *account) receive(ctx context.Context, e network.Message) error {
	channel := a.snapshot()
	content := e.Content
	if file := parley.MediaOf(content); file != nil {
		content = parley.WithMedia(content, media.Claimed(*file))
	}
	m := parley.Message{
		Channel: channel.Code, Chat: e.From, ID: e.ID, Content: content, ReplyTo: e.ReplyTo,
		Status: parley.Received, CreatedAt: e.At, UpdatedAt: e.At, ReceivedAt: a.now(),
	}
	then, err := a.findLoginCode(ctx, channel, &m)
	if err == nil {
		err = a.tx(ctx, func(tx *store.Tx) error {
			if e.History {
				return a.keepHistory(ctx, tx, channel, &m)
			}
			follows := then
			if e.Past { // nothing follows from it
				follows = nil
			}
			if err := a.keep(ctx, tx, channel, &m, follows); err != nil {
				return err
			}
			return a.enqueueFile(ctx, tx, channel, &m, e.File)
		})
	}
	if errors.Is(err, parley.ErrExists) {
		return nil // the network gave it again
	}
	if err != nil {
		return fmt.Errorf("keep an inbound message: %w", err)
	}
	if e.History {
		return nil
	}
	a.g.measures.received.Inc()
	a.g.activity.Publish(activityOf(&m))
	return nil
}

// enqueueFile stores that the file of a message is to be fetched. A channel that keeps no text keeps no files.
func (a *account) enqueueFile(ctx context.Context, tx *store.Tx, channel parley.Channel, m *parley.Message, reference []byte) error {
	if reference == nil || !m.Content.Kind().IsMedia() || !channel.Settings.KeepsText() {
		return nil
	}
	now := a.g.Clock()
	tx.OnCommit(a.g.fetcher.wake)
	return tx.AddMediaFetch(ctx, parley.MediaFetch{
		Seq: m.Seq, Channel: channel.Code, Chat: m.Chat, NextAt: now, CreatedAt: now,
		Reference: a.g.Keyring.Encrypt(reference, parley.MediaReferenceContext(channel.Code)),
	})
}

// keep stores an inbound message, publishes it, and does what follows from it, where then is not nil: all of
// it or nothing. Of a channel that keeps no text the event has it, encrypted, until everybody was told.
func (a *account) keep(ctx context.Context, tx *store.Tx, channel parley.Channel, m *parley.Message, then func(*store.Tx) ([]otp.Reply, error)) error {
	if err := tx.AddMessage(ctx, m); err != nil {
		return err
	}
	event := parley.Event{Type: parley.MessageReceived, Channel: channel.Code, At: m.CreatedAt, Message: m}
	if !channel.Settings.KeepsText() {
		if text := m.Content.Text(); text != "" {
			event.Encrypted = a.g.Keyring.Encrypt([]byte(text), parley.EventTextContext(channel.Code))
		}
		if err := tx.EraseMessage(ctx, channel.Code, m.Ref()); err != nil {
			return err
		}
	}
	if err := tx.AddEvent(ctx, &event); err != nil || then == nil {
		return err
	}
	replies, err := then(tx)
	if err != nil || len(replies) == 0 {
		return err
	}
	drafts := make([]Draft, len(replies))
	for i, r := range replies {
		drafts[i] = Draft{To: r.To, Content: r.Content, Priority: parley.PriorityKnown}
	}
	return a.storeAll(ctx, tx, a.messages(channel, drafts))
}

// findLoginCode masks the code of a login link in a message before it is stored, and returns what follows; nil: nothing.
// History is searched too: a channel that is linked again gets what was said shortly before, and that may hold the code of
// a login link that is still open.
func (a *account) findLoginCode(ctx context.Context, channel parley.Channel, m *parley.Message) (func(*store.Tx) ([]otp.Reply, error), error) {
	if a.g.LoginLinks == nil {
		return nil, nil
	}
	return a.g.LoginLinks.MatchMessage(ctx, channel, m)
}

// keepHistory stores a message from before the channel was linked. It is not published, and nothing follows
// from it.
func (a *account) keepHistory(ctx context.Context, tx *store.Tx, channel parley.Channel, m *parley.Message) error {
	if err := tx.AddMessage(ctx, m); err != nil || channel.Settings.KeepsText() {
		return err
	}
	return tx.EraseMessage(ctx, channel.Code, m.Ref())
}

// receipt moves messages on. Those that the store does not know are refused, after the others were
// moved, so that the network gives them again: a receipt can overtake its own send.
func (a *account) receipt(ctx context.Context, e network.Receipt) error {
	code := a.snapshot().Code
	var moved, unknown []parley.MessageID
	var seqs []int64
	err := a.tx(ctx, func(tx *store.Tx) (err error) {
		moved, seqs, unknown, err = tx.AdvanceMessages(ctx, code, e.From, e.IDs, e.Status, e.At)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep a receipt: %w", err)
	}
	a.worker.ConfirmByReceipt(seqs)
	for _, id := range moved {
		a.g.settled(&parley.Message{Channel: code, Chat: e.From, ID: id, FromMe: true, Status: e.Status, UpdatedAt: e.At})
	}
	if len(unknown) > 0 {
		return &network.UnknownMessages{IDs: unknown}
	}
	return nil
}

// reaction keeps what a contact reacted with. A reaction to something from before our time is of no
// use to anybody.
func (a *account) reaction(ctx context.Context, e network.Reaction) error {
	code := a.snapshot().Code
	a.g.flush(ctx, code) // its event must not come before the one that the message was sent
	return a.tx(ctx, func(tx *store.Tx) error {
		target, err := tx.Message(ctx, code, e.Target)
		if err != nil {
			return gone(err)
		}
		if err := tx.SetReaction(ctx, code, e.Target, e.From, e.Emoji); err != nil {
			return gone(err)
		}
		return tx.AddEvent(ctx, parley.NewReactionEvent(&target, e.From, e.Emoji, e.At))
	})
}

// alias stores another spelling of a contact's number. What waits for it is one queue from then on.
func (a *account) alias(ctx context.Context, e network.Alias) error {
	err := a.tx(ctx, func(tx *store.Tx) error {
		tx.OnCommit(func() { a.worker.MergeChats(e.Asked, e.Contact) })
		return tx.AddAlias(ctx, a.snapshot().Code, e.Asked, e.Contact)
	})
	if err != nil {
		return fmt.Errorf("store the spelling of a number: %w", err)
	}
	return nil
}

// vote tells what a contact chose in one of our polls. Votes are no records: only the event is kept, and
// encrypted where the channel keeps no text.
func (a *account) vote(ctx context.Context, e network.Vote) error {
	channel := a.snapshot()
	code := channel.Code
	a.g.flush(ctx, code)
	return a.tx(ctx, func(tx *store.Tx) error {
		poll, err := tx.Message(ctx, code, parley.MessageRef{FromMe: true, Chat: e.From, ID: e.Poll})
		if err != nil {
			return gone(err)
		}
		event := parley.NewVoteEvent(&poll, e.From, e.Options, e.At)
		if !channel.Settings.KeepsText() {
			event.Encrypted = a.g.Keyring.Encrypt(event.Data, parley.EventTextContext(code))
			event.Data = parley.NewVoteEvent(&poll, e.From, nil, e.At).Data
		}
		return tx.AddEvent(ctx, event)
	})
}

// deletion takes back what the contact had sent: the record stays, what it said goes.
func (a *account) deletion(ctx context.Context, e network.Deletion) error {
	code := a.snapshot().Code
	ref := parley.MessageRef{Chat: e.From, ID: e.Target}
	var file *parley.Media
	err := a.tx(ctx, func(tx *store.Tx) error {
		m, err := tx.Message(ctx, code, ref)
		if err != nil {
			return gone(err)
		}
		file = parley.MediaOf(m.Content)
		if _, err := tx.AdvanceMessage(ctx, code, ref, parley.Deleted, nil, e.At); err != nil {
			return err
		}
		return tx.EraseMessage(ctx, code, ref)
	})
	if err != nil {
		return fmt.Errorf("keep a deletion: %w", err)
	}
	if file != nil {
		a.g.removeMedia(*file)
	}
	return nil
}

func (g *Gateway) removeMedia(m parley.Media) {
	if m.Key == "" {
		return
	}
	if err := g.Media.Remove(m.Key); err != nil {
		g.Log.Warn("remove a file", "key", m.Key, "error", err)
	}
}
