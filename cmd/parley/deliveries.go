package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/client"
)

func (c *cli) deliveries() *cobra.Command {
	return newGroup("deliveries", "List webhook and callback deliveries, and resend them", `  parley deliveries list --failed
  parley deliveries replay --failed --since 24h`,
		c.deliveriesList(), c.deliveriesShow(), c.deliveriesRetry(), c.deliveriesReplay(), c.deliveriesExport())
}

type deliveryFlags struct {
	failed           bool
	webhook, channel string
	since, until     string
}

func (f *deliveryFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.failed, "failed", false, "only those that failed permanently")
	cmd.Flags().StringVar(&f.webhook, "webhook", "", "only those of this webhook, by its id")
	cmd.Flags().StringVar(&f.channel, "channel", "", "only those of this channel, by its code")
	cmd.Flags().StringVar(&f.since, "since", "", "only those created since: a length of time ago (24h, 7d) or a time (2026-11-15, RFC 3339)")
	cmd.Flags().StringVar(&f.until, "until", "", "only those created before: a length of time ago or a time")
}

// fields are the flags as the API names them.
func (f *deliveryFlags) fields() (map[string]any, error) {
	fields := texts("webhook", f.webhook, "channel", f.channel)
	if f.failed {
		fields["state"] = "failed"
	}
	for name, text := range texts("since", f.since, "until", f.until) {
		t, err := parsePast("--"+name, text.(string))
		if err != nil {
			return nil, err
		}
		fields[name] = t.UTC().Format(time.RFC3339Nano)
	}
	return fields, nil
}

// parsePast parses a time: a length of time ago, or the time itself.
func parsePast(flag, text string) (time.Time, error) {
	if d, err := parley.ParseDuration(text); err == nil && d >= 0 {
		return time.Now().Add(-time.Duration(d)), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return t, nil
	}
	return time.Time{}, fail(exitUsage, "%s: %q is neither a length of time (24h, 7d) nor a time (2026-11-15, 2026-11-15T08:30:00Z)", flag,
		text)
}

