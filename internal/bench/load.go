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

// load is what one slice of load gave.
type load struct {
	requests  int
	elapsed   time.Duration
	latencies []time.Duration
}

func (l load) rate() float64 { return float64(l.requests) / l.elapsed.Seconds() }

// drive sends requests over as many connections as there are request texts, each as fast as it is
// answered, and checks that every answer is a good one that contains want. The client is as small as it
// can be, because it shares the cores with the server.
func drive(addr string, requests [][]byte, want string, d time.Duration) (load, error) {
	var (
		mu    sync.Mutex
		total load
		first error
		wg    sync.WaitGroup
	)
	start := time.Now()
	for _, request := range requests {
		wg.Go(func() {
			latencies, err := driveOne(addr, request, []byte(want), start.Add(d))
			mu.Lock()
			defer mu.Unlock()
			total.latencies = append(total.latencies, latencies...)
			if err != nil && first == nil {
				first = err
			}
		})
	}
	wg.Wait()
	total.elapsed = time.Since(start)
	total.requests = len(total.latencies)
	return total, first
}

func driveOne(addr string, request, want []byte, until time.Time) ([]time.Duration, error) {
	c, err := dial(addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	latencies := make([]time.Duration, 0, 4096)
	for {
		sent := time.Now()
		if sent.After(until) {
			return latencies, nil
		}
		if _, err := c.do(request, want); err != nil {
			return latencies, err
		}
		latencies = append(latencies, time.Since(sent))
	}
}

// driveOnce sends each request once, over so many connections, each as fast as it is answered, and
// hands the answers to take. Nil: nobody wants them.
func driveOnce(addr string, connections int, requests [][]byte, want string, take func(i int, answer []byte) error) (load, error) {
	var (
		next  atomic.Int64
		wg    sync.WaitGroup
		total = load{latencies: make([]time.Duration, len(requests)), requests: len(requests)}
		errs  = make([]error, connections)
	)
	start := time.Now()
	for n := range connections {
		wg.Go(func() {
			c, err := dial(addr)
			if err != nil {
				errs[n] = err
				return
			}
			defer c.Close()
			for i := next.Add(1) - 1; i < int64(len(requests)); i = next.Add(1) - 1 {
				sent := time.Now()
				answer, err := c.do(requests[i], []byte(want))
				total.latencies[i] = time.Since(sent)
				if err == nil && take != nil {
					err = take(int(i), answer)
				}
				if err != nil {
					errs[n] = err
					return
				}
			}
		})
	}
	wg.Wait()
	total.elapsed = time.Since(start)
	return total, errors.Join(errs...)
}

// pace sends each request once, so many in a second at even distances, over so many connections. A
// request that is late because the one before it on its connection was slow is late all the same:
// its latency counts from when it was due.
func pace(addr string, connections, perSecond int, requests [][]byte, want string) (load, error) {
	var (
		wg    sync.WaitGroup
		total = load{latencies: make([]time.Duration, len(requests)), requests: len(requests)}
		errs  = make([]error, connections)
	)
	clients := make([]*client, connections)
	for n := range clients {
		c, err := dial(addr)
		if err != nil {
			return load{}, err
		}
		defer c.Close()
		if _, err := c.do(get("/readyz", ""), nil); err != nil { // so that the server knows the connection
			return load{}, err
		}
		clients[n] = c
	}
	start := time.Now()
	for n, c := range clients {
		wg.Go(func() {
			for i := n; i < len(requests) && errs[n] == nil; i += connections {
				sent := start.Add(time.Duration(i) * time.Second / time.Duration(perSecond))
				if wait := time.Until(sent); wait > 0 {
					time.Sleep(wait)
					sent = time.Now() // how exactly we wake up is not the server's doing
				}
				_, errs[n] = c.do(requests[i], []byte(want))
				total.latencies[i] = time.Since(sent)
			}
		})
	}
	wg.Wait()
	total.elapsed = time.Since(start)
	return total, errors.Join(errs...)
}

// client is one connection.
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

// do sends a request and returns the answer, good until the next one, which must be a good one that
// contains want.
func (c *client) do(request, want []byte) ([]byte, error) {
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	n, status, err := readAnswer(c.in, c.body)
	if err != nil {
		return nil, err
	}
	if status/100 != 2 || !bytes.Contains(c.body[:n], want) {
		return nil, fmt.Errorf("answer %d: %s", status, c.body[:n])
	}
	return c.body[:n], nil
}

// readAnswer reads one HTTP/1.1 answer that has a Content-Length.
func readAnswer(in *bufio.Reader, body []byte) (n, status int, err error) {
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
		return 0, 0, fmt.Errorf("answer of %d bytes", n)
	}
	_, err = io.ReadFull(in, body[:n])
	return n, status, err
}

func post(path, token, body string) []byte { return request("POST", path, token, body) }

// request writes a whole HTTP request with a body.
func request(method, path, token, body string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n", method, path)
	if token != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", token)
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return b.Bytes()
}

func get(path, token string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", path, token)
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
