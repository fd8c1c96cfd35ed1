package main

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// dropRuns are in a row, so that what a reconnect policy remembers shows.
	dropRuns  = 3
	dropSends = 500
	dropEvery = 100 // sends; the last hundred have no drop
	// strangers are written to at once, on a network as slow as strangersRoundTrip.
	strangers          = 64
	strangersRoundTrip = 100 * time.Millisecond
)

// measureDrops sends while the network drops the connection again and again, each time after it took a message
// and before it confirmed it.
func measureDrops(ctx context.Context, o options, t *table) error {
	return withWhatsApp(ctx, o, func(network *standIn, s *server) error {
		var numbers []string
		for i := range callersOfOne {
			numbers = append(numbers, contact(0, i))
		}
		requests, err := linkAndGreet(network, s, numbers)
		if err != nil {
			return err
		}
		var sends [][]byte
		for i := range dropSends {
			sends = append(sends, requests[i%len(requests)])
		}
		for run := range dropRuns {
			var answered, pending atomic.Int64
			l, err := driveOnce(s.addr, callersOfOne, sends, "", func(_ int, answer []byte) error {
				if !bytes.Contains(answer, []byte(`"SENT"`)) {
					pending.Add(1)
				}
				if n := answered.Add(1); n%dropEvery == 0 && n < dropSends {
					return network.call("POST", "/drop", nil, nil)
				}
				return nil
			})
			if err != nil {
				return err
			}
			what := fmt.Sprintf("whatsapp, %d sends with %d drops, run %d", dropSends, dropSends/dropEvery-1, run+1)
			p99 := quantile(l.latencies, 0.99)
			t.add(what, fmt.Sprintf("%.2f s, %d not SENT at once", l.elapsed.Seconds(), pending.Load()), "<= 3 s, 0",
				l.elapsed <= 3*time.Second && pending.Load() == 0)
			t.add(what+", p99", fmt.Sprintf("%.0f ms", ms(p99)), "< 500 ms", p99 < 500*time.Millisecond)
		}
		return nil
	})
}

// measureStrangers writes to contacts whose devices and keys are not known, all at once.
func measureStrangers(ctx context.Context, o options, t *table) error {
	return withWhatsApp(ctx, o, func(network *standIn, s *server) error {
		known, err := linkAndGreet(network, s, []string{contact(0, 0)})
		if err != nil {
			return err
		}
		var numbers []string
		for i := range strangers {
			numbers = append(numbers, contact(1, i))
		}
		if err := network.call("POST", "/phones", numbers, nil); err != nil {
			return err
		}
		if err := network.call("POST", "/roundtrip", strangersRoundTrip, nil); err != nil {
			return err
		}
		var sends [][]byte
		for _, number := range numbers {
			sends = append(sends, bytes.Replace(known[0], []byte(contact(0, 0)), []byte(number), 1))
		}
		for i, who := range []string{"new", "known"} {
			l, err := driveOnce(s.addr, strangers, sends, `"SENT"`, nil)
			if err != nil {
				return err
			}
			what := fmt.Sprintf("whatsapp, %d %s contacts at %d ms round trip", strangers, who, strangersRoundTrip.Milliseconds())
			value := fmt.Sprintf("%.0f/s (%.2f s)", l.rate(), l.elapsed.Seconds())
			if i == 0 {
				t.add(what, value, ">= 50/s", l.rate() >= 50)
			} else {
				t.note(what, value)
			}
		}
		return nil
	})
}

// linkAndGreet links one channel, and writes to everybody once: then their keys are known. It returns the
// requests for a message to each.
func linkAndGreet(network *standIn, s *server, numbers []string) ([][]byte, error) {
	if err := network.call("POST", "/phones", numbers, nil); err != nil {
		return nil, err
	}
	tokens, err := link(network, s, 1)
	if err != nil {
		return nil, err
	}
	var requests [][]byte
	for _, number := range numbers {
		requests = append(requests, textTo(number, tokens[0]))
	}
	_, err = driveOnce(s.addr, len(requests), requests, `"SENT"`, nil)
	return requests, err
}
