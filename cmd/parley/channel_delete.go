package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"parley/internal/client"
	"parley/internal/wait"
	"parley/internal/wire"
)

func channelDelete() verb {
	return verb{
		use: "delete CODE", short: "Delete a channel with its messages and tokens",
		long: `Delete a channel with its messages, files, webhooks and tokens. The channel is gone at once, and a new one may have its
code. A running server removes the messages in the background, also after a restart: --wait waits for that, and
parley channel deletions shows the progress. Without a running server the command removes everything itself.

This works even if the network is unreachable. A phone lists the linked device until its owner removes it; to unlink it,
run parley channel logout first.`,
		example: `  parley channel delete toko
  parley channel delete toko --yes --wait`,
		flags: []flag{boolFlag("wait", "wait until all its messages are removed")},
		question: func(code string, _ fields) string {
			return fmt.Sprintf("This permanently deletes channel %s with all its messages and tokens", code)
		},
		call: "DELETE channels/*",
		run: func(ctx context.Context, t *task) error {
			waits := t.fields.pop("wait") != nil
			r, err := t.request(ctx)
			if err != nil {
				return err
			}
			return t.cli.deletedChannel(ctx, t.api, r.Data, waits)
		},
	}
}

// deletedChannel reports the deletion of a channel, after it has finished if waits is set.
func (c *cli) deletedChannel(ctx context.Context, api *client.Client, started json.RawMessage, waits bool) error {
	var d wire.Deletion
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
	if d.FinishedAt.IsZero() {
		c.hint("Its messages are removed in the background. See how far that is with: parley channel deletions")
	}
	if c.json {
		return c.printJSON(d)
	}
	return nil
}

// deletionEvery is the interval between requests for the progress of a deletion.
const deletionEvery = 500 * time.Millisecond

func (c *cli) awaitDeletion(ctx context.Context, api *client.Client, d wire.Deletion) (wire.Deletion, error) {
	progress := c.newCount("Removing messages")
	defer progress.Done()
	for d.FinishedAt.IsZero() {
		var all []wire.Deletion
		if _, err := api.Get(ctx, client.Path("deletions"), nil, &all); err != nil {
			return d, err
		}
		i := slices.IndexFunc(all, func(other wire.Deletion) bool { return other.ID == d.ID })
		if i < 0 {
			return d, fmt.Errorf("deletion %s is not listed", d.ID)
		}
		if d = all[i]; d.MessagesLeft != nil {
			progress.Set(d.MessagesDeleted, d.MessagesDeleted+*d.MessagesLeft)
		}
		if d.FinishedAt.IsZero() && !wait.Sleep(ctx, deletionEvery) {
			return d, ctx.Err()
		}
	}
	return d, nil
}

func deletionCells(d *wire.Deletion) []any {
	finished, left := "", ""
	if !d.FinishedAt.IsZero() {
		finished = when(d.FinishedAt.Time)
	}
	if d.MessagesLeft != nil {
		left = fmt.Sprint(*d.MessagesLeft)
	}
	return []any{d.Code, d.State, when(d.StartedAt.Time), finished, d.MessagesDeleted, left, d.Problem}
}
