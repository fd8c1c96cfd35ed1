package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"parley/internal/app"
)

func (c *cli) restore() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a backup in the place of what is there",
		Long: `Put a backup in the place of what is there. The server must not be running. The backup is checked
first, and what was there before is kept in a folder of the data directory. FILE may be - for stdin.`,
		Example: `  parley restore parley-2026-11-15.tar
  age -d parley.tar.age | parley restore - --yes`,
		Args: takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, size, err := c.openBackup(args[0])
			if err != nil {
				return err
			}
			defer from.Close()
			if c.dir().Exists() {
				if err := c.confirm(cmd.Context(), yes, fmt.Sprintf("This replaces the data in %s", c.dir()), "restore"); err != nil {
					return err
				}
			}
			bar := c.newProgress("restore")
			read := int64(0)
			kept, err := app.Restore(cmd.Context(), c.dir(), reader(func(p []byte) (int, error) {
				n, err := from.Read(p)
				read += int64(n)
				bar.Set(read, max(size, read))
				return n, err
			}), c.warnings())
			bar.Done()
			if err != nil {
				return err
			}
			if kept != "" {
				c.hint("what was there before is in %s; remove it when you do not need it", kept)
			}
			if c.json {
				return c.printJSON(map[string]string{"data": string(c.dir()), "before": kept})
			}
			c.hint("restored %s", c.dir())
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// openBackup opens a backup file, or stdin, and tells its size where that is known.
func (c *cli) openBackup(path string) (io.ReadCloser, int64, error) {
	if path == "-" {
		return io.NopCloser(c.in), 0, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, fail(exitUsage, "open the backup: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("open the backup: %w", err)
	}
	return f, info.Size(), nil
}

// reader is a function that reads.
type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }
