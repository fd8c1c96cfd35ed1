package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley"
	"parley/internal/media"
	"parley/internal/network"
	"parley/internal/otp"
	"parley/internal/outbox"
	"parley/internal/store"
)

// handleEvent stores an event of the channel's session. It returns nil only when the event is durable: then the network
// may drop it.
func (a *account) handleEvent(ctx context.Context, e network.Event) error {
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
		return a.applyReceipt(ctx, e)
	case network.Reaction:
		return a.storeReaction(ctx, e)
	case network.Deletion:
		return a.applyDeletion(ctx, e)
	case network.Edit:
		return a.applyEdit(ctx, e)
	case network.Vote:
		return a.publishVote(ctx, e)
	case network.GroupChange:
		return a.tx(ctx, func(tx *store.Tx) error { return tx.AddEvent(ctx, parley.NewGroupEvent(a.code, e.GroupChange, e.At)) })
	case network.PhoneCall:
		return a.handleCall(ctx, parley.PhoneCall(e))
	case network.Unreadable:
		return a.tx(ctx, func(tx *store.Tx) error {
			return tx.AddEvent(ctx, parley.NewUnreadableEvent(a.code, parley.Unreadable(e)))
		})
	case network.Copies:
		ref := parley.MessageRef{FromMe: true, Chat: e.To, ID: e.ID}
		return a.tx(ctx, func(tx *store.Tx) error {
			return parley.IgnoreNotFound(tx.SetCopies(ctx, a.code, ref, e.Copies, a.now()))
		})
	case network.Notice:
		return a.tx(ctx, func(tx *store.Tx) error {
			return tx.AddEvent(ctx, parley.NewNoticeEvent(a.code, parley.Notice(e), a.now()))
		})
	case network.Alias:
		return a.storeAlias(ctx, e)
	case network.Restriction:
		return a.restrict(ctx, e.Active, e.Until)
	case network.Ban:
		return a.ban(ctx, e.Until)
	case network.Pairing:
		return a.publishPairing(ctx, parley.Pairing(e))
	}
	return fmt.Errorf("unknown event %T", e)
}

// receive stores an inbound message once. Its file is fetched later, so that other messages do not wait.
func (a *account) receive(ctx context.Context, e network.Message) error {
	channel := a.snapshot()
	content := e.Content
	if file := parley.MediaIn(content); file != nil {
		content = parley.WithMedia(content, media.Claimed(*file))
	}
	m := parley.Message{
		Channel: channel.Code, Chat: network.ToChat(e.From, e.Group), ID: e.ID, Content: content, ReplyTo: e.ReplyTo,
		Status: parley.Received, CreatedAt: e.At, UpdatedAt: e.At, ReceivedAt: a.now(),
	}
	switch {
	case e.Own:
		m.FromMe, m.Status = true, parley.Sent
	case e.Group != "":
		m.Author = e.From
	}
	var hit *otp.Hit
	var err error
	if a.g.config.LoginLinks != nil && !e.Own { // also for history: it may hold the code of a login link that is still open
		hit, err = a.g.config.LoginLinks.MatchMessage(ctx, channel, &m)
	}
	if e.Past || e.Group != "" { // a code that is posted in a group is masked, but it is no login
		hit = nil
	}
	var optOut, asked bool
	if !e.Past && !e.History && !e.Own && e.Group == "" && hit == nil {
		optOut, asked = channel.Settings.OptOut.Asked(content)
	}
	if err == nil {
		err = a.tx(ctx, func(tx *store.Tx) error {
			if e.History { // from before the channel was linked: not published
				return tx.ReceiveMessage(ctx, &m, channel.Settings.StoresText())
			}
			if err := a.storeInbound(ctx, tx, channel, &m, hit, asked); err != nil {
				return err
			}
			if asked {
				return a.applyOptOut(ctx, tx, channel, &m, optOut)
			}
			a.enqueueFile(ctx, tx, channel, &m, e.File)
			return nil
		})
	}
	if errors.Is(err, parley.ErrExists) {
		return nil // the network sent it again
	}
	if err != nil {
		return fmt.Errorf("store an inbound message: %w", err)
	}
	if e.History || m.Seq == 0 { // 0: the network sent it again
		return nil
	}
	if !e.Own {
		a.g.metrics.received.Inc()
	}
	a.g.activity.Publish(toActivity(&m))
	return nil
}

