package gateway

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"parley"
)

// metrics have labels with few values: no channel codes, no numbers.
type metrics struct {
	accepted prometheus.Counter
	received prometheus.Counter
	byStatus map[parley.Status]prometheus.Counter
	toSent   prometheus.Histogram
	files    *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer, g *Gateway) *metrics {
	create := promauto.With(r)
	m := &metrics{
		accepted: create.NewCounter(prometheus.CounterOpts{
			Name: "parley_messages_accepted_total", Help: "Messages and operations that were durably accepted."}),
		received: create.NewCounter(prometheus.CounterOpts{
			Name: "parley_messages_received_total", Help: "Inbound messages that were stored."}),
		byStatus: map[parley.Status]prometheus.Counter{},
		toSent: create.NewHistogram(prometheus.HistogramOpts{
			Name: "parley_message_sent_seconds", Help: "Time from acceptance to the network's confirmation.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}}),
		files: create.NewCounterVec(prometheus.CounterOpts{
			Name: "parley_inbound_files_total", Help: "Files of inbound messages that were fetched, or could not be."}, []string{"result"}),
	}
	for _, result := range []parley.MediaStatus{parley.MediaReady, parley.MediaFailed} {
		m.files.WithLabelValues(string(result))
	}
	status := create.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_messages_status_total", Help: "Outgoing messages that reached a status."}, []string{"status"})
	for _, s := range parley.Statuses {
		m.byStatus[s] = status.WithLabelValues(s.String())
	}
	create.NewGaugeFunc(prometheus.GaugeOpts{Name: "parley_messages_waiting", Help: "Messages that wait to be sent."}, func() float64 {
		return g.sum(func(a *account) int { return a.worker.Depth() })
	})
	create.NewGaugeFunc(prometheus.GaugeOpts{Name: "parley_clock_trusted",
		Help: "1 while the clock of the machine is trusted; 0 while erasing and expiry by age pause because it is far ahead."}, func() float64 {
		if g.ClockTrusted() {
			return 1
		}
		return 0
	})
	if _, _, ok := g.config.Media.Free(); ok {
		create.NewGaugeFunc(prometheus.GaugeOpts{Name: "parley_media_free_bytes", Help: "Free space of the directory of files."}, func() float64 {
			free, _, _ := g.config.Media.Free()
			return float64(free)
		})
	}
	for _, status := range parley.ChannelStatuses {
		create.NewGaugeFunc(prometheus.GaugeOpts{Name: "parley_channels", Help: "Channels by status.",
			ConstLabels: prometheus.Labels{"status": string(status)}}, func() float64 {
			return g.sum(func(a *account) int {
				if a.snapshot().State.Status == status {
					return 1
				}
				return 0
			})
		})
	}
	return m
}

func (g *Gateway) sum(of func(*account) int) float64 {
	n := 0
	for _, a := range g.all() {
		n += of(a)
	}
	return float64(n)
}

func (m *metrics) statusChanged(msg *parley.Message) {
	if c := m.byStatus[msg.Status]; c != nil {
		c.Inc()
	}
	if msg.Status == parley.Sent && !msg.CreatedAt.IsZero() {
		m.toSent.Observe(msg.UpdatedAt.Sub(msg.CreatedAt).Seconds())
	}
}
