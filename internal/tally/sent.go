package tally

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// sentHistogram is the metric that has the times to the network's confirmation.
const sentHistogram = "parley_message_sent_seconds"

// sentTimes knows how that metric stood at times of the last day, so that what came since can be told. What
// was before the start is not known: the log has when a confirmation was recorded, which is many at a time
// and up to half a second later, and where a receipt came meanwhile it has only that.
type sentTimes struct {
	start time.Time
	kept  []standing // oldest first, a quarter of an hour apart
}

// standing is how a histogram stood: how many values were at most each bound.
type standing struct {
	at     time.Time
	bounds []float64 // seconds
	counts []uint64
	total  uint64
}

// note keeps how the metric stands, now and then, and forgets what is over a day old.
func (s *sentTimes) note(from prometheus.Gatherer, now time.Time) {
	if n := len(s.kept); from == nil || n > 0 && now.Sub(s.kept[n-1].at) < 15*time.Minute {
		return
	}
	for len(s.kept) > 1 && now.Sub(s.kept[1].at) >= Day {
		s.kept = s.kept[1:]
	}
	if stood, there := gather(from, now); there {
		s.kept = append(s.kept, stood)
	}
}

// times tells how long messages took since a time: that of the start, or a day ago; nil: there were none.
func (s *sentTimes) times(from prometheus.Gatherer) (took *Times, since time.Time) {
	since = s.start
	if from == nil {
		return nil, since
	}
	stands, there := gather(from, time.Now())
	if !there {
		return nil, since
	}
	if len(s.kept) > 0 && time.Since(s.kept[0].at) >= Day {
		old := s.kept[0]
		since = old.at
		for i := range stands.counts {
			stands.counts[i] -= old.counts[i]
		}
		stands.total -= old.total
	}
	if stands.total == 0 {
		return nil, since
	}
	return &Times{P50: stands.quantile(0.5), P95: stands.quantile(0.95)}, since
}

func gather(from prometheus.Gatherer, now time.Time) (standing, bool) {
	families, err := from.Gather()
	if err != nil {
		return standing{}, false
	}
	for _, f := range families {
		if f.GetName() != sentHistogram || len(f.GetMetric()) == 0 {
			continue
		}
		h := f.GetMetric()[0].GetHistogram()
		s := standing{at: now, total: h.GetSampleCount()}
		for _, b := range h.GetBucket() {
			s.bounds, s.counts = append(s.bounds, b.GetUpperBound()), append(s.counts, b.GetCumulativeCount())
		}
		return s, true
	}
	return standing{}, false
}

// quantile returns the value that a part of all is below, in milliseconds. Within a bucket it is guessed,
// as if the values lay evenly; beyond the last bound it is that bound.
func (s standing) quantile(part float64) int64 {
	rank := part * float64(s.total)
	low, below := 0.0, 0.0
	for i, bound := range s.bounds {
		if count := float64(s.counts[i]); count >= rank && count > below {
			return int64(1000 * (low + (bound-low)*(rank-below)/(count-below)))
		} else {
			low, below = bound, count
		}
	}
	return int64(1000 * low)
}
