package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/outbox"
	"parley/internal/store"
)

// account is one channel as this process runs it: what is known of it, its session while it has one,
// and its outbox worker, which runs as long as the channel exists, so that what waits can expire.
type account struct {
	g      *Gateway
	code   parley.ChannelCode
	id     int64
	worker *outbox.Worker
	stop   context.CancelFunc
	done   chan struct{} // closed when the worker ended

	// retired is set when the channel is being deleted, or goes on under another account: it is why nothing
	// is accepted any more, in no transaction that begins later.
	retired atomic.Pointer[retirement]

	mu         sync.RWMutex
	channel    parley.Channel
	session    network.Session
	on         parley.NetworkName // the network of the session
	closed     bool               // no session is opened any more
	changing   bool               // somebody is making it comply
	again      bool               // whoever that is must look again
	lasting    bool               // it had a lasting status since the start
	restricted time.Time
	pairing    parley.Pairing // the latest step; zero: none lately
}

// retirement is how an account ends before its process does.
type retirement struct {
	deleted bool          // its channel is being deleted
	refusal *parley.Error // what those get whose request came too late
}

// deletion is the retirement of an account whose channel is deleted. Requests that named the channel while it
// was there learn it from the refusal.
func deletion(code parley.ChannelCode) *retirement {
	return &retirement{deleted: true, refusal: parley.Errorf(parley.BadRequest, "Channel %s was deleted.", code)}
}

// tx runs a transaction that stores something of the channel. It is refused where the channel is gone.
func (a *account) tx(ctx context.Context, do func(*store.Tx) error) error {
	return a.g.Store.Tx(ctx, a.checked(ctx, do))
}

// checked is a transaction that makes sure that the channel is still there: this one, not a later one with
// its code.
func (a *account) checked(ctx context.Context, do func(*store.Tx) error) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		if r := a.retired.Load(); r != nil {
			return r.refusal
		}
		err := tx.CheckChannel(ctx, a.code, a.id)
		if errors.Is(err, parley.ErrNotFound) {
			return deletion(a.code).refusal
		}
		if err != nil {
			return err
		}
		return do(tx)
	}
}

// ErrChannelNotFound is the cause of the error of what names a channel that is not there.
var ErrChannelNotFound = errors.New("no such channel")

func errNoChannel(code parley.ChannelCode) *parley.Error {
	return &parley.Error{Code: parley.NotFound, Message: fmt.Sprintf("There is no channel %s.", code), Cause: ErrChannelNotFound}
}

// newAccount starts the worker of a channel. Its session is opened separately.
func newAccount(g *Gateway, c parley.Channel) *account {
	if c.Runs() && !g.Offline { // what was last seen of it is of an earlier run
		c.State = parley.ChannelState{Status: parley.Starting, Since: time.Now(), WorkingAt: c.State.WorkingAt}
	}
	ctx, stop := context.WithCancel(context.Background())
	a := &account{g: g, code: c.Code, id: c.ID, stop: stop, done: make(chan struct{}), channel: c}
	a.worker = outbox.New(outbox.Config{
		Channel:          c.Code,
		Store:            g.Store,
		Now:              a.now,
		ClockTrusted:     g.ClockTrusted,
		Settings:         func() parley.ChannelSettings { return a.snapshot().Settings },
		AccountFrom:      func() int64 { return a.snapshot().AccountFrom },
		Pace:             func() (time.Duration, time.Duration) { return a.snapshot().Pace() },
		OnDone:           a.settled,
		RemoveFile:       g.removeMedia,
		DecryptSecret:    a.reveal,
		EncryptForResend: a.pack,
		Log:              g.Log,
	})
	if g.Offline {
		close(a.done)
		return a
	}
	go func() {
		defer close(a.done)
		a.worker.Run(ctx)
	}()
	return a
}

// asOffline is a channel as it is while no server runs.
func asOffline(c parley.Channel) parley.Channel {
	if c = c.Offline(); !c.Runs() && c.State.Status != parley.Stopped {
		c.State = parley.ChannelState{Status: parley.Stopped, Reason: stoppedReason(c), WorkingAt: c.State.WorkingAt}
	}
	return c
}

