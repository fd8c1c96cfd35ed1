package whatsapptest

import (
	"go.mau.fi/whatsmeow/types"
)

// groupIQ answers a request about groups. It reports false for one that it does not know. The caller holds
// the lock.
func (s *Server) groupIQ(c *conn, d *device, q, child *node) bool {
	to := jid(q, "to")
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
	if str(q, "type") != "get" || child.Tag != "query" {
		return false
	}
	s.reply(c, q, g.node())
	return true
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
		g := s.newGroup(d.owner, str(child, "subject"), others)
		s.reply(c, q, g.node())
		s.announceGroup(g, d)
	default:
		return false
	}
	return true
}
