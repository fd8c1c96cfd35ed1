package main

import (
	"context"
	"encoding/json"
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
)

// message is a message in a search, as in the API.
type message struct {
	Channel   parley.ChannelCode `json:"channel"`
	MessageID string             `json:"message_id"`
	ContactID string             `json:"contact_id"`
	Name      string             `json:"name"`
	FromMe    bool               `json:"from_me"`
	Type      string             `json:"type"`
	Body      string             `json:"body"`
	Status    string             `json:"status"`
	Error     *sendFailure       `json:"error"`
	Timestamp time.Time          `json:"timestamp"`

	// Only in a request for one message.
	Timeline []struct {
		Status string    `json:"status"`
		At     time.Time `json:"at"`
		Edited bool      `json:"edited"`
	} `json:"timeline"`
	ReplyTo string `json:"reply_to"`
	Media   *struct {
		MIMEType string `json:"mimetype"`
		Filename string `json:"filename"`
		Bytes    int64  `json:"bytes"`
		Status   string `json:"status"`
	} `json:"media"`
	Reactions []string `json:"reactions"`
}

// sendFailure says why a message was not sent.
type sendFailure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (f *sendFailure) String() string { return f.Code + ": " + f.Message }

func (c *cli) messages() *cobra.Command {
	var channel string
	cmd := newGroup("messages", "List messages, show one, or export them", `  parley messages list --status FAILED --since 1d
  parley messages show true_6281234567890@c.us_3EB0A1C4F29D77E01B5C42`,
		c.messagesList(&channel), c.messagesShow(&channel), c.messagesExport(&channel))
	cmd.PersistentFlags().StringVar(&channel, "channel", "", "the channel, by its code (default: all channels of the token)")
	settingFlags(cmd.PersistentFlags(), keyURL, keyToken, keyAdminToken)
	return cmd
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

func statusNames() []string {
	var names []string
	for _, s := range parley.Statuses {
		names = append(names, s.String())
	}
	return names
}

const mostPerPage = 200 // of the API

// messageFlags select messages.
type messageFlags struct{ contact, status, kind, direction, text, since, until string }

func (f *messageFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.contact, "contact", "", "only with this number, with numbers that begin so, or in this group")
	cmd.Flags().StringVar(&f.status, "status", "", "only with this status: "+strings.Join(statusNames(), ", "))
	cmd.Flags().StringVar(&f.kind, "type", "", "only of this type: text, image, …")
	cmd.Flags().StringVar(&f.direction, "direction", "", "only received ones (in) or sent ones (out)")
	cmd.Flags().StringVar(&f.text, "text", "", "only those whose text contains this")
	cmd.Flags().StringVar(&f.since, "since", "", "only since this time: 30m, 1h, 2d ago, or RFC 3339")
	cmd.Flags().StringVar(&f.until, "until", "", "only before this time, written like --since")
}

// query are the flags as the API names them.
func (f *messageFlags) query(channel string) url.Values {
	query := url.Values{}
	for name, value := range texts("channel", channel, "contact", f.contact, "status", strings.ToUpper(f.status), "type", f.kind,
		"direction", f.direction, "text", f.text, "after", f.since, "before", f.until) {
		query.Set(name, value.(string))
	}
	return query
}

