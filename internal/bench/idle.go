package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	outageRequests  = 800
	outagePerSecond = 20
	outageAfter     = 10 * time.Second
	outageFor       = 10 * time.Second
	// outageConnections are more than there can be requests that wait for an answer.
	outageConnections = 400
)

// measureIdle measures what hardly needs the processor, both at the same time.
func measureIdle(ctx context.Context, o options, t *table) error {
	var outage, channels table
	var errs [2]error
	var both sync.WaitGroup
	both.Go(func() { errs[0] = measureOutage(ctx, o, &outage) })
	both.Go(func() { errs[1] = measureChannels(ctx, o, &channels) })
	both.Wait()
	t.rows = append(t.rows, append(outage.rows, channels.rows...)...)
	return errors.Join(errs[:]...)
}

// measureOutage has the network away for a while: whatever is asked for meanwhile must be taken, and sent later.
func measureOutage(ctx context.Context, o options, t *table) error {
	return withWhatsApp(ctx, o, func(network *standIn, s *server) error {
		tokens, err := link(network, s, 1)
		if err != nil {
			return err
		}
		requests, err := outageLoad(network, tokens[0])
		if err != nil {
			return err
		}
		outage := make(chan error, 1)
		time.AfterFunc(outageAfter, func() {
			err := network.call("POST", "/down", nil, nil)
			time.Sleep(outageFor)
			outage <- errors.Join(err, network.call("POST", "/up", nil, nil))
		})
		l, err := pace(s.addr, outageConnections, outagePerSecond, requests, `"success":true`)
		if err != nil {
			return fmt.Errorf("a request was refused: %w", err)
		}
		if err := <-outage; err != nil {
			return err
		}
		got, err := network.await(len(requests))
		if err != nil {
			return err
		}
		t.add(fmt.Sprintf("whatsapp, 10 s without the network at %d requests/s, accepted and delivered", outagePerSecond),
			fmt.Sprintf("%d and %d of %d", l.requests, got.Shown, len(requests)), "all", got.Shown == len(requests) && got.wrong() == 0)
		return nil
	})
}

// outageLoad makes requests for messages to some contacts in turns.
func outageLoad(network *standIn, token string) ([][]byte, error) {
	const chats = 20
	var numbers []string
	for i := range chats {
		numbers = append(numbers, contact(0, i))
	}
	var requests [][]byte
	for i := range outageRequests {
		requests = append(requests, textTo(numbers[i%chats], token))
	}
	return requests, network.call("POST", "/phones", numbers, nil)
}

// await waits until so many messages were shown, for a while.
func (n *standIn) await(messages int) (tally, error) {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		var got tally
		err := n.call("GET", "/tally", nil, &got)
		if err != nil || got.Shown >= messages || time.Now().After(deadline) {
			return got, err
		}
	}
}

const kib = 1 << 10

// measureChannels measures what linked channels that do nothing need.
func measureChannels(ctx context.Context, o options, t *table) error {
	network, err := startStandIn(ctx)
	if err != nil {
		return err
	}
	defer network.stop()
	data, err := os.MkdirTemp("", "parley-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(data)
	trust := filepath.Join(data, "trust.json")
	if err := os.WriteFile(trust, network.trust, 0o600); err != nil {
		return err
	}
	start := func() (*server, error) {
		return startParley(ctx, o, data, "--whatsapp-endpoint", network.endpoint, "--whatsapp-trust", trust)
	}
	var one int64
	linked := 0
	for _, channels := range []int{1, 50, 500} {
		s, err := start()
		if err != nil {
			return err
		}
		if channels > linked {
			if _, err := linkMore(network, s, linked, channels); err != nil {
				s.stop()
				return err
			}
			linked = channels
			s.stop()
			if s, err = start(); err != nil { // as after a start: what linking left behind is not counted
				return err
			}
		}
		rss, err := s.idle(channels)
		s.stop()
		if err != nil {
			return err
		}
		if channels == 1 {
			one = rss
			continue
		}
		each, most := (rss-one)/int64(channels-1), int64(240)
		if channels > 50 { // many connections at once leave more behind
			most = 400
		}
		t.add(fmt.Sprintf("whatsapp, memory of an idle paired channel, from 1 to %d", channels), fmt.Sprintf("%d KiB (%.0f MB in all)", each/kib, float64(rss)/mb),
			fmt.Sprintf("<= %d KiB", most), each <= most*kib)
	}
	return nil
}

// idle waits until so many channels work and nothing happens any more, and returns the memory.
func (s *server) idle(channels int) (int64, error) {
	for i := range channels {
		if _, err := s.until(fmt.Sprintf("/api/manage/channels/wa%d", i), works); err != nil {
			return 0, err
		}
	}
	s.settle()
	time.Sleep(idleFor)
	return s.rss()
}

// idleFor is how long a server does nothing before its memory counts: it returns what it freed by itself.
const idleFor = 20 * time.Second

const (
	manySends    = 400_000
	manyContacts = 100_000
	fallsWithin  = 90 * time.Second
	fallsUnder   = 150 // MB
)

// measureMemory measures how much memory is left after a load with many contacts.
func measureMemory(ctx context.Context, o options, t *table) error {
	data, err := os.MkdirTemp("", "parley-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(data)
	s, err := startParley(ctx, o, data)
	if err != nil {
		return err
	}
	defer s.stop()
	const atOnce = 20_000 // requests that are made ahead
	highest := int64(0)
	for sent := 0; sent < manySends; sent += atOnce {
		requests := make([][]byte, atOnce)
		for i := range requests {
			requests[i] = textTo(fmt.Sprintf("62813%06d", (sent+i)%manyContacts), s.token)
		}
		if _, err := driveOnce(s.addr, o.connections, requests, `"success":true`, nil); err != nil {
			return err
		}
		rss, err := s.rss()
		if err != nil {
			return err
		}
		highest = max(highest, rss)
	}
	end := time.Now()
	for {
		rss, err := s.rss()
		if err != nil {
			return err
		}
		took := time.Since(end)
		if rss < fallsUnder*mb || took > fallsWithin {
			t.add(fmt.Sprintf("memory after %d sends to %d contacts", manySends, manyContacts),
				fmt.Sprintf("%.0f MB after %.0f s (highest %.0f MB)", float64(rss)/mb, took.Seconds(), float64(highest)/mb),
				fmt.Sprintf("< %d MB within %.0f s", fallsUnder, fallsWithin.Seconds()), rss < fallsUnder*mb)
			return nil
		}
		time.Sleep(time.Second)
	}
}
