package whatsapptest

import (
	"context"
	"errors"
	"strconv"
	"time"

	"go.mau.fi/libsignal/signalerror"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
)

const maxRetries = 5 // times that a device asks for a message that it cannot read

// receive decrypts a message, shows it and gives a receipt. The caller holds the phone's lock.
func (p *Phone) receive(ctx context.Context, m *simulated, q *queued) {
	stanza := &q.stanza
	author := jid(stanza, "from")
	if a := jid(stanza, "participant"); !a.IsEmpty() {
		author = a
	}
	p.server.mu.Lock()
	sender := p.server.findDevice(author)
	p.server.mu.Unlock()
	if sender == nil {
		return // unlinked since it wrote
	}
	group := ""
	if from := jid(stanza, "from"); from.Server == types.GroupServer {
		group = from.String()
	}
	var got *waE2E.Message
	for _, enc := range stanza.GetChildrenByTag("enc") {
		msg, err := m.unseal(ctx, sender, group, &enc)
		if err != nil {
			p.unreadable(m, q, &enc, err)
			return
		}
		if key := msg.GetSenderKeyDistributionMessage(); key != nil {
			if err := m.learn(ctx, sender, key); err != nil {
				p.unreadable(m, q, &enc, err)
				return
			}
		}
		if !isKey(msg) {
			got = msg
		}
	}
	if got == nil {
		return // only a key
	}
	p.record(m.device, q.entry, func(d *Delivery) { d.Decrypted++ })
	if str(stanza, "category") == "peer" {
		p.requested(sender, str(stanza, "id"), got.GetProtocolMessage())
		return
	}
	msg := p.compose(m, sender, stanza, got)
	if p.show(msg) {
		p.record(m.device, q.entry, func(d *Delivery) { d.Shown = 1 })
	}
	if msg.FromMe {
		return
	}
	p.confirm(m, stanza, types.ReceiptTypeDelivered)
}

// compose makes what the owner sees.
func (p *Phone) compose(m *simulated, sender *device, stanza *node, raw *waE2E.Message) *Message {
	seconds, _ := strconv.ParseInt(str(stanza, "t"), 10, 64)
	msg := &Message{
		ID: str(stanza, "id"), From: sender.owner.number, FromMe: sender.owner == p.account,
		Device: m.device.id, At: time.Unix(seconds, 0), author: sender.owner.hidden(0),
	}
	if enc := stanza.GetChildByTag("enc"); str(&enc, "count") != "" {
		msg.Retries, _ = strconv.Atoi(str(&enc, "count"))
	}
	if own := raw.GetDeviceSentMessage(); own != nil {
		raw = own.GetMessage()
	}
	msg.Raw, msg.Kind = raw, kindOf(raw)
	msg.Text, msg.Target, msg.Quoted = describe(raw)
	switch from := jid(stanza, "from"); {
	case from.Server == types.GroupServer:
		msg.Chat = from
	case msg.FromMe:
		msg.Chat = jid(stanza, "recipient")
	default:
		msg.Chat = sender.owner.hidden(0)
	}
	return msg
}

// confirm gives a receipt as a client would.
func (p *Phone) confirm(m *simulated, stanza *node, kind types.ReceiptType, children ...node) {
	a := attrs{"id": str(stanza, "id"), "to": jid(stanza, "from")}
	if who := jid(stanza, "participant"); !who.IsEmpty() {
		a["participant"] = who
	}
	r := n("receipt", a, children...)
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.server.passReceipt(m.device, &r, kind)
}

// unreadable asks the sender for a message again, unless it is a second copy of what was read already.
func (p *Phone) unreadable(m *simulated, q *queued, enc *node, err error) {
	stanza := &q.stanza
	p.record(m.device, q.entry, func(d *Delivery) { d.Failed, d.Why = d.Failed+1, err.Error() })
	p.view.Lock()
	known := p.seen[seenKey{m.device.id, str(stanza, "id")}]
	if known != nil {
		known.Copies++
	}
	p.view.Unlock()
	p.news.ring()
	if known != nil {
		p.confirm(m, stanza, types.ReceiptTypeDelivered)
		return
	}
	if errors.Is(err, signalerror.ErrOldCounter) {
		return // a copy of what was no message, a key of a group for instance
	}
	count, _ := strconv.Atoi(str(enc, "count"))
	if count++; count > maxRetries {
		return
	}
	p.server.mu.Lock()
	one, ok := m.device.takeOneTime()
	keys := m.device.keyNodes(one, ok)
	registration := m.store.registration
	if len(m.device.adv) > 0 {
		keys = append(keys, leaf("device-identity", m.device.adv))
	}
	p.server.mu.Unlock()
	id := str(stanza, "id")
	p.confirm(m, stanza, types.ReceiptTypeRetry,
		n("retry", attrs{"count": count, "id": id, "t": str(stanza, "t"), "v": "1"}),
		leaf("registration", be32(registration)),
		n("keys", nil, keys...))
}

// receipted takes a receipt for what this phone sent. The caller holds the phone's lock.
func (p *Phone) receipted(ctx context.Context, m *simulated, r *node) {
	kind := types.ReceiptType(str(r, "type"))
	who := jid(r, "from")
	if a := jid(r, "participant"); !a.IsEmpty() {
		who = a
	}
	p.server.mu.Lock()
	reader := p.server.findDevice(who)
	p.server.mu.Unlock()
	if reader == nil {
		return
	}
	p.view.Lock()
	for _, id := range receiptIDs(r) {
		p.receipts = append(p.receipts, Receipt{ID: id, Type: kind, From: reader.owner.number, Device: reader.id})
	}
	p.view.Unlock()
	p.news.ring()
	switch kind {
	case types.ReceiptTypeRetry:
		p.resend(ctx, m, reader, r)
	case types.ReceiptTypeServerError:
		p.uploadAgain(reader, r)
	}
}
