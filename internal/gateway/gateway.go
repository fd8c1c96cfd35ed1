package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/bus"
	"parley/internal/encrypt"
	"parley/internal/media"
	"parley/internal/network"
	"parley/internal/otp"
	"parley/internal/store"
)

// Config says what a gateway works with. The fields of the first block are required.
type Config struct {
	Store   *store.DB
	Drivers map[parley.NetworkName]network.Driver
	Media   *media.Library
	Keyring *encrypt.Keyring
	Log     *slog.Logger
	Metrics prometheus.Registerer

	// Clock is the clock of this machine; nil: time.Now.
	Clock func() time.Time
	// EventRetention is how long events are kept; zero: [DefaultEventRetention]. Events that a webhook or a waiting delivery needs are
	// kept longer, while the log has at most EventCap events; zero: [DefaultEventCap].
	EventRetention time.Duration
	EventCap       int64
	// Offline keeps channels from being connected: no session is opened and nothing is sent. Channels can be listed,
	// changed and deleted. Call Refresh in place of Run.
	Offline bool
	// LoginLinks sees every inbound message before it is stored; nil: nobody does.
	LoginLinks LoginLinks
}

// LoginLinks looks for the code of a login link in an inbound message. It masks the code in the message, and returns what
// follows, in the transaction that stores the message; nil: nothing. It is an [otp.Issuer].
type LoginLinks interface {
	MatchMessage(ctx context.Context, c parley.Channel, m *parley.Message) (then func(*store.Tx) ([]otp.Reply, error), err error)
}

// Gateway runs channels. Its methods may be called from several goroutines.
type Gateway struct {
	Config
	ready    chan struct{}
	activity bus.Topic[Activity]
	waiting  *waiting
	fetcher  *fetcher
	measures *measures
	clock    clockGuard

	// lifecycle serialises the making, starting, stopping and removing of accounts, but for changes that
	// take longer than anybody should wait.
	lifecycle sync.Mutex
	changes   sync.WaitGroup

	mu       sync.RWMutex
	accounts map[parley.ChannelCode]*account
	draining bool
}

// New makes a gateway; Run starts it.
func New(c Config) *Gateway {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	g := &Gateway{Config: c, ready: make(chan struct{}), accounts: map[parley.ChannelCode]*account{}, waiting: newWaiting()}
	began := time.Now()
	g.clock = clockGuard{wall: c.Clock, running: func() time.Duration { return time.Since(began) }, confirms: g.networkConfirms}
	g.fetcher = newFetcher(g)
	g.measures = newMeasures(c.Metrics, g)
	return g
}

// Run starts all channels and serves them until ctx ends; then it closes their sessions and waits
// for what is under way. A gateway runs once.
func (g *Gateway) Run(ctx context.Context) error {
	var watching sync.WaitGroup
	waits, stop := context.WithCancel(context.WithoutCancel(ctx))
	watching.Go(func() { g.waiting.run(waits) })
	defer watching.Wait()
	defer stop() // after all accounts were closed

	trusted, err := g.Store.TrustedTime(ctx)
	if err != nil {
		return fmt.Errorf("read the newest trusted time: %w", err)
	}
	g.clock.load(trusted)
	// Sessions end by being closed, in order, not because ctx ended.
	if err := g.Refresh(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start channels: %w", err)
	}
	close(g.ready)
	var fetching sync.WaitGroup
	fetching.Go(func() { g.fetcher.run(ctx) })
	fetching.Go(func() { g.watchFiles(ctx) })
	g.keepHouse(ctx)
	fetching.Wait() // before the sessions are closed
	g.drain(context.WithoutCancel(ctx))
	return nil
}

// Ready is closed when every channel that should run was started.
func (g *Gateway) Ready() <-chan struct{} { return g.ready }

// Refresh makes what runs match what the store says, after channels were created, changed or removed there.
func (g *Gateway) Refresh(ctx context.Context) error {
	g.lifecycle.Lock()
	defer g.lifecycle.Unlock()
	return g.refresh(ctx)
}

func (g *Gateway) refresh(ctx context.Context) error {
	g.mu.RLock()
	draining := g.draining
	g.mu.RUnlock()
	if draining {
		return nil
	}
	channels, err := g.Store.Channels(ctx)
	if err != nil {
		return err
	}
	there := map[parley.ChannelCode]int64{}
	for _, c := range channels {
		there[c.Code] = c.ID
	}
	var removals, changes []func() error
	for _, a := range g.all() {
		if a.retired.Load() == nil && there[a.code] != a.id {
			removals = append(removals, func() error { return g.remove(ctx, a) })
		}
	}
	err = g.atOnce(removals) // first: another one may have the code of one of them
	for _, c := range channels {
		if a := g.adopt(c); a != nil && !g.Offline && !a.complies() {
			changes = append(changes, func() error { a.comply(ctx); return nil })
		}
	}
	return errors.Join(err, g.atOnce(changes))
}

// patience is how long a change to a channel may take before the others are served without it.
const patience = 5 * time.Second

// atOnce makes changes to several channels at the same time and waits for them, but not for one that
// hangs: that goes on by itself.
func (g *Gateway) atOnce(changes []func() error) error {
	if len(changes) == 0 {
		return nil
	}
	results := make(chan error, len(changes))
	for _, change := range changes {
		g.changes.Go(func() { results <- change() })
	}
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	var errs []error
	for n := range changes {
		select {
		case err := <-results:
			errs = append(errs, err)
		case <-timeout.C:
			g.Log.Warn("some channels take long to start or stop; the others go on", "channels", len(changes)-n)
			g.changes.Go(func() {
				for range len(changes) - n {
					<-results
				}
				if err := g.Refresh(context.Background()); err != nil { // a code that was not free may be now
					g.Log.Error("bring channels up to date", "error", err)
				}
			})
			return errors.Join(errs...)
		}
	}
	return errors.Join(errs...)
}

