package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"parley"
	"parley/internal/api/form"
	"parley/internal/api/limit"
	"parley/internal/feed"
)

const (
	heartbeat  = 15 * time.Second // proxies close silent connections
	checkToken = time.Second      // how long a stream may outlive its revoked token
	// writeTimeout disconnects a caller that does not read.
	writeTimeout = 60 * time.Second
	// streamsPerToken is the default limit, so that one token cannot use up all connections.
	streamsPerToken = 1000
	// maxWrite is how much is written at once, so that writeTimeout is fair.
	maxWrite = 64 << 10
)

var typeEvents = []string{"text/event-stream"}

type streamRequest struct {
	filter parley.EventFilter
	cursor
}

// cursor is where a stream resumes.
type cursor struct {
	seq     int64          // events after it follow
	id      parley.EventID // of the event there, for a caller that reconnects before it got any; empty: not known
	comment string         // a note in the stream; empty: none
}

func (rt *route) openStream(ctx context.Context, r *request) (response, error) {
	asked, err := rt.readStream(ctx, r)
	if err != nil {
		return response{}, err
	}
	if !rt.streams.Acquire(r.token.ID, ctx.Done(), 0) {
		q := limit.Quota{Name: limitStreams, Unit: limit.UnitAtOnce, Most: int64(rt.streams.Most), Wait: time.Second}
		return response{}, limit.Exceeded(q, fmt.Sprintf("This token has %d streams open, which is the limit. Close one first.", q.Most))
	}
	return response{status: http.StatusOK, stream: func(w http.ResponseWriter) error {
		defer rt.streams.Release(r.token.ID)
		return rt.follow(w, r, asked)
	}}, nil
}

func (rt *route) readStream(ctx context.Context, r *request) (asked streamRequest, err error) {
	if asked.filter.Channel, err = rt.streamChannel(ctx, r); err != nil {
		return asked, err
	}
	if asked.filter.Types, err = r.eventTypes(); err != nil {
		return asked, err
	}
	after := parley.EventID(r.OptionalText("after", 1, 100))
	// A browser that reconnects sends the header, with the original address.
	name := "after"
	if last := r.http.Header.Get("Last-Event-ID"); last != "" {
		after, name = parley.EventID(last), "Last-Event-ID"
	}
	if after != "" {
		if _, err := after.Seq(); err != nil {
			r.Fail(name, "must be the id of an event from the stream: evt_ and 26 letters and digits.")
		}
	}
	if err := r.Err(); err != nil {
		return asked, err
	}
	asked.cursor, err = rt.cursorAfter(ctx, after)
	return asked, err
}

// streamChannel returns the channel that a stream is limited to; empty: all channels.
func (s *server) streamChannel(ctx context.Context, r *request) (parley.ChannelCode, error) {
	only := r.channel.Code
	named := parley.ChannelCode(r.OptionalText("channel", 1, 100))
	if named == "" || named == only {
		return only, nil
	}
	if r.token.Kind == parley.ChannelToken {
		return "", insufficient(fmt.Sprintf("This token is only for channel %s. Remove channel, or use a Global token.", only))
	}
	if only != "" {
		r.Fail("channel", "and the header X-Channel name different channels. Send one of them.")
		return only, nil
	}
	return named, s.channelField(ctx, r, named)
}

// eventTypes are the types that the caller asks for and may read; none: all. Only operators read pairings: they have the code
// to scan.
func (r *request) eventTypes() ([]parley.EventType, error) {
	types := typesListed(r.Form, "types")
	if r.token.Kind != console && r.token.Kind != parley.AdminToken || r.token.Role.Includes(parley.Operator) {
		return types, nil
	}
	if len(types) == 0 {
		types = slices.Clone(parley.EventTypes)
	}
	types = slices.DeleteFunc(types, func(t parley.EventType) bool { return t == parley.ChannelPairing })
	if len(types) == 0 {
		return nil, lacksRole(r.token, parley.Operator)
	}
	return types, nil
}

