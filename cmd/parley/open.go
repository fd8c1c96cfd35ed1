package main

import (
	"cmp"
	"context"
	"net/url"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/app"
	"parley/internal/client"
	"parley/internal/console"
)

func (c *cli) open() *cobra.Command {
	var printOnly bool
	var role, name string
	cmd := &cobra.Command{
		Use:   "open [LINK]",
		Short: "Open the console, signed in",
		Long: `Create a link that signs in to the console, print it and, at a terminal, open it in a browser. The link works once,
within 15 minutes. It signs in as owner, with full access, unless --role names a lesser role. It leads to --url, or else
to the server's public address, or else to this machine. With a LINK, such as the login link of a sandbox channel, open that.`,
		Example: `  parley open --role support --name Ayu --print
  parley open --url https://chat.example.com --print`,
		RunE: func(cmd *cobra.Command, args []string) error {
			link, err := c.linkToOpen(cmd, args, texts("role", role, "name", name))
			if err != nil {
				return err
			}
			err = c.print(map[string]string{"url": link}, link)
			switch {
			case c.json || printOnly || !c.outTerminal || c.set.on(keyNoOpen):
			case c.openBrowser(link):
				c.hint("Opened in your browser.")
			default:
				c.hint("No browser could be started here. Open the link in a browser.")
			}
			return err
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "what the session may do: viewer, support, operator or owner; default: owner")
	cmd.Flags().StringVar(&name, "name", "", "whom the link is for; only an owner chooses a name")
	cmd.Flags().BoolVar(&printOnly, "print", false, "only print the link")
	settingFlags(cmd.Flags(), keyURL, keyNoOpen)
	return cmd
}

// linkToOpen returns the given link, or creates one that signs in.
func (c *cli) linkToOpen(cmd *cobra.Command, args []string, body map[string]any) (string, error) {
	if len(args) > 0 {
		u, err := url.Parse(args[0])
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return "", fail(exitUsage, "%q is not a link. A link begins with http:// or https://", args[0])
		}
		return args[0], nil
	}
	base, err := c.linkURL()
	if err != nil {
		return "", err
	}
	if running, _ := c.dir().Running(); running.URL == "" && c.set.text(keyURL) == "" {
		return "", c.noServer()
	}
	var made struct {
		URL  string      `json:"url"`
		Role parley.Role `json:"role"`
	}
	err = c.manage(cmd, func(ctx context.Context, api *client.Client) error {
		_, err := api.Post(ctx, client.Path("sign-in-link"), body, &made)
		return err
	})
	if err != nil {
		return "", err
	}
	c.hint("It works once, for %d minutes, and signs in as %s.", int(console.LinkLife.Minutes()), made.Role)
	_, path, _ := strings.Cut(made.URL, "/console/")
	return base + "/console/" + path, nil
}

// linkURL is the base of a link: --url, else the server's public address, else its address on this machine.
func (c *cli) linkURL() (string, error) {
	if c.set.text(keyURL) == "" {
		if public, err := c.publicURL(); err != nil || public != "" {
			return public, err
		}
	}
	cl, _, err := c.server()
	if err != nil {
		return "", err
	}
	return cl.Base, nil
}

// publicURL is the server's public address, as set here or for the running server. It may be empty.
func (c *cli) publicURL() (string, error) {
	running, _ := c.dir().Running()
	return app.PublicURL(cmp.Or(c.set.text(keyPublicURL), running.PublicURL))
}

// openBrowser opens a link in a browser on this machine, and reports whether one was started. The link is visible in the
// list of processes for a moment; it works once, and is used at once.
func (c *cli) openBrowser(link string) bool {
	var opener *exec.Cmd
	switch runtime.GOOS {
	case "darwin":
		opener = exec.Command("open", link)
	case "windows":
		opener = exec.Command("rundll32", "url.dll,FileProtocolHandler", link)
	default:
		if !c.hasScreen() {
			return false
		}
		opener = exec.Command("xdg-open", link)
	}
	if browser, _ := c.getenv("BROWSER"); browser != "" {
		opener = exec.Command(browser, link)
	}
	if err := opener.Start(); err != nil {
		return false
	}
	go opener.Wait() // reaps the process
	return true
}

func (c *cli) hasScreen() bool {
	return slices.ContainsFunc([]string{"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"}, func(name string) bool {
		value, _ := c.getenv(name)
		return value != ""
	})
}
