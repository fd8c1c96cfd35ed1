package whatsapp

import (
	"context"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"parley"
	"parley/internal/network"
)

const (
	// loginTimeout is from the handshake to the first sign that the account is let in.
	loginTimeout = 30 * time.Second
	// databasePause is between attempts to read what is kept of a channel.
	databasePause = 5 * time.Second
)

// run is the state machine of the session.
func (s *session) run() {
	var pairing *pairOptions
	for s.ctx.Err() == nil {
		rec, err := s.d.db.record(s.ctx, s.code)
		if err != nil {
			s.d.Log.Error("read what is kept of a channel", "channel", s.code, "error", err)
			s.become(s.trying(false), "The database of devices does not work now. It is tried again.", network.Phone{})
			s.pause(databasePause)
			continue
		}
		switch {
		case pairing != nil:
			pairing = s.pair(*pairing)
		case rec.jid.IsEmpty():
			pairing = s.restUnpaired(rec)
		default:
			pairing = s.keep(rec)
		}
	}
}

// trying is the status of a channel that is not connected and tries to be.
func (s *session) trying(worked bool) parley.ChannelStatus {
	if worked {
		return parley.Reconnecting
	}
	return parley.Starting
}

// restUnpaired waits until somebody wants to pair the channel.
func (s *session) restUnpaired(rec record) *pairOptions {
	if rec.status == "" {
		s.become(parley.ScanQRCode, "No WhatsApp account is linked.", network.Phone{})
	} else {
		s.become(rec.status, rec.reason, network.Phone{})
	}
	for {
		select {
		case <-s.ctx.Done():
			return nil
		case r := <-s.requests:
			r.answer <- nil // a logout has nothing to do
			if r.pair != nil {
				return r.pair
			}
		}
	}
}

// keep holds the account's connection, again and again, until the account is gone or somebody wants to
// pair another one.
func (s *session) keep(rec record) *pairOptions {
	phone := network.Phone{Name: s.d.nameOf(s.ctx, rec.jid), Number: rec.jid.User}
	worked := false
	policy := newReconnects()
	for s.ctx.Err() == nil {
		e, up := s.hold(rec.jid, &phone)
		if s.ctx.Err() != nil {
			return nil
		}
		worked = worked || up
		switch {
		case e.unpaired:
			s.unpair(rec.jid, e)
			return nil
		case e.status != parley.Reconnecting:
			s.become(e.status, e.reason, phone)
			if r := s.wait(e.after, rec.jid, true); r.gone || r.pair != nil {
				return r.pair
			}
			s.become(s.trying(worked), "", phone)
		default:
			s.become(s.trying(worked), e.reason, phone)
			wait := policy.failed
			if up || e.now {
				wait = policy.lost
			}
			if r := s.backOff(wait(), rec.jid); r.gone {
				return nil
			}
		}
	}
	return nil
}

// queueCheck is how often a session that waits to reconnect checks whether messages wait for it.
const queueCheck = time.Second

// backOff waits before the next connection, not longer than queuedBackoff while messages wait.
func (s *session) backOff(wait time.Duration, jid types.JID) waited {
	wait = min(wait, s.d.maxBackoff)
	began := time.Now()
	for {
		left := backoffLeft(wait, time.Since(began), s.hasQueue())
		if left <= 0 || s.ctx.Err() != nil {
			return waited{}
		}
		if r := s.wait(min(left, queueCheck), jid, false); r.gone {
			return r
		}
	}
}

// WatchQueue makes the session reconnect sooner while messages wait for it.
func (s *session) WatchQueue(depth func() int) { s.queueDepth.Store(&depth) }

func (s *session) hasQueue() bool {
	depth := s.queueDepth.Load()
	return depth != nil && (*depth)() > 0
}

// waited is how a wait ended.
type waited struct {
	pair *pairOptions // somebody wants to pair
	gone bool         // the device is no more
}

