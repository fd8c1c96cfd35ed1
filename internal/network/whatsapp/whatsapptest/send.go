package whatsapptest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

// Chat is a recipient: a *Phone or a *Group.
type Chat interface{ chat() types.JID }

func (p *Phone) chat() types.JID { return p.account.lidJID(0) }

func (p *Phone) Send(ctx context.Context, to Chat, text string) (string, error) {
	return p.SendMessage(ctx, to, &waE2E.Message{Conversation: proto.String(text)})
}

// React reacts to a message; "" removes the reaction.
func (p *Phone) React(ctx context.Context, id, emoji string) (string, error) {
	m, err := p.message(id)
	if err != nil {
		return "", err
	}
	return p.sendTo(ctx, m.Chat, &waE2E.Message{ReactionMessage: &waE2E.ReactionMessage{
		Key: p.key(m), Text: proto.String(emoji), SenderTimestampMS: proto.Int64(unix() * 1000),
	}})
}

// Delete deletes a message of this phone for everyone.
func (p *Phone) Delete(ctx context.Context, id string) (string, error) {
	m, err := p.message(id)
	if err != nil {
		return "", err
	}
	return p.sendTo(ctx, m.Chat, &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{
		Type: waE2E.ProtocolMessage_REVOKE.Enum(), Key: p.key(m),
	}})
}

// Edit changes a text that this phone sent.
func (p *Phone) Edit(ctx context.Context, id, text string) (string, error) {
	m, err := p.message(id)
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

// SetTimer sets after how many seconds messages in the chat with another phone disappear; 0: they stay.
func (p *Phone) SetTimer(ctx context.Context, to *Phone, seconds uint32) (string, error) {
	return p.SendMessage(ctx, to, &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{
		Type: waE2E.ProtocolMessage_EPHEMERAL_SETTING.Enum(), EphemeralExpiration: &seconds, EphemeralSettingTimestamp: proto.Int64(unix()),
	}})
}

func (p *Phone) Read(ids ...string) error { return p.sendReceipt(types.ReceiptTypeRead, ids) }

// Played is the Read of a voice message.
func (p *Phone) Played(ids ...string) error { return p.sendReceipt(types.ReceiptTypePlayed, ids) }

