package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"
)

// receiver takes what a webhook is told and notes how old each event was when it came first. Like the
// client it is as small as it can be, because it shares the cores with what is measured.
type receiver struct {
	ln net.Listener
	wg sync.WaitGroup

	mu      sync.Mutex
	conns   []net.Conn
	known   map[string]bool // events, by their id
	late    []time.Duration
	changed chan struct{} // holds one: something came
	failed  error
}

func listen() (*receiver, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{ln: ln, known: map[string]bool{}, changed: make(chan struct{}, 1)}
	r.wg.Go(r.accept)
	return r, nil
}

func (r *receiver) url() string { return "http://" + r.ln.Addr().String() + "/" }

func (r *receiver) accept() {
	for {
		conn, err := r.ln.Accept()
		if err != nil {
			return // it was closed
		}
		r.mu.Lock()
		r.conns = append(r.conns, conn)
		r.mu.Unlock()
		r.wg.Go(func() {
			if err := r.serve(conn); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				r.note("", 0, err)
			}
		})
	}
}

// serve takes one request after the other.
func (r *receiver) serve(conn net.Conn) error {
	defer conn.Close()
	in, body := bufio.NewReaderSize(conn, 16<<10), make([]byte, 64<<10)
	for {
		id, n, err := readHead(in)
		if err != nil {
			return err
		}
		if n > len(body) {
			return fmt.Errorf("a request of %d bytes", n)
		}
		if _, err := io.ReadFull(in, body[:n]); err != nil {
			return err
		}
		age, err := ageOf(body[:n])
		if err != nil {
			return err
		}
		r.note(id, age, nil)
		if _, err := io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n"); err != nil {
			return err
		}
	}
}

// readHead reads a request up to its body and returns the event's id and the body's length.
func readHead(in *bufio.Reader) (id string, n int, err error) {
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return "", 0, err
		}
		if len(line) <= 2 {
			return id, n, nil
		}
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch string(name) {
		case "Webhook-Id":
			id = string(bytes.TrimSpace(value))
		case "Content-Length":
			if n, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return "", 0, err
			}
		}
	}
}

var stampBegins = []byte(`"timestamp":"`)

// ageOf is how long ago an event says that it happened.
func ageOf(event []byte) (time.Duration, error) {
	_, rest, _ := bytes.Cut(event, stampBegins)
	stamp, _, ok := bytes.Cut(rest, []byte(`"`))
	if !ok {
		return 0, fmt.Errorf("no timestamp in %s", event)
	}
	at, err := time.Parse(time.RFC3339, string(stamp))
	return time.Since(at), err
}

func (r *receiver) note(id string, age time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		r.failed = err
	case !r.known[id]:
		r.known[id] = true
		r.late = append(r.late, age)
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// await waits until so many events have come since the receiver was made.
func (r *receiver) await(ctx context.Context, count int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		r.mu.Lock()
		got, err := len(r.known), r.failed
		r.mu.Unlock()
		switch {
		case err != nil:
			return err
		case got == count:
			return nil
		case got > count:
			return fmt.Errorf("%d events came, and only %d happened", got, count)
		}
		select {
		case <-r.changed:
		case <-ctx.Done():
			return fmt.Errorf("only %d of %d events came: %w", got, count, ctx.Err())
		}
	}
}

// count is how many events have come.
func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.known)
}

func (r *receiver) stop() {
	r.ln.Close()
	r.mu.Lock()
	for _, conn := range r.conns {
		conn.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

type receivers []*receiver

func (all receivers) await(ctx context.Context, count int) error {
	for _, r := range all {
		if err := r.await(ctx, count); err != nil {
			return err
		}
	}
	return nil
}

// delays are how late events came, at all receivers.
func (all receivers) delays() []time.Duration {
	var late []time.Duration
	for _, r := range all {
		r.mu.Lock()
		late = append(late, r.late...)
		r.mu.Unlock()
	}
	return late
}

func (all receivers) forgetDelays() {
	for _, r := range all {
		r.mu.Lock()
		r.late = nil
		r.mu.Unlock()
	}
}

func (all receivers) stop() {
	for _, r := range all {
		r.stop()
	}
}
