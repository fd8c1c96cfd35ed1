package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"parley"
)

// flushTimeout is how long a reader waits until confirmations are stored.
const flushTimeout = 2 * time.Second

// flush stores the confirmations of a channel, so that a reader sees SENT for messages that were reported as SENT. After
// the timeout the store has a problem, and reading will show it.
func (g *Gateway) flush(ctx context.Context, code parley.ChannelCode) {
	a, err := g.account(code)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := a.worker.Flush(ctx); err != nil {
		g.config.Log.Warn("statuses are behind", "channel", code, "error", err)
	}
}

// CurrentMessages returns accepted messages with their current status, for a repeated request. Their contacts have the
// spelling of the references.
func (g *Gateway) CurrentMessages(ctx context.Context, code parley.ChannelCode, refs []parley.MessageRef) ([]parley.Message, error) {
	g.flush(ctx, code)
	ms := make([]parley.Message, len(refs))
	for i, ref := range refs {
		var err error
		if ms[i], err = g.config.Store.Message(ctx, code, ref); err != nil {
			return nil, fmt.Errorf("message %s: %w", ref.ID, err)
		}
		ms[i].Chat = ref.Chat
	}
	return ms, nil
}

// Message returns a message with its current status.
func (g *Gateway) Message(ctx context.Context, code parley.ChannelCode, ref parley.MessageRef) (parley.Message, error) {
	g.flush(ctx, code)
	return g.config.Store.Message(ctx, code, ref)
}

// MessagesNamed returns the messages with an id, of a channel or of all if it is empty, newest first. Their number is bounded.
func (g *Gateway) MessagesNamed(
	ctx context.Context, code parley.ChannelCode, ref parley.MessageRef, limit int,
) ([]parley.Message, error) {
	found, err := g.config.Store.MessagesNamed(ctx, code, ref, limit)
	for i := range found {
		m := &found[i]
		current, err := g.Message(ctx, m.Channel, parley.MessageRef{FromMe: m.FromMe, Chat: m.Chat, ID: m.ID})
		if err != nil && !errors.Is(err, parley.ErrNotFound) {
			return nil, err
		}
		if err == nil {
			*m = current // with a status that was not stored yet
		}
	}
	return found, err
}

// History returns messages of a chat, newest first, and their number.
func (g *Gateway) History(
	ctx context.Context, code parley.ChannelCode, chat parley.ContactID, page parley.Page,
) ([]parley.Message, int64, error) {
	g.flush(ctx, code)
	return g.config.Store.History(ctx, code, chat, page)
}

// HistoryAt returns messages of a chat from a position down; see [store.Reader.HistoryAt].
func (g *Gateway) HistoryAt(
	ctx context.Context, code parley.ChannelCode, chat parley.ContactID, newest int64, limit int,
) (messages []parley.Message, from, total int64, err error) {
	g.flush(ctx, code)
	return g.config.Store.HistoryAt(ctx, code, chat, newest, limit)
}

// ListChats returns chats with their last messages, newest first.
func (g *Gateway) ListChats(ctx context.Context, q parley.ChatQuery) ([]parley.ChatSummary, error) {
	g.flushAll(ctx, q.Channel)
	return g.config.Store.ListChats(ctx, q)
}

// FindMessages searches messages, newest first.
func (g *Gateway) FindMessages(ctx context.Context, q parley.MessageQuery) (parley.MessagePage, error) {
	g.flushAll(ctx, q.Channel)
	return g.config.Store.FindMessages(ctx, q)
}

// flushAll is flush for one channel or, without a code, for all.
func (g *Gateway) flushAll(ctx context.Context, code parley.ChannelCode) {
	if code != "" {
		g.flush(ctx, code)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout) // for all of them: they share the store
	defer cancel()
	g.unstored.Flush(ctx)
}

// MessageForRetry finds a message of a chat in either direction, with its content decrypted. It is needed to resend it to
// a device that could not read it, to quote it, and to name the options of a poll. An erased one is [parley.ErrNotFound].
func (g *Gateway) MessageForRetry(
	ctx context.Context, code parley.ChannelCode, chat parley.ContactID, id parley.MessageID,
) (*parley.Message, error) {
	a, err := g.account(code)
	if err != nil {
		return nil, err
	}
	m, err := g.config.Store.Message(ctx, code, parley.MessageRef{FromMe: true, Chat: chat, ID: id})
	if errors.Is(err, parley.ErrNotFound) {
		m, err = g.config.Store.Message(ctx, code, parley.MessageRef{Chat: chat, ID: id})
	}
	if err != nil {
		return nil, err
	}
	encrypted, err := g.config.Store.Resend(ctx, m.Seq)
	if err == nil {
		m.Content, err = a.decryptResend(encrypted)
	}
	if err != nil && !errors.Is(err, parley.ErrNotFound) {
		return nil, err
	}
	if secret, ok := m.Content.(parley.Secret); ok {
		if m.Content, err = a.decryptSecret(secret); err != nil {
			return nil, err
		}
		return &m, nil
	}
	if isErased(m.Content) {
		return nil, parley.ErrNotFound
	}
	return &m, nil
}

// isErased reports whether a field is empty that every content has.
func isErased(content parley.Content) bool {
	switch c := content.(type) {
	case parley.Text:
		return c.Body == ""
	case parley.Location:
		return c.Latitude == ""
	case parley.Poll:
		return len(c.Options) == 0
	case parley.Contacts:
		return len(c.Cards) == 0
	}
	media := parley.MediaIn(content)
	return media != nil && media.Key == ""
}

type resendContent struct {
	Kind   parley.Kind     `json:"kind"`
	Text   string          `json:"text,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"`
	Secret bool            `json:"secret,omitempty"` // it is a one-time code
}

// ResendContext binds a text that may be sent again to its channel.
func ResendContext(code parley.ChannelCode) string { return "resend of " + string(code) }

// encryptForResend encrypts a message whose channel stores no text: for a few days a device that could not read it may
// request it again. Files are not stored, and simulated phones never request a message again.
func (a *account) encryptForResend(m *parley.Message) []byte {
	if a.g.isSimulated(a.snapshot()) || parley.MediaIn(m.Content) != nil {
		return nil
	}
	data, err := parley.EncodeContent(m.Content)
	var whole []byte
	if err == nil {
		_, secret := m.Content.(parley.Secret)
		whole, err = json.Marshal(resendContent{m.Content.Kind(), m.Content.Text(), data, secret})
	}
	if err != nil {
		a.g.config.Log.Error("encode a message for a resend", "channel", a.code, "error", err)
		return nil
	}
	return a.g.config.Keyring.Encrypt(whole, ResendContext(a.code))
}

func (a *account) decryptResend(encrypted []byte) (parley.Content, error) {
	whole, err := a.g.config.Keyring.Decrypt(encrypted, ResendContext(a.code))
	if err != nil {
		return nil, fmt.Errorf("decrypt a message for a resend: %w", err)
	}
	var c resendContent
	if err := json.Unmarshal(whole, &c); err != nil {
		return nil, fmt.Errorf("read a message for a resend: %w", err)
	}
	if c.Secret {
		return parley.DecodeSecret(c.Text, c.Data)
	}
	return parley.DecodeContent(c.Kind, c.Text, c.Data)
}
