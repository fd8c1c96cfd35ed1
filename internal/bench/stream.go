package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	streamReaders = 200
	streamSends   = 250 // in a second: each makes two events, SENT and DELIVERED
	eventsPerSend = 2
	streamSlice   = 1500 * time.Millisecond
)

// measureStream paces sends with nobody on the event stream and with many readers, in turns. Every
// reader must get every event, in order.
func measureStream(ctx context.Context, o options, t *table) error {
	return withParley(ctx, o, func(s *server) error {
		var m streamed
		for round := range o.rounds + 1 {
			if err := m.round(ctx, s, round); err != nil {
				return err
			}
			if round == 0 {
				m = streamed{} // that was for warming up
			}
		}
		m.report(t)
		return nil
	})
}

// streamed is what was measured of the event stream.
type streamed struct {
	alone, beside  []time.Duration // latencies of sends, without readers and with them
	cpu            []float64
	events         int       // that came, at all readers
	late50, late95 []float64 // how old they were, in milliseconds, by round
}

func (m *streamed) round(ctx context.Context, s *server, round int) error {
	a, err := paceSends(s, fmt.Sprintf("without readers %d", round))
	if err != nil {
		return err
	}
	mark := fmt.Sprintf("with readers %d", round)
	readers, err := gather(ctx, s, streamReaders, mark)
	if err != nil {
		return err
	}
	cpu := s.cpu()
	b, err := paceSends(s, mark)
	m.cpu = append(m.cpu, (s.cpu()-cpu).Seconds()/b.elapsed.Seconds())
	got, err2 := readers.tell(b.requests * eventsPerSend)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	m.events += got.Events
	m.late50, m.late95 = append(m.late50, ms(got.P50)), append(m.late95, ms(got.P95))
	m.alone, m.beside = append(m.alone, a.latencies...), append(m.beside, b.latencies...)
	return nil
}

// paceSends sends for a while, at a pace that anybody could keep up with.
func paceSends(s *server, mark string) (load, error) {
	sends := make([][]byte, int(streamSlice.Seconds()*streamSends))
	for i := range sends {
		sends[i] = post("/api/send-message/text", s.token, fmt.Sprintf(`{"contact_id":"%s@c.us","message":"Your order %d is on its way (%s)."}`, phone(i%eventChats), i, mark))
	}
	return pace(s.addr, 16, streamSends, sends, `"SENT"`)
}

func (m *streamed) report(t *table) {
	name := fmt.Sprintf("event stream, %d readers, %d events/s by sends", streamReaders, streamSends*eventsPerSend)
	all := len(m.beside) * eventsPerSend * streamReaders
	t.add(name+", told to all in order", fmt.Sprintf("%d of %d", m.events, all), "all", m.events == all)
	t.note(name+", event to reader, p50 / p95", fmt.Sprintf("%.0f / %.0f ms", median(m.late50), median(m.late95)))
	// Over all rounds together: a hundredth of one round is a handful of sends.
	compare := func(q float64) (ratio float64, told string) {
		alone, beside := quantile(m.alone, q), quantile(m.beside, q)
		ratio = float64(beside) / float64(alone)
		return ratio, fmt.Sprintf("%.2f times as long (%.2f / %.2f ms)", ratio, ms(beside), ms(alone))
	}
	what := name + ", %s of sends with them against without"
	ratio, told := compare(0.5)
	t.add(fmt.Sprintf(what, "p50"), told, "<= 1.20", ratio <= 1.2)
	// The readers share the cores with the server, so that the tail is theirs as much as its.
	for name, q := range map[string]float64{"p95": 0.95, "p99": 0.99} {
		_, told := compare(q)
		t.note(fmt.Sprintf(what, name), told)
	}
	t.note(name+", server CPU", fmt.Sprintf("%.2f cores", median(m.cpu)))
}
