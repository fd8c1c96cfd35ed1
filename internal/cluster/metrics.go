package cluster

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	fenced, failovers prometheus.Counter
	notifySeconds     prometheus.Histogram
	commitSeconds     prometheus.Histogram
	batchSize         prometheus.Histogram
	logSeconds        prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, c *Cluster) *metrics {
	m := &metrics{
		fenced: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "parley_fenced_total", Help: "How often another node took over because this one did not renew its membership."}),
		failovers: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "parley_failovers_total", Help: "Nodes that this one removed because they did not renew their membership."}),
		notifySeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "parley_notify_seconds", Help: "How long a notification of the other nodes took.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 7)}),
		commitSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "parley_commit_seconds", Help: "How long transactions took, from their begin to their commit.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 8)}),
		logSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "parley_log_lock_seconds", Help: "How long transactions that add events waited for the log of events and held it.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 8)}),
		batchSize: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "parley_writer_batch_size", Help: "How many writes were committed together.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 8)}),
	}
	if reg != nil {
		reg.MustRegister(m.fenced, m.failovers, m.notifySeconds, m.commitSeconds, m.batchSize, m.logSeconds,
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "parley_shards_owned", Help: "Shards that this node serves.",
			}, func() float64 { return float64(len(c.ownedShards())) }),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "parley_lease_remaining_seconds", Help: "How long this node stays a member without renewing its membership.",
			}, func() float64 { return max(0, c.Remaining().Seconds()) }))
	}
	return m
}

// committed measures a transaction. One may be committed before the node has joined.
func (c *Cluster) committed(writes int, took time.Duration) {
	if m := c.metrics; m != nil {
		m.commitSeconds.Observe(took.Seconds())
		m.batchSize.Observe(float64(writes))
	}
}
