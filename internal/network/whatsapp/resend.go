package whatsapp

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"

	"parley"
)

// resendTimeout bounds making a message again for a device that could not read it; it may have a file.
const resendTimeout = 2 * time.Minute

// messageForRetry makes a message again that a device could not read, of what the gateway keeps. whatsmeow
// asks for it when it does not remember the message itself, as after a restart.
func (l *line) messageForRetry(_, to types.JID, id types.MessageID) *waE2E.Message {
	ctx, cancel := context.WithTimeout(l.ctx, resendTimeout)
	defer cancel()
	chat, known, err := l.person(ctx, to, types.EmptyJID)
	if err != nil || !known {
		return nil
	}
	m := l.find(ctx, chat, parley.MessageID(id))
	if m == nil || !m.FromMe {
		return nil
	}
	lid, err := l.address(ctx, chat)
	if err != nil {
		l.log.Warnf("make %s again: %v", id, err)
		return nil
	}
	raw, err := l.compose(ctx, m, lid)
	if err != nil {
		l.log.Warnf("make %s again: %v", id, err)
		return nil
	}
	return raw
}

// find looks a message up that the gateway keeps; nil: it has none, or does not have its text any more.
func (l *line) find(ctx context.Context, chat parley.ContactID, id parley.MessageID) *parley.Message {
	if l.s.d.MessageForRetry == nil {
		return nil
	}
	m, err := l.s.d.MessageForRetry(ctx, l.s.code, chat, id)
	if err != nil || m == nil || m.Content == nil || m.Status == parley.Deleted {
		return nil
	}
	return m
}

// quote makes what a reply shows of the message that it answers; nil: it is no reply. Where the gateway does
// not have that message, the recipient's phone still finds it by its id.
func (l *line) quote(ctx context.Context, m *parley.Message, to types.JID) *waE2E.ContextInfo {
	if m.ReplyTo == "" {
		return nil
	}
	quote := &waE2E.ContextInfo{StanzaID: new(string(m.ReplyTo)), Participant: new(to.String()), QuotedMessage: &waE2E.Message{Conversation: new("")}}
	quoted := l.find(ctx, m.Chat, m.ReplyTo)
	if quoted == nil {
		return quote
	}
	if quoted.FromMe {
		quote.Participant = new(l.lid.ToNonAD().String())
	}
	quote.QuotedMessage = sketch(quoted.Content)
	return quote
}

// sketch is as much of a message as a quotation of it shows.
func sketch(c parley.Content) *waE2E.Message {
	switch c := c.(type) {
	case parley.Image:
		return &waE2E.Message{ImageMessage: &waE2E.ImageMessage{Caption: words(c.Caption), Mimetype: &c.Media.MIME, JPEGThumbnail: c.Media.Thumbnail}}
	case parley.Video:
		return &waE2E.Message{VideoMessage: &waE2E.VideoMessage{Caption: words(c.Caption), Mimetype: &c.Media.MIME, JPEGThumbnail: c.Media.Thumbnail}}
	case parley.File:
		return &waE2E.Message{DocumentMessage: &waE2E.DocumentMessage{Caption: words(c.Caption), Mimetype: &c.Media.MIME, FileName: &c.Media.Filename}}
	case parley.Voice:
		return &waE2E.Message{AudioMessage: &waE2E.AudioMessage{PTT: new(true), Mimetype: &c.Media.MIME, Seconds: new(uint32(c.Media.Seconds))}}
	case parley.Location:
		m, err := composeLocation(c, nil)
		if err == nil {
			return m
		}
	case parley.Poll:
		return composePoll(c, nil, nil)
	}
	return &waE2E.Message{Conversation: new(c.Text())}
}

// pollsMost is how many polls are remembered with their options. Older ones are asked of the gateway.
const pollsMost = 512

// polls remembers the options of polls, of which votes carry only hashes. They are not written to disk: a
// channel may keep no text.
type polls struct {
	mu      sync.Mutex
	options map[parley.MessageID][]string
	ring    []parley.MessageID
}

func (p *polls) add(id parley.MessageID, options []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.options == nil {
		p.options = map[parley.MessageID][]string{}
	}
	if _, ok := p.options[id]; !ok {
		p.ring = append(p.ring, id)
	}
	p.options[id] = options
	if len(p.ring) > pollsMost {
		delete(p.options, p.ring[0])
		p.ring = p.ring[1:]
	}
}

// options finds what could be chosen in a poll.
func (l *line) options(chat parley.ContactID, id parley.MessageID) ([]string, bool) {
	l.s.polls.mu.Lock()
	options, ok := l.s.polls.options[id]
	l.s.polls.mu.Unlock()
	if ok {
		return options, true
	}
	m := l.find(l.ctx, chat, id)
	if m == nil {
		return nil, false
	}
	poll, ok := m.Content.(parley.Poll)
	return poll.Options, ok && len(poll.Options) > 0
}

// chosen names the options whose hashes a vote has, in the order of the poll.
func chosen(options []string, hashes [][]byte) []string {
	var names []string
	for i, hash := range whatsmeow.HashPollOptions(options) {
		if slices.ContainsFunc(hashes, func(h []byte) bool { return bytes.Equal(h, hash) }) {
			names = append(names, options[i])
		}
	}
	return names
}
