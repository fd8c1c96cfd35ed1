package whatsapptest

import (
	"net/http"
	"slices"
	"strconv"

	"go.mau.fi/whatsmeow/types"
)

// handleIQ handles a request of a linked client. An unknown request is a violation. It gets an error at once: without a
// response the client would hang for more than a minute.
func (s *Server) handleIQ(c *conn, d *device, q *node) {
	s.mu.Lock()
	s.asked[str(q, "xmlns")]++
	s.mu.Unlock()
	f := s.nextFault(faultIQ, d.owner, nil, str(q, "xmlns"))
	switch {
	case f.is(failIQ):
		c.replyError(q, f.code, iqErrorText[f.code])
		return
	case f.is(loseIQ):
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !f.is(holdIQ) {
		s.respond(c, d, q)
		return
	}
	f.held.answers = append(f.held.answers, func() { s.respond(c, d, q) })
	if len(f.held.answers) == f.held.until {
		for _, answer := range f.held.answers {
			answer()
		}
	}
}

// respond responds to a request. The caller holds the lock.
func (s *Server) respond(c *conn, d *device, q *node) {
	if c.device != d {
		return // unlinked or replaced meanwhile
	}
	space, kind, child := str(q, "xmlns"), str(q, "type"), first(q)
	switch space + " " + kind + " " + child.Tag {
	case "w:p get ":
		c.reply(q)
	case "encrypt get count":
		c.reply(q, n("count", attrs{"value": d.keyCount()}))
	case "encrypt set registration":
		s.uploadKeys(c, d, q)
	case "encrypt get key":
		c.reply(q, s.bundles(&child))
	case "passive set active":
		c.reply(q)
		s.flush(d)
		if d.fresh {
			d.fresh = false
			s.spawn(func() { d.owner.phone.shareState(d) })
		}
	case "passive set passive":
		d.active = false
		c.reply(q)
	case "usync get usync":
		c.reply(q, s.usync(&child))
	case "privacy get privacy":
		c.reply(q, privacySettings())
	case "privacy set tokens":
		c.reply(q)
	case "w:m set media_conn":
		c.reply(q, n("media_conn", attrs{"auth": "loopback", "ttl": 300, "auth_ttl": 21600, "max_buckets": 12},
			n("host", attrs{"hostname": mediaHost})))
	case "w:sync:app:state set sync":
		s.appState(c, d, q)
	case "w:profile:picture get picture":
		s.picture(c, q, &child)
	case "w:profile:picture set picture":
		if s.groups[jid(q, "target").User] == nil {
			c.replyError(q, 404, "item-not-found")
			return
		}
		if data, ok := child.Content.([]byte); !ok || http.DetectContentType(data) != "image/jpeg" {
			c.replyError(q, 406, "not-acceptable")
			return
		}
		c.reply(q, n("picture", attrs{"id": "2"}))
	case "blocklist get ":
		c.reply(q, blocklist(d.owner))
	case "blocklist set item":
		who := jid(&child, "jid")
		d.owner.blocked = slices.DeleteFunc(d.owner.blocked, func(j types.JID) bool { return j == who })
		if str(&child, "action") == "block" {
			d.owner.blocked = append(d.owner.blocked, who)
		}
		c.reply(q, blocklist(d.owner))
	case "md set remove-companion-device":
		// The client deletes its store itself. A stream error would cause a second, racing deletion.
		d.detach()
		s.unlink(d)
		c.reply(q)
	default:
		if space == "w:g2" && s.groupIQ(c, d, q, &child) {
			return
		}
		s.violateLocked("unknown request %s", shape(q))
		c.replyError(q, 501, "feature-not-implemented")
	}
}

// iqErrorText is the text that clients match beside the code.
var iqErrorText = map[int]string{429: "rate-overlimit", 500: "internal-server-error", 503: "service-unavailable"}

func privacySettings() node {
	var all []node
	for _, name := range []string{"readreceipts", "last", "status", "profile", "online", "groupadd", "calladd"} {
		all = append(all, n("category", attrs{"name": name, "value": "all"}))
	}
	return n("privacy", nil, all...)
}

func (s *Server) picture(c *conn, q, asked *node) {
	a := s.find(jid(q, "target"))
	if a == nil || a.pictureURL == "" {
		c.replyError(q, 404, "item-not-found")
		return
	}
	c.reply(q, n("picture", attrs{"id": "1", "url": a.pictureURL, "type": str(asked, "type"), "direct_path": "/picture/" + a.lid +
		"?v=1"}))
}

func blocklist(a *account) node {
	var items []node
	for _, j := range a.blocked {
		items = append(items, n("item", attrs{"jid": j}))
	}
	return n("list", attrs{"dhash": strconv.Itoa(len(items))}, items...)
}
