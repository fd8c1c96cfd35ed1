package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"parley/internal/client"
	"parley/internal/wait"
)

func (c *cli) channelDelete() *cobra.Command {
	var yes, waits bool
	cmd := &cobra.Command{
		Use:   "delete CODE",
		Short: "Delete a channel with its messages and tokens",
		Long: `Delete a channel with its messages, files, webhooks and tokens. The channel is gone at once, and a new one may have its
code. A running server removes the messages in the background, also after a restart: --wait waits for that, and
parley channel deletions shows how far it is. Without a running server the command removes everything itself.

The network need not be reachable. A phone lists a linked device until its owner removes it; parley channel logout
before the deletion removes it.`,
		Example: `  parley channel delete toko
  parley channel delete toko --yes --wait`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.delete(cmd, "channel", args[0], yes, func(string) string {
				return fmt.Sprintf("This permanently deletes channel %s with all its messages and tokens", args[0])
			}, func(ctx context.Context, api *client.Client, r *client.Response) error {
				return c.deletedChannel(ctx, api, r.Data, waits)
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	cmd.Flags().BoolVar(&waits, "wait", false, "wait until all its messages are removed")
	return cmd
}

// deletedChannel reports the deletion of a channel, after it has finished if waits is set.
func (c *cli) deletedChannel(ctx context.Context, api *client.Client, started json.RawMessage, waits bool) error {
	var d client.Deletion
	if err := json.Unmarshal(started, &d); err != nil {
		return err
	}
	c.hint("deleted channel %s", d.Code)
	if waits {
		var err error
		if d, err = c.awaitDeletion(ctx, api, d); err != nil {
			return fmt.Errorf("channel %s is deleted, and its messages are removed in the background, but the progress is unknown: %w", d.Code, err)
		}
	}
	if !d.Finished() {
		c.hint("Its messages are removed in the background. See how far that is with: parley channel deletions")
	}
	if c.json {
		return c.printJSON(d)
	}
	return nil
}

// deletionEvery is the interval between requests for the progress of a deletion.
const deletionEvery = 500 * time.Millisecond

func (c *cli) awaitDeletion(ctx context.Context, api *client.Client, d client.Deletion) (client.Deletion, error) {
	progress := c.newCount("Removing messages")
	defer progress.Done()
	for !d.Finished() {
		var all []client.Deletion
		if _, err := api.Get(ctx, client.Path("deletions"), nil, &all); err != nil {
			return d, err
		}
		i := slices.IndexFunc(all, func(other client.Deletion) bool { return other.ID == d.ID })
		if i < 0 {
			return d, fmt.Errorf("deletion %s is not listed", d.ID)
		}
		if d = all[i]; d.MessagesLeft != nil {
			progress.Set(d.MessagesDeleted, d.MessagesDeleted+*d.MessagesLeft)
		}
		if !d.Finished() && !wait.Sleep(ctx, deletionEvery) {
			return d, ctx.Err()
		}
	}
	return d, nil
}

func (c *cli) channelDeletions() *cobra.Command {
	return &cobra.Command{
		Use:   "deletions",
		Short: "List the deletions of channels and how far they are",
		Long:  "List the deletions of channels that are running or that finished in the last 7 days, and how many messages they removed.",
		Example: `  parley channel deletions
  parley channel deletions --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.manage(cmd, func(ctx context.Context, api *client.Client) error {
				r, err := api.Get(ctx, client.Path("deletions"), nil, nil)
				return printRows(c, r, err, []any{"code", "state", "started", "finished", "removed", "left", "problem"}, deletionCells)
			})
		},
	}
}

func deletionCells(d *client.Deletion) []any {
	finished, left := "", ""
	if d.Finished() {
		finished = when(*d.FinishedAt)
	}
	if d.MessagesLeft != nil {
		left = fmt.Sprint(*d.MessagesLeft)
	}
	return []any{d.Code, d.State, when(d.StartedAt), finished, d.MessagesDeleted, left, d.Problem}
}