func (c *cli) deliveriesList() *cobra.Command {
	var flags deliveryFlags
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List deliveries, newest first",
		Example: `  parley deliveries list --failed --since 24h
  parley deliveries list --webhook whk_2f0c6a9be1d84c53a7f0 --limit 10 --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fields, err := flags.fields()
			if err != nil {
				return err
			}
			if limit < 1 {
				return fail(exitUsage, "--limit must be at least 1")
			}
			query := url.Values{}
			for name, value := range fields {
				query.Set(name, value.(string))
			}
			return c.manage(cmd, func(ctx context.Context, api *client.Client) error {
				return c.listDeliveries(ctx, api, query, limit)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().IntVar(&limit, "limit", 50, "list this many at most")
	return cmd
}

// pageSize is the API's maximum for one request.
const pageSize = 100

func (c *cli) listDeliveries(ctx context.Context, api *client.Client, query url.Values, limit int) error {
	all, total := []json.RawMessage{}, int64(0)
	for more := true; more && len(all) < limit; {
		query.Set("limit", strconv.Itoa(min(pageSize, limit-len(all))))
		query.Set("offset", strconv.Itoa(len(all)))
		var page []json.RawMessage
		r, err := api.Get(ctx, client.Path("deliveries"), query, &page)
		if err != nil {
			return err
		}
		all, total = append(all, page...), r.Meta.Total
		more = len(page) > 0 && int64(len(all)) < total
	}
	data, err := json.Marshal(all)
	head := []any{"id", "created", "channel", "event", "to", "state", "last attempt", "attempts"}
	err = printRows(c, &client.Response{Data: data}, err, head,
		func(d *client.Delivery) []any {
			return []any{d.ID, when(d.CreatedAt), d.Channel, d.Type, d.URL, d.State, d.Result(), d.Attempts}
		})
	if int64(len(all)) < total {
		c.hint("%d of %d. List more with --limit", len(all), total)
	}
	return err
}

func (c *cli) deliveriesShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show a delivery, with its attempts and its body",
		Example: `  parley deliveries show dlv_1a1dde3453748854
  parley deliveries show dlv_1a1dde3453748854 --json`,
		RunE: c.onResource("delivery", func(ctx context.Context, api *client.Client, id string) error {
			r, err := api.Get(ctx, client.Path("deliveries", id), nil, nil)
			return printData(c, r, err, c.printDelivery)
		}),
	}
}

func (c *cli) printDelivery(d *client.Delivery) {
	to := "callback"
	if d.Webhook != "" {
		to = "webhook " + string(d.Webhook)
	}
	lines := [][2]string{
		{"id", string(d.ID)}, {"to", to}, {"url", d.URL}, {"event", string(d.Type) + " " + string(d.EventID)}, {"channel", string(d.Channel)},
		{"state", d.State}, {"created", when(d.CreatedAt)}, {"attempts", fmt.Sprint(d.Attempts)}, {"tried", when(d.TriedAt)},
		{"result", d.Result()}, {"problem", d.Problem}, {"response", d.Answer},
	}
	if len(d.History) > 1 || len(d.History) == 1 && d.TriedAt.IsZero() {
		term := "history"
		for _, a := range d.History {
			lines = append(lines, [2]string{term, fmt.Sprintf("%2d  %s  %s", a.Number, when(a.At), a.Attempt)})
			term = "" // only on the first line
		}
	}
	if !d.NextAt.IsZero() {
		lines = append(lines, [2]string{"next", when(d.NextAt)})
	}
	if d.Body != nil {
		lines = append(lines, [2]string{"body", *d.Body})
	}
	for _, line := range lines {
		if line[1] != "" {
			fmt.Fprintf(c.out, "%-9s %s\n", line[0], line[1])
		}
	}
}

// replayBatch is how many deliveries one request replays.
const replayBatch = 1000

func (c *cli) deliveriesReplay() *cobra.Command {
	var flags deliveryFlags
	cmd := &cobra.Command{
		Use:   "replay [ID…]",
		Short: "Resend finished deliveries",
		Long: "Resend finished deliveries and print how many. Select them by their ids, by the ids of their events, or with\n" +
			"flags. Without --failed, successful ones are resent too. For waiting ones: parley deliveries retry.",
		Example: `  parley deliveries replay dlv_1a1dde3453748854
  parley deliveries replay --failed --since 24h`,
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := flags.fields()
			if err != nil {
				return err
			}
			switch {
			case len(args) > 0 && len(body) > 0:
				return fail(exitUsage, "give ids or flags that select deliveries, not both")
			case len(args) == 0 && len(body) == 0:
				return fail(exitUsage, "ID is missing, or a flag that selects deliveries: --failed, --since, --until, --webhook, --channel")
			}
			if err := addIDs(body, args); err != nil {
				return err
			}
			return c.manage(cmd, func(ctx context.Context, api *client.Client) error { return c.replay(ctx, api, body) })
		},
	}
	flags.add(cmd)
	return cmd
}

func addIDs(body map[string]any, ids []string) error {
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

func (c *cli) replay(ctx context.Context, api *client.Client, body map[string]any) error {
	bar := c.newCount("replay")
	defer bar.Done()
	body["limit"] = replayBatch
	replayed := 0
	for more := true; more; {
		var done struct {
			Replayed    int    `json:"replayed"`
			More        bool   `json:"more"`
			EndedBefore string `json:"ended_before"`
		}
		if _, err := api.Post(ctx, client.Path("deliveries", "replay"), body, &done); err != nil {
			return err
		}
		replayed += done.Replayed
		more, body["ended_before"] = done.More, done.EndedBefore // excludes what finishes again meanwhile
		bar.Set(int64(replayed), -1)
	}
	bar.Done()
	if replayed == 0 {
		return fail(exitNegative, "nothing to replay: no finished delivery matches. "+
			"Try a waiting one now with: parley deliveries retry ID. See: parley deliveries list")
	}
	return c.print(map[string]int{"replayed": replayed}, replayed)
}

func (c *cli) deliveriesRetry() *cobra.Command {
	var webhook string
	cmd := &cobra.Command{
		Use:   "retry [ID…]",
		Short: "Try waiting deliveries now, whatever their schedule",
		Long: `Try waiting deliveries now, whatever their schedule. Select them by their ids, or with --webhook all that wait for
a webhook. The server must be running.`,
		Example: `  parley deliveries retry dlv_1a1dde3453748854
  parley deliveries retry --webhook whk_2f0c6a9be1d84c53a7f0`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) > 0) == (webhook != "") {
				return fail(exitUsage, "give the ids of deliveries, or --webhook ID")
			}
			return c.onServer(cmd, func(ctx context.Context, api *client.Client) error {
				if webhook != "" {
					var data struct {
						Waiting int `json:"waiting"`
					}
					if _, err := api.Post(ctx, client.Path("webhooks", webhook, "retry"), nil, &data); err != nil {
						return err
					}
					return c.print(map[string]int{"retried": data.Waiting}, data.Waiting)
				}
				for _, id := range args {
					if _, err := api.Post(ctx, client.Path("deliveries", id, "retry"), nil, nil); err != nil {
						return err
					}
				}
				return c.print(map[string]int{"retried": len(args)}, len(args))
			})
		},
	}
	cmd.Flags().StringVar(&webhook, "webhook", "", "all that wait for this webhook, by its id")
	settingFlags(cmd.Flags(), keyURL, keyAdminToken)
	return cmd
}
