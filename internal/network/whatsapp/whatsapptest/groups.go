package whatsapptest

import (
	"slices"
	"strconv"

	"go.mau.fi/whatsmeow/types"
)

// group is a chat of many. Guarded by Server.mu.
type group struct {
	jid     types.JID
	subject string
	created int64
	creator *account
	members []*member
}

type member struct {
	account *account
	role    string // "" or "superadmin"
}

// Group is a chat of many, as a test holds it.
type Group struct{ group *group }

func (g *Group) JID() types.JID { return g.group.jid }

func (g *Group) chat() types.JID { return g.group.jid }

// CreateGroup makes a group of this phone and others, and notifies their linked clients.
func (p *Phone) CreateGroup(subject string, others ...*Phone) *Group {
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	var accounts []*account
	for _, o := range others {
		accounts = append(accounts, o.account)
	}
	g := s.newGroup(p.account, subject, accounts)
	s.announceGroup(g, p.main.device)
	return &Group{g}
}

func (s *Server) newGroup(by *account, subject string, others []*account) *group {
	s.serial++
	g := &group{
		jid:     types.NewJID("120363"+strconv.FormatUint(1_000_000_000_000+s.serial, 10), types.GroupServer),
		subject: subject, created: unix(), creator: by,
	}
	g.members = append(g.members, &member{by, "superadmin"})
	for _, a := range others {
		if g.member(a) == nil {
			g.members = append(g.members, &member{a, ""})
		}
	}
	s.groups[g.jid.User] = g
	return g
}

func (g *group) member(a *account) *member {
	i := slices.IndexFunc(g.members, func(m *member) bool { return m.account == a })
	if i < 0 {
		return nil
	}
	return g.members[i]
}

// envelope names the group and the author on a stanza.
func (g *group) envelope(from *device) attrs {
	return attrs{
		"from": g.jid, "participant": from.owner.lidJID(from.id), "addressing_mode": "lid", "participant_pn": from.owner.pnJID(from.id),
	}
}

func (g *group) node() node {
	creator := g.creator.lidJID(0)
	var children []node
	for _, m := range g.members {
		a := attrs{"jid": m.account.lidJID(0), "phone_number": m.account.pnJID(0)}
		if m.role != "" {
			a["type"] = m.role
		}
		children = append(children, n("participant", a))
	}
	return n("group", attrs{
		"id": g.jid.User, "subject": g.subject, "creation": g.created, "creator": creator,
		"s_t": g.created, "s_o": creator, "addressing_mode": "lid", "size": len(g.members),
	}, children...)
}

// announceGroup notifies the linked clients of all members, except the creating device, of a new group. The caller holds
// the lock.
func (s *Server) announceGroup(g *group, by *device) {
	for _, m := range g.members {
		for _, d := range m.account.devices {
			if d.sim == nil && d != by {
				extra := g.envelope(by)
				extra["participant"], extra["notify"] = by.owner.lidJID(0), by.owner.name
				s.notify(d, g.jid, "w:gp2", extra, n("create", attrs{"reason": "invite", "type": "new"}, g.node()))
			}
		}
	}
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
	if g.member(d.owner) == nil {
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
			if g.member(d.owner) != nil {
				all = append(all, g.node())
			}
		}
		c.reply(q, n("groups", nil, all...))
	case "set create":
		var others []*account
		for _, p := range child.GetChildrenByTag("participant") {
			if a := s.find(jid(&p, "jid")); a != nil {
				others = append(others, a)
			}
		}
		g := s.newGroup(d.owner, str(child, "subject"), others)
		c.reply(q, g.node())
		s.announceGroup(g, d)
	default:
		return false
	}
	return true
}
