package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"parley/internal/app"
	"parley/internal/callback"
	"parley/internal/doctor"
	"parley/internal/wait"
)

const (
	forwardTimeout = 10 * time.Second
	maxInFlight    = 8      // requests to the developer's server at the same time
	maxWaiting     = 10_000 // events; then reading pauses
)

// forwardDelays are the first steps of the schedule of webhooks. The others are too long for development.
var forwardDelays = []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute}

// forwarder sends events to a developer's own server, like webhooks. Events of one chat are sent in order; chats do not
// wait for each other.
type forwarder struct {
	url    string
	keys   callback.Keys
	print  func(line string)
	client *http.Client

	waiting  chan struct{} // limits the events in memory
	inFlight chan struct{} // limits the concurrent requests
	running  sync.WaitGroup

	mu    sync.Mutex
	chats map[string][]streamEvent // waiting events by chat; each chat here has a goroutine
}

func newForwarder(url string, keys callback.Keys, print func(string)) *forwarder {
	return &forwarder{
		url: url, keys: keys, print: print,
		client: &http.Client{
			Timeout:       forwardTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		waiting: make(chan struct{}, maxWaiting), inFlight: make(chan struct{}, maxInFlight),
		chats: map[string][]streamEvent{},
	}
}

// forward enqueues an event. It blocks while too many are waiting.
func (f *forwarder) forward(ctx context.Context, e streamEvent) error {
	select {
	case f.waiting <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	chat := e.chat()
	waiting, busy := f.chats[chat]
	f.chats[chat] = append(waiting, e)
	if !busy {
		f.running.Go(func() { f.drain(ctx, chat) })
	}
	return nil
}

func (f *forwarder) drain(ctx context.Context, chat string) {
	for ctx.Err() == nil {
		f.mu.Lock()
		waiting := f.chats[chat]
		if len(waiting) == 0 {
			delete(f.chats, chat)
			f.mu.Unlock()
			return
		}
		f.chats[chat] = waiting[1:]
		f.mu.Unlock()
		f.deliver(ctx, waiting[0])
		<-f.waiting
	}
}

// deliver attempts to send an event until it succeeds or the schedule ends.
func (f *forwarder) deliver(ctx context.Context, e streamEvent) {
	for _, delay := range append(forwardDelays, 0) {
		problem, took := f.attempt(ctx, e)
		if ctx.Err() != nil {
			return
		}
		now := clock(time.Now())
		switch {
		case problem == "":
			return
		case delay == 0:
			f.print(fmt.Sprintf("%s  <-- %s  POST %s   %s   given up: %s", now, problem, f.url, took, e.ID))
			return
		}
		f.print(fmt.Sprintf("%s  <-- %s  POST %s   %s   retry in %s: %s", now, problem, f.url, took, doctor.Lasted(delay), e.ID))
		if !wait.Sleep(ctx, delay) {
			return
		}
	}
}

// attempt sends an event once. It prints success and returns the problem otherwise.
func (f *forwarder) attempt(ctx context.Context, e streamEvent) (problem, took string) {
	select {
	case f.inFlight <- struct{}{}:
		defer func() { <-f.inFlight }()
	case <-ctx.Done():
		return "interrupted", ""
	}
	began := time.Now()
	code, err := f.post(ctx, e, began)
	took = fmt.Sprintf("%d ms", max(1, time.Since(began).Milliseconds()))
	switch {
	case err != nil && os.IsTimeout(err):
		return "timeout after " + doctor.Lasted(forwardTimeout), took
	case err != nil:
		return app.Cause(err), took // the line has the address already
	case code >= 200 && code <= 299:
		f.print(fmt.Sprintf("%s  <-- %d  POST %s   %s", clock(time.Now()), code, f.url, took))
		return "", took
	}
	return fmt.Sprint(code), took
}

func (f *forwarder) post(ctx context.Context, e streamEvent, at time.Time) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, bytes.NewReader(e.body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "parley/"+version)
	if err := f.keys.SignRequest(req.Header, e.ID, at, e.body); err != nil {
		return 0, err
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // keeps the connection reusable
	return resp.StatusCode, nil
}
