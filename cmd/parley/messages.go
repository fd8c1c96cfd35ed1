package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/app"
	"parley/internal/client"
	"parley/internal/wire"
)

// message is a message with its timeline, which lists do not have.
type message struct {
	wire.Message
	Timeline []struct {
		Status string    `json:"status"`
		At     wire.Time `json:"at"`
		Edited bool      `json:"edited"`
	} `json:"timeline"`
}

func (c *cli) messages() *cobra.Command {
	var channel string
	var from *reader
	on := func(cmd *cobra.Command, do func(context.Context, *client.Client) error) (err error) {
		if from, err = c.newReader(channel); err != nil {
			return err
		}
		return c.explain(cmd.Context(), from.Client, do(cmd.Context(), from.Client))
	}
	group := c.resource(resource{
		name: "messages", short: "List messages, show one, or export them", on: on,
		example: `  parley messages list --status FAILED --since 1d
  parley messages show true_6281234567890@c.us_3EB0A1C4F29D77E01B5C42`,
		verbs: []verb{{
			use: "list", short: "List messages, newest first",
			long: `List messages, newest first: with an admin token those of all channels, otherwise those of the token's channel.
Filters combine. The text of one-time codes is hidden.`,
			example: `  parley messages list --contact +6281234567890
  parley messages list --direction in --since 1h --text 'refund' --json`,
			flags: messageFlags(), limit: 50, none: "There are no messages yet. Send one with: parley send",
			print: rows("at,from and to,type,status,text,id", func(m *message) []any {
				return []any{when(m.Timestamp.Time), m.way(), m.Type, m.Status, strconv.Quote(app.Plain(shorten(m.Body, 60))), m.MessageID}
			}),
			run: func(ctx context.Context, t *task) error {
				t.call = "GET " + from.prefix + "/messages"
				if channel != "" {
					t.fields["channel"] = channel
				}
				r, err := t.request(ctx)
				if err == nil && r.Rows == 0 && channel != "" && from.isAdmin() {
					_, err = readChannel(ctx, t.api, channel)
				}
				return t.finish(r, err)
			},
		}, {
			use: "show MESSAGE", short: "Show a message with its timeline",
			long: "Show a message with its timeline. MESSAGE is its full id, or the bare one.",
			example: `  parley messages show true_6281234567890@c.us_3EB0A1C4F29D77E01B5C42
  parley messages show 3EB0A1C4F29D77E01B5C42 --channel toko --json`,
			print: one((*cli).showMessage),
			run: func(ctx context.Context, t *task) (err error) {
				if from.isAdmin() {
					t.fields["channel"] = channel
					if channel == "" {
						if t.fields["channel"], err = channelWithMessage(ctx, t.api, t.args[0]); err != nil {
							return err
						}
					}
				}
				t.call = "GET " + from.prefix + "/messages/" + url.PathEscape(t.args[0])
				return t.requestAndPrint(ctx)
			},
		}},
	})
	group.AddCommand(c.command(&resource{on: c.onServer}, verb{
		use: "export", short: "Export messages as CSV or JSON Lines",
		long: `Export every matching message, newest first, as CSV or JSON Lines. This needs an admin token and a running server. The text
of one-time codes is never exported. In CSV, a cell that begins with =, +, -, @, a tab or a line break gets an apostrophe in
front, because spreadsheets would run it as a formula. The audit log records each export.`,
		example: `  parley messages export --since 7d > messages.csv
  parley messages export --channel toko --status FAILED --format jsonl -o failed.jsonl`,
		flags: append(messageFlags(), exportFlags()...),
		call:  "GET messages/export",
		run: func(ctx context.Context, t *task) error {
			if channel != "" {
				t.fields["channel"] = channel
			}
			return export(ctx, t)
		},
	}))
	group.PersistentFlags().StringVar(&channel, "channel", "", "the channel, by its code (default: all channels of the token)")
	settingFlags(group.PersistentFlags(), keyURL, keyToken, keyAdminToken)
	return group
}

