// Package callback delivers events to webhooks, and the outcome of login links to the callback addresses of their
// requests. It signs each request and retries it on a schedule.
//
// Four goroutines share the work. The planner reads the event log from each webhook's cursor and stores deliveries. The
// dispatcher (Run) starts attempts and tracks the health of each endpoint. The result writer stores outcomes in batches.
// One more finds callbacks, which are stored together with their event.
//
// Invariants:
//   - The store holds the deliveries. One that was attempted and not stored is attempted again under the same event id.
//   - Deliveries of one chat to one webhook keep their order.
//   - A result is stored only if no other attempt was stored since the delivery was read: another node may be the owner by then.
//   - Only Run touches the endpoints. Other goroutines pass functions to Run, which calls them in order.
//   - Endpoints that are slow or fail use at most half of all attempts, so the others stay fast.
//   - Logs name hosts, never whole addresses: those may hold secrets.
package callback

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/store"
	"parley/internal/wait"
)

const (
	// findPause is the minimum time between two searches for callbacks.
	findPause = 50 * time.Millisecond
	// storeErrorPause is the pause after the store failed.
	storeErrorPause = time.Second
	// drainTimeout is how long attempts in flight may continue when the engine stops.
	drainTimeout = 5 * time.Second

	purgeEvery      = time.Hour
	purgeRetryPause = time.Minute // while the clock is not trusted
	purgeBatch      = 1000        // deliveries in one transaction, so that other writers do not wait long

	failedRetention    = 30 * 24 * time.Hour
	deliveredRetention = 24 * time.Hour // shorter: there are many more of them
)

// HTTPClient sends requests; a *safehttp.Client is one.
type HTTPClient interface {
	Do(req *http.Request) (*http.Response, error)
}

type Store interface {
	Tx(ctx context.Context, do func(*store.Tx) error) error
	EventAdded() <-chan struct{}
	Events(ctx context.Context, after int64, filter parley.EventFilter, limit int) ([]parley.Event, int64, error)
	EventsAt(ctx context.Context, seqs []int64) ([]parley.Event, error)
	Webhooks(ctx context.Context) ([]parley.Webhook, error)
	Webhook(ctx context.Context, id parley.WebhookID) (parley.Webhook, error)
	DueDeliveries(ctx context.Context, endpoint parley.Endpoint, now time.Time, limit int) ([]parley.Delivery, error)
	NextDelivery(ctx context.Context, endpoint parley.Endpoint, after time.Time) (time.Time, error)
	OldestDelivery(ctx context.Context, webhook parley.WebhookID, untried bool) (parley.Delivery, error)
	CallbackEndpoints(ctx context.Context, after int64) ([]store.WaitingEndpoint, int64, error)
	WaitingEndpoints(ctx context.Context) ([]store.WaitingEndpoint, error)
	CountWaiting(ctx context.Context, webhook parley.WebhookID) (int64, error)
}

type Config struct {
	Store   Store
	Secrets *Secrets
	// Client sends to webhooks, which operators set, and Callers to callbacks, whose addresses any token may name; nil:
	// Client sends both. Neither may follow redirects; the engine sets the timeouts.
	Client, Callers HTTPClient
	// Render writes the body of an event. It decrypts texts that are only stored encrypted.
	Render  func(*parley.Event, parley.MediaLink) ([]byte, error)
	Links   parley.MediaLinks // to files
	Log     *slog.Logger
	Metrics prometheus.Registerer // nil: no metrics
	Version string                // of this program, for the User-Agent
	// AtOnce is how many attempts there may be at a time; zero: [DefaultAtOnce].
	AtOnce int
	// Owns reports whether this process delivers to a webhook or a host of callbacks; nil: to all.
	Owns func(key string) bool
	// Leads reports whether this process purges old deliveries; nil: yes.
	Leads func() bool
	// ClockTrusted reports whether the clock may be used to purge by age; nil: always.
	ClockTrusted func() bool
}

func (c *Config) owns(key string) bool { return c.Owns == nil || c.Owns(key) }

type Engine struct {
	config  Config
	Secrets *Secrets // of webhooks and alert rules; the API creates and deletes them
	metrics *metrics
	planner *planner
	results *resultWriter
	wake    chan struct{} // holds one notification
	sends   sync.WaitGroup

	mu    sync.Mutex
	input []func(now time.Time) // called by Run

	// Owned by Run.
	reload    bool                      // everything is read again
	changed   map[parley.WebhookID]bool // or only these webhooks are
	endpoints map[parley.Endpoint]*endpoint
	active    map[*endpoint]bool // may have something to send now
	busy      map[*endpoint]bool // have attempts in flight
	inFlight  int
	nextCheck time.Time // not after the first time that an endpoint waits for; zero: there is none
	readAt    time.Time // when the endpoints were read
	reading   outage
}

// New makes an engine; Run starts it.
func New(c Config) *Engine {
	if c.ClockTrusted == nil {
		c.ClockTrusted = func() bool { return true }
	}
	if c.Callers == nil {
		c.Callers = c.Client
	}
	c.AtOnce = cmp.Or(c.AtOnce, DefaultAtOnce)
	e := &Engine{config: c, Secrets: c.Secrets, wake: make(chan struct{}, 1), endpoints: map[parley.Endpoint]*endpoint{},
		active: map[*endpoint]bool{}, busy: map[*endpoint]bool{}, reload: true, changed: map[parley.WebhookID]bool{},
		metrics: newMetrics(c.Metrics, c.Store)}
	e.planner = newPlanner(c, e.notify)
	e.results = &resultWriter{config: c, onStore: e.resultsStored, wake: make(chan struct{}, 1)}
	return e
}

