package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/internal/app"
	"parley/internal/client"
	"parley/internal/wait"
)

// loggedRequest is a row of the management API.
type loggedRequest struct {
	ID             int64     `json:"id"`
	At             time.Time `json:"at"`
	Method         string    `json:"method"`
	Path           string    `json:"path"`
	Status         int       `json:"status"`
	Code           string    `json:"code"`
	TookMS         float64   `json:"took_ms"`
	RequestID      string    `json:"request_id"`
	IdempotencyKey string    `json:"idempotency_key"`
	Token          string    `json:"token"`
}

// followEvery is how often new requests are read.
const followEvery = time.Second

func (c *cli) requests() *cobra.Command {
	var status, code, method, path, id, key, token string
	var follow bool
	limit := 50
	cmd := &cobra.Command{
		Use:   "requests CODE",
		Short: "Show the latest API requests for a channel",
		Long: `Show the latest API requests for a channel, oldest first. The server stores at least the last 1,000 of each channel: their
method, path, status, error code, duration, request id, idempotency key and the id of the token. It stores no bodies, no query
strings and no tokens. With --follow, continue with what comes next. Filters narrow the list together.`,
		Example: `  parley requests toko --status 4xx --follow
  parley requests toko --id req_4b1f0c2a9d8e7f6051423344 --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return fail(exitUsage, "--limit must be at least 1")
			}
			query := url.Values{}
			for name, value := range texts("status", strings.ToLower(status), "code", code, "method", strings.ToUpper(method), "path", path,
				"request_id", id, "idempotency_key", key, "token", token) {
				query.Set(name, value.(string))
			}
			return c.manage(cmd, func(ctx context.Context, api *client.Client) error {
				err := c.showRequests(ctx, api, args[0], query, limit, follow)
				return asUsage(explainNotFound(err, "channel", args[0]))
			})
		},
	}
	cmd.Flags().StringVar(&status, "status", "", "only with this HTTP status (404), or with one of a class (4xx)")
	cmd.Flags().StringVar(&code, "code", "", "only with this code of the error, such as invalid")
	cmd.Flags().StringVar(&method, "method", "", "only with this method, such as POST")
	cmd.Flags().StringVar(&path, "path", "", "only with this text in the path")
	cmd.Flags().StringVar(&id, "id", "", "only the request with this id (X-Request-Id)")
	cmd.Flags().StringVar(&key, "key", "", "only with this idempotency key")
	cmd.Flags().StringVar(&token, "token-id", "", "only with this token, by its id")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "continue with what comes next")
	cmd.Flags().IntVar(&limit, "limit", limit, "show this many at most")
	return cmd
}

func (c *cli) showRequests(ctx context.Context, api *client.Client, code string, query url.Values, limit int, follow bool) error {
	last, err := c.printRequests(ctx, api, code, query, limit)
	for follow && err == nil {
		if !wait.Sleep(ctx, followEvery) {
			return ctx.Err()
		}
		query.Set("after", strconv.FormatInt(last, 10))
		var next int64
		next, err = c.printRequests(ctx, api, code, query, 1000)
		last = max(last, next)
	}
	return err
}

// printRequests prints up to limit of the latest requests, oldest first, and returns the id of the newest.
func (c *cli) printRequests(ctx context.Context, api *client.Client, code string, query url.Values, limit int) (last int64, err error) {
	var all []json.RawMessage
	for more := true; more && len(all) < limit; {
		query.Set("limit", strconv.Itoa(min(pageSize, limit-len(all))))
		query.Set("offset", strconv.Itoa(len(all)))
		var page []json.RawMessage
		r, err := api.Get(ctx, client.Path("channels", code, "requests"), query, &page)
		if err != nil {
			return 0, err
		}
		all = append(all, page...)
		more = len(page) > 0 && int64(len(all)) < r.Meta.Total
	}
	for _, body := range slices.Backward(all) {
		var r loggedRequest
		if err := json.Unmarshal(body, &r); err != nil {
			return 0, err
		}
		if r.ID <= last {
			continue // it was on two pages, because others came meanwhile
		}
		last = r.ID
		if c.json {
			fmt.Fprintf(c.out, "%s\n", body)
			continue
		}
		line := fmt.Sprintf("%s  %-6s %s  %d %s  %.1f ms  %s  %s", r.At.Local().Format(time.DateTime), r.Method, r.Path, r.Status, r.Code,
			r.TookMS, r.RequestID, r.Token)
		if r.IdempotencyKey != "" {
			line += "  key " + r.IdempotencyKey
		}
		fmt.Fprintln(c.out, app.Plain(line))
	}
	return last, nil
}
