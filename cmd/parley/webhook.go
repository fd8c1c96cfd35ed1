package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/client"
)

func (c *cli) webhook() *cobra.Command {
	return newGroup("webhook", "Manage webhooks", `  parley webhook add https://example.com/hook
  parley webhook list`,
		c.webhookAdd(), c.webhookList(), c.webhookShow(), c.webhookTest(), c.webhookRotate(),
		c.webhookSwitch("enable", "Enable a webhook; waiting events are delivered at once", true),
		c.webhookSwitch("disable", "Disable a webhook; its events wait until it is enabled", false), c.webhookRemove())
}

func (c *cli) webhookAdd() *cobra.Command {
	var channel, links string
	var events []string
	cmd := &cobra.Command{
		Use:   "add URL",
		Short: "Add a webhook; prints its id and its secret",
		Long: "Add a webhook. By default it receives every event on every channel, starting now. Prints its id and the\n" +
			"secret that signs its deliveries.",
		Example: `  parley webhook add https://example.com/hook
  parley webhook add https://example.com/hook --channel toko --events message.received,message.status`,
		RunE: func(cmd *cobra.Command, args []string) error {
			types, err := eventTypes(events)
			if err != nil {
				return err
			}
			body := texts("channel", channel, "media_links", links)
			body["url"] = args[0]
			if len(types) > 0 {
				body["events"] = types
			}
			return c.manageOrCreate(cmd, func(ctx context.Context, api *client.Client) error {
				var w webhook
				r, err := api.Post(ctx, client.Path("webhooks"), body, &w)
				if err != nil {
					return explainNoChannel(ctx, api, err, channel)
				}
				if w.Warning != "" {
					c.hint("%s", w.Warning)
				}
				c.hint("Try it with: parley webhook test %s", w.ID)
				return c.print(r.Data, fmt.Sprintf("%-7s %s\n%-7s %s", "id", w.ID, "secret", w.Secret))
			})
		},
	}
	cmd.Flags().StringVar(&channel, "channel", "", "only events of this channel (default: every channel)")
	cmd.Flags().StringSliceVar(&events, "events", nil, "only events of these types, separated by commas (default: every type)")
	cmd.Flags().StringVar(&links, "media-links", "", "links to files in events: token, or signed to work without a token for 24 hours")
	return cmd
}

func eventTypes(names []string) ([]parley.EventType, error) {
	var types []parley.EventType
	for _, name := range names {
		t, known := parley.ParseEventType(strings.TrimSpace(name))
		if !known {
			all := typeNames(parley.EventTypes)
			return nil, fail(exitUsage, "--events: there is no type %q.%s Types: %s", name, didYouMean(name, all), strings.Join(all, ", "))
		}
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types, nil
}

func (c *cli) webhookList() *cobra.Command {
	return newList(c, "List the webhooks", "webhook", []any{"id", "url", "channel", "events", "state", "created"},
		func(w *webhook) []any {
			channel, events := scopeOf(w)
			return []any{w.ID, w.URL, channel, events, stateOf(w), when(w.CreatedAt)}
		})
}

// webhook is a webhook as the API shows it.
type webhook struct {
	parley.Webhook
	MediaLinks string `json:"media_links"`
	Warning    string `json:"warning"`
	Secret     string `json:"secret"` // of one that was just created
}

func stateOf(w *webhook) string {
	switch {
	case !w.IsEnabled():
		return "off"
	case w.Failures > 0:
		return "failing"
	}
	return "on"
}

// scopeOf says which channel and which events a webhook is for.
func scopeOf(w *webhook) (channel, events string) {
	return cmp.Or(string(w.Channel), "all"), cmp.Or(strings.Join(typeNames(w.Types), ","), "all")
}

func typeNames(types []parley.EventType) []string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	return names
}

func (c *cli) webhookShow() *cobra.Command {
	var withSecret bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a webhook",
		Example: `  parley webhook show whk_2f0c6a9be1d84c53a7f0
  parley webhook show whk_2f0c6a9be1d84c53a7f0 --secret`,
		RunE: c.onResource("webhook", func(ctx context.Context, api *client.Client, id string) error {
			r, err := api.Get(ctx, client.Path("webhooks", id), nil, nil)
			if err == nil && withSecret {
				err = addSecret(ctx, api, client.Path("webhooks", id, "secret"), r)
			}
			return printData(c, r, err, c.printWebhook)
		}),
	}
	cmd.Flags().BoolVar(&withSecret, "secret", false, "show its secret too")
	return cmd
}

