package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/app"
	"parley/internal/doctor"
	"parley/internal/safehttp"
)

func (c *cli) webhook() *cobra.Command {
	return newGroup("webhook", "Have addresses told of events", `  parley webhook add https://example.com/hook
  parley webhook list`,
		c.webhookAdd(), c.webhookList(), c.webhookShow(), c.webhookTest(), c.webhookRotate(),
		c.webhookSwitch("enable", true), c.webhookSwitch("disable", false), c.webhookRemove())
}

// webhookView is a webhook as JSON.
type webhookView struct {
	ID           parley.WebhookID    `json:"id"`
	URL          string              `json:"url"`
	Channel      *parley.ChannelCode `json:"channel"`
	Events       []parley.EventType  `json:"events"`
	Enabled      bool                `json:"enabled"`
	Reason       string              `json:"reason"`
	DisabledAt   *time.Time          `json:"disabled_at"`
	FailingSince *time.Time          `json:"failing_since"`
	Failures     int                 `json:"failures"`
	CreatedAt    *time.Time          `json:"created_at"`
	Secret       string              `json:"secret,omitempty"` // when it was asked for
}

func viewWebhook(w parley.Webhook, secret string) webhookView {
	view := webhookView{
		ID: w.ID, URL: w.URL, Events: append([]parley.EventType{}, w.Types...), Enabled: w.IsEnabled(), Reason: w.Reason,
		DisabledAt: orNil(w.DisabledAt), FailingSince: orNil(w.FailingSince), Failures: w.Failures,
		CreatedAt: orNil(w.CreatedAt), Secret: secret,
	}
	if w.Channel != "" {
		view.Channel = &w.Channel
	}
	return view
}

func (c *cli) webhookAdd() *cobra.Command {
	var channel string
	var events []string
	cmd := &cobra.Command{
		Use:   "add URL",
		Short: "Have an address told of what happens from now on; prints its id and its secret",
		Long: "Have an address told of what happens from now on: on every channel and of every event, unless told\n" +
			"otherwise. Prints its id and the secret that its deliveries are signed with.",
		Example: `  parley webhook add https://example.com/hook
  parley webhook add https://example.com/hook --channel toko --events message.received,message.status`,
		Args: takes("URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := safehttp.CheckURL(args[0]); err != nil {
				return fail(exitUsage, "%w", err)
			}
			types, err := eventTypes(events)
			if err != nil {
				return err
			}
			w := parley.Webhook{ID: parley.NewWebhookID(), URL: args[0], Channel: parley.ChannelCode(channel), Types: types, CreatedAt: time.Now()}
			return c.withData(cmd.Context(), true, func(data *app.Data) error { return c.addWebhook(cmd.Context(), data, w) })
		},
	}
	cmd.Flags().StringVar(&channel, "channel", "", "only events of this channel (default: of every channel)")
	cmd.Flags().StringSliceVar(&events, "events", nil, "only events of these types, separated by commas (default: of every type)")
	return cmd
}

func (c *cli) addWebhook(ctx context.Context, data *app.Data, w parley.Webhook) error {
	err := data.Store.Tx(ctx, func(tx parley.Tx) error {
		if w.Channel != "" {
			if _, err := tx.Channel(ctx, w.Channel); err != nil {
				return err
			}
		}
		return tx.AddWebhook(ctx, w)
	})
	if errors.Is(err, parley.ErrNotFound) {
		return noChannel(w.Channel)
	}
	if err != nil {
		return err
	}
	keys, err := secretsOf(data).Of(ctx, parley.WebhookSecret(w.ID))
	if err != nil {
		return err
	}
	if unencrypted(w.URL) {
		c.hint("%s is not encrypted: anyone on the network path can read it", w.URL)
	}
	c.hint("a running server sends to it within a second. Try it with: parley webhook test %s", w.ID)
	if c.json {
		return c.printJSON(viewWebhook(w, keys.Secret))
	}
	fmt.Fprintf(c.out, "%-7s %s\n%-7s %s\n", "id", w.ID, "secret", keys.Secret)
	return nil
}

// unencrypted reports whether what is sent to an address can be read on the way.
func unencrypted(address string) bool { return doctor.IsUnencrypted(address) }

