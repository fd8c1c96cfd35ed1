package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/feed"
	"parley/internal/store"
)

// newStreamEnv is a gateway with a feed that runs.
func newStreamEnv(t *testing.T, buffer int, change ...func(*Config)) *env {
	t.Helper()
	return newEnv(t, append([]func(*Config){func(c *Config) {
		c.Feed = feed.New(feed.Config{Store: c.Store, Log: c.Log, Buffer: buffer})
		running, stop := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(func() { c.Feed.Run(running) })
		t.Cleanup(func() { stop(); wg.Wait() })
	}}, change...)...)
}

// tell adds events to the log, each with its number and some text.
func (e *env) tell(from, to int, text string) {
	e.t.Helper()
	err := e.config.Store.Tx(e.t.Context(), func(tx *store.Tx) error {
		for n := from; n < to; n++ {
			event := parley.Event{Type: parley.OTPExpired, Channel: "main", At: time.Now(), Chat: ayu,
				Data: fmt.Appendf(nil, `{"n":%d,"text":%q}`, n, text)}
			if err := tx.AddEvent(e.t.Context(), &event); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		e.t.Error(err)
	}
}

// listening is an open stream.
type listening struct {
	t    testing.TB
	body io.ReadCloser
	in   *bufio.Reader
	last string // the id of the last event
}

// listen opens a stream on a server. It is closed when the test ends.
func listen(t testing.TB, client *http.Client, url, token string, headers ...string) *listening {
	t.Helper()
	return listenAt(t, client, url+"/api/events?types=otp.expired", token, headers...)
}

func listenAt(t testing.TB, client *http.Client, address, token string, headers ...string) *listening {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	req := must(http.NewRequestWithContext(ctx, "GET", address, nil))(t)
	req.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp := must(client.Do(req))(t)
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the stream was refused: %d", resp.StatusCode)
	}
	return &listening{t: t, body: resp.Body, in: bufio.NewReader(resp.Body)}
}

// line returns the next line that is not empty. The error is how the stream ended.
func (l *listening) line() (string, error) {
	for {
		line, err := l.in.ReadString('\n')
		if line = strings.TrimSuffix(line, "\n"); line != "" || err != nil {
			return line, err
		}
	}
}

// event returns the data of the next event.
func (l *listening) event() (string, error) {
	for {
		line, err := l.line()
		if err != nil {
			return "", err
		}
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			l.last = id
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return data, nil
		}
	}
}

// numbered reports whether the next events are these.
func (l *listening) numbered(from, to int) error {
	for n := from; n < to; n++ {
		data, err := l.event()
		if err != nil {
			return fmt.Errorf("event %d: %w", n, err)
		}
		if !strings.Contains(data, fmt.Sprintf(`"data":{"n":%d,`, n)) {
			return fmt.Errorf("event %d is %.200s", n, data)
		}
	}
	return nil
}

// until reads to a comment and fails the test where the stream ends before.
func (l *listening) until(comment string) {
	l.t.Helper()
	for {
		line, err := l.line()
		if err != nil {
			l.t.Fatalf("the stream ended with %v before %q", err, comment)
		}
		if strings.HasPrefix(line, ": "+comment) {
			return
		}
	}
}

func TestHeartbeat(t *testing.T) {
	e := newStreamEnv(t, 0, func(c *Config) { c.Heartbeat = 20 * time.Millisecond })
	l := listen(t, e.server.Client(), e.server.URL, e.main)
	l.until("events follow")
	l.until("still here")
	l.until("still here")
	if heartbeat != 15*time.Second {
		t.Errorf("a heartbeat comes every %s without a setting, want 15 s", heartbeat)
	}
}

// TestStreamOutlivesDeadlines runs a stream on a server whose deadlines for a request are over long
// before the stream ends.
func TestStreamOutlivesDeadlines(t *testing.T) {
	t.Parallel()
	const deadline = 2 * time.Second
	e := newStreamEnv(t, 0, func(c *Config) { c.Heartbeat = deadline / 5 })
	server := httptest.NewUnstartedServer(e.handler)
	server.Config.ReadTimeout, server.Config.WriteTimeout = deadline, deadline
	server.Start()
	defer server.Close()
	l := listen(t, server.Client(), server.URL, e.main)
	for range 10 {
		l.until("still here")
	}
	e.tell(0, 1, "")
	if err := l.numbered(0, 1); err != nil {
		t.Error(err)
	}
	l.body.Close() // or the server would wait for it
}

