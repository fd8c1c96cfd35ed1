package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/app"
	"parley/internal/callback"
)

func (c *cli) channelSecret() *cobra.Command {
	var rotate bool
	cmd := &cobra.Command{
		Use:   "secret CODE",
		Short: "Print the secret that the callbacks of a channel's login links are signed with",
		Example: `  parley channel secret toko
  parley channel secret toko --rotate`,
		Args: takes("CODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withData(cmd.Context(), false, func(data *app.Data) error {
				ch, err := data.Store.Channel(cmd.Context(), parley.ChannelCode(args[0]))
				if errors.Is(err, parley.ErrNotFound) {
					return noChannel(parley.ChannelCode(args[0]))
				}
				if err != nil {
					return err
				}
				return c.printSecret(cmd.Context(), data, parley.ChannelSecret(ch.Code), rotate)
			})
		},
	}
	cmd.Flags().BoolVar(&rotate, "rotate", false, "make a new one first; for 24 hours the old one signs too")
	return cmd
}

// secretsOf reads and changes the signing secrets of a data directory.
func secretsOf(data *app.Data) *callback.Secrets { return callback.NewSecrets(data.Store, data.Sealer) }

// printSecret prints a signing secret alone, or a new one in its place.
func (c *cli) printSecret(ctx context.Context, data *app.Data, owner parley.SecretOwner, rotate bool) error {
	var keys callback.Keys
	var err error
	if rotate {
		keys, err = secretsOf(data).Rotate(ctx, owner)
	} else {
		keys, err = secretsOf(data).Of(ctx, owner)
	}
	if err != nil {
		return err
	}
	if rotate {
		c.hint("a running server signs with it within a second; for 24 hours the old secret signs too")
	}
	if c.json {
		return c.printJSON(map[string]string{"secret": keys.Secret})
	}
	fmt.Fprintln(c.out, keys.Secret)
	return nil
}
