package main

import (
	"github.com/spf13/cobra"

	"parley/internal/app"
)

func (c *cli) migrate() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database up to date with this program",
		Long: `Bring the database up to date with this program, after copying it to parley.db.before-vN. The server must not be
running. Servers do this by themselves when they start.`,
		Example: `  parley migrate
  parley backup before.tar && parley migrate`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !c.dir().Exists() {
				return c.noData()
			}
			from, to, kept, err := app.Migrate(cmd.Context(), c.dir(), c.warnings())
			if err != nil {
				return err
			}
			if kept != "" {
				c.hint("migrated from version %d to %d. The database as it was is %s: remove it when you do not need it", from, to, kept)
			}
			return c.done("%s is up to date", c.dir().Database())
		},
	}
}
