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
	"parley/internal/wait"
)

// healthEvery is the interval between requests while waiting for a server.
const healthEvery = 50 * time.Millisecond

func (c *cli) health() *cobra.Command {
	var onlyReady bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Check that a server is alive, or ready",
		Example: `  parley health --ready
  parley health --ready --wait 10s`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path := "/livez"
			if onlyReady {
				path = "/readyz"
			}
			ctx := cmd.Context()
			deadline := time.Now().Add(timeout)
			for {
				err := c.askHealth(ctx, path)
				if err == nil || ctx.Err() != nil || !time.Now().Before(deadline) {
					return err
				}
				if !wait.Sleep(ctx, min(healthEvery, time.Until(deadline))) {
					return ctx.Err()
				}
			}
		},
	}
	cmd.Flags().BoolVar(&onlyReady, "ready", false, "check that it can accept requests, not only that it is alive")
	cmd.Flags().DurationVar(&timeout, "wait", 0, "repeat the check for this long")
	settingFlags(cmd.Flags(), keyURL)
	return cmd
}

// askHealth checks once. It finds the address each time, because a starting server has just written it.
func (c *cli) askHealth(ctx context.Context, path string) error {
	cl, _, err := c.server()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	resp, err := cl.Open(ctx, http.MethodGet, path, nil, nil, nil)
	if refused, ok := errors.AsType[*client.Error](err); ok {
		return fail(exitNegative, "%s is not ready: %s", cl.Base, refused.Message)
	}
	if err != nil {
		return err
	}
	resp.Body.Close()
	if !c.json {
		c.hint("%s is healthy", cl.Base)
	}
	return c.print(map[string]any{"url": cl.Base, "ok": true}, "ok")
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
				return fail(exitNotFound, "there is no %s. Start a development server with: parley dev", c.dir().DevEnv())
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
	cmd.Flags().BoolVar(&export, "export", false, "print each line as a shell export")
	return cmd
}
