package main

import (
	"github.com/spf13/cobra"

	"parley/internal/diagnostics"
)

func (c *cli) config() *cobra.Command {
	return newGroup("config", "Show the configuration", `  parley config show
  parley config show --json --data /var/lib/parley`,
		c.configShow())
}

func (c *cli) configShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show every setting, its value and its origin",
		Long: `Show every setting, its value and its origin.

A setting is taken from the first of: the flag, PARLEY_NAME, the file that PARLEY_NAME_FILE names,
the configuration file, the default. Secrets are masked.`,
		Example: `  parley config show
  PARLEY_LISTEN=127.0.0.1:8000 parley config show --json`,
		RunE: func(*cobra.Command, []string) error {
			if c.json {
				return c.printJSON(c.shownSettings())
			}
			var rows [][]any
			for _, s := range c.shownSettings() {
				rows = append(rows, []any{s.Key, s.Value, s.Origin})
			}
			c.printTable([]any{"setting", "value", "from"}, rows)
			return nil
		},
	}
	settingFlags(cmd.Flags(), serverSettings...)
	hideFlags(cmd.Flags(), serverSettings...)
	return cmd
}

// shownSettings are the settings with secrets masked.
func (c *cli) shownSettings() []diagnostics.Setting {
	shown := make([]diagnostics.Setting, len(settingTable))
	for i, known := range settingTable {
		v := c.set.values[known.key]
		if known.secret && v.text != "" {
			v.text = "********"
		}
		shown[i] = diagnostics.Setting{Key: known.key, Value: v.text, Origin: v.origin}
	}
	return shown
}
