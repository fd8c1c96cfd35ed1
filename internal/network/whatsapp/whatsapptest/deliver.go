package whatsapptest

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"go.mau.fi/whatsmeow/types"

	"parley/internal/wait"
)

// queued is a stanza that a device has not acknowledged.
type queued struct {
	class, id string // class is the tag of the stanza
	stanza    node
	trace     *Trace // nil if the stanza is not a message
}

// deliver queues a stanza for a device, and sends it if the device is active. The caller holds the lock.
func (s *Server) deliver(d *device, stanza node, e *Trace) {
	if d.removed {
		return
	}
	q := &queued{class: stanza.Tag, id: str(&stanza, "id"), stanza: stanza, trace: e}
	d.queue = append(d.queue, q)
	switch {
	case d.sim != nil:
		wait.Notify(d.sim.phone.pending)
	case d.active && d.hold && q.class == "notification":
		d.held = append(d.held, q)
	case d.active:
		s.sendQueued(d, q, stanza)
	}
}

func (s *Server) sendQueued(d *device, q *queued, stanza node) {
	if q.trace != nil {
		q.trace.delivery(d).Given++
	}
	d.conn.send(stanza)
}

// flush sends the queue to a device that became active. The caller holds the lock.
func (s *Server) flush(d *device) {
	d.active = true
	count := map[string]int{}
	for _, q := range d.queue {
		count[q.class]++
	}
	total := len(d.queue)
	if total > 0 {
		d.conn.send(n("ib", attrs{"from": types.ServerJID}, n("offline_preview", attrs{
			"count": total, "message": count["message"], "receipt": count["receipt"],
			"notification": count["notification"], "appdata": 0,
		})))
	}
	for i, q := range d.queue {
		again := q.stanza
		again.Attrs = maps.Clone(again.Attrs)
		again.Attrs["offline"] = i
		s.sendQueued(d, q, again)
	}
	d.conn.send(n("ib", attrs{"from": types.ServerJID}, n("offline", attrs{"count": total})))
	s.changed.notify()
}

// dequeue removes the first queued stanza with a class and an id. The caller holds the lock.
func (s *Server) dequeue(d *device, class, id string) {
	if i := slices.IndexFunc(d.queue, func(q *queued) bool { return q.class == class && q.id == id }); i >= 0 {
		d.queue = slices.Delete(d.queue, i, i+1)
		s.changed.notify()
	}
}

func (s *Server) handleAck(d *device, stanza *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	class, id := str(stanza, "class"), str(stanza, "id")
	switch class {
	case "message", "receipt", "notification", "call":
		s.dequeue(d, class, id)
	default:
		s.violateLocked("ack of an unknown class %s", shape(stanza))
	}
}

// notify sends a notification to a device. The caller holds the lock.
func (s *Server) notify(d *device, from types.JID, kind string, extra attrs, children ...node) {
	a := attrs{"from": from, "type": kind, "id": s.nextID(""), "t": unix()}
	maps.Copy(a, extra)
	s.deliver(d, n("notification", a, children...), nil)
}

// announceDevices notifies all peers of an account, under one of its addresses, that its devices changed. The caller
// holds the lock.
func (s *Server) announceDevices(a *account, from types.JID, extra attrs, change string, id uint16) {
	for peer := range a.peers {
		for _, d := range peer.devices {
			if d.sim != nil || peer == a {
				continue
			}
			s.notify(d, from, "devices", extra, n(change, attrs{"device_hash": devicesHash(a.addresses(from))},
				n("device", attrs{"jid": a.jidLike(from, id)})))
		}
	}
	s.announceOwn(a, id)
}

// announceOwn sends the device list to the other linked clients of an account. The caller holds the lock.
func (s *Server) announceOwn(a *account, changed uint16) {
	all := a.addresses(a.pnJID(0))
	var list []node
	for _, address := range all {
		list = append(list, n("device", attrs{"jid": address}))
	}
	for id, d := range a.devices {
		if d.sim == nil && id != changed {
			s.notify(d, a.pnJID(0), "account_sync", nil, n("devices", attrs{"dhash": devicesHash(all)}, list...))
		}
	}
}

// HoldNotifications delays notifications to the linked client, as a slow network does.
func (l *Link) HoldNotifications(hold bool) {
	s := l.phone.server
	s.mu.Lock()
	defer s.mu.Unlock()
	d := l.device
	d.hold = hold
	if hold || !d.active {
		return
	}
	for _, q := range d.held {
		s.sendQueued(d, q, q.stanza)
	}
	d.held = nil
}

func (s *Server) handlePresence(d *device, p *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch str(p, "type") {
	case "available", "unavailable":
		d.owner.online = str(p, "type") == "available"
		s.changed.notify()
	default:
		s.violateLocked("presence of an unknown type %s", shape(p))
	}
}

func (s *Server) handleChatState(d *device, stanza *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := []*account{s.find(jid(stanza, "to"))}
	if g := s.groups[jid(stanza, "to").User]; g != nil {
		to = g.members
	}
	child := first(stanza)
	for _, a := range to {
		if a == nil || len(to) > 1 && a == d.owner {
			continue
		}
		for _, other := range a.devices {
			if other.sim != nil {
				other.sim.phone.addTyping(Typing{From: d.owner.number, State: child.Tag})
			}
		}
	}
}

// Block makes the phone ignore a contact: its messages are confirmed but never arrive.
func (p *Phone) Block(other *Phone) {
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	who := other.account.lidJID(0)
	p.account.blocked = append(p.account.blocked, who)
	for _, d := range p.account.devices {
		if d.sim == nil {
			s.notify(d, p.account.pnJID(0), "account_sync", nil,
				n("blocklist", attrs{"action": "modify", "dhash": strconv.Itoa(len(p.account.blocked))},
					n("item", attrs{"jid": who, "action": "block"})))
		}
	}
}

// ClientOnline waits until a client of this account has said that it is available.
func (p *Phone) ClientOnline(ctx context.Context) error {
	return p.server.await(ctx, func() bool { return p.account.online })
}
