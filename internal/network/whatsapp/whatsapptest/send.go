package whatsapptest

import (
	"context"
	"errors"
	"fmt"

	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

// Chat is whom a phone can write to: a *Phone or a *Group.
type Chat interface {
	// place resolves the chat as the writing phone sees it. The server's lock is held.
	place(s *Server) (types.JID, *group, error)
}

func (p *Phone) place(*Server) (types.JID, *group, error) { return p.account.hidden(0), nil, nil }

// Send writes a text and returns its id.
func (p *Phone) Send(ctx context.Context, to Chat, text string) (string, error) {
	return p.SendMessage(ctx, to, &waE2E.Message{Conversation: proto.String(text)})
}

// React puts an emoji on a message that the phone knows; "" takes it back.
func (p *Phone) React(ctx context.Context, id, emoji string) (string, error) {
	m, err := p.known(id)
	if err != nil {
		return "", err
	}
	return p.sendTo(ctx, m.Chat, &waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{
		Key: p.key(m), Text: proto.String(emoji), SenderTimestampMS: proto.Int64(unix() * 1000),
	}})
}

// Delete takes back, for everyone, a message that this phone sent.
func (p *Phone) Delete(ctx context.Context, id string) (string, error) {
	m, err := p.known(id)
	if err != nil {
		return "", err
	}
	return p.sendTo(ctx, m.Chat, &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{
		Type: waE2E.ProtocolMessage_REVOKE.Enum(), Key: p.key(m),
	}})
}

// Edit changes a text that this phone sent.
func (p *Phone) Edit(ctx context.Context, id, text string) (string, error) {
	m, err := p.known(id)
	if err != nil {
		return "", err
	}
	return p.sendTo(ctx, m.Chat, &waE2E.Message{EditedMessage: &waE2E.FutureProofMessage{Message: &waE2E.Message{
		ProtocolMessage: &waE2E.ProtocolMessage{
			Type: waE2E.ProtocolMessage_MESSAGE_EDIT.Enum(), Key: p.key(m),
			EditedMessage: &waE2E.Message{Conversation: proto.String(text)}, TimestampMS: proto.Int64(unix() * 1000),
		},
	}}})
}

// Read tells the sender that the owner has read a message; Played that they have listened to it.
func (p *Phone) Read(ids ...string) error { return p.tell(types.ReceiptTypeRead, ids) }

// Played is the Read of a voice message.
func (p *Phone) Played(ids ...string) error { return p.tell(types.ReceiptTypePlayed, ids) }

// tell gives one receipt for messages of one author.
func (p *Phone) tell(kind types.ReceiptType, ids []string) error {
	var items []node
	var a attrs
	for i, id := range ids {
		m, err := p.known(id)
		if err != nil {
			return err
		}
		if i > 0 {
			items = append(items, n("item", attrs{"id": id}))
			continue
		}
		a = attrs{"id": id, "to": m.Chat}
		if m.Chat.Server == types.GroupServer {
			a["participant"] = m.author
		}
	}
	if a == nil {
		return errors.New("no message named")
	}
	r := n("receipt", a)
	if len(items) > 0 {
		r.Content = []node{n("list", nil, items...)}
	}
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.server.passReceipt(p.main.device, &r, kind)
	return nil
}

// key names a message as this phone sees it.
func (p *Phone) key(m Message) *waCommon.MessageKey {
	k := &waCommon.MessageKey{ID: proto.String(m.ID), RemoteJID: proto.String(m.Chat.String()), FromMe: proto.Bool(m.FromMe)}
	if m.Chat.Server == types.GroupServer {
		k.Participant = proto.String(m.author.String())
	}
	return k
}

// SendMessage writes any message and returns its id.
func (p *Phone) SendMessage(ctx context.Context, to Chat, raw *waE2E.Message) (string, error) {
	p.server.mu.Lock()
	chat, _, err := to.place(p.server)
	p.server.mu.Unlock()
	if err != nil {
		return "", err
	}
	return p.sendTo(ctx, chat, raw)
}

