package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"parley/internal/wire"
)

func (c *cli) audit() *cobra.Command {
	return c.resource(resource{
		name: "audit", short: "Read the audit log: who changed what",
		example: `  parley audit list
  parley audit list --object toko --since 7d`,
		verbs: []verb{{
			use: "list", short: "List changes, newest first",
			long: `List the changes of the last year, newest first: who did what to which object, and from which address. With --json,
also show what changed, before and after.`,
			example: `  parley audit list --action channel. --since 24h
  parley audit list --actor Ayu --limit 200 --json`,
			flags: []flag{
				textFlag("action", "only this action (channel.stop), or all of a group with a dot at the end (channel.)"),
				textFlag("actor", "only by this token or session: its name or id"),
				textFlag("object", "only to this object: a channel's code, or the id of a token, webhook, session or node"),
				textFlag("since", "only since: a length of time ago (24h, 7d) or a time (2026-11-15, RFC 3339)").by(readPast),
				textFlag("until", "only before: a length of time ago or a time").by(readPast),
			},
			limit: 50, call: "GET audit", none: "Nothing was changed in the last year.",
			print: rows("time,who,role,action,object,from", func(r *wire.AuditEntry) []any {
				return []any{when(r.At.Time), cmp.Or(r.ActorName, r.Actor), r.Role, r.Action, r.Object, r.Address}
			}),
		}},
	})
}

func (c *cli) session() *cobra.Command {
	return c.resource(resource{
		name: "session", short: "List console sessions and end them", id: "ses_9f86d081884c7d659a2feaa0",
		example: `  parley session list
  parley session end ses_9f86d081884c7d659a2feaa0`,
		verbs: []verb{{
			use: "list", short: "List console sessions", call: "GET sessions",
			none: "Nobody is signed in to the console.",
			print: rows("id,name,role,signed in,last used,from,ends", func(s *wire.Session) []any {
				return []any{s.ID, s.Name, s.Role, when(s.CreatedAt.Time), when(s.LastUsedAt.Time), s.LastUsedFrom, when(s.EndsAt.Time)}
			}),
		}, {
			use: "end [ID]", short: "End a console session, or all of them",
			example: `  parley session end ses_9f86d081884c7d659a2feaa0
  parley session end --all`,
			flags: []flag{boolFlag("all", "end all sessions")},
			call:  "DELETE sessions/*", hint: "ended session *",
			run: func(ctx context.Context, t *task) error {
				all := t.fields.pop("all") != nil
				if all == (len(t.args) > 0) {
					return fail(exitUsage, "name a session by its id, or end all with --all. See: parley session list")
				}
				if all {
					t.call, t.hint, t.says = "DELETE sessions", "", true
				}
				return t.requestAndPrint(ctx)
			},
		}},
	})
}
