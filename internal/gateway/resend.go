package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"parley"
)

// MessageForRetry finds a message of a chat, whoever sent it, as its recipient sees it: to make it again for
// a device that could not read it, to quote it, and to name the options of a poll. What is not kept any more
// is [parley.ErrNotFound].
func (g *Gateway) MessageForRetry(ctx context.Context, code parley.ChannelCode, chat parley.ContactID, id parley.MessageID) (*parley.Message, error) {
	a, err := g.account(code)
	if err != nil {
		return nil, err
	}
	m, err := g.Store.Message(ctx, code, parley.MessageRef{FromMe: true, Chat: chat, ID: id})
	if errors.Is(err, parley.ErrNotFound) {
		m, err = g.Store.Message(ctx, code, parley.MessageRef{Chat: chat, ID: id})
	}
	if err != nil {
		return nil, err
	}
	encrypted, err := g.Store.Resend(ctx, m.Seq)
	if err == nil {
		m.Content, err = a.unpack(encrypted)
	}
	if err != nil && !errors.Is(err, parley.ErrNotFound) {
		return nil, err
	}
	if secret, ok := m.Content.(parley.Secret); ok {
		if m.Content, err = a.reveal(secret); err != nil {
			return nil, err
		}
		return &m, nil
	}
	if isErased(m.Content) {
		return nil, parley.ErrNotFound
	}
	return &m, nil
}

// isErased reports whether what a message said is gone: something that no message is without is empty.
func isErased(content parley.Content) bool {
	switch c := content.(type) {
	case parley.Text:
		return c.Body == ""
	case parley.Location:
		return c.Latitude == ""
	case parley.Poll:
		return len(c.Options) == 0
	}
	media := parley.MediaOf(content)
	return media != nil && media.Key == ""
}

// packed is what a message said, to be encrypted.
type packed struct {
	Kind parley.Kind     `json:"kind"`
	Text string          `json:"text,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
	// Secret says that it is a one-time code.
	Secret bool `json:"secret,omitempty"`
}

// resendContext is what the encrypted content of a message is bound to.
func resendContext(code parley.ChannelCode) string { return "resend of " + string(code) }

// pack encrypts what a message said whose channel keeps no text, to keep it for a while: a device that could
// not read it may ask for it again. A file is not kept, and simulated phones do not ask.
func (a *account) pack(m *parley.Message) []byte {
	c := a.snapshot()
	if c.Network == parley.Sandbox || parley.MediaOf(m.Content) != nil {
		return nil
	}
	data, err := parley.EncodeContent(m.Content)
	if err != nil {
		a.g.Log.Error("encode a message to keep it for a retry", "channel", c.Code, "error", err)
		return nil
	}
	_, secret := m.Content.(parley.Secret)
	whole, err := json.Marshal(packed{m.Content.Kind(), m.Content.Text(), data, secret})
	if err != nil {
		a.g.Log.Error("encode a message to keep it for a retry", "channel", c.Code, "error", err)
		return nil
	}
	return a.g.Keyring.Encrypt(whole, resendContext(c.Code))
}

// unpack decrypts what pack encrypted.
func (a *account) unpack(encrypted []byte) (parley.Content, error) {
	whole, err := a.g.Keyring.Decrypt(encrypted, resendContext(a.snapshot().Code))
	if err != nil {
		return nil, fmt.Errorf("open what is kept of a message: %w", err)
	}
	var p packed
	if err := json.Unmarshal(whole, &p); err != nil {
		return nil, fmt.Errorf("read what is kept of a message: %w", err)
	}
	if p.Secret {
		return parley.DecodeSecret(p.Text, p.Data)
	}
	return parley.DecodeContent(p.Kind, p.Text, p.Data)
}
