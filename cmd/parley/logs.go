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
)

func (c *cli) logs() *cobra.Command {
	l := &eventLog{cli: c, limit: 50}
	var events []string
	var since string
	cmd := &cobra.Command{
		Use:   "logs [CODE]",
		Short: "Show what happened on a channel: messages, statuses, connections, logins",
		Long: `Show the last events of a channel, oldest first; without a code, those of all channels of the token. --follow continues
with what happens next, and resumes where it stopped after a lost connection. Message texts are shown only with --text.
The server's own log is on its stderr.`,
		Example: `  parley logs toko --follow
  parley logs --since 1h --events message.status,channel.status`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) > 0 {
				l.channel = args[0]
			}
			if l.types, err = eventTypes(events); err != nil {
				return err
			}
			if since != "" {
				if l.since, err = sinceTime(since, time.Now()); err != nil {
					return err
				}
				l.limit = 0
			}
			if l.from, err = c.newReader(l.channel); err != nil {
				return err
			}
			err = l.run(cmd.Context())
			if l.from.isAdmin() {
				return explainNoChannel(cmd.Context(), l.from.Client, err, l.channel)
			}
			return c.explain(cmd.Context(), l.from.Client, err)
		},
	}
	cmd.Flags().BoolVarP(&l.follow, "follow", "f", false, "continue with what happens next")
	cmd.Flags().IntVarP(&l.limit, "lines", "n", l.limit, "how many past events to show")
	cmd.Flags().StringVar(&since, "since", "", "all events since this time instead: 30m, 1h, 2d ago, or RFC 3339")
	cmd.Flags().StringSliceVar(&events, "events", nil, "only these types of events, separated by commas")
	cmd.Flags().BoolVar(&l.text, "text", false, "show the texts of messages")
	settingFlags(cmd.Flags(), keyURL, keyToken, keyAdminToken)
	return cmd
}

func sinceTime(text string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if d, err := parley.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-time.Duration(d)), nil
	}
	return time.Time{}, fail(exitUsage, "--since: %q is neither a length of time such as 30m, 1h or 2d, nor a time in RFC 3339", text)
}

type eventLog struct {
	cli     *cli
	from    *reader
	channel string
	types   []parley.EventType
	limit   int       // of past events; 0: all since the time
	since   time.Time // zero: any
	follow  bool
	text    bool
}

func (l *eventLog) query() url.Values {
	query := url.Values{}
	for name, value := range texts("channel", l.channel, "types", strings.Join(words(l.types), ",")) {
		query.Set(name, value.(string))
	}
	return query
}

func (l *eventLog) run(ctx context.Context) error {
	past, err := l.past(ctx)
	if err != nil {
		return err
	}
	last := ""
	for _, e := range slices.Backward(past) {
		l.print(e)
		last = string(e.ID)
	}
	if !l.follow {
		return nil
	}
	next := &stream{cli: l.cli, client: l.from.Client, path: l.from.prefix + "/events", query: l.query(), lastID: last}
	return next.follow(ctx, func(e streamEvent) error { l.print(e); return nil })
}

// past reads the events before now, newest first.
func (l *eventLog) past(ctx context.Context) (all []streamEvent, err error) {
	query := l.query()
	for l.limit > 0 || !l.since.IsZero() {
		size := mostPerPage
		if l.limit > 0 {
			size = min(size, l.limit-len(all))
		}
		query.Set("limit", strconv.Itoa(size))
		var page []json.RawMessage
		r, err := l.from.Get(ctx, l.from.prefix+"/events/recent", query, &page)
		if err != nil {
			return nil, err
		}
		for _, body := range page {
			e, err := newStreamEvent(body)
			if err != nil {
				return nil, err
			}
			if e.Timestamp.Before(l.since) {
				return all, nil
			}
			all = append(all, e)
		}
		if r.Meta.NextCursor == "" || l.limit > 0 && len(all) >= l.limit {
			return all, nil
		}
		query.Set("cursor", r.Meta.NextCursor)
	}
	return nil, nil
}

func (l *eventLog) print(e streamEvent) {
	if l.cli.json {
		fmt.Fprintf(l.cli.out, "%s\n", e.body)
		return
	}
	line := fmt.Sprintf("%s  %-17s %s", e.Timestamp.Local().Format(time.DateTime), e.Type, e.summary())
	if e.Data.Error != nil {
		line += "  " + app.Plain(e.Data.Error.String())
	}
	if l.text && e.Data.Body != "" {
		line += "  " + strconv.Quote(app.Plain(shorten(e.Data.Body, 200)))
	}
	fmt.Fprintln(l.cli.out, line)
}
