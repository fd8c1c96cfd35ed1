package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

const (
	eventsPerSecond = 1000
	eventSeconds    = 4
	eventChats      = 100 // events of one chat are delivered one after the other

	drainBacklog   = 30_000
	drainPerSecond = 100
	drainSeconds   = 5
)

// measureWebhooks has simulated phones write at a constant rate, and measures how old events are at their first attempt.
func measureWebhooks(ctx context.Context, o options, t *table) error {
	return withParley(ctx, o, "", func(p *process) error {
		r := newReceiver()
		defer r.Close()
		if _, err := addWebhook(p, r.URL); err != nil {
			return err
		}
		if _, err := deliverAtPace(ctx, p, o, r, eventsPerSecond, 1); err != nil { // warm-up
			return err
		}
		delays, err := deliverAtPace(ctx, p, o, r, eventsPerSecond, eventSeconds)
		if err != nil {
			return err
		}
		name, p95 := fmt.Sprintf("webhooks, %d messages/s by phones, one receiver", eventsPerSecond), quantile(delays, 0.95)
		t.add(name+", event to first attempt, p95", fmt.Sprintf("%.0f ms", ms(p95)), "< 1000 ms", p95 < time.Second)
		t.note(name+", p50 / p99", fmt.Sprintf("%.0f / %.0f ms", ms(quantile(delays, 0.5)), ms(quantile(delays, 0.99))))
		return nil
	})
}

// measureDraining measures how late events reach a healthy webhook while the backlog of another one is delivered.
func measureDraining(ctx context.Context, o options, t *table) error {
	return withParley(ctx, o, "", func(p *process) error {
		healthy, behind := newReceiver(), newReceiver()
		defer healthy.Close()
		defer behind.Close()
		if _, err := addWebhook(p, healthy.URL); err != nil {
			return err
		}
		id, err := addWebhook(p, behind.URL)
		if err != nil {
			return err
		}
		enable := func(on bool) error {
			return p.call("PATCH", "/api/manage/webhooks/"+id, map[string]bool{"enabled": on}, nil)
		}
		if err := enable(false); err != nil {
			return err
		}
		if _, err := driveOnce(p.addr, o.connections, inboundTexts(p, drainBacklog), `"success":true`, nil); err != nil {
			return err
		}
		if _, err := healthy.await(ctx, drainBacklog); err != nil {
			return err
		}
		alone, err := deliverAtPace(ctx, p, o, healthy, drainPerSecond, drainSeconds)
		if err != nil {
			return err
		}
		if err := enable(true); err != nil {
			return err
		}
		beside, err := deliverAtPace(ctx, p, o, healthy, drainPerSecond, drainSeconds)
		if err != nil {
			return err
		}
		const name = "healthy webhook beside a draining one"
		p95 := quantile(beside, 0.95)
		t.add(fmt.Sprintf("%s, event to first attempt, p95 (%d of %d drained meanwhile)", name, behind.count(), drainBacklog),
			fmt.Sprintf("%.0f ms (%.0f ms alone)", ms(p95), ms(quantile(alone, 0.95))), "< 1000 ms", p95 < time.Second)
		t.note(name+", p50 / p99 / max",
			fmt.Sprintf("%.0f / %.0f / %.0f ms", ms(quantile(beside, 0.5)), ms(quantile(beside, 0.99)), ms(quantile(beside, 1))))
		return nil
	})
}

// deliverAtPace has phones write at a constant rate and returns how old each event was when the receiver got it.
func deliverAtPace(ctx context.Context, p *process, o options, r *receiver, perSecond, seconds int) ([]time.Duration, error) {
	had, events := r.count(), perSecond*seconds
	if _, err := pace(p.addr, o.connections, perSecond, inboundTexts(p, events), `"success":true`); err != nil {
		return nil, err
	}
	ages, err := r.await(ctx, had+events)
	if err != nil {
		return nil, err
	}
	return ages[had:], nil
}

// inboundTexts are requests that have simulated phones write to the channel in turns.
func inboundTexts(p *process, count int) [][]byte {
	requests := make([][]byte, count)
	for i := range requests {
		requests[i] = post("/api/sandbox/phones/"+phone(i%eventChats)+"/send", p.token,
			fmt.Sprintf(`{"type":"text","message":"Where is my order %d?"}`, i))
	}
	return requests
}

func addWebhook(p *process, address string) (string, error) {
	var created struct{ Data struct{ ID string } }
	err := p.call("POST", "/api/manage/webhooks", map[string]any{"url": address, "events": []string{"message.received"}}, &created)
	return created.Data.ID, err
}

// receiver is the server of a webhook. It records how old each event was at its first attempt.
type receiver struct {
	*httptest.Server
	changed chan struct{} // holds one: an event arrived

	mu     sync.Mutex
	known  map[string]bool // events, by id
	ages   []time.Duration
	failed error
}

func newReceiver() *receiver {
	r := &receiver{known: map[string]bool{}, changed: make(chan struct{}, 1)}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		var age time.Duration
		if err == nil {
			age, err = eventAge(body)
		}
		r.add(req.Header.Get("Webhook-Id"), age, err)
		w.WriteHeader(http.StatusNoContent)
	}))
	return r
}

func (r *receiver) add(id string, age time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		r.failed = err
	case !r.known[id]:
		r.known[id] = true
		r.ages = append(r.ages, age)
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// eventAge is the time since an event's own timestamp.
func eventAge(event []byte) (time.Duration, error) {
	_, rest, _ := bytes.Cut(event, []byte(`"timestamp":"`))
	stamp, _, ok := bytes.Cut(rest, []byte(`"`))
	if !ok {
		return 0, fmt.Errorf("no timestamp in %s", event)
	}
	at, err := time.Parse(time.RFC3339, string(stamp))
	return time.Since(at), err
}

// await waits until so many events have arrived in all, and returns their ages.
func (r *receiver) await(ctx context.Context, count int) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		r.mu.Lock()
		ages, err := r.ages, r.failed
		r.mu.Unlock()
		switch {
		case err != nil:
			return nil, err
		case len(ages) == count:
			return ages, nil
		case len(ages) > count:
			return nil, fmt.Errorf("%d events arrived, and only %d happened", len(ages), count)
		}
		select {
		case <-r.changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("only %d of %d events arrived: %w", len(ages), count, ctx.Err())
		}
	}
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ages)
}
