package callback

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
)

// measures are what the engine counts. Labels have few values: no webhooks, no hosts.
type measures struct {
	attempts *prometheus.CounterVec
	outcomes *prometheus.CounterVec
	toFirst  prometheus.Histogram
	open     prometheus.Gauge
	lost     atomic.Int64 // events that webhooks lost, when last read
}

func newMeasures(r prometheus.Registerer, store Store) *measures {
	m := &measures{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_delivery_attempts_total", Help: "Attempts to deliver an event, by kind and outcome."}, []string{"kind", "outcome"}),
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_deliveries_total", Help: "Deliveries that ended, by kind and how."}, []string{"kind", "state"}),
		toFirst: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "parley_delivery_first_attempt_seconds", Help: "Time from when a delivery was planned to its first attempt.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60, 300, 3600}}),
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "parley_webhooks_broken", Help: "Webhooks that only fail and are tried once a minute."}),
	}
	for _, kind := range []string{"webhook", "callback"} {
		m.attempts.WithLabelValues(kind, "ok")
		m.attempts.WithLabelValues(kind, "failed")
		for _, state := range []parley.DeliveryState{parley.DeliveryDone, parley.DeliveryFailed} {
			m.outcomes.WithLabelValues(kind, state.String())
		}
	}
	if r != nil {
		r.MustRegister(m.attempts, m.outcomes, m.toFirst, m.open, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "parley_deliveries_waiting", Help: "Deliveries that wait to be made."}, func() float64 {
			n, err := store.CountWaiting(context.Background(), "")
			if err != nil {
				return -1 // not known
			}
			return float64(n)
		}), prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "parley_webhook_gap_events_total", Help: "Events that were removed from the log before a webhook got them."}, func() float64 {
			return float64(m.lostEvents(store))
		}))
	}
	return m
}

// lostEvents is how many events the webhooks lost in all. While the store does not work, it is what was read last.
func (m *measures) lostEvents(store Store) (lost int64) {
	webhooks, err := store.Webhooks(context.Background())
	if err != nil {
		return m.lost.Load()
	}
	for _, w := range webhooks {
		lost += w.Lost
	}
	m.lost.Store(lost)
	return lost
}

func kindOf(d *parley.Delivery) string {
	if d.Webhook == "" {
		return "callback"
	}
	return "webhook"
}

// attempted counts an attempt.
func (m *measures) attempted(r *result) {
	outcome := "failed"
	if r.attempt.Succeeded() {
		outcome = "ok"
	}
	m.attempts.WithLabelValues(kindOf(&r.delivery), outcome).Inc()
	if r.job.TriedAt.IsZero() {
		m.toFirst.Observe(max(0, r.attempt.At.Sub(r.delivery.CreatedAt).Seconds()))
	}
	m.ended(&r.delivery)
}

// ended counts a delivery that has ended, if it has.
func (m *measures) ended(d *parley.Delivery) {
	if d.State != parley.DeliveryWaiting {
		m.outcomes.WithLabelValues(kindOf(d), d.State.String()).Inc()
	}
}
