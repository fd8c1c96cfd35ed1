package otp

import (
	"github.com/prometheus/client_golang/prometheus"

	"parley"
)

// metrics have no labels for channels or contacts.
type metrics struct {
	requests *prometheus.CounterVec
	tries    []prometheus.Counter // by status
	finishes []prometheus.Counter // by status
	alarms   *prometheus.CounterVec
}

func newMetrics(to prometheus.Registerer) metrics {
	m := metrics{requests: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_otp_requests_total", Help: "Requests for one-time codes, by outcome: sent or limited.",
	}, []string{"outcome"})}
	tries := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_otp_tries_total", Help: "Tries to use a one-time code, by result.",
	}, []string{"status"})
	ends := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_otp_ended_total", Help: "One-time codes that finished, by status.",
	}, []string{"status"})
	m.alarms = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_otp_alarms_total", Help: "Detected attacks on one-time codes, by event: otp.paused or otp.guessing.",
	}, []string{"event"})
	for _, t := range []parley.EventType{parley.OTPPaused, parley.OTPGuessing} {
		m.alarms.WithLabelValues(string(t))
	}
	for _, s := range parley.OTPStatuses {
		m.tries = append(m.tries, tries.WithLabelValues(s.String()))
		m.finishes = append(m.finishes, ends.WithLabelValues(s.String()))
	}
	if to != nil {
		to.MustRegister(m.requests, tries, ends, m.alarms)
	}
	return m
}

func (m metrics) requested(outcome string) { m.requests.WithLabelValues(outcome).Inc() }

func (m metrics) alarm(t parley.EventType) { m.alarms.WithLabelValues(string(t)).Inc() }

func (m metrics) tried(s parley.OTPStatus) { m.tries[s].Inc() }

func (m metrics) finished(s parley.OTPStatus, n int) { m.finishes[s].Add(float64(n)) }
