package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

const (
	eventsPerSecond = 1000
	eventSeconds    = 4
	eventChats      = 100 // events of one chat are delivered one after the other
	// backlogEvents is how many events wait when the highest rate is measured, for one receiver.
	backlogEvents = 6000
)

// measureWebhooks has simulated phones write to the channel at a steady pace, and looks at receivers on
// this machine how long after its own timestamp each event arrives. Then it switches the webhooks off,
// lets events pile up, and measures how fast they are delivered once the webhooks are on again.
func measureWebhooks(ctx context.Context, o options, t *table) error {
	for _, receivers := range []int{1, 10} {
		err := withParley(ctx, o, func(s *server) error { return measureReceivers(ctx, s, receivers, o, t) })
		if err != nil {
			return fmt.Errorf("webhooks, receivers %d: %w", receivers, err)
		}
	}
	return nil
}

func measureReceivers(ctx context.Context, s *server, count int, o options, t *table) error {
	var hooks []string
	var all receivers
	defer all.stop()
	for range count {
		r, err := listen()
		if err != nil {
			return err
		}
		all = append(all, r)
		id, err := addWebhook(s, r.url())
		if err != nil {
			return err
		}
		hooks = append(hooks, id)
	}
	to := fmt.Sprintf("%d receivers, each told of all", count)
	if count == 1 {
		to = "one receiver"
	}

	// A second of it is for warming up.
	written := eventsPerSecond
	if _, err := pace(s.addr, o.connections, eventsPerSecond, phonesWrite(s, written), `"success":true`); err != nil {
		return err
	}
	if err := all.await(ctx, written); err != nil {
		return err
	}
	all.forgetDelays()
	paced := eventsPerSecond * eventSeconds
	cpu := s.cpu()
	l, err := pace(s.addr, o.connections, eventsPerSecond, phonesWrite(s, paced), `"success":true`)
	if err != nil {
		return err
	}
	written += paced
	if err := all.await(ctx, written); err != nil {
		return err
	}
	delays := all.delays()
	p95 := quantile(delays, 0.95)
	name := fmt.Sprintf("webhooks, %.0f messages/s by phones, %s", l.rate(), to)
	if count == 1 {
		t.add(name+", event to first attempt, p95", fmt.Sprintf("%.0f ms", ms(p95)), "< 1000 ms", p95 < time.Second)
	} else { // so many times as many requests: what it can bear, not what it must
		t.note(name+", event to first attempt, p95", fmt.Sprintf("%.0f ms", ms(p95)))
	}
	t.note(name+", p50 / p99", fmt.Sprintf("%.0f / %.0f ms", ms(quantile(delays, 0.5)), ms(quantile(delays, 0.99))))
	t.note(name+", server CPU", fmt.Sprintf("%.2f cores", (s.cpu()-cpu).Seconds()/l.elapsed.Seconds()))

	rate, err := drain(ctx, s, hooks, all, o, written)
	if err != nil {
		return err
	}
	t.note(fmt.Sprintf("webhooks, highest rate of delivery, %s", to), fmt.Sprintf("%.0f/s", rate))
	return nil
}

// drain measures how fast what has piled up is delivered.
func drain(ctx context.Context, s *server, hooks []string, all receivers, o options, written int) (float64, error) {
	if err := switchWebhooks(s, hooks, false); err != nil {
		return 0, err
	}
	events := max(backlogEvents/len(all), 2000)
	if _, err := driveOnce(s.addr, o.connections, phonesWrite(s, events), `"success":true`, nil); err != nil {
		return 0, err
	}
	start := time.Now()
	if err := switchWebhooks(s, hooks, true); err != nil {
		return 0, err
	}
	if err := all.await(ctx, written+events); err != nil {
		return 0, err
	}
	return float64(events*len(all)) / time.Since(start).Seconds(), nil
}

// phonesWrite makes requests that have simulated phones write to the channel in turns.
func phonesWrite(s *server, count int) [][]byte {
	requests := make([][]byte, count)
	for i := range requests {
		requests[i] = post("/api/sandbox/phones/"+phone(i%eventChats)+"/send", s.token, fmt.Sprintf(`{"type":"text","message":"Where is my order %d?"}`, i))
	}
	return requests
}

// addWebhook has an address told of every message that comes in.
func addWebhook(s *server, address string) (string, error) {
	answer, err := ask(s, post("/api/manage/webhooks", s.admin, fmt.Sprintf(`{"url":"%s","events":["message.received"]}`, address)))
	if err != nil {
		return "", err
	}
	var made struct{ Data struct{ ID string } }
	err = json.Unmarshal(answer, &made)
	return made.Data.ID, err
}

func switchWebhooks(s *server, hooks []string, on bool) error {
	for _, id := range hooks {
		if _, err := ask(s, request("PATCH", "/api/manage/webhooks/"+id, s.admin, fmt.Sprintf(`{"enabled":%t}`, on))); err != nil {
			return err
		}
	}
	return nil
}

// ask makes one request.
func ask(s *server, request []byte) ([]byte, error) {
	c, err := dial(s.addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.do(request, []byte(`"success":true`))
}