func typesListed(f form.Form, name string) []parley.EventType {
	list := f.OptionalText(name, 1, 1000)
	if list == "" {
		return nil
	}
	var types []parley.EventType
	for word := range strings.SplitSeq(list, ",") {
		kind, known := parley.ParseEventType(strings.TrimSpace(word))
		if !known {
			f.Fail(name, "must be event types, separated by commas: %s.", strings.Join(typeNames(), ", "))
			return nil
		}
		if !slices.Contains(types, kind) {
			types = append(types, kind)
		}
	}
	return types
}

// cursorAfter returns the cursor after an event; without one, the end of the log. For an event that is not in
// the log, it returns the oldest: a duplicate is better than a gap.
func (s *server) cursorAfter(ctx context.Context, after parley.EventID) (cursor, error) {
	last, err := s.config.Store.LastEvent(ctx)
	if err != nil {
		return cursor{}, err
	}
	seq := last
	if after != "" {
		seq, _ = after.Seq() // it was checked
	}
	there, err := s.config.Store.EventsAt(ctx, []int64{seq})
	if err != nil {
		return cursor{}, err
	}
	switch {
	case len(there) == 1 && (after == "" || there[0].ID == after):
		return cursor{seq: seq, id: there[0].ID}, nil
	case after == "":
		return cursor{seq: seq}, nil
	case len(there) == 1 || seq > last:
		return cursor{comment: string(after) + " is unknown; continuing with the oldest event"}, nil
	}
	// The event was in this log, but was purged.
	oldest, _, err := s.config.Store.Events(ctx, 0, parley.EventFilter{}, 1)
	if err != nil {
		return cursor{}, err
	}
	if len(oldest) > 0 && oldest[0].Seq < seq {
		return cursor{seq: seq, id: after}, nil // the events after it are still there
	}
	return cursor{seq: seq, comment: string(after) + " was purged; continuing with the oldest event"}, nil
}

// follow writes events until the caller leaves or loses access. It returns only an error of the server.
func (rt *route) follow(w http.ResponseWriter, r *request, asked streamRequest) error {
	h := w.Header()
	setHeaders(h, r.id)
	h["Content-Type"] = typeEvents
	h["X-Accel-Buffering"] = []string{"no"} // for nginx
	out := eventWriter{http: w, control: http.NewResponseController(w)}
	if r.http.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	reader := rt.config.Feed.Subscribe(asked.seq, asked.filter)
	defer reader.Close()
	out.comment("events follow")
	out.text = append(out.text, "retry: 2000\n"...)
	if asked.id != "" {
		out.text = fmt.Appendf(out.text, "id: %s\n", asked.id)
	}
	out.text = append(out.text, '\n')
	if asked.comment != "" {
		out.comment(asked.comment)
	}
	return rt.forward(r, reader, &out)
}

func (rt *route) forward(r *request, reader *feed.Reader, out *eventWriter) error {
	ctx := r.http.Context()
	every := cmp.Or(rt.config.Heartbeat, heartbeat)
	checked := time.Now()
	for out.flush() {
		err := out.fill(ctx, reader, min(checkToken, time.Until(out.wrote.Add(every))))
		switch {
		case ctx.Err() != nil:
			return nil // the caller left
		case errors.Is(err, feed.ErrClosed):
			return out.end("the server is stopping; reconnect with the last id", nil)
		case errors.Is(err, feed.ErrSlow):
			return out.end("this subscriber is too slow; reconnect with the last id", nil)
		case err != nil:
			return out.end("the events cannot be read; reconnect with the last id", err)
		}
		// A token is verified from memory, so it is checked before every write. A session is read from the store.
		if time.Since(checked) >= checkToken || rt.checkSession == nil && len(out.text) > 0 {
			checked = time.Now()
			if why := rt.lostAccess(ctx, r); why != "" {
				out.text = out.text[:0] // pending events are no longer for this caller
				return out.end(why, nil)
			}
		}
		if len(out.text) == 0 && time.Since(out.wrote) >= every {
			out.comment("still here")
		}
	}
	return nil
}

// lostAccess says why a stream must end; empty: it goes on. Its filter depends on the role, so it ends when that changes: the
// caller reconnects and gets the filter of the new one.
func (rt *route) lostAccess(ctx context.Context, r *request) string {
	now, err := rt.reauthenticate(ctx, r.http)
	switch {
	case parley.IsUnauthenticated(err):
		return "the token is no longer valid"
	case err == nil && now.Role != r.token.Role:
		return "the role has changed; reconnect with the last id"
	}
	return ""
}

