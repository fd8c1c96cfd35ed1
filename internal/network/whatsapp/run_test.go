package whatsapp

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/types/events"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/whatsapptest"
)

// TestEnds says for every end of a connection what the channel's status is, and why.
func TestEnds(t *testing.T) {
	for name, test := range map[string]struct {
		evt      any
		status   parley.ChannelStatus
		unpaired bool
		retried  bool // by itself
		words    string
	}{
		"closed without a word":   {&events.Disconnected{}, parley.ChannelReconnecting, false, true, "lost"},
		"dead":                    {&events.KeepAliveTimeout{}, parley.ChannelReconnecting, false, true, "stopped answering"},
		"asked to come again":     {&events.ManualLoginReconnect{}, parley.ChannelReconnecting, false, true, "new connection"},
		"an unknown stream error": {&events.StreamError{Code: "599"}, parley.ChannelReconnecting, false, true, "599"},
		"removed on the phone":    {&events.LoggedOut{Reason: 401}, parley.ChannelLoggedOut, true, false, "Pair the channel again"},
		"removed while away": {&events.LoggedOut{OnConnect: true, Reason: 401}, parley.ChannelLoggedOut, true, false,
			"Pair the channel again"},
		"the phone is locked":       {&events.LoggedOut{OnConnect: true, Reason: 403}, parley.ChannelLoggedOut, true, false, "Open WhatsApp"},
		"banned":                    {&events.LoggedOut{OnConnect: true, Reason: 406}, parley.ChannelFailed, true, false, "banned"},
		"replaced":                  {&events.StreamReplaced{}, parley.ChannelFailed, false, false, "Another program"},
		"banned for a time":         {&events.TemporaryBan{Code: 101, Expire: time.Hour}, parley.ChannelFailed, false, true, "too many people"},
		"banned for an unknown one": {&events.TemporaryBan{Code: 999}, parley.ChannelFailed, false, true, "999"},
		"outdated":                  {&events.ClientOutdated{}, parley.ChannelFailed, false, false, "Upgrade"},
		"refused":                   {&events.ConnectFailure{Reason: 418}, parley.ChannelFailed, false, true, "418"},
		"a token is missing":        {&events.CATRefreshError{}, parley.ChannelFailed, false, false, "Pair the channel again"},
	} {
		e, ok := toDisconnection(test.evt)
		if !ok || e.status != test.status || e.unpaired != test.unpaired || !strings.Contains(e.reason, test.words) {
			t.Errorf("%s: %+v", name, e)
		}
		if retried := e.status == parley.ChannelReconnecting || e.retryAfter > 0; retried != test.retried {
			t.Errorf("%s: tried again by itself: %t", name, retried)
		}
	}
	for _, evt := range []any{&events.Connected{}, &events.Message{}, nil} {
		if e, ok := toDisconnection(evt); ok {
			t.Errorf("%T is an end: %+v", evt, e)
		}
	}
}

// TestComesBack ends connections in the ways after which a channel comes back by itself.
func TestComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.driver.silenceLimit, w.driver.pingTimeout = 200*time.Millisecond, 5*time.Second
	s, in := w.paired()
	var sending sync.WaitGroup
	defer sending.Wait()
	for name, end := range map[string]func(){
		"cut":     func() { w.link.End(whatsapptest.Cut) },
		"restart": func() { w.link.End(whatsapptest.Restarted) },
		"515":     func() { w.link.End(whatsapptest.Reconnect) },
		"unknown": func() { w.link.End(whatsapptest.Unknown) },
		"dead": func() {
			w.link.Stall()
			sending.Go(func() { send(s, w.text(otherID, "into the void")) })
		},
		"login 503": func() { w.owner.RefuseLogin(whatsapptest.Refusal{Reason: 503, Times: 1}); w.link.End(whatsapptest.Cut) },
		"HTTP 503":  func() { w.Refuse(503); w.link.End(whatsapptest.Cut) },
	} {
		skip := in.count()
		end()
		if e := in.statusAfter(skip, parley.ChannelReconnecting); e.Reason == "" || e.Phone.Number != ownerNumber {
			t.Errorf("%s: %+v", name, e)
		}
		w.Refuse(0)
		if e := in.statusAfter(skip, parley.ChannelWorking); e.Reason != "" {
			t.Errorf("%s: %+v", name, e)
		}
		w.sent(s, w.text(friendID, name))
		w.friend.Expect(t, whatsapptest.Text(name))
	}
}

