package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley"
	"parley/internal/app"
)

// evidence is when a channel last showed that it works; nil: not since it was started.
type evidence struct {
	Connected *time.Time `json:"connected_at"`
	Heard     *time.Time `json:"heard_at"`
	Confirmed *time.Time `json:"confirmed_at"`
	Received  *time.Time `json:"received_at"`
}

// running is what only the server that runs a channel knows of it.
type running struct {
	Evidence        *evidence     `json:"evidence"`
	Pairing         *shownPairing `json:"pairing"`
	RestrictedUntil *time.Time    `json:"restricted_until"`
}

// shownPairing is the latest step of a pairing. Its code is shown by channel pair alone.
type shownPairing struct {
	Step      parley.PairingStep `json:"step"`
	ExpiresAt *time.Time         `json:"expires_at"`
	Reason    string             `json:"reason"`
	N         int                `json:"n"`
	Of        int                `json:"of"`
}

// showChannel shows what is stored of a channel and, of one on a real network, what its server knows.
func (c *cli) showChannel(ctx context.Context, data *app.Data, code parley.ChannelCode) error {
	ch, err := data.Store.Channel(ctx, code)
	if errors.Is(err, parley.ErrNotFound) {
		return noChannel(code)
	}
	if err != nil {
		return err
	}
	ch = c.asItIs(ch)
	var live running
	if _, serving := c.dir().Running(); serving && ch.Network != parley.Sandbox && ch.Enabled {
		if live, err = c.askServer(ctx, code); err != nil {
			c.hint("the server did not tell more: %v", err)
		}
	}
	if c.json {
		return c.printJSON(struct {
			channelView
			running
		}{viewChannel(ch), live})
	}
	c.printStored(ch)
	c.printRunning(live, time.Now())
	return nil
}

// askServer asks the running server about a channel.
func (c *cli) askServer(ctx context.Context, code parley.ChannelCode) (live running, err error) {
	cl, done, err := c.adminClient(ctx, "parley channel show")
	if err != nil {
		return live, err
	}
	defer done()
	_, err = cl.call(ctx, "GET", channelPath(string(code)), nil, nil, &live)
	return live, err
}

func (c *cli) printRunning(live running, now time.Time) {
	if e := live.Evidence; e != nil {
		var seen []string
		for _, one := range []struct {
			what string
			at   *time.Time
		}{{"connected", e.Connected}, {"heard", e.Heard}, {"confirmed", e.Confirmed}, {"received", e.Received}} {
			if one.at != nil {
				seen = append(seen, fmt.Sprintf("%s %s ago", one.what, lasted(max(0, now.Sub(*one.at)))))
			}
		}
		if len(seen) == 0 {
			seen = []string{"none yet"}
		}
		c.printLine("evidence", strings.Join(seen, ", "))
	}
	if p := live.Pairing; p != nil {
		text := string(p.Step)
		if p.Of > 0 {
			text += fmt.Sprintf(", code %d of %d", p.N, p.Of)
		}
		if p.ExpiresAt != nil {
			text += ", " + clockText(max(0, p.ExpiresAt.Sub(now))) + " left"
		}
		if p.Reason != "" {
			text += ": " + p.Reason
		}
		c.printLine("pairing", text)
	}
	if live.RestrictedUntil != nil {
		c.printLine("restricted", "writes to nobody new until "+when(*live.RestrictedUntil))
	}
}
