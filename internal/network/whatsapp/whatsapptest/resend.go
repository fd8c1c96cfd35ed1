package whatsapptest

import (
	"context"
	"strconv"

	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

const sentKept = 1024 // messages that a phone can send again to a device that could not read them

// sentMessage is kept so that it can be encrypted again.
type sentMessage struct {
	raw   *waE2E.Message
	chat  types.JID
	group *group
}

// keep remembers a message for a while, to send it again to who cannot read it.
func (p *Phone) keep(id string, m *sentMessage) {
	p.sent[id] = m
	p.order = append(p.order, id)
	if len(p.order) > sentKept {
		delete(p.sent, p.order[0])
		p.order = p.order[1:]
	}
}

// resend encrypts a message anew for a device that could not read it. The caller holds the phone's lock.
func (p *Phone) resend(ctx context.Context, m *simulated, to *device, r *node) {
	id := str(r, "id")
	msg := p.sent[id]
	if msg == nil {
		return
	}
	retry := r.GetChildByTag("retry")
	count, _ := strconv.Atoi(str(&retry, "count"))
	m.store.forget(address(to))
	raw := msg.raw
	if msg.group != nil {
		_, key, err := m.sealGroup(ctx, msg.chat.String(), nil)
		if err != nil {
			return
		}
		raw = proto.CloneOf(raw)
		raw.SenderKeyDistributionMessage = key.SenderKeyDistributionMessage
	}
	plain, err := proto.Marshal(raw)
	if err != nil {
		return
	}
	enc, err := m.seal(ctx, to, plain)
	if err != nil {
		return
	}
	enc.Attrs["count"] = count
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &letter{
		id: id, kind: stanzaKind(kindOf(msg.raw)), chat: msg.chat, group: msg.group, from: m.device,
		seals: map[*device][]node{to: {enc}}, entry: s.ledger.byID[id],
	}
	if l.entry != nil {
		l.entry.Resent++
	}
	s.post(l)
}
