package whatsapptest

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	"go.mau.fi/whatsmeow/types"
)

// group is a chat of many. Guarded by Server.mu.
type group struct {
	jid     types.JID
	subject string
	topic   string
	topicID string
	created int64
	creator *account
	byLID   bool // members are addressed by LID
	invite  string
	members []*member
}

type member struct {
	account *account
	role    string // "", "admin", "superadmin"
}

// Group is a chat of many, as a test holds it.
type Group struct {
	server *Server
	group  *group
}

// JID is the group's address.
func (g *Group) JID() types.JID { return g.group.jid }

func (g *Group) place(*Server) (types.JID, *group, error) {
	if g.group == nil {
		return types.EmptyJID, nil, errors.New("no group")
	}
	return g.group.jid, g.group, nil
}

// Subject is the group's name.
func (g *Group) Subject() string {
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	return g.group.subject
}

// Members lists the numbers of the members, in the order in which they joined.
func (g *Group) Members() []string {
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	var all []string
	for _, m := range g.group.members {
		all = append(all, m.account.number)
	}
	return all
}

// Group finds a group by its address.
func (s *Server) Group(id types.JID) *Group {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.groups[id.User]; g != nil {
		return &Group{s, g}
	}
	return nil
}

// CreateGroup makes a group of this phone and others, and tells their linked clients.
func (p *Phone) CreateGroup(subject string, mode types.AddressingMode, others ...*Phone) *Group {
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	var accounts []*account
	for _, o := range others {
		accounts = append(accounts, o.account)
	}
	g := s.newGroup(p.account, subject, mode == types.AddressingModeLID, accounts)
	s.tellGroup(g, p.main.device, n("create", attrs{"reason": "invite", "type": "new"}, g.node()))
	return &Group{s, g}
}

// Rename changes the group's subject and tells the linked clients of its members.
func (g *Group) Rename(by *Phone, subject string) {
	s := g.server
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rename(g.group, by.main.device, subject)
}

// Add puts phones into the group and tells the linked clients of its members.
func (g *Group) Add(by *Phone, others ...*Phone) { g.change(by, "add", others) }

// Remove takes phones out of the group and tells the linked clients of all.
func (g *Group) Remove(by *Phone, others ...*Phone) { g.change(by, "remove", others) }

func (g *Group) change(by *Phone, what string, others []*Phone) {
	s := g.server
	s.mu.Lock()
	defer s.mu.Unlock()
	var accounts []*account
	for _, o := range others {
		accounts = append(accounts, o.account)
	}
	s.changeMembers(g.group, by.main.device, what, accounts)
}

func (s *Server) newGroup(by *account, subject string, byLID bool, others []*account) *group {
	s.serial++
	g := &group{
		jid:     types.NewJID("120363"+strconv.FormatUint(1_000_000_000_000+s.serial, 10), types.GroupServer),
		subject: subject, created: unix(), creator: by, byLID: byLID,
	}
	g.invite = "INV" + g.jid.User
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

// address is how an account is addressed in this group.
func (g *group) address(a *account, device uint16) types.JID {
	if g.byLID {
		return a.hidden(device)
	}
	return a.pn(device)
}

// addresses lists the devices of all members.
func (g *group) addresses() []types.JID {
	var all []types.JID
	for _, m := range g.members {
		all = append(all, m.account.addresses(g.address(m.account, 0))...)
	}
	return all
}

// envelope names the group and the author on a stanza.
func (g *group) envelope(from *device) attrs {
	a := attrs{"from": g.jid, "participant": g.address(from.owner, from.id)}
	if g.byLID {
		a["addressing_mode"] = "lid"
		a["participant_pn"] = from.owner.pn(from.id)
	} else {
		a["addressing_mode"] = "pn"
		a["participant_lid"] = from.owner.hidden(from.id)
	}
	return a
}

// node describes the group.
func (g *group) node() node {
	mode := "pn"
	if g.byLID {
		mode = "lid"
	}
	creator := g.address(g.creator, 0)
	var children []node
	for _, m := range g.members {
		children = append(children, g.participant(m))
	}
	if g.topic != "" {
		children = append(children, n("description", attrs{"id": g.topicID, "t": g.created, "participant": creator}, leaf("body", []byte(g.topic))))
	}
	return n("group", attrs{
		"id": g.jid.User, "subject": g.subject, "creation": g.created, "creator": creator,
		"s_t": g.created, "s_o": creator, "addressing_mode": mode, "size": len(g.members),
	}, children...)
}

func (g *group) participant(m *member) node {
	a := attrs{"jid": g.address(m.account, 0)}
	if g.byLID {
		a["phone_number"] = m.account.pn(0)
	} else {
		a["lid"] = m.account.hidden(0)
	}
	if m.role != "" {
		a["type"] = m.role
	}
	return n("participant", a)
}

// tellGroup notifies the linked clients of all members but the device that did it. The caller holds the lock.
func (s *Server) tellGroup(g *group, by *device, change node) {
	for _, m := range g.members {
		s.tellMember(g, m.account, by, change)
	}
}

func (s *Server) tellMember(g *group, a *account, by *device, change node) {
	extra := g.envelope(by)
	extra["participant"] = g.address(by.owner, 0)
	extra["notify"] = by.owner.name
	for _, d := range a.devices {
		if d.sim == nil && d != by {
			s.notify(d, g.jid, "w:gp2", maps.Clone(extra), change)
		}
	}
}

func (s *Server) rename(g *group, by *device, subject string) {
	g.subject = subject
	s.tellGroup(g, by, n("subject", attrs{"subject": subject, "s_t": unix(), "s_o": g.address(by.owner, 0)}))
	s.changed.ring()
}

// changeMembers adds, removes, promotes or demotes, and tells everybody concerned. The caller holds the lock.
func (s *Server) changeMembers(g *group, by *device, what string, accounts []*account) {
	var changed []node
	before := slices.Clone(g.members)
	for _, a := range accounts {
		m := g.member(a)
		switch {
		case what == "add" && m == nil:
			m = &member{a, ""}
			g.members = append(g.members, m)
		case m == nil:
			continue
		case what == "remove":
			g.members = slices.DeleteFunc(g.members, func(x *member) bool { return x == m })
		case what == "promote":
			m.role = "admin"
		case what == "demote":
			m.role = ""
		}
		changed = append(changed, g.participant(m))
	}
	told := g.members
	if what == "remove" {
		told = before
	}
	for _, m := range told {
		s.tellMember(g, m.account, by, n(what, nil, changed...))
	}
	s.changed.ring()
}
