package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const benchText = "Your order 4711 is on its way and arrives tomorrow."

// contact is whom the caller of an account writes to; each has its own, so that chats do not wait for each other.
func contact(account, caller int) string { return fmt.Sprintf("62812%03d%05d", account, caller) }

// textTo is the request for a message.
func textTo(number, token string) []byte {
	return post("/api/send-message/text", token, fmt.Sprintf(`{"contact_id":"%s@c.us","message":"%s"}`, number, benchText))
}

// bareAccount and channelAccount are the numbers of accounts of the yardstick and of the gateway.
func bareAccount(i int) string    { return fmt.Sprintf("62813%08d", i) }
func channelAccount(i int) string { return fmt.Sprintf("62814%08d", i) }

const (
	manyChannels  = 20
	callersOfOne  = 16
	callersOfMany = 8 // of each of many
	// whatsAppRounds are enough: the ratios are far from their bounds.
	whatsAppRounds = 5
)

// withWhatsApp starts the server that stands in for WhatsApp, and a gateway that is told of it.
func withWhatsApp(ctx context.Context, o options, f func(*standIn, *server) error) error {
	network, err := startStandIn(ctx)
	if err != nil {
		return err
	}
	defer network.stop()
	data, err := os.MkdirTemp("", "parley-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(data)
	trust := filepath.Join(data, "trust.json")
	if err := os.WriteFile(trust, network.trust, 0o600); err != nil {
		return err
	}
	s, err := startParley(ctx, o, data, "--whatsapp-endpoint", network.endpoint, "--whatsapp-trust", trust)
	if err != nil {
		return err
	}
	defer s.stop()
	return f(network, s)
}

// measureWhatsApp compares sends through the gateway, from the HTTP request to the answer that says SENT, with
// whatsmeow alone, on the same server.
func measureWhatsApp(ctx context.Context, o options, t *table) error {
	return withWhatsApp(ctx, o, func(network *standIn, s *server) error {
		var numbers []string
		for i := range manyChannels {
			for j := range callersOfOne {
				numbers = append(numbers, contact(i, j))
			}
		}
		if err := network.call("POST", "/phones", numbers, nil); err != nil {
			return err
		}
		tokens, err := link(network, s, manyChannels)
		if err != nil {
			return err
		}
		bare, err := startSelf(ctx, "-bare", fmt.Sprint(manyChannels), "-at", network.addr)
		if err != nil {
			return err
		}
		defer bare.stop()
		for _, v := range []struct {
			name              string
			accounts, callers int
			least             float64
		}{
			{"one channel, 1 caller", 1, 1, 0},
			{fmt.Sprintf("one channel, %d callers", callersOfOne), 1, callersOfOne, 1},
			{fmt.Sprintf("%d channels", manyChannels), manyChannels, callersOfMany, 1.5},
		} {
			if err := compare(network, s, bare, tokens, o, t, v.name, v.accounts, v.callers, v.least); err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
		}
		var got tally
		if err := network.call("GET", "/tally", nil, &got); err != nil {
			return err
		}
		t.add("whatsapp, confirmed but not readable by its recipient", fmt.Sprintf("%d of %d", got.wrong(), got.Given), "0", got.wrong() == 0)
		return nil
	})
}

// compare loads the gateway and the yardstick in turns.
func compare(network *standIn, s, bare *server, tokens []string, o options, t *table, name string, accounts, callers int, least float64) error {
	var requests [][]byte
	for i := range accounts {
		for j := range callers {
			requests = append(requests, textTo(contact(i, j), tokens[i]))
		}
	}
	var rates, bareRates, ratios, costs, bareCosts, shares []float64
	for round := range min(o.rounds, whatsAppRounds) + 1 {
		before := bare.cpu()
		var b spurted
		if err := bare.call("POST", "/spurt", spurt{accounts, callers, o.slice}, &b); err != nil {
			return fmt.Errorf("bare: %w", err)
		}
		bare.settle()
		bareCost := (bare.cpu() - before).Seconds() / float64(b.Sent)
		before, shareBefore := s.cpu(), network.cpu()
		l, err := drive(s.addr, requests, `"SENT"`, o.slice)
		if err != nil {
			return err
		}
		s.settle()
		cost := (s.cpu() - before).Seconds() / float64(l.requests)
		if round == 0 {
			continue // sessions are begun
		}
		bareRate := float64(b.Sent) / b.Elapsed.Seconds()
		rates, bareRates, ratios = append(rates, l.rate()), append(bareRates, bareRate), append(ratios, l.rate()/bareRate)
		costs, bareCosts = append(costs, cost), append(bareCosts, bareCost)
		shares = append(shares, (network.cpu()-shareBefore).Seconds()/float64(l.requests))
	}
	value := fmt.Sprintf("%.2f of bare whatsmeow (%.0f/s against %.0f/s)", median(ratios), median(rates), median(bareRates))
	cost := fmt.Sprintf("%.2f ms, bare %.2f ms (beside it the network's %.2f ms)", median(costs)*1000, median(bareCosts)*1000, median(shares)*1000)
	if least > 0 {
		t.add("whatsapp, "+name+", rate", value, fmt.Sprintf(">= %.1f", least), median(ratios) >= least)
	} else {
		t.note("whatsapp, "+name+", rate", value)
	}
	t.add("whatsapp, "+name+", CPU per message", cost, "<= bare", median(costs) <= median(bareCosts))
	return nil
}

// linkAtOnce is how many channels are linked at a time.
const linkAtOnce = 8

// link makes channels, each linked to an account, and returns their tokens.
func link(network *standIn, s *server, count int) ([]string, error) {
	return linkMore(network, s, 0, count)
}

// linkMore makes the channels from one number to another.
func linkMore(network *standIn, s *server, from, to int) ([]string, error) {
	tokens, errs := make([]string, to-from), make([]error, to-from)
	turns := make(chan struct{}, linkAtOnce)
	var wg sync.WaitGroup
	for i := range to - from {
		turns <- struct{}{}
		wg.Go(func() {
			tokens[i], errs[i] = linkOne(network, s, from+i)
			<-turns
		})
	}
	wg.Wait()
	return tokens, errors.Join(errs...)
}

// channelState is what we want to know of a channel.
type channelState struct {
	Data struct {
		Status string `json:"status"`
		Code   string `json:"code"` // of its pairing
		Token  string `json:"token"`
	} `json:"data"`
}

func works(c channelState) bool { return c.Data.Status == "WORKING" }

func linkOne(network *standIn, s *server, i int) (string, error) {
	code := fmt.Sprintf("wa%d", i)
	made := map[string]any{"code": code, "network": "whatsapp", "settings": map[string]string{"pace": "0s"}}
	if err := s.call("POST", "/api/manage/channels", made, nil); err != nil {
		return "", err
	}
	var token channelState
	if err := s.call("POST", "/api/manage/tokens", map[string]string{"kind": "channel", "channel": code}, &token); err != nil {
		return "", err
	}
	path := "/api/manage/channels/" + code
	if err := s.call("POST", path+"/pair", nil, nil); err != nil {
		return "", err
	}
	shown, err := s.until(path+"/pairing", func(c channelState) bool { return c.Data.Code != "" })
	if err != nil {
		return "", err
	}
	if err := network.call("POST", "/scan", scanning{channelAccount(i), shown.Data.Code}, nil); err != nil {
		return "", err
	}
	_, err = s.until(path, works)
	return token.Data.Token, err
}

// until asks again and again until the answer is what is wanted.
func (s *server) until(path string, wanted func(channelState) bool) (channelState, error) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var c channelState
		if err := s.call("GET", path, nil, &c); err != nil {
			return c, err
		}
		if wanted(c) {
			return c, nil
		}
	}
	return channelState{}, fmt.Errorf("%s: it did not come to that in a minute", path)
}
