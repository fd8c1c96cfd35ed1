package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/client"
	"parley/internal/wire"
)

func (c *cli) deliveries() *cobra.Command {
	return c.resource(resource{
		name: "deliveries", short: "List webhook and callback deliveries, and resend them", kind: "delivery", id: "dlv_1a1dde3453748854",
		example: `  parley deliveries list --failed
  parley deliveries replay --failed --since 24h`,
		verbs: []verb{{
			use: "list", short: "List deliveries, newest first",
			example: `  parley deliveries list --failed --since 24h
  parley deliveries list --webhook whk_2f0c6a9be1d84c53a7f0 --limit 10 --json`,
			flags: deliveryFlags(), check: checkFailed, limit: 50, call: "GET deliveries",
			none: "There are no deliveries yet. They begin with a webhook: parley webhook add URL",
			print: rows("id,created,channel,event,to,state,last attempt,attempts", func(d *wire.Delivery) []any {
				return []any{d.ID, when(d.CreatedAt.Time), d.Channel, d.Type, d.URL, d.State, lastResult(d), d.Attempts}
			}),
		}, {
			use: "show ID", short: "Show a delivery, with its attempts and its body",
			call: "GET deliveries/*", print: one((*cli).showDelivery),
		}, {
			use: "retry [ID…]", short: "Retry waiting deliveries now, whatever their schedule",
			long: `Try waiting deliveries now, whatever their schedule. Select them by their ids, or with --webhook all that wait for
a webhook. The server must be running.`,
			example: `  parley deliveries retry dlv_1a1dde3453748854
  parley deliveries retry --webhook whk_2f0c6a9be1d84c53a7f0`,
			flags: []flag{textFlag("webhook", "all that wait for this webhook, by its id")},
			live:  true, run: retryDeliveries,
		}, {
			use: "replay [ID…]", short: "Resend finished deliveries",
			long: "Resend finished deliveries and print how many. Select them by their ids, by the ids of their events, or with\n" +
				"flags. Without --failed, successful ones are resent too. For waiting ones: parley deliveries retry.",
			example: `  parley deliveries replay dlv_1a1dde3453748854
  parley deliveries replay --failed --since 24h`,
			flags: deliveryFlags(), check: checkFailed, call: "POST deliveries/replay", run: replayDeliveries,
		}, {
			use: "export", short: "Export deliveries as CSV or JSON Lines",
			long: `Export all deliveries that the filters select, newest first, as CSV or as JSON lines. The server must be running. In CSV a
cell that begins with =, +, -, @, a tab or a line break has an apostrophe before it, because spreadsheet programs would run
it as a formula. Each export is in the audit log.`,
			example: `  parley deliveries export --failed --since 24h > failed.csv
  parley deliveries export --webhook whk_2f0c6a9be1d84c53a7f0 --format jsonl -o deliveries.jsonl`,
			flags: append(deliveryFlags(), exportFlags()...), check: checkFailed,
			call: "GET deliveries/export", live: true, run: export,
		}},
	})
}

// deliveryFlags select deliveries.
func deliveryFlags() []flag {
	return []flag{
		boolFlag("failed", "only those that failed permanently"),
		textFlag("webhook", "only those of this webhook, by its id"),
		textFlag("channel", "only those of this channel, by its code"),
		textFlag("since", "only those created since: a length of time ago (24h, 7d) or a time (2026-11-15, RFC 3339)").by(readPast),
		textFlag("until", "only those created before: a length of time ago or a time").by(readPast),
	}
}

// checkFailed replaces the flag --failed by the state that it selects.
func checkFailed(f fields) error {
	if f.pop("failed") != nil {
		f["state"] = "failed"
	}
	return nil
}

// readPast reads a time: a length of time ago, or the time itself.
func readPast(flag, text string) (any, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t, err = time.ParseInLocation(time.DateOnly, text, time.Local)
	}
	if d, wrong := parley.ParseDuration(text); wrong == nil && d >= 0 {
		t, err = time.Now().Add(-time.Duration(d)), nil
	}
	if err != nil {
		return nil, fail(exitUsage, "%s: %q is neither a length of time (24h, 7d) nor a time (2026-11-15, 2026-11-15T08:30:00Z)", flag, text)
	}
	return t.UTC().Format(time.RFC3339Nano), nil
}

