package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

const (
	streamReaders = 200
	streamSends   = 250 // in a second: each makes two events, SENT and DELIVERED
	streamPerTurn = streamSends * 3 / 2
	eventsPerSend = 2
)

// measureStream paces sends with nobody on the event stream and with many readers, in turns. Every reader must get every
// event, in order.
func measureStream(ctx context.Context, o options, t *table) error {
	return withParley(ctx, o, "", func(p *process) error {
		var alone, beside, p50s, p95s []time.Duration
		events := 0
		for round := range o.rounds + 1 {
			a, err := paceSends(p, fmt.Sprintf("without readers %d", round))
			if err != nil {
				return err
			}
			mark := fmt.Sprintf("with readers %d", round)
			readers, err := startStreamReaders(ctx, p, mark)
			if err != nil {
				return err
			}
			b, err := paceSends(p, mark)
			var got streamed
			err = errors.Join(err, json.NewDecoder(readers.out).Decode(&got), readers.cmd.Wait())
			if err != nil {
				return err
			}
			if round > 0 { // the first one is the warm-up
				events += got.Events
				p50s, p95s = append(p50s, got.P50), append(p95s, got.P95)
				alone, beside = append(alone, a.latencies...), append(beside, b.latencies...)
			}
		}
		name := fmt.Sprintf("event stream, %d readers, %d events/s by sends", streamReaders, streamSends*eventsPerSend)
		all := o.rounds * streamPerTurn * eventsPerSend * streamReaders
		t.add(name+", delivered to all in order", fmt.Sprintf("%d of %d", events, all), "all", events == all)
		t.note(name+", event to reader, p50 / p95", fmt.Sprintf("%.0f / %.0f ms", ms(quantile(p50s, 0.5)), ms(quantile(p95s, 0.5))))
		for _, q := range []float64{0.5, 0.95} { // the readers share the cores: the tail is theirs too, and has no bound
			was, is := quantile(alone, q), quantile(beside, q)
			ratio := float64(is) / float64(was)
			what := fmt.Sprintf("%s, p%.0f of sends with them against without", name, q*100)
			value := fmt.Sprintf("%.2f times as long (%.2f / %.2f ms)", ratio, ms(is), ms(was))
			if q == 0.5 {
				t.add(what, value, "<= 1.20", ratio <= 1.2)
			} else {
				t.note(what, value)
			}
		}
		return nil
	})
}

// paceSends sends texts that hold a mark at a moderate rate.
func paceSends(p *process, mark string) (load, error) {
	sends := make([][]byte, streamPerTurn)
	for i := range sends {
		sends[i] = post("/api/send-message/text", p.token,
			fmt.Sprintf(`{"contact_id":"%s@c.us","message":"Your order %d is on its way (%s)."}`, phone(i%eventChats), i, mark))
	}
	return pace(p.addr, 16, streamSends, sends, `"SENT"`)
}

type streamed struct {
	Events   int
	P50, P95 time.Duration // age of the events
}

// startStreamReaders starts the readers in a process of low priority: in production, readers are other machines.
func startStreamReaders(ctx context.Context, p *process, mark string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "nice", "-n", "19", self, "-role", "stream", p.addr, mark)
	cmd.Env = append(os.Environ(), "PARLEY_TOKEN="+p.token, "GOMAXPROCS=1")
	return startChild(cmd)
}

// runStreamReaders opens the streams, reads the events of one turn from each, and prints the result.
func runStreamReaders(addr, mark string) error {
	var (
		wg   sync.WaitGroup
		ages = make([][]time.Duration, streamReaders)
		errs = make([]error, streamReaders)
	)
	for i := range streamReaders {
		in, err := openStream(addr)
		if err != nil {
			return err
		}
		wg.Go(func() { ages[i], errs[i] = readStream(in, []byte(mark)) })
	}
	fmt.Println("all connected")
	wg.Wait()
	var all []time.Duration
	for _, of := range ages {
		all = append(all, of...)
	}
	return errors.Join(errors.Join(errs...), json.NewEncoder(os.Stdout).Encode(streamed{len(all), quantile(all, 0.5), quantile(all, 0.95)}))
}

// openStream returns when the server has begun the stream.
func openStream(addr string) (*bufio.Reader, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := conn.Write(get("/api/events?types=message.status", os.Getenv("PARLEY_TOKEN"))); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 8<<10), nil)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(resp.Body, 8<<10)
	line, err := in.ReadSlice('\n')
	if resp.StatusCode != http.StatusOK || err != nil {
		return nil, fmt.Errorf("stream of events: %s: %s %w", resp.Status, line, err)
	}
	return in, nil
}

// readStream reads until all marked events of one turn have arrived, and returns their ages.
func readStream(in *bufio.Reader, mark []byte) ([]time.Duration, error) {
	var ages []time.Duration
	for last := int64(0); len(ages) < streamPerTurn*eventsPerSend; {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return ages, fmt.Errorf("after %d events: %w", len(ages), err)
		}
		event, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		_, rest, _ := bytes.Cut(event, []byte(`"seq":`))
		number, _, _ := bytes.Cut(rest, []byte(","))
		seq, err := strconv.ParseInt(string(number), 10, 64)
		if err != nil {
			return ages, err
		}
		if seq <= last {
			return ages, fmt.Errorf("event %d came after %d", seq, last)
		}
		last = seq
		if bytes.Contains(event, mark) {
			age, err := eventAge(event)
			if err != nil {
				return ages, err
			}
			ages = append(ages, age)
		}
	}
	return ages, nil
}
