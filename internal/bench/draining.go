package main

import (
	"context"
	"fmt"
	"time"
)

const (
	drainBacklog   = 30_000
	drainPerSecond = 100
	drainSeconds   = 5
)

// measureDraining looks how late events come to a healthy webhook while another one is delivered what it missed.
func measureDraining(ctx context.Context, o options, t *table) error {
	return withParley(ctx, o, func(s *server) error {
		healthy, err := listen()
		if err != nil {
			return err
		}
		defer healthy.stop()
		behind, err := listen()
		if err != nil {
			return err
		}
		defer behind.stop()
		var hooks []string
		for _, r := range []*receiver{healthy, behind} {
			id, err := addWebhook(s, r.url())
			if err != nil {
				return err
			}
			hooks = append(hooks, id)
		}
		if err := switchWebhooks(s, hooks[1:], false); err != nil {
			return err
		}
		if _, err := driveOnce(s.addr, o.connections, phonesWrite(s, drainBacklog), `"success":true`, nil); err != nil {
			return err
		}
		if err := healthy.await(ctx, drainBacklog); err != nil {
			return err
		}
		all := receivers{healthy}
		all.forgetDelays()
		alone, err := paceBeside(ctx, s, o, healthy, drainBacklog)
		if err != nil {
			return err
		}
		if err := switchWebhooks(s, hooks[1:], true); err != nil {
			return err
		}
		beside, err := paceBeside(ctx, s, o, healthy, drainBacklog+drainPerSecond*drainSeconds)
		if err != nil {
			return err
		}
		drained := behind.count()
		p95 := quantile(beside, 0.95)
		t.add(fmt.Sprintf("healthy webhook beside a draining one, event to first attempt, p95 (%d of %d drained meanwhile)", drained, drainBacklog),
			fmt.Sprintf("%.0f ms (%.0f ms alone)", ms(p95), ms(quantile(alone, 0.95))), "< 1000 ms", p95 < time.Second)
		t.note("healthy webhook beside a draining one, p50 / p99 / max", fmt.Sprintf("%.0f / %.0f / %.0f ms", ms(quantile(beside, 0.5)), ms(quantile(beside, 0.99)), ms(quantile(beside, 1))))
		return nil
	})
}

// paceBeside has phones write at a steady pace and returns how late the events came to a receiver that has so many
// already.
func paceBeside(ctx context.Context, s *server, o options, r *receiver, had int) ([]time.Duration, error) {
	const events = drainPerSecond * drainSeconds
	all := receivers{r}
	all.forgetDelays()
	if _, err := pace(s.addr, o.connections, drainPerSecond, phonesWrite(s, events), `"success":true`); err != nil {
		return nil, err
	}
	if err := r.await(ctx, had+events); err != nil {
		return nil, err
	}
	return all.delays(), nil
}
