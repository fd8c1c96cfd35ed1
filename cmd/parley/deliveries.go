package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/app"
	"parley/internal/callback"
)

func (c *cli) deliveries() *cobra.Command {
	return newGroup("deliveries", "List webhook and callback deliveries, and resend them", `  parley deliveries list --failed
  parley deliveries replay --failed --since 24h`,
		c.deliveriesList(), c.deliveriesShow(), c.deliveriesRetry(), c.deliveriesReplay())
}

// deliveryView is a delivery as JSON.
type deliveryView struct {
	ID        parley.DeliveryID  `json:"id"`
	Webhook   *parley.WebhookID  `json:"webhook"` // null: a callback
	URL       string             `json:"url"`
	EventID   parley.EventID     `json:"event_id"`
	Type      parley.EventType   `json:"type"`
	Channel   parley.ChannelCode `json:"channel"`
	State     string             `json:"state"`
	Attempts  int                `json:"attempts"`
	NextAt    *time.Time         `json:"next_at"`
	CreatedAt *time.Time         `json:"created_at"`
	TriedAt   *time.Time         `json:"tried_at"`
	attemptView
	// Where one delivery is shown.
	History []triedView `json:"history,omitzero"`
	Body    *string     `json:"body,omitempty"`
}

// triedView is one of a delivery's attempts as JSON.
type triedView struct {
	Number int        `json:"number"`
	At     *time.Time `json:"at"`
	attemptView
}

func viewAttempt(a parley.DeliveryAttempt) attemptView {
	view := attemptView{TookMS: a.Took.Milliseconds(), Problem: a.Problem, Answer: a.Answer}
	if a.Code != 0 {
		view.Code = &a.Code
	}
	return view
}

// viewDelivery shows a delivery. That of a webhook goes to the webhook's address.
func viewDelivery(d parley.Delivery, addresses map[parley.WebhookID]string) deliveryView {
	view := deliveryView{
		ID: d.ID, URL: d.URL, EventID: d.EventID, Type: d.Type, Channel: d.Channel, State: d.State.String(),
		Attempts: d.Attempts, CreatedAt: orNil(d.CreatedAt), TriedAt: orNil(d.TriedAt),
		attemptView: viewAttempt(parley.DeliveryAttempt{Took: d.Took, Code: d.Code, Problem: d.Problem, Answer: d.Answer}),
	}
	if d.Webhook != "" {
		view.Webhook, view.URL = &d.Webhook, addresses[d.Webhook]
	}
	if d.State == parley.DeliveryWaiting {
		view.NextAt = orNil(d.NextAt)
	}
	return view
}

// result says in a few words how the last attempt went.
func (v deliveryView) result() string {
	if v.TriedAt == nil {
		return "-"
	}
	return v.String()
}

func addressesOf(ctx context.Context, data *app.Data) (map[parley.WebhookID]string, error) {
	webhooks, err := data.Store.Webhooks(ctx)
	by := make(map[parley.WebhookID]string, len(webhooks))
	for _, w := range webhooks {
		by[w.ID] = w.URL
	}
	return by, err
}

// deliveryFlags are the flags that describe deliveries.
type deliveryFlags struct {
	failed           bool
	webhook, channel string
	since, until     string
}

func (f *deliveryFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.failed, "failed", false, "only those that failed for good")
	cmd.Flags().StringVar(&f.webhook, "webhook", "", "only those of this webhook, by its id")
	cmd.Flags().StringVar(&f.channel, "channel", "", "only those of this channel, by its code")
	cmd.Flags().StringVar(&f.since, "since", "", "only those made since: for so long (24h, 7d) or from a time on (2026-11-15, RFC 3339)")
	cmd.Flags().StringVar(&f.until, "until", "", "only those made before: so long ago or before a time")
}

func (f *deliveryFlags) query() (q parley.DeliveryQuery, err error) {
	q = parley.DeliveryQuery{Webhook: parley.WebhookID(f.webhook), Channel: parley.ChannelCode(f.channel)}
	if f.failed {
		state := parley.DeliveryFailed
		q.State = &state
	}
	if q.Since, err = past("--since", f.since); err != nil {
		return q, err
	}
	q.Until, err = past("--until", f.until)
	return q, err
}

// past reads a time that has been: how long ago, or itself; "" is none.
func past(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := span(text); err == nil && d >= 0 {
		return time.Now().Add(-d), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return t, nil
	}
	return time.Time{}, fail(exitUsage, "%s: %q is neither a length of time (24h, 7d) nor a time (2026-11-15, 2026-11-15T08:30:00Z)", flag, text)
}

