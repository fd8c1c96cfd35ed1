package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/client"
	"parley/internal/doctor"
	"parley/internal/wait"
)

func (c *cli) channel() *cobra.Command {
	return newGroup("channel", "Manage channels", `  parley channel create toko --name 'Toko Ayu'
  parley channel list`,
		c.channelCreate(), c.channelList(), c.channelShow(),
		c.channelSwitch("start", "Start a channel"),
		c.channelSwitch("stop", "Stop a channel. Queued messages stay queued"),
		c.channelPair(), c.channelGoLive(), c.channelLogout(),
		c.channelSet(), c.channelAllow(), c.channelSecret(), c.channelDelete(), c.channelDeletions())
}

func (c *cli) channelCreate() *cobra.Command {
	var name, network, hook string
	var labels []string
	cmd := &cobra.Command{
		Use:   "create CODE",
		Short: "Create a channel",
		Long: `Create a channel. A running server starts it at once. Without --network it is on the sandbox, with simulated
phones. With --webhook, add a webhook for its events too, and print the webhook's id and secret.`,
		Example: `  parley channel create toko --network whatsapp --name 'Toko Ayu'
  parley channel create try --webhook https://example.com/hook`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if hook != "" {
				if _, err := serverURL(settingValue{hook, "--webhook"}); err != nil {
					return fail(exitUsage, "--webhook: %q is not an address such as https://example.com/hook", hook)
				}
			}
			body := texts("name", name)
			body["code"], body["network"] = args[0], network
			if len(labels) > 0 {
				body["labels"] = labels
			}
			return c.manageOrCreate(cmd, func(ctx context.Context, api *client.Client) error {
				r, err := api.Post(ctx, client.Path("channels"), body, nil)
				if isInvalid(err) {
					if _, other := api.Get(ctx, client.Path("channels", args[0]), nil, nil); other == nil {
						return fail(exitRefused, "%w", err) // the code is in use
					}
				}
				if err == nil {
					c.hintCreated(args[0], network, cmd.Flags().Changed("network"))
				}
				if err == nil && hook != "" {
					return c.addHook(ctx, api, r, args[0], hook)
				}
				return printData(c, r, err, c.printChannel)
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "display name (default: the code)")
	cmd.Flags().StringSliceVar(&labels, "label", nil, "a label to find it by; may be repeated")
	cmd.Flags().StringVar(&network, "network", string(parley.Sandbox), "the chat network: sandbox or whatsapp")
	cmd.Flags().StringVar(&hook, "webhook", "", "an address that receives the channel's events")
	return cmd
}

// addHook adds a webhook to a channel that was just created, and prints both.
func (c *cli) addHook(ctx context.Context, api *client.Client, created *client.Response, code, url string) error {
	var w webhook
	added, err := api.Post(ctx, client.Path("webhooks"), map[string]string{"url": url, "channel": code}, &w)
	if err != nil {
		return errors.Join(printData(c, created, nil, c.printChannel), fmt.Errorf(
			"channel %s was created, but not its webhook: %w. Add it with: parley webhook add URL --channel %s", code, err, code))
	}
	if c.json {
		var document map[string]json.RawMessage
		if err := json.Unmarshal(created.Data, &document); err != nil {
			return err
		}
		document["webhook"] = added.Data
		return c.printJSON(document)
	}
	if w.Warning != "" {
		c.hint("%s", w.Warning)
	}
	err = printData(c, created, nil, c.printChannel)
	c.printLines([][2]string{{"webhook", string(w.ID)}, {"secret", w.Secret}})
	return err
}

func (c *cli) hintCreated(code, network string, chosen bool) {
	c.hint("Created channel %s. Create a token for it with: parley token create --kind channel --channel %s", code, code)
	switch {
	case network == string(parley.WhatsApp):
		c.hint("Link it to a phone with: parley channel pair %s", code)
	case !chosen && !c.quiet: // also without a terminal: nothing else would show the mistake
		fmt.Fprintf(c.err, "%s is on the sandbox: its phones are simulated. For real phones create it with --network whatsapp\n", code)
	}
}

func (c *cli) channelList() *cobra.Command {
	var search, status, network, label string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the channels",
		Long:  "List the channels, by code. Filters narrow the list together.",
		Example: `  parley channel list --status LOGGED_OUT
  parley channel list --label jakarta --search toko --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{"limit": {"200"}}
			for name, value := range map[string]string{
				"search": search, "status": strings.ToUpper(status), "network": network, "label": label,
			} {
				if value != "" {
					query.Set(name, value)
				}
			}
			return c.manage(cmd, func(ctx context.Context, api *client.Client) error {
				r, err := api.All(ctx, client.Path("channels"), query, nil)
				return printRows(c, r, err, []any{"code", "name", "network", "status", "number", "since", "labels"},
					func(ch *client.Channel) []any {
						return []any{ch.Code, ch.Name, ch.Network, ch.Status, ch.Number, when(ch.Since), strings.Join(ch.Labels, ", ")}
					})
			})
		},
	}
	cmd.Flags().StringVar(&search, "search", "", "only those with this in their code, name or number")
	cmd.Flags().StringVar(&status, "status", "", "only those in this status, for example LOGGED_OUT")
	cmd.Flags().StringVar(&network, "network", "", "only those of this network: sandbox or whatsapp")
	cmd.Flags().StringVar(&label, "label", "", "only those with this label")
	statuses := make([]string, len(parley.ChannelStatuses))
	for i, s := range parley.ChannelStatuses {
		statuses[i] = string(s)
	}
	_ = cmd.RegisterFlagCompletionFunc("status", fixed(statuses...)) // fails only without the flag
	return cmd
}

func (c *cli) channelShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show CODE",
		Short: "Show a channel",
		Example: `  parley channel show demo
  parley channel show demo --json`,
		RunE: c.onResource("channel", func(ctx context.Context, api *client.Client, code string) error {
			r, err := api.Get(ctx, client.Path("channels", code), nil, nil)
			return printData(c, r, err, func(ch *client.Channel) {
				c.printChannel(ch)
				c.printRunning(ch, time.Now())
			})
		}),
	}
}

func (c *cli) printChannel(ch *client.Channel) {
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
	c.printLines([][2]string{
		{"code", string(ch.Code)}, {"name", ch.Name}, {"network", string(ch.Network)}, {"number", ch.Number},
		{"labels", strings.Join(ch.Labels, ", ")}, {"enabled", fmt.Sprint(ch.Enabled)}, {"status", string(ch.Status)}, {"reason", ch.Reason},
		{"since", when(ch.Since)}, {"created", when(ch.CreatedAt)},
		{"pace", showPace(ch)}, {"ttl", parley.Duration(ch.Settings.MessageTTL()).String()},
		{"retention", retention}, {"writes to", allowed},
	})
}

func (c *cli) printLines(lines [][2]string) {
	for _, line := range lines {
		fmt.Fprintf(c.out, "%-10s %s\n", line[0], line[1])
	}
}

func (c *cli) printStatus(ch *client.Channel) { fmt.Fprintln(c.out, ch.Status) }

func showPace(ch *client.Channel) string {
	least, most := parley.Channel{Network: ch.Network, Settings: ch.Settings}.Pace()
	if least == most {
		return least.String()
	}
	return fmt.Sprintf("%s to %s, random", least, most)
}

// printRunning shows what only a running server knows about a channel.
func (c *cli) printRunning(ch *client.Channel, now time.Time) {
	var lines [][2]string
	if e := ch.Evidence; e != nil {
		var seen []string
		for _, one := range []struct {
			what string
			at   *time.Time
		}{{"connected", e.Connected}, {"heard", e.Heard}, {"confirmed", e.Confirmed}, {"received", e.Received}} {
			if one.at != nil {
				seen = append(seen, fmt.Sprintf("%s %s ago", one.what, doctor.Lasted(max(0, now.Sub(*one.at)))))
			}
		}
		if len(seen) == 0 {
			seen = []string{"none yet"}
		}
		lines = append(lines, [2]string{"evidence", strings.Join(seen, ", ")})
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
		lines = append(lines, [2]string{"pairing", text})
	}
	if ch.RestrictedUntil != nil {
		lines = append(lines, [2]string{"restricted", "cannot write to new contacts until " + when(*ch.RestrictedUntil)})
	}
	c.printLines(lines)
}

func (c *cli) channelSwitch(verb, short string) *cobra.Command {
	return &cobra.Command{
		Use:     verb + " CODE",
		Short:   short,
		Example: fmt.Sprintf("  parley channel %s demo\n  parley channel %s demo --data /var/lib/parley", verb, verb),
		RunE: c.onResource("channel", func(ctx context.Context, api *client.Client, code string) error {
			r, err := api.Post(ctx, client.Path("channels", code, verb), nil, nil)
			if err == nil && verb == "start" {
				r, err = awaitStarted(ctx, api, code)
			}
			return printData(c, r, err, c.printChannel)
		}),
	}
}

// awaitStarted waits up to 3 s while a channel connects, and returns it.
func awaitStarted(ctx context.Context, api *client.Client, code string) (*client.Response, error) {
	for limit := time.Now().Add(3 * time.Second); ; {
		var ch client.Channel
		r, err := api.Get(ctx, client.Path("channels", code), nil, &ch)
		if err != nil || ch.Status != parley.ChannelStarting || time.Now().After(limit) {
			return r, err
		}
		if !wait.Sleep(ctx, healthEvery) {
			return nil, ctx.Err()
		}
	}
}

func (c *cli) channelLogout() *cobra.Command {
	const short = "Unlink a channel from its account"
	cmd := &cobra.Command{
		Use:     "logout CODE",
		Short:   short,
		Long:    short + ". The server must be running.",
		Example: "  parley channel logout demo\n  parley channel logout demo --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.onServer(cmd, func(ctx context.Context, api *client.Client) error {
				r, err := api.Post(ctx, client.Path("channels", args[0], "logout"), nil, nil)
				return printData(c, r, err, c.printStatus)
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
		Short: "Print the secret that signs the callbacks of a channel's login links",
		Example: `  parley channel secret toko
  parley channel secret toko --rotate`,
		RunE: c.onResource("channel", func(ctx context.Context, api *client.Client, code string) error {
			if rotate {
				return c.rotateSecret(ctx, api, client.Path("channels", code, "secret", "rotate"))
			}
			var s client.Secret
			if _, err := api.Get(ctx, client.Path("channels", code, "secret"), nil, &s); err != nil {
				return err
			}
			return c.print(s, s.Secret)
		}),
	}
	cmd.Flags().BoolVar(&rotate, "rotate", false, "replace it first; for 24 hours the old one signs too")
	return cmd
}

func (c *cli) rotateSecret(ctx context.Context, api *client.Client, path string) error {
	var s client.Secret
	if _, err := api.Post(ctx, path, nil, &s); err != nil {
		return err
	}
	c.hint("for 24 hours the old secret signs too")
	return c.print(s, s.Secret)
}

// delete deletes a channel or a webhook after a question, and calls then. The url in the question is the webhook's.
func (c *cli) delete(cmd *cobra.Command, kind, id string, yes bool, question func(url string) string,
	then func(context.Context, *client.Client, *client.Response) error) error {
	var present struct {
		URL string `json:"url"`
	}
	err := c.manage(cmd, func(ctx context.Context, api *client.Client) error {
		_, err := api.Get(ctx, client.Path(kind+"s", id), nil, &present)
		return explainNotFound(err, kind, id)
	})
	if err != nil {
		return err
	}
	asked := question(present.URL)
	if c.profile != "" {
		asked += " on " + c.set.text(keyURL)
	}
	if err := c.confirm(cmd.Context(), yes, asked, id); err != nil { // the data directory is not locked meanwhile
		return err
	}
	return c.manage(cmd, func(ctx context.Context, api *client.Client) error {
		r, err := api.Call(ctx, http.MethodDelete, client.Path(kind+"s", id), nil, nil, nil)
		if err != nil {
			return explainNotFound(err, kind, id)
		}
		return then(ctx, api, r)
	})
}
