package main

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/client"
)

func (c *cli) channelGoLive() *cobra.Command {
	var flags pairFlags
	var live goLiveFlags
	cmd := &cobra.Command{
		Use:   "go-live CODE",
		Short: "Move a sandbox channel to WhatsApp, and pair it",
		Long: `Move a sandbox channel to WhatsApp: choose the contacts that it may write to, then link it to a phone as
channel pair does. Code, name, tokens, webhooks, secrets and settings stay. This cannot be undone. The server must
be running.

` + helpText("risks.txt"),
		Example: `  parley channel go-live demo
  parley channel go-live demo --allow +6281298765432 --yes --code +6281211112222`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			return c.onServer(cmd, func(ctx context.Context, cl *client.Client) error {
				var err error
				if live.account, err = c.readAccount(ctx, cmd, live.network); err != nil {
					return err
				}
				return c.goLive(ctx, cl, args[0], live, flags)
			})
		},
	}
	cmd.Flags().StringSliceVar(&live.allow, "allow", nil, "the only numbers that it may write to, separated by commas")
	cmd.Flags().BoolVar(&live.everybody, "everybody", false, "allow it to write to everyone")
	cmd.Flags().BoolVar(&live.yes, "yes", false, "do not ask for confirmation")
	oneFlag(cmd, "allow", "everybody")
	flags.add(cmd.Flags())
	cmd.Flags().StringVar(&live.network, "network", string(parley.WhatsApp), "the network to move to: whatsapp or cloud")
	for _, f := range accountFlags {
		f.add(cmd)
	}
	settingFlags(cmd.Flags(), keyURL, keyAdminToken)
	return cmd
}

type goLiveFlags struct {
	allow     []string
	everybody bool
	yes       bool
	network   string
	account   fields // with the credentials on the network cloud; empty: none
}

func (f goLiveFlags) decided() bool { return f.everybody || len(f.allow) > 0 }

func (c *cli) goLive(ctx context.Context, cl *client.Client, code string, live goLiveFlags, flags pairFlags) error {
	ch, err := readChannel(ctx, cl, code)
	if err != nil {
		return err
	}
	if !ch.Simulated {
		return fail(exitRefused, "channel %s is on %s already. Pair it with: parley channel pair %s", code, ch.Network, code)
	}
	c.printGoLive(code)
	if live, err = c.decideGoLive(ctx, code, live); err != nil {
		return err
	}
	body := map[string]any{"everybody": true}
	if !live.everybody {
		body = map[string]any{"allow": live.allow}
	}
	body["network"] = live.network
	maps.Copy(body, live.account)
	if _, err := cl.Post(ctx, client.Path("channels", code, "go-live"), body, nil); err != nil {
		return err
	}
	c.hint("✓ saved. Change later: parley channel allow %s …\n", code)
	if len(live.account) > 0 { // there is nothing to pair
		return nil
	}
	if flags == (pairFlags{}) && !c.json && !c.errTerminal {
		return fail(exitNeedsPerson, "%s is on WhatsApp and not paired yet. Pair it with: "+
			"parley channel pair %s and --code NUMBER, --png FILE, --link or --json", code, code)
	}
	return c.pair(ctx, cl, code, flags)
}

func (c *cli) printGoLive(code string) {
	c.hint(`%[1]s moves from the sandbox to WhatsApp.
  stays      code %[1]s, its name, tokens, webhooks, secrets and settings, every URL you call
  changes    messages reach real people; the simulated phones are gone, and their history is archived
  permanent  it cannot go back to the sandbox
  unofficial WhatsApp may restrict numbers that write first to strangers. Read: parley help risks
`, code)
}

// decideGoLive determines the contacts that the channel may write to, from the flags or by asking.
func (c *cli) decideGoLive(ctx context.Context, code string, live goLiveFlags) (goLiveFlags, error) {
	canAsk := c.inTerminal && c.errTerminal && !c.noInput
	var err error
	switch {
	case live.decided():
		if err := c.confirm(ctx, live.yes, fmt.Sprintf("This moves %s to WhatsApp permanently", code), code); err != nil {
			return live, err
		}
	case !canAsk:
		return live, fail(exitUsage, "choose the contacts that %s may write to: --allow NUMBER,NUMBER or --everybody", code)
	default:
		if err = c.askGoLive(ctx, code, &live); err != nil {
			return live, err
		}
	}
	for i, number := range live.allow {
		if live.allow[i], err = digits(strings.TrimSpace(number)); err != nil {
			return live, err
		}
	}
	return live, nil
}

// askGoLive asks for the contacts that the channel may write to. Empty input means an allow-list.
func (c *cli) askGoLive(ctx context.Context, code string, live *goLiveFlags) error {
	who, err := c.ask(ctx, fmt.Sprintf("Who may %s write to?  1 only numbers I allow   2 everybody  [1] ", code))
	if err != nil {
		return err
	}
	switch {
	case who == "2" || strings.EqualFold(who, "everybody"):
		live.everybody = true
		return nil
	case who != "" && who != "1":
		return fail(exitUsage, "%q is neither 1 nor 2. Nothing was changed", who)
	}
	numbers, err := c.ask(ctx, "Allowed numbers (comma separated): ")
	if err != nil {
		return err
	}
	if numbers == "" {
		return fail(exitUsage, "no number was given. Nothing was changed")
	}
	live.allow = strings.Split(numbers, ",")
	return nil
}
