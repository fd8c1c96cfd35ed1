package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/app"
	"parley/internal/client"
)

func (c *cli) channel() *cobra.Command {
	return newGroup("channel", "Make channels and change them", `  parley channel create toko --name 'Toko Ayu'
  parley channel list`,
		c.channelCreate(), c.channelList(), c.channelShow(),
		c.channelSwitch("start", "Have a channel run"),
		c.channelSwitch("stop", "Have a channel rest; what waits to be sent waits on"),
		c.channelPair(), c.channelGoLive(), c.channelLogout(),
		c.channelSet(), c.channelAllow(), c.channelSecret(), c.channelDelete())
}

func (c *cli) channelCreate() *cobra.Command {
	var name, network string
	cmd := &cobra.Command{
		Use:   "create CODE",
		Short: "Create a channel",
		Long: `Create a channel. A running server starts it at once. Without --network it is on the sandbox, whose
phones are simulated.`,
		Example: `  parley channel create toko --network whatsapp --name 'Toko Ayu'
  parley channel create try`,
		RunE: func(cmd *cobra.Command, args []string) error {
			body := map[string]any{"code": args[0], "network": network}
			if name != "" {
				body["name"] = name
			}
			return c.manageNew(cmd, func(ctx context.Context, api *client.Client) error {
				r, err := api.Post(ctx, client.Path("channels"), body, nil)
				if isInvalid(err) {
					if _, other := api.Get(ctx, client.Path("channels", args[0]), nil, nil); other == nil {
						return fail(exitRefused, "%w", err) // the code is taken
					}
				}
				if err != nil {
					return err
				}
				c.hintCreated(args[0], network, cmd.Flags().Changed("network"))
				return printData(c, r, c.printChannel)
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "what people see (default: the code)")
	cmd.Flags().StringVar(&network, "network", string(parley.Sandbox), "the chat network: sandbox or whatsapp")
	return cmd
}

func (c *cli) hintCreated(code, network string, chosen bool) {
	c.hint("Created channel %s. Create a token for it with: parley token create --kind channel --channel %s", code, code)
	switch {
	case network == string(parley.WhatsApp):
		c.hint("Link it to a phone with: parley channel pair %s", code)
	case !chosen && !c.quiet: // programs hear it too: nothing else would show the mistake
		fmt.Fprintf(c.err, "%s is on the sandbox: its phones are simulated. For real phones create it with --network whatsapp\n", code)
	}
}

func (c *cli) channelList() *cobra.Command {
	return newList(c, "List the channels", "channel", []any{"code", "name", "network", "status", "number", "since"},
		func(ch *client.Channel) []any {
			return []any{ch.Code, ch.Name, ch.Network, ch.Status, ch.Number, when(ch.Since)}
		})
}

func (c *cli) channelShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show CODE",
		Short: "Show all that is known of a channel",
		Example: `  parley channel show demo
  parley channel show demo --json`,
		RunE: c.managing(func(ctx context.Context, api *client.Client, args []string) error {
			r, err := api.Get(ctx, client.Path("channels", args[0]), nil, nil)
			if err != nil {
				return orMissing(err, "channel", args[0])
			}
			return printData(c, r, func(ch *client.Channel) {
				c.printChannel(ch)
				c.printRunning(ch, time.Now())
			})
		}),
	}
}

// printChannel shows what is stored of a channel, line by line.
func (c *cli) printChannel(ch *client.Channel) {
	retention := "forever"
	if r := ch.Settings.Retention; r != nil {
		retention = r.String()
	}
	allowed := "everybody"
	if len(ch.Settings.AllowOnly) > 0 {
		var numbers []string
		for _, id := range ch.Settings.AllowOnly {
			numbers = append(numbers, app.ShowNumber(id.Number()))
		}
		allowed = strings.Join(numbers, ", ")
	}
	for _, line := range [][2]string{
		{"code", string(ch.Code)}, {"name", ch.Name}, {"network", string(ch.Network)}, {"number", ch.Number},
		{"enabled", fmt.Sprint(ch.Enabled)}, {"status", string(ch.Status)}, {"reason", ch.Reason},
		{"since", when(ch.Since)}, {"created", when(ch.CreatedAt)},
		{"pace", showPace(ch)}, {"ttl", parley.Duration(ch.Settings.MessageTTL()).String()},
		{"retention", retention}, {"writes to", allowed},
	} {
		c.printLine(line[0], line[1])
	}
}

func (c *cli) printLine(name, text string) { fmt.Fprintf(c.out, "%-10s %s\n", name, text) }

// showPace writes how long a channel waits between two sends.
func showPace(ch *client.Channel) string {
	least, most := parley.Channel{Network: ch.Network, Settings: ch.Settings}.Pace()
	if least == most {
		return least.String()
	}
	return fmt.Sprintf("%s to %s, random", least, most)
}

// printRunning shows what only the server that runs a channel knows of it.
func (c *cli) printRunning(ch *client.Channel, now time.Time) {
	if e := ch.Evidence; e != nil {
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
		c.printLine("pairing", text)
	}
	if ch.RestrictedUntil != nil {
		c.printLine("restricted", "writes to nobody new until "+when(*ch.RestrictedUntil))
	}
}

// channelSwitch makes the commands that say whether a channel is to run.
func (c *cli) channelSwitch(verb, short string) *cobra.Command {
	return &cobra.Command{
		Use:     verb + " CODE",
		Short:   short,
		Example: fmt.Sprintf("  parley channel %s demo\n  parley channel %s demo --data /var/lib/parley", verb, verb),
		RunE: c.managing(func(ctx context.Context, api *client.Client, args []string) error {
			r, err := api.Post(ctx, client.Path("channels", args[0], verb), nil, nil)
			if err == nil && verb == "start" {
				r, err = started(ctx, api, args[0])
			}
			if err != nil {
				return orMissing(err, "channel", args[0])
			}
			return printData(c, r, c.printChannel)
		}),
	}
}

// started waits a moment for a channel that connects, and returns it as it is then.
func started(ctx context.Context, api *client.Client, code string) (*client.Response, error) {
	for limit := time.Now().Add(3 * time.Second); ; {
		var ch client.Channel
		r, err := api.Get(ctx, client.Path("channels", code), nil, &ch)
		if err != nil || ch.Status != parley.Starting || time.Now().After(limit) {
			return r, err
		}
		if err := pause(ctx, healthEvery); err != nil {
			return nil, err
		}
	}
}

func (c *cli) channelLogout() *cobra.Command {
	const short = "End a channel's pairing with its account"
	cmd := &cobra.Command{
		Use:     "logout CODE",
		Short:   short,
		Long:    short + ". The server must be running.",
		Example: "  parley channel logout demo\n  parley channel logout demo --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.onServer(cmd, func(ctx context.Context, api *client.Client) error {
				r, err := api.Post(ctx, client.Path("channels", args[0], "logout"), nil, nil)
				if err != nil {
					return err
				}
				return printData(c, r, func(ch *client.Channel) { fmt.Fprintln(c.out, ch.Status) })
			})
		},
	}
	settingFlags(cmd.Flags(), keyURL, keyAdminToken)
	return cmd
}