// TestCloseDuringHandshake closes a session whose server says nothing: it does not wait until whatsmeow gives up, after 20 s.
func TestCloseDuringHandshake(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	must(t, s.Close())
	w.Mute()
	s, _ = w.start()
	for w.Muted() == 0 {
		time.Sleep(time.Millisecond)
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		must(t, err)
	case <-time.After(15 * time.Second):
		t.Error("it waits for a response")
	}
}

// TestUnreachableAtStart starts a channel while the network is away: it waits, and works when it is back.
func TestUnreachableAtStart(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	must(t, s.Close())
	w.Down()
	s, in := w.start()
	e := expect(in, 0, func(e network.State) bool { return e.Reason != "" })
	if e.Status != parley.ChannelStarting || !strings.Contains(e.Reason, "cannot be reached") {
		t.Errorf("it is %+v", e)
	}
	if err := send(s, w.text(friendID, "hello")); network.ToClass(err) != network.Disconnected {
		t.Errorf("a send meanwhile: %v", err)
	}
	w.Up()
	in.status(parley.ChannelWorking)
	w.sent(s, w.text(friendID, "there you are"))
}

// TestGone ends channels in the ways after which somebody must act.
func TestGone(t *testing.T) {
	for name, test := range map[string]struct {
		end    func(w *world)
		status parley.ChannelStatus
		words  string
		paired bool // afterwards still
	}{
		"removed on the phone": {func(w *world) { w.link.Remove() }, parley.ChannelLoggedOut, "removed this device", false},
		"locked":               {refuse(whatsapptest.Refusal{Reason: 403}), parley.ChannelLoggedOut, "locked", false},
		"banned":               {refuse(whatsapptest.Refusal{Reason: 406}), parley.ChannelFailed, "banned", false},
		"banned for a time":    {refuse(whatsapptest.Refusal{Reason: 402, Code: 101, Expire: 3600}), parley.ChannelFailed, "until", true},
		"outdated":             {refuse(whatsapptest.Refusal{Reason: 405}), parley.ChannelFailed, "Upgrade", true},
		"refused":              {refuse(whatsapptest.Refusal{Reason: 418}), parley.ChannelFailed, "418", true},
		"replaced":             {func(w *world) { w.link.End(whatsapptest.Replaced) }, parley.ChannelFailed, "Another program", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s, in := w.paired()
			skip := in.count()
			test.end(w)
			if e := in.statusAfter(skip, test.status); !strings.Contains(e.Reason, test.words) {
				t.Errorf("it is %+v", e)
			}
			if err := send(s, w.text(friendID, "hello")); network.ToClass(err) != network.Disconnected {
				t.Errorf("a send: %v", err)
			}
			must(t, s.Close())
			w.owner.AllowLogin()
			_, in = w.start() // as after a restart
			if test.paired {
				in.status(parley.ChannelWorking)
				return
			}
			if e := in.status(test.status); !strings.Contains(e.Reason, test.words) {
				t.Errorf("after a restart it is %+v", e)
			}
		})
	}
}

// TestReplacedByNode comes back in a cluster after a paused node took the connection for a moment. Another program is the reason
// if it happens again soon.
func TestReplacedByNode(t *testing.T) {
	w := newWorld(t)
	w.driver.config.MayConnect = func() bool { return true }
	_, in := w.paired()
	skip := in.count()
	w.link.End(whatsapptest.Replaced)
	if e := in.statusAfter(skip, parley.ChannelReconnecting); !strings.Contains(e.Reason, "Another node") {
		t.Errorf("it is %+v", e)
	}
	in.statusAfter(skip, parley.ChannelWorking)
	skip = in.count()
	w.link.End(whatsapptest.Replaced)
	in.statusAfter(skip, parley.ChannelFailed)
}

