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
		rec, err := s.d.db.channel(s.ctx, s.code)
		if err != nil {
			s.d.Log.Error("read what is kept of a channel", "channel", s.code, "error", err)
			s.setState(s.connectingStatus(false), "The database of devices does not work now. It is tried again.", network.Phone{})
			s.pause(databasePause)
			continue
		}
		switch {
		case pairing != nil:
			pairing = s.pair(*pairing)
		case rec.jid.IsEmpty():
			pairing = s.awaitPairing(rec)
		default:
			pairing = s.maintain(rec)
		}
	}
}

// connectingStatus is the status of a channel that is not connected and tries to be.
func (s *session) connectingStatus(worked bool) parley.ChannelStatus {
	if worked {
		return parley.Reconnecting
	}
	return parley.Starting
}

// awaitPairing waits until somebody wants to pair the channel.
func (s *session) awaitPairing(rec channelDevice) *pairOptions {
	if rec.status == "" {
		s.setState(parley.ScanQRCode, "No WhatsApp account is linked.", network.Phone{})
	} else {
		s.setState(rec.status, rec.reason, network.Phone{})
	}
	for {
		select {
		case <-s.ctx.Done():
			return nil
		case r := <-s.requests:
			r.result <- nil // a logout has nothing to do
			if r.pair != nil {
				return r.pair
			}
		}
	}
}

// maintain holds the account's connection, again and again, until the account is gone or somebody wants to
// pair another one.
func (s *session) maintain(rec channelDevice) *pairOptions {
	phone := network.Phone{Name: s.d.pushName(s.ctx, rec.jid), Number: rec.jid.User}
	worked := false
	policy := newReconnects()
	for s.ctx.Err() == nil {
		e, up := s.holdConnection(rec.jid, &phone)
		if s.ctx.Err() != nil {
			return nil
		}
		worked = worked || up
		switch {
		case e.unpaired:
			s.unpair(rec.jid, e)
			return nil
		case e.status != parley.Reconnecting:
			s.setState(e.status, e.reason, phone)
			if r := s.waitOrRequest(e.retryAfter, rec.jid, true); r.unpaired || r.pair != nil {
				return r.pair
			}
			s.setState(s.connectingStatus(worked), "", phone)
		default:
			s.setState(s.connectingStatus(worked), e.reason, phone)
			wait := policy.failed
			if up || e.retryNow {
				wait = policy.lost
			}
			if r := s.backOff(wait(), rec.jid); r.unpaired {
				return nil
			}
		}
	}
	return nil
}

// queueCheckInterval is how often a session that waits to reconnect checks whether messages wait for it.
const queueCheckInterval = time.Second