// sendReceipt sends one receipt for messages of one author.
func (p *Phone) sendReceipt(kind types.ReceiptType, ids []string) error {
	var items []node
	var a attrs
	for i, id := range ids {
		m, err := p.message(id)
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
	return p.sendTo(ctx, to.chat(), raw)
}

func (p *Phone) sendTo(ctx context.Context, chat types.JID, raw *waE2E.Message) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.server
	s.mu.Lock()
	id := s.nextID("3A" + fmt.Sprintf("%08X", newRegistration()))
	out := &outgoing{id: id, kind: stanzaKind(toKind(raw)), chat: chat, from: p.main.device, ciphertexts: map[*device][]node{},
		edit: findEdit(raw)}
	targets, err := s.targets(out)
	s.mu.Unlock()
	if err != nil {
		return "", err
	}
	if err := p.encryptAll(ctx, out, targets, raw); err != nil {
		return "", err
	}
	p.storeSent(id, &sentMessage{raw: raw, chat: chat, group: out.group})
	p.addToInbox(&Message{
		ID: id, Chat: chat, From: p.number, FromMe: true, Kind: toKind(raw), Raw: raw,
		author: p.account.lidJID(0), fromSelf: true,
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	out.trace.Stanzas++
	out.trace.accepted = true
	s.deliverAll(out)
	return id, nil
}

// SendGarbled sends a text that no linked client of the recipient can read. They get it when they ask for it again.
func (p *Phone) SendGarbled(to *Phone, text string) string {
	return p.sendRaw(to, text, n("enc", attrs{"v": "2", "type": "msg"}), []byte("nonsense"))
}

// SendViewOnce sends a message that only the phone of the recipient can open.
func (p *Phone) SendViewOnce(to *Phone) string {
	return p.sendRaw(to, "", n("unavailable", attrs{"type": "view_once"}), nil)
}

func (p *Phone) sendRaw(to *Phone, text string, part node, content []byte) string {
	if content != nil {
		part.Content = content
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.nextID("3A" + fmt.Sprintf("%08X", newRegistration()))
	out := &outgoing{id: id, kind: "text", chat: to.chat(), from: p.main.device, ciphertexts: map[*device][]node{},
		trace: s.traces.get(id, p.number, to.number)}
	addPeers(p.account, to.account)
	p.account.wroteTo[to.account] = true
	for _, d := range to.account.devices {
		if d.sim == nil {
			out.ciphertexts[d] = []node{part}
		}
	}
	out.trace.Stanzas, out.trace.ForRecipient, out.trace.accepted = 1, 1, true
	if text != "" {
		p.storeSent(id, &sentMessage{raw: &waE2E.Message{Conversation: &text}, chat: out.chat})
	}
	s.deliverAll(out)
	return id
}

// targets lists the devices that a message of a phone is for, and starts its trace. The caller holds the lock.
func (s *Server) targets(out *outgoing) ([]*device, error) {
	var all []*device
	add := func(a *account) {
		for _, id := range a.deviceIDs() {
			if d := a.devices[id]; d != out.from {
				all = append(all, d)
			}
		}
	}
	if out.chat.Server == types.GroupServer {
		if out.group = s.groups[out.chat.User]; out.group == nil || !slices.Contains(out.group.members, out.from.owner) {
			return nil, errors.New("the phone is not in that group")
		}
		for _, m := range out.group.members {
			add(m)
		}
		out.trace = s.traces.get(out.id, out.from.owner.number, out.chat.User)
		return all, nil
	}
	to := s.find(out.chat)
	if to == nil {
		return nil, errors.New("nobody has that number")
	}
	add(to)
	if to != out.from.owner {
		add(out.from.owner)
	}
	addPeers(out.from.owner, to)
	out.from.owner.wroteTo[to] = true
	out.trace = s.traces.get(out.id, out.from.owner.number, to.number)
	return all, nil
}

// encryptAll encrypts a message for each device. A client that has no keys here yet gets nothing, as on the real network.
func (p *Phone) encryptAll(ctx context.Context, out *outgoing, targets []*device, raw *waE2E.Message) error {
	plain, err := proto.Marshal(raw)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	own, err := proto.Marshal(&waE2E.Message{
		DeviceSentMessage:  &waE2E.DeviceSentMessage{DestinationJID: proto.String(out.chat.String()), Message: raw},
		MessageContextInfo: raw.GetMessageContextInfo(),
	})
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	if out.group != nil {
		shared, key, err := p.main.encryptGroup(ctx, out.chat.String(), plain)
		if err != nil {
			return err
		}
		out.shared = []node{shared}
		if plain, err = proto.Marshal(key); err != nil {
			return fmt.Errorf("encode key: %w", err)
		}
		own = plain
	}
	for _, d := range targets {
		text := plain
		if d.owner == p.account && out.chat != p.account.lidJID(0) {
			text = own
		}
		enc, err := p.main.encrypt(ctx, d, text)
		if errors.Is(err, errNoKeys) {
			continue
		} else if err != nil {
			return err
		}
		out.ciphertexts[d] = []node{enc}
		p.server.mu.Lock()
		out.trace.Ciphertexts++
		if d.owner != p.account {
			out.trace.ForRecipient++
		}
		p.server.mu.Unlock()
	}
	return nil
}

// findEdit is the attribute that marks changes of earlier messages.
func findEdit(m *waE2E.Message) string {
	switch toKind(m) {
	case KindDelete:
		return string(types.EditAttributeSenderRevoke)
	case KindEdit:
		return string(types.EditAttributeMessageEdit)
	default:
		return ""
	}
}
