package cluster

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	fenced, failovers prometheus.Counter
	notifySeconds     prometheus.Histogram
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
	}
	if reg != nil {
		reg.MustRegister(m.fenced, m.failovers, m.notifySeconds,
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "parley_shards_owned", Help: "Shards that this node serves.",
			}, func() float64 { return float64(len(c.ownedShards())) }),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "parley_lease_remaining_seconds", Help: "How long this node stays a member without renewing its membership.",
			}, func() float64 { return max(0, c.Remaining().Seconds()) }))
	}
	return m
}
