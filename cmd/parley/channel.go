package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/app"
)

func (c *cli) channel() *cobra.Command {
	return newGroup("channel", "Make channels and change them", `  parley channel create toko --name 'Toko Ayu'
  parley channel list`,
		c.channelCreate(), c.channelList(), c.channelShow(),
		c.channelSwitch("start", true), c.channelSwitch("stop", false),
		c.channelPair(), c.channelGoLive(), c.channelCall("logout", "End a channel's pairing with its account"),
		c.channelSet(), c.channelAllow(), c.channelSecret(), c.channelDelete())
}

// channelView is a channel as JSON.
type channelView struct {
	Code      parley.ChannelCode     `json:"code"`
	Name      string                 `json:"name"`
	Network   parley.NetworkName     `json:"network"`
	Number    string                 `json:"number"`
	Enabled   bool                   `json:"enabled"`
	Status    parley.ChannelStatus   `json:"status"`
	Reason    string                 `json:"reason"`
	Since     *time.Time             `json:"since"`
	CreatedAt *time.Time             `json:"created_at"`
	Settings  parley.ChannelSettings `json:"settings"`
}

func viewChannel(ch parley.Channel) channelView {
	return channelView{
		Code: ch.Code, Name: ch.Name, Network: ch.Network, Number: ch.Number, Enabled: ch.Enabled,
		Status: ch.State.Status, Reason: ch.State.Reason, Since: orNil(ch.State.Since),
		CreatedAt: orNil(ch.CreatedAt), Settings: ch.Settings,
	}
}

func (c *cli) channelCreate() *cobra.Command {
	var name, network string
	cmd := &cobra.Command{
		Use:   "create CODE",
		Short: "Create a channel",
		Long: `Create a channel. A running server starts it within a second. Without --network it is on the sandbox, whose
phones are simulated.`,
		Example: `  parley channel create toko --network whatsapp --name 'Toko Ayu'
  parley channel create try`,
		Args: takes("CODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			code, err := parley.ParseChannelCode(args[0])
			if err != nil {
				return fail(exitUsage, "%w", err)
			}
			if n := parley.NetworkName(network); n != parley.Sandbox && n != parley.WhatsApp {
				return fail(exitUsage, "there is no network %q. This program has: %s, %s", network, parley.Sandbox, parley.WhatsApp)
			}
			if err := checkName(name); err != nil {
				return err
			}
			return c.withData(cmd.Context(), true, func(data *app.Data) error {
				ch := parley.Channel{Code: code, Name: name, Network: parley.NetworkName(network)}
				if err := app.AddChannel(cmd.Context(), data.Store, ch); err != nil {
					return err
				}
				c.hint("Created channel %s. Create a token for it with: parley token create --kind channel --channel %s", code, code)
				switch {
				case ch.Network == parley.WhatsApp:
					c.hint("Link it to a phone with: parley channel pair %s", code)
				case !cmd.Flags().Changed("network") && !c.quiet: // programs hear it too: nothing else would show the mistake
					fmt.Fprintf(c.err, "%s is on the sandbox: its phones are simulated. For real phones create it with --network whatsapp\n", code)
				}
				return c.printChannel(cmd.Context(), data, code)
			})
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "what people see (default: the code)")
	cmd.Flags().StringVar(&network, "network", string(parley.Sandbox), "the chat network: sandbox or whatsapp")
	return cmd
}

// maxName is the longest name of a channel, as in the management API.
const maxName = 60

func checkName(name string) error {
	if n := utf8.RuneCountInString(name); n > maxName || !utf8.ValidString(name) {
		return fail(exitUsage, "--name must be at most %d characters, not %d", maxName, n)
	}
	return nil
}

func (c *cli) channelList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the channels",
		Example: `  parley channel list
  parley channel list --json`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withData(cmd.Context(), false, func(data *app.Data) error {
				channels, err := data.Store.Channels(cmd.Context())
				if err != nil {
					return err
				}
				views := make([]channelView, len(channels))
				rows := make([][]any, len(channels))
				for i, ch := range channels {
					ch = c.asItIs(ch)
					views[i] = viewChannel(ch)
					rows[i] = []any{ch.Code, ch.Name, ch.Network, ch.State.Status, ch.Number, when(ch.State.Since)}
				}
				if c.json {
					return c.printJSON(views)
				}
				c.printTable([]any{"code", "name", "network", "status", "number", "since"}, rows)
				return nil
			})
		},
	}
}

func (c *cli) channelShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show CODE",
		Short: "Show all that is known of a channel",
		Example: `  parley channel show demo
  parley channel show demo --json`,
		Args: takes("CODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withData(cmd.Context(), false, func(data *app.Data) error {
				return c.showChannel(cmd.Context(), data, parley.ChannelCode(args[0]))
			})
		},
	}
}