func (c *cli) deliveriesList() *cobra.Command {
	var flags deliveryFlags
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List deliveries, newest first",
		Example: `  parley deliveries list --failed --since 24h
  parley deliveries list --webhook whk_2f0c6a9be1d84c53a7f0 --limit 10 --json`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := flags.query()
			if err != nil {
				return err
			}
			if limit < 1 {
				return fail(exitUsage, "--limit must be at least 1")
			}
			return c.withData(cmd.Context(), false, func(data *app.Data) error {
				return c.listDeliveries(cmd.Context(), data, q, limit)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().IntVar(&limit, "limit", 50, "how many to list at most")
	return cmd
}

func (c *cli) listDeliveries(ctx context.Context, data *app.Data, q parley.DeliveryQuery, limit int) error {
	found, total, err := data.Store.Deliveries(ctx, q, parley.Page{Limit: limit})
	if err != nil {
		return err
	}
	addresses, err := addressesOf(ctx, data)
	if err != nil {
		return err
	}
	views := make([]deliveryView, len(found))
	rows := make([][]any, len(found))
	for i, d := range found {
		v := viewDelivery(d, addresses)
		views[i] = v
		rows[i] = []any{v.ID, when(d.CreatedAt), v.Channel, v.Type, v.URL, v.State, v.result(), v.Attempts}
	}
	if c.json {
		return c.printJSON(views)
	}
	c.printTable([]any{"id", "made", "channel", "event", "to", "state", "last attempt", "attempts"}, rows)
	if int64(len(found)) < total {
		c.hint("%d of %d; --limit shows more", len(found), total)
	}
	return nil
}

func (c *cli) deliveriesShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show all that is known of a delivery, with its attempts and the body that is sent",
		Example: `  parley deliveries show dlv_1a1dde3453748854
  parley deliveries show dlv_1a1dde3453748854 --json`,
		Args: takes("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withData(cmd.Context(), false, func(data *app.Data) error {
				return c.showDelivery(cmd.Context(), data, parley.DeliveryID(args[0]))
			})
		},
	}
}

func (c *cli) showDelivery(ctx context.Context, data *app.Data, id parley.DeliveryID) error {
	found, _, err := data.Store.Deliveries(ctx, parley.DeliveryQuery{IDs: []parley.DeliveryID{id}}, parley.Page{Limit: 1})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fail(exitNotSo, "there is no delivery %s. See: parley deliveries list", id)
	}
	addresses, err := addressesOf(ctx, data)
	if err != nil {
		return err
	}
	d, v := found[0], viewDelivery(found[0], addresses)
	if v.Body, err = callback.BodyOf(ctx, data.Store, d); err != nil {
		return err
	}
	v.History = []triedView{}
	for _, a := range d.History() {
		v.History = append(v.History, triedView{a.Number, orNil(a.At), viewAttempt(a)})
	}
	if c.json {
		return c.printJSON(v)
	}
	c.printDelivery(d, v)
	return nil
}

func (c *cli) printDelivery(d parley.Delivery, v deliveryView) {
	to := "callback"
	if v.Webhook != nil {
		to = "webhook " + string(*v.Webhook)
	}
	lines := [][2]string{
		{"id", string(v.ID)}, {"to", to}, {"url", v.URL}, {"event", string(v.Type) + " " + string(v.EventID)}, {"channel", string(v.Channel)},
		{"state", v.State}, {"made", when(d.CreatedAt)}, {"attempts", fmt.Sprint(v.Attempts)}, {"tried", when(d.TriedAt)},
		{"result", v.result()}, {"problem", v.Problem}, {"answer", v.Answer},
	}
	if len(v.History) > 1 || len(v.History) == 1 && v.TriedAt == nil {
		term := "history"
		for _, a := range v.History {
			lines = append(lines, [2]string{term, fmt.Sprintf("%2d  %s  %s", a.Number, when(*a.At), a)})
			term = "" // of the first line only
		}
	}
	if v.NextAt != nil {
		lines = append(lines, [2]string{"next", when(d.NextAt)})
	}
	if v.Body != nil {
		lines = append(lines, [2]string{"body", *v.Body})
	}
	for _, line := range lines {
		if line[1] != "" {
			fmt.Fprintf(c.out, "%-9s %s\n", line[0], line[1])
		}
	}
}
