package main

import (
	"github.com/spf13/cobra"

	"parley/internal/app"
)

func (c *cli) migrate() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database up to date with this program",
		Long:  "Bring the database up to date with this program. Servers do this by themselves when they start.",
		Example: `  parley migrate
  parley backup before.tar && parley migrate`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withData(cmd.Context(), false, func(data *app.Data) error { // opening it migrates it
				return c.done("%s is up to date", data.Dir.Database())
			})
		},
	}
}