// eventTypes reads the names of types, each once.
func eventTypes(names []string) ([]parley.EventType, error) {
	var types []parley.EventType
	for _, name := range names {
		t, known := parley.ParseEventType(strings.TrimSpace(name))
		if !known {
			all := make([]string, len(parley.EventTypes))
			for i, t := range parley.EventTypes {
				all[i] = string(t)
			}
			return nil, fail(exitUsage, "--events: there is no type %q.%s There are: %s", name, didYouMean(name, all), strings.Join(all, ", "))
		}
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types, nil
}

func (c *cli) webhookList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the webhooks",
		Example: `  parley webhook list
  parley webhook list --json`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withData(cmd.Context(), false, func(data *app.Data) error {
				webhooks, err := data.Store.Webhooks(cmd.Context())
				if err != nil {
					return err
				}
				views := make([]webhookView, len(webhooks))
				rows := make([][]any, len(webhooks))
				for i, w := range webhooks {
					views[i] = viewWebhook(w, "")
					rows[i] = []any{w.ID, w.URL, orAll(string(w.Channel)), orAll(joinTypes(w.Types)), webhookState(w), when(w.CreatedAt)}
				}
				if c.json {
					return c.printJSON(views)
				}
				c.printTable([]any{"id", "url", "channel", "events", "state", "created"}, rows)
				return nil
			})
		},
	}
}

func orAll(text string) string {
	if text == "" {
		return "all"
	}
	return text
}

func joinTypes(types []parley.EventType) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	return strings.Join(names, ",")
}

func webhookState(w parley.Webhook) string {
	switch {
	case !w.IsEnabled():
		return "off"
	case w.Failures > 0:
		return "failing"
	}
	return "on"
}

func (c *cli) webhookShow() *cobra.Command {
	var withSecret bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show all that is known of a webhook",
		Example: `  parley webhook show whk_2f0c6a9be1d84c53a7f0
  parley webhook show whk_2f0c6a9be1d84c53a7f0 --secret`,
		Args: takes("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withData(cmd.Context(), false, func(data *app.Data) error {
				w, err := data.Store.Webhook(cmd.Context(), parley.WebhookID(args[0]))
				if err != nil {
					return noWebhook(err, args[0])
				}
				if !withSecret {
					return c.printWebhook(w, "")
				}
				keys, err := secretsOf(data).Of(cmd.Context(), parley.WebhookSecret(w.ID))
				if err != nil {
					return err
				}
				return c.printWebhook(w, keys.Secret)
			})
		},
	}
	cmd.Flags().BoolVar(&withSecret, "secret", false, "show its secret too")
	return cmd
}

func (c *cli) printWebhook(w parley.Webhook, secret string) error {
	if c.json {
		return c.printJSON(viewWebhook(w, secret))
	}
	lines := [][2]string{
		{"id", string(w.ID)}, {"url", w.URL}, {"channel", orAll(string(w.Channel))}, {"events", orAll(joinTypes(w.Types))},
		{"state", webhookState(w)}, {"created", when(w.CreatedAt)},
	}
	if !w.IsEnabled() {
		lines = append(lines, [2]string{"off since", when(w.DisabledAt)}, [2]string{"reason", w.Reason})
	}
	if w.Failures > 0 {
		lines = append(lines, [2]string{"failing", fmt.Sprintf("%s since %s", count(w.Failures, "attempt"), when(w.FailingSince))})
	}
	if secret != "" {
		lines = append(lines, [2]string{"secret", secret})
	}
	for _, line := range lines {
		fmt.Fprintf(c.out, "%-10s %s\n", line[0], line[1])
	}
	return nil
}

func noWebhook(err error, id string) error {
	if errors.Is(err, parley.ErrNotFound) {
		return fail(exitNotSo, "there is no webhook %s. See: parley webhook list", id)
	}
	return err
}

