package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/client"
)

func (c *cli) sandbox() *cobra.Command {
	var channel string
	connect := func(ctx context.Context) (*client.Client, error) { return c.onChannel(ctx, channel) }
	cmd := newGroup("sandbox", "Act as the simulated phones, and list what they received",
		`  parley sandbox wait --to 6281234567890 --contains kode --print code
  parley sandbox send --as 6281234567890 'makasih!'`,
		c.sandboxCursor(connect), c.sandboxPhones(connect), c.sandboxMessages(connect), c.sandboxWait(connect),
		c.sandboxSend(connect), c.sandboxTap(connect), c.sandboxFault(connect), c.sandboxClock(connect), c.sandboxReset(connect))
	cmd.PersistentFlags().StringVar(&channel, "channel", "", "the channel to act on (default: the token's channel)")
	clientFlags(cmd)
	return cmd
}

// connect makes the client of a sandbox command, once its flags are parsed.
type connect func(context.Context) (*client.Client, error)

// onPhones calls do with the client of a sandbox command.
func (c *cli) onPhones(cmd *cobra.Command, connect connect, do func(context.Context, *client.Client) error) error {
	cl, err := connect(cmd.Context())
	if err != nil {
		return err
	}
	return c.explain(cmd.Context(), cl, do(cmd.Context(), cl))
}

func (c *cli) sandboxCursor(connect connect) *cobra.Command {
	return &cobra.Command{
		Use:   "cursor",
		Short: "Print the current position in the message log, for use with --after",
		Example: `  cursor=$(parley sandbox cursor)
  parley sandbox wait --to 6281234567890 --after "$(parley sandbox cursor)"`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.onPhones(cmd, connect, func(ctx context.Context, cl *client.Client) error {
				r, err := cl.Get(ctx, "/api/sandbox/cursor", nil, nil)
				return printData(c, r, err, func(at *position) { fmt.Fprintln(c.out, at.Cursor) })
			})
		},
	}
}

type position struct {
	Cursor string `json:"cursor"`
}

type phone struct {
	Number    string `json:"number"`
	Name      string `json:"name"`
	Online    bool   `json:"online"`
	Reads     string `json:"reads"`
	Blocks    bool   `json:"blocks"`
	OnNetwork bool   `json:"on_network"`
}

func (c *cli) sandboxPhones(connect connect) *cobra.Command {
	var add bool
	var number, name string
	cmd := &cobra.Command{
		Use:   "phones",
		Short: "List the phones, or add one",
		Example: `  parley sandbox phones
  parley sandbox phones --add --name Budi`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !add && (number != "" || name != "") {
				return fail(exitUsage, "--number and --name need --add")
			}
			return c.onPhones(cmd, connect, func(ctx context.Context, cl *client.Client) error {
				if add {
					return c.addPhone(ctx, cl, number, name)
				}
				r, err := cl.Get(ctx, "/api/sandbox/phones", nil, nil)
				return printRows(c, r, err, []any{"number", "name", "online", "reads", "blocks us", "on network"},
					func(p *phone) []any { return []any{p.Number, p.Name, p.Online, p.Reads, p.Blocks, p.OnNetwork} })
			})
		},
	}
	cmd.Flags().BoolVar(&add, "add", false, "add a phone and print its number")
	cmd.Flags().StringVar(&number, "number", "", "its number (default: a free one)")
	cmd.Flags().StringVar(&name, "name", "", "its name")
	return cmd
}

func (c *cli) addPhone(ctx context.Context, cl *client.Client, number, name string) error {
	number, err := optionalDigits(number)
	if err != nil {
		return err
	}
	r, err := cl.Post(ctx, "/api/sandbox/phones", texts("number", number, "name", name), nil)
	return printData(c, r, err, func(p *phone) { fmt.Fprintln(c.out, p.Number) })
}

