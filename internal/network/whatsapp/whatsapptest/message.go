package whatsapptest

import (
	"maps"
	"slices"

	"go.mau.fi/whatsmeow/types"
)

type outgoing struct {
	id, kind string // kind is the stanza's type: text, media, poll, reaction
	chat     types.JID
	group    *Group
	from     *device
	peer     bool
	edit     string
	trace    *Trace

	ciphertexts map[*device][]node
	shared      []node // readable by all members of a group
	extra       []node // sent in clear
}

// handleMessage confirms a message of a client and delivers it.
func (s *Server) handleMessage(c *conn, d *device, m *node) {
	s.mu.Lock()
	recipient := s.find(jid(m, "to"))
	s.mu.Unlock()
	target := faultMessage // to contacts
	if str(m, "category") == "peer" {
		target = faultPeer
	}
	f := s.nextFault(target, d.owner, recipient, "")
	if f.is(dropBefore) {
		c.cancel()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out, code := s.parseMessage(d, m)
	if out == nil {
		c.refuseMessage(m, code)
		return
	}
	if s.isRetry(m) {
		out.trace.Resent++
		s.deliverAll(out)
		return // not acknowledged
	}
	if str(m, "device_fanout") == "false" { // for devices that the message has not reached
		out.trace.Resent++
		c.send(n("ack", attrs{"class": "message", "from": out.chat, "id": out.id, "t": s.unix()}))
		s.deliverAll(out)
		return
	}
	out.trace.Stanzas++
	if f.is(refuseMessage) {
		c.refuseMessage(m, f.code)
		return
	}
	if r := recipient; r != nil && r != d.owner && r.strangers != 0 && !r.wroteTo[d.owner] {
		c.refuseMessage(m, r.strangers)
		return
	}
	switch {
	case f.is(dropAfter):
		c.cancel()
	case !f.is(loseAck):
		out.trace.Acked++
		c.send(n("ack", s.ackAttrs(out, m)))
	}
	if out.trace.accepted {
		return // the same message again, because the client missed our ack
	}
	out.trace.accepted = true
	if recipient != nil {
		d.owner.wroteTo[recipient] = true
	}
	s.deliverAll(out)
}

func (c *conn) refuseMessage(m *node, code int) {
	c.send(n("ack", attrs{"class": "message", "from": jid(m, "to"), "id": str(m, "id"), "t": unix(), "error": code}))
}

// isRetry reports whether a message is encrypted again for a device that could not read it.
func (s *Server) isRetry(m *node) bool {
	enc, ok := m.GetOptionalChildByTag("enc")
	return ok && str(&enc, "count") != ""
}

// parseMessage reads the message of a client to a contact or a group; nil: there is no such contact or group, with the code of
// the error.
func (s *Server) parseMessage(d *device, m *node) (*outgoing, int) {
	out := &outgoing{
		id: str(m, "id"), kind: str(m, "type"), chat: jid(m, "to"), from: d,
		peer: str(m, "category") == "peer", edit: str(m, "edit"), ciphertexts: map[*device][]node{},
	}
	target := out.chat.User
	if out.chat.Server == types.GroupServer {
		if out.group = s.groups[out.chat.User]; out.group == nil {
			return nil, 404
		}
		if g := out.group; !slices.Contains(g.members, d.owner) || g.flags["announcement"] && d.owner != g.creator &&
			!slices.Contains(g.admins, d.owner) {
			return nil, 403
		}
	} else {
		a := s.find(out.chat)
		if a == nil {
			return nil, 404
		}
		addPeers(d.owner, a)
		target = a.number
		if r := jid(m, "recipient"); !r.IsEmpty() { // for one device of the sender's own account
			out.chat = r
		}
	}
	out.trace = s.traces.get(out.id, d.owner.number, target)
	out.trace.Peer = out.peer
	s.sortParts(out, m)
	return out, 0
}

// sortParts sorts the parts of a message by recipient and counts ciphertexts.
func (s *Server) sortParts(out *outgoing, m *node) {
	first := out.trace.Stanzas == 0 && !s.isRetry(m)
	count := func(to *account) {
		if !first {
			return
		}
		out.trace.Ciphertexts++
		if to == nil || to != out.from.owner || to.number == out.trace.To {
			out.trace.ForRecipient++
		}
	}
	for _, part := range m.GetChildren() {
		switch part.Tag {
		case "participants":
			for _, to := range part.GetChildren() {
				if d := s.findDevice(jid(&to, "jid")); d != nil {
					out.ciphertexts[d] = to.GetChildrenByTag("enc")
					for range out.ciphertexts[d] {
						count(d.owner)
					}
				}
			}
		case "enc":
			if str(&part, "type") == "skmsg" {
				out.shared = append(out.shared, part)
				count(nil)
			} else if d := s.directTarget(m); d != nil {
				out.ciphertexts[d] = append(out.ciphertexts[d], part)
				count(d.owner)
			}
		case "tctoken", "cstoken", "reporting": // between the client and the server
		default:
			out.extra = append(out.extra, part)
		}
	}
}

// directTarget is the one device that a message without a list of participants is for.
func (s *Server) directTarget(m *node) *device {
	if p := jid(m, "participant"); !p.IsEmpty() {
		return s.findDevice(p)
	}
	return s.findDevice(jid(m, "to"))
}

// ackAttrs builds the confirmation of a message. It contains the hash of the server's device list if the client's
// differs.
func (s *Server) ackAttrs(out *outgoing, m *node) attrs {
	a := attrs{"class": "message", "from": out.chat, "id": out.id, "t": s.unix()}
	if out.peer {
		return a
	}
	if s.wrongHashes {
		a["phash"] = "2:AAAAAAAA"
		return a
	}
	if out.group != nil {
		if hash := devicesHash(out.group.addresses()); hash != str(m, "phash") {
			a["phash"] = hash
		}
		return a
	}
	recipient := s.find(out.chat)
	ours := out.from.owner.addresses(out.chat)
	if recipient != out.from.owner {
		ours = append(ours, recipient.addresses(out.chat)...)
	}
	theirs := []types.JID{out.from.owner.jidLike(out.chat, out.from.id)}
	participants := m.GetChildByTag("participants")
	for _, to := range participants.GetChildren() {
		theirs = append(theirs, jid(&to, "jid"))
	}
	if devicesHash(ours) != devicesHash(theirs) {
		a["phash"] = devicesHash(ours)
	}
	return a
}

// deliverAll delivers a message to every device that can read a part of it. The caller holds the lock.
func (s *Server) deliverAll(out *outgoing) {
	if len(out.shared) > 0 {
		for _, m := range out.group.members {
			for _, d := range m.devices {
				if d != out.from {
					out.trace.delivery(d) // it is expected there
					s.deliver(d, s.envelope(out, d), out.trace)
				}
			}
		}
		return
	}
	for d := range out.ciphertexts {
		if !d.owner.blocks(out.from.owner) {
			s.deliver(d, s.envelope(out, d), out.trace)
		}
	}
}

func (a *account) blocks(other *account) bool {
	return slices.Contains(a.blocked, other.pnJID(0)) || slices.Contains(a.blocked, other.lidJID(0))
}

// envelope is the stanza that one device gets.
func (s *Server) envelope(out *outgoing, to *device) node {
	sender := out.from.owner
	a := attrs{"id": out.id, "type": out.kind, "t": unix(), "notify": sender.name}
	if out.edit != "" {
		a["edit"] = out.edit
	}
	switch {
	case out.group != nil:
		maps.Copy(a, out.group.envelope(out.from))
	case sender == to.owner:
		a["from"] = sender.lidJID(out.from.id)
		if out.peer {
			a["category"] = "peer"
			break
		}
		a["recipient"] = out.chat
		if r := s.find(out.chat); r != nil {
			setOther(a, "peer_recipient", out.chat, r)
		}
	default:
		from := sender.publicJID(out.from.id)
		a["from"] = from
		setOther(a, "sender", from, sender)
	}
	return n("message", a, slices.Concat(out.ciphertexts[to], out.shared, out.extra)...)
}

func setOther(a attrs, key string, used types.JID, who *account) {
	switch {
	case used.Server == types.HiddenUserServer && who.shown != OnlyLID:
		a[key+"_pn"] = who.pnJID(used.Device)
	case used.Server == types.DefaultUserServer && who.shown != OnlyNumber:
		a[key+"_lid"] = who.lidJID(used.Device)
	}
}
