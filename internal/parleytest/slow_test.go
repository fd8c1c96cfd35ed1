package parleytest_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/internal/parleytest"
)

const (
	dribblers = 300 // connections that send a byte now and then, half of them in the header
	stalled   = 200 // connections that never read what they asked for

	// headerPatience is what the server grants a header, and much for a machine that is busy. It is less
	// than what a whole request is granted, so another limit cannot pass for this one.
	headerPatience = 5*time.Second + 20*time.Second
)

// TestSlowClients holds hundreds of connections that are no use to anybody while others work. Slow
// headers must be cut off, the others must not notice, and afterwards nothing may be left.
func TestSlowClients(t *testing.T) {
	e := parleytest.Start(t)
	e.Get("/api/chat").Expect(http.StatusOK)
	before := measure()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &slow{Env: e, t: t, address: strings.TrimPrefix(e.URL, "http://")}
	s.there.Add(dribblers + stalled)
	var crowd, headers sync.WaitGroup
	for i := range dribblers {
		if i%2 == 0 {
			headers.Go(func() { s.dribbleHeader(ctx) })
		} else {
			crowd.Go(func() { s.dribbleBody(ctx) })
		}
	}
	for range stalled {
		crowd.Go(func() { s.askAndStall(ctx) })
	}

	// While they hold on, somebody works: once they are all there, because five hundred connections made at
	// once are another matter. It ends when all slow headers were cut off.
	s.there.Wait()
	cutOff := make(chan struct{})
	go func() { headers.Wait(); close(cutOff) }()
	took := s.work(cutOff)
	slices.Sort(took)
	p99 := took[len(took)*99/100]
	t.Logf("%d requests beside %d slow connections: median %s, p99 %s; most goroutines %d", len(took), dribblers+stalled, took[len(took)/2], p99, runtime.NumGoroutine())
	if p99 > time.Second {
		t.Errorf("p99 is %s beside slow clients, want under a second", p99)
	}
	if cut := s.cut.Load(); cut != dribblers/2 {
		t.Errorf("%d of %d slow headers were cut off", cut, dribblers/2)
	}

	cancel()
	crowd.Wait()
	e.Eventually("the goroutines of slow clients are gone", func() bool { return runtime.NumGoroutine() <= before.goroutines+10 })
	after := measure()
	if grown := int64(after.heap) - int64(before.heap); grown > 32<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	if total := e.Get("/api/chat/detail?contact_id=6281234567890@c.us").Number("meta.total"); total != len(took) {
		t.Errorf("%d messages are there, %d were sent: slow ones were taken", total, len(took))
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
	t       *testing.T
	address string
	cut     atomic.Int64   // slow headers that the server did not wait for
	there   sync.WaitGroup // those who are not connected yet
}

// work sends messages, one after the other on each of a few connections, until done.
func (s *slow) work(done <-chan struct{}) (took []time.Duration) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				begun := time.Now()
				a, err := s.TryCall("POST", "/api/send-message/text", `{"contact_id":"6281234567890@c.us","message":"quick"}`)
				if err != nil || a.Status != http.StatusOK {
					s.t.Errorf("a good request failed: %+v, %v", a, err)
					return
				}
				mu.Lock()
				took = append(took, time.Since(begun))
				mu.Unlock()
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	wg.Wait()
	return took
}

// dribbleHeader sends the bytes of a header one by one until the server hangs up.
func (s *slow) dribbleHeader(ctx context.Context) {
	conn := s.dial(ctx)
	if conn == nil {
		return
	}
	defer conn.Close()
	begun := time.Now()
	if _, err := io.WriteString(conn, "POST /api/send-message/text HTTP/1.1\r\nHost: x\r\nX-Slow: "); err != nil {
		s.t.Error(err)
		return
	}
	gone := make(chan struct{})
	go func() { io.Copy(io.Discard, conn); close(gone) }() // ends when the server hangs up, or we do
	defer func() { conn.Close(); <-gone }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			io.WriteString(conn, "x") // fails when the server is gone, which the reader notices
		case <-gone:
			if took := time.Since(begun); took > headerPatience {
				s.t.Errorf("a slow header was cut off after %s", took)
			}
			s.cut.Add(1)
			return
		case <-ctx.Done():
			return
		}
	}
}

// dribbleBody announces a body and sends it byte by byte until the test has seen enough.
func (s *slow) dribbleBody(ctx context.Context) {
	conn := s.dial(ctx)
	if conn == nil {
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /api/send-message/text HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{\"message\":\"", s.Token)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if _, err := io.WriteString(conn, "x"); err != nil {
				return
			}
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
	defer s.there.Done()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.address)
	if err != nil {
		s.t.Error(err)
		return nil
	}
	return conn
}
