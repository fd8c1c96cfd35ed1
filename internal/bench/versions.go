package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"
)

// measureVersions compares the durable sends of two versions of the program, in turns: 5,000 chats, each request once.
func measureVersions(ctx context.Context, o options, t *table) error {
	if o.against == "" {
		return nil
	}
	const chats, perRound = 5000, 20_000
	var gateways [2]*server
	for i, binary := range []string{o.parley, o.against} {
		data := o.data
		if data == "" || i > 0 {
			made, err := os.MkdirTemp("", "parley-bench-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(made)
			data = made
		}
		one := o
		one.parley = binary
		s, err := startParley(ctx, one, data)
		if err != nil {
			return fmt.Errorf("%s: %w", binary, err)
		}
		defer s.stop()
		gateways[i] = s
	}
	var ratios []float64
	var rates [2][]float64
	var latencies [2][]time.Duration
	for round := range o.rounds + 1 {
		var rate [2]float64
		for i, s := range gateways {
			sends := make([][]byte, perRound)
			for n := range sends {
				sends[n] = post("/api/send-message/text", s.token, fmt.Sprintf(
					`{"contact_id":"62812%08d@c.us","message":"Your order 4711 is on its way and arrives tomorrow."}`, (round*perRound+n*7919)%chats))
			}
			l, err := driveOnce(s.addr, o.connections, sends, `"SENT"`, nil)
			if err != nil {
				return err
			}
			rate[i] = l.rate()
			if round > 0 {
				rates[i], latencies[i] = append(rates[i], l.rate()), append(latencies[i], l.latencies...)
			}
		}
		if round > 0 {
			ratios = append(ratios, rate[0]/rate[1])
		}
	}
	t.add("durable sends, 5,000 chats, of "+o.against, fmt.Sprintf("%.2f (%.0f/s of %.0f/s)", median(ratios), median(rates[0]), median(rates[1])),
		">= 0.60", median(ratios) >= 0.6)
	for i, name := range []string{"this version", "the other"} {
		t.note("durable sends, 5,000 chats, p99 / slowest, "+name,
			fmt.Sprintf("%.1f / %.1f ms", ms(quantile(latencies[i], 0.99)), ms(slices.Max(latencies[i]))))
	}
	return nil
}
