package whatsapptest

import (
	"go.mau.fi/whatsmeow/types"
)

// groupIQ answers a request about groups. It reports false for one that it does not know. The caller holds
// the lock.
func (s *Server) groupIQ(c *conn, d *device, q, child *node) bool {
	to, kind := jid(q, "to"), str(q, "type")
	if to == types.GroupServerJID {
		return s.groupsIQ(c, d, q, child)
	}
	g := s.groups[to.User]
	if g == nil {
		s.replyError(c, q, 404, "item-not-found")
		return true
	}
	if g.member(d.owner) == nil {
		s.replyError(c, q, 403, "forbidden")
		return true
	}
	switch kind + " " + child.Tag {
	case "get query":
		s.reply(c, q, g.node())
	case "get invite":
		s.reply(c, q, n("invite", attrs{"code": g.invite}))
	case "set invite":
		g.invite = s.nextID("INV")
		s.reply(c, q, n("invite", attrs{"code": g.invite}))
	case "set subject":
		s.reply(c, q)
		s.rename(g, d, string(content(*child)))
	case "set description":
		g.topic, g.topicID = string(content(child.GetChildByTag("body"))), str(child, "id")
		s.reply(c, q)
	case "set locked", "set unlocked", "set announcement", "set not_announcement", "set ephemeral", "set not_ephemeral":
		s.reply(c, q)
	case "set add", "set remove", "set promote", "set demote":
		s.memberIQ(c, d, q, child, g)
	default:
		return false
	}
	return true
}

// memberIQ changes members and says for each of them whether it worked.
func (s *Server) memberIQ(c *conn, d *device, q, child *node, g *group) {
	var answers []node
	var accounts []*account
	for _, p := range child.GetChildren() {
		who := jid(&p, "jid")
		a := s.find(who)
		answer := attrs{"jid": who}
		switch {
		case a == nil, child.Tag != "add" && g.member(a) == nil:
			answer["error"] = 404
		case child.Tag == "add" && g.member(a) != nil:
			answer["error"] = 409
		default:
			accounts = append(accounts, a)
		}
		answers = append(answers, n("participant", answer))
	}
	s.reply(c, q, n(child.Tag, nil, answers...))
	if len(accounts) > 0 {
		s.changeMembers(g, d, child.Tag, accounts)
	}
}

// groupsIQ answers a request that is about no particular group.
func (s *Server) groupsIQ(c *conn, d *device, q, child *node) bool {
	switch str(q, "type") + " " + child.Tag {
	case "get participating":
		var all []node
		for _, g := range s.groups {
			if g.member(d.owner) != nil {
				all = append(all, g.node())
			}
		}
		s.reply(c, q, n("groups", nil, all...))
	case "set create":
		var others []*account
		for _, p := range child.GetChildrenByTag("participant") {
			if a := s.find(jid(&p, "jid")); a != nil {
				others = append(others, a)
			}
		}
		g := s.newGroup(d.owner, str(child, "subject"), true, others)
		s.reply(c, q, g.node())
		s.tellGroup(g, d, n("create", attrs{"reason": "invite", "type": "new"}, g.node()))
	case "set leave":
		var left []node
		for _, x := range child.GetChildren() {
			id := jid(&x, "id")
			left = append(left, n("group", attrs{"id": id}))
			if g := s.groups[id.User]; g != nil {
				s.changeMembers(g, d, "remove", []*account{d.owner})
			}
		}
		s.reply(c, q, n("leave", nil, left...))
	default:
		return false
	}
	return true
}
