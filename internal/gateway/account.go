package gateway

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/outbox"
	"parley/internal/store"
	"parley/internal/wait"
)

// account is a channel in this process: its state, its session while it has one, and its outbox worker. The worker exists
// as long as the channel, so that queued messages can expire.
type account struct {
	g      *Gateway
	code   parley.ChannelCode
	id     int64
	worker *outbox.Worker
	stop   context.CancelFunc // the worker

	// retired is set when the channel is deleted or goes live under another account. Later transactions are rejected.
	retired atomic.Pointer[retirement]

	optOuts atomic.Int32 // whether contacts want no messages: one of the constants in opt_out.go

	counting sync.Mutex // held while a message of a careful channel is counted
	counted  sync.Map   // the ids of messages that are counted and not done

	moving atomic.Bool   // another node takes over: there are no new requests
	moved  chan struct{} // closed when it may take over

	mu             sync.RWMutex
	channel        parley.Channel
	session        network.Session
	sessionNetwork parley.NetworkName
	sessionProxy   string           // the key of the proxy that it uses
	closed         bool             // no session is opened any more
	syncing        bool             // a goroutine runs sync
	syncAgain      bool             // and must repeat it
	hadLasting     bool             // it had a lasting status since the start
	firstTryAt     time.Time        // when a first message may be tried, while a restriction has no known end
	firstTry       parley.MessageID // that was tried last
	pairing        parley.Pairing   // the latest step; zero: none lately
	calls          map[string]bool  // the latest calls by their ids; true: ended
}

// retirement is why an account ends before its process does.
type retirement struct {
	deleted bool
	refusal *parley.Error // for requests that came too late
}

func deletion(code parley.ChannelCode) *retirement {
	return &retirement{deleted: true, refusal: parley.Errorf(parley.BadRequest, "Channel %s was deleted.", code)}
}

// tx runs a transaction that stores something of the channel. It fails if this channel was deleted, also if another one
// has its code now.
func (a *account) tx(ctx context.Context, do func(*store.Tx) error) error {
	return a.g.config.Store.Tx(ctx, func(tx *store.Tx) error {
		refusal, err := a.check(ctx, tx)
		if err != nil {
			return err
		}
		if refusal != nil {
			return refusal
		}
		return do(tx)
	})
}

// check returns why a transaction must not store anything of the channel; nil: it may.
func (a *account) check(ctx context.Context, tx *store.Tx) (refusal *parley.Error, err error) {
	if r := a.retired.Load(); r != nil {
		return r.refusal, nil
	}
	err = tx.CheckChannel(ctx, a.code, a.id)
	if errors.Is(err, parley.ErrNotFound) {
		return deletion(a.code).refusal, nil
	}
	return nil, err
}

// ErrChannelNotFound is the cause of the error of a request with an unknown channel.
var ErrChannelNotFound = errors.New("no such channel")

func errChannelNotFound(code parley.ChannelCode) *parley.Error {
	return &parley.Error{Code: parley.NotFound, Message: fmt.Sprintf("There is no channel %s.", code), Cause: ErrChannelNotFound}
}

// newAccount starts the worker of a channel. The session is opened by sync.
func newAccount(g *Gateway, c parley.Channel, mayBeQueued bool) *account {
	if c.Runs() && !g.config.Offline { // the stored state is that of an earlier process
		c.State = parley.ChannelState{Status: parley.ChannelStarting, Since: time.Now(), WorkingAt: c.State.WorkingAt}
	}
	ctx, stop := context.WithCancel(context.Background())
	a := &account{g: g, code: c.Code, id: c.ID, stop: stop, moved: make(chan struct{}), channel: c}
	a.worker = outbox.New(outbox.Config{
		Channel:          c.Code,
		Store:            g.config.Store,
		Now:              a.now,
		ClockTrusted:     g.ClockTrusted,
		MaySend:          func() bool { return a.retired.Load() == nil && g.config.Cluster.MaySend() },
		Current:          a.snapshot,
		Pace:             a.pace,
		OnDone:           a.messageDone,
		Check:            a.mayLeave,
		OnRestricted:     a.refusedFirst,
		RemoveFile:       func(m parley.Media) { g.RemoveFiles(ctx, []parley.Media{m}) },
		DecryptSecret:    a.decryptSecret,
		EncryptForResend: a.encryptForResend,
		Unstored:         &g.unstored,
		Log:              g.config.Log,
	})
	if !g.config.Offline {
		a.worker.Start(ctx, mayBeQueued)
	}
	return a
}

