package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/app"
)

// replayBatch is how many deliveries are replayed in one transaction, for which a running server waits.
const replayBatch = 250

func (c *cli) deliveriesReplay() *cobra.Command {
	var flags deliveryFlags
	cmd := &cobra.Command{
		Use:   "replay [ID…]",
		Short: "Resend finished deliveries",
		Long: "Resend finished deliveries and print how many: some by their ids or by the ids of their events, or all that\n" +
			"the flags describe. Without --failed, successful ones are resent too. Those that wait: parley deliveries retry.",
		Example: `  parley deliveries replay dlv_1a1dde3453748854
  parley deliveries replay --failed --since 24h`,
		Args: takes("[ID…]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := flags.query()
			if err != nil {
				return err
			}
			described := flags != deliveryFlags{}
			switch {
			case len(args) > 0 && described:
				return fail(exitUsage, "give ids or flags that describe deliveries, not both")
			case len(args) == 0 && !described:
				return fail(exitUsage, "ID is missing, or a flag that describes deliveries: --failed, --since, --until, --webhook, --channel")
			}
			if err := named(&q, args); err != nil {
				return err
			}
			return c.withData(cmd.Context(), false, func(data *app.Data) error {
				return c.replay(cmd.Context(), data, q)
			})
		},
	}
	flags.add(cmd)
	return cmd
}

// named adds to a query the deliveries and the events that are named.
func named(q *parley.DeliveryQuery, ids []string) error {
	for _, id := range ids {
		if !strings.HasPrefix(id, "evt_") {
			q.IDs = append(q.IDs, parley.DeliveryID(id))
			continue
		}
		seq, err := parley.EventID(id).Seq()
		if err != nil {
			return fail(exitUsage, "%s is %w", id, err)
		}
		q.Events = append(q.Events, seq)
	}
	if len(q.IDs) > 0 && len(q.Events) > 0 {
		return fail(exitUsage, "give ids of deliveries or ids of events, not both")
	}
	return nil
}

func (c *cli) replay(ctx context.Context, data *app.Data, q parley.DeliveryQuery) error {
	q.EndedBefore = time.Now().Add(time.Millisecond) // with what ended just now: it is compared in milliseconds
	_, total, err := data.Store.Deliveries(ctx, q, parley.Page{})
	if err != nil {
		return err
	}
	bar := c.newCount("replay")
	defer bar.Done()
	replayed := 0
	for n := replayBatch; n == replayBatch; {
		err := data.Store.Tx(ctx, func(tx parley.Tx) (err error) {
			n, err = tx.ReplayDeliveries(ctx, q, time.Now(), replayBatch)
			return err
		})
		if err != nil {
			return err
		}
		replayed += n
		bar.Set(int64(replayed), total)
	}
	bar.Done()
	if replayed == 0 {
		return fail(exitNotSo, "nothing to replay: no finished delivery matches. One that waits can be tried now with: parley deliveries retry ID. See: parley deliveries list")
	}
	c.hint("a running server makes them again within a second")
	if c.json {
		return c.printJSON(map[string]int{"replayed": replayed})
	}
	fmt.Fprintln(c.out, replayed)
	return nil
}
