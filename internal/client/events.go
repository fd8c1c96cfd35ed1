package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
)

// Events opens the event stream at a path, after the event lastID if that is not empty.
func (c *Client) Events(ctx context.Context, path string, query url.Values, lastID string) (*http.Response, error) {
	header := http.Header{"Accept": {"text/event-stream"}}
	if lastID != "" {
		header.Set("Last-Event-ID", lastID)
	}
	return c.Open(ctx, http.MethodGet, path, query, header, nil)
}

// The event streams: of a token's channels, and of all channels for an admin token.
const (
	EventsPath    = "/api/events"
	AllEventsPath = "/api/manage/events"
)

const maxEvent = 8 << 20 // longer than any event

// EventReader reads the events of a stream.
type EventReader struct {
	LastID string // of the last event, for resuming after it
	Alive  func() // called at every line; may be nil
	lines  *bufio.Scanner
}

func NewEventReader(stream io.Reader) *EventReader {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxEvent)
	return &EventReader{lines: lines}
}

// Next returns the JSON of the next event.
func (r *EventReader) Next() ([]byte, error) {
	var id string
	var data []byte
	for r.lines.Scan() {
		if r.Alive != nil {
			r.Alive()
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
				r.LastID = id
			}
			if data != nil {
				return data, nil
			}
		}
	}
	return nil, cmp.Or(r.lines.Err(), io.EOF)
}
