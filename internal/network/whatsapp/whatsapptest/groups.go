package whatsapptest

import (
	"slices"
	"strconv"

	"go.mau.fi/whatsmeow/types"
)

// Group is a chat of many. It does not change.
type Group struct {
	jid     types.JID
	subject string
	created int64
	members []*account // the creator first
}

func (g *Group) JID() types.JID { return g.jid }

func (g *Group) chat() types.JID { return g.jid }

// CreateGroup makes a group of this phone and others, and notifies their linked clients.
func (p *Phone) CreateGroup(subject string, others ...*Phone) *Group {
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	members := []*account{p.account}
	for _, o := range others {
		members = append(members, o.account)
	}
	return s.createGroup(p.main.device, subject, members)
}

// createGroup makes a group and notifies the linked clients of all members, except the creating device. The caller holds
// the lock.
func (s *Server) createGroup(by *device, subject string, members []*account) *Group {
	s.serial++
	g := &Group{
		jid:     types.NewJID("120363"+strconv.FormatUint(1_000_000_000_000+s.serial, 10), types.GroupServer),
		subject: subject, created: unix(), members: members,
	}
	s.groups[g.jid.User] = g
	extra := g.envelope(by)
	extra["participant"], extra["notify"] = by.owner.lidJID(0), by.owner.name
	for _, m := range g.members {
		for _, d := range m.devices {
			if d.sim == nil && d != by {
				s.notify(d, g.jid, "w:gp2", extra, n("create", attrs{"reason": "invite", "type": "new"}, g.node()))
			}
		}
	}
	return g
}

// envelope names the group and the author on a stanza.
func (g *Group) envelope(from *device) attrs {
	return attrs{
		"from": g.jid, "participant": from.owner.lidJID(from.id), "addressing_mode": "lid", "participant_pn": from.owner.pnJID(from.id),
	}
}

func (g *Group) node() node {
	creator := g.members[0].lidJID(0)
	var children []node
	for i, m := range g.members {
		a := attrs{"jid": m.lidJID(0), "phone_number": m.pnJID(0)}
		if i == 0 {
			a["type"] = "superadmin"
		}
		children = append(children, n("participant", a))
	}
	return n("group", attrs{
		"id": g.jid.User, "subject": g.subject, "creation": g.created, "creator": creator,
		"s_t": g.created, "s_o": creator, "addressing_mode": "lid", "size": len(g.members),
	}, children...)
}

// groupIQ handles a request about groups. It returns false for an unknown one. The caller holds the lock.
func (s *Server) groupIQ(c *conn, d *device, q, child *node) bool {
	to := jid(q, "to")
	if to == types.GroupServerJID {
		return s.groupsIQ(c, d, q, child)
	}
	g := s.groups[to.User]
	if g == nil {
		c.replyError(q, 404, "item-not-found")
		return true
	}
	if !slices.Contains(g.members, d.owner) {
		c.replyError(q, 403, "forbidden")
		return true
	}
	if str(q, "type") != "get" || child.Tag != "query" {
		return false
	}
	c.reply(q, g.node())
	return true
}

// groupsIQ handles a request about no particular group.
func (s *Server) groupsIQ(c *conn, d *device, q, child *node) bool {
	switch str(q, "type") + " " + child.Tag {
	case "get participating":
		var all []node
		for _, g := range s.groups {
			if slices.Contains(g.members, d.owner) {
				all = append(all, g.node())
			}
		}
		c.reply(q, n("groups", nil, all...))
	case "set create":
		members := []*account{d.owner}
		for _, p := range child.GetChildrenByTag("participant") {
			if a := s.find(jid(&p, "jid")); a != nil {
				members = append(members, a)
			}
		}
		c.reply(q, s.createGroup(d, str(child, "subject"), members).node())
	default:
		return false
	}
	return true
}
