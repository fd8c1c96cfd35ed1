package main

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/client"
	"parley/internal/wire"
)

func (c *cli) sandbox() *cobra.Command {
	var channel string
	group := c.resource(resource{
		name: "sandbox", short: "Act as the simulated phones, and list what they received",
		example: `  parley sandbox wait --to 6281234567890 --contains kode --print code
  parley sandbox send --as 6281234567890 'makasih!'`,
		on: func(cmd *cobra.Command, do func(context.Context, *client.Client) error) error {
			cl, err := c.onChannel(cmd.Context(), channel)
			if err != nil {
				return err
			}
			return c.explain(cmd.Context(), cl, do(cmd.Context(), cl))
		},
		verbs: append([]verb{{
			use: "cursor", short: "Print the current position in the message log, for use with --after",
			example: `  cursor=$(parley sandbox cursor)
  parley sandbox wait --to 6281234567890 --after "$(parley sandbox cursor)"`,
			call: "GET /api/sandbox/cursor", print: one(func(_ *cli, at *position) string { return at.Cursor }),
		}, {
			use: "phones", short: "List the phones, or add one",
			example: `  parley sandbox phones
  parley sandbox phones --add --name Budi`,
			flags: []flag{
				boolFlag("add", "add a phone and print its number"),
				textFlag("number", "its number (default: a free one)").by(readNumber),
				textFlag("name", "its name"),
			},
			call: "GET /api/sandbox/phones", none: "There are no phones. Add one with: parley sandbox phones --add",
			print: rows("number,name,online,reads,blocks us,on network", func(p *wire.Phone) []any {
				return []any{p.Number, p.Name, p.Online, p.Reads, p.Blocks, p.OnNetwork}
			}),
			run: func(ctx context.Context, t *task) error {
				switch add := t.fields.pop("add") != nil; {
				case add:
					t.call, t.print = "POST /api/sandbox/phones", one(func(_ *cli, p *wire.Phone) string { return p.Number })
				case len(t.fields) > 0:
					return fail(exitUsage, "--number and --name need --add")
				}
				return t.requestAndPrint(ctx)
			},
		}, {
			use: "send TEXT", short: "Send a text to the channel as a phone; - reads it from stdin",
			example: `  parley sandbox send --as 6281234567890 'makasih!'
  parley sandbox send --as +6281234567890 'ya' --reply-to 3EB0A1C4F29D77E01B5C42`,
			flags: []flag{
				textFlag("as", "the number of the phone that sends").by(readNumber),
				textFlag("reply-to", "the id of the message that this one replies to"),
			},
			arg: "message", set: fields{"type": "text"}, check: checkPhone, print: printMessageID,
			run: func(ctx context.Context, t *task) (err error) {
				if t.fields["message"], err = c.readText(t.args[0]); err != nil {
					return err
				}
				if id := t.fields.text("reply_to"); id != "" {
					t.fields["reply_to"] = bareID(id)
				}
				return t.actAs(ctx, "send")
			},
		}, {
			use: "tap LINK|ID", short: "Tap a chat link: send the text that it carries",
			long: `Tap a chat link: send the text that it carries. Give a login link by its address or, while it is open, by its
id. The phone is the one of the link's contact, unless --as selects another.`,
			example: `  parley sandbox tap otl_0a1b2c3d4e5f60718293a4b5
  parley sandbox tap otl_0a1b2c3d4e5f60718293a4b5 --as +6289876543210`,
			flags: []flag{textFlag("as", "the number of the phone that taps it (default: that of the link's contact)").by(readNumber)},
			print: printMessageID, run: tapLink,
		}}, slices.Concat(receivedVerbs(), faultVerbs())...),
	})
	group.PersistentFlags().StringVar(&channel, "channel", "", "the channel to act on (default: the token's channel)")
	clientFlags(group)
	return group
}

type position struct {
	Cursor string `json:"cursor"`
}

