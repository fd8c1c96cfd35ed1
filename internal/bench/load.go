package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
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
// answered, and checks that every answer is a 200 that contains want. The client is as small as it
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
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	in := bufio.NewReaderSize(conn, 16<<10)
	body := make([]byte, 64<<10)
	latencies := make([]time.Duration, 0, 4096)
	for {
		sent := time.Now()
		if sent.After(until) {
			return latencies, nil
		}
		if _, err := conn.Write(request); err != nil {
			return latencies, err
		}
		n, status, err := readAnswer(in, body)
		if err != nil {
			return latencies, err
		}
		if status != 200 || !bytes.Contains(body[:n], want) {
			return latencies, fmt.Errorf("answer %d: %s", status, body[:n])
		}
		latencies = append(latencies, time.Since(sent))
	}
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

// post writes a whole HTTP request.
func post(path, token, body string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n", path)
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
