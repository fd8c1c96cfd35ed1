package otp

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

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
	counter := func(name, help, label string) *prometheus.CounterVec {
		return promauto.With(to).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	}
	m := metrics{
		requests: counter("parley_otp_requests_total", "Requests for one-time codes, by outcome: sent or limited.", "outcome"),
		alarms: counter("parley_otp_alarms_total",
			"Detected attacks on one-time codes, by event: otp.paused or otp.guessing.", "event"),
	}
	tries := counter("parley_otp_tries_total", "Tries to use a one-time code, by result.", "status")
	ends := counter("parley_otp_ended_total", "One-time codes that finished, by status.", "status")
	for _, t := range []parley.EventType{parley.OTPPaused, parley.OTPGuessing} {
		m.alarms.WithLabelValues(string(t))
	}
	for _, s := range parley.OTPStatuses {
		m.tries = append(m.tries, tries.WithLabelValues(s.String()))
		m.finishes = append(m.finishes, ends.WithLabelValues(s.String()))
	}
	return m
}
