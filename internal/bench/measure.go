package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"parley"
	"parley/internal/store"
)

const mb = 1 << 20

// measureFootprint measures what the program needs to stand there: binary, memory, time to start.
func measureFootprint(ctx context.Context, o options, t *table) error {
	binary, err := os.Stat(o.parley)
	if err != nil {
		return err
	}
	t.add("binary", fmt.Sprintf("%.1f MB", float64(binary.Size())/mb), "< 35 MB", binary.Size() < 35*mb)

	data, err := os.MkdirTemp("", "parley-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(data)
	first, err := startParley(ctx, o, data)
	if err != nil {
		return err
	}
	first.stop()
	var starts []float64
	var rss int64
	for range 5 {
		s, err := startParley(ctx, o, data)
		if err != nil {
			return err
		}
		starts = append(starts, s.took.Seconds())
		time.Sleep(2 * time.Second) // let it come to rest
		if rss, err = s.rss(); err != nil {
			return err
		}
		s.stop()
	}
	t.add("start to ready, existing database (median of 5)", fmt.Sprintf("%.0f ms", median(starts)*1000), "< 150 ms", median(starts) < 0.150)
	t.add("idle memory (RSS)", fmt.Sprintf("%.1f MB", float64(rss)/mb), "< 40 MB", rss < 40*mb)
	return nil
}

// measureSends loads the empty JSON server and the gateway in turns.
func measureSends(ctx context.Context, o options, t *table) error {
	data, err := os.MkdirTemp("", "parley-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(data)
	echo, err := startEcho(ctx)
	if err != nil {
		return err
	}
	defer echo.stop()
	gateway, err := startParley(ctx, o, data)
	if err != nil {
		return err
	}
	defer gateway.stop()

	variants := []struct {
		name    string
		number  func(i int) string
		bounded bool
	}{
		{"durable sends, 64 chats", func(i int) string { return fmt.Sprintf("62812000%05d", i) }, true},
		{"durable sends, one chat", func(int) string { return "6281299999999" }, false},
	}
	empty := requests(o, "/", "", variants[0].number)
	var echoLatency []time.Duration
	for _, v := range variants {
		sends := requests(o, "/api/send-message/text", gateway.token, v.number)
		var ratios, cost []float64
		var latencies []time.Duration
		for round := range o.rounds + 1 {
			a, cpuA, err := slice(echo, empty, o.slice)
			if err != nil {
				return fmt.Errorf("echo: %w", err)
			}
			b, cpuB, err := slice(gateway, sends, o.slice)
			if err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
			if round == 0 {
				continue // warm-up
			}
			ratios = append(ratios, b.rate()/a.rate())
			cost = append(cost, cpuB/cpuA)
			latencies = append(latencies, b.latencies...)
			echoLatency = append(echoLatency, a.latencies...)
		}
		ratio, p99 := median(ratios), quantile(latencies, 0.99)
		rate := float64(len(latencies)) / (float64(o.rounds) * o.slice.Seconds())
		value := fmt.Sprintf("%.2f of the echo (%.0f/s)", ratio, rate)
		if v.bounded {
			t.add(v.name+", rate", value, ">= 0.50", ratio >= 0.5)
			t.add(v.name+", p99", fmt.Sprintf("%.1f ms", ms(p99)), "< 15 ms", p99 < 15*time.Millisecond)
		} else {
			t.note(v.name+", rate", value)
			t.note(v.name+", p99", fmt.Sprintf("%.1f ms", ms(p99)))
		}
		t.note(v.name+", p50", fmt.Sprintf("%.1f ms", ms(quantile(latencies, 0.5))))
		t.note(v.name+", server CPU per request", fmt.Sprintf("%.2f of the echo", median(cost)))
	}
	t.note("empty JSON echo, p50 / p99", fmt.Sprintf("%.1f / %.1f ms", ms(quantile(echoLatency, 0.5)), ms(quantile(echoLatency, 0.99))))
	return nil
}

// slice loads a server and returns also the processor time that it spent per request.
func slice(s *server, requests [][]byte, d time.Duration) (load, float64, error) {
	before := s.cpu()
	l, err := drive(s.addr, requests, `"SENT"`, d)
	if err != nil {
		return l, 0, err
	}
	return l, (s.cpu() - before).Seconds() / float64(l.requests), nil
}

func requests(o options, path, token string, number func(int) string) [][]byte {
	all := make([][]byte, o.connections)
	for i := range all {
		all[i] = post(path, token, fmt.Sprintf(`{"contact_id":"%s@c.us","message":"Your order 4711 is on its way and arrives tomorrow."}`, number(i)))
	}
	return all
}

// measureHistory compares pages of a long chat with pages of a short one.
func measureHistory(ctx context.Context, o options, t *table) error {
	const short, long = "6281200000001", "6281200000002"
	data, err := os.MkdirTemp("", "parley-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(data)
	first, err := startParley(ctx, o, data) // makes the channel and its token
	if err != nil {
		return err
	}
	first.stop()
	if err := seed(ctx, data, map[string]int{short: 1000, long: o.messages}); err != nil {
		return err
	}
	s, err := startParley(ctx, o, data)
	if err != nil {
		return err
	}
	defer s.stop()
	t.note(fmt.Sprintf("start to ready, %d messages", o.messages), fmt.Sprintf("%.0f ms", ms(s.took)))
	for _, page := range []struct {
		name              string
		offShort, offLong int
	}{{"first", 0, 0}, {"last", 950, o.messages - 50}} {
		var ratios []float64
		for range o.rounds {
			var took [2]time.Duration
			for i, path := range []string{
				fmt.Sprintf("/api/chat/detail?contact_id=%s@c.us&limit=50&offset=%d", short, page.offShort),
				fmt.Sprintf("/api/chat/detail?contact_id=%s@c.us&limit=50&offset=%d", long, page.offLong),
			} {
				l, err := drive(s.addr, [][]byte{get(path, s.token)}, `"per_page":50`, o.slice/4)
				if err != nil {
					return err
				}
				took[i] = quantile(l.latencies, 0.5)
			}
			ratios = append(ratios, float64(took[1])/float64(took[0]))
		}
		t.add(fmt.Sprintf("chat/detail, %s page: %d messages against 1,000", page.name, o.messages),
			fmt.Sprintf("%.2f times as long", median(ratios)), "<= 3", median(ratios) <= 3)
	}
	return nil
}

// seed fills chats of the channel "demo" straight into the database.
func seed(ctx context.Context, data string, chats map[string]int) error {
	db, err := store.Open(ctx, data+"/parley.db")
	if err != nil {
		return err
	}
	defer db.Close()
	const batch = 10_000
	for number, count := range chats {
		for done := 0; done < count; done += batch {
			err := db.Tx(ctx, func(tx *store.Tx) error {
				for i := done; i < min(count, done+batch); i++ {
					m := parley.Message{Channel: "demo", Chat: parley.ContactOf(number), FromMe: i%2 == 0,
						Content: parley.Text{Body: fmt.Sprintf("Message number %d of a long conversation.", i)},
						Status:  parley.Delivered, CreatedAt: time.Now()}
					if !m.FromMe {
						m.ID = parley.NewMessageID() // others choose their own
					}
					if err := tx.AddMessage(ctx, &m); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
