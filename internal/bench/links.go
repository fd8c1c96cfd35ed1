package main

import (
	"context"
	"fmt"
	"net/url"
	"time"
)

const (
	linkTries    = 40 // login links that are used, each by its own contact
	heldPictures = 20
)

// saying is something that a phone says to an account.
type saying struct {
	From string `json:"from"`
	To   string `json:"to"`
	Text string `json:"text"`
}

// measureLinks measures how long a login link takes from the contact's message to its approval, alone and while
// the network's media server takes requests for files and never answers them.
func measureLinks(ctx context.Context, o options, t *table) error {
	return withWhatsApp(ctx, o, func(network *standIn, s *server) error {
		const stranger = "6281500000000"
		numbers := []string{stranger}
		for i := range 2 * linkTries {
			numbers = append(numbers, contact(0, i))
		}
		if err := network.call("POST", "/phones", numbers, nil); err != nil {
			return err
		}
		tokens, err := link(network, s, 1)
		if err != nil {
			return err
		}
		caller := &server{addr: s.addr, admin: tokens[0]}
		alone, err := useLinks(caller, network, 0)
		if err != nil {
			return err
		}
		if err := network.call("POST", "/hold-files", nil, nil); err != nil {
			return err
		}
		for range heldPictures {
			if err := network.call("POST", "/picture", saying{From: stranger, To: channelAccount(0)}, nil); err != nil {
				return err
			}
		}
		beside, err := useLinks(caller, network, linkTries)
		if err != nil {
			return err
		}
		p95 := quantile(beside, 0.95)
		value := fmt.Sprintf("%.0f ms (alone %.0f ms)", ms(p95), ms(quantile(alone, 0.95)))
		t.add("login link beside a hanging media host, p95", value, "< 1 s", p95 < time.Second)
		return nil
	})
}

// useLinks has links approved one after the other, and returns how long each took.
func useLinks(caller *server, network *standIn, first int) ([]time.Duration, error) {
	var took []time.Duration
	for i := range linkTries {
		number := contact(0, first+i)
		var made struct {
			Data struct {
				ID     string `json:"id"`
				AppURI string `json:"app_uri"`
			} `json:"data"`
		}
		request := map[string]any{"contact_id": number + "@c.us", "expires": 300}
		if err := caller.call("POST", "/api/otp/link/request", request, &made); err != nil {
			return nil, err
		}
		address, err := url.Parse(made.Data.AppURI)
		if err != nil {
			return nil, err
		}
		began := time.Now()
		if err := network.call("POST", "/say", saying{number, channelAccount(0), address.Query().Get("text")}, nil); err != nil {
			return nil, err
		}
		for status := ""; status != "APPROVED"; time.Sleep(2 * time.Millisecond) {
			var now channelState
			if err := caller.call("GET", "/api/otp/link/"+made.Data.ID, nil, &now); err != nil {
				return nil, err
			}
			status = now.Data.Status
			if time.Since(began) > time.Minute {
				return nil, fmt.Errorf("link %d is %s after a minute", first+i, status)
			}
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}