// printChannel shows a channel as it is stored.
func (c *cli) printChannel(ctx context.Context, data *app.Data, code parley.ChannelCode) error {
	ch, err := data.Store.Channel(ctx, code)
	if errors.Is(err, parley.ErrNotFound) {
		return noChannel(code)
	}
	if err != nil {
		return err
	}
	ch = c.asItIs(ch)
	if c.json {
		return c.printJSON(viewChannel(ch))
	}
	c.printStored(ch)
	return nil
}

// asItIs returns a channel as it is now. What is stored of its connection counts only while a server runs.
func (c *cli) asItIs(ch parley.Channel) parley.Channel {
	if _, running := c.dir().Running(); running {
		return ch
	}
	return ch.Offline()
}

// printStored shows what is stored of a channel, line by line.
func (c *cli) printStored(ch parley.Channel) {
	retention := "forever"
	if r := ch.Settings.Retention; r != nil {
		retention = r.String()
	}
	allowed := "everybody"
	if n := len(ch.Settings.AllowOnly); n > 0 {
		allowed = ""
		for i, id := range ch.Settings.AllowOnly {
			if i > 0 {
				allowed += ", "
			}
			allowed += app.ShowNumber(id.Number())
		}
	}
	for _, line := range [][2]string{
		{"code", string(ch.Code)}, {"name", ch.Name}, {"network", string(ch.Network)}, {"number", ch.Number},
		{"enabled", fmt.Sprint(ch.Enabled)}, {"status", string(ch.State.Status)}, {"reason", ch.State.Reason},
		{"since", when(ch.State.Since)}, {"created", when(ch.CreatedAt)},
		{"pace", showPace(ch)}, {"ttl", parley.Duration(ch.Settings.MessageTTL()).String()},
		{"retention", retention}, {"writes to", allowed},
	} {
		c.printLine(line[0], line[1])
	}
}

func (c *cli) printLine(name, text string) { fmt.Fprintf(c.out, "%-10s %s\n", name, text) }

// showPace writes how long a channel waits between two sends.
func showPace(ch parley.Channel) string {
	least, most := ch.Pace()
	if least == most {
		return least.String()
	}
	return fmt.Sprintf("%s to %s, random", least, most)
}

func noChannel(code parley.ChannelCode) error {
	return fail(exitNotSo, "there is no channel %s. See: parley channel list", code)
}

// channelSwitch makes the commands that say whether a channel is to run.
func (c *cli) channelSwitch(verb string, enabled bool) *cobra.Command {
	short := map[bool]string{true: "Have a channel run", false: "Have a channel rest; what waits to be sent waits on"}[enabled]
	return &cobra.Command{
		Use:     verb + " CODE",
		Short:   short,
		Example: fmt.Sprintf("  parley channel %s demo\n  parley channel %s demo --data /var/lib/parley", verb, verb),
		Args:    takes("CODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withData(cmd.Context(), false, func(data *app.Data) error {
				code := parley.ChannelCode(args[0])
				err := saveChannel(cmd.Context(), data, code, func(ch *parley.Channel) error {
					if ch.Settings.ArchiveOf != "" && enabled {
						return fail(exitRefused, "%s keeps what was said in the sandbox before channel %s went live. It can be read, and never runs", code, ch.Settings.ArchiveOf)
					}
					ch.Enabled = enabled
					return nil
				})
				if err != nil {
					return err
				}
				if running, ok := c.dir().Running(); ok && running.URL != "" {
					awaitChannel(cmd.Context(), data, code, func(ch parley.Channel) bool { return (ch.State.Status != parley.Stopped) == enabled })
				}
				return c.printChannel(cmd.Context(), data, code)
			})
		},
	}
}

// followed is how long a running server gets to do what was saved; it looks once a second.
const followed = 3 * time.Second

// awaitChannel waits until a channel is as it was told to be, or for as long as a server may take.
func awaitChannel(ctx context.Context, data *app.Data, code parley.ChannelCode, is func(parley.Channel) bool) {
	ctx, cancel := context.WithTimeout(ctx, followed)
	defer cancel()
	for {
		if ch, err := data.Store.Channel(ctx, code); err != nil || is(ch) {
			return // the caller reads it, too
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(healthEvery):
		}
	}
}

// changeChannel changes what is stored of a channel. A running server follows within a second.
func (c *cli) changeChannel(ctx context.Context, code string, change func(*parley.Channel) error) error {
	return c.withData(ctx, false, func(data *app.Data) error {
		if err := saveChannel(ctx, data, parley.ChannelCode(code), change); err != nil {
			return err
		}
		c.hint("saved; a running server follows within a second")
		return c.printChannel(ctx, data, parley.ChannelCode(code))
	})
}