// backOff waits before the next connection, not longer than queuedBackoff while messages wait.
func (s *session) backOff(wait time.Duration, jid types.JID) waitResult {
	wait = min(wait, s.d.maxBackoff)
	began := time.Now()
	for {
		left := backoffLeft(wait, time.Since(began), s.hasQueue())
		if left <= 0 || s.ctx.Err() != nil {
			return waitResult{}
		}
		if r := s.waitOrRequest(min(left, queueCheckInterval), jid, false); r.unpaired {
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

// waitResult is how a wait ended.
type waitResult struct {
	pair     *pairOptions // somebody wants to pair
	unpaired bool         // the device is no more
}

// waitOrRequest waits for a while, or for a request; for ever where the while is zero. Only where the channel has
// failed can it be paired anew: else it comes back by itself.
func (s *session) waitOrRequest(d time.Duration, jid types.JID, failed bool) waitResult {
	var due <-chan time.Time
	if d > 0 || !failed {
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	for {
		select {
		case <-s.ctx.Done():
			return waitResult{}
		case <-due:
			return waitResult{}
		case r := <-s.requests:
			switch {
			case r.pair == nil:
				s.unpair(jid, loggedOutOffline)
				r.result <- nil
				return waitResult{unpaired: true}
			case failed:
				r.result <- nil
				return waitResult{pair: r.pair}
			default:
				r.result <- errPaired(s.code)
			}
		}
	}
}

func errPaired(code parley.ChannelCode) error {
	return parley.Errorf(parley.BadRequest, "Channel %s has an account already. Log it out first with: parley channel logout %s", code, code)
}

// unpair forgets the device of the channel and keeps why.
func (s *session) unpair(jid types.JID, e disconnection) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), persistTimeout)
	defer cancel()
	if err := s.d.db.setChannel(ctx, s.code, channelDevice{status: e.status, reason: e.reason}); err != nil {
		s.d.Log.Error("keep that a channel is not paired", "channel", s.code, "error", err)
		s.pause(databasePause) // it will be noticed again
	}
	if err := s.d.db.deleteDevice(ctx, jid); err != nil {
		s.d.Log.Error("remove a device", "channel", s.code, "error", err)
	}
	s.setState(e.status, e.reason, network.Phone{})
}

// holdConnection makes a connection and holds it until it ends. It says how it ended and whether it worked meanwhile.
func (s *session) holdConnection(jid types.JID, phone *network.Phone) (e disconnection, up bool) {
	device, err := s.d.db.keys.Device(s.ctx, jid)
	if err != nil {
		s.d.Log.Error("read a device", "channel", s.code, "error", err)
		return disconnection{status: parley.Reconnecting, reason: "The database of devices does not work now. It is tried again."}, false
	}
	if device == nil {
		return keysMissing, false
	}
	conn := newConnection(s, device)
	defer conn.close()
	defer s.current.Store(nil)
	if err := conn.connect(); err != nil {
		return dialFailed(err), false
	}
	asked := time.Now()
	login := time.NewTimer(loginTimeout)
	defer login.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return disconnection{}, up
		case <-login.C:
			if !up {
				return loginTimedOut, false
			}
		case r := <-s.requests:
			if r.pair != nil {
				r.result <- errPaired(s.code)
				continue
			}
			e, err := s.logOut(conn, up)
			r.result <- err
			if err == nil {
				return e, up
			}
		case evt := <-conn.updates:
			if e, ended := disconnectionOf(evt); ended {
				return e, up
			}
			if _, connected := evt.(*events.Connected); connected {
				up = true
				s.evidence.connected()
				conn.measureClock(time.Since(asked))
				s.current.Store(conn)
			}
			phone.Name = s.d.pushName(s.ctx, jid)
			if up {
				s.setState(parley.Working, "", *phone)
				conn.announceName(phone.Name)
			}
		}
	}
}

// announceName tells the network the account's name, without which others see none, and that nobody sits here:
// else the account's phone would not ring. Before the name is known there is nothing to tell.
func (conn *connection) announceName(name string) {
	if name == "" || conn.typing.isOn() {
		return
	}
	if err := conn.presence(conn.ctx, types.PresenceUnavailable, name); err != nil {
		conn.log.Warnf("tell the account's name: %v", err)
	}
}

// logOut unlinks the device. Without a connection the network is not told.
func (s *session) logOut(conn *connection, up bool) (disconnection, error) {
	e := loggedOutOffline
	if up {
		e = loggedOutHere
		if err := conn.unlink(); err != nil {
			return disconnection{}, err
		}
	}
	s.current.Store(nil)
	conn.close()
	s.unpair(conn.jid, e)
	return e, nil
}

// unlink asks the network to remove this device from the account.
func (conn *connection) unlink() (err error) {
	defer conn.s.recoverPanic(&err)
	_, err = conn.inner().SendIQ(conn.ctx, whatsmeow.DangerousInfoQuery{
		Namespace: "md", Type: "set", To: types.ServerJID, Content: unlinkNode(conn.jid), Timeout: requestTimeout,
	})
	if err != nil {
		return conn.queryError("log out", err)
	}
	return nil
}