// faultVerbs change how a sandbox channel behaves.
func faultVerbs() []verb {
	faults := []string{"refuse", "late", "twice", "drop_socket", "log_out", "reachout_limit", "unknown", "window_closed",
		"template_paused", "held_back", "passkey"}
	return []verb{{
		use: "fault " + strings.Join(faults, "|"), short: "Make the next sends fail",
		example: `  parley sandbox fault refuse --to 6281234567890 --reason blocked
  parley sandbox fault twice --times 3`,
		flags: []flag{
			intFlag("times", 1, "number of sends"),
			textFlag("to", "only sends to this number").by(readNumber),
			textFlag("type", "only messages of this type"),
			textFlag("reason", "the reason, for refuse"),
			intFlag("seconds", 86400, "how long the account is restricted, for reachout_limit; 0: the network does not say"),
		},
		args: wantArgs("FAULT"), words: faults, arg: "fault", call: "POST /api/sandbox/faults", says: true, print: onlyJSON,
	}, {
		use: "clock TIME", short: "Advance the channel's clock, to test expiry without waiting",
		example: `  parley sandbox clock 5m
  parley sandbox clock 1d`,
		arg: "advance", call: "POST /api/sandbox/clock", says: true, print: onlyJSON,
		check: func(f fields) error {
			d, err := parley.ParseDuration(f.text("advance"))
			if err != nil || time.Duration(d) < time.Second {
				return fail(exitUsage, "%q is not a length of time such as 30s, 5m or 1d", f["advance"])
			}
			f["advance"] = int64(time.Duration(d) / time.Second)
			return nil
		},
	}, {
		use: "reset", short: "Remove the phones, their messages, the faults, and the channel's own chats and codes",
		long: `Reset a sandbox channel: remove its simulated phones with their messages and the faults, and the channel's own
chat history, one-time codes and login links. Its tokens, webhooks and settings stay. The two demo phones are
created again.`,
		example: `  parley sandbox reset
  parley sandbox reset --yes`,
		question: func(string, fields) string {
			return "This removes the phones and their messages, and the chat history and codes of the channel"
		},
		call: "DELETE /api/sandbox", says: true, print: onlyJSON,
	}}
}

// checkPhone requires the flag that names the phone.
func checkPhone(f fields) error {
	if _, sends := f["message"]; sends && f["as"] == nil {
		return fail(exitUsage, "--as is missing: the number of the phone")
	} else if !sends && f["to"] == nil {
		return fail(exitUsage, "--to is missing: the number of the phone")
	}
	return nil
}

// actAs acts as the phone of the field "as". The response has the id of the resulting message.
func (t *task) actAs(ctx context.Context, verb string) error {
	t.call = "POST /api/sandbox/phones/" + t.fields.pop("as").(string) + "/" + verb
	return t.requestAndPrint(ctx)
}

// messageID is the part of several responses that names a message.
type messageID struct {
	MessageID string `json:"message_id"`
}

var printMessageID = one(func(_ *cli, m *messageID) string { return m.MessageID })

// onlyJSON prints data with --json, and else nothing.
var onlyJSON = one(func(*cli, *any) string { return "" })

func tapLink(ctx context.Context, t *task) error {
	what, link := "link", t.args[0]
	if isLinkID(link) {
		what = "id"
	}
	if t.fields["as"] == nil {
		as, err := phoneOfLink(ctx, t.api, link)
		if err != nil {
			return err
		}
		if t.fields["as"], err = digits(as); err != nil {
			return err
		}
	}
	t.fields[what] = link
	return t.actAs(ctx, "open")
}

func isLinkID(s string) bool { return strings.HasPrefix(s, "otl_") }

// phoneOfLink finds the phone of a login link: it is in the address of a phone's page; for an id it asks the server.
func phoneOfLink(ctx context.Context, cl *client.Client, link string) (string, error) {
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
	_, err := cl.Get(ctx, "/api/otp/link/"+url.PathEscape(link), nil, &state)
	return state.ContactID, err
}
