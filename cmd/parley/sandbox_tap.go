package main

import (
	"context"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"parley/internal/client"
)

func (c *cli) sandboxTap(connect connect) *cobra.Command {
	var as string
	cmd := &cobra.Command{
		Use:   "tap LINK|ID",
		Short: "Do what a thumb on a chat link does: send the text that the link carries",
		Long: `Do what a thumb on a chat link does: send the text that the link carries.

A login link is named by its address or, while it is open, by its id. The phone is the one that the
link was made for, unless --as names another.`,
		Example: `  parley sandbox tap otl_0a1b2c3d4e5f60718293a4b5
  parley sandbox tap otl_0a1b2c3d4e5f60718293a4b5 --as +6289876543210`,
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "link"
			if isLinkID(args[0]) {
				what = "id"
			}
			if as == "" {
				var err error
				if as, err = c.tapped(cmd, connect, args[0]); err != nil {
					return err
				}
			}
			return c.actAs(cmd, connect, as, "open", map[string]string{what: args[0]})
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "the number of the phone that is tapped (default: the one that the link is for)")
	return cmd
}

func isLinkID(s string) bool { return strings.HasPrefix(s, "otl_") }

// tapped finds the phone that a login link was made for: the page of a simulated phone has it in its
// address, of an id the server knows.
func (c *cli) tapped(cmd *cobra.Command, connect connect, link string) (string, error) {
	if !isLinkID(link) {
		u, err := url.Parse(link)
		if err != nil {
			return "", fail(exitUsage, "%q is neither a link nor the id of one", link)
		}
		number, found := strings.CutPrefix(u.Path, "/phone/")
		if !found {
			return "", fail(exitUsage, "--as is missing: the link does not say which phone it is for")
		}
		return number, nil
	}
	var state struct {
		ContactID string `json:"contact_id"`
	}
	err := c.onPhones(cmd, connect, func(ctx context.Context, cl *client.Client) error {
		_, err := cl.Get(ctx, "/api/otp/link/"+url.PathEscape(link), nil, &state)
		return err
	})
	return state.ContactID, err
}