// enqueueFile enqueues the file of a message for the fetcher. A channel that stores no text stores no files.
func (a *account) enqueueFile(ctx context.Context, tx *store.Tx, channel parley.Channel, m *parley.Message, reference []byte) {
	if reference == nil || !m.Content.Kind().IsMedia() || !channel.Settings.StoresText() {
		return
	}
	now := a.g.Clock()
	tx.OnCommit(a.g.fetcher.wake)
	encrypted := a.g.config.Keyring.Encrypt(reference, parley.MediaReferenceContext(channel.Code))
	tx.WhenStored(m, func() error {
		return tx.AddMediaFetch(ctx, parley.MediaFetch{
			Seq: m.Seq, Channel: channel.Code, Chat: m.Chat, NextAt: now, CreatedAt: now, Reference: encrypted,
		})
	})
}

// storeInbound stores and publishes an inbound message, redeems the login link that it hits, if any, and enqueues the reply. One that
// acts must be new, or [parley.ErrExists] undoes everything. If the channel stores no text, only the event has it, encrypted, until it
// is delivered.
func (a *account) storeInbound(
	ctx context.Context, tx *store.Tx, channel parley.Channel, m *parley.Message, hit *otp.Hit, acts bool,
) error {
	var err error
	if text := channel.Settings.StoresText(); hit == nil && !acts {
		err = tx.ReceiveMessage(ctx, m, text)
	} else if err = tx.AddMessage(ctx, m); err == nil && !text {
		err = tx.EraseMessage(ctx, channel.Code, m.Ref())
	}
	if err != nil {
		return err
	}
	kind := parley.MessageReceived
	if m.FromMe {
		kind = parley.MessageSentOnPhone
	}
	event := parley.Event{Type: kind, Channel: channel.Code, At: m.CreatedAt, Message: m}
	if !channel.Settings.StoresText() {
		content, err := parley.EncodeEventContent(m.Content)
		if err != nil {
			return err
		}
		if len(content) > 0 {
			event.Encrypted = a.g.config.Keyring.Encrypt(content, parley.EventTextContext(channel.Code))
		}
	}
	if err := tx.AddEvent(ctx, &event); err != nil || hit == nil {
		return err
	}
	reply, err := a.g.config.LoginLinks.Redeem(ctx, tx, channel, hit)
	if err != nil || reply == nil {
		return err
	}
	draft := Draft{To: reply.To, Content: reply.Content, Priority: parley.PriorityKnown}
	return a.enqueue(ctx, tx, a.newMessages(channel, []Draft{draft}))
}

func (a *account) storeReaction(ctx context.Context, e network.Reaction) error {
	a.g.flush(ctx, a.code) // the event that the message was sent must come first
	return a.tx(ctx, func(tx *store.Tx) error {
		return outbox.StoreReaction(ctx, tx, a.code, e.Target, e.From, e.Emoji, e.At)
	})
}

func (a *account) storeAlias(ctx context.Context, e network.Alias) error {
	return a.tx(ctx, func(tx *store.Tx) error {
		tx.OnCommit(func() { a.worker.MergeChats(e.Asked, e.Contact) })
		return tx.AddAlias(ctx, a.code, e.Asked, e.Contact)
	})
}

// publishVote publishes a contact's vote in a poll of the channel. Only the event has it, encrypted if the channel stores
// no text.
func (a *account) publishVote(ctx context.Context, e network.Vote) error {
	a.g.flush(ctx, a.code)
	return a.tx(ctx, func(tx *store.Tx) error {
		poll, err := tx.Message(ctx, a.code, parley.MessageRef{FromMe: true, Chat: network.ToChat(e.From, e.Group), ID: e.Poll})
		if err != nil {
			return parley.IgnoreNotFound(err)
		}
		event := parley.NewVoteEvent(&poll, e.From, e.Options, e.At)
		if !a.snapshot().Settings.StoresText() {
			event.Encrypted = a.g.config.Keyring.Encrypt(event.Data, parley.EventTextContext(a.code))
			event.Data = parley.NewVoteEvent(&poll, e.From, nil, e.At).Data
		}
		return tx.AddEvent(ctx, event)
	})
}