// TestNoMemberDoesNotConnect connects only while its node is a member of the cluster.
func TestNoMemberDoesNotConnect(t *testing.T) {
	w := newWorld(t)
	var member atomic.Bool
	var asked atomic.Int64
	member.Store(true)
	w.driver.config.MayConnect = func() bool { asked.Add(1); return member.Load() }
	s, in := w.paired()
	skip := in.count()
	member.Store(false)
	w.link.End(whatsapptest.Cut)
	in.statusAfter(skip, parley.ChannelReconnecting)
	for before := asked.Load(); asked.Load() < before+3; {
		time.Sleep(time.Millisecond)
	}
	if s.current.Load() != nil {
		t.Error("it connected")
	}
	member.Store(true)
	in.statusAfter(skip, parley.ChannelWorking)
}

func refuse(r whatsapptest.Refusal) func(*world) {
	return func(w *world) {
		w.owner.RefuseLogin(r)
		w.link.End(whatsapptest.Cut)
	}
}

// TestBanEnds comes back by itself when a ban is over.
func TestBanEnds(t *testing.T) {
	w := newWorld(t)
	_, in := w.paired()
	skip := in.count()
	w.owner.RefuseLogin(whatsapptest.Refusal{Reason: 402, Code: 104, Expire: 1, Times: 1})
	w.link.End(whatsapptest.Cut)
	in.statusAfter(skip, parley.ChannelFailed)
	in.statusAfter(skip, parley.ChannelWorking)
}

// TestLogoutWithoutConnection logs out while the network is away, and says that the device stays on the phone.
func TestLogoutWithoutConnection(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	skip := in.count()
	w.Down()
	in.statusAfter(skip, parley.ChannelReconnecting)
	must(t, s.Logout(t.Context()))
	if e := in.statusAfter(skip, parley.ChannelLoggedOut); !strings.Contains(e.Reason, "on the phone too") {
		t.Errorf("it is %+v", e)
	}
	if devices := w.devices(); len(devices) != 0 {
		t.Errorf("left are %v", devices)
	}
	w.Up()
}

// TestUnifiedSession sends the id of the session when the account comes online, as WhatsApp Web does, and not when it goes.
func TestUnifiedSession(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	before := w.Asked("unified_session")
	for _, on := range []bool{true, false} {
		must(t, s.Typing(t.Context(), friendID, on))
	}
	for deadline := time.After(hang); w.Asked("unified_session") == before; {
		_, _, err := s.Groups(t.Context(), parley.Page{}) // a round trip is a while
		must(t, err)
		select {
		case <-deadline:
			t.Fatal("coming online sends no session id")
		default:
		}
	}
	if sent := w.Asked("unified_session") - before; sent != 1 {
		t.Errorf("it was sent %d times", sent)
	}
}

// TestTypingEnds shows "typing…" for a while and not longer, and is online only meanwhile.
func TestTypingEnds(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	w.driver.typingTimeout = time.Hour
	must(t, s.Typing(t.Context(), friendID, true))
	must(t, w.owner.ClientOnline(within(t)))
	conn := s.current.Load()
	if !conn.typing.isOn() {
		t.Error("nobody is shown typing")
	}
	w.driver.typingTimeout = time.Millisecond
	must(t, s.Typing(t.Context(), friendID, true))
	deadline := time.After(hang)
	for {
		typing, err := w.friend.AwaitTyping(within(t))
		must(t, err)
		if typing.State == "paused" && !conn.typing.isOn() {
			break
		}
		_, _, err = s.Groups(t.Context(), parley.Page{}) // a round trip is a while
		must(t, err)
		select {
		case <-deadline:
			t.Fatal("typing does not end")
		default:
		}
	}
}

// TestManyChannels opens several channels of one driver; closing the driver ends them.
func TestManyChannels(t *testing.T) {
	w := newWorld(t)
	var inboxes []*inbox
	for i := range 3 {
		in := newInbox(t)
		name := parley.ChannelCode(string(rune('a' + i)))
		s, err := w.driver.Open(t.Context(), parley.Channel{Code: name}, in.sink)
		must(t, err)
		must(t, s.(network.Pairer).Pair(t.Context()))
		qr := expect(in, 0, func(p network.Pairing) bool { return p.Step == parley.QRStep })
		_, err = w.owner.Scan(t.Context(), qr.Code)
		must(t, err)
		in.status(parley.ChannelWorking)
		inboxes = append(inboxes, in)
		if _, err := w.driver.Open(t.Context(), parley.Channel{Code: name}, in.sink); err == nil {
			t.Error("a channel was opened twice")
		}
		if err := w.driver.DeleteChannel(t.Context(), name); err == nil {
			t.Error("an open channel was forgotten")
		}
	}
	_, err := w.friend.Send(within(t), w.owner, "to all")
	must(t, err)
	for _, in := range inboxes {
		in.said("to all")
	}
	must(t, w.driver.Close())
	if _, err := w.driver.Open(t.Context(), parley.Channel{Code: "d"}, inboxes[0].sink); err == nil {
		t.Error("a closed driver opened a channel")
	}
}

