package whatsapptest

import (
	"strconv"

	"go.mau.fi/whatsmeow/types"
)

// welcome lets a connection in: with references for a QR code, or with success. A connection that it refuses
// is read on until the client hangs up or the grace after a final stanza is over.
func (s *Server) welcome(c *conn) {
	p := c.keys.payload
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
		c.end(r.node(), s.delay())
		return
	}
	var d *device
	if a != nil {
		d = a.devices[uint16(p.GetDevice())]
	}
	if d == nil || d.sim != nil || d.noise != c.keys.static {
		c.end((&Refusal{Reason: 401}).node(), s.delay())
		return
	}
	if d.conn != nil {
		d.conn.end(Replaced.node(), s.delay())
		d.detach()
	}
	c.device, d.conn = d, c
	c.send(n("success", attrs{"t": s.unix(), "lid": a.hidden(d.id), "location": "loopback", "display_name": a.name}), s.delay())
}

// leave forgets a connection.
func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := c.device; d != nil && d.conn == c {
		d.detach()
	}
	if c.guest != nil {
		for _, ref := range c.guest.refs {
			delete(s.guests, ref)
		}
	}
	s.changed.ring()
}

// handle answers one stanza of a client. Stanzas of one connection are handled one after the other.
func (s *Server) handle(c *conn, stanza *node) {
	s.mu.Lock()
	d := c.device
	s.mu.Unlock()
	switch {
	case stanza.Tag == "iq" && (str(stanza, "type") == "result" || str(stanza, "type") == "error"):
		s.answered(c, stanza)
	case stanza.Tag == "iq" && c.guest != nil:
		s.guestIQ(c, stanza)
	case stanza.Tag == "ib": // telemetry, no answer
	case stanza.Tag == "ack" && c.guest != nil: // of a notification about a pairing code
	case d == nil:
		// What a client sends after it was refused or replaced has no owner and is no mistake of its.
		if c.guest != nil {
			s.violate("%s before pairing", shape(stanza))
		}
	case stanza.Tag == "iq":
		s.iq(c, d, stanza)
	case stanza.Tag == "message":
		s.message(c, d, stanza)
	case stanza.Tag == "receipt":
		s.receipt(c, d, stanza)
	case stanza.Tag == "ack":
		s.acknowledged(d, stanza)
	case stanza.Tag == "presence":
		s.presence(d, stanza)
	case stanza.Tag == "chatstate":
		s.chatState(d, stanza)
	default:
		s.violate("unknown stanza %s", shape(stanza))
	}
}

// answered takes the answer to an IQ of ours. Only pairing asks for one.
func (s *Server) answered(c *conn, stanza *node) {
	if c.guest == nil {
		s.violate("answer to nothing %s", shape(stanza))
		return
	}
	s.mu.Lock()
	asked := c.guest.asked
	s.mu.Unlock()
	if str(stanza, "id") != asked {
		return // the confirmation of the references
	}
	select {
	case c.guest.answer <- stanza:
	default:
		s.violate("second answer to a pairing %s", shape(stanza))
	}
}

// reply answers an IQ.
func (s *Server) reply(c *conn, to *node, children ...node) {
	c.send(n("iq", s.replyAttrs(to, "result"), children...), s.delay())
}

func (s *Server) replyError(c *conn, to *node, code int, text string, more ...node) {
	children := append([]node{n("error", attrs{"code": code, "text": text})}, more...)
	c.send(n("iq", s.replyAttrs(to, "error"), children...), s.delay())
}

func (s *Server) replyAttrs(to *node, kind string) attrs {
	from := jid(to, "to")
	if from.IsEmpty() {
		from = types.ServerJID
	}
	return attrs{"from": from, "id": str(to, "id"), "type": kind}
}
