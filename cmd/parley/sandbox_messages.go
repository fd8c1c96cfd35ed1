package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/internal/app"
	"parley/internal/client"
)

// received is a message at a phone, as in the API.
type received struct {
	MessageID string    `json:"message_id"`
	Type      string    `json:"type"`
	Body      string    `json:"body"`
	Codes     []string  `json:"codes"`
	Links     []string  `json:"links"`
	Status    string    `json:"status"`
	Timestamp time.Time `json:"timestamp"`
	Media     *struct {
		Filename string `json:"filename"`
	} `json:"media"`

	raw []byte // the whole JSON
}

func (r *received) UnmarshalJSON(data []byte) error {
	type plain received // without this method
	r.raw = append(r.raw[:0], data...)
	return json.Unmarshal(data, (*plain)(r))
}

type filter struct {
	to, after, contains, kind string
	limit                     int
}

func (f *filter) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.to, "to", "", "the number of the phone")
	cmd.Flags().StringVar(&f.after, "after", "", "only messages after this cursor")
	cmd.Flags().StringVar(&f.contains, "contains", "", "only messages whose text contains this")
	cmd.Flags().StringVar(&f.kind, "type", "", "only messages of this type")
}

func (f *filter) query() url.Values {
	q := url.Values{}
	for name, value := range texts("after", f.after, "contains", f.contains, "type", f.kind) {
		q.Set(name, value.(string))
	}
	if f.limit > 0 {
		q.Set("limit", strconv.Itoa(f.limit))
	}
	return q
}

func (f *filter) number() (string, error) {
	if f.to == "" {
		return "", fail(exitUsage, "--to is missing: the number of the phone")
	}
	return digits(f.to)
}

func messagesPath(number string) string { return "/api/sandbox/phones/" + number + "/messages" }

func (c *cli) sandboxMessages(connect connect) *cobra.Command {
	f := filter{limit: 50}
	var part string
	cmd := &cobra.Command{
		Use:   "messages",
		Short: "List the messages at a phone, oldest first",
		Example: `  parley sandbox messages --to 6281234567890
  parley sandbox messages --to 6281234567890 --contains kode --print code`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			number, err := f.number()
			if err != nil {
				return err
			}
			return c.onPhones(cmd, connect, func(ctx context.Context, cl *client.Client) error {
				r, err := cl.Get(ctx, messagesPath(number), f.query(), nil)
				if err == nil && part != "" && !c.json {
					return c.printParts(r.Data, part)
				}
				return printRows(c, r, err, []any{"at", "type", "status", "text", "id"},
					func(m *received) []any { return []any{clock(m.Timestamp), m.Type, m.Status, m.summary(), m.MessageID} })
			})
		},
	}
	f.flags(cmd)
	cmd.Flags().IntVar(&f.limit, "limit", f.limit, "list this many at most, 1 to 100")
	cmd.Flags().StringVar(&part, "print", "", "print only this part of each message: code, link, body, id or json")
	return cmd
}

func (c *cli) sandboxWait(connect connect) *cobra.Command {
	var f filter
	var part string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait",
		Short: "Wait for a message at a phone, and print it",
		Long: `Wait for a message at a phone and print it, or a part of it. Messages that arrived before count too; skip them
with --after CURSOR. If none arrives in time, list what did arrive and exit with 1.`,
		Example: `  code=$(parley sandbox wait --to 6281234567890 --contains kode --print code)
  parley sandbox wait --to 6281234567890 --after "$cursor" --timeout 10s --print json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			number, err := f.number()
			if err != nil {
				return err
			}
			if c.json {
				part = "json"
			}
			if err := checkPart(part); err != nil {
				return err
			}
			return c.onPhones(cmd, connect, func(ctx context.Context, cl *client.Client) error {
				m, err := awaitMessage(ctx, cl, number, f, timeout)
				if err != nil {
					return err
				}
				if m == nil {
					return timeoutError(ctx, cl, number, f, timeout)
				}
				return c.printPart(*m, part)
			})
		},
	}
	f.flags(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "how long to wait")
	cmd.Flags().StringVar(&part, "print", "body", "the part to print: code, link, body, id or json")
	return cmd
}

// longestWait is how long the server waits within one request.
const longestWait = 30 * time.Second

// awaitMessage repeats requests until a message arrives or the time is over, and then returns nil.
func awaitMessage(ctx context.Context, cl *client.Client, number string, f filter, timeout time.Duration) (*received, error) {
	f.limit = 1
	deadline := time.Now().Add(timeout)
	for {
		query := f.query()
		left := max(0, min(time.Until(deadline), longestWait))
		query.Set("wait", strconv.Itoa(wholeSeconds(left)))
		var messages []received
		_, err := cl.Get(ctx, messagesPath(number), query, &messages)
		if err == nil && len(messages) > 0 {
			return &messages[0], nil
		}
		if err != nil && !isNotFound(err) { // the phone may be added later
			return nil, err
		}
		if !time.Now().Before(deadline) {
			return nil, nil
		}
	}
}

func timeoutError(ctx context.Context, cl *client.Client, number string, f filter, timeout time.Duration) error {
	var b strings.Builder
	fmt.Fprintf(&b, "no message to %s", app.ShowNumber(number))
	if f.kind != "" {
		fmt.Fprintf(&b, " of type %s", f.kind)
	}
	if f.contains != "" {
		fmt.Fprintf(&b, " containing %q", f.contains)
	}
	fmt.Fprintf(&b, " within %s", timeout)
	var came []received
	all := filter{after: f.after, limit: 20}
	if _, err := cl.Get(ctx, messagesPath(number), all.query(), &came); err != nil {
		return fail(exitNegative, "%s", b.String())
	}
	since := ""
	if f.after != "" {
		since = " after the cursor"
	}
	if len(came) == 0 {
		fmt.Fprintf(&b, "\n  nothing arrived at that phone%s", since)
	} else {
		fmt.Fprintf(&b, "\n  %s arrived at that phone%s:", count(len(came), "message"), since)
	}
	for _, m := range came {
		fmt.Fprintf(&b, "\n    %s  %-8s %-40s %s", clock(m.Timestamp), m.Type, m.summary(), m.Status)
	}
	return fail(exitNegative, "%s", b.String())
}

// summary is a message in a few words, safe to show on a terminal.
func (r *received) summary() string {
	if r.Body == "" && r.Media != nil {
		return app.Plain(r.Media.Filename)
	}
	return strconv.Quote(app.Plain(shorten(r.Body, 60)))
}

func shorten(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

func checkPart(part string) error {
	switch part {
	case "code", "link", "body", "id", "json":
		return nil
	}
	return fail(exitUsage, "--print: %q is not one of code, link, body, id, json", part)
}

func (c *cli) printParts(data json.RawMessage, part string) error {
	var messages []received
	if err := json.Unmarshal(data, &messages); err != nil {
		return err
	}
	for _, m := range messages {
		if err := c.printPart(m, part); err != nil {
			return err
		}
	}
	return nil
}

func (c *cli) printPart(m received, part string) error {
	switch part {
	case "code", "link":
		found := m.Codes
		if part == "link" {
			found = m.Links
		}
		if len(found) == 0 {
			return fail(exitNegative, "there is no %s in %s", part, m.summary())
		}
		fmt.Fprintln(c.out, found[0])
	case "body":
		fmt.Fprintln(c.out, m.Body)
	case "id":
		fmt.Fprintln(c.out, m.MessageID)
	case "json":
		fmt.Fprintf(c.out, "%s\n", m.raw)
	default:
		return checkPart(part)
	}
	return nil
}
