package main

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/client"
)

func (c *cli) template() *cobra.Command {
	var channel string
	on := func(cmd *cobra.Command, do func(context.Context, *client.Client) error) error {
		api, err := c.onChannel(cmd.Context(), channel)
		if err != nil {
			return err
		}
		return c.explain(cmd.Context(), api, do(cmd.Context(), api))
	}
	const path = "/api/templates"
	printed := rows("name,language,status,category,text", func(t *parley.TemplateInfo) []any {
		status := t.Status
		if t.Reason != "" {
			status += " (" + t.Reason + ")"
		}
		return []any{t.Name, t.Language, status, t.Category, t.Body}
	})
	group := c.resource(resource{
		name: "template", short: "Manage the message templates of a channel", on: on,
		example: `  parley template list --channel toko
  parley template create order_ready --language id --body 'Halo {{1}}, pesanan Anda siap.' --channel toko`,
		verbs: []verb{{
			use: "list", short: "List the templates with their review status",
			example: `  parley template list
  parley template list --channel toko --json`,
			call: "GET " + path, none: "The channel has no templates. Create one with: parley template create NAME", print: printed,
		}, {
			use: "create NAME", short: "Create a template",
			long: `Create a template. On cloud Meta reviews it before it can be sent, which takes minutes to a day. On the sandbox it can be sent at
once, or has the status that you give it.`,
			example: `  parley template create order_ready --language id --body 'Halo {{1}}, pesanan Anda siap.' --example Budi
  parley template create promo --language en --category marketing --body 'Ten percent off!' --channel toko`,
			flags: []flag{
				textFlag("language", "the language of the text, for example id or en_US"),
				textFlag("body", "the text, or - for stdin; {{1}} and {{name}} are its parameters"),
				textFlag("header", "a line above the text"),
				textFlag("footer", "a line below the text"),
				textFlag("category", "utility (default) or marketing"),
				listFlag("example", "what a parameter may be, for the review; repeat it for each"),
				textFlag("status", "on the sandbox: pending, approved, rejected, paused or disabled"),
			},
			arg: "name", call: "POST " + path, hint: "created",
			print: one(func(_ *cli, t *parley.TemplateInfo) string {
				return pairs(withoutEmpty([]string{"name", t.Name, "language", t.Language, "category", t.Category, "status", t.Status,
					"header", t.Header, "text", t.Body, "footer", t.Footer})...)
			}),
			check: func(f fields) (err error) {
				if body := f.text("body"); body != "" {
					if f["body"], err = c.readText(body); err != nil {
						return err
					}
				}
				for _, name := range []string{"category", "status"} {
					if word := f.text(name); word != "" {
						f[name] = strings.ToUpper(word)
					}
				}
				if examples := f.pop("example"); examples != nil {
					f["examples"] = examples
				}
				return nil
			},
		}, {
			use: "delete NAME", short: "Delete a template in all its languages",
			example: `  parley template delete order_ready
  parley template delete order_ready --channel toko --json`,
			call: "DELETE " + path + "/{name}", says: true,
			run: func(ctx context.Context, t *task) error {
				r, err := t.api.Call(ctx, http.MethodDelete, path+"/"+url.PathEscape(t.args[0]), nil, nil, nil)
				return t.finish(r, err)
			},
		}},
	})
	group.PersistentFlags().StringVar(&channel, "channel", "", "the channel, by its code (default: the token's channel)")
	settingFlags(group.PersistentFlags(), keyURL, keyToken)
	return group
}
