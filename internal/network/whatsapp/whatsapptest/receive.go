package whatsapptest

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"time"

	"go.mau.fi/libsignal/signalerror"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
)

const maxRetries = 5 // retries that a device requests for one message

// handleMessage decrypts a message, shows it and sends a receipt. The caller holds the phone's lock.
func (p *Phone) handleMessage(ctx context.Context, m *simDevice, q *queued) {
	stanza := &q.stanza
	sender := p.server.author(stanza)
	if sender == nil {
		return // unlinked since it wrote
	}
	got, enc, err := m.decryptAll(ctx, sender, stanza)
	if err != nil {
		p.requestRetry(m, q, enc, err)
		return
	}
	if got == nil {
		return // only a key
	}
	p.updateDelivery(m.device, q.trace, func(d *Delivery) { d.Decrypted++ })
	if str(stanza, "category") == "peer" {
		p.handlePeerRequest(sender, got.GetProtocolMessage())
		return
	}
	msg := p.toMessage(m, sender, stanza, got)
	p.addToInbox(msg)
	if !msg.FromMe {
		p.sendDeliveryReceipt(m, stanza, types.ReceiptTypeDelivered)
	}
}

// decryptAll decrypts the parts of a stanza: in a group, the key and the message. It returns the part that it could not read.
func (m *simDevice) decryptAll(ctx context.Context, sender *device, stanza *node) (got *waE2E.Message, failed *node, err error) {
	group := ""
	if from := jid(stanza, "from"); from.Server == types.GroupServer {
		group = from.String()
	}
	for _, enc := range stanza.GetChildrenByTag("enc") {
		msg, err := m.decrypt(ctx, sender, group, &enc)
		if err != nil {
			return nil, &enc, err
		}
		key := msg.GetSenderKeyDistributionMessage()
		if key != nil {
			if err := m.storeSenderKey(ctx, sender, key); err != nil {
				return nil, &enc, err
			}
		}
		if msg.SenderKeyDistributionMessage = nil; key == nil || proto.Size(msg) > 0 {
			got = msg
		}
	}
	return got, nil, nil
}

