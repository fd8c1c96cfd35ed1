package whatsapptest

import (
	"slices"
	"strconv"
	"strings"

	"go.mau.fi/whatsmeow/types"
)

// Group is a chat of many. Guarded by Server.mu.
type Group struct {
	server  *Server
	jid     types.JID
	subject string
	created int64
	creator *account // and admin
	members []*account
	admins  []*account // besides the creator
	asked   []*account // who wait to be let in
	topic   string
	timer   string          // seconds after which messages disappear; empty: never
	flags   map[string]bool // locked, announcement, membership_approval_mode, all_member_add
	// byNumber: the group names its members by number, except who hides it.
	byNumber bool
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
		server:  s,
		jid:     types.NewJID("120363"+strconv.FormatUint(1_000_000_000_000+s.serial, 10), types.GroupServer),
		subject: subject, created: unix(), creator: members[0], members: members, flags: map[string]bool{},
	}
	s.groups[g.jid.User] = g
	s.notifyGroup(g, by, g.members, n("create", attrs{"reason": "invite", "type": "new"}, g.node()))
	return g
}

// AddressByNumber makes the group name its members by number, as older groups do.
func (g *Group) AddressByNumber() *Group {
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	g.byNumber = true
	return g
}

func (g *Group) mode() types.AddressingMode {
	if g.byNumber {
		return types.AddressingModePN
	}
	return types.AddressingModeLID
}

// member is how the group names a device of a member.
func (g *Group) member(a *account, device uint16) types.JID {
	if g.byNumber && a.shown != OnlyLID {
		return a.pnJID(device)
	}
	return a.lidJID(device)
}

// participant names a member with both addresses, unless its number is hidden.
func (g *Group) participant(a *account) attrs {
	named := attrs{"jid": g.member(a, 0)}
	switch {
	case a.shown == OnlyLID:
	case g.byNumber:
		named["lid"] = a.lidJID(0)
	default:
		named["phone_number"] = a.pnJID(0)
	}
	return named
}

// notifyGroup notifies the linked clients of members, also the one that made the change. The caller holds the lock.
func (s *Server) notifyGroup(g *Group, by *device, members []*account, change node) {
	extra := g.envelope(by)
	extra["participant"], extra["notify"] = g.member(by.owner, 0), by.owner.name
	for _, m := range members {
		for _, d := range m.devices {
			if d.sim == nil {
				s.notify(d, g.jid, "w:gp2", extra, change)
			}
		}
	}
	s.changed.notify()
}

// Add and Remove change the members, as a phone of the group does. Rename gives it another name.
func (g *Group) Add(by *Phone, others ...*Phone) { g.change(by, "add", others) }

func (g *Group) Remove(by *Phone, others ...*Phone) { g.change(by, "remove", others) }

func (g *Group) Rename(by *Phone, subject string) {
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	g.subject = subject
	g.server.notifyGroup(g, by.main.device, g.members,
		n("subject", attrs{"subject": subject, "s_t": unix(), "s_o": by.account.lidJID(0)}))
}

// SetTimer sets after how many seconds messages in the group disappear.
func (g *Group) SetTimer(by *Phone, seconds string) {
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	g.server.setTimer(g, by.main.device, seconds)
}

func (s *Server) setTimer(g *Group, by *device, seconds string) {
	g.timer = seconds
	change := n("not_ephemeral", nil)
	if seconds != "" {
		change = n("ephemeral", attrs{"expiration": seconds})
	}
	s.notifyGroup(g, by, g.members, change)
}

func (g *Group) change(by *Phone, what string, others []*Phone) {
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	var accounts []*account
	for _, o := range others {
		accounts = append(accounts, o.account)
	}
	g.server.changeMembers(g, by.main.device, what, accounts)
}

// OnlyAdminsWrite makes it a group in which only admins may write.
func (g *Group) OnlyAdminsWrite() {
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	g.flags["announcement"] = true
}

// FindGroup finds a group by its address; nil: there is none.
func (s *Server) FindGroup(id types.JID) *Group {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.groups[id.User]
}

// changeMembers adds or removes members, and returns a node for each of them. The caller holds the lock.
func (s *Server) changeMembers(g *Group, by *device, what string, accounts []*account) []node {
	var all, changed []node
	before := slices.Clone(g.members)
	for _, a := range accounts {
		one := n("participant", g.participant(a))
		isMember := slices.Contains(g.members, a)
		switch {
		case what == "add" && !isMember:
			g.members = append(g.members, a)
		case what == "promote" && isMember:
			g.admins = append(g.admins, a)
		case what == "demote" && isMember:
			g.admins = slices.DeleteFunc(g.admins, func(m *account) bool { return m == a })
		case what == "remove" && isMember:
			g.members = slices.DeleteFunc(g.members, func(m *account) bool { return m == a })
		default:
			one.Attrs["error"] = map[string]int{"add": 409, "remove": 404, "promote": 404, "demote": 404}[what]
			all = append(all, one)
			continue
		}
		all, changed = append(all, one), append(changed, one)
	}
	if len(changed) > 0 {
		s.notifyGroup(g, by, slices.Compact(slices.Concat(before, g.members[min(len(before), len(g.members)):])), n(what, nil, changed...))
	}
	return all
}

// addresses lists the devices of all members.
func (g *Group) addresses() []types.JID {
	var all []types.JID
	for _, m := range g.members {
		all = append(all, m.addresses(g.member(m, 0))...)
	}
	return all
}

