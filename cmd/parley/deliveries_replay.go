package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"parley/internal/client"
)

// replayAtOnce is how many deliveries are replayed in one request.
const replayAtOnce = 1000

func (c *cli) deliveriesReplay() *cobra.Command {
	var flags deliveryFlags
	cmd := &cobra.Command{
		Use:   "replay [ID…]",
		Short: "Resend finished deliveries",
		Long: "Resend finished deliveries and print how many: some by their ids or by the ids of their events, or all that\n" +
			"the flags describe. Without --failed, successful ones are resent too. Those that wait: parley deliveries retry.",
		Example: `  parley deliveries replay dlv_1a1dde3453748854
  parley deliveries replay --failed --since 24h`,
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := flags.fields()
			if err != nil {
				return err
			}
			switch {
			case len(args) > 0 && len(body) > 0:
				return fail(exitUsage, "give ids or flags that describe deliveries, not both")
			case len(args) == 0 && len(body) == 0:
				return fail(exitUsage, "ID is missing, or a flag that describes deliveries: --failed, --since, --until, --webhook, --channel")
			}
			if err := named(body, args); err != nil {
				return err
			}
			return c.manage(cmd, func(ctx context.Context, api *client.Client) error { return c.replay(ctx, api, body) })
		},
	}
	flags.add(cmd)
	return cmd
}

// named adds to a request the deliveries or the events that are named.
func named(body map[string]any, ids []string) error {
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

// replay replays what is described, in several requests where it is much.
func (c *cli) replay(ctx context.Context, api *client.Client, body map[string]any) error {
	bar := c.newCount("replay")
	defer bar.Done()
	body["limit"] = replayAtOnce
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
		more, body["ended_before"] = done.More, done.EndedBefore // what is made again meanwhile is not meant
		bar.Set(int64(replayed), -1)
	}
	bar.Done()
	if replayed == 0 {
		return fail(exitNotSo, "nothing to replay: no finished delivery matches. "+
			"One that waits can be tried now with: parley deliveries retry ID. See: parley deliveries list")
	}
	if c.json {
		return c.printJSON(map[string]int{"replayed": replayed})
	}
	fmt.Fprintln(c.out, replayed)
	return nil
}
