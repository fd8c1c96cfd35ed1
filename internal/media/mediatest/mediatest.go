// Package mediatest is an S3 server on loopback for tests. It checks every signature and the hash of every upload, and
// fails on request.
//
// Invariant: a request with a wrong signature or hash changes nothing.
package mediatest

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// The keys and the region that the server accepts.
const (
	AccessKey = "PARLEYTESTKEY"
	SecretKey = "a secret that must never be logged"
	Region    = "test-1"
)

// Server is an S3 server with one bucket.
type Server struct {
	URL, Bucket string

	backend *s3mem.Backend
	fake    http.Handler
	clock   *clock
	closed  chan struct{}

	mu       sync.Mutex
	faults   []Fault
	requests []string // method, path and range
	verified int
}

// New starts a server with a bucket.
func New(t testing.TB, bucket string) *Server {
	t.Helper()
	c := &clock{now: time.Now()}
	s := &Server{Bucket: bucket, backend: s3mem.New(s3mem.WithTimeSource(c)), clock: c, closed: make(chan struct{})}
	if err := s.backend.CreateBucket(bucket); err != nil {
		t.Fatal(err)
	}
	s.fake = gofakes3.New(s.backend, gofakes3.WithTimeSource(c), gofakes3.WithTimeSkewLimit(0)).Server()
	server := httptest.NewServer(s.inject(s.verify(s.fake)))
	s.URL = server.URL
	t.Cleanup(func() {
		close(s.closed)
		server.Close()
	})
	return s
}

// Inject makes the next requests fail, one for each fault.
func (s *Server) Inject(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Heal removes the faults that did not happen yet, and returns their number.
func (s *Server) Heal() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := len(s.faults)
	s.faults = nil
	return left
}

// Verified is how many signatures were checked and found good.
func (s *Server) Verified() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.verified
}

// Requests are the requests so far, as method, path and range.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// SetTime sets the time of objects that are stored from now on.
func (s *Server) SetTime(now time.Time) { s.clock.set(now) }

// Objects lists the names of all objects.
func (s *Server) Objects(t testing.TB) []string {
	t.Helper()
	list, err := s.backend.ListBucket(s.Bucket, &gofakes3.Prefix{}, gofakes3.ListBucketPage{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range list.Contents {
		names = append(names, o.Key)
	}
	return names
}

func (s *Server) inject(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("Range")))
		at := slices.IndexFunc(s.faults, func(f Fault) bool { return f.isFor(r) })
		if at < 0 {
			s.mu.Unlock()
			next.ServeHTTP(w, r)
			return
		}
		fault := s.faults[at]
		s.faults = slices.Delete(s.faults, at, at+1)
		s.mu.Unlock()
		fault.act(w, r, next)
	})
}

// Fault is what goes wrong with one request.
type Fault struct {
	method, path string // empty: any
	act          func(w http.ResponseWriter, r *http.Request, next http.Handler)
}

func (f Fault) isFor(r *http.Request) bool {
	return (f.method == "" || f.method == r.Method) && strings.Contains(r.URL.Path, f.path)
}

// For limits a fault to requests with a method whose path contains a text.
func (f Fault) For(method, path string) Fault {
	f.method, f.path = method, path
	return f
}

// Times repeats a fault.
func (f Fault) Times(n int) []Fault { return slices.Repeat([]Fault{f}, n) }

// Status fails a request with a status and a code of S3.
func Status(status int, code string) Fault {
	return Fault{act: func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		io.Copy(io.Discard, r.Body)
		refuse(w, status, code, "injected")
	}}
}

// Slow delays a response. It does not read the request meanwhile.
func (s *Server) Slow(d time.Duration) Fault {
	return Fault{act: func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		select {
		case <-time.After(d):
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		case <-s.closed:
		}
	}}
}

// Cut sends the first bytes of a response's body and closes the connection.
func Cut(bytes int) Fault {
	return Fault{act: func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(&cutWriter{w, bytes}, r)
	}}
}

// Stall sends the first bytes of a response's body and then nothing, until the client leaves.
func Stall(bytes int) Fault {
	return Fault{act: func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		recorded := httptest.NewRecorder()
		next.ServeHTTP(recorded, r)
		maps.Copy(w.Header(), recorded.Header())
		w.Header().Set("Content-Length", strconv.Itoa(recorded.Body.Len()))
		w.WriteHeader(recorded.Code)
		w.Write(recorded.Body.Next(bytes))
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}}
}

// IgnoreRange sends a whole object to a request for a part of it.
func (s *Server) IgnoreRange() Fault {
	return Fault{act: func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		r.Header.Del("Range") // it is signed, so the signature is not checked
		s.fake.ServeHTTP(w, r)
	}}
}

type cutWriter struct {
	http.ResponseWriter
	left int
}

func (w *cutWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		w.ResponseWriter.Write(p[:w.left])
		http.NewResponseController(w.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	w.left -= len(p)
	return w.ResponseWriter.Write(p)
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>%s</Message></Error>`, code, message)
}

// clock is a time source that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
