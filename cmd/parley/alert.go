package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/client"
)

func (c *cli) alert() *cobra.Command {
	return newGroup("alert", "Manage alerts: notices of problems, by webhook or message",
		`  parley alert create --kind channel_logged_out --url https://ops.example.com/alerts
  parley alert list`,
		c.alertList(), c.alertCreate(), c.alertDelete(), c.alertTest())
}

// alertRule and alertRow are rows of the management API.
type alertRule struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Channel   string `json:"channel"`
	URL       string `json:"url"`
	Via       string `json:"via"`
	ContactID string `json:"contact_id"`
	Enabled   bool   `json:"enabled"`
	Secret    string `json:"secret"`
}

type alertRow struct {
	RaisedAt   time.Time `json:"raised_at"`
	ResolvedAt time.Time `json:"resolved_at"`
	Sentence   string    `json:"sentence"`
	Problem    string    `json:"problem"`
}

func (r *alertRule) notifies() string {
	if r.URL != "" {
		return r.URL
	}
	return r.ContactID + " through " + r.Via
}

func (c *cli) alertList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List alert rules and recent alerts",
		Example: `  parley alert list
  parley alert list --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.manage(cmd, func(ctx context.Context, api *client.Client) error {
				var data struct {
					Rules  json.RawMessage `json:"rules"`
					Alerts json.RawMessage `json:"alerts"`
				}
				r, err := api.Get(ctx, client.Path("alerts"), nil, &data)
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(r.Data)
				}
				err = printRows(c, &client.Response{Data: data.Rules}, nil, []any{"id", "name", "kind", "channel", "notifies", "enabled"},
					func(r *alertRule) []any { return []any{r.ID, r.Name, r.Kind, r.Channel, r.notifies(), r.Enabled} })
				if err != nil || string(data.Alerts) == "[]" {
					return err
				}
				return printRows(c, &client.Response{Data: data.Alerts}, nil, []any{"raised", "resolved", "alert", "problem"},
					func(a *alertRow) []any { return []any{when(a.RaisedAt), when(a.ResolvedAt), a.Sentence, a.Problem} })
			})
		},
	}
}

func (c *cli) alertCreate() *cobra.Command {
	var kind, name, channel, address, via, to, quiet, zone string
	var share, window int
	kinds := make([]string, len(parley.AlertKinds))
	for i, k := range parley.AlertKinds {
		kinds[i] = string(k)
	}
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create an alert rule",
		Long: `Create an alert rule. It notifies the address of --url with a signed request, or the number of --to with a message through
the channel of --via. A cause is notified once, and once more when it is resolved. In quiet hours nothing is sent; what is
still wrong when they end is sent then. With --url the secret that signs the requests is printed; it is shown only now.`,
		Example: `  parley alert create --kind channel_logged_out --url https://ops.example.com/alerts
  parley alert create --kind failing_sends --share 30 --via toko --to +6281234567890 --quiet 22:00-07:00 --zone Asia/Jakarta`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			body := texts("kind", kind, "name", name, "channel", channel, "url", address, "via", via)
			if to != "" {
				number, err := digits(to)
				if err != nil {
					return err
				}
				body["contact_id"] = string(parley.ContactOf(number))
			}
			if quiet != "" {
				from, until, ok := strings.Cut(quiet, "-")
				if !ok {
					return fail(exitUsage, "--quiet must be two times of day, such as 22:00-07:00")
				}
				body["quiet"] = map[string]string{"from": from, "to": until, "zone": zone}
			}
			if kind == string(parley.AlertFailingSends) {
				body["share"], body["window_minutes"] = share, window
			}
			return c.manage(cmd, func(ctx context.Context, api *client.Client) error {
				r, err := api.Post(ctx, client.Path("alerts"), body, nil)
				return printData(c, r, asUsage(err), func(r *alertRule) {
					fmt.Fprintln(c.out, r.ID)
					if r.Secret != "" {
						fmt.Fprintln(c.out, r.Secret)
						c.hint("the second line is the secret that signs its requests; it is shown only now")
					}
				})
			})
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "", "what to watch: "+strings.Join(kinds, ", "))
	cmd.Flags().StringVar(&name, "name", "", "a name, for notices")
	cmd.Flags().StringVar(&channel, "channel", "", "only this channel, by its code")
	cmd.Flags().StringVar(&address, "url", "", "the address to notify")
	cmd.Flags().StringVar(&via, "via", "", "the channel that sends messages, by its code")
	cmd.Flags().StringVar(&to, "to", "", "the number that gets the messages")
	cmd.Flags().IntVar(&share, "share", 20, "of failing_sends: from this share on, in percent")
	cmd.Flags().IntVar(&window, "window", 15, "of failing_sends: over this many minutes")
	cmd.Flags().StringVar(&quiet, "quiet", "", "when nothing is sent, such as 22:00-07:00")
	cmd.Flags().StringVar(&zone, "zone", "UTC", "the time zone of --quiet, such as Asia/Jakarta")
	return cmd
}

func (c *cli) alertDelete() *cobra.Command {
	return &cobra.Command{
		Use:   "delete ID",
		Short: "Delete an alert rule and its alerts",
		Example: `  parley alert delete alr_2f0c6a9be1d84c53a7f0
  parley alert delete alr_2f0c6a9be1d84c53a7f0 --json`,
		RunE: c.onResource("alert", func(ctx context.Context, api *client.Client, id string) error {
			if _, err := api.Call(ctx, http.MethodDelete, client.Path("alerts", id), nil, nil, nil); err != nil {
				return err
			}
			return c.done("deleted alert %s", id)
		}),
	}
}

func (c *cli) alertTest() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test ID",
		Short: "Send a test notice now",
		Long:  "Send a test notice now, also in quiet hours. The server must be running. The exit code says whether it was accepted.",
		Example: `  parley alert test alr_2f0c6a9be1d84c53a7f0
  parley alert test alr_2f0c6a9be1d84c53a7f0 --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.onServer(cmd, func(ctx context.Context, api *client.Client) error {
				r, err := api.Post(ctx, client.Path("alerts", args[0], "test"), nil, nil)
				if err != nil {
					return explainNotFound(err, "alert", args[0])
				}
				if !r.Success {
					return fail(exitNegative, "%s", r.Message)
				}
				return c.done("the notice was accepted")
			})
		},
	}
	settingFlags(cmd.Flags(), keyURL, keyAdminToken)
	return cmd
}