// adopt takes over what is stored of a channel, and returns its account; nil: one with its code is just being
// removed, after which somebody looks again.
func (g *Gateway) adopt(c parley.Channel) *account {
	if g.Offline {
		c = asOffline(c)
	}
	g.mu.Lock()
	a := g.accounts[c.Code]
	if a == nil {
		a = newAccount(g, c)
		g.accounts[c.Code] = a
	}
	g.mu.Unlock()
	if a.id != c.ID || a.retired.Load() != nil {
		return nil
	}
	a.adjust(c)
	return a
}

// remove ends an account whose channel is gone.
func (g *Gateway) remove(ctx context.Context, a *account) error {
	if !a.retired.CompareAndSwap(nil, deletion(a.code)) {
		return nil // somebody else is at it
	}
	a.close()
	err := g.forget(ctx, a)
	g.drop(a)
	return err
}

// drop takes an account that has ended out of those that run.
func (g *Gateway) drop(a *account) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.accounts[a.code] == a {
		delete(g.accounts, a.code)
	}
}

// drain closes all accounts.
func (g *Gateway) drain(ctx context.Context) {
	g.lifecycle.Lock()
	defer g.lifecycle.Unlock()
	g.mu.Lock()
	g.draining = true
	g.mu.Unlock()
	var wg sync.WaitGroup
	for _, a := range g.all() {
		wg.Go(func() {
			a.close()
			if a.snapshot().Runs() { // the others know better why they are stopped
				a.setState(ctx, network.State{Status: parley.Stopped, Reason: parley.ServerStopped})
			}
		})
	}
	wg.Wait()
	g.awaitChanges()
}

// awaitChanges waits for changes that outlived their callers' patience, for as long again.
func (g *Gateway) awaitChanges() {
	done := make(chan struct{})
	go func() {
		g.changes.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience):
		g.Log.Warn("some channels could not be stopped in time")
	}
}

// Channels lists the channels as they are now, by code.
func (g *Gateway) Channels() []parley.Channel {
	accounts := g.all()
	channels := make([]parley.Channel, len(accounts))
	for i, a := range accounts {
		channels[i] = a.snapshot()
	}
	slices.SortFunc(channels, func(a, b parley.Channel) int { return strings.Compare(string(a.Code), string(b.Code)) })
	return channels
}

// Channel returns a channel as it is now.
func (g *Gateway) Channel(code parley.ChannelCode) (parley.Channel, bool) {
	a, err := g.account(code)
	if err != nil {
		return parley.Channel{}, false
	}
	return a.snapshot(), true
}

// Session returns a channel's live connection, for what cannot wait in a queue.
func (g *Gateway) Session(code parley.ChannelCode) (network.Session, error) {
	a, err := g.account(code)
	if err != nil {
		return nil, err
	}
	if err := a.snapshot().Usable(); err != nil {
		return nil, err
	}
	if s := a.live(); s != nil {
		return s, nil
	}
	return nil, &parley.Error{Code: parley.Unavailable, RetryAfter: 2 * time.Second,
		Message: fmt.Sprintf("Channel %s is connecting. Try again in a moment.", code)}
}

// LookUpNumber asks a channel's network for its own spelling of a contact's number. The session reports it as [network.Alias].
func (g *Gateway) LookUpNumber(ctx context.Context, code parley.ChannelCode, c parley.ContactID) error {
	s, err := g.Session(code)
	if err != nil {
		return err
	}
	_, _, err = s.CheckNumber(ctx, c.Number())
	return err
}

// QueueDepth is how many messages of a channel wait to be sent.
func (g *Gateway) QueueDepth(code parley.ChannelCode) int {
	a, err := g.account(code)
	if err != nil {
		return 0
	}
	return a.worker.Depth()
}

// QueuedAhead is how many messages of a channel leave before a new one of a priority.
func (g *Gateway) QueuedAhead(code parley.ChannelCode, priority parley.Priority) int {
	a, err := g.account(code)
	if err != nil {
		return 0
	}
	return a.worker.Ahead(priority)
}

// RestrictedUntil is until when the network does not let the channel write to new contacts; zero
// when it does.
func (g *Gateway) RestrictedUntil(code parley.ChannelCode) time.Time {
	a, err := g.account(code)
	if err != nil {
		return time.Time{}
	}
	until := a.restrictedUntil()
	if e, ok := g.Evidence(code); ok && e.RestrictedUntil.After(time.Now()) && e.RestrictedUntil.After(until) {
		until = e.RestrictedUntil
	}
	return until
}

// Now is the time on a channel's clock, which is ahead where a sandbox channel's was moved.
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
	if !ok {
		return nil, errNoChannel(code)
	}
	if r := a.retired.Load(); r != nil && r.deleted {
		return nil, errNoChannel(code)
	}
	return a, nil
}

func (g *Gateway) all() []*account {
	g.mu.RLock()
	defer g.mu.RUnlock()
	accounts := make([]*account, 0, len(g.accounts))
	for _, a := range g.accounts {
		accounts = append(accounts, a)
	}
	return accounts
}

func sameSettings(a, b parley.ChannelSettings) bool { return reflect.DeepEqual(a, b) }
