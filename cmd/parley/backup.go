package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"

	"github.com/spf13/cobra"

	"parley/internal/app"
	"parley/internal/client"
)

func (c *cli) backup() *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Write everything into one file, while the server goes on",
		Long: `Write database, files and key into one tar file, while the server goes on. Whoever has the file has
your accounts: keep it as you keep them. FILE may be - for stdout. What the simulated phones of the
sandbox received is not part of it.`,
		Example: `  parley backup parley-$(date +%F).tar
  parley backup - | age -r age1… > parley.tar.age`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !c.dir().Exists() {
				return c.noData()
			}
			bar := c.newProgress("backup")
			defer bar.Done()
			if args[0] == "-" {
				if c.outTerminal {
					return fail(exitUsage, "a backup is not for a terminal: give a file, or a pipe")
				}
				return c.writeBackup(cmd.Context(), c.out, bar)
			}
			size, err := app.SaveBackup(args[0], func(w io.Writer) error { return c.writeBackup(cmd.Context(), w, bar) })
			if errors.Is(err, fs.ErrExist) {
				return fail(exitUsage, "%s is there already. Give another name", args[0])
			}
			if errors.Is(err, fs.ErrNotExist) {
				return fail(exitUsage, "there is no folder %s", filepath.Dir(args[0]))
			}
			if err != nil {
				return err
			}
			bar.Done()
			if c.json {
				return c.printJSON(map[string]any{"file": args[0], "size": size})
			}
			c.hint("wrote %s, %d bytes", args[0], size)
			return nil
		},
	}
}

// writeBackup writes a backup: that of the server that runs on the data directory, else its own.
func (c *cli) writeBackup(ctx context.Context, w io.Writer, bar *progress) error {
	running, ok := c.dir().Running()
	if !ok || running.URL == "" {
		return app.BackupOffline(ctx, c.dir(), c.warnings(), w, bar.Set)
	}
	return c.onRunning(ctx, running, func(ctx context.Context, api *client.Client) error {
		resp, err := api.Open(ctx, http.MethodGet, client.Path("backup", "now"), nil, nil, nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		done := int64(0)
		_, err = io.Copy(w, reader(func(p []byte) (int, error) {
			n, err := resp.Body.Read(p)
			done += int64(n)
			bar.Set(done, -1)
			return n, err
		}))
		if err != nil {
			return &client.UnreachableError{Base: api.Base, Err: err}
		}
		return nil
	})
}
