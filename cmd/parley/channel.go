package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/client"
	"parley/internal/doctor"
	"parley/internal/wait"
	"parley/internal/wire"
)

func (c *cli) channel() *cobra.Command {
	show := one((*cli).showChannel)
	group := c.resource(resource{
		name: "channel", short: "Manage channels", id: "demo",
		example: `  parley channel create toko --name 'Toko Ayu'
  parley channel list`,
		verbs: []verb{{
			use: "create CODE", short: "Create a channel",
			long: `Create a channel. A running server starts it at once. Without --network it is on the sandbox, with simulated
phones. --webhook also adds a webhook for its events, and prints the webhook's id and secret.`,
			example: `  parley channel create toko --network whatsapp --name 'Toko Ayu' --webhook https://example.com/hook
  parley channel create shop --network cloud --phone-number-id 1065… --waba-id 1022… --access-token-file t.txt --app-secret-file s.txt`,
			flags: append([]flag{
				textFlag("name", "display name (default: the code)"),
				listFlag("label", "a label to find it by; may be repeated").as("labels"),
				{name: "network", value: string(parley.Sandbox), usage: "the chat network: sandbox, whatsapp or cloud"},
				textFlag("webhook", "an address that receives the channel's events"),
			}, accountFlags...),
			arg: "code", call: "POST channels", creates: true, print: show, run: createChannel,
			check: func(f fields) error {
				if hook := f.text("webhook"); hook != "" {
					if _, err := serverURL(settingValue{hook, "--webhook"}); err != nil {
						return fail(exitUsage, "--webhook: %q is not an address such as https://example.com/hook", hook)
					}
				}
				return nil
			},
		}, {
			use: "list", short: "List the channels", long: "List the channels, by code. Filters combine.",
			example: `  parley channel list --status LOGGED_OUT
  parley channel list --label jakarta --search toko --json`,
			flags: []flag{
				textFlag("search", "only those with this in their code, name or number"),
				textFlag("status", "only those in this status, for example LOGGED_OUT").by(readUpper),
				textFlag("network", "only those of this network: sandbox, whatsapp or cloud"),
				textFlag("label", "only those with this label"),
			},
			call: "GET channels", none: "There are no channels. Create one with: parley channel create CODE",
			print: rows("code,name,network,status,number,since,labels", func(ch *wire.Channel) []any {
				return []any{ch.Code, ch.Name, ch.Network, ch.Status, ch.Number, when(ch.Since.Time), strings.Join(ch.Labels, ", ")}
			}),
		}, {
			use: "show CODE", short: "Show a channel", call: "GET channels/*", print: show,
		}, {
			use: "start CODE", short: "Start a channel", call: "POST channels/*/start", print: show, run: startChannel,
		}, {
			use: "stop CODE", short: "Stop a channel. Queued messages stay queued", call: "POST channels/*/stop", print: show,
		}, {
			use: "logout CODE", short: "Unlink a channel from its account",
			long: "Unlink a channel from its account. The server must be running.",
			call: "POST channels/*/logout", live: true, print: printStatus,
		}, {
			use: "secret CODE", short: "Print the secret that signs the callbacks of a channel's login links",
			example: `  parley channel secret toko
  parley channel secret toko --rotate`,
			flags: []flag{boolFlag("rotate", "replace it first; for 24 hours the old one signs too")},
			call:  "GET channels/*/secret", print: printSecret,
			run: func(ctx context.Context, t *task) error {
				if t.fields.pop("rotate") != nil {
					t.call, t.hint = "POST channels/*/secret/rotate", rotated
				}
				return t.requestAndPrint(ctx)
			},
		}, {
			use: "deletions", short: "List the deletions of channels and their progress",
			long: "List the deletions of channels that are running or that finished in the last 7 days, and how many messages they removed.",
			call: "GET deletions", none: "No channel was deleted in the last 7 days.",
			print: rows("code,state,started,finished,removed,left,problem", deletionCells),
		}, channelSet(show), channelAllow(show), channelCredentials(show), channelRegister(show), channelDelete()},
	})
	group.AddCommand(c.channelPair(), c.channelGoLive())
	return group
}

func createChannel(ctx context.Context, t *task) error {
	c, code := t.cli, t.args[0]
	hook := t.fields.pop("webhook")
	if t.fields.text("network") == string(parley.Cloud) {
		if err := t.takeAccount(ctx, true); err != nil {
			return err
		}
	}
	r, err := t.request(ctx)
	if isInvalid(err) {
		if _, other := t.api.Get(ctx, client.Path("channels", code), nil, nil); other == nil {
			return fail(exitRefused, "%w", err) // the code is in use
		}
	}
	if err != nil {
		return err
	}
	c.hint("Created channel %s. Create a token for it with: parley token create --kind channel --channel %s", code, code)
	if account, _ := t.fields[string(parley.Cloud)].(fields); account.text("webhook") == "none" {
		var made struct {
			Cloud struct {
				Callback string `json:"callback_url"`
				Token    string `json:"verify_token"`
			} `json:"cloud"`
		}
		if err := json.Unmarshal(r.Data, &made); err != nil {
			return err
		}
		c.hint("In Meta's pages, give the app this callback URL and verify token:\n  %s\n  %s", made.Cloud.Callback, made.Cloud.Token)
	}
	switch {
	case t.cmd.Flags().Changed("network"):
		for _, network := range readNetworks(ctx, t.api) {
			if string(network.Name) == t.fields.text("network") && len(network.Pairing) > 0 {
				c.hint("Link it to a phone with: parley channel pair %s", code)
			}
		}
	default: // also without a terminal: nothing else would show the mistake
		c.warn("%s is on the sandbox: its phones are simulated. For real phones create it with --network whatsapp or cloud", code)
	}
	if hook != nil {
		return t.addHook(ctx, r, hook)
	}
	return t.finish(r, nil)
}

