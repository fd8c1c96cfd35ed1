package callback

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"parley"
)

// metrics have labels with few values: no webhooks, no hosts.
type metrics struct {
	attempts *prometheus.CounterVec
	outcomes *prometheus.CounterVec
	toFirst  prometheus.Histogram
	broken   prometheus.Gauge
	lost     atomic.Int64 // events that webhooks lost, when last read
}

func newMetrics(r prometheus.Registerer, store Store) *metrics {
	create := promauto.With(r)
	m := &metrics{
		attempts: create.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_delivery_attempts_total", Help: "Attempts to deliver an event, by kind and outcome."}, []string{"kind", "outcome"}),
		outcomes: create.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_deliveries_total", Help: "Deliveries that finished, by kind and state."}, []string{"kind", "state"}),
		toFirst: create.NewHistogram(prometheus.HistogramOpts{
			Name: "parley_delivery_first_attempt_seconds", Help: "Time from when a delivery was planned to its first attempt.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60, 300, 3600}}),
		broken: create.NewGauge(prometheus.GaugeOpts{
			Name: "parley_webhooks_broken", Help: "Webhooks that only fail and are tried once a minute."}),
	}
	for _, kind := range []string{"webhook", "callback"} {
		m.attempts.WithLabelValues(kind, "ok")
		m.attempts.WithLabelValues(kind, "failed")
		for _, state := range []parley.DeliveryState{parley.DeliveryDone, parley.DeliveryFailed} {
			m.outcomes.WithLabelValues(kind, state.String())
		}
	}
	create.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "parley_deliveries_waiting", Help: "Deliveries that wait for an attempt."}, func() float64 {
		n, err := store.CountWaiting(context.Background(), "")
		if err != nil {
			return -1 // not known
		}
		return float64(n)
	})
	create.NewCounterFunc(prometheus.CounterOpts{
		Name: "parley_webhook_gap_events_total", Help: "Events that were removed from the log before a webhook got them."}, func() float64 {
		return float64(m.lostEvents(store))
	})
	return m
}

// lostEvents is how many events all webhooks lost. If the store fails, it is the last known number.
func (m *metrics) lostEvents(store Store) (lost int64) {
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

func deliveryKind(d *parley.Delivery) string {
	if d.Webhook == "" {
		return "callback"
	}
	return "webhook"
}

func (m *metrics) attempted(before, after *parley.Delivery, a *Attempt) {
	outcome := "failed"
	if a.Succeeded() {
		outcome = "ok"
	}
	m.attempts.WithLabelValues(deliveryKind(after), outcome).Inc()
	if before.TriedAt.IsZero() {
		m.toFirst.Observe(max(0, a.At.Sub(after.CreatedAt).Seconds()))
	}
	m.finished(after)
}

func (m *metrics) finished(d *parley.Delivery) {
	if d.State != parley.DeliveryWaiting {
		m.outcomes.WithLabelValues(deliveryKind(d), d.State.String()).Inc()
	}
}