// fakeReconnects is a policy on a clock that the test moves, with the longest jitter.
func fakeReconnects() (*reconnects, func(time.Duration)) {
	now := time.Unix(1_700_000_000, 0)
	r := &reconnects{now: func() time.Time { return now }, random: func(n time.Duration) time.Duration { return n }}
	return r, func(d time.Duration) { now = now.Add(d) }
}

// TestLossesReconnectAtOnce loses connections that were logged in: the first ones come back at once, and no
// more than one in ten seconds after that.
func TestLossesReconnectAtOnce(t *testing.T) {
	r, pass := fakeReconnects()
	for i := range lossBurst {
		if wait := r.lost(); wait > lossJitter {
			t.Errorf("loss %d waits %s", i+1, wait)
		}
	}
	pass(4 * time.Second)
	if wait := r.lost(); wait != lossRefill-4*time.Second+lossJitter {
		t.Errorf("beyond the bucket a loss waits %s", wait)
	}
	pass(6*time.Second + lossJitter)
	if wait := r.lost(); wait != lossRefill {
		t.Errorf("the next one waits %s", wait)
	}
	pass(10*time.Second + 3*lossRefill)
	for i := range 3 {
		if wait := r.lost(); wait > lossJitter {
			t.Errorf("loss %d after a quiet time waits %s", i+1, wait)
		}
	}
	if wait := r.lost(); wait <= lossJitter {
		t.Errorf("more came back at once than were refilled")
	}
	pass(time.Hour)
	for i := range lossBurst {
		if wait := r.lost(); wait > lossJitter {
			t.Errorf("loss %d after an hour waits %s", i+1, wait)
		}
	}
	if wait := r.lost(); wait <= lossJitter {
		t.Errorf("the bucket holds more than %d", lossBurst)
	}
}

// TestFailuresBackOff doubles the wait after failed dials up to a minute, and begins again after a login.
func TestFailuresBackOff(t *testing.T) {
	r, _ := fakeReconnects()
	for i, most := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		if wait := r.failed(); wait != most*time.Second {
			t.Errorf("failure %d waits %s, want %d s", i+1, wait, most)
		}
	}
	r.lost()
	if wait := r.failed(); wait != time.Second {
		t.Errorf("after a login the first failure waits %s", wait)
	}
	real := newReconnects()
	for range 100 {
		real.failures = 3
		if wait := real.failed(); wait < 4*time.Second || wait > 8*time.Second {
			t.Errorf("the fourth failure waits %s", wait)
		}
	}
}

// TestErrorsBackOff waits longer and longer for a network that ends every login with an error. A steady connection comes back at once.
func TestErrorsBackOff(t *testing.T) {
	r, _ := fakeReconnects()
	refused := disconnection{status: parley.ChannelReconnecting, byServer: true}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		if wait := r.after(refused, true, time.Second); wait != want*time.Second {
			t.Errorf("error %d after a login waits %s, want %d s", i+1, wait, want)
		}
	}
	if wait := r.after(refused, true, time.Hour); wait > lossJitter {
		t.Errorf("an error after an hour waits %s", wait)
	}
	if wait := r.after(disconnection{}, true, time.Second); wait > lossJitter {
		t.Errorf("a lost connection waits %s", wait)
	}
	w := newWorld(t)
	s, in := w.paired()
	for how, byServer := range map[whatsapptest.End]bool{whatsapptest.Restarted: true, whatsapptest.Cut: false,
		whatsapptest.Reconnect: false} {
		conn, skip := s.current.Load(), in.count()
		w.link.End(how)
		in.statusAfter(skip, parley.ChannelReconnecting)
		if conn.streamError.Load() != byServer {
			t.Errorf("end %d is by the server: %t", how, !byServer)
		}
		in.statusAfter(skip, parley.ChannelWorking)
	}
}

