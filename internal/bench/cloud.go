package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"parley/internal/network/cloud/cloudtest"
)

const (
	metaLatency = 150 * time.Millisecond // of Meta's API, for a message
	metaRate    = 80                     // messages a second of a number
	highNumbers = 4                      // with Meta's upgrade; one alone would meet Meta's limit first
	reportRate  = 300                    // calls a second: what such a number causes
	// settling is how long what a send leaves to be stored may take: the next one is not to wait for it.
	settling = 300 * time.Millisecond
)

// cloudBench is a gateway with channels on the official network, and Meta's API in this process.
type cloudBench struct {
	*process
	meta    *cloudtest.Server
	numbers int
}

// measureCloud measures channels on the official network.
func measureCloud(ctx context.Context, o options, t *table) error {
	meta := cloudtest.Start()
	defer meta.Close()
	meta.Latency = metaLatency
	return withParley(ctx, o, "", func(p *process) error {
		b := &cloudBench{process: p, meta: meta}
		for _, measure := range []func(options, *table) error{b.steady, b.added, b.high, b.reports} {
			if err := measure(o, t); err != nil {
				return err
			}
		}
		return nil
	})
}

// channel makes a channel with a number of its own, and a token.
func (b *cloudBench) channel(level string) (code, token string, n *cloudtest.Number, err error) {
	n, code = b.meta.AddNumber(fmt.Sprint(6281100000000+b.numbers)), fmt.Sprint("cloud", b.numbers)
	b.numbers++
	n.Set(func(n *cloudtest.Number) { n.Level = level })
	n.Address = func() string { return "http://" + b.addr + "/network/cloud/" + code }
	err = b.call("POST", "/api/manage/channels", map[string]any{"code": code, "network": "cloud", "cloud": map[string]string{
		"phone_number_id": n.ID, "waba_id": cloudtest.BusinessID, "access_token": b.meta.Token, "app_secret": b.meta.AppSecret,
		"graph_url": b.meta.URL}}, nil)
	var made struct{ Data struct{ Token string } }
	if err == nil {
		err = b.call("POST", "/api/manage/tokens", map[string]string{"name": code, "kind": "channel", "channel": code}, &made)
	}
	for state := (struct{ Data struct{ Status string } }{}); err == nil && state.Data.Status != "WORKING"; time.Sleep(10 * time.Millisecond) {
		err = b.call("GET", "/api/manage/channels/"+code, nil, &state)
	}
	return code, made.Data.Token, n, err
}

// steady sends as fast as Meta lets a number.
func (b *cloudBench) steady(o options, t *table) error {
	_, token, number, err := b.channel("STANDARD")
	if err != nil {
		return err
	}
	sends := make([][]byte, int(o.cloud.Seconds()*metaRate))
	for i := range sends {
		sends[i] = sendText(fmt.Sprintf("62812%07d", i%1000), token)
	}
	l, err := pace(b.addr, o.connections, metaRate, sends, `"SENT"`)
	if err != nil {
		return err
	}
	name, limited := fmt.Sprintf("official API, %d/s on one number for %s", metaRate, o.cloud), number.Limited()
	rate := float64(l.requests) / (l.elapsed - metaLatency).Seconds() // the last one is on its way that long
	t.add(name+", rate", fmt.Sprintf("%.1f/s", rate), ">= 78/s", rate >= 78)
	t.add(name+", limited by Meta", fmt.Sprint(limited), "0", limited == 0)
	return nil
}

// added compares a send through the gateway with one at Meta's API, in turns.
func (b *cloudBench) added(o options, t *table) error {
	_, token, number, err := b.channel("STANDARD")
	if err != nil {
		return err
	}
	number.SetStatuses(cloudtest.StatusesWithheld) // Meta reports them a moment after its response
	defer number.ReleaseStatuses()
	own, whole := make([]time.Duration, max(12*o.rounds, 20)), make([]time.Duration, max(12*o.rounds, 20))
	_, err = onConnections(b.addr, 1, func(_ int, c *client) error {
		for i := range whole {
			began := time.Now()
			if err := b.bare(number); err != nil {
				return err
			}
			own[i] = time.Since(began)
			time.Sleep(settling)
			began = time.Now()
			if _, err := c.do(sendText(fmt.Sprintf("62813%07d", i), token), []byte(`"SENT"`)); err != nil {
				return err
			}
			whole[i] = time.Since(began)
		}
		return nil
	})
	if err != nil {
		return err
	}
	added := quantile(whole, 0.5) - quantile(own, 0.5)
	t.add("official API, a send beyond Meta's own time, p50", fmt.Sprintf("%.1f ms", ms(added)), "<= 3 ms", added <= 3*time.Millisecond)
	return nil
}

