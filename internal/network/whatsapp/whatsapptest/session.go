package whatsapptest

import (
	"strconv"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// login sends references for a QR code, or success. A rejected connection is read until the client disconnects or
// closeGrace ends.
func (s *Server) login(c *conn) {
	p := c.keys.payload
	s.mu.Lock()
	outdated := p.GetUserAgent().GetAppVersion().GetTertiary() < s.leastVersion
	s.mu.Unlock()
	if outdated {
		c.end((&Refusal{Reason: 405}).node())
		return
	}
	if p.Username == nil {
		s.register(c)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.byNumber[strconv.FormatUint(p.GetUsername(), 10)]
	if a != nil && a.refusal != nil {
		r := a.refusal
		if r.Times > 0 {
			if r.Times--; r.Times == 0 {
				a.refusal = nil
			}
		}
		c.end(r.node())
		return
	}
	var d *device
	if a != nil {
		d = a.devices[uint16(p.GetDevice())]
	}
	if d == nil || d.sim != nil || d.noise != c.keys.static {
		c.end((&Refusal{Reason: 401}).node())
		return
	}
	if d.conn != nil {
		d.conn.end(Replaced.node())
		d.detach()
	}
	c.device, d.conn = d, c
	c.send(n("success", attrs{"t": s.unix(), "lid": a.lidJID(d.id), "location": "loopback", "display_name": a.name}))
}

func (s *Server) disconnected(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := c.device; d != nil && d.conn == c {
		d.detach()
	}
	if c.registration != nil {
		for _, ref := range c.registration.refs {
			delete(s.registrations, ref)
		}
	}
	s.changed.notify()
}

// handle handles one stanza of a client. Stanzas of one connection are handled in order.
func (s *Server) handle(c *conn, stanza *node) {
	s.mu.Lock()
	d := c.device
	s.mu.Unlock()
	switch {
	case stanza.Tag == "iq" && (str(stanza, "type") == "result" || str(stanza, "type") == "error"):
		s.pairResponse(c, stanza)
	case stanza.Tag == "iq" && c.registration != nil:
		s.registrationIQ(c, stanza)
	case stanza.Tag == "ib": // telemetry, no response
		s.mu.Lock()
		s.asked[first(stanza).Tag]++
		s.mu.Unlock()
	case stanza.Tag == "ack" && c.registration != nil: // of a notification about a pairing code
	case d == nil:
		// Stanzas of a rejected or replaced client are not violations.
		if c.registration != nil {
			s.violate("%s before pairing", shape(stanza))
		}
	case stanza.Tag == "iq":
		s.handleIQ(c, d, stanza)
	case stanza.Tag == "message":
		s.handleMessage(c, d, stanza)
	case stanza.Tag == "receipt":
		s.handleReceipt(c, d, stanza)
	case stanza.Tag == "ack":
		s.handleAck(d, stanza)
	case stanza.Tag == "presence":
		s.handlePresence(d, stanza)
	case stanza.Tag == "call":
		s.handleCall(d, stanza)
	case stanza.Tag == "chatstate":
		s.handleChatState(d, stanza)
	default:
		s.violate("unknown stanza %s", shape(stanza))
	}
}

func (s *Server) pairResponse(c *conn, stanza *node) {
	if c.registration == nil {
		s.violate("answer to nothing %s", shape(stanza))
		return
	}
	s.mu.Lock()
	asked := c.registration.asked
	s.mu.Unlock()
	if str(stanza, "id") != asked {
		return // the confirmation of the references
	}
	select {
	case c.registration.response <- stanza:
	default:
		s.violate("second answer to a pairing %s", shape(stanza))
	}
}

func (c *conn) reply(to *node, children ...node) {
	c.send(n("iq", replyAttrs(to, "result"), children...))
}

func (c *conn) replyError(to *node, code int, text string) {
	c.send(n("iq", replyAttrs(to, "error"), n("error", attrs{"code": code, "text": text})))
}

func replyAttrs(to *node, kind string) attrs {
	from := jid(to, "to")
	if from.IsEmpty() {
		from = types.ServerJID
	}
	return attrs{"from": from, "id": str(to, "id"), "type": kind}
}

// Mangle passes every stanza to a client through a function, to test malformed stanzas; nil ends it.
func (s *Server) Mangle(f func(waBinary.Node) waBinary.Node) {
	if f == nil {
		s.mangler.Store(nil)
		return
	}
	s.mangler.Store(&f)
}

// Inject sends any stanza to the linked client. It returns false if the client is not connected.
func (l *Link) Inject(stanza waBinary.Node) bool {
	s := l.phone.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.device.conn == nil {
		return false
	}
	l.device.conn.send(stanza)
	return true
}

func (s *Server) mangle(stanza waBinary.Node) waBinary.Node {
	if f := s.mangler.Load(); f != nil {
		return (*f)(stanza)
	}
	return stanza
}

// Refusal is the response to a rejected login.
type Refusal struct {
	Reason int // 401, 403 and 406 log the device out; 405: outdated; 402: banned for a time; 500 and 503: come again
	Code   int // of a ban
	Expire int // seconds until a ban ends
	Times  int // how many logins are refused; 0: all, until AllowLogin
}

func (r *Refusal) node() node {
	a := attrs{"reason": r.Reason, "location": "loopback"}
	if r.Code != 0 {
		a["code"] = r.Code
	}
	if r.Expire != 0 {
		a["expire"] = r.Expire
	}
	return n("failure", a)
}

// RefuseLogin rejects the next logins of the account's devices.
func (p *Phone) RefuseLogin(r Refusal) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.account.refusal = &r
}

func (p *Phone) AllowLogin() {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.account.refusal = nil
}

// End is a way in which the server ends a stream.
type End int

const (
	Cut       End = iota // the socket closes without a word
	Replaced             // another connection replaced this one
	Restarted            // the server restarts (503); the client comes back
	Reconnect            // the server requests a new connection (515)
	Removed              // the device was unlinked
	Unknown              // an error that no client knows
)

func (e End) node() node {
	switch e {
	case Replaced:
		return n("stream:error", nil, n("conflict", attrs{"type": "replaced"}))
	case Restarted:
		return n("stream:error", attrs{"code": "503"})
	case Reconnect:
		return n("stream:error", attrs{"code": "515"})
	case Removed:
		return n("stream:error", attrs{"code": "401"}, n("conflict", attrs{"type": "device_removed"}))
	default:
		return n("stream:error", attrs{"code": "599"})
	}
}

// End ends the connection of the linked client, if there is one.
func (l *Link) End(how End) {
	s := l.phone.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if how == Removed {
		s.unlink(l.device)
		return
	}
	c := l.device.conn
	if c == nil {
		return
	}
	if how == Cut {
		c.cancel()
		return
	}
	c.end(how.node())
}

// Stall makes the connection of the linked client dead without closing it: nothing passes in either direction.
func (l *Link) Stall() {
	s := l.phone.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := l.device.conn; c != nil {
		c.stalled.Store(true)
	}
}

// Remove unlinks the device as its owner does on the phone. A connected client gets an error; another one is logged out
// at its next login.
func (l *Link) Remove() { l.End(Removed) }

// unlink removes a device. The caller holds the lock.
func (s *Server) unlink(d *device) {
	if c := d.conn; c != nil {
		c.end(Removed.node())
		d.detach()
	}
	d.removed = true
	delete(d.owner.devices, d.id)
	s.announceDevices(d.owner, d.owner.publicJID(0), nil, "remove", d.id)
	s.changed.notify()
}