// TestQueueShortensBackoff waits no longer than ten seconds while messages wait, also for those that came
// after the wait began.
func TestQueueShortensBackoff(t *testing.T) {
	for _, test := range []struct {
		wait, passed time.Duration
		queued       bool
		left         time.Duration
	}{
		{60 * time.Second, 0, false, 60 * time.Second},
		{60 * time.Second, 0, true, 10 * time.Second},
		{60 * time.Second, 30 * time.Second, true, -20 * time.Second},
		{2 * time.Second, time.Second, true, time.Second},
	} {
		if left := backoffLeft(test.wait, test.passed, test.queued); left != test.left {
			t.Errorf("%+v: %s", test, left)
		}
	}
	w := newWorld(t)
	s, _ := w.start()
	depth := 0
	s.WatchQueue(func() int { return depth })
	if s.hasQueue() {
		t.Error("an empty queue counts")
	}
	depth = 1
	if !s.hasQueue() {
		t.Error("a queue does not count")
	}
}

// TestComesBackAgainAndAgain loses the connection more often in a row than any backoff would bear, with the
// policy as it is in production.
func TestComesBackAgainAndAgain(t *testing.T) {
	w := newWorld(t)
	w.driver.maxBackoff = idleBackoff
	s, in := w.paired()
	for range 10 {
		skip := in.count()
		w.link.End(whatsapptest.Cut)
		in.statusAfter(skip, parley.ChannelReconnecting)
		in.statusAfter(skip, parley.ChannelWorking)
	}
	w.sent(s, w.text(friendID, "still here"))
}

// TestDeadConnectionIsPinged finds a connection dead on which a send waits: nothing comes after a ping.
func TestDeadConnectionIsPinged(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	w.driver.silenceLimit, w.driver.pingTimeout = 20*time.Millisecond, 200*time.Millisecond
	live := s.current.Load()
	watched := &connection{s: live.s, client: live.client, updates: make(chan any, updatesBuffer),
		ended: make(chan struct{})} // whose news only we read
	watched.ctx, watched.cancel = context.WithCancel(t.Context())
	watched.handlerCtx, watched.cancelHandlers = context.WithCancel(watched.ctx)
	t.Cleanup(watched.background.Wait)
	t.Cleanup(watched.cancel)
	watched.s.d.pingTimeout = hang
	if !watched.ping() {
		t.Fatal("a live connection does not answer")
	}
	watched.s.d.pingTimeout = 200 * time.Millisecond
	w.link.Stall()
	done := watched.watchWhileSending()
	defer done()
	select {
	case evt := <-watched.updates:
		if _, dead := evt.(*events.KeepAliveTimeout); !dead {
			t.Errorf("the news are %T", evt)
		}
	case <-within(t).Done():
		t.Error("nobody noticed")
	}
}

// TestCATRefusal refuses a login with the codes that another product uses: only this channel ends.
func TestCATRefusal(t *testing.T) {
	for _, reason := range []int{413, 414} {
		w := newWorld(t)
		_, in := w.paired()
		skip := in.count()
		w.owner.RefuseLogin(whatsapptest.Refusal{Reason: reason})
		w.link.End(whatsapptest.Cut)
		in.statusAfter(skip, parley.ChannelFailed)
	}
}

// TestBrokenSettings reads changes of settings although what is stored of them is broken, without anybody changing one here.
func TestBrokenSettings(t *testing.T) {
	w := newWorld(t)
	s, _ := w.paired()
	conn, err := s.connected()
	must(t, err)
	settings, name := conn.client.Store.AppState, string(appstate.WAPatchCriticalUnblockLow)
	version, hash, err := settings.GetAppStateVersion(t.Context(), name)
	must(t, err)
	hash[0]++
	must(t, settings.PutAppStateVersion(t.Context(), name, version, hash))
	must(t, settings.PutAppStateMutationMACs(t.Context(), name, version, nil))
	must(t, w.owner.Change(t.Context(), contactPatch(w.friend, "Ayu Z.")))
	for deadline := time.Now().Add(hang); ; {
		c, err := s.Contact(t.Context(), friendID)
		if err == nil && c.Name == "Ayu Z." {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the contact is %+v (%v)", c, err)
		}
		select {
		case <-conn.synced:
		case <-time.After(50 * time.Millisecond):
		}
	}
}