// envelope names the group and the author on a stanza.
func (g *Group) envelope(from *device) attrs {
	a := attrs{"from": g.jid, "participant": g.member(from.owner, from.id), "addressing_mode": string(g.mode())}
	setOther(a, "participant", g.member(from.owner, from.id), from.owner)
	return a
}

func (g *Group) node() node {
	creator := g.member(g.creator, 0)
	var children []node
	for _, m := range g.members {
		a := g.participant(m)
		if m == g.creator {
			a["type"] = "superadmin"
		} else if slices.Contains(g.admins, m) {
			a["type"] = "admin"
		}
		children = append(children, n("participant", a))
	}
	if g.topic != "" {
		children = append(children, n("description", attrs{"id": "T1", "t": g.created}, leaf("body", []byte(g.topic))))
	}
	for _, flag := range []string{"locked", "announcement", "membership_approval_mode"} {
		if g.flags[flag] {
			children = append(children, n(flag, nil))
		}
	}
	if g.timer != "" {
		children = append(children, n("ephemeral", attrs{"expiration": g.timer}))
	}
	if g.flags["all_member_add"] {
		children = append(children, leaf("member_add_mode", []byte("all_member_add")))
	}
	return n("group", attrs{
		"id": g.jid.User, "subject": g.subject, "creation": g.created, "creator": creator,
		"s_t": g.created, "s_o": creator, "addressing_mode": string(g.mode()), "size": len(g.members),
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
	isAdmin := d.owner == g.creator || slices.Contains(g.admins, d.owner)
	if child.Tag != "query" && child.Tag != "invite" && !isAdmin {
		c.replyError(q, 403, "forbidden")
		return true
	}
	switch str(q, "type") + " " + child.Tag {
	case "get query":
		c.reply(q, g.node())
	case "get invite":
		if d.owner != g.creator {
			c.replyError(q, 401, "not-authorized")
			return true
		}
		c.reply(q, n("invite", attrs{"code": "INVITE" + g.jid.User}))
	case "set add", "set remove", "set promote", "set demote":
		c.reply(q, n(child.Tag, nil, s.changeMembers(g, d, child.Tag, s.participants(child))...))
	case "set subject":
		g.subject = string(content(*child))
		s.notifyGroup(g, d, g.members, n("subject", attrs{"subject": g.subject, "s_t": unix(), "s_o": d.owner.lidJID(0)}))
		c.reply(q)
	case "set description":
		body, _ := child.GetOptionalChildByTag("body")
		g.topic = string(content(body))
		c.reply(q)
	case "set locked", "set announcement":
		g.flags[child.Tag] = true
		c.reply(q)
	case "set unlocked", "set not_announcement":
		delete(g.flags, map[string]string{"unlocked": "locked", "not_announcement": "announcement"}[child.Tag])
		c.reply(q)
	case "set ephemeral", "set not_ephemeral":
		s.setTimer(g, d, str(child, "expiration"))
		c.reply(q)
	case "set membership_approval_mode":
		join := first(child)
		g.flags[child.Tag] = str(&join, "state") == "on"
		c.reply(q)
	case "set member_add_mode":
		g.flags["all_member_add"] = string(content(*child)) == "all_member_add"
		c.reply(q)
	case "get membership_approval_requests":
		var all []node
		for _, a := range g.asked {
			all = append(all, n("membership_approval_request", attrs{"jid": g.member(a, 0), "request_time": unix()}))
		}
		c.reply(q, n(child.Tag, nil, all...))
	case "set membership_requests_action":
		action := first(child)
		var all []node
		for _, a := range s.participants(&action) {
			one := n("participant", g.participant(a))
			if !slices.Contains(g.asked, a) {
				one.Attrs["error"] = 404
			} else if g.asked = slices.DeleteFunc(g.asked, func(m *account) bool { return m == a }); action.Tag == "approve" {
				s.changeMembers(g, d, "add", []*account{a})
			}
			all = append(all, one)
		}
		c.reply(q, n(child.Tag, nil, n(action.Tag, nil, all...)))
	default:
		return false
	}
	return true
}

// participants finds those that a request names.
func (s *Server) participants(q *node) (all []*account) {
	for _, p := range q.GetChildrenByTag("participant") {
		if a := s.find(jid(&p, "jid")); a != nil {
			all = append(all, a)
		}
	}
	return all
}

// Join makes a phone join a group, or ask to be let in where that is needed.
func (g *Group) Join(p *Phone) {
	g.server.mu.Lock()
	defer g.server.mu.Unlock()
	g.join(p.main.device)
}

func (g *Group) join(d *device) {
	switch {
	case slices.Contains(g.members, d.owner):
	case g.flags["membership_approval_mode"]:
		g.asked = append(g.asked, d.owner)
	default:
		g.server.changeMembers(g, d, "add", []*account{d.owner})
	}
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
	case "get invite", "set invite":
		g := s.groups[strings.TrimPrefix(str(child, "code"), "INVITE")]
		if g == nil {
			c.replyError(q, 406, "not-acceptable")
			return true
		}
		if str(q, "type") == "set" {
			g.join(d)
		}
		found := g.node()
		found.Attrs["jid"] = g.jid
		c.reply(q, found)
	case "set leave":
		var left []node
		for _, one := range child.GetChildrenByTag("group") {
			if g := s.groups[jid(&one, "id").User]; g != nil {
				s.changeMembers(g, d, "remove", []*account{d.owner})
				left = append(left, n("group", attrs{"id": g.jid}))
			}
		}
		c.reply(q, n("leave", nil, left...))
	default:
		return false
	}
	return true
}