func (c *cli) webhookTest() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test ID",
		Short: "Send a test event to a webhook and show what it answered",
		Long:  "Send a test event to a webhook and show what it answered. The server must be running.",
		Example: `  parley webhook test whk_2f0c6a9be1d84c53a7f0
  parley webhook test whk_2f0c6a9be1d84c53a7f0 --json`,
		Args: takes("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, done, err := c.adminClient(cmd.Context(), "parley webhook test")
			if err != nil {
				return err
			}
			defer done()
			var tried attemptView
			a, err := cl.call(cmd.Context(), http.MethodPost, "/api/manage/webhooks/"+url.PathEscape(args[0])+"/test", nil, nil, &tried)
			if err != nil {
				return err
			}
			if c.json {
				err = c.printJSON(a.Data)
			} else {
				fmt.Fprintln(c.out, tried)
			}
			if err == nil && (a.Success == nil || !*a.Success) {
				return fail(exitNotSo, "%s", a.Message)
			}
			return err
		},
	}
	settingFlags(cmd.Flags(), keyURL, keyAdminToken)
	return cmd
}

// attemptView is how an attempt to deliver went.
type attemptView struct {
	Code    *int   `json:"code"`
	TookMS  int64  `json:"took_ms"`
	Problem string `json:"problem"`
	Answer  string `json:"answer"`
}

// String says it in a few words: "200 in 84 ms", "timeout in 10000 ms".
func (a attemptView) String() string {
	what, _, _ := strings.Cut(a.Problem, ":")
	if a.Code != nil {
		what = fmt.Sprint(*a.Code)
	}
	return fmt.Sprintf("%s in %d ms", what, a.TookMS)
}

func (c *cli) webhookRotate() *cobra.Command {
	return &cobra.Command{
		Use:   "rotate ID",
		Short: "Make a new secret for a webhook and print it; for 24 hours the old one signs too",
		Example: `  parley webhook rotate whk_2f0c6a9be1d84c53a7f0
  SECRET=$(parley webhook rotate whk_2f0c6a9be1d84c53a7f0)`,
		Args: takes("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withData(cmd.Context(), false, func(data *app.Data) error {
				w, err := data.Store.Webhook(cmd.Context(), parley.WebhookID(args[0]))
				if err != nil {
					return noWebhook(err, args[0])
				}
				return c.printSecret(cmd.Context(), data, parley.WebhookSecret(w.ID), true)
			})
		},
	}
}

// webhookSwitch makes the commands that say whether a webhook is told of events.
func (c *cli) webhookSwitch(verb string, enabled bool) *cobra.Command {
	short := map[bool]string{true: "Switch a webhook on: what waited is sent at once", false: "Switch a webhook off; what happens meanwhile waits"}[enabled]
	return &cobra.Command{
		Use:     verb + " ID",
		Short:   short,
		Example: fmt.Sprintf("  parley webhook %s whk_2f0c6a9be1d84c53a7f0\n  parley webhook %s whk_2f0c6a9be1d84c53a7f0 --json", verb, verb),
		Args:    takes("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.withData(ctx, false, func(data *app.Data) error {
				var w parley.Webhook
				err := data.Store.Tx(ctx, func(tx parley.Tx) (err error) {
					if w, err = tx.Webhook(ctx, parley.WebhookID(args[0])); err != nil {
						return err
					}
					if enabled {
						w.Enable()
						err = tx.HurryDeliveries(ctx, w.ID, time.Now())
					} else if w.IsEnabled() {
						w.Disable(time.Now(), "It was switched off by hand.")
					}
					return errors.Join(err, tx.UpdateWebhook(ctx, w))
				})
				if err != nil {
					return noWebhook(err, args[0])
				}
				c.hint("saved; a running server follows within a second")
				return c.printWebhook(w, "")
			})
		},
	}
}

func (c *cli) webhookRemove() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "remove ID",
		Short: "Remove a webhook with its deliveries, those that wait too",
		Example: `  parley webhook remove whk_2f0c6a9be1d84c53a7f0
  parley webhook remove whk_2f0c6a9be1d84c53a7f0 --yes`,
		Args: takes("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return c.withData(ctx, false, func(data *app.Data) error {
				w, err := data.Store.Webhook(ctx, parley.WebhookID(args[0]))
				if err != nil {
					return noWebhook(err, args[0])
				}
				if err := c.confirm(ctx, yes, fmt.Sprintf("This removes the webhook to %s with its secret and its deliveries for good", w.URL), args[0]); err != nil {
					return err
				}
				if err := data.Store.Tx(ctx, func(tx parley.Tx) error { return tx.DeleteWebhook(ctx, w.ID) }); err != nil {
					return noWebhook(err, args[0])
				}
				return c.done("webhook %s is gone", w.ID)
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}
