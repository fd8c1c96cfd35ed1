package gateway

import (
	"github.com/prometheus/client_golang/prometheus"

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
	m := &metrics{
		accepted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "parley_messages_accepted_total", Help: "Messages and operations that were durably accepted."}),
		received: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "parley_messages_received_total", Help: "Inbound messages that were stored."}),
		byStatus: map[parley.Status]prometheus.Counter{},
		toSent: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "parley_message_sent_seconds", Help: "Time from acceptance to the network's confirmation.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}}),
	}
	m.files = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_inbound_files_total", Help: "Files of inbound messages that were fetched, or could not be."}, []string{"result"})
	for _, result := range []parley.MediaStatus{parley.MediaReady, parley.MediaFailed} {
		m.files.WithLabelValues(string(result))
	}
	status := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_messages_status_total", Help: "Outgoing messages that reached a status."}, []string{"status"})
	for _, s := range parley.Statuses {
		m.byStatus[s] = status.WithLabelValues(s.String())
	}
	r.MustRegister(m.accepted, m.received, status, m.toSent, m.files, channelsByStatus{g})
	return m
}

func (m *metrics) statusChanged(msg *parley.Message) {
	if c := m.byStatus[msg.Status]; c != nil {
		c.Inc()
	}
	if msg.Status == parley.Sent && !msg.CreatedAt.IsZero() {
		m.toSent.Observe(msg.UpdatedAt.Sub(msg.CreatedAt).Seconds())
	}
}

func (m *metrics) fetched(result parley.MediaStatus) { m.files.WithLabelValues(string(result)).Inc() }

// channelsByStatus collects the numbers of channels and of queued messages.
type channelsByStatus struct{ g *Gateway }

var (
	channelsDesc = prometheus.NewDesc("parley_channels", "Channels by status.", []string{"status"}, nil)
	waitingDesc  = prometheus.NewDesc("parley_messages_waiting", "Messages that wait to be sent.", nil, nil)
	trustedDesc  = prometheus.NewDesc("parley_clock_trusted",
		"1 while the clock of the machine is trusted; 0 while erasing and expiry by age pause because it is far ahead.", nil, nil)
)

func (channelsByStatus) Describe(ch chan<- *prometheus.Desc) {
	ch <- channelsDesc
	ch <- waitingDesc
	ch <- trustedDesc
}

func (c channelsByStatus) Collect(ch chan<- prometheus.Metric) {
	count := map[parley.ChannelStatus]int{}
	waiting := 0
	for _, a := range c.g.all() {
		count[a.snapshot().State.Status]++
		waiting += a.worker.Depth()
	}
	for _, s := range parley.ChannelStatuses {
		ch <- prometheus.MustNewConstMetric(channelsDesc, prometheus.GaugeValue, float64(count[s]), string(s))
	}
	ch <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(waiting))
	trusted := 0.0
	if c.g.ClockTrusted() {
		trusted = 1
	}
	ch <- prometheus.MustNewConstMetric(trustedDesc, prometheus.GaugeValue, trusted)
}
