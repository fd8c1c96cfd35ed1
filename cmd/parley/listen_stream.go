package main

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"time"

	"parley/internal/client"
	"parley/internal/wait"
)

const (
	reconnectDelay = 2 * time.Second
	streamTimeout  = 45 * time.Second // three heartbeats: the connection is dead
)

// stream follows the event stream of a server and reconnects when it breaks.
type stream struct {
	cli       *cli
	client    *client.Client
	path      string // empty: that of the token's channels
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
		case toExitCode(err) != exitUnreachable, first && !begun:
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
	temporary := running.GlobalToken
	if e.path == client.AllEventsPath {
		temporary = running.AdminToken
	}
	if e.client.Base = found.Base; e.client.Origin == "" && temporary != "" {
		e.client.Token = temporary
	}
}

// read reads one connection to its end. It reports whether the stream began.
func (e *stream) read(ctx context.Context, on func(streamEvent) error) (begun bool, err error) {
	ctx, hangUp := context.WithCancelCause(ctx)
	defer hangUp(nil)
	resp, err := e.client.Events(ctx, cmp.Or(e.path, client.EventsPath), e.query, e.lastID)
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
	events := client.NewEventReader(resp.Body)
	events.Alive = func() { dead.Reset(streamTimeout) }
	for {
		body, err := events.Next()
		e.lastID = cmp.Or(events.LastID, e.lastID)
		if err != nil {
			return true, fail(exitUnreachable, "the stream of %s ended: %w", e.client.Base, err)
		}
		event, err := newStreamEvent(body)
		if err != nil {
			return true, err
		}
		if err := on(event); err != nil {
			return true, err
		}
	}
}