// adjust takes over what was stored of the channel, but not its state.
func (a *account) adjust(c parley.Channel) {
	a.mu.Lock()
	changed := a.channel.Network != c.Network || !sameSettings(a.channel.Settings, c.Settings)
	a.channel.Name, a.channel.Network, a.channel.Enabled, a.channel.Settings = c.Name, c.Network, c.Enabled, c.Settings
	if a.g.Offline {
		a.channel.State = c.State
	}
	a.mu.Unlock()
	if changed {
		a.worker.Wake()
	}
}

// complies reports whether the account runs as its channel says: with a session on its network, or stopped.
func (a *account) complies() bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.compliesLocked()
}

func (a *account) compliesLocked() bool {
	switch {
	case a.changing:
		return false
	case a.channel.Runs():
		return a.session != nil && a.on == a.channel.Network
	}
	return a.session == nil && a.channel.State.Status == parley.Stopped
}

// comply makes the account run as its channel says. While one caller is at it, another one only has it look
// again.
func (a *account) comply(ctx context.Context) {
	a.mu.Lock()
	if a.changing {
		a.again = true
		a.mu.Unlock()
		return
	}
	a.changing = true
	for more := true; more; {
		c, isOpen, on := a.channel, a.session != nil, a.on
		a.mu.Unlock()
		if isOpen && (!c.Runs() || on != c.Network) {
			a.closeSession()
			isOpen = false
		}
		switch {
		case c.Runs() && !isOpen:
			a.open(ctx)
		case !c.Runs():
			a.setState(ctx, network.State{Status: parley.Stopped, Reason: stoppedReason(c)})
		}
		a.mu.Lock()
		more, a.again = a.again, false
	}
	a.changing = false
	a.mu.Unlock()
}

func stoppedReason(c parley.Channel) string {
	if of := c.Settings.ArchiveOf; of != "" {
		return fmt.Sprintf("It keeps what was said in the sandbox before channel %s went live.", of)
	}
	return "It was stopped."
}

// open starts the channel's session. Its states come through the sink.
func (a *account) open(ctx context.Context) {
	c := a.snapshot()
	driver, ok := a.g.Drivers[c.Network]
	if !ok {
		a.setState(ctx, network.State{Status: parley.Failed, Reason: fmt.Sprintf("This program has no network %q.", c.Network)})
		return
	}
	a.setState(ctx, network.State{Status: parley.Starting})
	session, err := driver.Open(ctx, c, a.sink)
	if err != nil { // one channel's trouble is no other's
		a.g.Log.Error("open session", "channel", c.Code, "error", err)
		a.setState(ctx, network.State{Status: parley.Failed, Reason: "Its session could not be opened; the log says why."})
		return
	}
	a.mu.Lock()
	closed := a.closed
	if !closed {
		a.session, a.on = session, c.Network
	}
	a.mu.Unlock()
	if closed {
		session.Close()
		return
	}
	if aware, ok := session.(network.QueueAware); ok {
		aware.WatchQueue(a.worker.Depth)
	}
	a.connect()
}

// connect gives the worker the session while it works, and takes it away while it does not.
func (a *account) connect() {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if a.session != nil && a.channel.State.Status == parley.Working {
		a.worker.SetSender(a.session)
		a.g.fetcher.wake()
	} else {
		a.worker.SetSender(nil)
	}
}

func (a *account) closeSession() {
	a.mu.Lock()
	session := a.session
	a.session, a.pairing = nil, parley.Pairing{}
	a.mu.Unlock()
	a.connect()
	if session != nil {
		session.Close()
	}
}

// close ends the worker first, so that what is under way still finds its session.
func (a *account) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.stop()
	<-a.done
	a.closeSession()
}

// changeAccount stores that the channel has another account than before, if so. What was accepted for the one
// before must not leave from this one, so nothing is sent until that is stored.
func (a *account) changeAccount(ctx context.Context, phone network.Phone) error {
	was := a.snapshot().Number
	if phone.Number == "" || was == "" || phone.Number == was {
		return nil
	}
	a.worker.SetSender(nil)
	var c parley.Channel
	err := a.tx(ctx, func(tx *store.Tx) (err error) {
		if c, err = tx.Channel(ctx, a.code); err != nil {
			return err
		}
		c.Number, c.PhoneName = phone.Number, phone.Name
		if err := tx.SetChannelState(ctx, c); err != nil {
			return err
		}
		c, err = tx.Channel(ctx, a.code)
		return err
	})
	if err != nil {
		return fmt.Errorf("store another account: %w", err)
	}
	a.mu.Lock()
	a.channel.Number, a.channel.PhoneName, a.channel.AccountFrom = c.Number, c.PhoneName, c.AccountFrom
	a.mu.Unlock()
	a.g.Log.Info("the channel has another account; what waited for the one before fails", "channel", a.code)
	a.worker.Wake()
	return nil
}

