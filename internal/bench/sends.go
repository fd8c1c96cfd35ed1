package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

func measureFootprint(ctx context.Context, o options, t *table) error {
	binary, err := os.Stat(o.parley)
	if err != nil {
		return err
	}
	t.add("binary", fmt.Sprintf("%.1f MB", float64(binary.Size())/mb), "<= 45 MB", binary.Size() <= 45*mb)
	return inTempDir(func(data string) error {
		var starts []float64
		var rss, own int64
		for start := range 6 {
			err := withParley(ctx, o, data, func(p *process) (err error) {
				if start > 0 { // the first one creates the database
					starts = append(starts, p.took.Seconds())
					time.Sleep(2 * time.Second)
				}
				if rss, err = p.rss(); err == nil {
					own, err = p.memory("RssAnon")
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		t.add("start to ready, existing database (median of 5)", fmt.Sprintf("%.0f ms", median(starts)*1000), "< 150 ms", median(starts) < 0.150)
		// The rest is pages of the program's file. How many of them count is up to the kernel: one that maps larger pieces counts more,
		// but it takes them back whenever it needs the memory.
		t.add("idle memory: heap, stacks and SQLite", fmt.Sprintf("%.1f MB", float64(own)/mb), "< 20 MB", own < 20*mb)
		t.add("idle memory with pages of the program (RSS)", fmt.Sprintf("%.1f MB", float64(rss)/mb), "< 45 MB", rss < 45*mb)
		return nil
	})
}

// measureSends loads the echo server and the gateway in turns.
func measureSends(ctx context.Context, o options, t *table) error {
	echo, err := startRole(ctx, "echo")
	if err != nil {
		return err
	}
	defer echo.stop()
	return withParley(ctx, o, "", func(gateway *process) error {
		sends := make([][]byte, o.connections)
		for i := range sends {
			sends[i] = sendText(fmt.Sprintf("62812000%05d", i), gateway.token)
		}
		var ratios []float64
		var latencies, echoLatencies []time.Duration
		for round := range o.rounds + 1 {
			a, err := drive(echo.addr, o.connections, sends, `"SENT"`, o.slice)
			if err != nil {
				return fmt.Errorf("echo: %w", err)
			}
			b, err := drive(gateway.addr, o.connections, sends, `"SENT"`, o.slice)
			if err != nil {
				return err
			}
			if round > 0 { // the first one is the warm-up
				ratios = append(ratios, b.rate()/a.rate())
				latencies, echoLatencies = append(latencies, b.latencies...), append(echoLatencies, a.latencies...)
			}
		}
		// A send is two messages with a dozen entries of indexes, in two databases, and three events. It takes a fifth of a millisecond of
		// CPU time, half of that in SQLite; the echo and its client take 0.07. So both bounds are what two cores hold that the client
		// uses too: the echo's own p99 is a third of this one.
		const name = "durable sends, 64 chats"
		ratio, p99 := median(ratios), quantile(latencies, 0.99)
		rate := float64(len(latencies)) / (float64(o.rounds) * o.slice.Seconds())
		t.add(name+", rate", fmt.Sprintf("%.2f of the echo (%.0f/s)", ratio, rate), ">= 0.18", ratio >= 0.18)
		t.add(name+", p99", fmt.Sprintf("%.1f ms", ms(p99)), "< 35 ms", p99 < 35*time.Millisecond)
		t.note(name+", p50", fmt.Sprintf("%.1f ms", ms(quantile(latencies, 0.5))))
		t.note("empty JSON echo, p50 / p99", fmt.Sprintf("%.1f / %.1f ms", ms(quantile(echoLatencies, 0.5)), ms(quantile(echoLatencies, 0.99))))
		return nil
	})
}

// measureVersions compares the durable sends of two versions, in turns: 5,000 chats, each request once.
func measureVersions(ctx context.Context, o options, t *table) error {
	if o.against == "" {
		return nil
	}
	other := o
	other.parley = o.against
	return withParley(ctx, o, o.data, func(this *process) error {
		return withParley(ctx, other, "", func(that *process) error { return compareVersions(o, t, [2]*process{this, that}) })
	})
}

func compareVersions(o options, t *table, gateways [2]*process) error {
	const chats, perRound = 5000, 20_000
	var ratios []float64
	var rates [2][]float64
	var latencies [2][]time.Duration
	for round := range o.rounds + 1 {
		var rate [2]float64
		for i, p := range gateways {
			sends := make([][]byte, perRound)
			for n := range sends {
				sends[n] = sendText(fmt.Sprintf("62812%08d", (round*perRound+n*7919)%chats), p.token)
			}
			l, err := driveOnce(p.addr, o.connections, sends, `"SENT"`, nil)
			if err != nil {
				return err
			}
			rate[i] = l.rate()
			if round > 0 { // the first one is the warm-up
				rates[i], latencies[i] = append(rates[i], l.rate()), append(latencies[i], l.latencies...)
			}
		}
		if round > 0 {
			ratios = append(ratios, rate[0]/rate[1])
		}
	}
	t.add("durable sends, 5,000 chats, of "+o.against,
		fmt.Sprintf("%.2f (%.0f/s of %.0f/s)", median(ratios), median(rates[0]), median(rates[1])), ">= 0.60", median(ratios) >= 0.6)
	for i, name := range []string{"this version", "the other"} {
		t.note("durable sends, 5,000 chats, p99 / slowest, "+name,
			fmt.Sprintf("%.1f / %.1f ms", ms(quantile(latencies[i], 0.99)), ms(slices.Max(latencies[i]))))
	}
	return nil
}

// codesPerRound take a few tenths of a second. A code can be used only once.
const codesPerRound = 4096

// measureCodes compares the validation of one-time codes with the echo server. Every code is requested through the API
// and read from its simulated phone; then all are validated over many connections.
func measureCodes(ctx context.Context, o options, t *table) error {
	echo, err := startRole(ctx, "echo")
	if err != nil {
		return err
	}
	defer echo.stop()
	return withParley(ctx, o, "", func(gateway *process) error {
		var ratios, rates []float64
		var latencies []time.Duration
		for round := range o.rounds + 1 {
			tries, err := requestCodes(gateway, o, round*codesPerRound)
			if err != nil {
				return fmt.Errorf("request codes: %w", err)
			}
			gateway.awaitIdle()
			a, err := driveOnce(echo.addr, o.connections, tries, `"SENT"`, nil)
			if err != nil {
				return fmt.Errorf("echo: %w", err)
			}
			b, err := driveOnce(gateway.addr, o.connections, tries, `"status":"APPROVED"`, nil)
			if err != nil {
				return err
			}
			if round > 0 { // the first one is the warm-up
				ratios, rates = append(ratios, b.rate()/a.rate()), append(rates, b.rate())
				latencies = append(latencies, b.latencies...)
			}
		}
		name, ratio := fmt.Sprintf("OTP validate, right codes, %d connections", o.connections), median(ratios)
		// A validation changes the code, its chat and a stranger's row, and adds an event: five statements and a share of a commit.
		t.add(name+", rate", fmt.Sprintf("%.2f of the echo (%.0f/s)", ratio, median(rates)), ">= 0.30", ratio >= 0.3)
		t.note(name+", p50 / p99", fmt.Sprintf("%.1f / %.1f ms", ms(quantile(latencies, 0.5)), ms(quantile(latencies, 0.99))))
		return nil
	})
}

func phone(i int) string { return fmt.Sprintf("62813%07d", i) }

// requestCodes has codes sent to new phones, reads them there, and returns the requests that validate them.
func requestCodes(p *process, o options, first int) ([][]byte, error) {
	ask, read, validate := make([][]byte, codesPerRound), make([][]byte, codesPerRound), make([][]byte, codesPerRound)
	for i := range ask {
		number := phone(first + i)
		ask[i] = post("/api/otp/code/request", p.token, fmt.Sprintf(`{"contact_id":"%s@c.us"}`, number))
		read[i] = get("/api/sandbox/phones/"+number+"/messages?wait=10", p.token)
	}
	if _, err := driveOnce(p.addr, o.connections, ask, `"PENDING"`, nil); err != nil {
		return nil, err
	}
	_, err := driveOnce(p.addr, o.connections, read, `"codes"`, func(i int, response []byte) error {
		var page struct{ Data []struct{ Codes []string } }
		if err := json.Unmarshal(response, &page); err != nil {
			return err
		}
		if len(page.Data) != 1 || len(page.Data[0].Codes) != 1 {
			return fmt.Errorf("no code at %s: %s", phone(first+i), response)
		}
		validate[i] = post("/api/otp/code/validate", p.token,
			fmt.Sprintf(`{"contact_id":"%s@c.us","code":"%s"}`, phone(first+i), page.Data[0].Codes[0]))
		return nil
	})
	return validate, err
}