// author is the device that a stanza comes from, also in a group; nil: it is unlinked.
func (s *Server) author(stanza *node) *device {
	from := jid(stanza, "from")
	if a := jid(stanza, "participant"); !a.IsEmpty() {
		from = a
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.findDevice(from)
}

func (p *Phone) toMessage(m *simDevice, sender *device, stanza *node, raw *waE2E.Message) *Message {
	seconds, _ := strconv.ParseInt(str(stanza, "t"), 10, 64)
	msg := &Message{
		ID: str(stanza, "id"), From: sender.owner.number, FromMe: sender.owner == p.account,
		Device: m.device.id, At: time.Unix(seconds, 0), author: sender.owner.lidJID(0),
	}
	if enc := stanza.GetChildByTag("enc"); str(&enc, "count") != "" {
		msg.Retries, _ = strconv.Atoi(str(&enc, "count"))
	}
	if own := raw.GetDeviceSentMessage(); own != nil {
		raw = own.GetMessage()
	}
	msg.Raw, msg.Kind = raw, toKind(raw)
	msg.Text, msg.Target = describe(raw)
	switch from := jid(stanza, "from"); {
	case from.Server == types.GroupServer:
		msg.Chat = from
	case msg.FromMe:
		msg.Chat = jid(stanza, "recipient")
	default:
		msg.Chat = sender.owner.lidJID(0)
	}
	return msg
}

// sendDeliveryReceipt sends a receipt as a client does.
func (p *Phone) sendDeliveryReceipt(m *simDevice, stanza *node, kind types.ReceiptType, children ...node) {
	a := attrs{"id": str(stanza, "id"), "to": jid(stanza, "from")}
	if who := jid(stanza, "participant"); !who.IsEmpty() {
		a["participant"] = who
	}
	r := n("receipt", a, children...)
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.server.passReceipt(m.device, &r, kind)
}

// requestRetry requests a message again, unless it is a copy of one that was already read.
func (p *Phone) requestRetry(m *simDevice, q *queued, enc *node, err error) {
	stanza := &q.stanza
	p.updateDelivery(m.device, q.trace, func(d *Delivery) { d.Failed, d.Why = d.Failed+1, err.Error() })
	p.view.Lock()
	known := p.seen[seenKey{m.device.id, str(stanza, "id")}]
	if known != nil {
		known.Copies++
	}
	p.view.Unlock()
	p.changed.notify()
	if known != nil {
		p.sendDeliveryReceipt(m, stanza, types.ReceiptTypeDelivered)
		return
	}
	if errors.Is(err, signalerror.ErrOldCounter) {
		return // a copy of something that is not a message
	}
	count, _ := strconv.Atoi(str(enc, "count"))
	if count++; count > maxRetries {
		return
	}
	p.server.mu.Lock()
	one, ok := m.device.useOneTimeKey()
	keys := m.device.keyNodes(one, ok)
	registration := m.store.registration
	if len(m.device.adv) > 0 {
		keys = append(keys, leaf("device-identity", m.device.adv))
	}
	p.server.mu.Unlock()
	id := str(stanza, "id")
	p.sendDeliveryReceipt(m, stanza, types.ReceiptTypeRetry,
		n("retry", attrs{"count": count, "id": id, "t": str(stanza, "t"), "v": "1"}),
		leaf("registration", be32(registration)),
		n("keys", nil, keys...))
}

// handleReceipt handles a receipt for a message of this phone. The caller holds the phone's lock.
func (p *Phone) handleReceipt(ctx context.Context, m *simDevice, r *node) {
	kind := types.ReceiptType(str(r, "type"))
	reader := p.server.author(r)
	if reader == nil {
		return
	}
	p.view.Lock()
	for _, id := range receiptIDs(r) {
		p.receipts = append(p.receipts, Receipt{ID: id, Type: kind, From: reader.owner.number, Device: reader.id})
	}
	p.view.Unlock()
	p.changed.notify()
	switch kind {
	case types.ReceiptTypeRetry:
		p.resend(ctx, m, reader, r)
	case types.ReceiptTypeServerError:
		p.reupload(reader, r)
	}
}

// handleReceipt confirms a receipt of a client, ends the delivery of the message, and passes the receipt on.
func (s *Server) handleReceipt(c *conn, d *device, r *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind, to := str(r, "type"), jid(r, "to")
	a := attrs{"class": "receipt", "from": to, "id": str(r, "id")}
	if kind != "" {
		a["type"] = kind
	}
	if p := jid(r, "participant"); !p.IsEmpty() {
		a["participant"] = p
	}
	if f := s.nextFaultLocked(faultReceipt, d.owner, s.find(to), ""); f.is(loseReceipt) {
		return // as if the socket had lost it
	}
	c.send(n("ack", a))
	for _, id := range receiptIDs(r) {
		s.dequeue(d, "message", id)
		if e := s.traces.byID[id]; e != nil {
			e.delivery(d).Receipts[kind]++
		}
	}
	s.changed.notify()
	switch types.ReceiptType(kind) {
	case types.ReceiptTypeSender, types.ReceiptTypePeerMsg, types.ReceiptTypeHistorySync, types.ReceiptTypeReadSelf,
		types.ReceiptTypePlayedSelf:
		// between a client and its own phone
	case types.ReceiptTypeDelivered, types.ReceiptTypeInactive, types.ReceiptTypeRead, types.ReceiptTypePlayed, types.ReceiptTypeRetry,
		types.ReceiptTypeServerError:
		s.passReceipt(d, r, types.ReceiptType(kind))
	default:
		s.violateLocked("receipt of an unknown type %s", shape(r))
	}
}

func receiptIDs(r *node) []string {
	ids := []string{str(r, "id")}
	list := r.GetChildByTag("list")
	for _, item := range list.GetChildrenByTag("item") {
		ids = append(ids, str(&item, "id"))
	}
	return ids
}

// passReceipt sends a receipt to the sending device, or to all of the sender's devices for read and played. The caller
// holds the lock.
func (s *Server) passReceipt(from *device, r *node, kind types.ReceiptType) {
	chat := jid(r, "to")
	author := chat
	if p := jid(r, "participant"); !p.IsEmpty() {
		author = p
	}
	a := s.find(author)
	if a == nil {
		return
	}
	out := attrs{"id": str(r, "id"), "t": unix()}
	if kind != "" {
		out["type"] = string(kind)
	}
	if chat.Server == types.GroupServer {
		if g := s.groups[chat.User]; g != nil {
			maps.Copy(out, g.envelope(from))
		}
	} else {
		out["from"] = s.receiptSender(from, a)
	}
	stanza := node{Tag: "receipt", Attrs: out, Content: r.Content}
	if kind == types.ReceiptTypeRead || kind == types.ReceiptTypePlayed {
		for _, d := range a.devices {
			if d != from {
				stanza.Attrs = maps.Clone(out)
				s.deliver(d, stanza, nil)
			}
		}
		return
	}
	if d := a.devices[author.Device]; d != nil && d != from {
		s.deliver(d, stanza, nil)
	}
}

// receiptSender is the reader's address in a receipt. A phone that is shown by number sends receipts by number too.
func (s *Server) receiptSender(from *device, to *account) types.JID {
	if from.owner == to {
		return from.owner.lidJID(from.id)
	}
	return from.owner.publicJID(from.id)
}

const maxStoredSent = 1024 // messages that a phone can send again to a device that could not read them

type sentMessage struct {
	raw   *waE2E.Message
	chat  types.JID
	group *Group
}

func (p *Phone) storeSent(id string, m *sentMessage) {
	p.sent[id] = m
	p.order = append(p.order, id)
	if len(p.order) > maxStoredSent {
		delete(p.sent, p.order[0])
		p.order = p.order[1:]
	}
}

// resend encrypts a message again for a device that could not read it. The caller holds the phone's lock.
func (p *Phone) resend(ctx context.Context, m *simDevice, to *device, r *node) {
	id := str(r, "id")
	msg := p.sent[id]
	if msg == nil {
		return
	}
	retry := r.GetChildByTag("retry")
	count, _ := strconv.Atoi(str(&retry, "count"))
	m.store.deleteSession(address(to))
	raw := msg.raw
	if msg.group != nil {
		_, key, err := m.encryptGroup(ctx, msg.chat.String(), nil)
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
	enc, err := m.encrypt(ctx, to, plain)
	if err != nil {
		return
	}
	enc.Attrs["count"] = count
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &outgoing{
		id: id, kind: stanzaKind(toKind(msg.raw)), chat: msg.chat, group: msg.group, from: m.device,
		ciphertexts: map[*device][]node{to: {enc}}, trace: s.traces.byID[id],
	}
	if out.trace != nil {
		out.trace.Resent++
	}
	s.deliverAll(out)
}
