package whatsapptest

import (
	"context"
	"strconv"

	"go.mau.fi/whatsmeow/types"
)

// presence stores whether a client is available.
func (s *Server) presence(d *device, p *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch str(p, "type") {
	case "available", "unavailable":
		d.owner.online = str(p, "type") == "available"
		s.changed.ring()
	default:
		s.violateLocked("presence of an unknown type %s", shape(p))
	}
}

// chatState passes on that a client is typing.
func (s *Server) chatState(d *device, stanza *node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.find(jid(stanza, "to"))
	if a == nil {
		return
	}
	child := first(stanza)
	for _, other := range a.devices {
		if other.sim != nil {
			other.sim.phone.hears(Typing{From: d.owner.number, State: child.Tag, Media: str(&child, "media")})
			continue
		}
		s.tell(other, n("chatstate", attrs{"from": d.owner.public(0)}, child))
	}
}

// Block makes the phone ignore a person: their messages are confirmed but never arrive.
func (p *Phone) Block(other *Phone) {
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	who := other.account.hidden(0)
	p.account.blocked = append(p.account.blocked, who)
	for _, d := range p.account.devices {
		if d.sim == nil {
			s.notify(d, p.account.pn(0), "account_sync", nil, n("blocklist", attrs{"action": "modify", "dhash": strconv.Itoa(len(p.account.blocked))},
				n("item", attrs{"jid": who, "action": "block"})))
		}
	}
}

// Type shows the clients of another phone that this one's owner is typing, or has paused.
func (p *Phone) Type(to *Phone, state types.ChatPresence) {
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range to.account.devices {
		s.tell(d, n("chatstate", attrs{"from": p.account.public(0)}, n(string(state), nil)))
	}
}

// ClientOnline waits until a client of this account has said that it is available.
func (p *Phone) ClientOnline(ctx context.Context) error {
	_, err := await(ctx, &p.server.changed, func() (struct{}, bool) {
		p.server.mu.Lock()
		defer p.server.mu.Unlock()
		return struct{}{}, p.account.online
	})
	return err
}
