package whatsapptest

// Refusal is what a login is answered with instead of success.
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

// RefuseLogin answers the coming logins of the account's devices with a refusal.
func (p *Phone) RefuseLogin(r Refusal) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.account.refusal = &r
}

// AllowLogin ends what RefuseLogin began.
func (p *Phone) AllowLogin() {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.account.refusal = nil
}

// End is a way in which the server ends a stream.
type End int

const (
	Cut       End = iota // the socket closes without a word
	Replaced             // another connection took the place of this one
	Restarted            // the server restarts (503); the client comes back
	Reconnect            // the server asks for a new connection (515)
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
		c.hangUp()
		return
	}
	c.end(how.node(), s.delay())
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

// Remove unlinks the device as its owner does on the phone: the client is told if it is connected, and
// logged out at its next login if it is not.
func (l *Link) Remove() { l.End(Removed) }

// unlink forgets a device. The caller holds the lock.
func (s *Server) unlink(d *device) {
	if c := d.conn; c != nil {
		c.end(Removed.node(), s.delay())
		d.detach()
	}
	d.removed = true
	delete(d.owner.devices, d.id)
	s.announceDevices(d.owner, "remove", d.id)
	s.changed.ring()
}
