package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"parley"
	"parley/internal/store"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

const (
	stallChats    = 1_000_000 // of all channels
	stallCounters = 80_000    // that are old
	stallStates   = 100_000   // statuses of channels that are old
	stallQueue    = 10_000    // messages that wait while a channel goes live
	longestStall  = 50 * time.Millisecond
	oldFor        = 40 * 24 * time.Hour
)

// measureStalls measures how long sends wait beside maintenance, and beside what tenants can do, in a database with a million chats.
func measureStalls(ctx context.Context, o options, t *table) error {
	const reset, live = "reset", "live"
	return inTempDir(func(data string) error {
		tokens, err := createChannels(ctx, o, data, reset, live)
		if err != nil {
			return err
		}
		old := map[string]int{}
		for i := range 20 {
			old[fmt.Sprint(6281500000000+i)] = o.messages / 200
		}
		if err := errors.Join(seedAt(ctx, data, "demo", old, time.Now().Add(-oldFor), 0), // first, as the old ones are
			seed(ctx, data, live, map[string]int{"6281200000001": o.messages / 10}),
			seed(ctx, data, reset, map[string]int{"6281200000001": 1000}), seedQueue(ctx, data, live), seedRows(data)); err != nil {
			return err
		}
		unix.Sync() // else the first checkpoint would write what was seeded
		p, err := startServe(ctx, o, data, "", "--message-retention", "720h")
		if err != nil {
			return err
		}
		defer p.stop()
		if err := p.tokens(o, data); err != nil {
			return err
		}
		during := func(what string, do func() error) error { return sendsDuring(p, t, what, longestStall, do) }
		maintained := func() error { return awaitEmpty(data, stalled...) }
		if err := during("maintenance: old counters, statuses and messages", maintained); err != nil {
			return err
		}
		if err := during("nothing, to compare", func() error { return nil }); err != nil {
			return err
		}
		user := *p
		user.admin = tokens[reset]
		if err := during(fmt.Sprintf("a reset beside %d chats", stallChats), func() error {
			return errors.Join(user.call("DELETE", "/api/sandbox", nil, nil), awaitEmpty(data, "SELECT count(*) FROM deletion"))
		}); err != nil {
			return err
		}
		return during(fmt.Sprintf("a go-live with %d messages, of which %d wait", o.messages/10, stallQueue), func() error {
			return errors.Join(p.call("POST", "/api/manage/channels/"+live+"/go-live", map[string]bool{"everybody": true}, nil),
				awaitEmpty(data, "SELECT count(*) FROM deletion"))
		})
	})
}

// stalled tell whether maintenance has something to delete. They end with the first row that they find: to count all would use a core,
// and hold up checkpoints.
var stalled = []string{
	fmt.Sprintf(`SELECT EXISTS (SELECT 1 FROM counter_minute WHERE minute < %d)`, time.Now().Add(-oldFor/2).Unix()/60),
	fmt.Sprintf(`SELECT EXISTS (SELECT 1 FROM message WHERE received_at < %d)`, time.Now().Add(-oldFor/2).UnixMilli()),
}

// seedQueue adds messages that wait for a time when they are sent, and stops the channel until then.
func seedQueue(ctx context.Context, data string, channel parley.ChannelCode) error {
	db, err := store.Open(ctx, data+"/parley.db")
	if err != nil {
		return err
	}
	defer db.Close()
	return db.Tx(ctx, func(tx *store.Tx) error {
		c, err := tx.Channel(ctx, channel)
		if err != nil {
			return err
		}
		c.Enabled = false
		for i := range stallQueue {
			m := parley.Message{Channel: channel, Chat: parley.NewContactID("6281200000002"), ID: parley.MessageID(fmt.Sprint("waits", i)),
				FromMe: true, Content: parley.Text{Body: "It waits."}, CreatedAt: time.Now(), ExpiresAt: time.Now().Add(24 * time.Hour)}
			if err := tx.AddMessage(ctx, &m); err != nil {
				return err
			}
		}
		return tx.UpdateChannel(ctx, c)
	})
}

// seedRows adds chats, and counters and statuses that are old.
func seedRows(data string) error {
	db, err := sql.Open("sqlite", "file:"+data+"/parley.db")
	if err != nil {
		return err
	}
	defer db.Close()
	old := time.Now().Add(-oldFor)
	for _, s := range []struct {
		insert, values string
		rows           int
		args           []any
	}{
		{`chat (channel, contact, last_at)`, `n % 1000 + 1000000, '62816' || (100000000 + n) || '@c.us', ? + n`, stallChats,
			[]any{old.UnixMilli()}},
		{`counter_minute (channel, minute, what, webhook, n)`, `n % 1000 + 1000000, ? + n / 1000, 'sent', '', 1`, stallCounters,
			[]any{old.Unix() / 60}},
		{`channel_state (channel, seq, at, status, reason)`, `n % 1000 + 1000000, -n, ?, 'WORKING', ''`, stallStates,
			[]any{old.UnixMilli()}},
	} {
		statement := fmt.Sprintf(`WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < %d)
			INSERT OR IGNORE INTO %s SELECT %s FROM counted`, s.rows, s.insert, s.values)
		if _, err := db.Exec(statement, s.args...); err != nil {
			return fmt.Errorf("%s: %w", s.insert[:strings.Index(s.insert, " ")], err)
		}
	}
	return nil
}

// awaitEmpty waits until the sum of some queries is 0.
func awaitEmpty(data string, queries ...string) error {
	db, err := sql.Open("sqlite", "file:"+data+"/parley.db?mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer db.Close()
	const most = 10 * time.Minute
	for began := time.Now(); ; time.Sleep(time.Second) {
		left := 0
		for _, query := range queries {
			var n int
			if err := db.QueryRow(query).Scan(&n); err != nil {
				return err
			}
			left += n
		}
		if left == 0 {
			return nil
		}
		if time.Since(began) > most {
			return fmt.Errorf("%d rows are left after %s", left, most)
		}
	}
}