func (e *Engine) inRun(do func(now time.Time)) {
	e.mu.Lock()
	e.input = append(e.input, do)
	e.mu.Unlock()
	wait.Notify(e.wake)
}

func (e *Engine) applyInput(now time.Time) {
	e.mu.Lock()
	input := e.input
	e.input = nil
	e.mu.Unlock()
	for _, do := range input {
		do(now)
	}
}

// Reload makes the engine read the store at once, after webhooks changed or deliveries were replayed: some webhooks, or without an id
// everything.
func (e *Engine) Reload(ids ...parley.WebhookID) {
	all := len(ids) == 0 || slices.Contains(ids, "")
	if all {
		ids = nil
	}
	e.planner.Wake(ids...)
	e.inRun(func(time.Time) {
		e.reload = e.reload || all
		for _, id := range ids {
			e.changed[id] = true
		}
	})
}

// Run delivers until ctx ends, then waits a little for attempts in flight.
func (e *Engine) Run(ctx context.Context) error {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var parts, writer sync.WaitGroup
	parts.Go(func() { e.planner.run(ctx) })
	parts.Go(func() { e.findCallbacks(ctx) })
	parts.Go(func() { e.purgeOld(ctx) })
	writing, stopWriter := context.WithCancel(context.WithoutCancel(ctx))
	writer.Go(func() { e.results.run(writing) })
	defer writer.Wait()
	defer stopWriter()
	defer parts.Wait()

	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := time.Now()
		e.applyInput(now)
		e.readEndpoints(ctx, now)
		e.activateDue(now)
		e.dispatch(ctx, sending, now)
		e.countBroken()
		next := time.Hour // input wakes it before
		if e.reading.failing {
			next = e.readAt.Add(storeErrorPause).Sub(now)
		}
		if !e.nextCheck.IsZero() {
			next = min(next, e.nextCheck.Sub(now))
		}
		timer.Reset(max(0, next))
		select {
		case <-ctx.Done():
		case <-e.wake:
		case <-timer.C:
		}
	}
	grace := time.AfterFunc(drainTimeout, stop)
	defer grace.Stop()
	e.sends.Wait()
	e.applyInput(time.Now())
	return nil
}

func (e *Engine) notify(endpoints []parley.Endpoint) {
	if len(endpoints) == 0 {
		return
	}
	e.inRun(func(time.Time) {
		for _, key := range endpoints {
			if e.endpoints[key] == nil && isWebhook(key) {
				e.changed[parley.WebhookID(key)] = true // a new one
			} else {
				e.endpoint(key).mayBeDue = true
			}
		}
	})
}

func isWebhook(key parley.Endpoint) bool { return strings.HasPrefix(string(key), "whk_") }

// findCallbacks notifies the dispatcher of callbacks. Each is stored together with its event, so those of later events are new.
func (e *Engine) findCallbacks(ctx context.Context) {
	var last int64
	for ctx.Err() == nil {
		added := e.config.Store.EventAdded() // before reading, so that no event is missed
		found, reached, err := e.config.Store.CallbackEndpoints(ctx, last)
		if err == nil { // the dispatcher logs store errors
			last = reached
			if len(found) > 0 {
				e.inRun(func(now time.Time) { e.deliveriesWait(found, now) })
			}
		}
		wait.Sleep(ctx, findPause)
		select {
		case <-added:
		case <-ctx.Done():
		}
	}
}

// deliveriesWait makes the dispatcher look for deliveries when they are due.
func (e *Engine) deliveriesWait(found []store.WaitingEndpoint, now time.Time) {
	for _, f := range found {
		if !e.config.owns(string(f.Endpoint)) || e.endpoints[f.Endpoint] == nil && isWebhook(f.Endpoint) {
			continue
		}
		ep := e.endpoint(f.Endpoint)
		if !now.Before(f.DueAt) {
			ep.mayBeDue = true
		} else if ep.dueAt.IsZero() || f.DueAt.Before(ep.dueAt) {
			ep.dueAt = f.DueAt
		}
	}
}

func (e *Engine) resultsStored(results []result) {
	for _, r := range results {
		if r.disable != "" {
			e.Reload(r.webhook.ID)
		}
	}
	e.inRun(func(time.Time) {
		for _, r := range results {
			if ep := e.endpoints[r.endpoint]; ep != nil {
				delete(ep.known, r.delivery.ID)
				ep.mayBeDue = true // the next one of its chat, or itself later
				e.active[ep] = true
			}
		}
	})
}

func (e *Engine) purgeOld(ctx context.Context) {
	for ctx.Err() == nil {
		if !e.config.ClockTrusted() || e.config.Leads != nil && !e.config.Leads() {
			wait.Sleep(ctx, purgeRetryPause)
			continue
		}
		removed := 0
		err := e.config.Store.Tx(ctx, func(tx *store.Tx) error {
			now := time.Now()
			delivered, err := tx.PurgeDeliveries(ctx, parley.DeliveryDone, now.Add(-deliveredRetention), purgeBatch)
			if err != nil {
				return err
			}
			failed, err := tx.PurgeDeliveries(ctx, parley.DeliveryFailed, now.Add(-failedRetention), purgeBatch)
			removed = max(delivered, failed)
			return err
		})
		if err != nil && ctx.Err() == nil {
			e.config.Log.Error("purge old deliveries", "error", err)
		}
		if removed < purgeBatch {
			wait.Sleep(ctx, purgeEvery)
		}
	}
}

// outage logs once when something begins to fail, and once when it works again.
type outage struct{ failing bool }

func (o *outage) report(log *slog.Logger, err error, fails, works string) {
	if (err != nil) == o.failing {
		return
	}
	if o.failing = err != nil; o.failing {
		log.Error(fails, "error", err)
	} else {
		log.Info(works)
	}
}