func (c *cli) messagesList(channel *string) *cobra.Command {
	var filter messageFlags
	limit := 50
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List messages, newest first",
		Long: `List messages, newest first: with an admin token those of all channels, else those of the token's channel. Filters
narrow the list together. The text of one-time codes is hidden.`,
		Example: `  parley messages list --contact +6281234567890
  parley messages list --direction in --since 1h --text 'refund' --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return fail(exitUsage, "--limit must be 1 or more")
			}
			query := filter.query(*channel)
			from, err := c.newReader(*channel)
			if err != nil {
				return err
			}
			found, err := findMessages(cmd.Context(), from, query, limit)
			if err == nil && len(found) == 0 && *channel != "" && from.isAdmin() {
				_, err = from.Get(cmd.Context(), client.Path("channels", *channel), nil, nil)
				err = explainNotFound(err, "channel", *channel)
			}
			switch {
			case err != nil:
				return c.explain(cmd.Context(), from.Client, asUsage(err))
			case c.json:
				return c.printJSON(found)
			}
			return c.printMessages(found)
		},
	}
	filter.add(cmd)
	cmd.Flags().IntVar(&limit, "limit", limit, "list this many at most")
	return cmd
}

// asUsage makes an error about fields one of usage: they came from flags.
func asUsage(err error) error {
	if isInvalid(err) {
		return fail(exitUsage, "%w", err)
	}
	return err
}

// findMessages repeats a search until it has enough messages or has seen all. One request looks through a part only.
func findMessages(ctx context.Context, from *reader, query url.Values, limit int) ([]json.RawMessage, error) {
	all := []json.RawMessage{}
	for {
		query.Set("limit", strconv.Itoa(min(limit-len(all), mostPerPage)))
		var page []json.RawMessage
		r, err := from.Get(ctx, from.prefix+"/messages", query, &page)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(all) >= limit || !r.Meta.HasMore {
			return all, nil
		}
		query.Set("cursor", r.Meta.Cursor)
	}
}

func (c *cli) printMessages(all []json.RawMessage) error {
	var rows [][]any
	for _, raw := range all {
		var m message
		if err := json.Unmarshal(raw, &m); err != nil {
			return err
		}
		rows = append(rows, []any{when(m.Timestamp), m.way(), m.Type, m.Status, strconv.Quote(app.Plain(shorten(m.Body, 60))), m.MessageID})
	}
	c.printTable([]any{"at", "from and to", "type", "status", "text", "id"}, rows)
	return nil
}

// way says who wrote to whom.
func (m *message) way() string {
	if m.FromMe {
		return string(m.Channel) + " → " + contactName(m.ContactID)
	}
	return contactName(m.ContactID) + " → " + string(m.Channel)
}

func (c *cli) messagesShow(channel *string) *cobra.Command {
	return &cobra.Command{
		Use:   "show MESSAGE",
		Short: "Show a message with its timeline",
		Long:  "Show a message with its timeline. MESSAGE is its full id, or the bare one.",
		Example: `  parley messages show true_6281234567890@c.us_3EB0A1C4F29D77E01B5C42
  parley messages show 3EB0A1C4F29D77E01B5C42 --channel toko --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			from, err := c.newReader(*channel)
			if err != nil {
				return err
			}
			if from.isAdmin() && *channel == "" {
				if *channel, err = defaultChannel(ctx, from.Client); err != nil {
					return err
				}
			}
			query := url.Values{}
			if from.isAdmin() {
				query.Set("channel", *channel)
			}
			r, err := from.Get(ctx, from.prefix+"/messages/"+url.PathEscape(args[0]), query, nil)
			return c.explain(ctx, from.Client, printData(c, r, err, c.printMessage))
		},
	}
}

func (c *cli) printMessage(m *message) {
	lines := [][2]string{
		{"id", m.MessageID}, {"channel", string(m.Channel)}, {"from", ""}, {"to", ""}, {"type", m.Type}, {"text", app.Plain(m.Body)},
		{"status", m.Status},
	}
	from, to, _ := strings.Cut(m.way(), " → ")
	lines[2][1], lines[3][1] = from, to
	if m.Error != nil {
		lines = append(lines, [2]string{"error", app.Plain(m.Error.String())})
	}
	if m.ReplyTo != "" {
		lines = append(lines, [2]string{"reply to", m.ReplyTo})
	}
	if f := m.Media; f != nil {
		about := []string{app.Plain(f.Filename), f.MIMEType, strconv.FormatInt(f.Bytes, 10) + " bytes", f.Status}
		lines = append(lines, [2]string{"file", strings.Join(slices.DeleteFunc(about, func(s string) bool { return s == "" }), ", ")})
	}
	if len(m.Reactions) > 0 {
		lines = append(lines, [2]string{"reactions", app.Plain(strings.Join(m.Reactions, " "))})
	}
	c.printLines(lines)
	fmt.Fprintln(c.out, "timeline")
	for _, step := range m.Timeline {
		what := step.Status
		if step.Edited {
			what = "edited"
		}
		fmt.Fprintf(c.out, "  %s  %s\n", step.At.Local().Format(time.DateTime), what)
	}
}
