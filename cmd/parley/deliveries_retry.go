package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"parley/internal/client"
)

func (c *cli) deliveriesRetry() *cobra.Command {
	var webhook string
	cmd := &cobra.Command{
		Use:   "retry [ID…]",
		Short: "Try waiting deliveries now, whatever their schedule",
		Long: `Try deliveries now that wait for their next attempt: some by their ids, or with --webhook everything that waits for
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
					return c.printRetried(data.Waiting)
				}
				for _, id := range args {
					if _, err := api.Post(ctx, client.Path("deliveries", id, "retry"), nil, nil); err != nil {
						return err
					}
				}
				return c.printRetried(len(args))
			})
		},
	}
	cmd.Flags().StringVar(&webhook, "webhook", "", "everything that waits for this webhook")
	settingFlags(cmd.Flags(), keyURL, keyAdminToken)
	return cmd
}

func (c *cli) printRetried(n int) error {
	if c.json {
		return c.printJSON(map[string]int{"retried": n})
	}
	fmt.Fprintln(c.out, n)
	return nil
}
