package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/client"
)

func (c *cli) token() *cobra.Command {
	return newGroup("token", "Manage tokens", `  parley token create --kind channel --channel demo
  parley token list`,
		c.tokenCreate(), c.tokenList(), c.tokenSet(), c.tokenRevoke(), c.tokenRotateKey())
}

func (c *cli) tokenCreate() *cobra.Command {
	var kind, channel, role, name, expires string
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a token and print it, once",
		Example: `  TOKEN=$(parley token create --kind channel --channel demo)
  parley token create --kind admin --role operator --name 'Terraform' --expires 90d`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if kind == "" && channel != "" {
				kind = string(parley.ChannelToken)
			}
			if kind == "" {
				return fail(exitUsage, "--kind is missing: channel, global or admin")
			}
			if kind == string(parley.AdminToken) && role == "" {
				return fail(exitUsage, "--role is missing: viewer, support, operator or owner. A viewer reads everything but secrets, also "+
					"/metrics; an owner may do everything")
			}
			body := texts("kind", kind, "channel", channel, "role", role, "name", name)
			if expires != "" {
				until, err := expiry(expires)
				if err != nil {
					return err
				}
				body["expires_at"] = until
			}
			return c.manageOrCreate(cmd, func(ctx context.Context, api *client.Client) error {
				var t struct {
					parley.Token
					Secret string `json:"token"`
				}
				r, err := api.Post(ctx, client.Path("tokens"), body, &t)
				if err != nil {
					return explainNoChannel(ctx, api, err, channel)
				}
				c.hint("Created token %s. It is not shown again. Revoke it with: parley token revoke %s", t.ID, t.ID)
				return c.print(r.Data, t.Secret)
			})
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "", "channel, global or admin")
	cmd.Flags().StringVar(&channel, "channel", "", "the channel of a channel token, by its code")
	cmd.Flags().StringVar(&role, "role", "", "what an admin token may do, required: viewer, support, operator or owner")
	cmd.Flags().StringVar(&name, "name", "", "a note about who uses it")
	cmd.Flags().StringVar(&expires, "expires", "", "when it expires: after a time (12h, 90d) or at one (2027-01-31, RFC 3339); default: never")
	return cmd
}

func expiry(text string) (time.Time, error) {
	if d, err := parley.ParseDuration(text); err == nil && d > 0 {
		return time.Now().Add(time.Duration(d)).UTC(), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fail(exitUsage, "--expires: %q is neither a length of time (12h, 90d) nor a date (2027-01-31)", text)
}

func (c *cli) tokenList() *cobra.Command {
	return newList(c, "List tokens, without their secret part", "token",
		[]any{"id", "name", "kind", "channel", "role", "state", "created", "expires", "last used"},
		func(t *parley.Token) []any {
			state := "active"
			switch {
			case !t.RevokedAt.IsZero():
				state = "revoked"
			case !t.Active(time.Now()):
				state = "expired"
			case t.Dev: // only a development server accepts it
				state = "dev"
			}
			return []any{t.ID, t.Name, t.Kind, t.Channel, t.Role, state, when(t.CreatedAt), when(t.ExpiresAt), when(t.LastUsedAt)}
		})
}

func (c *cli) tokenSet() *cobra.Command {
	var role, name string
	cmd := &cobra.Command{
		Use:   "set ID",
		Short: "Change a token's name, or the role of an admin token",
		Example: `  parley token set tok_9f86d081884c7d659a2feaa0c55ad015 --role viewer
  parley token set tok_9f86d081884c7d659a2feaa0c55ad015 --name 'Night shift'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			body := texts("role", role, "name", name)
			if len(body) == 0 {
				return fail(exitUsage, "nothing to change. Give --role or --name")
			}
			return c.onResource("token", func(ctx context.Context, api *client.Client, id string) error {
				if _, err := api.Call(ctx, http.MethodPatch, client.Path("tokens", id), nil, body, nil); err != nil {
					return err
				}
				return c.done("changed token %s", id)
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "viewer, support, operator or owner")
	cmd.Flags().StringVar(&name, "name", "", "a note about who uses it")
	return cmd
}

func (c *cli) tokenRevoke() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a token: it stops working at once",
		Example: `  parley token revoke tok_9f86d081884c7d659a2feaa0c55ad015
  parley token list --json | jq -r '.[] | select(.name == "old") | .id' | xargs -n1 parley token revoke`,
		RunE: c.onResource("token", func(ctx context.Context, api *client.Client, id string) error {
			if _, err := api.Call(ctx, http.MethodDelete, client.Path("tokens", id), nil, nil, nil); err != nil {
				return err
			}
			return c.done("revoked token %s", id)
		}),
	}
}

func (c *cli) tokenRotateKey() *cobra.Command {
	var retire, keep bool
	cmd := &cobra.Command{
		Use:   "rotate-key",
		Short: "Sign new tokens with a new key; existing tokens stay valid",
		Example: `  parley token rotate-key
  parley token rotate-key --retire   # a backup leaked: end every token that an older key signed`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if keep && !retire {
				return fail(exitUsage, "--keep-current is only for --retire")
			}
			return c.manage(cmd, func(ctx context.Context, api *client.Client) error {
				var done struct {
					Ended []parley.Token `json:"ended"`
				}
				r, err := api.Post(ctx, client.Path("signing-key", "rotate"), map[string]any{"retire": retire, "keep_current": keep}, &done)
				if err != nil || c.json {
					return errors.Join(err, c.print(r.Data, ""))
				}
				if retire {
					var rows [][]any
					for _, t := range done.Ended {
						rows = append(rows, []any{t.ID, t.Name, t.Kind, t.Channel})
					}
					c.printTable([]any{"ended", "name", "kind", "channel"}, rows)
					return c.done("older signing keys are retired; tokens that ended: %d", len(done.Ended))
				}
				return c.done("new tokens are signed with a new key")
			})
		},
	}
	cmd.Flags().BoolVar(&retire, "retire", false, "remove older keys, and revoke and list the tokens that they signed")
	cmd.Flags().BoolVar(&keep, "keep-current", false, "with --retire: make no new key, so that tokens of the present one stay valid")
	return cmd
}
