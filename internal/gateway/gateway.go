// Package gateway accepts messages, owns the sessions of all channels and stores what they receive.
//
// Outgoing: [Gateway.Send] stores messages in one transaction and enqueues them in the channel's outbox. The outbox sends
// them through the channel's session and notifies the waiting request (send.go). Incoming: a session calls handleEvent in
// inbound.go, which stores the event before the network may drop it.
//
// Invariants:
//   - The store is the truth. State in memory can be lost at any moment; [Gateway.Run] makes it again from the store.
//   - A message is durable before Send returns, and enqueued in the order of the commits.
//   - Nothing of a channel is stored after it was deleted: transactions of an account go through account.tx.
//   - Everything that erases, purges or expires by age asks [Gateway.ClockTrusted] first.
//   - Slow or hanging channels do not delay the others.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/bus"
	"parley/internal/cluster"
	"parley/internal/encrypt"
	"parley/internal/media"
	"parley/internal/network"
	"parley/internal/otp"
	"parley/internal/outbox"
	"parley/internal/store"
	"parley/internal/wait"
)

// Config configures a gateway. The fields of the first block are required.
type Config struct {
	Store   *store.DB
	Drivers map[parley.NetworkName]network.Driver
	Media   *media.Library
	Keyring *encrypt.Keyring
	Log     *slog.Logger
	Metrics prometheus.Registerer

	// Clock is the clock of this machine; nil: time.Now.
	Clock func() time.Time
	// EventRetention is how long events are stored; zero: [DefaultEventRetention]. Events that a webhook or a waiting
	// delivery needs stay longer, while the log has at most EventCap events; zero: [DefaultEventCap].
	EventRetention time.Duration
	// MessageRetention is how long the rows of messages are stored, with or without their texts; zero: for ever.
	MessageRetention time.Duration
	EventCap         int64
	// Limits bound the files that come in.
	Limits store.StorageLimits
	// Cluster says which channels this process serves; nil: all.
	Cluster Cluster
	// Offline opens no sessions and sends nothing. Channels can be listed, changed and deleted. Call Refresh, not Run.
	Offline bool
	// LoginLinks sees every inbound message before it is stored; nil: no login links.
	LoginLinks LoginLinks
}

// LoginLinks is an [otp.Issuer]. MatchMessage masks the code of a login link in an inbound message. Redeem applies what it found, in
// the transaction that stores the message.
type LoginLinks interface {
	MatchMessage(ctx context.Context, c parley.Channel, m *parley.Message) (*otp.Hit, error)
	Redeem(ctx context.Context, tx *store.Tx, c parley.Channel, hit *otp.Hit) (*otp.Reply, error)
}

// Cluster is a [cluster.Membership].
type Cluster interface {
	Owns(key string) bool
	Leads() bool
	MaySend() bool
}

// Gateway runs channels. Its methods may be called from several goroutines.
type Gateway struct {
	Drivers map[parley.NetworkName]network.Driver
	Clock   func() time.Time // of this machine

	config   Config
	ready    chan struct{}
	stopped  chan struct{} // closed when Run ends: nobody confirms messages any more
	activity bus.Topic[Activity]
	waiters  sync.Map // of parley.MessageID to func(*parley.Message)
	fetcher  *mediaFetcher
	receipts *receiptWriter
	metrics  *metrics
	clock    clockGuard
	names    names

	noRemovalBefore atomic.Int64 // Unix time in nanoseconds: the storage of files did not work

	// lifecycle serializes creating, starting, stopping and removing accounts, except for changes that outlast
	// changeTimeout.
	lifecycle sync.Mutex
	changes   sync.WaitGroup
	later     atomic.Bool   // refreshLater was called
	purgeNow  chan struct{} // a channel may have been deleted or reset
	codesNow  chan struct{} // a code may have to go on to its next channel

	list     atomic.Pointer[List] // the latest
	version  atomic.Int64         // counts the changes of what a list shows
	unstored outbox.Unstored

	mu       sync.RWMutex
	accounts map[parley.ChannelCode]*account
	leaving  map[parley.ChannelCode]int            // accounts of deleted channels whose sessions are not closed yet
	stored   map[parley.ChannelCode]bool           // deleted channels of which their network still stores something
	others   map[parley.ChannelCode]parley.Channel // channels of other nodes, as they are stored
	ahead    map[parley.ChannelCode]time.Duration  // of the channels whose clock is ahead
	loaded   bool                                  // all stored channels are in accounts or others
	draining bool
}