// readNetworks returns the networks of the server; nil: they cannot be read.
func readNetworks(ctx context.Context, api *client.Client) []wire.Network {
	var server struct {
		Networks []wire.Network `json:"networks"`
	}
	if _, err := api.Get(ctx, client.Path("server"), nil, &server); err != nil {
		return nil
	}
	return server.Networks
}

// addHook adds a webhook to a channel that was just created, and prints both.
func (t *task) addHook(ctx context.Context, created *client.Response, url any) error {
	var w webhook
	code := t.args[0]
	added, err := t.api.Post(ctx, client.Path("webhooks"), fields{"url": url, "channel": code}, &w)
	if err != nil {
		return errors.Join(t.finish(created, nil), fmt.Errorf(
			"channel %s was created, but not its webhook: %w. Add it with: parley webhook add URL --channel %s", code, err, code))
	}
	if t.cli.json {
		var document map[string]json.RawMessage
		if err := json.Unmarshal(created.Data, &document); err != nil {
			return err
		}
		document["webhook"] = added.Data
		return t.cli.printJSON(document)
	}
	if w.Warning != "" {
		t.cli.warn("%s", w.Warning)
	}
	err = t.finish(created, nil)
	fmt.Fprint(t.cli.out, pairs("webhook", string(w.ID), "secret", w.Secret))
	return err
}

func (c *cli) showChannel(ch *wire.Channel) string {
	retention := "forever"
	if r := ch.Settings.Retention; r != nil {
		retention = r.String()
	}
	allowed := "everybody"
	if len(ch.Settings.AllowOnly) > 0 {
		var numbers []string
		for _, id := range ch.Settings.AllowOnly {
			numbers = append(numbers, showChat(id))
		}
		allowed = strings.Join(numbers, ", ")
	}
	optOut := "off"
	if o := ch.Settings.OptOut; o != nil {
		optOut = strings.Join(o.Words, ", ")
	}
	careful := "off"
	if today := ch.Today; today != nil {
		careful = fmt.Sprintf("today %s, %s", ofCap(today.FirstContacts, today.FirstContactsCap, "first message"),
			ofCap(today.Messages, today.MessagesCap, "message"))
	}
	return pairs(append([]string{
		"code", string(ch.Code), "name", ch.Name, "network", string(ch.Network), "number", ch.Number,
		"labels", strings.Join(ch.Labels, ", "), "enabled", fmt.Sprint(ch.Enabled), "status", string(ch.Status), "reason", ch.Reason,
		"since", when(ch.Since.Time), "created", when(ch.CreatedAt.Time),
		"pace", showPace(ch), "ttl", parley.Duration(ch.Settings.MessageTTL()).String(),
		"retention", retention, "writes to", allowed, "careful", careful, "opt-out", optOut,
		"proxy", cmp.Or(ch.Settings.Proxy, "none"),
	}, runningPairs(ch, time.Now())...)...)
}

// ofCap counts what a careful channel sent, of what it may send.
func ofCap(n int, cap *int, what string) string {
	if cap == nil {
		return count(n, what)
	}
	return fmt.Sprintf("%d of %s", n, count(*cap, what))
}

var printStatus = one(func(_ *cli, ch *wire.Channel) string { return string(ch.Status) })

func showPace(ch *wire.Channel) string {
	if ch.Pace.Least == ch.Pace.Most {
		return time.Duration(ch.Pace.Least).String()
	}
	return fmt.Sprintf("%s to %s, random", time.Duration(ch.Pace.Least), time.Duration(ch.Pace.Most))
}

// runningPairs are what only a running server knows about a channel.
func runningPairs(ch *wire.Channel, now time.Time) (lines []string) {
	if e := ch.Evidence; e != nil {
		var seen []string
		for _, one := range []struct {
			what string
			at   wire.Time
		}{{"connected", e.ConnectedAt}, {"heard", e.HeardAt}, {"confirmed", e.ConfirmedAt}, {"received", e.ReceivedAt}} {
			if !one.at.IsZero() {
				seen = append(seen, fmt.Sprintf("%s %s ago", one.what, doctor.Lasted(max(0, now.Sub(one.at.Time)))))
			}
		}
		if len(seen) == 0 {
			seen = []string{"none yet"}
		}
		lines = append(lines, "evidence", strings.Join(seen, ", "))
	}
	if p := ch.Pairing; p != nil {
		text := string(p.Step)
		if p.Of > 0 {
			text += fmt.Sprintf(", code %d of %d", p.N, p.Of)
		}
		if !p.ExpiresAt.IsZero() {
			text += ", " + clockText(max(0, p.ExpiresAt.Sub(now))) + " left"
		}
		if p.Reason != "" {
			text += ": " + p.Reason
		}
		lines = append(lines, "pairing", text)
	}
	if !ch.RestrictedUntil.IsZero() {
		lines = append(lines, "restricted", "cannot write to new contacts until "+when(ch.RestrictedUntil.Time))
	}
	return lines
}

// startChannel waits up to 3 s while the channel connects.
func startChannel(ctx context.Context, t *task) error {
	r, err := t.request(ctx)
	for limit := time.Now().Add(3 * time.Second); err == nil; {
		var ch wire.Channel
		r, err = t.api.Get(ctx, client.Path("channels", t.args[0]), nil, &ch)
		if err != nil || ch.Status != parley.ChannelStarting || time.Now().After(limit) {
			break
		}
		if !wait.Sleep(ctx, healthEvery) {
			return ctx.Err()
		}
	}
	return t.finish(r, err)
}