// TestStreamsAreLimited opens as many streams as a token may have, and one more.
func TestStreamsAreLimited(t *testing.T) {
	const most = 5
	e := newStreamEnv(t, 0, func(c *Config) { c.StreamsPerToken = most })
	client := e.server.Client()
	first := listen(t, client, e.server.URL, e.main)
	first.until("events follow")
	for range most - 1 {
		listen(t, client, e.server.URL, e.main).until("events follow")
	}
	if r := e.call("GET", "/api/events", e.main, nil); r.StatusCode != 429 || r.Header.Get("RateLimit") != `"streams";r=0;t=1` {
		t.Errorf("one more: %d, %v, %s", r.StatusCode, r.Header, r.text)
	}
	listen(t, client, e.server.URL, e.token(parley.Token{ID: "tok_other", Kind: parley.ChannelToken, Channel: "main"})).until("events follow")
	first.body.Close()
	for status := 0; status != http.StatusOK; { // until the server has noticed
		req := must(http.NewRequestWithContext(t.Context(), "GET", e.server.URL+"/api/events", nil))(t)
		req.Header.Set("Authorization", "Bearer "+e.main)
		resp := must(client.Do(req))(t)
		status = resp.StatusCode
		resp.Body.Close()
	}
}

// TestRevokedTokenEndsStream ends a stream whose token is revoked, and does not wait for a heartbeat.
func TestRevokedTokenEndsStream(t *testing.T) {
	e := newStreamEnv(t, 0, func(c *Config) { c.Heartbeat = time.Hour })
	raw := e.token(parley.Token{ID: "tok_short", Kind: parley.ChannelToken, Channel: "main"})
	l := listen(t, e.server.Client(), e.server.URL, raw)
	l.until("events follow")
	if err := e.config.Tokens.Revoke(t.Context(), "tok_short"); err != nil {
		t.Fatal(err)
	}
	l.until("the token is no longer valid")
	if _, err := l.line(); err != io.EOF {
		t.Errorf("the stream ended with %v", err)
	}
}

// TestDemotedTokenEndsStream lowers the role of a token while its stream is open. The stream ends before it shows a pairing, which
// only operators may see; the next one leaves pairings out.
func TestDemotedTokenEndsStream(t *testing.T) {
	e := newStreamEnv(t, 0, func(c *Config) { c.Heartbeat = time.Hour })
	raw := e.token(parley.Token{ID: "tok_role", Kind: parley.AdminToken, Role: parley.Operator})
	address := e.server.URL + "/api/manage/events"
	l := listenAt(t, e.server.Client(), address, raw)
	l.until("events follow")
	nothing := func(*store.Tx, parley.Token, parley.Token) error { return nil }
	must(e.config.Tokens.Update(t.Context(), "tok_role", func(t *parley.Token) { t.Role = parley.Viewer }, nothing))(t)
	pairing := func() {
		if err := e.config.Store.Tx(t.Context(), func(tx *store.Tx) error {
			return tx.AddEvent(t.Context(), &parley.Event{Type: parley.ChannelPairing, Channel: "main", At: time.Now(), Data: []byte(`{}`)})
		}); err != nil {
			t.Fatal(err)
		}
	}
	pairing()
	for {
		line, err := l.line()
		if err != nil || strings.Contains(line, string(parley.ChannelPairing)) {
			t.Fatalf("got %q, %v", line, err)
		}
		if strings.HasPrefix(line, ": the role has changed") {
			break
		}
	}
	again := listenAt(t, e.server.Client(), address, raw)
	again.until("events follow")
	pairing()
	e.tell(0, 1, "")
	if data, err := again.event(); err != nil || strings.Contains(data, string(parley.ChannelPairing)) {
		t.Errorf("after the role was lowered: %s, %v", data, err)
	}
}

// TestStreamOfStartingChannel opens streams while the channel is only in the store. Other requests have to wait for it.
func TestStreamOfStartingChannel(t *testing.T) {
	e := newStreamEnv(t, 0)
	if err := e.config.Store.Tx(t.Context(), func(tx *store.Tx) error {
		return tx.AddChannel(t.Context(), parley.Channel{Code: "new", Network: parley.Sandbox})
	}); err != nil {
		t.Fatal(err)
	}
	raw := e.token(parley.Token{Kind: parley.ChannelToken, Channel: "new"})
	e.call("GET", "/api/channel/health", raw, nil).want(t, 503)
	listen(t, e.server.Client(), e.server.URL, raw).until("events follow")
	listen(t, e.server.Client(), e.server.URL, e.global, "X-Channel", "new").until("events follow")
	listenAt(t, e.server.Client(), e.server.URL+"/api/manage/events?channel=new", e.admin).until("events follow")
}

