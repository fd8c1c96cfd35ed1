package main

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"
)

const (
	manyChannels  = 20
	callersOfOne  = 16
	contactsOfOne = 64
	callersOfMany = 8 // of each of many channels, and its contacts
)

// measureWhatsApp compares sends through the gateway, from the HTTP request to the response SENT, with whatsmeow alone.
func measureWhatsApp(ctx context.Context, o options, t *table) error {
	numbers := contacts(manyChannels, contactsOfOne)
	return withWhatsApp(ctx, o, numbers, manyChannels, func(network, p *process, tokens []string) error {
		return inTempDir(func(dir string) error {
			bare, err := startRole(ctx, "bare", network.addr, dir)
			if err != nil {
				return err
			}
			defer bare.stop()
			return compareWhatsApp(network, p, bare, tokens, o, t)
		})
	})
}

func compareWhatsApp(network, p, bare *process, tokens []string, o options, t *table) error {
	for _, v := range []struct {
		name  string
		load  bareLoad
		least float64
	}{
		{fmt.Sprintf("one channel, %d callers", callersOfOne), bareLoad{1, callersOfOne, contactsOfOne, o.slice}, 2.5},
		{fmt.Sprintf("%d channels", manyChannels), bareLoad{manyChannels, callersOfMany, callersOfMany, o.slice}, 2.4},
	} {
		if err := compareBare(p, bare, tokens, o, t, v.name, v.load, v.least); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
	}
	var got counts
	if err := network.call("GET", "/counts", nil, &got); err != nil {
		return err
	}
	t.add("whatsapp, confirmed but not readable by its recipient", fmt.Sprintf("%d of %d", got.Wrong, got.Given), "0", got.Wrong == 0)
	return nil
}

func compareBare(p, bare *process, tokens []string, o options, t *table, name string, load bareLoad, least float64) error {
	var requests [][]byte
	for i := range load.Accounts {
		for j := range load.Contacts {
			requests = append(requests, sendText(contact(i, j), tokens[i]))
		}
	}
	var rates, bareRates, ratios, costs, bareCosts []float64
	for round := range o.rounds + 1 {
		before := bare.cpu()
		var b bareResult
		if err := bare.call("POST", "/load", load, &b); err != nil {
			return fmt.Errorf("bare: %w", err)
		}
		bare.awaitIdle()
		bareCost := (bare.cpu() - before).Seconds() / float64(b.Sent)
		before = p.cpu()
		l, err := drive(p.addr, load.Accounts*load.Callers, requests, `"SENT"`, o.slice)
		if err != nil {
			return err
		}
		p.awaitIdle()
		cost := (p.cpu() - before).Seconds() / float64(l.requests)
		if round == 0 {
			continue // it creates the Signal sessions
		}
		bareRate := float64(b.Sent) / b.Elapsed.Seconds()
		rates, bareRates, ratios = append(rates, l.rate()), append(bareRates, bareRate), append(ratios, l.rate()/bareRate)
		costs, bareCosts = append(costs, cost), append(bareCosts, bareCost)
	}
	t.add("whatsapp, "+name+", rate",
		fmt.Sprintf("%.2f of bare whatsmeow (%.0f/s against %.0f/s)", median(ratios), median(rates), median(bareRates)),
		fmt.Sprintf(">= %.1f", least), median(ratios) >= least)
	t.add("whatsapp, "+name+", CPU per message",
		fmt.Sprintf("%.2f ms, bare %.2f ms", median(costs)*1000, median(bareCosts)*1000), "<= bare", median(costs) <= median(bareCosts))
	return nil
}

// idleFor is how long a server is idle before its memory is measured: it returns what it freed by itself.
const idleFor = 20 * time.Second

func measureIdle(ctx context.Context, o options, t *table) error {
	return withNetwork(ctx, func(network *process, flags []string) error {
		return inTempDir(func(data string) error {
			var one int64
			linked := 0
			for _, channels := range []int{1, 50, 500} {
				err := withParley(ctx, o, data, func(p *process) error {
					_, err := link(network, p, linked, channels)
					return err
				}, flags...)
				if err != nil {
					return err
				}
				linked = channels
				var rss int64
				err = withParley(ctx, o, data, func(p *process) (err error) { // after a restart: linking needs memory too
					rss, err = p.idleMemory(channels)
					return err
				}, flags...)
				if err != nil {
					return err
				}
				if channels == 1 {
					one = rss
					continue
				}
				each, most := (rss-one)/int64(channels-1), int64(240)
				if channels > 50 { // what 50 leave behind once counts for less
					most = 220
				}
				t.add(fmt.Sprintf("whatsapp, memory of an idle paired channel, from 1 to %d", channels),
					fmt.Sprintf("%d KiB (%.0f MB in all)", each/kib, float64(rss)/mb), fmt.Sprintf("<= %d KiB", most), each <= most*kib)
			}
			return nil
		})
	})
}

