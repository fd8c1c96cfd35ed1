package main

import (
	"github.com/spf13/cobra"

	"parley/internal/app"
)

func (c *cli) dev() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a sandbox to develop and test against",
		Long: `Run a gateway with simulated phones, to develop and test against: nothing leaves this machine.

It makes a channel "demo" and tokens for it, written to dev.env in the data directory. Data and tokens
are kept, so a restart goes on where it stopped. Addresses of this machine are allowed in what you
send. At a terminal it shows one line per message, and opens the console in a browser.`,
		Example: `  parley dev
  parley dev --data /tmp/try --listen 127.0.0.1:7300`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// At a terminal people read the banner and the messages; the log shows what went wrong.
			if c.errTerminal && c.set.values[keyLogLevel].origin == "default" {
				c.set.values[keyLogLevel] = settingValue{"warn", "default of dev at a terminal"}
			}
			if c.set.values[keyMedia].origin == "default" { // tests fetch as much as they like from their own machine
				c.set.values[keyMedia] = settingValue{"0", "default of dev"}
			}
			cfg, err := c.appConfig()
			if err != nil {
				return err
			}
			cfg.Dev = true
			if c.errTerminal && !c.quiet {
				cfg.Screen = c.err
				if !c.set.on(keyNoOpen) {
					cfg.Open = c.openBrowser
				}
			}
			return app.Run(cmd.Context(), cfg)
		},
	}
	settingFlags(cmd.Flags(), serverSettings...)
	settingFlags(cmd.Flags(), keyNoOpen)
	return cmd
}