// bare sends a message to Meta's API without the gateway.
func (b *cloudBench) bare(n *cloudtest.Number) error {
	body, err := json.Marshal(map[string]any{"messaging_product": "whatsapp", "recipient_type": "individual", "to": "6281399999999",
		"type": "text", "text": map[string]any{"body": benchText, "preview_url": false}})
	if err != nil {
		return err
	}
	req, err := http.NewRequest("POST", b.meta.URL+"/v25.0/"+n.ID+"/messages", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = http.Header{"Authorization": {"Bearer " + b.meta.Token}, "User-Agent": {"bench/1.0.0"}, "Content-Type": {"application/json"}}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("graph API: %d %s", resp.StatusCode, text)
	}
	return err
}

// high compares numbers with Meta's upgrade with the sandbox, in turns.
func (b *cloudBench) high(o options, t *table) error {
	const callers = 1024 // each waits for Meta most of the time
	slice := max(o.slice, 3*time.Second)
	tokens := make([]string, highNumbers)
	for i := range tokens {
		var err error
		if _, tokens[i], _, err = b.channel("HIGH"); err != nil {
			return err
		}
	}
	simulated, official := make([][]byte, o.connections), make([][]byte, callers)
	for i := range simulated {
		simulated[i] = sendText(fmt.Sprintf("62814%07d", i), b.token)
	}
	for i := range official {
		official[i] = sendText(fmt.Sprintf("62814%07d", i), tokens[i%highNumbers])
	}
	var ratios, rates []float64
	for round := range max(o.rounds/2, 1) + 1 {
		sandbox, err := drive(b.addr, o.connections, simulated, `"SENT"`, slice)
		if err != nil {
			return err
		}
		l, err := drive(b.addr, callers, official, `"SENT"`, slice)
		if err != nil {
			return err
		}
		if round > 0 { // the first one is the warm-up
			ratios, rates = append(ratios, l.rate()/sandbox.rate()), append(rates, l.rate())
		}
	}
	ratio := median(ratios)
	t.add("official API, high throughput, of the sandbox's durable rate", fmt.Sprintf("%.2f (%.0f/s)", ratio, median(rates)), ">= 0.40",
		ratio >= 0.4)
	return nil
}

// reports has Meta report messages at a constant rate, each stored before the response.
func (b *cloudBench) reports(o options, t *table) error {
	code, _, number, err := b.channel("STANDARD")
	if err != nil {
		return err
	}
	calls := make([][]byte, int(max(o.slice, 5*time.Second).Seconds()*reportRate))
	for i := range calls {
		from := fmt.Sprintf("62815%07d", i%2000)
		body := cloudtest.Encode(number.Body("messages", map[string]any{
			"contacts": []any{map[string]any{"wa_id": from, "profile": map[string]string{"name": "Ayu"}}},
			"messages": []any{map[string]any{"from": from, "id": fmt.Sprint("wamid.bench", i), "timestamp": fmt.Sprint(time.Now().Unix()),
				"type": "text", "text": map[string]string{"body": benchText}}}}))
		calls[i] = fmt.Appendf(nil, "POST /network/cloud/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
			"X-Hub-Signature-256: sha256=%s\r\nContent-Length: %d\r\n\r\n%s", code, cloudtest.Sign(b.meta.AppSecret, body), len(body), body)
	}
	l, err := pace(b.addr, 32, reportRate, calls, "")
	if err != nil {
		return err
	}
	p99 := quantile(l.latencies, 0.99)
	t.add(fmt.Sprintf("official API, report to 200 at %d/s, p99", reportRate), fmt.Sprintf("%.1f ms", ms(p99)), "<= 100 ms",
		p99 <= 100*time.Millisecond)
	t.note(fmt.Sprintf("official API, report to 200 at %d/s, p50", reportRate), fmt.Sprintf("%.1f ms", ms(quantile(l.latencies, 0.5))))
	return nil
}
