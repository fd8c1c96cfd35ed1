package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"time"

	"parley/internal/client"
)

const (
	comeBack = 2 * time.Second  // how long to wait before asking again
	silence  = 45 * time.Second // three heartbeats: the connection is dead
	maxEvent = 8 << 20          // longer than any event
)

// ear follows the event stream of a server and comes back when it breaks.
type ear struct {
	cli       *cli
	client    *client.Client
	query     url.Values
	connected func() // called once, when events are followed; nil: nobody asks
	lastID    string
}

// listen calls on for every event until ctx ends or on fails. A server that cannot be reached at first
// is an error; one that goes away is waited for.
func (e *ear) listen(ctx context.Context, on func(heard) error) error {
	for first := true; ; first = false {
		begun, err := e.hear(ctx, on)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case exitCodeOf(err) != exitUnreachable, first && !begun:
			return err
		}
		if begun {
			e.cli.hint("The server is gone; trying again until it is back.")
		}
		select {
		case <-time.After(comeBack):
		case <-ctx.Done():
			return ctx.Err()
		}
		e.find()
	}
}

// find looks where the server is: after a restart it may listen elsewhere, and its own token is another.
func (e *ear) find() {
	base, running, err := e.cli.server()
	if err != nil {
		return
	}
	if e.client.Base = base; e.client.Origin == "" && running.GlobalToken != "" {
		e.client.Token = running.GlobalToken
	}
}

// hear follows one connection to its end. It reports whether events were followed at all.
func (e *ear) hear(ctx context.Context, on func(heard) error) (begun bool, err error) {
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
	dead := time.AfterFunc(silence, func() { hangUp(errors.New("nothing came for a long time")) })
	defer dead.Stop()
	events := newEventReader(resp.Body)
	events.alive = func() { dead.Reset(silence) }
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

// eventReader reads server-sent events.
type eventReader struct {
	lines  *bufio.Reader
	lastID string
	alive  func() // called at every line; nil: nobody asks
}

func newEventReader(body io.Reader) *eventReader { return &eventReader{lines: bufio.NewReader(body)} }

// next reads up to the next event.
func (r *eventReader) next() (heard, error) {
	var id string
	var data []byte
	for {
		line, err := readLine(r.lines)
		if err != nil {
			return heard{}, err
		}
		if r.alive != nil {
			r.alive()
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case string(name) == "id":
			id = string(value)
		case string(name) == "data":
			data = value
		case len(line) == 0: // what came before it is whole
			if id != "" {
				r.lastID = id
			}
			if data != nil {
				return newHeard(data)
			}
		}
	}
}

// readLine reads a line without its end, and refuses one that no event can be.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(line) > maxEvent:
			return nil, errors.New("a line is too long")
		}
	}
}