// setState notes the state of the connection. Memory has it at once; the store gets it for the next start, and a
// failure there changes nothing here.
func (a *account) setState(ctx context.Context, s network.State) {
	a.mu.Lock()
	was := a.channel
	now := time.Now()
	st := &a.channel.State
	st.Reason = s.Reason
	if st.Status != s.Status {
		st.Status, st.Since = s.Status, now
		if s.Status == parley.Working {
			st.WorkingAt = now
		}
		a.lasts(st)
	}
	if s.Phone.Number != "" {
		a.channel.Number, a.channel.PhoneName = s.Phone.Number, s.Phone.Name
	}
	c := a.channel
	a.mu.Unlock()
	a.connect()
	if c.State == was.State && c.Number == was.Number && c.PhoneName == was.PhoneName {
		return
	}
	if c.State.Status != was.State.Status {
		a.g.Log.Info("channel", "channel", c.Code, "status", c.State.Status, "reason", c.State.Reason)
		a.g.activity.Publish(Activity{At: now, Channel: c.Code, State: c.State.Status, Reason: c.State.Reason})
	}
	err := a.tx(ctx, func(tx *store.Tx) error {
		if err := tx.SetChannelState(ctx, c); err != nil {
			return err
		}
		if c.State.Status == was.State.Status {
			return nil
		}
		return tx.AddEvent(ctx, parley.NewChannelEvent(c, was.State.Status, now))
	})
	if err != nil && a.retired.Load() == nil {
		a.g.Log.Error("store a channel's state", "channel", c.Code, "error", err)
	}
}

// lasts notes a status that is not only passed through when the server starts and stops. The first one since the
// start, if it is what the channel had before, began when that did. It is called with the lock held.
func (a *account) lasts(st *parley.ChannelState) {
	c := &a.channel
	if st.Status == parley.Starting || st.Status == parley.Stopped && c.Runs() {
		return
	}
	if !a.lasting && st.Status == c.LastingStatus && c.LastingSince.Before(st.Since) {
		st.Since = c.LastingSince
	}
	a.lasting = true
	c.LastingStatus, c.LastingSince = st.Status, st.Since
}

func (a *account) snapshot() parley.Channel {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.channel
}

// live returns the session while it is connected, else nil.
func (a *account) live() network.Session {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if a.channel.State.Status != parley.Working {
		return nil
	}
	return a.session
}

func (a *account) now() time.Time {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.g.Clock().Add(time.Duration(a.channel.Settings.ClockAhead))
}

func (a *account) restrictedUntil() time.Time {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if a.restricted.After(time.Now()) {
		return a.restricted
	}
	return time.Time{}
}

// settled is told by the worker of each message that it is done with.
func (a *account) settled(m *parley.Message) {
	if f := m.Failure; f != nil && f.Code == parley.Restricted && !f.Until.IsZero() {
		a.mu.Lock()
		a.restricted = f.Until
		a.mu.Unlock()
	}
	a.g.settled(m)
}

// reveal decrypts a text that only its recipient may read, to be sent. That of a one-time code is kept
// with the code, and gone when the code is of no use any more.
func (a *account) reveal(s parley.Secret) (parley.Content, error) {
	encrypted := s.Encrypted
	if encrypted == nil {
		code, err := a.g.Store.Code(context.Background(), s.OTP)
		if err != nil && !errors.Is(err, parley.ErrNotFound) {
			return nil, fmt.Errorf("look up a code: %w", err)
		}
		if encrypted = code.Encrypted; encrypted == nil {
			return nil, &network.Error{Class: network.Permanent, Failure: parley.Failure{
				Code: parley.Expired, Message: "The code that it carries ended before it could be sent."}}
		}
	}
	text, err := a.g.Keyring.Decrypt(encrypted, string(s.OTP))
	if err != nil {
		return nil, &network.Error{Class: network.Permanent, Cause: err, Failure: parley.Failure{
			Code: parley.GaveUp, Message: "Its text cannot be decrypted: this server has another key now."}}
	}
	return parley.Text{Body: string(text)}, nil
}
