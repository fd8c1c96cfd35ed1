package whatsapp

import (
	"context"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/keystore"
)

const (
	// loginTimeout is from the handshake to the login response.
	loginTimeout = 30 * time.Second
	// databasePause is between attempts to read the database.
	databasePause = 5 * time.Second
	// membershipPause is between checks whether this node is a member again.
	membershipPause = 100 * time.Millisecond
	// persistTimeout bounds writes that must happen even while the session is closing.
	persistTimeout = 20 * time.Second
)

// run is the state machine of the session.
func (s *session) run() {
	var pairing *pairOptions
	for s.ctx.Err() == nil {
		rec, err := s.d.keys.Channel(s.ctx, s.code)
		if err != nil {
			s.d.config.Log.Error("read a channel", "channel", s.code, "error", err)
			s.setState(s.connectingStatus(false), "The database of devices does not work now. It is tried again.", network.Phone{})
			s.pause(databasePause)
			continue
		}
		switch {
		case pairing != nil:
			pairing = s.pair(*pairing)
		case rec.JID.IsEmpty():
			pairing = s.awaitPairing(rec)
		default:
			pairing = s.maintain(rec)
		}
	}
}

func (s *session) connectingStatus(worked bool) parley.ChannelStatus {
	if worked {
		return parley.ChannelReconnecting
	}
	return parley.ChannelStarting
}

func (s *session) awaitPairing(rec keystore.Channel) *pairOptions {
	if rec.Status == "" {
		s.setState(parley.ChannelScanQRCode, "No WhatsApp account is linked.", network.Phone{})
	} else {
		s.setState(rec.Status, rec.Reason, network.Phone{})
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

// maintain reconnects until the account is logged out or another pairing is requested.
func (s *session) maintain(rec keystore.Channel) *pairOptions {
	phone := network.Phone{Name: s.d.pushName(s.ctx, rec.JID), Number: rec.JID.User}
	worked := false
	policy := newReconnects()
	var replaced time.Time
	for s.ctx.Err() == nil {
		if s.d.config.MayConnect != nil && !s.d.config.MayConnect() {
			if r := s.waitOrRequest(membershipPause, rec.JID, false, nil); r.unpaired {
				return nil
			}
			continue
		}
		began := time.Now()
		e, up := s.holdConnection(rec.JID, &phone)
		if s.ctx.Err() != nil {
			return nil
		}
		worked = worked || up
		if e.replaced && s.d.config.MayConnect != nil && (replaced.IsZero() || time.Since(replaced) > replacedAgain) {
			replaced = time.Now()
			e = replacedByNode
		}
		switch {
		case e.unpaired:
			s.unpair(rec.JID, e)
			return nil
		case !e.refused.IsZero():
			if r := s.awaitVersion(e, phone, worked); r.unpaired || r.pair != nil {
				return r.pair
			}
		case e.status != parley.ChannelReconnecting:
			if !e.bannedTill.IsZero() {
				s.enqueue(network.Ban{Until: e.bannedTill})
			}
			s.setState(e.status, e.reason, phone)
			if r := s.waitOrRequest(e.retryAfter, rec.JID, true, nil); r.unpaired || r.pair != nil {
				return r.pair
			}
			s.setState(s.connectingStatus(worked), "", phone)
		default:
			s.setState(s.connectingStatus(worked), e.reason, phone)
			if r := s.backOff(policy.after(e, up, time.Since(began)), rec.JID); r.unpaired {
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
		if r := s.waitOrRequest(min(left, queueCheckInterval), jid, false, nil); r.unpaired {
			return r
		}
	}
}

func (s *session) WatchQueue(depth func() int) { s.queueDepth.Store(&depth) }

func (s *session) hasQueue() bool {
	depth := s.queueDepth.Load()
	return depth != nil && (*depth)() > 0
}

type waitResult struct {
	pair     *pairOptions // a pairing request
	unpaired bool         // the channel has no device any more
}

// waitOrRequest waits for a duration, a request or until wake is closed; without a limit if the duration is zero. Only a failed
// channel can be paired again: others reconnect.
func (s *session) waitOrRequest(d time.Duration, jid types.JID, failed bool, wake <-chan struct{}) waitResult {
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
		case <-wake:
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
	return parley.Errorf(parley.BadRequest, "Channel %s has an account already. Log it out first with: parley channel logout %s", code,
		code)
}

func (s *session) unpair(jid types.JID, e disconnection) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), persistTimeout)
	defer cancel()
	if err := s.d.keys.PutChannel(ctx, s.code, keystore.Channel{Status: e.status, Reason: e.reason}); err != nil {
		s.d.config.Log.Error("store that a channel is not paired", "channel", s.code, "error", err)
		s.pause(databasePause) // it will be noticed again
	}
	if err := s.d.keys.RemoveDevice(ctx, jid); err != nil {
		s.d.config.Log.Error("remove a device", "channel", s.code, "error", err)
	}
	s.setState(e.status, e.reason, network.Phone{})
}

// holdConnection connects and returns when the connection ends, and whether the login succeeded.
func (s *session) holdConnection(jid types.JID, phone *network.Phone) (e disconnection, up bool) {
	s.device = jid
	device, err := s.d.keys.Device(s.ctx, jid)
	if err != nil {
		s.d.config.Log.Error("read a device", "channel", s.code, "error", err)
		return disconnection{status: parley.ChannelReconnecting, reason: "The database of devices does not work now. It is tried again."}, false
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
			if e, ended := toDisconnection(evt); ended {
				if _, outdated := evt.(*events.ClientOutdated); outdated {
					e.refused = conn.version
				}
				e.byServer = conn.streamError.Load()
				return e, up
			}
			if _, connected := evt.(*events.Connected); connected {
				if !conn.tapped.Load() { // not even the response to the login
					return noStanzaSeen, false
				}
				up = true
				s.evidence.connected()
				conn.measureClock(time.Since(asked))
				s.current.Store(conn)
			}
			phone.Name = s.d.pushName(s.ctx, jid)
			if up {
				s.setState(parley.ChannelWorking, "", *phone)
				conn.announceName(phone.Name)
			}
		}
	}
}

// announceName sends the account's name, which others see, as unavailable: otherwise the owner's phone would not ring.
func (conn *connection) announceName(name string) {
	if name == "" || conn.typing.isOn() {
		return
	}
	if err := conn.presence(conn.ctx, types.PresenceUnavailable, name); err != nil {
		conn.log.Warnf("tell the account's name: %v", err)
	}
}

// logOut unlinks the device. Without a connection, only here.
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