func TestClosedFeedEndsStreams(t *testing.T) {
	e := newStreamEnv(t, 0)
	l := listen(t, e.server.Client(), e.server.URL, e.global)
	l.until("events follow")
	e.config.Feed.Close()
	l.until("the server is stopping")
	if _, err := l.line(); err != io.EOF {
		t.Errorf("the stream ended with %v", err)
	}
}

// TestSlowReaderComesBack has a reader stop reading until it is cut off: what it then reads and what
// it gets when it comes back is everything, once.
func TestSlowReaderComesBack(t *testing.T) {
	e := newStreamEnv(t, 4)
	const small = 16 << 10 // so that little fits into the kernel
	server := httptest.NewUnstartedServer(e.handler)
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		c.(*net.TCPConn).SetWriteBuffer(small)
		return ctx
	}
	server.Start()
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err == nil {
			err = c.(*net.TCPConn).SetReadBuffer(small)
		}
		return c, err
	}}}
	defer client.CloseIdleConnections()

	slow := listen(t, client, server.URL, e.main)
	slow.until("events follow")
	quick := listen(t, server.Client(), server.URL, e.main)
	quick.until("events follow")
	const events, at = 600, 50
	for n := 0; n < events; n += at {
		e.tell(n, n+at, strings.Repeat("x", 2000))
		if err := quick.numbered(n, n+at); err != nil { // the slow one was given it too
			t.Fatal(err)
		}
	}
	quick.body.Close()
	got := 0
	for {
		data, err := slow.event()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("the slow reader's stream ended with %v", err)
		}
		if !strings.Contains(data, fmt.Sprintf(`"data":{"n":%d,`, got)) {
			t.Fatalf("event %d is %.200s", got, data)
		}
		got++
	}
	if got == 0 || got == events {
		t.Fatalf("the slow reader got %d events before it was cut off", got)
	}
	again := listen(t, e.server.Client(), e.server.URL, e.main, "Last-Event-ID", slow.last)
	if err := again.numbered(got, events); err != nil {
		t.Error(err)
	}
	again.body.Close()
}

func TestTwoHundredReaders(t *testing.T) {
	e := newStreamEnv(t, 0)
	const readers, events, at = 200, 300, 10
	all := make([]*listening, readers)
	for i := range all {
		all[i] = listen(t, e.server.Client(), e.server.URL, e.main)
		all[i].until("events follow")
	}
	if n := e.config.Feed.Listeners("main", parley.OTPExpired); n != readers {
		t.Errorf("%d listeners, want %d", n, readers)
	}
	var wg sync.WaitGroup
	for _, l := range all {
		wg.Go(func() {
			if err := l.numbered(0, events); err != nil {
				t.Error(err)
			}
		})
	}
	for n := 0; n < events; n += at {
		e.tell(n, n+at, "")
	}
	wg.Wait()
	for _, l := range all {
		l.body.Close()
	}
}

// TestPlaces finds where streams go on.
func TestPlaces(t *testing.T) {
	e := newStreamEnv(t, 0)
	for n := range 10 { // each in a transaction, and so in a row of its own
		e.tell(n, n+1, "")
	}
	events, last := func() ([]parley.Event, int64) {
		events, last, err := e.config.Store.Events(t.Context(), 0, parley.EventFilter{Types: []parley.EventType{parley.OTPExpired}}, 100)
		if err != nil {
			t.Fatal(err)
		}
		return events, last
	}()
	now := time.Now()
	err := e.config.Store.Tx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.PurgeEvents(t.Context(), 1e9, now.Add(time.Hour), 1e9, int(events[4].Seq)) // all have one row
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{config: e.config}
	for _, c := range []struct {
		name    string
		after   parley.EventID
		want    int64
		comment string
	}{
		{"none", "", last, ""},
		{"one that is there", events[7].ID, events[7].Seq, ""},
		{"one that was removed", events[1].ID, events[1].Seq, "was purged"},
		{"one of the future", parley.NewEventID(now, 1, last+1000), 0, "is unknown"},
		{"one of another log", parley.NewEventID(now.Add(time.Hour), 1, events[7].Seq), 0, "is unknown"},
	} {
		got, err := s.cursorAfter(t.Context(), c.after)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got.seq != c.want || !strings.Contains(got.comment, c.comment) || (got.comment == "") != (c.comment == "") {
			t.Errorf("%s: place %+v, want %d with %q", c.name, got, c.want, c.comment)
		}
		if (got.id == "") != (c.comment != "") {
			t.Errorf("%s: a stream would begin with id %q", c.name, got.id)
		}
	}
}
