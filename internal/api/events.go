package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/internal/api/form"
	"parley/internal/api/limit"
	"parley/internal/feed"
)

const (
	heartbeat  = 15 * time.Second // proxies close connections on which nothing comes
	checkToken = time.Second      // how long a stream may go on after its token was revoked
	// timeToTake is how long a caller may take for what was written before it is cut off.
	timeToTake = 60 * time.Second
	// streamsPerToken is how many streams a token may have open without a setting, so that one that opens them
	// without end does not take all connections.
	streamsPerToken = 1000
	// maxWrite is how much is written at once, so that the time to take it is fair.
	maxWrite = 64 << 10
)

var typeEvents = []string{"text/event-stream"}

// stream is a route whose answer goes on until the caller goes: the events as they happen.
type stream struct{ *route }

// stream adds a route that streams events.
func (m *router) stream(pattern string, who access) {
	rt := m.route(pattern, who, query, work{})
	m.handle(rt, &stream{rt})
}

// wanted is what a stream was asked for.
type wanted struct {
	filter parley.EventFilter
	place
}

// place is where a stream goes on from.
type place struct {
	seq     int64          // everything after it is told
	id      parley.EventID // of the event there, for a caller that comes back before it got any; empty: not known
	comment string         // for whoever reads along; empty: none
}

func (st *stream) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	began := time.Now()
	r := newRequest(hr)
	defer r.release()
	asked, err := st.begin(hr.Context(), r)
	status := http.StatusOK
	if err != nil {
		a := refusal(err)
		write(w, r.id, a)
		status = a.status
	}
	if err == nil {
		defer st.streams.Give(r.token.ID)
	}
	st.measure(status, time.Since(began)) // until it began: how long it goes on is the caller's business
	if err == nil {
		if err = st.follow(w, r, asked); err != nil {
			status = http.StatusInternalServerError // it is too late to tell the caller, but not the log
		}
	}
	st.logRequest(hr.Context(), r, status, time.Since(began), err)
}

// begin brings the request through the checks of all routes and reads what is asked for.
func (st *stream) begin(ctx context.Context, r *request) (asked wanted, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
	}()
	if r.token, err = st.identify(ctx, r.http); err != nil {
		return asked, err
	}
	if err := st.permit(r.token, r.http); err != nil {
		return asked, err
	}
	if err := st.withinLimit(r); err != nil {
		return asked, err
	}
	if err := st.choose(ctx, r); err != nil {
		return asked, err
	}
	if err := st.readFields(r); err != nil {
		return asked, err
	}
	if asked, err = st.read(ctx, r); err != nil {
		return asked, err
	}
	if !st.streams.Take(r.token.ID, ctx.Done(), 0) {
		return asked, limit.Exceeded(limit.Quota{Name: limitStreams, Unit: limit.UnitAtOnce, Most: int64(st.streams.Most()), Wait: time.Second},
			fmt.Sprintf("This token has %d streams open, the most that it may. Close one first.", st.streams.Most()))
	}
	return asked, nil
}

// read reads the fields of a stream.
func (st *stream) read(ctx context.Context, r *request) (asked wanted, err error) {
	if asked.filter.Channel, err = st.channelOf(ctx, r); err != nil {
		return asked, err
	}
	asked.filter.Types = typesListed(r.Form, "types")
	after := parley.EventID(r.OptionalText("after", 1, 100))
	// A browser that comes back sends the header, with the address it first had.
	name := "after"
	if last := r.http.Header.Get("Last-Event-ID"); last != "" {
		after, name = parley.EventID(last), "Last-Event-ID"
	}
	if after != "" {
		if _, err := after.Seq(); err != nil {
			r.Fail(name, "must be the id of an event, as the stream gave it: evt_ and 26 letters and digits.")
		}
	}
	if err := r.Err(); err != nil {
		return asked, err
	}
	asked.place, err = st.placeOf(ctx, after)
	return asked, err
}

// channelOf returns the only channel that a stream tells of; empty: it tells of all.
func (st *stream) channelOf(ctx context.Context, r *request) (parley.ChannelCode, error) {
	only := r.channel.Code
	named := parley.ChannelCode(r.OptionalText("channel", 1, 100))
	if named == "" || named == only {
		return only, nil
	}
	if r.token.Kind == parley.ChannelToken {
		return "", &withHeader{parley.Errorf(parley.Forbidden, "This token is for channel %s only. Leave channel out, or use a Global token.", only),
			field{"WWW-Authenticate", challenge + `, error="insufficient_scope"`}}
	}
	if only != "" {
		r.Fail("channel", "and the header X-Channel name two channels. Send one of them.")
		return only, nil
	}
	if _, err := st.Store.Channel(ctx, named); errors.Is(err, parley.ErrNotFound) {
		r.Fail("channel", "names no channel of this server.")
	} else if err != nil {
		return "", err
	}
	return named, nil
}

// typesListed returns the types in a list separated by commas; none: it is not given.
func typesListed(f form.Form, name string) []parley.EventType {
	list := f.OptionalText(name, 1, 1000)
	if list == "" {
		return nil
	}
	var types []parley.EventType
	for word := range strings.SplitSeq(list, ",") {
		kind, known := parley.ParseEventType(strings.TrimSpace(word))
		if !known {
			f.Fail(name, "must be types of events, separated by commas. There are: %s.", strings.Join(typeNames(), ", "))
			return nil
		}
		if !slices.Contains(types, kind) {
			types = append(types, kind)
		}
	}
	return types
}

