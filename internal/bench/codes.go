package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

const (
	// codesAtOnce is how many codes are tried in one slice: a few tenths of a second, and codes can be
	// used only once.
	codesAtOnce = 4096
	wrongTries  = 4 // of one code in a slice; the fifth would lock it
)

// measureCodes compares the check of one-time codes with the empty JSON server. Every code is asked
// for through the API and read from the phone that it reached, as a person would; then all are tried
// over many connections at once. That they are asked for just before is what people do, too.
func measureCodes(ctx context.Context, o options, t *table) error {
	echo, err := startEcho(ctx)
	if err != nil {
		return err
	}
	defer echo.stop()
	return withParley(ctx, o, func(gateway *server) error {
		right := trial{name: "right codes", want: `"status":"APPROVED"`}
		wrong := trial{name: "wrong codes", want: `"status":"INVALID","attempts_left"`}
		phones := 0 // used so far
		for round := range o.rounds + 1 {
			for _, one := range []struct {
				*trial
				codes, tries int
				spoil        bool
			}{{&right, codesAtOnce, 1, false}, {&wrong, codesAtOnce / wrongTries, wrongTries, true}} {
				codes, err := askForCodes(gateway, o, phones, one.codes)
				if err != nil {
					return fmt.Errorf("ask for codes: %w", err)
				}
				tries := triesOf(gateway, codes, phones, one.tries, one.spoil)
				phones += one.codes
				gateway.settle() // it still has to file what it sent
				if err := one.compare(o, echo, gateway, tries, round > 0); err != nil {
					return err
				}
			}
		}
		right.report(o, t, true)
		wrong.report(o, t, false)
		return nil
	})
}

// trial is what was measured of one kind of codes.
type trial struct {
	name, want string
	ratios     []float64
	cost       []float64
	rates      []float64
	latencies  []time.Duration
}

// compare loads both servers with as many requests one after the other. The first time is for warming up.
func (r *trial) compare(o options, echo, gateway *server, tries [][]byte, counts bool) error {
	empty := make([][]byte, len(tries))
	for i, request := range requests(o, "/", "", func(i int) string { return fmt.Sprintf("62812000%05d", i) }) {
		for ; i < len(empty); i += o.connections {
			empty[i] = request
		}
	}
	cpu := echo.cpu()
	a, err := driveOnce(echo.addr, o.connections, empty, `"SENT"`, nil)
	if err != nil {
		return fmt.Errorf("echo: %w", err)
	}
	cpuA := echo.cpu() - cpu
	cpu = gateway.cpu()
	b, err := driveOnce(gateway.addr, o.connections, tries, r.want, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	if counts {
		r.ratios = append(r.ratios, b.rate()/a.rate())
		r.rates = append(r.rates, b.rate())
		r.cost = append(r.cost, (gateway.cpu()-cpu).Seconds()/max(cpuA.Seconds(), 0.01)) // a tick at least
		r.latencies = append(r.latencies, b.latencies...)
	}
	return nil
}

func (r *trial) report(o options, t *table, bounded bool) {
	name := fmt.Sprintf("OTP validate, %s, %d connections", r.name, o.connections)
	ratio := median(r.ratios)
	value := fmt.Sprintf("%.2f of the echo (%.0f/s)", ratio, median(r.rates))
	if bounded {
		t.add(name+", rate", value, ">= 0.50", ratio >= 0.5)
	} else {
		t.note(name+", rate", value)
	}
	t.note(name+", p50 / p99", fmt.Sprintf("%.1f / %.1f ms", ms(quantile(r.latencies, 0.5)), ms(quantile(r.latencies, 0.99))))
	t.note(name+", server CPU per request", fmt.Sprintf("%.2f of the echo", median(r.cost)))
}

// phone is the number of one of many phones.
func phone(i int) string { return fmt.Sprintf("62813%07d", i) }

// askForCodes has codes sent to phones that had none yet, and reads them from the phones.
func askForCodes(s *server, o options, first, count int) ([]string, error) {
	ask, read := make([][]byte, count), make([][]byte, count)
	for i := range count {
		number := phone(first + i)
		ask[i] = post("/api/otp/code/request", s.token, fmt.Sprintf(`{"contact_id":"%s@c.us"}`, number))
		read[i] = get("/api/sandbox/phones/"+number+"/messages?wait=10", s.token)
	}
	if _, err := driveOnce(s.addr, o.connections, ask, `"PENDING"`, nil); err != nil {
		return nil, err
	}
	codes := make([]string, count)
	_, err := driveOnce(s.addr, o.connections, read, `"codes"`, func(i int, answer []byte) error {
		var page struct{ Data []struct{ Codes []string } }
		if err := json.Unmarshal(answer, &page); err != nil {
			return err
		}
		if len(page.Data) != 1 || len(page.Data[0].Codes) != 1 {
			return fmt.Errorf("no code at %s: %s", phone(first+i), answer)
		}
		codes[i] = page.Data[0].Codes[0]
		return nil
	})
	return codes, err
}

// triesOf makes the requests that try codes, each as often as is said. Tries of one code are far
// apart: people take turns.
func triesOf(s *server, codes []string, first, times int, spoil bool) [][]byte {
	var tries [][]byte
	for n := range times {
		for i, code := range codes {
			if spoil { // another digit in one place
				b := []byte(code)
				b[n] = '0' + (b[n]-'0'+1)%10
				code = string(b)
			}
			tries = append(tries, post("/api/otp/code/validate", s.token, fmt.Sprintf(`{"contact_id":"%s@c.us","code":"%s"}`, phone(first+i), code)))
		}
	}
	return tries
}
