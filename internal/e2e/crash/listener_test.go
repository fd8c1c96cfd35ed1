package crash_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"parley"
)

// moment is something at which the server may be killed.
type moment int

const (
	committed moment = iota // a client got its response: the work is stored, perhaps not published
	delivered               // the webhook was called, and has not answered
	reported                // the address of a login link was called, and has not answered
	streamed                // an event came on the stream
	moments
)

// fuse goes off at one of the next moments of a kind.
type fuse struct {
	mu   sync.Mutex
	at   moment
	left int           // how many more of them; zero: it is not set
	lit  chan struct{} // closed when it goes off
	dead chan struct{} // closed when the server is dead
}

// set has the fuse go off, and returns what is closed then.
func (f *fuse) set(at moment) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	most := 12
	if at == reported {
		most = 2 // there are few
	}
	f.at, f.left = at, 1+rand.N(most)
	f.lit, f.dead = make(chan struct{}), make(chan struct{})
	return f.lit
}

// pass is called at a moment. If it is the one, it returns when the server is dead: whatever the
// caller had to tell the server then comes too late.
func (f *fuse) pass(at moment) {
	f.mu.Lock()
	if f.left == 0 || at != f.at {
		f.mu.Unlock()
		return
	}
	f.left--
	lit, dead, goesOff := f.lit, f.dead, f.left == 0
	f.mu.Unlock()
	if goesOff {
		close(lit)
		<-dead
	}
}

// release tells who set the fuse off that the server is dead.
func (f *fuse) release() { close(f.dead) }

// listener is the server that the webhook and the addresses of login links lead to.
type listener struct {
	server *httptest.Server
	fuse   *fuse

	mu        sync.Mutex
	calls     int
	bodies    map[parley.EventID]string // what the webhook received
	last      map[string]int64          // the place of the last new event, by chat
	callbacks []linkCall
	wrong     []string
}

// linkCall is a request to the address of a login link.
type linkCall struct {
	path           string
	id             parley.OTPID
	event          parley.EventID
	status, reason string
}

func newListener(t *testing.T, f *fuse) *listener {
	l := &listener{fuse: f, bodies: map[parley.EventID]string{}, last: map[string]int64{}}
	l.server = httptest.NewServer(l)
	t.Cleanup(l.server.Close)
	return l
}

func (l *listener) url(path string) string { return l.server.URL + path }

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/hook" {
		if body, err := io.ReadAll(r.Body); err == nil { // else the server died while it wrote
			l.hear(parley.EventID(r.Header.Get("webhook-id")), body)
			l.fuse.pass(delivered)
		}
		return
	}
	q := r.URL.Query()
	l.mu.Lock()
	l.callbacks = append(l.callbacks, linkCall{r.URL.Path, parley.OTPID(q.Get("id")), parley.EventID(q.Get("event_id")), q.Get("status"),
		q.Get("reason")})
	l.mu.Unlock()
	l.fuse.pass(reported)
}

// heardEvent is what a webhook reads of an event.
type heardEvent struct {
	ID      parley.EventID
	Seq     int64
	Channel string
	Data    struct {
		ContactID string `json:"contact_id"`
	}
}

// chat is within what events come in order.
func (e heardEvent) chat() string { return e.Channel + " " + e.Data.ContactID }

// hear records what the webhook receives. The first time, it must come after all others of its chat that
// came before it in the log; later, it must be the same.
func (l *listener) hear(id parley.EventID, body []byte) {
	var event heardEvent
	err := json.Unmarshal(body, &event)
	chat := event.chat()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	known, again := l.bodies[id]
	switch {
	case err != nil || event.ID != id:
		l.wrong = append(l.wrong, fmt.Sprintf("webhook-id %s has the body %s", id, body))
	case again && known != string(body):
		l.wrong = append(l.wrong, fmt.Sprintf("event %s arrived as\n%s\nand then as\n%s", id, known, body))
	case !again && event.Seq <= l.last[chat]:
		l.wrong = append(l.wrong, fmt.Sprintf("event %d of %s came after %d", event.Seq, chat, l.last[chat]))
	}
	if !again {
		l.bodies[id], l.last[chat] = string(body), event.Seq
	}
}

// counts returns how often the webhook was called, and how often of that with what it knew.
func (l *listener) counts() (calls, again int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls, l.calls - len(l.bodies)
}

// streamReader follows the event stream, and comes back whenever it breaks.
type streamReader struct {
	server *testServer
	fuse   *fuse
	began  int64 // the place in the log that it began after

	mu    sync.Mutex
	heard []parley.EventID
	opens int
}

// followStream follows the stream until the test ends. When it returns the stream has begun.
func followStream(t *testing.T, s *testServer, f *fuse) *streamReader {
	t.Helper()
	r := &streamReader{server: s, fuse: f}
	ctx, cancel := context.WithCancel(context.Background())
	begun := make(chan parley.EventID, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		for last := parley.EventID(""); ctx.Err() == nil; {
			last = r.read(ctx, last, begun)
			select {
			case <-s.whenUp():
			case <-ctx.Done():
			}
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	var err error
	if r.began, err = (<-begun).Seq(); err != nil {
		t.Fatal(err)
	}
	return r
}

// read reads the stream after an event until it breaks, and returns the last event that it got whole.
// The stream begins with its cursor, an id without an event.
func (r *streamReader) read(ctx context.Context, last parley.EventID, begun chan<- parley.EventID) parley.EventID {
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+r.server.addr+"/api/events", nil)
	if err != nil {
		return last
	}
	req.Header.Set("Authorization", "Bearer "+r.server.token)
	if last != "" {
		req.Header.Set("Last-Event-ID", string(last))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return last
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return last
	}
	r.mu.Lock()
	r.opens++
	r.mu.Unlock()
	in := bufio.NewReader(resp.Body)
	var id parley.EventID
	whole := false // data came
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return last
		}
		if value, ok := strings.CutPrefix(line, "id: "); ok {
			id = parley.EventID(strings.TrimSpace(value))
		}
		whole = whole || strings.HasPrefix(line, "data: ")
		switch {
		case line != "\n" || id == "": // not the end of anything that counts
			continue
		case whole:
			r.hear(id)
		case last == "":
			begun <- id
		}
		last, id, whole = id, "", false
	}
}

func (r *streamReader) hear(id parley.EventID) {
	r.mu.Lock()
	r.heard = append(r.heard, id)
	r.mu.Unlock()
	r.fuse.pass(streamed)
}

// ids lists the events that came, in the order in which they came.
func (r *streamReader) ids() []parley.EventID {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heard[:len(r.heard):len(r.heard)]
}

// returns is how often the reader came back.
func (r *streamReader) returns() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.opens - 1
}