// placeOf finds the place in the log to go on from. Without an event that is its end. An event that
// the log does not have any more, or never had, means the oldest that is left: telling twice is
// better than not telling.
func (s *server) placeOf(ctx context.Context, after parley.EventID) (place, error) {
	last, err := s.Store.LastEvent(ctx)
	if err != nil {
		return place{}, err
	}
	seq := last
	if after != "" {
		seq, _ = after.Seq() // it was checked
	}
	there, err := s.Store.EventsAt(ctx, []int64{seq})
	if err != nil {
		return place{}, err
	}
	switch {
	case len(there) == 1 && (after == "" || there[0].ID == after):
		return place{seq: seq, id: there[0].ID}, nil
	case after == "":
		return place{seq: seq}, nil
	case len(there) == 1 || seq > last:
		return place{comment: string(after) + " is not known here; going on with the oldest event that is kept"}, nil
	}
	// The place is of this log, but the event, or what it told of, was removed.
	oldest, _, err := s.Store.Events(ctx, 0, parley.EventFilter{}, 1)
	if err != nil {
		return place{}, err
	}
	if len(oldest) > 0 && oldest[0].Seq < seq {
		return place{seq: seq, id: after}, nil // what came after it is still there
	}
	return place{seq: seq, comment: string(after) + " is not kept any more; going on with the oldest event that is"}, nil
}

// follow writes events until the caller goes or may not have them any more. It returns what kept it
// from going on, if that is our own trouble.
func (st *stream) follow(w http.ResponseWriter, r *request, asked wanted) error {
	h := w.Header()
	setHeaders(h, r.id)
	h["Content-Type"] = typeEvents
	h["X-Accel-Buffering"] = []string{"no"} // proxies that know it pass everything on at once
	out := eventWriter{http: w, control: http.NewResponseController(w)}
	if r.http.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	reader := st.Feed.Subscribe(asked.seq, asked.filter)
	defer reader.Close()
	out.comment("events follow")
	out.text = append(out.text, "retry: 2000\n"...)
	if asked.id != "" {
		out.text = append(append(out.text, "id: "...), asked.id...)
		out.text = append(out.text, '\n')
	}
	out.text = append(out.text, '\n')
	if asked.comment != "" {
		out.comment(asked.comment)
	}
	return st.pass(r, reader, &out)
}

// pass passes events on from the reader to the writer.
func (st *stream) pass(r *request, reader *feed.Reader, out *eventWriter) error {
	ctx := r.http.Context()
	every := st.Heartbeat
	if every == 0 {
		every = heartbeat
	}
	checked := time.Now()
	for out.flush() {
		err := out.fill(ctx, reader, min(checkToken, time.Until(out.wrote.Add(every))))
		switch {
		case ctx.Err() != nil:
			return nil // the caller is gone
		case errors.Is(err, feed.ErrClosed):
			return out.end("the server stops; come back with the last id", nil)
		case errors.Is(err, feed.ErrSlow):
			return out.end("this reader is too slow; come back with the last id", nil)
		case err != nil:
			return out.end("the events cannot be read; come back with the last id", err)
		}
		if time.Since(checked) >= checkToken {
			checked = time.Now()
			if err := st.stillKnown(ctx, r.http); parley.CodeOf(err) == parley.Unauthenticated {
				return out.endNow("the token is not valid any more")
			}
		}
		if len(out.text) == 0 && time.Since(out.wrote) >= every {
			out.comment("still here")
		}
	}
	return nil
}

type listenersData struct {
	Listeners int `json:"listeners"`
	Webhooks  int `json:"webhooks"`
}

// listeners counts who is told of an event of a type on a sandbox channel.
func (s *server) listeners(ctx context.Context, r *request) (envelope[listenersData], error) {
	kind, known := parley.ParseEventType(r.OptionalText("type", 1, 100))
	if !known {
		r.Fail("type", "must be a type of events, one of %s.", strings.Join(typeNames(), ", "))
	}
	event := parley.Event{Channel: r.channel.Code, Type: kind}
	if err := r.Err(); err != nil {
		return envelope[listenersData]{}, err
	}
	webhooks, err := s.Store.Webhooks(ctx)
	if err != nil {
		return envelope[listenersData]{}, err
	}
	data := listenersData{Listeners: s.Feed.Listeners(event.Channel, event.Type)}
	for _, w := range webhooks {
		if w.DisabledAt.IsZero() && w.Filter().Wants(&event) {
			data.Webhooks++
		}
	}
	return ok("Listeners of "+string(event.Type), data), nil
}

// eventWriter writes server-sent events.
type eventWriter struct {
	http    http.ResponseWriter
	control *http.ResponseController
	text    []byte // not written yet
	wrote   time.Time
}

// fill waits up to a while for events, and takes those that are there.
func (w *eventWriter) fill(ctx context.Context, reader *feed.Reader, patience time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
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

// comment writes a line that clients leave aside.
func (w *eventWriter) comment(line string) { w.text = append(w.text, ": "+line+"\n\n"...) }

// flush writes what is to be written and reports whether the caller still takes it.
func (w *eventWriter) flush() bool {
	if len(w.text) == 0 {
		return true
	}
	w.wrote = time.Now()
	_ = w.control.SetWriteDeadline(w.wrote.Add(timeToTake))
	if _, err := w.http.Write(w.text); err != nil {
		return false
	}
	w.text = w.text[:0]
	return w.control.Flush() == nil
}

// end says why the stream ends, after what is still to be written.
func (w *eventWriter) end(why string, err error) error {
	w.comment(why)
	w.flush()
	return err
}

// endNow says why the stream ends, and tells nothing more.
func (w *eventWriter) endNow(why string) error {
	w.text = w.text[:0]
	return w.end(why, nil)
}
