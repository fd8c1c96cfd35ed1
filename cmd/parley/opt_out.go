package main

import (
	"context"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/client"
	"parley/internal/wire"
)

func (c *cli) optOut() *cobra.Command {
	var channel string
	on := func(cmd *cobra.Command, do func(context.Context, *client.Client) error) error {
		api, err := c.onChannel(cmd.Context(), channel)
		if err != nil {
			return err
		}
		return c.explain(cmd.Context(), api, do(cmd.Context(), api))
	}
	const path = "/api/contact/opt-outs"
	numbers := func(t *task) (contacts []parley.ContactID, err error) {
		for _, number := range t.args {
			id, err := chatID(number)
			if err == nil && id.IsGroup() {
				err = fail(exitUsage, "%s is a group, and only contacts opt out", number)
			}
			if err != nil {
				return nil, err
			}
			contacts = append(contacts, id)
		}
		return contacts, nil
	}
	group := c.resource(resource{
		name: "opt-out", short: "Manage the contacts that want no messages of a channel", on: on,
		example: `  parley opt-out list --channel toko
  parley opt-out add +6281298765432 --channel toko`,
		verbs: []verb{{
			use: "list", short: "List the contacts that want no messages, newest first", limit: 50,
			example: `  parley opt-out list
  parley opt-out list --channel toko --limit 1000 --json`,
			call: "GET " + path, none: "No contact has opted out.",
			print: rows("contact,name,since", func(o *struct {
				ContactID   parley.ContactID `json:"contact_id"`
				ContactName string           `json:"contact_name"`
				At          wire.Time        `json:"opted_out_at"`
			}) []any {
				return []any{contactName(o.ContactID), o.ContactName, when(o.At.Time)}
			}),
		}, {
			use: "add NUMBER…", short: "Write no more to contacts",
			long: "Write no more to contacts. Messages to them fail with opted_out, except for one-time codes and replies to login links.",
			example: `  parley opt-out add +6281298765432
  parley opt-out add +6281298765432 +6281298765433 --channel toko`,
			call: "POST " + path, says: true,
			run: func(ctx context.Context, t *task) (err error) {
				if t.fields["contact_ids"], err = numbers(t); err != nil {
					return err
				}
				return t.requestAndPrint(ctx)
			},
		}, {
			use: "remove NUMBER…", short: "Write to contacts again",
			example: `  parley opt-out remove +6281298765432
  parley opt-out remove +6281298765432 +6281298765433 --channel toko`,
			call: "DELETE " + path,
			run: func(ctx context.Context, t *task) error {
				contacts, err := numbers(t)
				for i := 0; err == nil && i < len(contacts); i++ {
					_, err = t.api.Call(ctx, "DELETE", path, fields{"contact_id": string(contacts[i])}.query(), nil, nil)
				}
				if err != nil {
					return err
				}
				return t.finish(&client.Response{Success: true}, nil)
			},
		}, {
			use: "export", short: "Export the contacts that want no messages as CSV or JSON lines",
			example: `  parley opt-out export --channel toko > opt-outs.csv
  parley opt-out export --channel toko --format jsonl -o opt-outs.jsonl`,
			flags: exportFlags(), call: "GET " + path + "/export", run: export,
		}},
	})
	group.PersistentFlags().StringVar(&channel, "channel", "", "the channel, by its code (default: the token's channel)")
	settingFlags(group.PersistentFlags(), keyURL, keyToken)
	return group
}
