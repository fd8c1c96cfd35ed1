package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/url"
	"time"

	"parley/internal/client"
	"parley/internal/wait"
)

const (
	reconnectDelay = 2 * time.Second
	streamTimeout  = 45 * time.Second // three heartbeats: the connection is dead
	maxEvent       = 8 << 20          // longer than any event
)

// stream follows the event stream of a server and reconnects when it breaks.
type stream struct {
	cli       *cli
	client    *client.Client
	query     url.Values
	connected func() // called once, when the stream has begun; may be nil
	lastID    string
}

// follow calls on for every event until ctx ends or on fails. A server that cannot be reached at first is an error; after
// that it reconnects.
func (e *stream) follow(ctx context.Context, on func(streamEvent) error) error {
	for first := true; ; first = false {
		begun, err := e.read(ctx, on)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case exitCodeOf(err) != exitUnreachable, first && !begun:
			return err
		}
		if begun {
			e.cli.hint("The connection was lost; reconnecting.")
		}
		if !wait.Sleep(ctx, reconnectDelay) {
			return ctx.Err()
		}
		e.locate()
	}
}

// locate finds the server again: after a restart its address and its temporary token may be others.
func (e *stream) locate() {
	found, running, err := e.cli.server()
	if err != nil {
		return
	}
	if e.client.Base = found.Base; e.client.Origin == "" && running.GlobalToken != "" {
		e.client.Token = running.GlobalToken
	}
}

// read reads one connection to its end. It reports whether the stream began.
func (e *stream) read(ctx context.Context, on func(streamEvent) error) (begun bool, err error) {
	ctx, hangUp := context.WithCancelCause(ctx)
	defer hangUp(nil)
	resp, err := e.client.Events(ctx, e.query, e.lastID)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if e.connected != nil {
		e.connected()
		e.connected = nil
	}
	dead := time.AfterFunc(streamTimeout, func() { hangUp(errors.New("nothing came for a long time")) })
	defer dead.Stop()
	events := newEventReader(resp.Body)
	events.alive = func() { dead.Reset(streamTimeout) }
	for {
		event, err := events.next()
		if events.lastID != "" {
			e.lastID = events.lastID
		}
		if err != nil {
			return true, fail(exitUnreachable, "the stream of %s ended: %w", e.client.Base, err)
		}
		if err := on(event); err != nil {
			return true, err
		}
	}
}

type eventReader struct {
	lines  *bufio.Scanner
	lastID string
	alive  func() // called at every line; may be nil
}

func newEventReader(body io.Reader) *eventReader {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxEvent)
	return &eventReader{lines: lines}
}

func (r *eventReader) next() (streamEvent, error) {
	var id string
	var data []byte
	for r.lines.Scan() {
		if r.alive != nil {
			r.alive()
		}
		line := r.lines.Bytes()
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case string(name) == "id":
			id = string(value)
		case string(name) == "data":
			data = bytes.Clone(value)
		case len(line) == 0: // end of an event
			if id != "" {
				r.lastID = id
			}
			if data != nil {
				return newStreamEvent(data)
			}
		}
	}
	return streamEvent{}, cmp.Or(r.lines.Err(), io.EOF)
}
