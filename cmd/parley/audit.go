package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/client"
)

func (c *cli) audit() *cobra.Command {
	return newGroup("audit", "Read the audit log: who changed what", `  parley audit list
  parley audit list --object toko --since 7d`,
		c.auditList())
}

// auditRow is a row of the management API.
type auditRow struct {
	At        time.Time   `json:"at"`
	Actor     string      `json:"actor"`
	ActorName string      `json:"actor_name"`
	Role      parley.Role `json:"role"`
	Action    string      `json:"action"`
	Object    string      `json:"object"`
	Address   string      `json:"address"`
}

func (c *cli) auditList() *cobra.Command {
	var action, actor, object, since, until string
	var limit int
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List acts of management, newest first",
		Long: `List acts of management of the last year, newest first: who did what to which object, and from which address.
With --json also what changed, before and after.`,
		Example: `  parley audit list --action channel. --since 24h
  parley audit list --actor Ayu --limit 200 --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return fail(exitUsage, "--limit must be at least 1")
			}
			query := url.Values{}
			for name, value := range texts("action", action, "actor", actor, "object", object) {
				query.Set(name, value.(string))
			}
			for name, text := range texts("since", since, "until", until) {
				t, err := parsePast("--"+name, text.(string))
				if err != nil {
					return err
				}
				query.Set(name, t.UTC().Format(time.RFC3339Nano))
			}
			return c.manage(cmd, func(ctx context.Context, api *client.Client) error {
				return c.listPages(ctx, api, client.Path("audit"), query, limit, func(data json.RawMessage, err error) error {
					return printRows(c, &client.Response{Data: data}, err, []any{"time", "who", "role", "action", "object", "from"},
						func(r *auditRow) []any {
							who := r.ActorName
							if who == "" {
								who = r.Actor
							}
							return []any{when(r.At), who, r.Role, r.Action, r.Object, r.Address}
						})
				})
			})
		},
	}
	cmd.Flags().StringVar(&action, "action", "", "only this action (channel.stop), or with a dot at the end all of a group (channel.)")
	cmd.Flags().StringVar(&actor, "actor", "", "only by this token or session: its name or id")
	cmd.Flags().StringVar(&object, "object", "", "only to this object: a channel's code, or the id of a token, webhook, session or node")
	cmd.Flags().StringVar(&since, "since", "", "only since: a length of time ago (24h, 7d) or a time (2026-11-15, RFC 3339)")
	cmd.Flags().StringVar(&until, "until", "", "only before: a length of time ago or a time")
	cmd.Flags().IntVar(&limit, "limit", 50, "list this many at most")
	return cmd
}

// listPages reads pages until there are limit rows or no more, and prints them.
func (c *cli) listPages(
	ctx context.Context, api *client.Client, path string, query url.Values, limit int, print func(json.RawMessage, error) error,
) error {
	all, total := []json.RawMessage{}, int64(0)
	for more := true; more && len(all) < limit; {
		query.Set("limit", strconv.Itoa(min(pageSize, limit-len(all))))
		query.Set("offset", strconv.Itoa(len(all)))
		var page []json.RawMessage
		r, err := api.Get(ctx, path, query, &page)
		if err != nil {
			return err
		}
		all, total = append(all, page...), r.Meta.Total
		more = len(page) > 0 && int64(len(all)) < total
	}
	err := print(json.Marshal(all))
	if int64(len(all)) < total {
		c.hint("%d of %d. List more with --limit", len(all), total)
	}
	return err
}

func (c *cli) session() *cobra.Command {
	return newGroup("session", "List console sessions and end them", `  parley session list
  parley session end ses_9f86d081884c7d659a2feaa0`,
		c.sessionList(), c.sessionEnd())
}

// sessionRow is a row of the management API.
type sessionRow struct {
	ID           string      `json:"id"`
	Name         string      `json:"name"`
	Role         parley.Role `json:"role"`
	CreatedAt    time.Time   `json:"created_at"`
	LastUsedAt   time.Time   `json:"last_used_at"`
	LastUsedFrom string      `json:"last_used_from"`
	EndsAt       time.Time   `json:"ends_at"`
}

func (c *cli) sessionList() *cobra.Command {
	return newList(c, "List console sessions", "session", []any{"id", "name", "role", "signed in", "last used", "from", "ends"},
		func(s *sessionRow) []any {
			return []any{s.ID, s.Name, s.Role, when(s.CreatedAt), when(s.LastUsedAt), s.LastUsedFrom, when(s.EndsAt)}
		})
}

func (c *cli) sessionEnd() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "end [ID]",
		Short: "End a console session, or all of them",
		Example: `  parley session end ses_9f86d081884c7d659a2feaa0
  parley session end --all`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return fail(exitUsage, "name a session by its id, or end all with --all. See: parley session list")
			}
			return c.manage(cmd, func(ctx context.Context, api *client.Client) error {
				if all {
					var ended struct {
						Ended int `json:"ended"`
					}
					if _, err := api.Call(ctx, http.MethodDelete, client.Path("sessions"), nil, nil, &ended); err != nil {
						return err
					}
					return c.done("ended %s", count(ended.Ended, "session"))
				}
				if _, err := api.Call(ctx, http.MethodDelete, client.Path("sessions", args[0]), nil, nil, nil); err != nil {
					return explainNotFound(err, "session", args[0])
				}
				return c.done("ended session %s", args[0])
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "end all sessions")
	return cmd
}