// wait waits for a while, or for a request; for ever where the while is zero. Only where the channel has
// failed can it be paired anew: else it comes back by itself.
func (s *session) wait(d time.Duration, jid types.JID, failed bool) waited {
	var due <-chan time.Time
	if d > 0 || !failed {
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	for {
		select {
		case <-s.ctx.Done():
			return waited{}
		case <-due:
			return waited{}
		case r := <-s.requests:
			switch {
			case r.pair == nil:
				s.unpair(jid, logoutAlone)
				r.answer <- nil
				return waited{gone: true}
			case failed:
				r.answer <- nil
				return waited{pair: r.pair}
			default:
				r.answer <- errPaired(s.code)
			}
		}
	}
}

func errPaired(code parley.ChannelCode) error {
	return parley.Errorf(parley.BadRequest, "Channel %s has an account already. Log it out first with: parley channel logout %s", code, code)
}

// unpair forgets the device of the channel and keeps why.
func (s *session) unpair(jid types.JID, e end) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), keepTimeout)
	defer cancel()
	if err := s.d.db.setRecord(ctx, s.code, record{status: e.status, reason: e.reason}); err != nil {
		s.d.Log.Error("keep that a channel is not paired", "channel", s.code, "error", err)
		s.pause(databasePause) // it will be noticed again
	}
	if err := s.d.db.deleteDevice(ctx, jid); err != nil {
		s.d.Log.Error("remove a device", "channel", s.code, "error", err)
	}
	s.become(e.status, e.reason, network.Phone{})
}

// hold makes a connection and holds it until it ends. It says how it ended and whether it worked meanwhile.
func (s *session) hold(jid types.JID, phone *network.Phone) (e end, up bool) {
	device, err := s.d.db.keys.Device(s.ctx, jid)
	if err != nil {
		s.d.Log.Error("read a device", "channel", s.code, "error", err)
		return end{status: parley.Reconnecting, reason: "The database of devices does not work now. It is tried again."}, false
	}
	if device == nil {
		return keysGone, false
	}
	l := newLine(s, device)
	defer l.hangUp()
	defer s.up.Store(nil)
	if err := l.connect(); err != nil {
		return dialEnd(err), false
	}
	asked := time.Now()
	login := time.NewTimer(loginTimeout)
	defer login.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return end{}, up
		case <-login.C:
			if !up {
				return loginEnd, false
			}
		case r := <-s.requests:
			if r.pair != nil {
				r.answer <- errPaired(s.code)
				continue
			}
			e, err := s.logOut(l, up)
			r.answer <- err
			if err == nil {
				return e, up
			}
		case evt := <-l.news:
			if e, ended := endOf(evt); ended {
				return e, up
			}
			if _, connected := evt.(*events.Connected); connected {
				up = true
				s.evidence.connected()
				l.compareClock(time.Since(asked))
				s.up.Store(l)
			}
			phone.Name = s.d.nameOf(s.ctx, jid)
			if up {
				s.become(parley.Working, "", *phone)
				l.announce(phone.Name)
			}
		}
	}
}

// announce tells the network the account's name, without which others see none, and that nobody sits here:
// else the account's phone would not ring. Before the name is known there is nothing to tell.
func (l *line) announce(name string) {
	if name == "" || l.typing.isOn() {
		return
	}
	if err := l.presence(l.ctx, types.PresenceUnavailable, name); err != nil {
		l.log.Warnf("tell the account's name: %v", err)
	}
}

// logOut unlinks the device. Without a connection the network is not told.
func (s *session) logOut(l *line, up bool) (end, error) {
	e := logoutAlone
	if up {
		e = logoutOwn
		if err := l.unlink(); err != nil {
			return end{}, err
		}
	}
	s.up.Store(nil)
	l.hangUp()
	s.unpair(l.jid, e)
	return e, nil
}

// unlink asks the network to remove this device from the account.
func (l *line) unlink() (err error) {
	defer l.s.contain(&err)
	_, err = l.inner().SendIQ(l.ctx, whatsmeow.DangerousInfoQuery{
		Namespace: "md", Type: "set", To: types.ServerJID, Content: unlinkNode(l.jid), Timeout: askTimeout,
	})
	if err != nil {
		return l.asked("log out", err)
	}
	return nil
}
