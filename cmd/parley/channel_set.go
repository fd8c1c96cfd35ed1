package main

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"parley"
)

func (c *cli) channelSet() *cobra.Command {
	var name, pace, ttl, retention string
	cmd := &cobra.Command{
		Use:   "set CODE",
		Short: "Change a channel's name and settings",
		Example: `  parley channel set toko --name 'Toko Ayu'
  parley channel set toko --retention 30d --pace 2s`,
		Args: takes("CODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			flags := cmd.Flags()
			if !flags.Changed("name") && !flags.Changed("pace") && !flags.Changed("ttl") && !flags.Changed("retention") {
				return fail(exitUsage, "nothing to change. Give --name, --pace, --ttl or --retention")
			}
			return c.changeChannel(cmd.Context(), args[0], func(ch *parley.Channel) error {
				if flags.Changed("name") {
					if name == "" {
						return fail(exitUsage, "--name must not be empty")
					}
					if err := checkName(name); err != nil {
						return err
					}
					ch.Name = name
				}
				if flags.Changed("pace") {
					if err := setPace(ch, pace); err != nil {
						return err
					}
				}
				if flags.Changed("ttl") {
					d, err := settingSpan("ttl", ttl)
					if err != nil {
						return err
					}
					ch.Settings.TTL = d
				}
				if !flags.Changed("retention") {
					return nil
				}
				if retention == "forever" {
					ch.Settings.Retention = nil
					return nil
				}
				d, err := settingSpan("retention", retention)
				ch.Settings.Retention = &d
				return err
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "what people see")
	cmd.Flags().StringVar(&pace, "pace", "", "least time between two sends, for example 2s; 0: none; default: as careful as its network asks")
	cmd.Flags().StringVar(&ttl, "ttl", "", "how long a message may wait to be sent, for example 24h")
	cmd.Flags().StringVar(&retention, "retention", "", "how long message text is kept, for example 30d; 0: not at all; forever: without end")
	return cmd
}

// setPace sets the pace of a channel, or takes its own away.
func setPace(ch *parley.Channel, text string) error {
	if text == "default" {
		ch.Settings.Pace = nil
		return nil
	}
	d, err := settingSpan("pace", text)
	ch.Settings.Pace = &d
	return err
}

func settingSpan(flag, text string) (parley.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	d, err := span(text)
	if err != nil || d < 0 || d > 100*365*24*time.Hour {
		return 0, fail(exitUsage, "--%s: %q is not a length of time such as 2s, 24h or 30d", flag, text)
	}
	return parley.Duration(d), nil
}

func (c *cli) channelAllow() *cobra.Command {
	var remove, everybody bool
	cmd := &cobra.Command{
		Use:   "allow CODE NUMBER…",
		Short: "Say whom a channel may write to",
		Long: `Say whom a channel may write to. The first number that is allowed closes the channel to all others;
--everybody opens it again.`,
		Example: `  parley channel allow toko +6281298765432
  parley channel allow toko --everybody`,
		Args: func(cmd *cobra.Command, args []string) error {
			if everybody && len(args) > 1 {
				return fail(exitUsage, "give numbers, or --everybody: not both")
			}
			if everybody {
				return takes("CODE")(cmd, args)
			}
			return takes("CODE", "NUMBER…")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var contacts []parley.ContactID
			for _, number := range args[1:] {
				n, err := digits(number)
				if err != nil {
					return err
				}
				contacts = append(contacts, parley.ContactOf(n))
			}
			return c.changeChannel(cmd.Context(), args[0], func(ch *parley.Channel) error {
				listed := func(id parley.ContactID) bool { return slices.Contains(contacts, id) }
				kept := slices.DeleteFunc(slices.Clone(ch.Settings.AllowOnly), listed)
				switch {
				case everybody:
					kept = nil
				case !remove:
					kept = append(kept, contacts...)
				case len(kept) == 0 && len(ch.Settings.AllowOnly) > 0:
					return fail(exitUsage, "that was the last allowed number, and an empty list would allow everybody. If you mean that, say --everybody")
				}
				ch.Settings.AllowOnly = kept
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&remove, "remove", false, "take the numbers off the list")
	cmd.Flags().BoolVar(&everybody, "everybody", false, "let it write to everybody")
	cmd.MarkFlagsMutuallyExclusive("remove", "everybody")
	return cmd
}