// recentEvents lists what happened, newest first. One call scans a bounded number of rows.
func (s *server) recentEvents(ctx context.Context, r *request) (any, error) {
	channel, err := s.streamChannel(ctx, r)
	if err != nil {
		return nil, err
	}
	filter := parley.EventFilter{Channel: channel}
	if filter.Types, err = r.eventTypes(); err != nil {
		return nil, err
	}
	limit := int(r.Whole("limit", 50, 1, maxFound))
	before := int64(math.MaxInt64)
	if id := r.OptionalText("cursor", 1, 100); id != "" {
		if before, err = parley.EventID(id).Seq(); err != nil {
			r.Fail("cursor", "must be a cursor from an earlier response, or the id of an event: evt_ and 26 letters and digits.")
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	events, next, err := s.config.Store.RecentEvents(ctx, before, filter, limit)
	if err != nil {
		return nil, err
	}
	rows := make([]jsontext.Value, 0, len(events))
	for i := range events {
		body, err := s.config.Feed.RenderPlain(&events[i])
		if err != nil {
			return nil, err
		}
		rows = append(rows, body)
	}
	var meta cursorMeta
	if next != 0 { // only its seq counts: the event itself may be left out of the page
		meta.NextCursor = textOrNil(parley.NewEventID(time.UnixMilli(0), 0, next))
	}
	return envelope{Success: true, Message: "OK", Data: rows, Meta: meta}, nil
}

type listenersData struct {
	Listeners int `json:"listeners"`
	Webhooks  int `json:"webhooks"`
}

func (s *server) listeners(ctx context.Context, r *request) (any, error) {
	kind, known := parley.ParseEventType(r.OptionalText("type", 1, 100))
	if !known {
		r.Fail("type", "must be one of %s.", strings.Join(typeNames(), ", "))
	}
	event := parley.Event{Channel: r.channel.Code, Type: kind}
	if err := r.Err(); err != nil {
		return nil, err
	}
	webhooks, err := s.config.Store.Webhooks(ctx)
	data := listenersData{Listeners: s.config.Feed.Listeners(event.Channel, event.Type)}
	for _, w := range webhooks {
		if w.DisabledAt.IsZero() && w.Filter().Wants(&event) {
			data.Webhooks++
		}
	}
	return ok("Listeners of "+string(event.Type), data), err
}

type eventWriter struct {
	http    http.ResponseWriter
	control *http.ResponseController
	text    []byte // not yet written
	wrote   time.Time
}

// fill waits for events, and appends those that are ready.
func (w *eventWriter) fill(ctx context.Context, reader *feed.Reader, wait time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	item, err := reader.Next(waiting)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	for err == nil {
		w.event(item)
		if len(w.text) >= maxWrite || !reader.Ready() {
			return nil
		}
		item, err = reader.Next(ctx)
	}
	return err
}

func (w *eventWriter) event(item feed.Item) {
	w.text = append(w.text, "id: "...)
	w.text = append(w.text, item.Event.ID...)
	w.text = append(w.text, "\nevent: "...)
	w.text = append(w.text, item.Event.Type...)
	w.text = append(w.text, "\ndata: "...)
	w.text = append(w.text, item.Body...)
	w.text = append(w.text, "\n\n"...)
}

// comment appends a line that clients ignore.
func (w *eventWriter) comment(line string) { w.text = append(w.text, ": "+line+"\n\n"...) }

// flush reports whether the caller still reads.
func (w *eventWriter) flush() bool {
	if len(w.text) == 0 {
		return true
	}
	w.wrote = time.Now()
	_ = w.control.SetWriteDeadline(w.wrote.Add(writeTimeout))
	if _, err := w.http.Write(w.text); err != nil {
		return false
	}
	w.text = w.text[:0]
	return w.control.Flush() == nil
}

// end writes the pending events and why the stream ends.
func (w *eventWriter) end(why string, err error) error {
	w.comment(why)
	w.flush()
	return err
}