func (c *cli) sandboxSend(connect connect) *cobra.Command {
	var as, replyTo string
	cmd := &cobra.Command{
		Use:   "send TEXT",
		Short: "Send a text to the channel as a phone",
		Example: `  parley sandbox send --as 6281234567890 'makasih!'
  parley sandbox send --as +6281234567890 'ya' --reply-to 3EB0A1C4F29D77E01B5C42`,
		RunE: func(cmd *cobra.Command, args []string) error {
			body := texts("type", "text", "reply_to", replyTo)
			body["message"] = args[0]
			return c.actAs(cmd, connect, as, "send", body)
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "the number of the phone that sends")
	cmd.Flags().StringVar(&replyTo, "reply-to", "", "the bare id of the message that this one replies to")
	return cmd
}

// actAs acts as a phone and prints the id of the resulting message.
func (c *cli) actAs(cmd *cobra.Command, connect connect, as, verb string, body any) error {
	if as == "" {
		return fail(exitUsage, "--as is missing: the number of the phone")
	}
	number, err := digits(as)
	if err != nil {
		return err
	}
	return c.onPhones(cmd, connect, func(ctx context.Context, cl *client.Client) error {
		r, err := cl.Post(ctx, "/api/sandbox/phones/"+number+"/"+verb, body, nil)
		return printData(c, r, err, func(m *messageID) { fmt.Fprintln(c.out, m.MessageID) })
	})
}

// messageID is the part of several responses that names a message.
type messageID struct {
	MessageID string `json:"message_id"`
}

func (c *cli) sandboxFault(connect connect) *cobra.Command {
	var times int
	var to, kind, reason string
	cmd := &cobra.Command{
		Use:   "fault refuse|late|twice|drop_socket|log_out|reachout_limit",
		Short: "Make the next sends fail",
		Example: `  parley sandbox fault refuse --to 6281234567890 --reason blocked
  parley sandbox fault twice --times 3`,
		Args:      wantArgs("FAULT"),
		ValidArgs: []string{"refuse", "late", "twice", "drop_socket", "log_out", "reachout_limit"},
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := optionalDigits(to)
			if err != nil {
				return err
			}
			body := texts("to", number, "type", kind, "reason", reason)
			body["fault"], body["times"] = args[0], times
			return c.callSandbox(cmd, connect, http.MethodPost, "/api/sandbox/faults", body)
		},
	}
	cmd.Flags().IntVar(&times, "times", 1, "number of sends")
	cmd.Flags().StringVar(&to, "to", "", "only sends to this number")
	cmd.Flags().StringVar(&kind, "type", "", "only messages of this type")
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, for refuse")
	return cmd
}

func (c *cli) sandboxClock(connect connect) *cobra.Command {
	return &cobra.Command{
		Use:   "clock TIME",
		Short: "Advance the channel's clock, to test expiry without waiting",
		Example: `  parley sandbox clock 5m
  parley sandbox clock 1d`,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := parley.ParseDuration(args[0])
			if err != nil || time.Duration(d) < time.Second {
				return fail(exitUsage, "%q is not a length of time such as 30s, 5m or 1d", args[0])
			}
			return c.callSandbox(cmd, connect, http.MethodPost, "/api/sandbox/clock",
				map[string]any{"advance": int64(time.Duration(d) / time.Second)})
		},
	}
}

func (c *cli) sandboxReset(connect connect) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Remove the phones, their messages, the faults, and the channel's own chats and codes",
		Long: `Reset a sandbox channel: remove its simulated phones with their messages and the faults, and the channel's own
chat history, one-time codes and login links. Its tokens, webhooks and settings stay. The two demo phones are
created again.`,
		Example: `  parley sandbox reset
  parley sandbox reset --yes`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.confirm(cmd.Context(), yes, "This removes the phones and their messages, and the chat history and codes of the channel",
				"reset"); err != nil {
				return err
			}
			return c.callSandbox(cmd, connect, http.MethodDelete, "/api/sandbox", nil)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// callSandbox makes a request whose response has no data to print.
func (c *cli) callSandbox(cmd *cobra.Command, connect connect, method, path string, body any) error {
	return c.onPhones(cmd, connect, func(ctx context.Context, cl *client.Client) error {
		r, err := cl.Call(ctx, method, path, nil, body, nil)
		if err != nil {
			return err
		}
		if c.json {
			return c.printJSON(r.Data)
		}
		c.hint("%s", r.Message)
		return nil
	})
}

func (c *cli) sandboxTap(connect connect) *cobra.Command {
	var as string
	cmd := &cobra.Command{
		Use:   "tap LINK|ID",
		Short: "Tap a chat link: send the text that it carries",
		Long: `Tap a chat link: send the text that it carries. Give a login link by its address or, while it is open, by its
id. The phone is the one of the link's contact, unless --as selects another.`,
		Example: `  parley sandbox tap otl_0a1b2c3d4e5f60718293a4b5
  parley sandbox tap otl_0a1b2c3d4e5f60718293a4b5 --as +6289876543210`,
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "link"
			if isLinkID(args[0]) {
				what = "id"
			}
			if as == "" {
				var err error
				if as, err = c.phoneOfLink(cmd, connect, args[0]); err != nil {
					return err
				}
			}
			return c.actAs(cmd, connect, as, "open", map[string]string{what: args[0]})
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "the number of the phone that taps it (default: that of the link's contact)")
	return cmd
}

func isLinkID(s string) bool { return strings.HasPrefix(s, "otl_") }

// phoneOfLink finds the phone of a login link: it is in the address of a phone's page; for an id it asks the server.
func (c *cli) phoneOfLink(cmd *cobra.Command, connect connect, link string) (string, error) {
	if !isLinkID(link) {
		u, err := url.Parse(link)
		if err != nil {
			return "", fail(exitUsage, "%q is neither a link nor the id of a link", link)
		}
		number, found := strings.CutPrefix(u.Path, "/phone/")
		if !found {
			return "", fail(exitUsage, "--as is missing: the link does not name a phone")
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
