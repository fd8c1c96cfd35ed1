package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"parley/internal/app"
	"parley/internal/client"
)

// healthEvery is how often a server is asked while it is waited for.
const healthEvery = 50 * time.Millisecond

func (c *cli) health() *cobra.Command {
	var onlyReady bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a server whether it lives, or is ready",
		Example: `  parley health --ready
  parley health --ready --wait 10s`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path := "/livez"
			if onlyReady {
				path = "/readyz"
			}
			ctx := cmd.Context()
			deadline := time.Now().Add(wait)
			for {
				err := c.askHealth(ctx, path)
				if err == nil || ctx.Err() != nil || !time.Now().Before(deadline) {
					return err
				}
				select {
				case <-ctx.Done():
				case <-time.After(min(healthEvery, time.Until(deadline))):
				}
			}
		},
	}
	cmd.Flags().BoolVar(&onlyReady, "ready", false, "ask whether it can take requests, not only whether it lives")
	cmd.Flags().DurationVar(&wait, "wait", 0, "ask again for this long before giving up")
	settingFlags(cmd.Flags(), keyURL)
	return cmd
}

// askHealth asks once. The address is looked up each time: a server that is starting writes it down.
func (c *cli) askHealth(ctx context.Context, path string) error {
	base, running, err := c.server()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cl := &client.Client{Base: base}
	if running.URL != "" {
		cl.HTTP = client.OfThisMachine()
	}
	resp, err := cl.Open(ctx, http.MethodGet, path, nil, nil, nil)
	if refused, ok := errors.AsType[*client.Error](err); ok {
		return fail(exitNotSo, "%s is not ready: %s", base, refused.Message)
	}
	if err != nil {
		return err
	}
	resp.Body.Close()
	if c.json {
		return c.printJSON(map[string]any{"url": base, "ok": true})
	}
	c.hint("%s is well", base)
	fmt.Fprintln(c.out, "ok")
	return nil
}

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
