package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"parley/internal/app"
)

func (c *cli) secret() *cobra.Command {
	return newGroup("secret", "Replace the key that encrypts secrets in the database", `  parley secret rotate
  parley secret rotate --prepare --database postgres://parley@db.example.com/parley`, c.secretRotate())
}

func (c *cli) secretRotate() *cobra.Command {
	var prepare, activate, retire bool
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Replace secret.key and encrypt everything again",
		Long: `Make a new key in secret.key, encrypt everything with it and remove the old one. The server must not be running. If
the command is interrupted, run it again.

Tokens, webhooks and their secrets stay. One-time codes and login links that are open end, and so do Idempotency-Keys
and signed links to files.

On PostgreSQL it takes three steps, while the nodes run: --prepare adds a new key, which nodes accept and do not use
yet; --activate makes them encrypt with it; --retire encrypts the rest again and removes the old key. After each, copy
the file to every node and restart the nodes one by one.`,
		Example: `  parley secret rotate
  parley secret rotate --prepare --database postgres://parley@db.example.com/parley`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config := app.Config{DataDir: c.dir(), Database: c.set.text(keyDatabase), SecretKeyFile: c.set.text(keySecretKey), Media: c.media()}
			if c.onPostgres() {
				return c.rotateOnNodes(cmd.Context(), config, prepare, activate, retire)
			}
			if prepare || activate || retire {
				return fail(exitUsage, "--prepare, --activate and --retire are for nodes on PostgreSQL. Stop the server and run: parley secret rotate")
			}
			if !c.dir().Exists() {
				return c.noData()
			}
			r, err := app.RotateSecret(cmd.Context(), config, c.warnings())
			if err != nil {
				return err
			}
			if r.Finished && !c.json {
				fmt.Fprintf(c.out, "%s had several lines, so this finished an earlier rotation. If you want another new key, run it again.\n",
					c.dir().Key())
			}
			return c.printRotated(r)
		},
	}
	cmd.Flags().BoolVar(&prepare, "prepare", false, "with --database: add a new key to the file")
	cmd.Flags().BoolVar(&activate, "activate", false, "with --database: make the new key the first one")
	cmd.Flags().BoolVar(&retire, "retire", false, "with --database: encrypt everything again and remove the old key")
	oneFlag(cmd, "prepare", "activate", "retire")
	settingFlags(cmd.Flags(), keyFiles, keyDatabase, keySecretKey)
	return cmd
}

// rotateOnNodes does one step of a rotation while nodes run.
func (c *cli) rotateOnNodes(ctx context.Context, config app.Config, prepare, activate, retire bool) (err error) {
	var did, next string
	switch {
	case prepare:
		did, next = "It has a new key, which nodes accept and do not use yet", "Then run: parley secret rotate --activate"
		err = app.PrepareSecret(ctx, config)
	case activate:
		did, next = "Its first line is the new key", "Then run: parley secret rotate --retire"
		err = app.ActivateSecret(ctx, config)
	case retire:
		did, next = "The old key is not in it any more", "Until then they accept the old key."
		var r app.Rotated
		if r, err = app.RetireSecret(ctx, config); err == nil {
			err = c.printRotated(r)
		}
	default:
		return fail(exitUsage, "On PostgreSQL a rotation takes three steps, and nodes are restarted after each. Begin with: "+
			"parley secret rotate --prepare")
	}
	switch {
	case err != nil:
		return err
	case c.json && retire:
		return nil // printed
	case c.json:
		return c.printJSON(struct{}{})
	}
	fmt.Fprintf(c.out, "Wrote %s. %s. Copy it to every node and restart the nodes one by one. %s\n", config.KeyFile(), did, next)
	return nil
}

func (c *cli) printRotated(r app.Rotated) error {
	e := r.Ended
	if c.json {
		return c.printJSON(map[string]any{"finished": r.Finished, "reencrypted": r.Reencrypted, "unreadable": r.Unreadable,
			"ended": map[string]int64{"codes": e.Codes, "login_links": e.LoginLinks, "requests": e.Keys}})
	}
	fmt.Fprintf(c.out, "Secrets and texts that are encrypted with the new key now: %d. The old key is removed.\n", r.Reencrypted)
	fmt.Fprintf(c.out, "Ended: one-time codes %d, login links %d, idempotency keys %d.\n", e.Codes, e.LoginLinks, e.Keys)
	if r.Unreadable > 0 {
		fmt.Fprintf(c.out, "%d texts could not be decrypted with any line of the file, and stay as they are.\n", r.Unreadable)
	}
	return nil
}
