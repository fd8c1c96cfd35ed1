package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/client"
)

// risksHelp is what a person should know before a number is used.
const risksHelp = `This way to WhatsApp is unofficial: it works as a linked device does, and WhatsApp may restrict or ban a
number for what it sends. Numbers that write first to many strangers, send the same text to many, or are
blocked by many are at risk; numbers that people write to first are not. Use a number that you can do
without, begin with few contacts that know it, keep the pace, and stop when people ask you to. Where an
account is restricted, channel show says until when.`

func (c *cli) channelGoLive() *cobra.Command {
	var flags pairFlags
	var live goLiveFlags
	cmd := &cobra.Command{
		Use:   "go-live CODE",
		Short: "Take a sandbox channel to WhatsApp, and pair it",
		Long: `Take a sandbox channel to WhatsApp: say whom it may write to, then link it to a phone as channel pair
does. Code, name, tokens, webhooks, secrets and settings stay. This cannot be undone. The server must be running.

` + risksHelp,
		Example: `  parley channel go-live demo
  parley channel go-live demo --allow +6281298765432 --yes --code +6281211112222`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			return c.onServer(cmd, func(ctx context.Context, cl *client.Client) error { return c.goLive(ctx, cl, args[0], live, flags) })
		},
	}
	cmd.Flags().StringSliceVar(&live.allow, "allow", nil, "the only numbers that it may write to, separated by commas")
	cmd.Flags().BoolVar(&live.everybody, "everybody", false, "let it write to everybody")
	cmd.Flags().BoolVar(&live.yes, "yes", false, "do not ask")
	cmd.MarkFlagsMutuallyExclusive("allow", "everybody")
	flags.add(cmd.Flags())
	settingFlags(cmd.Flags(), keyURL, keyAdminToken)
	return cmd
}

// goLiveFlags say whom a channel that goes live may write to.
type goLiveFlags struct {
	allow     []string
	everybody bool
	yes       bool
}

func (f goLiveFlags) decided() bool { return f.everybody || len(f.allow) > 0 }

func (c *cli) goLive(ctx context.Context, cl *client.Client, code string, live goLiveFlags, flags pairFlags) error {
	ch, err := readChannel(ctx, cl, code)
	if err != nil {
		return err
	}
	if ch.Network != parley.Sandbox {
		return fail(exitRefused, "channel %s is on %s already. Pair it with: parley channel pair %s", code, ch.Network, code)
	}
	c.tellGoLive(code)
	if live, err = c.decideGoLive(ctx, code, live); err != nil {
		return err
	}
	body := map[string]any{"everybody": true}
	if !live.everybody {
		body = map[string]any{"allow": live.allow}
	}
	if _, err := cl.Post(ctx, client.Path("channels", code, "go-live"), body, nil); err != nil {
		return err
	}
	c.hint("✓ saved. Change later: parley channel allow %s …\n", code)
	if flags == (pairFlags{}) && !c.json && !c.errTerminal {
		return fail(exitNeedsPerson, "%s is on WhatsApp and waits for a person to pair it: "+
			"parley channel pair %s with --code NUMBER, --png FILE, --link or --json", code, code)
	}
	return c.pair(ctx, cl, code, flags)
}

// tellGoLive says what will change and what will not.
func (c *cli) tellGoLive(code string) {
	c.hint(`%[1]s moves from the sandbox to WhatsApp.
  stays      code %[1]s, its name, tokens, webhooks, secrets and settings, every URL you call
  changes    messages reach real people; the simulated phones are gone, and their history is archived
  for good   it cannot go back to the sandbox
  unofficial WhatsApp may restrict numbers that write first to strangers. Read: parley help risks
`, code)
}

// decideGoLive finds out whom the channel may write to: as told, or by asking.
func (c *cli) decideGoLive(ctx context.Context, code string, live goLiveFlags) (goLiveFlags, error) {
	canAsk := c.inTerminal && c.errTerminal && !c.noInput
	var err error
	switch {
	case live.decided():
		if err := c.confirm(ctx, live.yes, fmt.Sprintf("This moves %s to WhatsApp for good", code), code); err != nil {
			return live, err
		}
	case !canAsk:
		return live, fail(exitUsage, "say whom %s may write to: --allow NUMBER,NUMBER or --everybody", code)
	default:
		if live, err = c.askGoLive(ctx, code); err != nil {
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

// askGoLive asks whom the channel may write to. To allow a few is what an empty answer means.
func (c *cli) askGoLive(ctx context.Context, code string) (live goLiveFlags, err error) {
	who, err := c.ask(ctx, fmt.Sprintf("Who may %s write to?  1 only numbers I allow   2 everybody  [1] ", code))
	if err != nil {
		return live, err
	}
	switch {
	case who == "2" || strings.EqualFold(who, "everybody"):
		live.everybody = true
		return live, nil
	case who != "" && who != "1":
		return live, fail(exitUsage, "%q is neither 1 nor 2. Nothing was done", who)
	}
	numbers, err := c.ask(ctx, "Allowed numbers (comma separated): ")
	if err != nil {
		return live, err
	}
	if numbers == "" {
		return live, fail(exitUsage, "no number was given. Nothing was done")
	}
	live.allow = strings.Split(numbers, ",")
	return live, nil
}