// lastResult is the result of the last attempt.
func lastResult(d *wire.Delivery) string {
	if d.TriedAt.IsZero() {
		return "-"
	}
	return d.Result.String()
}

func (*cli) showDelivery(d *wire.DeliveryDetail) string {
	to := "callback"
	if d.Webhook != "" {
		to = "webhook " + string(d.Webhook)
	}
	lines := []string{
		"id", string(d.ID), "to", to, "url", d.URL, "event", string(d.Type) + " " + string(d.EventID), "channel", string(d.Channel),
		"state", d.State, "created", when(d.CreatedAt.Time), "attempts", fmt.Sprint(d.Attempts), "tried", when(d.TriedAt.Time),
		"result", lastResult(&d.Delivery), "problem", d.Problem, "response", d.Answer,
	}
	if len(d.History) > 1 || len(d.History) == 1 && d.TriedAt.IsZero() {
		term := "history"
		for _, a := range d.History {
			lines = append(lines, term, fmt.Sprintf("%2d  %s  %s", a.Number, when(a.At.Time), a.Result))
			term = "" // only on the first line
		}
	}
	if !d.NextAt.IsZero() {
		lines = append(lines, "next", when(d.NextAt.Time))
	}
	if d.Body != nil {
		lines = append(lines, "body", *d.Body)
	}
	return pairs(withoutEmpty(lines)...)
}

// replayBatch is how many deliveries one request replays.
const replayBatch = 1000

func addIDs(body fields, ids []string) error {
	events := 0
	for _, id := range ids {
		if strings.HasPrefix(id, "evt_") {
			events++
		}
	}
	switch {
	case len(ids) == 0:
	case events == 0:
		body["ids"] = ids
	case events == len(ids):
		body["event_ids"] = ids
	default:
		return fail(exitUsage, "give ids of deliveries or ids of events, not both")
	}
	return nil
}

func replayDeliveries(ctx context.Context, t *task) error {
	switch {
	case len(t.args) > 0 && len(t.fields) > 0:
		return fail(exitUsage, "give ids or flags that select deliveries, not both")
	case len(t.args) == 0 && len(t.fields) == 0:
		return fail(exitUsage, "ID is missing, or a flag that selects deliveries: --failed, --since, --until, --webhook, --channel")
	}
	if err := addIDs(t.fields, t.args); err != nil {
		return err
	}
	bar := t.cli.newCount("replay")
	defer bar.Done()
	t.fields["limit"] = replayBatch
	replayed := 0
	for more := true; more; {
		var done wire.Replayed
		if _, err := t.api.Post(ctx, t.path(), t.fields, &done); err != nil {
			return err
		}
		replayed += done.Replayed
		more, t.fields["ended_before"] = done.More, done.EndedBefore // excludes what finishes again meanwhile
		bar.Set(int64(replayed), -1)
	}
	bar.Done()
	if replayed == 0 {
		return fail(exitNotFound, "nothing to replay: no finished delivery matches. "+
			"Try a waiting one now with: parley deliveries retry ID. See: parley deliveries list")
	}
	return t.cli.print(map[string]int{"replayed": replayed}, replayed)
}

func retryDeliveries(ctx context.Context, t *task) error {
	hook, retried := t.fields.text("webhook"), len(t.args)
	if (retried > 0) == (hook != "") {
		return fail(exitUsage, "give the ids of deliveries, or --webhook ID")
	}
	if hook != "" {
		var data struct {
			Waiting int `json:"waiting"`
		}
		if _, err := t.api.Post(ctx, client.Path("webhooks", hook, "retry"), nil, &data); err != nil {
			return err
		}
		retried = data.Waiting
	}
	for _, id := range t.args {
		if _, err := t.api.Post(ctx, client.Path("deliveries", id, "retry"), nil, nil); err != nil {
			return err
		}
	}
	return t.cli.print(map[string]int{"retried": retried}, retried)
}
