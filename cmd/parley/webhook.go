package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/wire"
)

func (c *cli) webhook() *cobra.Command {
	show := one((*cli).showWebhook)
	return c.resource(resource{
		name: "webhook", short: "Manage webhooks", id: "whk_2f0c6a9be1d84c53a7f0",
		example: `  parley webhook add https://example.com/hook
  parley webhook list`,
		verbs: []verb{{
			use: "add URL", short: "Add a webhook; prints its id and its secret",
			long: "Add a webhook. By default it receives every event on every channel, starting now. Prints its id and the\n" +
				"secret that signs its deliveries.",
			example: `  parley webhook add https://example.com/hook
  parley webhook add https://example.com/hook --channel toko --events message.received,message.status`,
			flags: []flag{
				textFlag("channel", "only events of this channel (default: every channel)"),
				listFlag("events", "only events of these types, separated by commas (default: every type)"),
				textFlag("media-links", "links to files in events: token, or signed to work without a token for 24 hours"),
			},
			check: checkEvents, arg: "url", call: "POST webhooks", creates: true,
			print: one(func(c *cli, w *webhook) string {
				if w.Warning != "" {
					c.warn("%s", w.Warning)
				}
				c.hint("Try it with: parley webhook test %s", w.ID)
				return pairs("id", string(w.ID), "secret", w.Secret)
			}),
		}, {
			use: "list", short: "List the webhooks", call: "GET webhooks", none: "There are no webhooks. Add one with: parley webhook add URL",
			print: rows("id,url,channel,events,state,created", func(w *webhook) []any {
				return []any{w.ID, w.URL, w.channel(), w.events(), w.state(), when(w.CreatedAt.Time)}
			}),
		}, {
			use: "show ID", short: "Show a webhook", flags: []flag{boolFlag("secret", "show its secret too")},
			example: `  parley webhook show whk_2f0c6a9be1d84c53a7f0
  parley webhook show whk_2f0c6a9be1d84c53a7f0 --secret`,
			call: "GET webhooks/*", print: show, run: showWithSecret,
		}, {
			use: "test ID", short: "Send a test event to a webhook and show the response",
			long: "Send a test event to a webhook and show the response. The server must be running.",
			call: "POST webhooks/*/test", live: true,
			print: one(func(_ *cli, a *wire.Attempt) string { return a.String() }),
		}, {
			use: "rotate ID", short: "Replace a webhook's secret and print the new one; for 24 hours the old one signs too",
			example: `  parley webhook rotate whk_2f0c6a9be1d84c53a7f0
  SECRET=$(parley webhook rotate whk_2f0c6a9be1d84c53a7f0)`,
			call: "POST webhooks/*/rotate", hint: rotated, print: printSecret,
		}, {
			use: "enable ID", short: "Enable a webhook; waiting events are delivered at once",
			set: fields{"enabled": true}, call: "PATCH webhooks/*", hint: "saved", print: show,
		}, {
			use: "disable ID", short: "Disable a webhook; its events wait until it is enabled",
			set: fields{"enabled": false}, call: "PATCH webhooks/*", hint: "saved", print: show,
		}, {
			use: "remove ID", short: "Delete a webhook with its deliveries, including waiting ones",
			example: `  parley webhook remove whk_2f0c6a9be1d84c53a7f0
  parley webhook remove whk_2f0c6a9be1d84c53a7f0 --yes`,
			question: func(_ string, w fields) string {
				return fmt.Sprintf("This permanently deletes the webhook to %s with its secret and its deliveries", w["url"])
			},
			call: "DELETE webhooks/*", hint: "deleted webhook *",
		}},
	})
}

const rotated = "for 24 hours the old secret signs too"

var printSecret = one(func(_ *cli, s *wire.Secret) string { return s.Secret })

// checkEvents replaces the names of events by their types.
func checkEvents(f fields) error {
	names, _ := f["events"].([]string)
	types, err := eventTypes(names)
	if len(types) > 0 {
		f["events"] = types
	}
	return err
}

func eventTypes(names []string) ([]parley.EventType, error) {
	var types []parley.EventType
	for _, name := range names {
		t, known := parley.ParseEventType(strings.TrimSpace(name))
		if !known {
			all := words(parley.EventTypes)
			return nil, fail(exitUsage, "--events: there is no type %q.%s Types: %s", name, didYouMean(name, all), strings.Join(all, ", "))
		}
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return types, nil
}

// webhook is one as the API shows it; only a new one has its secret.
type webhook wire.NewWebhook

func (w *webhook) state() string {
	switch {
	case !w.Enabled:
		return "off"
	case w.Failures > 0:
		return "failing"
	}
	return "on"
}

func (w *webhook) channel() string { return cmp.Or(string(w.Channel), "all") }
func (w *webhook) events() string  { return cmp.Or(strings.Join(words(w.Events), ","), "all") }

// words are the names of values.
func words[T any](values []T) []string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = fmt.Sprint(v)
	}
	return names
}

func showWithSecret(ctx context.Context, t *task) error {
	withSecret := t.fields.pop("secret") != nil
	r, err := t.request(ctx)
	if err == nil && withSecret {
		var s wire.Secret
		_, err = t.api.Get(ctx, t.path()+"/secret", nil, &s)
		all := strings.TrimSuffix(strings.TrimSpace(string(r.Data)), "}")
		r.Data = json.RawMessage(fmt.Sprintf("%s,%q:%q}", all, "secret", s.Secret))
	}
	return t.finish(r, err)
}

func (*cli) showWebhook(w *webhook) string {
	lines := []string{"id", string(w.ID), "url", w.URL, "channel", w.channel(), "events", w.events(), "state", w.state(),
		"created", when(w.CreatedAt.Time)}
	if !w.Enabled {
		lines = append(lines, "off since", when(w.DisabledAt.Time), "reason", w.Reason)
	}
	if w.MediaLinks == "signed" {
		lines = append(lines, "media links", w.MediaLinks)
	}
	if w.Failures > 0 {
		lines = append(lines, "failing", fmt.Sprintf("%s since %s", count(w.Failures, "attempt"), when(w.FailingSince.Time)))
	}
	if w.Secret != "" {
		lines = append(lines, "secret", w.Secret)
	}
	return pairs(lines...)
}