func addSecret(ctx context.Context, api *client.Client, path string, r *client.Response) error {
	var s client.Secret
	if _, err := api.Get(ctx, path, nil, &s); err != nil {
		return err
	}
	all := strings.TrimSuffix(strings.TrimSpace(string(r.Data)), "}")
	r.Data = json.RawMessage(fmt.Sprintf("%s,%q:%q}", all, "secret", s.Secret))
	return nil
}

func (c *cli) printWebhook(w *webhook) {
	channel, events := scopeOf(w)
	lines := [][2]string{
		{"id", string(w.ID)}, {"url", w.URL}, {"channel", channel}, {"events", events}, {"state", stateOf(w)}, {"created", when(w.CreatedAt)},
	}
	if !w.IsEnabled() {
		lines = append(lines, [2]string{"off since", when(w.DisabledAt)}, [2]string{"reason", w.Reason})
	}
	if w.MediaLinks == "signed" {
		lines = append(lines, [2]string{"media links", w.MediaLinks})
	}
	if w.Failures > 0 {
		lines = append(lines, [2]string{"failing", fmt.Sprintf("%s since %s", count(w.Failures, "attempt"), when(w.FailingSince))})
	}
	if w.Secret != "" {
		lines = append(lines, [2]string{"secret", w.Secret})
	}
	c.printLines(lines)
}

func (c *cli) webhookTest() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test ID",
		Short: "Send a test event to a webhook and show the response",
		Long:  "Send a test event to a webhook and show the response. The server must be running.",
		Example: `  parley webhook test whk_2f0c6a9be1d84c53a7f0
  parley webhook test whk_2f0c6a9be1d84c53a7f0 --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.onServer(cmd, func(ctx context.Context, api *client.Client) error {
				r, err := api.Post(ctx, client.Path("webhooks", args[0], "test"), nil, nil)
				err = printData(c, r, err, func(a *client.Attempt) { fmt.Fprintln(c.out, a) })
				if err == nil && !r.Success {
					return fail(exitNegative, "%s", r.Message)
				}
				return err
			})
		},
	}
	settingFlags(cmd.Flags(), keyURL, keyAdminToken)
	return cmd
}

func (c *cli) webhookRotate() *cobra.Command {
	return &cobra.Command{
		Use:   "rotate ID",
		Short: "Replace a webhook's secret and print the new one; for 24 hours the old one signs too",
		Example: `  parley webhook rotate whk_2f0c6a9be1d84c53a7f0
  SECRET=$(parley webhook rotate whk_2f0c6a9be1d84c53a7f0)`,
		RunE: c.onResource("webhook", func(ctx context.Context, api *client.Client, id string) error {
			return c.rotateSecret(ctx, api, client.Path("webhooks", id, "rotate"))
		}),
	}
}

func (c *cli) webhookSwitch(verb, short string, enabled bool) *cobra.Command {
	return &cobra.Command{
		Use:     verb + " ID",
		Short:   short,
		Example: fmt.Sprintf("  parley webhook %s whk_2f0c6a9be1d84c53a7f0\n  parley webhook %s whk_2f0c6a9be1d84c53a7f0 --json", verb, verb),
		RunE: c.onResource("webhook", func(ctx context.Context, api *client.Client, id string) error {
			r, err := api.Call(ctx, http.MethodPatch, client.Path("webhooks", id), nil, map[string]bool{"enabled": enabled}, nil)
			if err == nil {
				c.hint("saved")
			}
			return printData(c, r, err, c.printWebhook)
		}),
	}
}

func (c *cli) webhookRemove() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "remove ID",
		Short: "Delete a webhook with its deliveries, including waiting ones",
		Example: `  parley webhook remove whk_2f0c6a9be1d84c53a7f0
  parley webhook remove whk_2f0c6a9be1d84c53a7f0 --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.delete(cmd, "webhook", args[0], yes, func(url string) string {
				return fmt.Sprintf("This permanently deletes the webhook to %s with its secret and its deliveries", url)
			}, func(context.Context, *client.Client, *client.Response) error {
				return c.done("deleted webhook %s", args[0])
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return cmd
}
