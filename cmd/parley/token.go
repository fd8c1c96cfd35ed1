package main

import (
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/wire"
)

func (c *cli) token() *cobra.Command {
	const roles = "viewer, support, operator or owner"
	return c.resource(resource{
		name: "token", short: "Manage tokens", id: "tok_9f86d081884c7d659a2feaa0c55ad015",
		example: `  parley token create --kind channel --channel demo
  parley token list`,
		verbs: []verb{{
			use: "create", short: "Create a token and print it, once",
			example: `  TOKEN=$(parley token create --kind channel --channel demo)
  parley token create --kind admin --role operator --name 'Terraform' --expires 90d`,
			flags: []flag{
				textFlag("kind", "channel, global or admin"),
				textFlag("channel", "the channel of a channel token, by its code"),
				textFlag("role", "what an admin token may do, required: "+roles),
				textFlag("name", "a note about who uses it"),
				textFlag("expires", "when it expires: after a time (12h, 90d) or at one (2027-01-31, RFC 3339); default: never").
					as("expires_at").by(readExpiry),
			},
			check: checkNewToken, call: "POST tokens", creates: true,
			print: one(func(c *cli, t *wire.NewToken) string {
				c.hint("Created token %s. It is not shown again. Revoke it with: parley token revoke %s", t.ID, t.ID)
				return t.Secret
			}),
		}, {
			use: "list", short: "List tokens, without their secret part", call: "GET tokens",
			none: "There are no tokens. Create one with: parley token create",
			print: rows("id,name,kind,channel,role,state,created,expires,last used", func(t *wire.Token) []any {
				return []any{t.ID, t.Name, t.Kind, t.Channel, t.Role, tokenState(t), when(t.CreatedAt.Time), when(t.ExpiresAt.Time),
					when(t.LastUsedAt.Time)}
			}),
		}, {
			use: "set ID", short: "Change a token's name, or the role of an admin token",
			example: `  parley token set tok_9f86d081884c7d659a2feaa0c55ad015 --role viewer
  parley token set tok_9f86d081884c7d659a2feaa0c55ad015 --name 'Night shift'`,
			flags: []flag{textFlag("role", roles), textFlag("name", "a note about who uses it")},
			check: func(f fields) error {
				if len(f) == 0 {
					return fail(exitUsage, "nothing to change. Give --role or --name")
				}
				return nil
			},
			call: "PATCH tokens/*", hint: "changed token *",
		}, {
			use: "revoke ID", short: "Revoke a token: it stops working at once",
			example: `  parley token revoke tok_9f86d081884c7d659a2feaa0c55ad015
  parley token list --json | jq -r '.[] | select(.name == "old") | .id' | xargs -n1 parley token revoke`,
			call: "DELETE tokens/*", hint: "revoked token *",
		}, {
			use: "rotate-key", short: "Sign new tokens with a new key; existing tokens stay valid",
			example: `  parley token rotate-key
  parley token rotate-key --retire   # a backup leaked: end every token that an older key signed`,
			flags: []flag{
				boolFlag("retire", "remove older keys, and revoke and list the tokens that they signed"),
				boolFlag("keep-current", "with --retire: make no new key, so that tokens of the present one stay valid"),
			},
			check: func(f fields) error {
				if f["keep_current"] != nil && f["retire"] == nil {
					return fail(exitUsage, "--keep-current is only for --retire")
				}
				return nil
			},
			call: "POST signing-key/rotate", says: true, print: one((*cli).showRotated),
		}},
	})
}

func checkNewToken(f fields) error {
	if f["kind"] == nil && f["channel"] != nil {
		f["kind"] = string(parley.ChannelToken)
	}
	switch {
	case f["kind"] == nil:
		return fail(exitUsage, "--kind is missing: channel, global or admin")
	case f.text("kind") == string(parley.AdminToken) && f["role"] == nil:
		return fail(exitUsage, "--role is missing: viewer, support, operator or owner. A viewer reads everything but secrets, also "+
			"/metrics; an owner may do everything")
	}
	return nil
}

func readExpiry(flag, text string) (any, error) {
	if d, err := parley.ParseDuration(text); err == nil && d > 0 {
		return time.Now().Add(time.Duration(d)).UTC(), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return nil, fail(exitUsage, "%s: %q is neither a length of time (12h, 90d) nor a date (2027-01-31)", flag, text)
}

func tokenState(t *wire.Token) string {
	switch {
	case !t.RevokedAt.IsZero():
		return "revoked"
	case !t.ExpiresAt.IsZero() && !time.Now().Before(t.ExpiresAt.Time):
		return "expired"
	case t.Dev: // only a development server accepts it
		return "dev"
	}
	return "active"
}

func (c *cli) showRotated(done *struct {
	Ended []wire.Token `json:"ended"`
}) string {
	if len(done.Ended) == 0 {
		return ""
	}
	return newTable(c, "ended,name,kind,channel", done.Ended, func(t *wire.Token) []any {
		return []any{t.ID, t.Name, t.Kind, t.Channel}
	})
}
