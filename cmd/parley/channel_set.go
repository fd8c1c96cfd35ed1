package main

import (
	"context"
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"parley/internal/client"
)

func (c *cli) channelSet() *cobra.Command {
	var name, pace, ttl, retention string
	var add, remove []string
	cmd := &cobra.Command{
		Use:   "set CODE",
		Short: "Change a channel's name, labels and settings",
		Example: `  parley channel set toko --name 'Toko Ayu'
  parley channel set toko --retention 30d --pace 2s --add-label jakarta --remove-label trial`,
		RunE: func(cmd *cobra.Command, args []string) error {
			changed := cmd.Flags().Changed
			body := map[string]any{}
			if changed("name") {
				body["name"] = name
			}
			if len(add) > 0 {
				body["add_labels"] = add
			}
			if len(remove) > 0 {
				body["remove_labels"] = remove
			}
			if !changed("pace") && !changed("ttl") && !changed("retention") {
				if len(body) == 0 {
					return fail(exitUsage, "nothing to change. Give --name, --add-label, --remove-label, --pace, --ttl or --retention")
				}
				return c.changeChannel(cmd, args[0], body, nil)
			}
			return c.changeChannel(cmd, args[0], body, func(settings map[string]any) error {
				for flag, value := range map[string]struct{ text, usual string }{
					"pace": {pace, "default"}, "ttl": {ttl, "0"}, "retention": {retention, "forever"},
				} {
					switch {
					case !changed(flag):
					case value.text == value.usual, value.text == "":
						delete(settings, flag)
					default:
						settings[flag] = value.text
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "display name")
	cmd.Flags().StringSliceVar(&add, "add-label", nil, "a label to add; may be repeated")
	cmd.Flags().StringSliceVar(&remove, "remove-label", nil, "a label to remove; may be repeated")
	cmd.Flags().StringVar(&pace, "pace", "", "minimum time between two sends, for example 2s; 0: none; default: the default of its network")
	cmd.Flags().StringVar(&ttl, "ttl", "", "how long a message may wait to be sent, for example 24h")
	cmd.Flags().StringVar(&retention, "retention", "", "how long message text is stored, for example 30d; 0: not at all; forever: no limit")
	return cmd
}

// changeChannel sends a body to a channel. The API replaces settings as a whole, so change edits the present ones; it may
// be nil.
func (c *cli) changeChannel(cmd *cobra.Command, code string, body map[string]any, change func(settings map[string]any) error) error {
	path := client.Path("channels", code)
	return c.manage(cmd, func(ctx context.Context, api *client.Client) error {
		if change != nil {
			var now struct {
				Settings map[string]any `json:"settings"`
			}
			if _, err := api.Get(ctx, path, nil, &now); err != nil {
				return explainNotFound(err, "channel", code)
			}
			if err := change(now.Settings); err != nil {
				return err
			}
			body["settings"] = now.Settings
		}
		r, err := api.Call(ctx, http.MethodPatch, path, nil, body, nil)
		if err == nil {
			c.hint("saved")
		}
		return printData(c, r, explainNotFound(err, "channel", code), c.printChannel)
	})
}

func (c *cli) channelAllow() *cobra.Command {
	var remove, everybody bool
	cmd := &cobra.Command{
		Use:   "allow CODE NUMBER|GROUP…",
		Short: "Restrict the numbers that a channel may write to",
		Long: `Restrict the numbers and groups that a channel may write to. Once one is on the list, all others are rejected.
--everybody removes the list.`,
		Example: `  parley channel allow toko +6281298765432 120363020000000001@g.us
  parley channel allow toko --everybody`,
		Args: func(cmd *cobra.Command, args []string) error {
			if everybody && len(args) > 1 {
				return fail(exitUsage, "give numbers or --everybody, not both")
			}
			if everybody {
				return wantArgs("CODE")(cmd, args)
			}
			return wantArgs("CODE", "NUMBER…")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var contacts []any
			for _, number := range args[1:] {
				id, err := chatID(number)
				if err != nil {
					return err
				}
				contacts = append(contacts, string(id))
			}
			return c.changeChannel(cmd, args[0], map[string]any{}, func(settings map[string]any) error {
				allowed, _ := settings["allow_only"].([]any)
				list := slices.DeleteFunc(slices.Clone(allowed), func(id any) bool { return slices.Contains(contacts, id) })
				switch {
				case everybody:
					list = nil
				case !remove:
					list = append(list, contacts...)
				case len(list) == 0 && len(allowed) > 0:
					return fail(exitUsage, "this is the last allowed number, and an empty list would allow everybody. For that, pass --everybody")
				}
				settings["allow_only"] = append([]any{}, list...)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&remove, "remove", false, "remove the numbers from the list")
	cmd.Flags().BoolVar(&everybody, "everybody", false, "allow it to write to everybody")
	cmd.MarkFlagsMutuallyExclusive("remove", "everybody")
	return cmd
}