func saveChannel(ctx context.Context, data *app.Data, code parley.ChannelCode, change func(*parley.Channel) error) error {
	err := data.Store.Tx(ctx, func(tx parley.Tx) error {
		ch, err := tx.Channel(ctx, code)
		if err != nil {
			return err
		}
		if err := change(&ch); err != nil {
			return err
		}
		return tx.UpdateChannel(ctx, ch)
	})
	if errors.Is(err, parley.ErrNotFound) {
		return noChannel(code)
	}
	return err
}

// channelCall makes the commands that need the channel's live connection and so the running server.
func (c *cli) channelCall(verb, short string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     verb + " CODE",
		Short:   short,
		Long:    short + ". The server must be running.",
		Example: fmt.Sprintf("  parley channel %s demo\n  parley channel %s demo --json", verb, verb),
		Args:    takes("CODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, done, err := c.adminClient(cmd.Context(), "parley channel "+verb)
			if err != nil {
				return err
			}
			defer done()
			var ch struct {
				Status parley.ChannelStatus `json:"status"`
				Reason string               `json:"reason"`
			}
			a, err := cl.call(cmd.Context(), http.MethodPost, "/api/manage/channels/"+args[0]+"/"+verb, nil, nil, &ch)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(a.Data)
			}
			fmt.Fprintln(c.out, ch.Status)
			return nil
		},
	}
	settingFlags(cmd.Flags(), keyURL, keyAdminToken)
	return cmd
}

// adminClient makes a client for the management API. Whoever can write to the data directory of the
// server is its administrator: without a token one is made for the purpose, which done revokes.
func (c *cli) adminClient(ctx context.Context, purpose string) (cl *client, done func(), err error) {
	return c.adminClientFor(ctx, purpose, time.Minute)
}

// adminClientFor is adminClient for what may take longer than a minute.
func (c *cli) adminClientFor(ctx context.Context, purpose string, life time.Duration) (cl *client, done func(), err error) {
	cl, err = c.client(keyAdminToken, app.EnvAdminToken, "")
	return c.orTemporary(ctx, cl, err, parley.Token{Name: purpose, Kind: parley.AdminToken, ExpiresAt: time.Now().Add(life)})
}

// sendingClient makes a client that acts on a channel; without a code, on the token's own. Call done at the end.
func (c *cli) sendingClient(ctx context.Context, purpose, code string) (cl *client, done func(), err error) {
	token := app.EnvToken
	if code != "" && code != app.DemoChannel {
		token = app.EnvGlobalToken
	}
	cl, err = c.client(keyToken, token, code)
	return c.orTemporary(ctx, cl, err, parley.Token{Name: purpose, Kind: parley.GlobalToken, ExpiresAt: time.Now().Add(time.Minute)})
}

// mustBeOne asks for the code of a channel where there are several to choose from.
func mustBeOne(ctx context.Context, data *app.Data) error {
	channels, err := data.Store.Channels(ctx)
	if err != nil || len(channels) == 1 {
		return err
	}
	return fail(exitUsage, "there are %s. Name one: give its code, or --channel CODE. See: parley channel list", count(len(channels), "channel"))
}

// orTemporary returns the client or, if it has no token and the data directory is accessible, one with a temporary
// token that done revokes.
func (c *cli) orTemporary(ctx context.Context, cl *client, err error, t parley.Token) (*client, func(), error) {
	if exitCodeOf(err) != exitNotAllowed || c.set.text(keyURL) != "" || !c.dir().Exists() {
		return cl, func() {}, err
	}
	t.ID = parley.NewTokenID()
	err = c.withData(ctx, false, func(data *app.Data) error {
		if t.Kind == parley.GlobalToken && cl.channel == "" {
			if err := mustBeOne(ctx, data); err != nil {
				return err
			}
		}
		cl.token, err = data.Tokens.Issue(ctx, t)
		return err
	})
	return cl, func() {
		ctx := context.WithoutCancel(ctx)
		if err := c.withData(ctx, false, func(data *app.Data) error { return data.Tokens.Revoke(ctx, t.ID) }); err != nil {
			c.hint("token %s was not revoked. It expires at %s: %v", t.ID, clock(t.ExpiresAt), err)
		}
	}, err
}

func (c *cli) channelDelete() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete CODE",
		Short: "Remove a channel with its messages and its tokens",
		Example: `  parley channel delete toko
  parley channel delete toko --yes`,
		Args: takes("CODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withData(cmd.Context(), false, func(data *app.Data) error {
				code := parley.ChannelCode(args[0])
				if _, err := data.Store.Channel(cmd.Context(), code); errors.Is(err, parley.ErrNotFound) {
					return noChannel(code)
				} else if err != nil {
					return err
				}
				if err := c.confirm(cmd.Context(), yes, fmt.Sprintf("This removes channel %s with all its messages and tokens for good", code), args[0]); err != nil {
					return err
				}
				if err := data.DeleteChannel(cmd.Context(), code); err != nil {
					return err
				}
				return c.done("channel %s is gone", code)
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}
