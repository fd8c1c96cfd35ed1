package contract_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/parleytest"
	"parley/internal/store"
)

// stream is the events that a caller follows.
type stream struct {
	t        *testing.T
	header   http.Header
	in       *bufio.Reader
	close    func()
	comments []string
	lastID   string
}

// streamEvent is an event of the stream.
type streamEvent struct {
	Seq     int64
	ID      string
	Type    string
	Channel string
	Data    map[string]any
}

// follow opens a stream, which ends with the test at the latest.
func follow(t *testing.T, e *parleytest.Env, path string, options ...parleytest.Option) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), parleytest.WaitLimit)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", e.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	parleytest.As(e.Token)(req)
	for _, o := range options {
		o(req)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		t.Fatalf("GET %s: answer %d: %s", path, resp.StatusCode, body)
	}
	return &stream{t: t, header: resp.Header, in: bufio.NewReader(resp.Body), close: func() { cancel(); resp.Body.Close() }}
}

// read returns the next event, or how the stream ended. It holds the event to the document.
func (s *stream) read() (streamEvent, error) {
	s.t.Helper()
	var data, kind string
	for {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return streamEvent{}, err
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case strings.HasPrefix(line, ": "):
			s.comments = append(s.comments, line[2:])
		case line == "" && data != "":
			return s.check(kind, data), nil
		case name == "id":
			s.lastID = value
		case name == "event":
			kind = value
		case name == "data":
			data = value
		case line != "" && name != "retry":
			s.t.Errorf("a line that says nothing: %q", line)
		}
	}
}

// check holds an event to the document and to the lines around it.
func (s *stream) check(kind, data string) streamEvent {
	s.t.Helper()
	var e streamEvent
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		s.t.Fatalf("%v: %s", err, data)
	}
	if e.ID != s.lastID || e.Type != kind {
		s.t.Errorf("id %q and event %q come with %s", s.lastID, kind, data)
	}
	if err := parleytest.CheckSchema("Event", []byte(data)); err != nil {
		s.t.Errorf("not as the OpenAPI document says: %v\n%s", err, data)
	}
	return e
}

// next returns the next event, which must come.
func (s *stream) next() streamEvent {
	s.t.Helper()
	e, err := s.read()
	if err != nil {
		s.t.Fatalf("the stream ended: %v", err)
	}
	return e
}

// want returns the next event, which must be of a type.
func (s *stream) want(kind string) streamEvent {
	s.t.Helper()
	e := s.next()
	if e.Type != kind {
		s.t.Fatalf("got %s %v, want %s", e.Type, e.Data, kind)
	}
	return e
}

func TestStreamBeginsAtOnce(t *testing.T) {
	e := parleytest.Start(t)
	s := follow(t, e, "/api/events")
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no", "Content-Encoding": "",
	} {
		if got := s.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if s.header.Get("X-Request-Id") == "" {
		t.Error("there is no X-Request-Id")
	}
	first, err := s.in.ReadString('\n')
	if err != nil || !strings.HasPrefix(first, ": ") {
		t.Errorf("the first line is %q, %v", first, err)
	}
	e.Call("HEAD", "/api/events", "").Expect(http.StatusOK)
}

