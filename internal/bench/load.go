package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

type load struct {
	requests  int
	elapsed   time.Duration
	latencies []time.Duration
}

func (l load) rate() float64 { return float64(l.requests) / l.elapsed.Seconds() }

// drive repeats requests for d, as fast as responses arrive. Each connection has its share of them, which it sends in turn.
// Every response must be 2xx and contain want. The client is minimal, because it shares the cores with the server.
func drive(addr string, connections int, requests [][]byte, want string, d time.Duration) (load, error) {
	until := time.Now().Add(d)
	var mu sync.Mutex
	var latencies []time.Duration
	l, err := onConnections(addr, connections, func(n int, c *client) error {
		own := make([]time.Duration, 0, 4096)
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			latencies = append(latencies, own...)
		}()
		next := n
		for sent := time.Now(); !sent.After(until); sent = time.Now() {
			if _, err := c.do(requests[next], []byte(want)); err != nil {
				return err
			}
			own = append(own, time.Since(sent))
			if next += connections; next >= len(requests) {
				next = n
			}
		}
		return nil
	})
	l.latencies, l.requests = latencies, len(latencies)
	return l, err
}

// driveOnce sends each request once, as fast as responses arrive, and passes the responses to handle, which may be nil.
func driveOnce(addr string, connections int, requests [][]byte, want string, handle func(i int, response []byte) error) (load, error) {
	var next atomic.Int64
	latencies := make([]time.Duration, len(requests))
	l, err := onConnections(addr, connections, func(_ int, c *client) error {
		for i := next.Add(1) - 1; i < int64(len(requests)); i = next.Add(1) - 1 {
			sent := time.Now()
			response, err := c.do(requests[i], []byte(want))
			latencies[i] = time.Since(sent)
			if err == nil && handle != nil {
				err = handle(int(i), response)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	l.latencies, l.requests = latencies, len(requests)
	return l, err
}

// pace sends each request once, at a constant rate. A request delayed by the one before it on its connection is late:
// its latency counts from when it was due.
func pace(addr string, connections, perSecond int, requests [][]byte, want string) (load, error) {
	latencies := make([]time.Duration, len(requests))
	l, err := onConnections(addr, connections, func(n int, c *client) error {
		if _, err := c.do(get("/readyz", ""), nil); err != nil { // the server has accepted the connection
			return err
		}
		start := time.Now()
		for i := n; i < len(requests); i += connections {
			sent := start.Add(time.Duration(i) * time.Second / time.Duration(perSecond))
			if wait := time.Until(sent); wait > 0 {
				time.Sleep(wait)
				sent = time.Now() // the timer's inaccuracy does not count
			}
			if _, err := c.do(requests[i], []byte(want)); err != nil {
				return err
			}
			latencies[i] = time.Since(sent)
		}
		return nil
	})
	l.latencies, l.requests = latencies, len(requests)
	return l, err
}

// onConnections calls f once for each of so many connections, concurrently.
func onConnections(addr string, count int, f func(n int, c *client) error) (load, error) {
	errs := make([]error, count)
	var wg sync.WaitGroup
	start := time.Now()
	for n := range count {
		wg.Go(func() {
			c, err := dial(addr)
			if err == nil {
				err = f(n, c)
				c.Close()
			}
			errs[n] = err
		})
	}
	wg.Wait()
	return load{elapsed: time.Since(start)}, errors.Join(errs...)
}

type client struct {
	net.Conn
	in   *bufio.Reader
	body []byte
}

func dial(addr string) (*client, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &client{conn, bufio.NewReaderSize(conn, 16<<10), make([]byte, 64<<10)}, nil
}

// do sends a request and returns the body of the response, valid until the next call. It must be 2xx and contain want.
func (c *client) do(request, want []byte) ([]byte, error) {
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	n, status, err := readResponse(c.in, c.body)
	if err != nil {
		return nil, err
	}
	if status/100 != 2 || !bytes.Contains(c.body[:n], want) {
		return nil, fmt.Errorf("response %d: %s", status, c.body[:n])
	}
	return c.body[:n], nil
}

// readResponse reads one HTTP/1.1 response that has a Content-Length.
func readResponse(in *bufio.Reader, body []byte) (n, status int, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return 0, 0, err
	}
	if len(line) < 12 {
		return 0, 0, fmt.Errorf("bad status line %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, 0, err
	}
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return 0, 0, err
		}
		if len(line) <= 2 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if n, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, 0, err
			}
		}
	}
	if n > len(body) {
		return 0, 0, fmt.Errorf("response of %d bytes", n)
	}
	_, err = io.ReadFull(in, body[:n])
	return n, status, err
}

func post(path, token, body string) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\n"+
		"Content-Length: %d\r\n\r\n%s", path, token, len(body), body)
}

func get(path, token string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", path, token)
}

const benchText = "Your order 4711 is on its way and arrives tomorrow."

func sendText(number, token string) []byte {
	return post("/api/send-message/text", token, fmt.Sprintf(`{"contact_id":"%s@c.us","message":"%s"}`, number, benchText))
}

func quantile(ds []time.Duration, q float64) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(ds))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func median(xs []float64) float64 {
	sorted := slices.Sorted(slices.Values(xs))
	return sorted[len(sorted)/2]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