// asOffline is a channel as it is while no server runs.
func asOffline(c parley.Channel) parley.Channel {
	if c = c.Offline(); !c.Runs() && c.State.Status != parley.ChannelStopped {
		c.State = parley.ChannelState{Status: parley.ChannelStopped, Reason: stoppedReason(c), WorkingAt: c.State.WorkingAt}
	}
	return c
}

// update applies the stored channel, except for its state.
func (a *account) update(c parley.Channel) {
	a.mu.Lock()
	changed := a.channel.Network != c.Network || !reflect.DeepEqual(a.channel.Settings, c.Settings)
	a.channel.Name, a.channel.Network, a.channel.Enabled = c.Name, c.Network, c.Enabled
	a.channel.Settings, a.channel.Labels = c.Settings, c.Labels
	if a.g.config.Offline {
		a.channel.State = c.State
	}
	a.mu.Unlock()
	a.g.noteChange()
	if changed {
		a.worker.ReleaseHeld() // caps or the clock may be others
	}
}

// inSync reports whether the session matches the channel: open on its network, or closed and STOPPED.
func (a *account) inSync() bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	switch {
	case a.syncing:
		return false
	case a.channel.Runs():
		return a.session != nil && a.sessionNetwork == a.channel.Network && a.sessionProxy == a.channel.Settings.ProxyKey
	}
	return a.session == nil && a.channel.State.Status == parley.ChannelStopped
}

// sync opens or closes the session to match the channel. If it already runs, that run repeats.
func (a *account) sync(ctx context.Context) {
	a.mu.Lock()
	if a.syncing {
		a.syncAgain = true
		a.mu.Unlock()
		return
	}
	a.syncing = true
	for more := true; more; {
		c, isOpen, on, proxy := a.channel, a.session != nil, a.sessionNetwork, a.sessionProxy
		a.mu.Unlock()
		if isOpen && (!c.Runs() || on != c.Network || proxy != c.Settings.ProxyKey) {
			a.closeSession()
			isOpen = false
		}
		switch {
		case c.Runs() && !isOpen:
			a.open(ctx)
		case !c.Runs():
			a.setState(ctx, network.State{Status: parley.ChannelStopped, Reason: stoppedReason(c)})
		}
		a.mu.Lock()
		more, a.syncAgain = a.syncAgain, false
	}
	a.syncing = false
	a.mu.Unlock()
}

func stoppedReason(c parley.Channel) string {
	if of := c.Settings.ArchiveOf; of != "" {
		return fmt.Sprintf("It holds the sandbox messages of channel %s from before it went live.", of)
	}
	return "It was stopped."
}

// open opens the session. Its states arrive at handleEvent.
func (a *account) open(ctx context.Context) {
	c := a.snapshot()
	driver, ok := a.g.Drivers[c.Network]
	if !ok {
		a.setState(ctx, network.State{Status: parley.ChannelFailed, Reason: fmt.Sprintf("This program has no network %q.", c.Network)})
		return
	}
	a.setState(ctx, network.State{Status: parley.ChannelStarting})
	session, err := driver.Open(ctx, c, a.handleEvent)
	if parley.ToCode(err) == parley.Unavailable { // the database, perhaps only for a moment
		a.g.config.Log.Warn("open session", "channel", c.Code, "error", err)
		a.g.refreshLater()
		return
	}
	if err != nil { // the other channels go on
		a.g.config.Log.Error("open session", "channel", c.Code, "error", err)
		a.setState(ctx, network.State{Status: parley.ChannelFailed, Reason: "Its session could not be opened. See the log of the server."})
		return
	}
	a.mu.Lock()
	closed := a.closed
	if !closed {
		a.session, a.sessionNetwork, a.sessionProxy = session, c.Network, c.Settings.ProxyKey
	}
	a.mu.Unlock()
	if closed {
		session.Close()
		return
	}
	if aware, ok := session.(network.QueueAware); ok {
		aware.WatchQueue(a.worker.Depth)
	}
	a.updateSender()
}