// New makes a gateway; Run starts it.
func New(c Config) *Gateway {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Cluster == nil {
		c.Cluster = cluster.Single{}
	}
	g := &Gateway{config: c, Drivers: c.Drivers, Clock: c.Clock, ready: make(chan struct{}), stopped: make(chan struct{}),
		accounts: map[parley.ChannelCode]*account{}, others: map[parley.ChannelCode]parley.Channel{},
		ahead: map[parley.ChannelCode]time.Duration{}, leaving: map[parley.ChannelCode]int{},
		purgeNow: make(chan struct{}, 1), codesNow: make(chan struct{}, 1),
		names: names{wanted: make(chan listKey, maxWanted)}}
	began := time.Now()
	g.clock = clockGuard{wall: c.Clock, running: func() time.Duration { return time.Since(began) }, confirms: g.networkConfirms}
	g.fetcher, g.receipts = newMediaFetcher(g), newReceiptWriter(c.Store)
	g.metrics = newMetrics(c.Metrics, g)
	return g
}

// Run starts all channels and serves them until ctx ends. Then it closes their sessions and waits for bursts in flight. A
// gateway runs once.
func (g *Gateway) Run(ctx context.Context) error {
	defer close(g.stopped) // after all accounts were closed
	trusted, err := g.config.Store.TrustedTime(ctx)
	if err != nil {
		return fmt.Errorf("read the newest trusted time: %w", err)
	}
	g.clock.load(trusted)
	// The end of ctx must not end the sessions: drain closes them, in order.
	if err := g.Refresh(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start channels: %w", err)
	}
	close(g.ready)
	var fetching sync.WaitGroup
	fetching.Go(func() { g.fetcher.run(ctx) })
	fetching.Go(func() { g.runOrphanSearch(ctx) })
	fetching.Go(func() { g.runDeletions(ctx) })
	fetching.Go(func() { g.runNames(ctx) })
	fetching.Go(func() { g.runSweeps(ctx) })
	fetching.Go(func() { g.runFallbacks(ctx) })
	g.runMaintenance(ctx)
	fetching.Wait() // before the sessions are closed
	g.drain(context.WithoutCancel(ctx))
	return nil
}

// Ready is closed when all channels that should run were started.
func (g *Gateway) Ready() <-chan struct{} { return g.ready }

// Refresh makes the accounts match the stored channels: all, or only those of some codes.
func (g *Gateway) Refresh(ctx context.Context, only ...parley.ChannelCode) error {
	g.lifecycle.Lock()
	defer g.lifecycle.Unlock()
	return g.refresh(ctx, only...)
}

func (g *Gateway) refresh(ctx context.Context, only ...parley.ChannelCode) error {
	g.mu.RLock()
	draining := g.draining
	g.mu.RUnlock()
	if draining {
		return nil
	}
	channels, pending, err := g.readChannels(ctx, only)
	if err != nil {
		return err
	}
	ids := map[parley.ChannelCode]int64{}
	for _, c := range channels {
		ids[c.Code] = c.ID
	}
	var removals, changes []func() error
	for _, a := range g.all(only...) {
		if a.retired.Load() == nil && ids[a.code] != a.id {
			removals = append(removals, func() error { g.remove(a); return nil })
		}
	}
	err = g.concurrently(removals) // first: a new channel may have the same code
	g.noteStored(channels, only)
	err = errors.Join(err, g.leaveNetworks(ctx))
	for _, c := range channels {
		if !g.owns(c) {
			g.noteOther(c) // it may have moved just now
			continue       // Release closes an account that moved to another node
		}
		if a := g.updateAccount(c, pending[c.Code] > 0); a != nil && !g.config.Offline && g.CheckNetwork(c.Code) == nil && !a.inSync() {
			changes = append(changes, func() error { a.sync(ctx); return nil })
		}
	}
	g.mu.Lock()
	g.loaded = g.loaded || len(only) == 0
	g.mu.Unlock()
	g.noteChange()
	wait.Notify(g.purgeNow)
	return errors.Join(err, g.concurrently(changes))
}

