package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"parley/internal/callback"
)

const (
	forwardTimeout = 10 * time.Second
	forwardAtOnce  = 8      // requests to the developer's server at the same time
	maxWaiting     = 10_000 // events; with more, no further ones are read
)

// forwardDelays are the first steps of the schedule of webhooks: nobody develops for longer than that
// against a server that does not answer.
var forwardDelays = []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute}

// forwarder sends events to a developer's own server, as webhooks are sent. Events of one chat keep
// their order; chats do not wait for each other.
type forwarder struct {
	url    string
	keys   callback.Keys
	say    func(line string)
	client *http.Client

	room    chan struct{} // bounds what waits
	atOnce  chan struct{} // bounds what is under way
	running sync.WaitGroup

	mu    sync.Mutex
	chats map[string][]heard // what waits, by chat; a chat that is here has a goroutine
}

func newForwarder(url string, keys callback.Keys, say func(string)) *forwarder {
	return &forwarder{
		url: url, keys: keys, say: say,
		client: &http.Client{
			Timeout:       forwardTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		room: make(chan struct{}, maxWaiting), atOnce: make(chan struct{}, forwardAtOnce),
		chats: map[string][]heard{},
	}
}

// forward takes an event to be sent. It waits where too much waits already.
func (f *forwarder) forward(ctx context.Context, e heard) error {
	select {
	case f.room <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	chat := e.chat()
	waiting, busy := f.chats[chat]
	f.chats[chat] = append(waiting, e)
	if !busy {
		f.running.Go(func() { f.serve(ctx, chat) })
	}
	return nil
}

// wait returns when nothing is under way any more: soon after the context of forward ended.
func (f *forwarder) wait() { f.running.Wait() }

// serve sends what waits of a chat until nothing does.
func (f *forwarder) serve(ctx context.Context, chat string) {
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
		<-f.room
	}
}

// deliver sends an event until it is taken or the steps are over.
func (f *forwarder) deliver(ctx context.Context, e heard) {
	for _, delay := range append(forwardDelays, 0) {
		problem, took := f.try(ctx, e)
		if ctx.Err() != nil {
			return
		}
		now := clock(time.Now())
		switch {
		case problem == "":
			return
		case delay == 0:
			f.say(fmt.Sprintf("%s  <-- %s  POST %s   %s   given up: %s", now, problem, f.url, took, e.ID))
			return
		}
		f.say(fmt.Sprintf("%s  <-- %s  POST %s   %s   retry in %s: %s", now, problem, f.url, took, short(delay), e.ID))
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return
		}
	}
}

// try sends an event once. It says itself when that worked, and else returns why not.
func (f *forwarder) try(ctx context.Context, e heard) (problem, took string) {
	select {
	case f.atOnce <- struct{}{}:
		defer func() { <-f.atOnce }()
	case <-ctx.Done():
		return "interrupted", ""
	}
	began := time.Now()
	code, err := f.post(ctx, e, began)
	took = fmt.Sprintf("%d ms", max(1, time.Since(began).Milliseconds()))
	switch {
	case err != nil && os.IsTimeout(err):
		return fmt.Sprintf("timeout after %s", short(forwardTimeout)), took
	case err != nil:
		return reason(err), took
	case code >= 200 && code <= 299:
		f.say(fmt.Sprintf("%s  <-- %d  POST %s   %s", clock(time.Now()), code, f.url, took))
		return "", took
	}
	return fmt.Sprint(code), took
}

func (f *forwarder) post(ctx context.Context, e heard, at time.Time) (int, error) {
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
	io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	return resp.StatusCode, nil
}

// reason is the innermost cause, without the address that the line names anyway.
func reason(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// short writes a round length of time: 5 s, 5 min.
func short(d time.Duration) string {
	if d >= time.Minute {
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}