func (a *account) updateSender() {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if a.session != nil && a.channel.State.Status == parley.ChannelWorking {
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
	a.updateSender()
	if session != nil {
		session.Close()
	}
}

// awaitSync waits until no session is being opened.
func (a *account) awaitSync(ctx context.Context) error {
	for {
		a.mu.RLock()
		syncing := a.syncing
		a.mu.RUnlock()
		if !syncing {
			return nil
		}
		if !wait.Sleep(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// close stops the worker first, because bursts in flight need the session.
func (a *account) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.stop()
	a.worker.Wait()
	a.closeSession()
}

// changeAccount stores that the channel has another account. Messages that were accepted for the earlier one must not
// leave from this one, so nothing is sent until that is stored.
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
		since, err := tx.ChangeAge(ctx, c, phone.Number, a.now())
		if err != nil {
			return err
		}
		c.Number, c.PhoneName, c.PairedAt = phone.Number, phone.Name, since
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
	a.channel.Number, a.channel.PhoneName, a.channel.AccountFrom, a.channel.PairedAt = c.Number, c.PhoneName, c.AccountFrom, c.PairedAt
	a.mu.Unlock()
	a.g.noteChange()
	a.g.config.Log.Info("the channel has another account; messages for the earlier one fail", "channel", a.code)
	a.worker.Wake()
	return nil
}

// setState sets the state of the connection, in memory at once and then in the store. A store error is only logged: the
// stored state is for the next start.
func (a *account) setState(ctx context.Context, s network.State) {
	a.mu.Lock()
	was := a.channel
	now := time.Now()
	st := &a.channel.State
	st.Reason = s.Reason
	if st.Status != s.Status {
		st.Status, st.Since = s.Status, now
		if s.Status == parley.ChannelWorking {
			st.WorkingAt = now
		}
		a.trackLasting(st)
	}
	if s.Phone.Number != "" {
		if a.channel.Number != s.Phone.Number { // the first account: changeAccount handles others
			a.channel.PairedAt = a.nowLocked()
		}
		a.channel.Number, a.channel.PhoneName = s.Phone.Number, s.Phone.Name
	}
	c := a.channel
	a.mu.Unlock()
	a.g.noteChange()
	a.updateSender()
	if c.State == was.State && c.Number == was.Number && c.PhoneName == was.PhoneName {
		return
	}
	if c.State.Status != was.State.Status {
		a.g.config.Log.Info("channel", "channel", c.Code, "status", c.State.Status, "reason", c.State.Reason)
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
		a.g.config.Log.Error("store a channel's state", "channel", c.Code, "error", err)
	}
}

// trackLasting tracks statuses that are not only passed through when the server starts and stops. If the first one since
// the start is the one from before, it keeps its time. It is called with the lock held.
func (a *account) trackLasting(st *parley.ChannelState) {
	c := &a.channel
	if st.Status == parley.ChannelStarting || st.Status == parley.ChannelStopped && c.Runs() {
		return
	}
	if !a.hadLasting && st.Status == c.LastingStatus && c.LastingSince.Before(st.Since) {
		st.Since = c.LastingSince
	}
	a.hadLasting = true
	c.LastingStatus, c.LastingSince = st.Status, st.Since
}

func (a *account) snapshot() parley.Channel {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.channel
}

func (a *account) pace() (least, most time.Duration) {
	c := a.snapshot()
	info := a.g.Network(c.Network)
	least, most = info.Pace(c)
	return slowed(c, info, least, most, a.now())
}

func (a *account) liveSession() network.Session {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if a.channel.State.Status != parley.ChannelWorking {
		return nil
	}
	return a.session
}

func (a *account) now() time.Time {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.nowLocked()
}

// nowLocked is now, for a caller that holds the lock.
func (a *account) nowLocked() time.Time {
	return a.g.Clock().Add(time.Duration(a.channel.Settings.ClockAhead))
}

func (a *account) messageDone(m *parley.Message) {
	a.endOfTry(m)
	if _, secret := m.Content.(parley.Secret); secret && m.Status == parley.Failed {
		a.g.ContinueCodes()
	}
	a.counted.Delete(m.ID)
	a.g.statusChanged(m)
}

// decryptSecret decrypts a text that only its recipient may read. That of a one-time code is stored with the code, and
// erased when the code can no longer be used.
func (a *account) decryptSecret(s parley.Secret) (parley.Content, error) {
	encrypted := s.Encrypted
	if encrypted == nil {
		code, err := a.g.config.Store.Code(context.Background(), s.OTP)
		if err != nil && !errors.Is(err, parley.ErrNotFound) {
			return nil, fmt.Errorf("read a code: %w", err)
		}
		if encrypted = code.Encrypted; encrypted == nil {
			return nil, network.Refuse(parley.Expired, "Its code expired before it could be sent.")
		}
	}
	text, err := a.g.config.Keyring.Decrypt(encrypted, string(s.OTP))
	if err != nil {
		return nil, &network.Error{Class: network.Permanent, Cause: err, Failure: parley.Failure{
			Code: parley.GaveUp, Message: "Its text cannot be decrypted: this server has another key now."}}
	}
	if code, body, isCode := strings.Cut(string(text), parley.CodeSeparator); isCode {
		return parley.Text{Body: body, Code: code}, nil
	}
	return parley.Text{Body: string(text)}, nil
}