// readChannels reads the stored channels, all or some, and which of them have messages that wait.
func (g *Gateway) readChannels(ctx context.Context, only []parley.ChannelCode) (
	channels []parley.Channel, pending map[parley.ChannelCode]int, err error,
) {
	if len(only) == 0 {
		if channels, err = g.config.Store.Channels(ctx); err == nil {
			pending, err = g.config.Store.PendingByChannel(ctx)
		}
		return channels, pending, err
	}
	slices.Sort(only)
	channels, err = g.config.Store.ChannelsOf(ctx, slices.Compact(only))
	pending = map[parley.ChannelCode]int{}
	for _, c := range channels {
		pending[c.Code] = 1 // perhaps
	}
	return channels, pending, err
}

// noteStored notes the channels of other nodes and the clocks that are ahead: all, or only those of some codes.
func (g *Gateway) noteStored(channels []parley.Channel, only []parley.ChannelCode) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(only) == 0 {
		clear(g.others)
		clear(g.ahead)
	}
	for _, code := range only {
		delete(g.others, code)
		delete(g.ahead, code)
	}
	for _, c := range channels {
		if !g.owns(c) {
			g.others[c.Code] = c
		}
		if d := time.Duration(c.Settings.ClockAhead); d > 0 {
			g.ahead[c.Code] = d
		}
	}
}

// MaxAhead is how far the clock of a channel is ahead at most.
func (g *Gateway) MaxAhead() (most time.Duration) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, d := range g.ahead {
		most = max(most, d)
	}
	return most
}

// noteOther notes the channel of another node, unless it has an account here, whose release notes it.
func (g *Gateway) noteOther(c parley.Channel) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.accounts[c.Code] == nil {
		g.others[c.Code] = c
	}
}

// changeTimeout is how long a change to a channel may delay the others.
const changeTimeout = 5 * time.Second

// concurrently changes several channels and waits for them. After changeTimeout, unfinished changes continue alone.
func (g *Gateway) concurrently(changes []func() error) error {
	if len(changes) == 0 {
		return nil
	}
	results := make(chan error, len(changes))
	for _, change := range changes {
		g.changes.Go(func() { results <- change() })
	}
	timeout := time.NewTimer(changeTimeout)
	defer timeout.Stop()
	var errs []error
	for n := range changes {
		select {
		case err := <-results:
			errs = append(errs, err)
		case <-timeout.C:
			g.config.Log.Warn("some channels take long to start or stop; the others go on", "channels", len(changes)-n)
			g.changes.Go(func() {
				for range len(changes) - n {
					<-results
				}
				if err := g.Refresh(context.Background()); err != nil { // a code that was in use may be free now
					g.config.Log.Error("refresh channels", "error", err)
				}
			})
			return errors.Join(errs...)
		}
	}
	return errors.Join(errs...)
}

// updateAccount creates or updates the account of a stored channel; nil: an account with its code is still being removed,
// and a refresh follows.
func (g *Gateway) updateAccount(c parley.Channel, mayBeQueued bool) *account {
	if g.config.Offline {
		c = asOffline(c)
	}
	g.mu.Lock()
	a := g.accounts[c.Code]
	if a == nil {
		a = newAccount(g, c, mayBeQueued)
		g.accounts[c.Code] = a
	}
	g.mu.Unlock()
	if a.id != c.ID || a.retired.Load() != nil {
		return nil
	}
	a.update(c)
	return a
}

func (g *Gateway) unregister(a *account) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.accounts[a.code] == a {
		delete(g.accounts, a.code)
	}
	g.noteChange()
}

// drain closes all accounts, and waits for the changes that are under way.
func (g *Gateway) drain(ctx context.Context) {
	g.closeAll(ctx)
	changed := make(chan struct{})
	go func() {
		g.changes.Wait()
		close(changed)
	}()
	select {
	case <-changed:
	case <-time.After(changeTimeout):
		g.config.Log.Warn("some channels could not be stopped in time")
	}
}

