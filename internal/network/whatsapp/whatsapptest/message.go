package whatsapptest

import (
	"maps"
	"slices"

	"go.mau.fi/whatsmeow/types"
)

// letter is a message on its way from one device to others.
type letter struct {
	id, kind string // kind is the stanza's type: text, media, poll, reaction
	chat     types.JID
	group    *group
	from     *device
	peer     bool
	edit     string
	entry    *Entry

	seals  map[*device][]node // what only one device can read
	shared []node             // what every member of a group can read
	extra  []node             // what travels beside it
}

// message takes a message of a client: it confirms it and passes it on.
func (s *Server) message(c *conn, d *device, m *node) {
	s.mu.Lock()
	recipient := s.find(jid(m, "to"))
	s.mu.Unlock()
	var f *Fault
	if str(m, "category") != "peer" { // a test means messages to people
		f = s.takeFault(faultMessage, d.owner, recipient, "")
	}
	if f.is(dropBefore) {
		c.hangUp()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l, code := s.read(d, m)
	if l == nil {
		s.refuseMessage(c, m, nil, code)
		return
	}
	if s.isRetry(m) {
		l.entry.Resent++
		s.post(l)
		return // nobody waits for an ack of this
	}
	if str(m, "device_fanout") == "false" { // for devices that the message has not reached
		l.entry.Resent++
		c.send(n("ack", attrs{"class": "message", "from": l.chat, "id": l.id, "t": s.unix()}), s.delay())
		s.post(l)
		return
	}
	l.entry.Stanzas++
	if f.is(refuseMessage) {
		s.refuseMessage(c, m, l.entry, f.code)
		return
	}
	if r := recipient; r != nil && r != d.owner && r.strangers != 0 && !r.wroteTo[d.owner] {
		s.refuseMessage(c, m, l.entry, r.strangers)
		return
	}
	switch {
	case f.is(dropAfter):
		c.hangUp()
	case !f.is(loseAck):
		l.entry.Acked++
		c.send(n("ack", s.ackAttrs(l, m)), s.delay())
	}
	if l.entry.taken {
		return // the same message again, because the client missed our ack
	}
	l.entry.taken = true
	if recipient != nil {
		d.owner.wroteTo[recipient] = true
	}
	s.post(l)
}

func (s *Server) refuseMessage(c *conn, m *node, e *Entry, code int) {
	if e != nil {
		e.Refused = code
	}
	c.send(n("ack", attrs{"class": "message", "from": jid(m, "to"), "id": str(m, "id"), "t": unix(), "error": code}), s.delay())
}

// isRetry tells a message that answers a device which could not read the first one.
func (s *Server) isRetry(m *node) bool {
	enc, ok := m.GetOptionalChildByTag("enc")
	return ok && str(&enc, "count") != ""
}

// read turns a stanza of a client into a letter, or says with which code it is refused.
func (s *Server) read(d *device, m *node) (*letter, int) {
	l := &letter{
		id: str(m, "id"), kind: str(m, "type"), chat: jid(m, "to"), from: d,
		peer: str(m, "category") == "peer", edit: str(m, "edit"), seals: map[*device][]node{},
	}
	target := ""
	if l.chat.Server == types.GroupServer {
		if l.group = s.groups[l.chat.User]; l.group == nil {
			return nil, 404
		}
		if l.group.member(d.owner) == nil {
			return nil, 403
		}
		target = l.chat.User
	} else {
		a := s.find(l.chat)
		if a == nil {
			return nil, 404
		}
		target = a.number
		meet(d.owner, a)
	}
	l.entry = s.ledger.entry(l.id, d.owner.number, target)
	l.entry.Peer = l.peer
	s.open(l, m)
	return l, 0
}

// open sorts the parts of a message by who may have them, and counts its ciphertexts.
func (s *Server) open(l *letter, m *node) {
	first := l.entry.Stanzas == 0 && !s.isRetry(m)
	count := func(to *account) {
		if !first {
			return
		}
		l.entry.Sealed++
		if to != nil && (to != l.from.owner || to.number == l.entry.To) {
			l.entry.ForThem++
		}
	}
	for _, part := range m.GetChildren() {
		switch part.Tag {
		case "participants":
			for _, to := range part.GetChildren() {
				if d := s.findDevice(jid(&to, "jid")); d != nil {
					l.seals[d] = to.GetChildrenByTag("enc")
					for range l.seals[d] {
						count(d.owner)
					}
				}
			}
		case "enc":
			if str(&part, "type") == "skmsg" {
				l.shared = append(l.shared, part)
				count(nil)
				continue
			}
			if d := s.directTarget(m); d != nil {
				l.seals[d] = append(l.seals[d], part)
				count(d.owner)
			}
		case "tctoken", "cstoken", "reporting": // between the client and the server
		default:
			l.extra = append(l.extra, part)
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

// ackAttrs makes the confirmation of a message. Where the client's list of devices is not ours, ours is told.
func (s *Server) ackAttrs(l *letter, m *node) attrs {
	a := attrs{"class": "message", "from": l.chat, "id": l.id, "t": s.unix()}
	if l.peer {
		return a
	}
	var ours []types.JID
	if l.group != nil {
		ours = l.group.addresses()
		if hash := devicesHash(ours); hash != str(m, "phash") {
			a["phash"] = hash
		}
		return a
	}
	recipient := s.find(l.chat)
	ours = l.from.owner.addresses(l.chat)
	if recipient != l.from.owner {
		ours = append(ours, recipient.addresses(l.chat)...)
	}
	theirs := []types.JID{l.from.owner.form(l.chat, l.from.id)}
	participants := m.GetChildByTag("participants")
	for _, to := range participants.GetChildren() {
		theirs = append(theirs, jid(&to, "jid"))
	}
	if devicesHash(ours) != devicesHash(theirs) {
		a["phash"] = devicesHash(ours)
	}
	return a
}

// post delivers a letter to everybody who can read a part of it. The caller holds the lock.
func (s *Server) post(l *letter) {
	if l.group != nil && len(l.shared) > 0 {
		for _, m := range l.group.members {
			for _, d := range m.account.devices {
				if d != l.from {
					s.deliver(d, s.envelope(l, d), l.entry)
				}
			}
		}
		return
	}
	for d := range l.seals {
		if !d.owner.blocks(l.from.owner) {
			s.deliver(d, s.envelope(l, d), l.entry)
		}
	}
}

// blocks tells whether an account receives nothing from another.
func (a *account) blocks(other *account) bool {
	return slices.Contains(a.blocked, other.pn(0)) || slices.Contains(a.blocked, other.hidden(0))
}

// envelope is the stanza that one device gets.
func (s *Server) envelope(l *letter, to *device) node {
	sender := l.from.owner
	a := attrs{"id": l.id, "type": l.kind, "t": unix(), "notify": sender.name}
	if l.edit != "" {
		a["edit"] = l.edit
	}
	switch {
	case l.group != nil:
		maps.Copy(a, l.group.envelope(l.from))
	case sender == to.owner:
		a["from"] = sender.hidden(l.from.id)
		if l.peer {
			a["category"] = "peer"
			break
		}
		a["recipient"] = l.chat
		if r := s.find(l.chat); r != nil {
			setOther(a, "peer_recipient", l.chat, r)
		}
	default:
		from := sender.public(l.from.id)
		a["from"] = from
		setOther(a, "sender", from, sender)
	}
	return n("message", a, slices.Concat(l.seals[to], l.shared, l.extra)...)
}

// setOther names the other address of an account beside the one that is used.
func setOther(a attrs, key string, used types.JID, who *account) {
	switch {
	case used.Server == types.HiddenUserServer && who.shown != OnlyLID:
		a[key+"_pn"] = who.pn(used.Device)
	case used.Server == types.DefaultUserServer && who.shown != OnlyNumber:
		a[key+"_lid"] = who.hidden(used.Device)
	}
}
