package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/internal/app"
	"parley/internal/client"
	"parley/internal/wire"
)

// received is a message at a phone, as in the API.
type received struct {
	wire.Arrived
	raw []byte // the whole JSON
}

func (r *received) UnmarshalJSON(data []byte) error {
	r.raw = append(r.raw[:0], data...)
	return json.Unmarshal(data, &r.Arrived)
}

// receivedFlags select messages at a phone.
func receivedFlags() []flag {
	return []flag{
		textFlag("to", "the number of the phone").by(readNumber),
		textFlag("after", "only messages after this cursor"),
		textFlag("contains", "only messages whose text contains this"),
		textFlag("type", "only messages of this type"),
	}
}

func receivedVerbs() []verb {
	return []verb{{
		use: "messages", short: "List the messages at a phone, oldest first",
		example: `  parley sandbox messages --to 6281234567890
  parley sandbox messages --to 6281234567890 --contains kode --print code`,
		flags: append(receivedFlags(), intFlag("limit", 50, "list this many at most, 1 to 100"),
			textFlag("print", "print only this part of each message: code, link, body, id or json")),
		check: checkPhone, run: listReceived, none: "Nothing arrived at this phone.",
	}, {
		use: "wait", short: "Wait for a message at a phone, and print it",
		long: `Wait for a message at a phone and print it, or a part of it. Messages that arrived before count too; skip them
with --after CURSOR. If none arrives in time, list what did arrive and exit with 8.`,
		example: `  code=$(parley sandbox wait --to 6281234567890 --contains kode --print code)
  parley sandbox wait --to 6281234567890 --after "$cursor" --timeout 10s --print json`,
		flags: append(receivedFlags(), flag{name: "timeout", value: 10 * time.Second, usage: "how long to wait"},
			flag{name: "print", value: "body", usage: "the part to print: code, link, body, id or json"}),
		check: checkPhone, run: waitReceived,
	}}
}

func messagesPath(number string) string { return "/api/sandbox/phones/" + number + "/messages" }

func listReceived(ctx context.Context, t *task) error {
	part := t.fields.pop("print")
	var messages []received
	r, err := t.api.Get(ctx, messagesPath(t.fields.pop("to").(string)), t.fields.query(), &messages)
	t.fields.pop("limit") // it is no filter
	if part == nil || t.cli.json {
		t.print = rows("at,type,status,text,id", func(m *received) []any {
			return []any{clock(m.Timestamp.Time), m.Type, m.Status, m.summary(), m.MessageID}
		})
		return t.finish(r, err)
	}
	for _, m := range messages {
		err = errors.Join(err, t.cli.printPart(m, part.(string)))
	}
	return err
}

func waitReceived(ctx context.Context, t *task) error {
	part, timeout := t.fields.pop("print").(string), t.fields.pop("timeout").(time.Duration)
	if t.cli.json {
		part = "json"
	}
	if err := checkPart(part); err != nil {
		return err
	}
	number := t.fields.pop("to").(string)
	m, err := awaitMessage(ctx, t.api, number, t.fields.query(), timeout)
	switch {
	case err != nil:
		return err
	case m == nil:
		return timeoutError(ctx, t.api, number, t.fields, timeout)
	}
	return t.cli.printPart(*m, part)
}

// longestWait is how long the server waits within one request.
const longestWait = 30 * time.Second

// awaitMessage repeats requests until a message arrives or the time is over, and then returns nil.
func awaitMessage(ctx context.Context, cl *client.Client, number string, query url.Values, timeout time.Duration) (*received, error) {
	query.Set("limit", "1")
	deadline := time.Now().Add(timeout)
	for {
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

func timeoutError(ctx context.Context, cl *client.Client, number string, f fields, timeout time.Duration) error {
	var b strings.Builder
	fmt.Fprintf(&b, "no message to %s", app.ShowNumber(number))
	if f["type"] != nil {
		fmt.Fprintf(&b, " of type %s", f["type"])
	}
	if f["contains"] != nil {
		fmt.Fprintf(&b, " containing %q", f["contains"])
	}
	fmt.Fprintf(&b, " within %s", timeout)
	var came []received
	all, since := fields{"limit": 20}, ""
	if f["after"] != nil {
		all["after"], since = f["after"], " after the cursor"
	}
	if _, err := cl.Get(ctx, messagesPath(number), all.query(), &came); err != nil {
		return fail(exitTimeout, "%s", b.String())
	}
	if len(came) == 0 {
		fmt.Fprintf(&b, "\n  nothing arrived at that phone%s", since)
	} else {
		fmt.Fprintf(&b, "\n  %s arrived at that phone%s:", count(len(came), "message"), since)
	}
	for _, m := range came {
		fmt.Fprintf(&b, "\n    %s  %-8s %-40s %s", clock(m.Timestamp.Time), m.Type, m.summary(), m.Status)
	}
	return fail(exitTimeout, "%s", b.String())
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

func (c *cli) printPart(m received, part string) error {
	switch part {
	case "code", "link":
		found := m.Codes
		if part == "link" {
			found = m.Links
		}
		if len(found) == 0 {
			return fail(exitNotFound, "there is no %s in %s", part, m.summary())
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
