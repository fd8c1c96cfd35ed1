package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"parley/internal/app"
)

func (c *cli) env() *cobra.Command {
	var export bool
	cmd := &cobra.Command{
		Use:   "env",
		Short: "Print the address and the tokens of a development server",
		Example: `  eval "$(parley env --export)"
  parley env >> "$GITHUB_ENV"`,
		RunE: func(*cobra.Command, []string) error {
			env, err := app.ReadDevEnv(c.dir())
			if err != nil {
				return err
			}
			if len(env) == 0 {
				return fail(exitNotSo, "there is no %s. Start a development server with: parley dev", c.dir().DevEnv())
			}
			if c.json {
				return c.printJSON(env)
			}
			for _, line := range env.Lines() {
				if export {
					line = "export " + line
				}
				fmt.Fprintln(c.out, line)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&export, "export", false, "write each line as an export for a shell to evaluate")
	return cmd
}
