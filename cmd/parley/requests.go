package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"parley/internal/app"
	"parley/internal/wait"
	"parley/internal/wire"
)

// followEvery is how often new requests are read.
const followEvery = time.Second

func (c *cli) requests() *cobra.Command {
	return c.command(&resource{kind: "channel", id: "toko"}, verb{
		use: "requests CODE", short: "Show the latest API requests for a channel",
		long: `Show the latest API requests for a channel, oldest first. The server keeps at least the last 1,000 per channel: their
method, path, status, error code, duration, request id, idempotency key and token id. It stores no bodies, no query
strings and no tokens. With --follow, continue with what comes next. Filters combine.`,
		example: `  parley requests toko --status 4xx --follow
  parley requests toko --id req_4b1f0c2a9d8e7f6051423344 --json`,
		flags: []flag{
			textFlag("status", "only with this HTTP status (404) or class (4xx)").by(readLower),
			textFlag("code", "only with this error code, such as invalid"),
			textFlag("method", "only with this method, such as POST").by(readUpper),
			textFlag("path", "only with this text in the path"),
			textFlag("id", "only the request with this id (X-Request-Id)").as("request_id"),
			textFlag("key", "only with this idempotency key").as("idempotency_key"),
			textFlag("token-id", "only with this token, by its id").as("token"),
			{name: "follow", short: "f", value: false, usage: "continue with what comes next"},
		},
		limit: 50, call: "GET channels/*/requests",
		run: func(ctx context.Context, t *task) error {
			follow, limit := t.fields.pop("follow") != nil, t.fields.pop("limit").(int)
			if limit < 1 {
				return fail(exitUsage, "--limit must be at least 1")
			}
			query := t.fields.query()
			last, err := t.printRequests(ctx, query, limit)
			for follow && err == nil {
				if !wait.Sleep(ctx, followEvery) {
					return ctx.Err()
				}
				query.Set("after", strconv.FormatInt(last, 10))
				var next int64
				next, err = t.printRequests(ctx, query, 1000)
				last = max(last, next)
			}
			return err
		},
	})
}

// printRequests prints up to limit of the latest requests, oldest first, and returns the id of the newest.
func (t *task) printRequests(ctx context.Context, query url.Values, limit int) (last int64, err error) {
	page, err := t.api.List(ctx, t.path(), query, limit)
	if err != nil {
		return 0, err
	}
	var all []json.RawMessage
	if err := json.Unmarshal(page.Data, &all); err != nil {
		return 0, err
	}
	for _, body := range slices.Backward(all) {
		var r wire.LoggedRequest
		if err := json.Unmarshal(body, &r); err != nil {
			return 0, err
		}
		last = r.ID
		if t.cli.json {
			fmt.Fprintf(t.cli.out, "%s\n", body)
			continue
		}
		line := fmt.Sprintf("%s  %-6s %s  %d %s  %.1f ms  %s  %s", r.At.Local().Format(time.DateTime), r.Method, r.Path, r.Status, r.Code,
			r.TookMS, r.RequestID, r.Token)
		if r.IdempotencyKey != "" {
			line += "  key " + string(r.IdempotencyKey)
		}
		fmt.Fprintln(t.cli.out, app.Plain(line))
	}
	return last, nil
}
