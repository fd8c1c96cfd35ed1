package callback

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/store"
	"parley/internal/wait"
)

const (
	// callbackPace is the least time between two looks for callbacks.
	callbackPace = 50 * time.Millisecond
	// blink is how long to rest after the store did not work.
	blink = time.Second
	// drainTimeout is how long attempts under way may go on when the engine is stopped.
	drainTimeout = 5 * time.Second
	// forgetEvery is how often ended deliveries are looked through for old ones.
	forgetEvery  = time.Hour
	forgetAgain  = time.Minute // after the clock was not trusted
	forgetAtOnce = 1000        // so many in one transaction, so that nobody waits long behind it

	// defaultFailedRetention is how long failed deliveries are kept, and keepDelivered delivered ones, of which there are many more.
	defaultFailedRetention = 30 * 24 * time.Hour
	keepDelivered          = 24 * time.Hour
)

// HTTPClient sends requests; a *safehttp.Client is one.
type HTTPClient interface {
	Do(req *http.Request) (*http.Response, error)
}

// Store is what the engine needs of the store.
type Store interface {
	Tx(ctx context.Context, do func(*store.Tx) error) error
	EventAdded() <-chan struct{}
	Events(ctx context.Context, after int64, filter parley.EventFilter, limit int) ([]parley.Event, int64, error)
	EventsAt(ctx context.Context, seqs []int64) ([]parley.Event, error)
	Webhooks(ctx context.Context) ([]parley.Webhook, error)
	Deliveries(ctx context.Context, q parley.DeliveryQuery, page parley.Page) ([]parley.Delivery, int64, error)
	DueDeliveries(ctx context.Context, endpoint parley.Endpoint, now time.Time, limit int) ([]parley.Delivery, error)
	NextDelivery(ctx context.Context, endpoint parley.Endpoint, after time.Time) (time.Time, error)
	OldestDelivery(ctx context.Context, webhook parley.WebhookID, untried bool) (parley.Delivery, error)
	CallbackEndpoints(ctx context.Context) ([]parley.Endpoint, error)
	CountWaiting(ctx context.Context, webhook parley.WebhookID) (int64, error)
}

// Config says what an engine works with.
type Config struct {
	Store   Store
	Secrets *Secrets
	// Client sends the requests. It must follow no redirects; the engine sets the time-outs.
	Client HTTPClient
	// Render writes an event as it is told, with texts that are only kept encrypted.
	Render          func(*parley.Event) ([]byte, error)
	Log             *slog.Logger
	Metrics         prometheus.Registerer // nil: nothing is counted
	Version         string                // of this program, for the User-Agent
	FailedRetention time.Duration         // how long failed deliveries are kept; zero: 30 days
	// ClockTrusted reports whether the clock may be trusted with what is old; nil: always.
	ClockTrusted func() bool
}

// Engine delivers. Run is the only goroutine that touches the endpoints; what happens elsewhere is
// handed to it through the fields under mu.
type Engine struct {
	Config
	measures *measures
	planner  *planner
	recorder *recorder
	wake     chan struct{} // holds one: "look again"
	sends    sync.WaitGroup

	mu       sync.Mutex
	looks    map[parley.Endpoint]bool // something may be due there
	retries  map[parley.Endpoint]bool // a person asked for an attempt now
	done     []result                 // attempts that came back
	recorded []result                 // results that are in the store
	reload   bool                     // webhooks have changed, or deliveries were replayed
	changed  chan struct{}            // closed when results are recorded; nil: nobody waits

	// Owned by Run.
	endpoints map[parley.Endpoint]*endpoint
	active    map[*endpoint]bool // those that may have something to send now
	busy      map[*endpoint]bool // those that have attempts under way
	inFlight  int
	nextLook  time.Time // not after the first time that an endpoint waits for; zero: none does
	readAt    time.Time // when the endpoints were read
	broken    bool      // the store did not work then
}

// New makes an engine; Run starts it.
func New(c Config) *Engine {
	if c.FailedRetention == 0 {
		c.FailedRetention = defaultFailedRetention
	}
	if c.ClockTrusted == nil {
		c.ClockTrusted = func() bool { return true }
	}
	e := &Engine{Config: c, wake: make(chan struct{}, 1), looks: map[parley.Endpoint]bool{}, retries: map[parley.Endpoint]bool{},
		endpoints: map[parley.Endpoint]*endpoint{}, active: map[*endpoint]bool{}, busy: map[*endpoint]bool{}, reload: true}
	e.measures = newMeasures(c.Metrics, c.Store)
	e.planner = newPlanner(c, e.look)
	e.recorder = newRecorder(c, e.takeRecorded)
	return e
}