// idleMemory waits until so many channels work and the process is idle, and returns its memory.
func (p *process) idleMemory(channels int) (int64, error) {
	for i := range channels {
		if _, err := p.poll(fmt.Sprintf("/api/manage/channels/wa%d", i), works); err != nil {
			return 0, err
		}
	}
	p.awaitIdle()
	time.Sleep(idleFor)
	return p.rss()
}

const (
	linkTries    = 40 // login links, each used by its own contact
	heldPictures = 20
)

// measureLinks measures the time from the contact's message to the approval of its login link: alone, and while the
// network's media server accepts requests for files and never responds.
func measureLinks(ctx context.Context, o options, t *table) error {
	const sender = "6281500000000"
	numbers := append(contacts(1, 2*linkTries), sender)
	return withWhatsApp(ctx, o, numbers, 1, func(network, p *process, tokens []string) error {
		caller := &process{addr: p.addr, admin: tokens[0]}
		alone, err := useLinks(caller, network, 0)
		if err != nil {
			return err
		}
		if err := network.call("POST", "/hold-files", nil, nil); err != nil {
			return err
		}
		for range heldPictures {
			if err := network.call("POST", "/picture", inbound{From: sender, To: channelAccount(0)}, nil); err != nil {
				return err
			}
		}
		beside, err := useLinks(caller, network, linkTries)
		if err != nil {
			return err
		}
		p95 := quantile(beside, 0.95)
		t.add("login link beside a hanging media host, p95",
			fmt.Sprintf("%.0f ms (alone %.0f ms)", ms(p95), ms(quantile(alone, 0.95))), "< 1 s", p95 < time.Second)
		return nil
	})
}

// useLinks has links approved one after the other, and returns how long each took.
func useLinks(caller, network *process, first int) ([]time.Duration, error) {
	var took []time.Duration
	for i := range linkTries {
		number := contact(0, first+i)
		var created struct {
			Data struct {
				ID     string `json:"id"`
				AppURI string `json:"app_uri"`
			} `json:"data"`
		}
		request := map[string]any{"contact_id": number + "@c.us", "expires": 300}
		if err := caller.call("POST", "/api/otp/link/request", request, &created); err != nil {
			return nil, err
		}
		address, err := url.Parse(created.Data.AppURI)
		if err != nil {
			return nil, err
		}
		began := time.Now()
		if err := network.call("POST", "/text", inbound{number, channelAccount(0), address.Query().Get("text")}, nil); err != nil {
			return nil, err
		}
		approved := func(c channelState) bool { return c.Data.Status == "APPROVED" }
		if _, err := caller.poll("/api/otp/link/"+created.Data.ID, approved); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

const (
	dropRuns  = 3 // in a row, because a reconnect policy may depend on earlier drops
	dropSends = 500
	dropEvery = 100 // sends; the last hundred have no drop
)

// measureDrops sends while the network drops the connection repeatedly, each time after it got a message and before it
// confirmed it.
func measureDrops(ctx context.Context, o options, t *table) error {
	numbers := contacts(1, callersOfOne)
	return withWhatsApp(ctx, o, numbers, 1, func(network, p *process, tokens []string) error {
		var sends [][]byte
		for i := range dropSends {
			sends = append(sends, sendText(numbers[i%len(numbers)], tokens[0]))
		}
		if _, err := driveOnce(p.addr, callersOfOne, sends[:callersOfOne], `"SENT"`, nil); err != nil { // creates the Signal sessions
			return err
		}
		for run := range dropRuns {
			var responses, pending atomic.Int64
			l, err := driveOnce(p.addr, callersOfOne, sends, "", func(_ int, response []byte) error {
				if !bytes.Contains(response, []byte(`"SENT"`)) {
					pending.Add(1)
				}
				if n := responses.Add(1); n%dropEvery == 0 && n < dropSends {
					return network.call("POST", "/drop", nil, nil)
				}
				return nil
			})
			if err != nil {
				return err
			}
			what := fmt.Sprintf("whatsapp, %d sends with %d drops, run %d", dropSends, dropSends/dropEvery-1, run+1)
			p99 := quantile(l.latencies, 0.99)
			t.add(what, fmt.Sprintf("%.2f s, %d not SENT at once", l.elapsed.Seconds(), pending.Load()), "<= 1 s, 0",
				l.elapsed <= time.Second && pending.Load() == 0)
			t.add(what+", p99", fmt.Sprintf("%.0f ms", ms(p99)), "< 500 ms", p99 < 500*time.Millisecond)
		}
		return nil
	})
}
