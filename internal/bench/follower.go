package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// crowd is a process of its own that reads the event stream many times over. It comes behind
// everybody else on this machine's cores: in life, readers are other machines.
type crowd struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// heard is what a crowd got.
type heard struct {
	Events   int           // by all readers
	P50, P95 time.Duration // how old they were
}

// gather starts a crowd, and returns when the server has begun all streams. It counts the events whose
// text holds a mark.
func gather(ctx context.Context, s *server, count int, mark string) (*crowd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &crowd{cmd: exec.CommandContext(ctx, "nice", "-n", "19", self, "-follow", s.addr, "-readers", strconv.Itoa(count), "-mark", mark)}
	c.cmd.Env = append(os.Environ(), "PARLEY_TOKEN="+s.token, "GOMAXPROCS=1") // and takes one of the cores at most
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewScanner(out)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	if !c.out.Scan() {
		return nil, errors.Join(errors.New("the readers of the stream do not begin"), c.cmd.Wait())
	}
	return c, nil
}

// tell returns what the crowd got, once each reader got so many events, and sends it home.
func (c *crowd) tell(each int) (h heard, err error) {
	fmt.Fprintln(c.in, each)
	c.in.Close()
	if c.out.Scan() {
		err = json.Unmarshal(c.out.Bytes(), &h)
	}
	return h, errors.Join(err, c.cmd.Wait())
}

// serveCrowd is the process.
func serveCrowd(addr, mark string, count int) error {
	all := make([]*follower, count)
	for i := range all {
		f, err := follow(addr, os.Getenv("PARLEY_TOKEN"), mark)
		if err != nil {
			return err
		}
		all[i] = f
		go f.read() // until the process ends
	}
	fmt.Println("all follow")
	var each int
	if _, err := fmt.Scanln(&each); err != nil {
		return err
	}
	deadline := time.After(30 * time.Second)
	var late []time.Duration
	for i, f := range all {
		got, err := f.await(each, deadline)
		if err != nil {
			return fmt.Errorf("reader %d of the stream: %w", i, err)
		}
		late = append(late, got...)
	}
	return json.NewEncoder(os.Stdout).Encode(heard{len(late), quantile(late, 0.5), quantile(late, 0.95)})
}

// follower is one reader. It notes how old events were when they came, of those whose text holds a mark.
type follower struct {
	conn net.Conn
	in   *bufio.Reader // what is streamed
	mark []byte
	seq  int64 // the place of the last event

	mu      sync.Mutex
	late    []time.Duration
	ended   error
	changed chan struct{} // holds one: something came
}

func follow(addr, token, mark string) (*follower, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(get("/api/events?types=message.status", token)); err != nil {
		conn.Close()
		return nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 8<<10), nil)
	if err != nil {
		conn.Close()
		return nil, err
	}
	f := &follower{conn: conn, in: bufio.NewReaderSize(resp.Body, 8<<10), mark: []byte(mark), changed: make(chan struct{}, 1)}
	line, err := f.in.ReadSlice('\n')
	if resp.StatusCode != http.StatusOK || err != nil {
		conn.Close()
		return nil, fmt.Errorf("stream of events: %s: %s %w", resp.Status, line, err)
	}
	return f, nil
}

// read reads until the connection is closed.
func (f *follower) read() {
	for {
		line, err := f.in.ReadSlice('\n')
		if err == nil {
			err = f.take(line)
		}
		if err != nil {
			f.note(0, err)
			return
		}
	}
}

func (f *follower) take(line []byte) error {
	event, ok := bytes.CutPrefix(line, []byte("data: "))
	if !ok {
		return nil
	}
	_, rest, _ := bytes.Cut(event, []byte(`"seq":`))
	number, _, _ := bytes.Cut(rest, []byte(","))
	seq, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil {
		return err
	}
	if seq <= f.seq {
		return fmt.Errorf("event %d came after %d", seq, f.seq)
	}
	f.seq = seq
	if !bytes.Contains(event, f.mark) {
		return nil // from before
	}
	age, err := ageOf(event)
	if err != nil {
		return err
	}
	f.note(age, nil)
	return nil
}

func (f *follower) note(age time.Duration, err error) {
	f.mu.Lock()
	if err != nil {
		f.ended = err
	} else {
		f.late = append(f.late, age)
	}
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// await waits until the reader has got so many events, and returns how old those were.
func (f *follower) await(count int, deadline <-chan time.Time) ([]time.Duration, error) {
	for {
		f.mu.Lock()
		late, ended := f.late, f.ended
		f.mu.Unlock()
		if ended != nil {
			return nil, ended
		}
		if len(late) >= count {
			return late, nil
		}
		select {
		case <-f.changed:
		case <-deadline:
			return nil, fmt.Errorf("only %d of %d events came", len(late), count)
		}
	}
}