// TestStreamTellsWhatHappens follows a day of a channel.
func TestStreamTellsWhatHappens(t *testing.T) {
	e := parleytest.Start(t)
	phone := e.Phone("6281234567890")
	phone.Becomes(`{"reads":"when_open"}`)
	s := follow(t, e, "/api/events?types=message.received,message.status,message.reaction,message.deleted,poll.vote")

	phone.Types("menu")
	received := s.want("message.received")
	for name, want := range map[string]any{"contact_id": phone.Contact(), "body": "menu", "from_me": "false", "status": "RECEIVED",
		"type": "text"} {
		if received.Data[name] != want {
			t.Errorf("%s is %v, want %v", name, received.Data[name], want)
		}
	}
	if received.Channel != "demo" {
		t.Errorf("the channel is %q", received.Channel)
	}

	poll := e.Post("/api/send-message/poll", `{"contact_id":"`+phone.Contact()+`","title":"When?","options":["now","later"]}`).
		Expect(http.StatusOK).Text("data.message_id")
	for _, status := range []string{"SENT", "DELIVERED"} {
		if got := s.want("message.status"); got.Data["status"] != status || got.Data["message_id"] != poll {
			t.Errorf("got %v, want %s of %s", got.Data, status, poll)
		}
	}
	phone.Reads()
	if got := s.want("message.status"); got.Data["status"] != "READ" {
		t.Errorf("got %v, want READ", got.Data)
	}
	phone.Sends(`{"type":"vote","message_id":"` + poll + `","options":["later"]}`)
	if vote := s.want("poll.vote").Data["vote"].(map[string]any); vote["contact_id"] != phone.Contact() ||
		vote["options"].([]any)[0] != "later" {
		t.Errorf("the vote is %v", vote)
	}
	phone.Sends(`{"type":"reaction","message_id":"` + poll + `","reaction":"👍"}`)
	reaction := s.want("message.reaction").Data["reaction"].(map[string]any)
	if reaction["emoji"] != "👍" || reaction["from_me"] != "false" || reaction["outgoing"] != false {
		t.Errorf("the reaction is %v", reaction)
	}
	phone.Sends(`{"type":"delete","message_id":"` + received.Data["message_id"].(string) + `"}`)
	if deleted := s.want("message.deleted"); deleted.Data["status"] != "DELETED" || deleted.Data["body"] != "" {
		t.Errorf("the deletion is %v", deleted.Data)
	}
}

func TestStreamFilters(t *testing.T) {
	e := parleytest.Start(t)
	shop := e.CreateChannel("shop")
	own := follow(t, e, "/api/events?types=message.received")
	other := follow(t, e, "/api/events?types=message.received", parleytest.As(shop))
	all := follow(t, e, "/api/events?types=message.received,%20otp.failed", parleytest.As(e.Global))
	pinned := follow(t, e, "/api/events?types=message.received", parleytest.As(e.Global), parleytest.On("shop"))
	named := follow(t, e, "/api/events?types=message.received&channel=shop", parleytest.As(e.Global))
	managed := follow(t, e, "/api/manage/events?types=message.received", parleytest.As(e.Admin))
	managedOne := follow(t, e, "/api/manage/events?types=message.received&channel=shop", parleytest.As(e.Admin))

	e.Post(sendText, textTo("6281234567890")).Expect(http.StatusOK) // its statuses are not asked for
	e.Phone("6281234567890").Types("to demo")
	first := own.want("message.received")
	e.PhoneFor(shop, "6281234567890").Types("to shop")
	if got := other.want("message.received"); got.Channel != "shop" {
		t.Errorf("a stream of shop tells of %s", got.Channel)
	}
	for name, s := range map[string]*stream{"Global": all, "admin": managed} {
		if a, b := s.want("message.received"), s.want("message.received"); a.Channel != "demo" || b.Channel != "shop" || a.ID != first.ID {
			t.Errorf("a stream of all by %s tells of %s, then %s", name, a.Channel, b.Channel)
		}
	}
	for name, s := range map[string]*stream{"X-Channel": pinned, "channel": named, "manage": managedOne} {
		if got := s.want("message.received"); got.Channel != "shop" {
			t.Errorf("a stream of shop by %s tells of %s", name, got.Channel)
		}
	}
}

