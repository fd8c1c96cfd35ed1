package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

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
		t.add(name+", rate", fmt.Sprintf("%.2f of the echo (%.0f/s)", ratio, median(rates)), ">= 0.50", ratio >= 0.5)
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