func (c *cli) channelSecret() *cobra.Command {
	var rotate bool
	cmd := &cobra.Command{
		Use:   "secret CODE",
		Short: "Print the secret that the callbacks of a channel's login links are signed with",
		Example: `  parley channel secret toko
  parley channel secret toko --rotate`,
		RunE: c.managing(func(ctx context.Context, api *client.Client, args []string) error {
			if rotate {
				return orMissing(c.rotateSecret(ctx, api, client.Path("channels", args[0], "secret", "rotate")), "channel", args[0])
			}
			var s client.Secret
			if _, err := api.Get(ctx, client.Path("channels", args[0], "secret"), nil, &s); err != nil {
				return orMissing(err, "channel", args[0])
			}
			return c.printSecret(s)
		}),
	}
	cmd.Flags().BoolVar(&rotate, "rotate", false, "make a new one first; for 24 hours the old one signs too")
	return cmd
}

// rotateSecret makes a new signing secret at a path and prints it.
func (c *cli) rotateSecret(ctx context.Context, api *client.Client, path string) error {
	var s client.Secret
	if _, err := api.Post(ctx, path, nil, &s); err != nil {
		return err
	}
	c.hint("for 24 hours the old secret signs too")
	return c.printSecret(s)
}

// printSecret prints a signing secret alone.
func (c *cli) printSecret(s client.Secret) error {
	if c.json {
		return c.printJSON(s)
	}
	fmt.Fprintln(c.out, s.Secret)
	return nil
}

func (c *cli) channelDelete() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete CODE",
		Short: "Remove a channel with its messages and its tokens",
		Example: `  parley channel delete toko
  parley channel delete toko --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			what := fmt.Sprintf("This removes channel %s with all its messages and tokens for good", args[0])
			return c.remove(cmd, "channel", args[0], yes, func(*client.Response) (string, error) { return what, nil })
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// remove removes a channel or a webhook, after a person said so. The question is made of what is known of it.
func (c *cli) remove(cmd *cobra.Command, kind, id string, yes bool, question func(*client.Response) (string, error)) error {
	var what string
	err := c.manage(cmd, func(ctx context.Context, api *client.Client) error {
		r, err := api.Get(ctx, client.Path(kind+"s", id), nil, nil)
		if err == nil {
			what, err = question(r)
		}
		return orMissing(err, kind, id)
	})
	if err != nil {
		return err
	}
	if err := c.confirm(cmd.Context(), yes, what, id); err != nil { // while nobody is kept from the data directory
		return err
	}
	return c.manage(cmd, func(ctx context.Context, api *client.Client) error {
		if _, err := api.Call(ctx, http.MethodDelete, client.Path(kind+"s", id), nil, nil, nil); err != nil {
			return orMissing(err, kind, id)
		}
		return c.done("%s %s is gone", kind, id)
	})
}