func (a *account) applyDeletion(ctx context.Context, e network.Deletion) error {
	var file *parley.Media
	err := a.tx(ctx, func(tx *store.Tx) (err error) {
		file = nil // an earlier run of the transaction may have set it
		ref := parley.MessageRef{Chat: network.ToChat(e.From, e.Group), ID: e.Target}
		if e.Group != "" && !e.ByAdmin { // members may delete only what they wrote
			m, err := tx.Message(ctx, a.code, ref)
			if err != nil {
				return parley.IgnoreNotFound(err)
			}
			if same, err := isSame(ctx, tx, a.code, m.Author, e.From); err != nil || !same {
				return err
			}
		}
		if _, err := tx.Message(ctx, a.code, ref); e.ByAdmin && errors.Is(err, parley.ErrNotFound) {
			ref.FromMe = true // an admin deletes a message of the channel
		}
		file, err = outbox.DeleteMessage(ctx, tx, a.code, ref, e.At)
		return err
	})
	if err != nil {
		return fmt.Errorf("store a deletion: %w", err)
	}
	if file != nil {
		a.g.RemoveFiles(ctx, []parley.Media{*file})
	}
	return nil
}

// applyEdit changes the text of a message that the contact itself sent. A text whose message is not known, for example because it
// could not be decrypted, is stored as that message.
func (a *account) applyEdit(ctx context.Context, e network.Edit) error {
	channel, content, err := a.maskedEdit(ctx, e)
	if err != nil {
		return fmt.Errorf("store an edit: %w", err)
	}
	var unknown bool
	err = a.tx(ctx, func(tx *store.Tx) error {
		m, err := tx.Message(ctx, a.code, parley.MessageRef{Chat: network.ToChat(e.From, e.Group), ID: e.Target})
		if unknown = errors.Is(err, parley.ErrNotFound); err != nil {
			return parley.IgnoreNotFound(err)
		}
		edited, ok := parley.Edited(m.Content, content)
		isTheirs := e.Group == ""
		if !isTheirs {
			if isTheirs, err = isSame(ctx, tx, a.code, m.Author, e.From); err != nil {
				return err
			}
		}
		if !ok || !isTheirs || m.Status == parley.Deleted || wasApplied(&m, edited, e.At) {
			return nil
		}
		if channel.Settings.StoresText() {
			return outbox.StoreEdit(ctx, tx, &m, edited, true, nil, e.At)
		}
		whole, err := parley.EncodeEventContent(edited)
		if err != nil {
			return err
		}
		return outbox.StoreEdit(ctx, tx, &m, edited, false, a.g.config.Keyring.Encrypt(whole, parley.EventTextContext(a.code)), e.At)
	})
	if err != nil {
		return fmt.Errorf("store an edit: %w", err)
	}
	if _, isText := content.(parley.Text); unknown && isText {
		return a.receive(ctx, network.Message{From: e.From, Group: e.Group, ID: e.Target, Content: content, At: e.At, Past: true})
	}
	return nil
}

// isSame reports whether two ids are of one contact: its number may have been hidden when it wrote.
func isSame(ctx context.Context, tx *store.Tx, code parley.ChannelCode, author, other parley.ContactID) (bool, error) {
	if author == other || !author.IsHidden() {
		return author == other, nil
	}
	all, err := tx.Spellings(ctx, code, other)
	return slices.Contains(all, author), err
}

// maskedEdit returns the content of an edit with the codes of login links masked. An edit is never a login.
func (a *account) maskedEdit(ctx context.Context, e network.Edit) (parley.Channel, parley.Content, error) {
	channel := a.snapshot()
	m := parley.Message{Channel: channel.Code, Chat: network.ToChat(e.From, e.Group), ID: e.Target, Content: e.Content, CreatedAt: e.At}
	var err error
	if a.g.config.LoginLinks != nil {
		_, err = a.g.config.LoginLinks.MatchMessage(ctx, channel, &m)
	}
	return channel, m.Content, err
}

// wasApplied reports whether an edit is older than the text that is stored, or came again.
func wasApplied(m *parley.Message, edited parley.Content, at time.Time) bool {
	last := m.EditedAt
	if last.IsZero() {
		last = m.CreatedAt
	}
	at = at.Truncate(time.Millisecond)
	return at.Before(last) || at.Equal(last) && edited.Text() == m.Content.Text()
}