// closeAll closes all accounts, and no new ones are opened. Changes that are under way may wait for the lock that it holds: they end
// after it.
func (g *Gateway) closeAll(ctx context.Context) {
	g.lifecycle.Lock()
	defer g.lifecycle.Unlock()
	g.mu.Lock()
	g.draining = true
	g.mu.Unlock()
	var wg sync.WaitGroup
	for _, a := range g.all() {
		wg.Go(func() {
			a.close()
			if a.snapshot().Runs() { // the others have a reason of their own
				a.setState(ctx, network.State{Status: parley.ChannelStopped, Reason: parley.ServerStopped})
			}
		})
	}
	wg.Wait()
}

// Channel returns a channel with its current state.
func (g *Gateway) Channel(code parley.ChannelCode) (parley.Channel, bool) {
	a, err := g.account(code)
	if err == nil {
		return a.snapshot(), true
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	c, ok := g.others[code]
	return c, ok && !g.draining
}

// QueueDepth is how many messages of a channel are queued.
func (g *Gateway) QueueDepth(code parley.ChannelCode) int {
	return g.QueuedAhead(code, parley.PriorityNormal)
}

// QueuedAhead is how many messages of a channel leave before a new one of a priority.
func (g *Gateway) QueuedAhead(code parley.ChannelCode, priority parley.Priority) int {
	a, err := g.account(code)
	if err != nil {
		return 0
	}
	return a.worker.Ahead(priority)
}

// Now is the time on a channel's clock. That of a sandbox channel may have been advanced.
func (g *Gateway) Now(code parley.ChannelCode) time.Time {
	a, err := g.account(code)
	if err != nil {
		return g.Clock()
	}
	return a.now()
}

func (g *Gateway) account(code parley.ChannelCode) (*account, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.draining {
		return nil, &parley.Error{Code: parley.Unavailable, RetryAfter: 5 * time.Second, Message: "The server is stopping. Try again soon."}
	}
	a, ok := g.accounts[code]
	if _, moved := g.others[code]; moved && (!ok || a.moving.Load()) {
		return nil, errMoved(code)
	}
	if !ok {
		return nil, errChannelNotFound(code)
	}
	if a.moving.Load() {
		return nil, errMoved(code)
	}
	if r := a.retired.Load(); r != nil && r.deleted {
		return nil, errChannelNotFound(code)
	}
	return a, nil
}

// all returns the accounts: all, or only those of some codes.
func (g *Gateway) all(only ...parley.ChannelCode) (accounts []*account) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if len(only) == 0 {
		return slices.Collect(maps.Values(g.accounts))
	}
	for _, code := range only {
		if a := g.accounts[code]; a != nil {
			accounts = append(accounts, a)
		}
	}
	return accounts
}

// Activity is a change of a message's or channel's status, or a pairing step, for live views. It is not stored.
type Activity struct {
	At      time.Time
	Channel parley.ChannelCode

	// Of a message.
	Contact parley.ContactID
	Kind    parley.Kind // empty on a receipt
	FromMe  bool
	Text    string
	ID      parley.MessageID
	Status  parley.Status
	Failure *parley.Failure
	Took    time.Duration // since the message was accepted; zero: unknown

	// Of a channel; empty on messages.
	State   parley.ChannelStatus
	Pairing parley.PairingStep // of a pairing step; else empty
	Reason  string
}

// Activity subscribes to activity. A subscriber that falls far behind is cut off.
func (g *Gateway) Activity() (<-chan Activity, func()) {
	const buffer = 1024
	return g.activity.Subscribe(buffer)
}

func toActivity(m *parley.Message) Activity {
	act := Activity{At: m.UpdatedAt, Channel: m.Channel, Contact: m.Chat, FromMe: m.FromMe, ID: m.ID, Status: m.Status, Failure: m.Failure}
	if m.Content != nil {
		act.Kind, act.Text = m.Content.Kind(), m.Content.Text()
		act.Took = m.UpdatedAt.Sub(m.CreatedAt)
	}
	return act
}
