package hostile_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/parleytest"
)

const (
	slowHeaders = 60 // connections that send a header byte by byte
	slowBodies  = 60 // connections that do so with a body
	stalled     = 80 // connections that never read what they asked for
)

// TestSlowClients holds useless connections while others work. A slow header is cut off after five seconds and
// a slow body after thirty: good requests and the end of all slow headers must come before the end of the
// first slow body. Afterwards nothing may be left. "make bench" measures it with hundreds of them.
func TestSlowClients(t *testing.T) {
	e := parleytest.Start(t)
	e.Get("/api/chat").Expect(http.StatusOK)
	before := measure()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &slow{Env: e, t: t, address: strings.TrimPrefix(e.URL, "http://")}
	s.connecting.Add(stalled + slowHeaders + slowBodies)
	var others, headers sync.WaitGroup
	var headersCut, bodiesCut atomic.Int64
	for range stalled {
		others.Go(func() { s.askAndStall(ctx) })
	}
	for range slowHeaders {
		headers.Go(func() { s.dribble(ctx, "POST /api/send-message/text HTTP/1.1\r\nHost: x\r\nX-Slow: ", &headersCut) })
	}
	for range slowBodies {
		others.Go(func() { s.dribble(ctx, s.slowBody(), &bodiesCut) })
	}

	s.connecting.Wait()
	requests := s.work(10)
	headers.Wait()
	if cut := bodiesCut.Load(); cut > 0 {
		t.Errorf("%d slow bodies were cut off before %d good requests were answered and all slow headers were cut off", cut, requests)
	}
	if cut := headersCut.Load(); cut != slowHeaders {
		t.Errorf("%d of %d slow headers were cut off", cut, slowHeaders)
	}

	cancel()
	others.Wait()
	e.Eventually("the goroutines of slow clients are gone", func() bool { return runtime.NumGoroutine() <= before.goroutines+10 })
	after := measure()
	if grown := int64(after.heap) - int64(before.heap); grown > 32<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	if total := e.Get("/api/chat/detail?contact_id=6281234567890@c.us").Number("meta.total"); total != requests {
		t.Errorf("%d messages are there, %d were sent: slow ones were accepted", total, requests)
	}
}

type usage struct {
	goroutines int
	heap       uint64
}

func measure() usage {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{runtime.NumGoroutine(), m.HeapAlloc}
}

type slow struct {
	*parleytest.Env
	t          *testing.T
	address    string
	connecting sync.WaitGroup // those that are not connected yet
}

// work sends messages on two connections, so many on each, and returns how many it sent.
func (s *slow) work(each int) (sent int) {
	var total atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range each {
				a, err := s.TryCall("POST", "/api/send-message/text", `{"contact_id":"6281234567890@c.us","message":"quick"}`)
				if err != nil || a.Status != http.StatusOK {
					s.t.Errorf("a good request failed: %+v, %v", a, err)
					return
				}
				total.Add(1)
			}
		})
	}
	wg.Wait()
	return int(total.Load())
}

// slowBody is a request that announces a body and has the first bytes of it.
func (s *slow) slowBody() string {
	return fmt.Sprintf("POST /api/send-message/text HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{\"message\":\"", s.Token)
}

// dribble begins a request and goes on byte by byte until the server hangs up, which it counts, or the test ends.
func (s *slow) dribble(ctx context.Context, beginning string, cut *atomic.Int64) {
	conn := s.dial(ctx)
	if conn == nil {
		return
	}
	if _, err := io.WriteString(conn, beginning); err != nil {
		s.t.Error(err)
	}
	gone := make(chan struct{})
	go func() { io.Copy(io.Discard, conn); close(gone) }() // ends when either side hangs up
	defer func() { conn.Close(); <-gone }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			io.WriteString(conn, "x") // fails when the server is gone, which the reader notices
		case <-gone:
			cut.Add(1)
			return
		case <-ctx.Done():
			return
		}
	}
}

// askAndStall asks for the same large answer again and again, and reads nothing.
func (s *slow) askAndStall(ctx context.Context) {
	conn := s.dial(ctx)
	if conn == nil {
		return
	}
	defer conn.Close()
	conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	ask := strings.Repeat("GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n", 50)
	if _, err := io.WriteString(conn, ask); err != nil {
		return
	}
	<-ctx.Done()
}

func (s *slow) dial(ctx context.Context) net.Conn {
	defer s.connecting.Done()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.address)
	if err != nil {
		s.t.Error(err)
		return nil
	}
	return conn
}
