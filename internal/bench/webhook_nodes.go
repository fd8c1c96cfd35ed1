package main

import (
	"context"
	"fmt"
	"time"
)

const (
	followedEvents = 3000
	loopback       = "127.0.0.0/8"
)

// measureFollowing measures how many events per second one webhook follows, on a file and on three nodes in the same run.
func measureFollowing(ctx context.Context, o options, t *table) error {
	return withServe(ctx, o, "", func(file *process) error {
		return withNodes(ctx, o, func(c *nodes) error {
			owner, _, err := c.owner()
			if err != nil {
				return err
			}
			at := &process{cmd: owner.cmd, addr: owner.addr, admin: c.all[0].admin, token: c.token}
			var rates [2][]float64
			for round := range 4 { // the first one is the warm-up
				if round == 1 {
					if err := analyze(c.server); err != nil {
						return err
					}
				}
				for i, p := range []*process{file, at} {
					rate, err := followOnce(ctx, o, p)
					if err != nil {
						return err
					}
					if round > 0 {
						rates[i] = append(rates[i], rate)
					}
				}
			}
			ratio := median(rates[1]) / median(rates[0])
			t.add("one webhook on three nodes, events that it follows", fmt.Sprintf("%.2f of a file's (%.0f/s of %.0f/s)", ratio,
				median(rates[1]), median(rates[0])), ">= 0.5", ratio >= 0.5)
			return nil
		})
	}, "--allow-private", loopback)
}

// followOnce has phones write as fast as they can, and returns how many events per second a webhook got.
func followOnce(ctx context.Context, o options, p *process) (float64, error) {
	r := newReceiver()
	defer r.Close()
	id, err := addWebhook(p, r.URL)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if _, err := driveOnce(p.addr, o.connections, inboundTexts(p, followedEvents), `"success":true`, nil); err != nil {
		return 0, err
	}
	if _, err := r.await(ctx, followedEvents); err != nil {
		return 0, err
	}
	rate := followedEvents / time.Since(began).Seconds()
	return rate, p.call("DELETE", "/api/manage/webhooks/"+id, nil, nil)
}
