package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/app"
)

func (c *cli) token() *cobra.Command {
	return newGroup("token", "Make tokens and revoke them", `  parley token create --kind channel --channel demo
  parley token list`,
		c.tokenCreate(), c.tokenList(), c.tokenRevoke(), c.tokenRotateKey())
}

// tokenView is what is kept of a token, as JSON.
type tokenView struct {
	ID         parley.TokenID      `json:"id"`
	Name       string              `json:"name"`
	Kind       parley.TokenKind    `json:"kind"`
	Channel    *parley.ChannelCode `json:"channel"`
	CreatedAt  *time.Time          `json:"created_at"`
	ExpiresAt  *time.Time          `json:"expires_at"`
	LastUsedAt *time.Time          `json:"last_used_at"`
	RevokedAt  *time.Time          `json:"revoked_at"`
	Token      string              `json:"token,omitempty"` // when it was just made
}

func viewToken(t parley.Token) tokenView {
	view := tokenView{
		ID: t.ID, Name: t.Name, Kind: t.Kind, CreatedAt: orNil(t.CreatedAt),
		ExpiresAt: orNil(t.ExpiresAt), LastUsedAt: orNil(t.LastUsedAt), RevokedAt: orNil(t.RevokedAt),
	}
	if t.Channel != "" {
		view.Channel = &t.Channel
	}
	return view
}

func (c *cli) tokenCreate() *cobra.Command {
	var kind, channel, name, expires string
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a token and print it, this once",
		Example: `  TOKEN=$(parley token create --kind channel --channel demo)
  parley token create --kind admin --name 'Terraform' --expires 90d`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if kind == "" && channel != "" {
				kind = string(parley.ChannelToken)
			}
			if kind == "" {
				return fail(exitUsage, "--kind is missing: channel, global or admin")
			}
			k, err := parley.ParseTokenKind(kind)
			if err != nil {
				return fail(exitUsage, "--kind: %w", err)
			}
			if k == parley.ChannelToken && channel == "" {
				return fail(exitUsage, "--channel is missing: a channel token is for one channel")
			}
			if k != parley.ChannelToken && channel != "" {
				return fail(exitUsage, "--channel is for channel tokens; a token of kind %s names none", k)
			}
			until, err := expiry(expires)
			if err != nil {
				return err
			}
			return c.withData(cmd.Context(), true, func(data *app.Data) error {
				if channel != "" {
					if _, err := data.Store.Channel(cmd.Context(), parley.ChannelCode(channel)); errors.Is(err, parley.ErrNotFound) {
						return noChannel(parley.ChannelCode(channel))
					}
				}
				id := parley.NewTokenID()
				signed, err := data.Tokens.Issue(cmd.Context(), parley.Token{
					ID: id, Name: name, Kind: k, Channel: parley.ChannelCode(channel), ExpiresAt: until,
				})
				if err != nil {
					return err
				}
				c.hint("made token %s. It is not shown again; revoke it with: parley token revoke %s", id, id)
				if c.json {
					made, err := data.Store.Token(cmd.Context(), id)
					if err != nil {
						return err
					}
					view := viewToken(made)
					view.Token = signed
					return c.printJSON(view)
				}
				fmt.Fprintln(c.out, signed)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "", "channel, global or admin")
	cmd.Flags().StringVar(&channel, "channel", "", "the code of the channel that a channel token is for")
	cmd.Flags().StringVar(&name, "name", "", "a note on who uses it")
	cmd.Flags().StringVar(&expires, "expires", "", "when it stops working: after a time (12h, 90d) or at one (2027-01-31, RFC 3339); default: never")
	return cmd
}

// expiry reads when a token is to expire; "" is never.
func expiry(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := span(text); err == nil && d > 0 {
		return time.Now().Add(d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fail(exitUsage, "--expires: %q is neither a length of time (12h, 90d) nor a date (2027-01-31)", text)
}

func (c *cli) tokenList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the tokens, without the tokens themselves",
		Example: `  parley token list
  parley token list --json`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withData(cmd.Context(), false, func(data *app.Data) error {
				tokens, err := data.Store.Tokens(cmd.Context())
				if err != nil {
					return err
				}
				views := make([]tokenView, len(tokens))
				rows := make([][]any, len(tokens))
				for i, t := range tokens {
					views[i] = viewToken(t)
					rows[i] = []any{t.ID, t.Name, t.Kind, t.Channel, tokenState(t), when(t.CreatedAt), when(t.ExpiresAt), when(t.LastUsedAt)}
				}
				if c.json {
					return c.printJSON(views)
				}
				c.printTable([]any{"id", "name", "kind", "channel", "state", "created", "expires", "last used"}, rows)
				return nil
			})
		},
	}
}

func tokenState(t parley.Token) string {
	switch {
	case !t.RevokedAt.IsZero():
		return "revoked"
	case !t.Active(time.Now()):
		return "expired"
	}
	return "active"
}

func (c *cli) tokenRevoke() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a token: it stops working within a second",
		Example: `  parley token revoke tok_9f86d081884c7d659a2feaa0c55ad015
  parley token list --json | jq -r '.[] | select(.name == "old") | .id' | xargs -n1 parley token revoke`,
		Args: takes("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withData(cmd.Context(), false, func(data *app.Data) error {
				err := data.Tokens.Revoke(cmd.Context(), parley.TokenID(args[0]))
				if errors.Is(err, parley.ErrNotFound) {
					return fail(exitNotSo, "there is no token %s. See: parley token list", args[0])
				}
				if err != nil {
					return err
				}
				return c.done("token %s is revoked; a running server follows within a second", args[0])
			})
		},
	}
}

func (c *cli) tokenRotateKey() *cobra.Command {
	return &cobra.Command{
		Use:   "rotate-key",
		Short: "Sign new tokens with a new key; those made before go on working",
		Example: `  parley token rotate-key
  parley token rotate-key --data /var/lib/parley`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withData(cmd.Context(), false, func(data *app.Data) error {
				if err := data.Tokens.Rotate(cmd.Context()); err != nil {
					return err
				}
				return c.done("new tokens are signed with a new key")
			})
		},
	}
}