func (p *Phone) sendTo(ctx context.Context, chat types.JID, raw *waE2E.Message) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.server
	s.mu.Lock()
	id := s.nextID("3A" + fmt.Sprintf("%08X", newRegistration()))
	l := &letter{id: id, kind: stanzaKind(kindOf(raw)), chat: chat, from: p.main.device, seals: map[*device][]node{}, edit: editOf(raw)}
	targets, err := s.targets(l)
	s.mu.Unlock()
	if err != nil {
		return "", err
	}
	if err := p.sealAll(ctx, l, targets, raw); err != nil {
		return "", err
	}
	p.keep(id, &sentMessage{raw: raw, chat: chat, group: l.group})
	p.show(&Message{
		ID: id, Chat: chat, From: p.number, FromMe: true, Kind: kindOf(raw), Raw: raw,
		author: p.account.hidden(0), fromSelf: true,
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	l.entry.Stanzas++
	l.entry.taken = true
	s.post(l)
	return id, nil
}

// targets lists the devices that a letter of a phone is for, and enters it into the ledger. The caller holds
// the lock.
func (s *Server) targets(l *letter) ([]*device, error) {
	var all []*device
	add := func(a *account) {
		for _, id := range a.deviceIDs() {
			if d := a.devices[id]; d != l.from {
				all = append(all, d)
			}
		}
	}
	if l.chat.Server == types.GroupServer {
		if l.group = s.groups[l.chat.User]; l.group == nil || l.group.member(l.from.owner) == nil {
			return nil, errors.New("the phone is not in that group")
		}
		for _, m := range l.group.members {
			add(m.account)
		}
		l.entry = s.ledger.entry(l.id, l.from.owner.number, l.chat.User)
		return all, nil
	}
	to := s.find(l.chat)
	if to == nil {
		return nil, errors.New("nobody has that number")
	}
	add(to)
	if to != l.from.owner {
		add(l.from.owner)
	}
	meet(l.from.owner, to)
	l.from.owner.wroteTo[to] = true
	l.entry = s.ledger.entry(l.id, l.from.owner.number, to.number)
	return all, nil
}

// sealAll encrypts a letter for each of its devices. A client that has no keys here yet gets nothing, as on
// the real network.
func (p *Phone) sealAll(ctx context.Context, l *letter, targets []*device, raw *waE2E.Message) error {
	plain, err := proto.Marshal(raw)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	own := plain
	if l.group != nil {
		shared, key, err := p.main.sealGroup(ctx, l.chat.String(), plain)
		if err != nil {
			return err
		}
		l.shared = []node{shared}
		if plain, err = proto.Marshal(key); err != nil {
			return fmt.Errorf("encode key: %w", err)
		}
		own = plain
	} else if own, err = proto.Marshal(&waE2E.Message{
		DeviceSentMessage:  &waE2E.DeviceSentMessage{DestinationJID: proto.String(l.chat.String()), Message: raw},
		MessageContextInfo: raw.GetMessageContextInfo(),
	}); err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	for _, d := range targets {
		text := plain
		if d.owner == p.account && l.chat != p.account.hidden(0) {
			text = own
		}
		enc, err := p.main.seal(ctx, d, text)
		if errors.Is(err, errNoKeys) {
			continue
		} else if err != nil {
			return err
		}
		l.seals[d] = []node{enc}
		p.server.mu.Lock()
		l.entry.Sealed++
		if d.owner != p.account {
			l.entry.ForThem++
		}
		p.server.mu.Unlock()
	}
	return nil
}

// editOf is the attribute that marks changes of earlier messages.
func editOf(m *waE2E.Message) string {
	switch kindOf(m) {
	case KindDelete:
		return string(types.EditAttributeSenderRevoke)
	case KindEdit:
		return string(types.EditAttributeMessageEdit)
	default:
		return ""
	}
}