func TestStreamRefusals(t *testing.T) {
	e := parleytest.Start(t)
	e.CreateChannel("shop")
	global := parleytest.As(e.Global)
	e.Get("/api/events?types=message.received,message.sent").ExpectFields("types").ExpectError(http.StatusUnprocessableEntity,
		"commas: message.received, message.status")
	e.Get("/api/events?types=").ExpectFields("types")
	e.Get("/api/events?after=yesterday").ExpectFields("after")
	e.Get("/api/events", parleytest.With("Last-Event-ID", "12")).ExpectFields("Last-Event-ID")
	e.Get("/api/events?types=x&after=y&channel=none", global).ExpectFields("types", "after", "channel")
	e.Get("/api/events?channel=demo", global, parleytest.On("shop")).ExpectFields("channel")
	e.Get("/api/events", global, parleytest.On("none")).ExpectError(http.StatusBadRequest, "X-Channel")
	e.Get("/api/events?channel=shop").ExpectError(http.StatusForbidden, "only for channel demo")
	e.Get("/api/events", parleytest.On("shop")).ExpectError(http.StatusForbidden, "only for channel demo")
	e.Get("/api/events", parleytest.As(e.Admin)).ExpectError(http.StatusForbidden, "only with the management API")
	e.Get("/api/manage/events").ExpectError(http.StatusForbidden, "admin token")
	e.Get("/api/manage/events", global).ExpectError(http.StatusForbidden, "admin token")
	e.Get("/api/events", parleytest.As("")).Expect(http.StatusUnauthorized)
	e.Post("/api/events", `{}`).Expect(http.StatusMethodNotAllowed)
}

// TestStreamGoesOnAfterRestart has a caller follow the events of a gateway that ends and starts again:
// it gets everything, once.
func TestStreamGoesOnAfterRestart(t *testing.T) {
	e := parleytest.Start(t)
	phone := e.Phone("6281234567890")
	const path = "/api/events?types=message.received"
	s := follow(t, e, path)
	phone.Types("1")
	phone.Types("2")
	phone.Types("3")
	var got []string
	got = append(got, s.want("message.received").Data["body"].(string)) // and then it loses the connection
	s.close()
	others := follow(t, e, path, parleytest.With("Last-Event-ID", s.lastID))
	others.want("message.received") // what the phone sent arrives a moment later
	others.want("message.received")
	others.close()

	drained := follow(t, e, path)
	e.Restart()
	for {
		if _, err := drained.read(); err == io.EOF { // it was ended, not cut off when the gateway had waited for it in vain
			break
		} else if err != nil {
			t.Fatalf("the stream ended with %v", err)
		}
	}
	e.Phone("6281234567890").Types("4")
	again := follow(t, e, path, parleytest.With("Last-Event-ID", s.lastID))
	for range 3 {
		got = append(got, again.want("message.received").Data["body"].(string))
	}
	phone.Types("5")
	got = append(got, again.want("message.received").Data["body"].(string))
	if want := []string{"1", "2", "3", "4", "5"}; !slices.Equal(got, want) {
		t.Errorf("the caller received %q, want %q", got, want)
	}

	// A caller that got no event yet can come back, too: the stream says where it began.
	if drained.lastID == "" {
		t.Fatal("a stream without events has no id")
	}
	late := follow(t, e, path+"&after="+drained.lastID)
	if body := late.want("message.received").Data["body"]; body != "4" {
		t.Errorf("after the restart the caller received %v first", body)
	}
}

// TestStreamAfterRetention comes back with an event that is not kept any more.
func TestStreamAfterRetention(t *testing.T) {
	e := parleytest.Start(t)
	s := follow(t, e, "/api/events?types=message.received")
	e.Phone("6281234567890").Types("1")
	s.want("message.received")
	data := e.OpenData()
	defer data.Close()
	err := data.Store.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.PurgeEvents(t.Context(), 1e9, time.Now().Add(time.Hour), 1e9, 1000)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	e.Phone("6281234567890").Types("2")
	again := follow(t, e, "/api/events?types=message.received", parleytest.With("Last-Event-ID", s.lastID))
	if body := again.want("message.received").Data["body"]; body != "2" {
		t.Errorf("got %v", body)
	}
	if comments := strings.Join(again.comments, "\n"); !strings.Contains(comments, "was purged") {
		t.Errorf("the comments are %q", comments)
	}
}
