package main

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"parley/internal/app"
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
		Args: takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withData(cmd.Context(), false, func(data *app.Data) error {
				bar := c.newProgress("backup")
				defer bar.Done()
				if args[0] == "-" {
					if c.outTerminal {
						return fail(exitUsage, "a backup is not for a terminal: give a file, or a pipe")
					}
					return app.Backup(cmd.Context(), data, c.out, bar.Set)
				}
				size, err := app.BackupTo(cmd.Context(), data, args[0], bar.Set)
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
			})
		},
	}
}