// Reload makes the engine look at the store at once: webhooks were changed, or deliveries replayed.
func (e *Engine) Reload() {
	e.mu.Lock()
	e.reload = true
	e.mu.Unlock()
	e.planner.Wake()
	wait.Notify(e.wake)
}

// Run delivers until ctx ends, and then waits a little for what is under way. What is left is in the
// store and is found again by the next Run.
func (e *Engine) Run(ctx context.Context) error {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var parts, recorder sync.WaitGroup
	parts.Go(func() { e.planner.run(ctx) })
	parts.Go(func() { e.findCallbacks(ctx) })
	parts.Go(func() { e.forget(ctx) })
	recording, stopRecorder := context.WithCancel(context.WithoutCancel(ctx))
	recorder.Go(func() { e.recorder.run(recording) })
	defer recorder.Wait()
	defer stopRecorder()
	defer parts.Wait()

	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := time.Now()
		e.read(ctx, now)
		e.takeIn(now)
		e.dispatch(ctx, sending, now)
		e.measure()
		timer.Reset(max(0, e.nextTurn(now)))
		select {
		case <-ctx.Done():
		case <-e.wake:
		case <-timer.C:
		}
	}
	grace := time.AfterFunc(drainTimeout, stop)
	defer grace.Stop()
	e.sends.Wait()
	e.takeIn(time.Now())
	return nil
}

// nextTurn is how long to wait if nothing happens before.
func (e *Engine) nextTurn(now time.Time) time.Duration {
	wait := time.Hour // what is added or changed wakes it
	if e.broken {
		wait = e.readAt.Add(blink).Sub(now)
	}
	if !e.nextLook.IsZero() {
		wait = min(wait, e.nextLook.Sub(now))
	}
	return wait
}

// look has the dispatcher look at endpoints where something may be due.
func (e *Engine) look(endpoints []parley.Endpoint) {
	if len(endpoints) == 0 {
		return
	}
	e.mu.Lock()
	for _, key := range endpoints {
		e.looks[key] = true
	}
	e.mu.Unlock()
	wait.Notify(e.wake)
}

// findCallbacks has the dispatcher look where callbacks wait. Each is stored together with its event.
func (e *Engine) findCallbacks(ctx context.Context) {
	for ctx.Err() == nil {
		added := e.Store.EventAdded()                                     // before reading: what comes after is a reason to read again
		if endpoints, err := e.Store.CallbackEndpoints(ctx); err == nil { // the dispatcher tells of a store that does not work
			e.look(endpoints)
		}
		wait.Sleep(ctx, callbackPace)
		select {
		case <-added:
		case <-ctx.Done():
		}
	}
}

// takeRecorded is told of results that the store knows now.
func (e *Engine) takeRecorded(results []result) {
	e.mu.Lock()
	e.recorded = append(e.recorded, results...)
	disabled := slices.ContainsFunc(results, func(r result) bool { return r.disable != "" })
	e.reload = e.reload || disabled
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
	e.mu.Unlock()
	if disabled {
		e.planner.Wake()
	}
	wait.Notify(e.wake)
}

// forget removes what ended long ago, every hour.
func (e *Engine) forget(ctx context.Context) {
	for ctx.Err() == nil {
		if !e.ClockTrusted() {
			wait.Sleep(ctx, forgetAgain)
			continue
		}
		removed := 0
		err := e.Store.Tx(ctx, func(tx *store.Tx) (err error) {
			now := time.Now()
			if removed, err = tx.PurgeDeliveries(ctx, parley.DeliveryDone, now.Add(-min(e.FailedRetention, keepDelivered)), forgetAtOnce); err != nil {
				return err
			}
			failed, err := tx.PurgeDeliveries(ctx, parley.DeliveryFailed, now.Add(-e.FailedRetention), forgetAtOnce)
			removed = max(removed, failed)
			return err
		})
		if err != nil && ctx.Err() == nil {
			e.Log.Error("forget old deliveries", "error", err)
		}
		if removed < forgetAtOnce {
			wait.Sleep(ctx, forgetEvery)
		}
	}
}
