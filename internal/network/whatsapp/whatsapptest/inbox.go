package whatsapptest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
)

type Kind string

const (
	KindText     Kind = "text"
	KindImage    Kind = "image"
	KindVideo    Kind = "video"
	KindAudio    Kind = "audio"
	KindDocument Kind = "document"
	KindSticker  Kind = "sticker"
	KindLocation Kind = "location"
	KindPoll     Kind = "poll"
	KindVote     Kind = "vote"
	KindReaction Kind = "reaction"
	KindEdit     Kind = "edit"
	KindDelete   Kind = "delete"
	KindTimer    Kind = "timer"
	KindOther    Kind = "other"
)

// Message is something that a phone could read and showed to its owner.
type Message struct {
	ID       string
	Chat     types.JID // the contact's LID, or the group
	From     string    // number of the author
	FromMe   bool      // a copy of a message that another device of the account sent
	Device   uint16    // the device that it was shown on
	Kind     Kind
	Text     string // text, caption, title of a poll, or emoji
	Target   string // the message that a reaction, a vote, an edit or a deletion is about
	Copies   int    // how often it arrived; it is shown once
	Retries  int    // how often the phone had to ask for it again
	At       time.Time
	Raw      *waE2E.Message
	author   types.JID
	fromSelf bool // written on this very phone
}

type seenKey struct {
	device uint16
	id     string
}

type Receipt struct {
	ID     string
	Type   types.ReceiptType
	From   string // number
	Device uint16 // 0 is the reader's phone
}

type Typing struct {
	From  string
	State string
}

type Match func(Message) bool

func Text(text string) Match { return func(m Message) bool { return m.Text == text } }

func ID(id string) Match { return func(m Message) bool { return m.ID == id } }

// On matches messages on one device; without it any device matches.
func On(device uint16) Match { return func(m Message) bool { return m.Device == device } }

// Inbox lists received messages, oldest first.
func (p *Phone) Inbox() []Message {
	p.view.Lock()
	defer p.view.Unlock()
	var all []Message
	for _, m := range p.inbox {
		if !m.fromSelf {
			all = append(all, *m)
		}
	}
	return all
}

func (p *Phone) Await(ctx context.Context, matches ...Match) (Message, error) {
	m, err := await(ctx, &p.changed, func() (Message, bool) {
		p.view.Lock()
		defer p.view.Unlock()
		for _, m := range p.inbox {
			if !m.fromSelf && !slices.ContainsFunc(matches, func(f Match) bool { return !f(*m) }) {
				return *m, true
			}
		}
		return Message{}, false
	})
	if err != nil {
		return m, fmt.Errorf("no such message on phone …%s, which shows %s: %w", tail(p.number), p.summary(), err)
	}
	return m, nil
}

// AwaitCount waits until the phone itself has shown so many messages of others.
func (p *Phone) AwaitCount(ctx context.Context, least int) error {
	_, err := await(ctx, &p.changed, func() (struct{}, bool) {
		p.view.Lock()
		defer p.view.Unlock()
		return struct{}{}, p.shown >= least
	})
	return err
}

// AwaitReceipt waits for a receipt of a linked client, of one of the types, for a message of this phone.
func (p *Phone) AwaitReceipt(ctx context.Context, id string, kinds ...types.ReceiptType) (Receipt, error) {
	return await(ctx, &p.changed, func() (Receipt, bool) {
		for _, r := range p.Receipts() {
			if r.ID == id && r.Device != 0 && (len(kinds) == 0 || slices.Contains(kinds, r.Type)) {
				return r, true
			}
		}
		return Receipt{}, false
	})
}

func (p *Phone) Receipts() []Receipt {
	p.view.Lock()
	defer p.view.Unlock()
	return slices.Clone(p.receipts)
}

func (p *Phone) AwaitTyping(ctx context.Context) (Typing, error) {
	return await(ctx, &p.changed, func() (Typing, bool) {
		p.view.Lock()
		defer p.view.Unlock()
		if len(p.typing) == 0 {
			return Typing{}, false
		}
		return p.typing[len(p.typing)-1], true
	})
}

// addTyping may be called with the server's lock held.
func (p *Phone) addTyping(t Typing) {
	p.view.Lock()
	p.typing = append(p.typing, t)
	p.view.Unlock()
	p.changed.notify()
}

// addToInbox adds a message to the inbox, or counts another copy of it.
func (p *Phone) addToInbox(m *Message) {
	p.view.Lock()
	defer p.changed.notify()
	defer p.view.Unlock()
	key := seenKey{m.Device, m.ID}
	if known := p.seen[key]; known != nil {
		known.Copies++
		return
	}
	m.Copies = 1
	if m.Device == 0 && !m.FromMe {
		p.shown++
	}
	p.seen[key] = m
	p.inbox = append(p.inbox, m)
}

func (p *Phone) message(id string) (Message, error) {
	p.view.Lock()
	defer p.view.Unlock()
	if m := p.seen[seenKey{0, id}]; m != nil {
		return *m, nil
	}
	return Message{}, fmt.Errorf("the phone does not know message %s", id)
}

// summary lists kinds and ids, no text.
func (p *Phone) summary() string {
	var all []string
	for _, m := range p.Inbox() {
		all = append(all, fmt.Sprintf("%s %s", m.Kind, m.ID))
	}
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, ", ")
}

// tail identifies a phone in test output.
func tail(number string) string { return number[max(0, len(number)-4):] }
