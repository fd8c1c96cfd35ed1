package gateway

import (
	"context"
	"errors"
	"fmt"

	"parley"
	"parley/internal/network"
)

// sink takes what arrives on the channel's session. It returns nil only when what arrived is safely
// kept: then the network may forget it.
func (a *account) sink(ctx context.Context, e network.Event) error {
	switch e := e.(type) {
	case network.State:
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
	case network.Pairing:
		return a.paired(ctx, parley.Pairing(e))
	}
	return fmt.Errorf("unknown event %T", e)
}

// receive stores a message that somebody sent to the channel, once.
func (a *account) receive(ctx context.Context, e network.Message) error {
	channel := a.snapshot()
	content, err := a.keepMedia(e)
	if err != nil {
		return err
	}
	m := parley.Message{
		Channel: channel.Code, Chat: e.From, ID: e.ID, Content: content, ReplyTo: e.ReplyTo,
		Status: parley.Received, CreatedAt: e.At, UpdatedAt: e.At,
	}
	err = a.tx(ctx, func(tx parley.Tx) error {
		m.Content = content // it may run again
		if e.History {
			return a.keepHistory(ctx, tx, channel, &m)
		}
		return a.keep(ctx, tx, channel, &m, e.Past)
	})
	if err != nil || !channel.Settings.KeepsText() {
		if media := parley.MediaOf(content); media != nil {
			a.g.removeMedia(*media)
		}
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

// keep stores an inbound message, tells of it, and does what follows from it: all of it or nothing. Of
// a channel that keeps no text the event has it, encrypted, until everybody was told. From a message of
// the past nothing follows.
func (a *account) keep(ctx context.Context, tx parley.Tx, channel parley.Channel, m *parley.Message, past bool) error {
	then, err := a.show(ctx, tx, channel, m)
	if err != nil {
		return err
	}
	if err := tx.AddMessage(ctx, m); err != nil {
		return err
	}
	event := parley.Event{Type: parley.MessageReceived, Channel: channel.Code, At: m.CreatedAt, Message: m}
	if !channel.Settings.KeepsText() {
		if text := m.Content.Text(); text != "" {
			event.Sealed = a.g.Sealer.Seal([]byte(text), parley.SealedEventText(channel.Code))
		}
		if err := tx.EraseMessage(ctx, channel.Code, m.Ref()); err != nil {
			return err
		}
	}
	if err := tx.AddEvent(ctx, &event); err != nil || then == nil || past {
		return err
	}
	replies, err := then()
	if err != nil || len(replies) == 0 {
		return err
	}
	return a.storeAll(ctx, tx, a.messages(channel, replies))
}

// show lets the hook see a message before it is stored, and mask what must not be. It returns what is
// to follow; nil: nothing.
func (a *account) show(ctx context.Context, tx parley.Tx, channel parley.Channel, m *parley.Message) (func() ([]Draft, error), error) {
	if a.g.Inbound == nil {
		return nil, nil
	}
	return a.g.Inbound(ctx, tx, channel, m)
}

// keepHistory stores a message from before the channel was linked. Nobody is told of it, and nothing
// follows from it. But it is shown to the hook: a channel that is linked anew gets what was said
// shortly before, and that may hold the code of a login link that is still open.
func (a *account) keepHistory(ctx context.Context, tx parley.Tx, channel parley.Channel, m *parley.Message) error {
	if _, err := a.show(ctx, tx, channel, m); err != nil {
		return err
	}
	if err := tx.AddMessage(ctx, m); err != nil || channel.Settings.KeepsText() {
		return err
	}
	return tx.EraseMessage(ctx, channel.Code, m.Ref())
}

// keepMedia puts the file that came with a message beside the database and returns the content that
// names it.
func (a *account) keepMedia(e network.Message) (parley.Content, error) {
	old := parley.MediaOf(e.Content)
	if old == nil || e.Media == nil {
		return e.Content, nil
	}
	kept, err := a.g.Media.Keep(e.Media, old.Filename)
	if err != nil {
		return nil, fmt.Errorf("keep an inbound file: %w", err)
	}
	switch c := e.Content.(type) {
	case parley.Image:
		return parley.Image{Caption: c.Caption, Media: kept}, nil
	case parley.Video:
		return parley.Video{Caption: c.Caption, Media: kept}, nil
	case parley.File:
		return parley.File{Caption: c.Caption, Media: kept}, nil
	case parley.Voice:
		kept.Seconds, kept.Waveform = c.Media.Seconds, c.Media.Waveform
		return parley.Voice{Media: kept}, nil
	}
	return e.Content, nil
}

// receipt moves messages on. One that the store does not know is refused, after the others were
// moved, so that the network gives it again: a receipt can overtake its own send.
func (a *account) receipt(ctx context.Context, e network.Receipt) error {
	code := a.snapshot().Code
	var moved []parley.MessageID
	var seqs []int64
	var unknown int
	err := a.tx(ctx, func(tx parley.Tx) (err error) {
		moved, seqs, unknown, err = tx.AdvanceMessages(ctx, code, e.From, e.IDs, e.Status, e.At)
		return err
	})
	if err != nil {
		return fmt.Errorf("keep a receipt: %w", err)
	}
	a.worker.Received(seqs)
	for _, id := range moved {
		a.g.settled(&parley.Message{Channel: code, Chat: e.From, ID: id, FromMe: true, Status: e.Status, UpdatedAt: e.At})
	}
	if unknown > 0 {
		return fmt.Errorf("%d of %d messages of a receipt are not known: %w", unknown, len(e.IDs), parley.ErrNotFound)
	}
	return nil
}

// reaction keeps what a contact reacted with. A reaction to something from before our time is of no
// use to anybody.
func (a *account) reaction(ctx context.Context, e network.Reaction) error {
	code := a.snapshot().Code
	a.g.flush(ctx, code) // its event must not come before the one that the message was sent
	return a.tx(ctx, func(tx parley.Tx) error {
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

// vote tells what a contact chose in one of our polls. Votes are no records: only the event is kept, and
// encrypted where the channel keeps no text.
func (a *account) vote(ctx context.Context, e network.Vote) error {
	channel := a.snapshot()
	code := channel.Code
	a.g.flush(ctx, code)
	return a.tx(ctx, func(tx parley.Tx) error {
		poll, err := tx.Message(ctx, code, parley.MessageRef{FromMe: true, Chat: e.From, ID: e.Poll})
		if err != nil {
			return gone(err)
		}
		event := parley.NewVoteEvent(&poll, e.From, e.Options, e.At)
		if !channel.Settings.KeepsText() {
			event.Sealed = a.g.Sealer.Seal(event.Data, parley.SealedEventText(code))
			event.Data = parley.NewVoteEvent(&poll, e.From, nil, e.At).Data
		}
		return tx.AddEvent(ctx, event)
	})
}

// deletion takes back what the contact had sent: the record stays, what it said goes.
func (a *account) deletion(ctx context.Context, e network.Deletion) error {
	code := a.snapshot().Code
	ref := parley.MessageRef{Chat: e.From, ID: e.Target}
	var media *parley.Media
	err := a.tx(ctx, func(tx parley.Tx) error {
		m, err := tx.Message(ctx, code, ref)
		if err != nil {
			return gone(err)
		}
		media = parley.MediaOf(m.Content)
		if _, err := tx.AdvanceMessage(ctx, code, ref, parley.Deleted, nil, e.At); err != nil {
			return err
		}
		return tx.EraseMessage(ctx, code, ref)
	})
	if err != nil {
		return fmt.Errorf("keep a deletion: %w", err)
	}
	if media != nil {
		a.g.removeMedia(*media)
	}
	return nil
}

func (g *Gateway) removeMedia(m parley.Media) {
	if m.Key == "" {
		return
	}
	if err := g.Media.Remove(m.Key); err != nil {
		g.Log.Warn("remove a file", "key", m.Key, "err", err)
	}
}