// channelWithMessage finds the channel of a message by the message's id.
func channelWithMessage(ctx context.Context, api *client.Client, id string) (string, error) {
	var found []struct {
		Kind    string `json:"kind"`
		Channel string `json:"channel"`
	}
	if _, err := api.Get(ctx, client.Path("find"), url.Values{"id": {id}}, &found); err != nil {
		return "", err
	}
	var channels []string
	for _, f := range found {
		if f.Kind == "message" && !slices.Contains(channels, f.Channel) {
			channels = append(channels, f.Channel)
		}
	}
	switch len(channels) {
	case 0:
		return "", fail(exitNotFound, "there is no message %s. See: parley messages list", id)
	case 1:
		return channels[0], nil
	}
	return "", fail(exitUsage, "several channels have this message: %s. Select one with --channel CODE", strings.Join(channels, ", "))
}

// messageFlags select messages.
func messageFlags() []flag {
	return []flag{
		textFlag("contact", "only with this number, with numbers that begin so, or in this group"),
		textFlag("status", "only with this status: "+strings.Join(words(parley.Statuses), ", ")).by(readUpper),
		textFlag("type", "only of this type: text, image, …"),
		textFlag("direction", "only received ones (in) or sent ones (out)"),
		textFlag("text", "only those whose text contains this"),
		textFlag("since", "only since this time: 30m, 1h, 2d ago, or RFC 3339").as("after"),
		textFlag("until", "only before this time, written like --since").as("before"),
	}
}

// reader is a client that reads messages and events.
type reader struct {
	*client.Client
	prefix string // of paths: with an admin token all channels are below /api/manage
}

func (r *reader) isAdmin() bool { return r.prefix != "/api" }

// newReader makes a reader with the admin token, or with the other one if only that is set.
func (c *cli) newReader(channel string) (*reader, error) {
	var cl *client.Client
	var err error
	prefix := "/api"
	if c.set.values[keyToken].origin == "--token" || c.set.text(keyToken) != "" && c.set.text(keyAdminToken) == "" {
		cl, err = c.client(keyToken, app.EnvGlobalToken, func(r app.Running) string { return r.GlobalToken })
	} else {
		prefix = "/api/manage"
		cl, err = c.client(keyAdminToken, app.EnvAdminToken, func(r app.Running) string { return r.AdminToken })
	}
	if err != nil {
		return nil, err
	}
	cl.Channel = channel // the management API has it in the query
	return &reader{cl, prefix}, nil
}

const mostPerPage = 200 // of the API

// way says who wrote to whom.
func (m *message) way() string {
	if m.Outgoing {
		return string(m.Channel) + " → " + contactName(m.ContactID)
	}
	return contactName(m.ContactID) + " → " + string(m.Channel)
}

func (*cli) showMessage(m *message) string {
	from, to, _ := strings.Cut(m.way(), " → ")
	lines := []string{"id", m.MessageID, "channel", string(m.Channel), "from", from, "to", to, "type", string(m.Type),
		"text", app.Plain(m.Body), "status", m.Status}
	if m.Error != nil {
		lines = append(lines, "error", app.Plain(m.Error.String()))
	}
	if m.ReplyTo != "" {
		lines = append(lines, "reply to", string(m.ReplyTo))
	}
	if f := m.Media; f != nil {
		about := []string{app.Plain(f.Filename), f.MIMEType, strconv.FormatInt(f.Size, 10) + " bytes", string(f.Status)}
		lines = append(lines, "file", strings.Join(slices.DeleteFunc(about, func(s string) bool { return s == "" }), ", "))
	}
	if len(m.Reactions) > 0 {
		lines = append(lines, "reactions", app.Plain(strings.Join(m.Reactions, " ")))
	}
	text := pairs(lines...) + "timeline"
	for _, step := range m.Timeline {
		what := step.Status
		if step.Edited {
			what = "edited"
		}
		text += fmt.Sprintf("\n  %s  %s", step.At.Local().Format(time.DateTime), what)
	}
	return text
}
