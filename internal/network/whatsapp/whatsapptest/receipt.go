package whatsapptest

import (
	"maps"

	"go.mau.fi/whatsmeow/types"
)

// receipt takes a receipt of a client: it is confirmed, ends the delivery of the message, and goes to whom
// it concerns.
func (s *Server) receipt(c *conn, d *device, r *node) {
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
	if f := s.takeFaultLocked(faultReceipt, d.owner, s.find(to), ""); f.is(loseReceipt) {
		return // as if the socket had lost it
	}
	c.send(n("ack", a), s.delay())
	for _, id := range receiptIDs(r) {
		s.dequeue(d, "message", id)
		if e := s.ledger.byID[id]; e != nil {
			e.delivery(d).Receipts[kind]++
		}
	}
	s.changed.ring()
	switch types.ReceiptType(kind) {
	case types.ReceiptTypeSender, types.ReceiptTypePeerMsg, types.ReceiptTypeHistorySync, types.ReceiptTypeReadSelf, types.ReceiptTypePlayedSelf:
		// between a client and its own phone
	case types.ReceiptTypeDelivered, types.ReceiptTypeInactive, types.ReceiptTypeRead, types.ReceiptTypePlayed, types.ReceiptTypeRetry, types.ReceiptTypeServerError:
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

// passReceipt gives a receipt to the devices that it concerns: the sending one, or all of the sender's for
// what a person did. The caller holds the lock.
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

// receiptSender is how the reader of a message appears in its receipt. A phone that is seen by number gives
// receipts by number too.
func (s *Server) receiptSender(from *device, to *account) types.JID {
	if from.owner == to {
		return from.owner.hidden(from.id)
	}
	return from.owner.public(from.id)
}
