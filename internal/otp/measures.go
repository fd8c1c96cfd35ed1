package otp

import (
	"github.com/prometheus/client_golang/prometheus"

	"parley"
)

// measures are the figures of one-time codes. None of them tells channels or contacts apart.
type measures struct {
	requests *prometheus.CounterVec
	tries    []prometheus.Counter // by status, found beforehand because every try counts
	ends     []prometheus.Counter
	alarms   *prometheus.CounterVec
}

func newMeasures(to prometheus.Registerer) measures {
	m := measures{requests: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_otp_requests_total", Help: "One-time codes that were asked for, by outcome: sent or limited.",
	}, []string{"outcome"})}
	tries := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_otp_tries_total", Help: "Tries to use a one-time code, by how they ended.",
	}, []string{"status"})
	ends := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_otp_ended_total", Help: "One-time codes that came to an end, by how.",
	}, []string{"status"})
	m.alarms = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_otp_alarms_total", Help: "Attacks on one-time codes that were noticed, by event: otp.paused or otp.guessing.",
	}, []string{"event"})
	for _, t := range []parley.EventType{parley.OTPPaused, parley.OTPGuessing} {
		m.alarms.WithLabelValues(string(t))
	}
	for _, s := range parley.OTPStatuses {
		m.tries = append(m.tries, tries.WithLabelValues(s.String()))
		m.ends = append(m.ends, ends.WithLabelValues(s.String()))
	}
	if to != nil {
		to.MustRegister(m.requests, tries, ends, m.alarms)
	}
	return m
}

func (m measures) requested(outcome string) { m.requests.WithLabelValues(outcome).Inc() }

func (m measures) alarm(t parley.EventType) { m.alarms.WithLabelValues(string(t)).Inc() }

func (m measures) tried(s parley.OTPStatus) { m.tries[s].Inc() }

func (m measures) ended(s parley.OTPStatus, n int) {
	m.ends[s].Add(float64(n))
}
