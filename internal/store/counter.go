package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// What happens is counted by the minute and by the hour, for each channel and for all together, in the transaction in which
// it happens. Minutes are stored for two days, hours for 35.
const (
	minuteLife = 48 * time.Hour
	hourLife   = 35 * 24 * time.Hour
)

// countKey is a row of the counters of one minute.
type countKey struct {
	channel int64 // 0: all of them
	what    parley.Counter
	webhook parley.WebhookID // empty: it is not of a webhook
}

// counting are the counters of a transaction, or of one caller's part of it.
type counting struct {
	counts map[countKey]int64
	// received and confirmed are when a channel last got a message, and last had one confirmed, in milliseconds.
	received, confirmed map[int64]int64
}

func (c *counting) add(channel int64, what parley.Counter, webhook parley.WebhookID, n int64) {
	if c.counts == nil {
		c.counts = map[countKey]int64{}
	}
	c.counts[countKey{0, what, webhook}] += n
	if channel != 0 {
		c.counts[countKey{channel, what, webhook}] += n
	}
}

// later notes a time of a channel.
func later(times *map[int64]int64, channel, at int64) {
	if *times == nil {
		*times = map[int64]int64{}
	}
	(*times)[channel] = max((*times)[channel], at)
}

// merge adds the counters of a caller to those of its transaction.
func (c *counting) merge(other *counting) {
	for k, n := range other.counts {
		if c.counts == nil {
			c.counts = map[countKey]int64{}
		}
		c.counts[k] += n
	}
	for channel, at := range other.received {
		later(&c.received, channel, at)
	}
	for channel, at := range other.confirmed {
		later(&c.confirmed, channel, at)
	}
}

// batchCounting are the counters of the transaction under way. Only the writer uses them.
type batchCounting struct {
	batch int64 // the transaction that they belong to
	counting
}

// of returns the counters of a transaction. What is left of one that was not committed is dropped.
func (b *batchCounting) of(batch int64) *counting {
	if b.batch != batch {
		*b = batchCounting{batch: batch}
	}
	return &b.counting
}

// writeCounters writes the counters of a transaction before it is committed.
func (db *DB) writeCounters(t *sqldb.Tx) error {
	c := db.counting.of(t.Batch)
	now := time.Now().Unix()
	for k, n := range c.counts {
		for _, into := range []struct {
			statement string
			start     int64
		}{{addMinute, now / 60}, {addHour, now / 3600}} {
			if _, err := t.Exec(into.statement, k.channel, into.start, string(k.what), string(k.webhook), n); err != nil {
				return err
			}
		}
	}
	for channel, at := range c.received {
		if _, err := t.Exec(`UPDATE channel SET last_received_at = max(last_received_at, $1) WHERE id = $2`, at, channel); err != nil {
			return err
		}
	}
	for channel, at := range c.confirmed {
		if _, err := t.Exec(`UPDATE channel SET last_confirmed_at = max(last_confirmed_at, $1) WHERE id = $2`, at, channel); err != nil {
			return err
		}
	}
	*c = counting{}
	return nil
}

const (
	addMinute = `INSERT INTO counter_minute (channel, minute, what, webhook, n) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (channel, minute, what, webhook) DO UPDATE SET n = counter_minute.n + excluded.n`
	addHour = `INSERT INTO counter_hour (channel, hour, what, webhook, n) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (channel, hour, what, webhook) DO UPDATE SET n = counter_hour.n + excluded.n`
)

// countTime counts how long something took.
func (t *Tx) countTime(channel int64, what parley.Counter, took time.Duration) {
	if took >= 0 {
		t.counting.add(channel, what.Bucket(took), "", 1)
	}
}

// CountSendTimes counts how long messages of a channel took from their acceptance to the network's confirmation.
func (t *Tx) CountSendTimes(_ context.Context, code parley.ChannelCode, took []time.Duration) error {
	channel, err := t.channelID(code)
	if err != nil {
		return err
	}
	for _, d := range took {
		t.countTime(channel, parley.CountToSent, d)
	}
	return nil
}

// countStatus counts messages of histories that got a status.
func (t *Tx) countStatus(all []statusRow, to parley.Status, at time.Time) {
	for _, s := range all {
		if !s.inHistory {
			continue
		}
		switch to {
		case parley.Sent:
			t.counting.add(s.channel, parley.CountSent, "", 1)
		case parley.Delivered:
			t.counting.add(s.channel, parley.CountDelivered, "", 1)
			if s.secret {
				t.counting.add(s.channel, parley.CountCodesDelivered, "", 1)
			}
			if s.created != 0 {
				t.countTime(s.channel, parley.CountToDelivered, at.Sub(moment(s.created)))
			}
		case parley.Read:
			if !s.fromMe { // seen by us
				continue
			}
			t.counting.add(s.channel, parley.CountRead, "", 1)
		case parley.FailedForGood:
			t.counting.add(s.channel, parley.CountFailed, "", 1)
			continue
		default:
			continue
		}
		later(&t.counting.confirmed, s.channel, millis(at))
	}
}

// Counters sums what happened since a time, over all channels.
func (r Reader) Counters(ctx context.Context, since time.Time) (map[parley.Counter]int64, error) {
	r = r.with(ctx)
	// Whole hours, and before the first of them the minutes.
	hour := (since.Unix() + 3599) / 3600
	sums := map[parley.Counter]int64{}
	_, err := list(r, `SELECT what, sum(n) FROM (
		SELECT what, n FROM counter_hour WHERE channel = 0 AND hour >= $1
		UNION ALL SELECT what, n FROM counter_minute WHERE channel = 0 AND minute >= $2 AND minute < $3) AS all_counts GROUP BY what`,
		[]any{hour, since.Unix() / 60, 60 * hour}, func(row scanner) (struct{}, error) {
			var what parley.Counter
			var n int64
			err := row.Scan(&what, &n)
			sums[what] = n
			return struct{}{}, err
		})
	return sums, err
}

// CountersByMinute lists what happened in each minute since a time, over all channels. A minute is numbered since 1970.
func (r Reader) CountersByMinute(ctx context.Context, since time.Time) (map[int64]map[parley.Counter]int64, error) {
	r = r.with(ctx)
	minutes := map[int64]map[parley.Counter]int64{}
	_, err := list(r, `SELECT minute, what, sum(n) FROM counter_minute WHERE channel = 0 AND minute >= $1 GROUP BY minute, what`,
		[]any{since.Unix() / 60}, func(row scanner) (struct{}, error) {
			var minute, n int64
			var what parley.Counter
			err := row.Scan(&minute, &what, &n)
			if minutes[minute] == nil {
				minutes[minute] = map[parley.Counter]int64{}
			}
			minutes[minute][what] = n
			return struct{}{}, err
		})
	return minutes, err
}

// ChannelActivity is what happened on a channel of late.
func (r Reader) ChannelActivity(ctx context.Context, since time.Time) (map[parley.ChannelCode]parley.ChannelActivity, error) {
	r = r.with(ctx)
	all := map[parley.ChannelCode]parley.ChannelActivity{}
	_, err := list(r, `SELECT code, last_received_at, last_confirmed_at,
		coalesce((SELECT sum(n) FROM counter_hour WHERE counter_hour.channel = channel.id AND hour >= $1 AND what = $2), 0),
		coalesce((SELECT sum(n) FROM counter_hour WHERE counter_hour.channel = channel.id AND hour >= $1 AND what = $3), 0) FROM channel`,
		[]any{since.Unix() / 3600, string(parley.CountSent), string(parley.CountFailed)}, func(row scanner) (struct{}, error) {
			var code parley.ChannelCode
			var a parley.ChannelActivity
			var received, confirmed int64
			err := row.Scan(&code, &received, &confirmed, &a.Sent, &a.Failed)
			a.ReceivedAt, a.ConfirmedAt = moment(received), moment(confirmed)
			all[code] = a
			return struct{}{}, err
		})
	return all, err
}

// PurgeCounters removes counters that are too old.
func (t *Tx) PurgeCounters(_ context.Context, now time.Time) error {
	if _, err := t.sql.Exec(`DELETE FROM counter_minute WHERE minute < $1`, now.Add(-minuteLife).Unix()/60); err != nil {
		return err
	}
	_, err := t.sql.Exec(`DELETE FROM counter_hour WHERE hour < $1`, now.Add(-hourLife).Unix()/3600)
	return err
}

// countPastEvents fills the counters from the events of the last day, which no counter knows yet.
func countPastEvents(c *sqldb.Conn) error {
	number := func(t parley.EventType) int64 {
		n, err := eventNumber(t)
		if err != nil {
			panic(err)
		}
		return n
	}
	status := number(parley.MessageStatus)
	if _, err := c.Exec(`UPDATE channel SET
		last_received_at = coalesce((SELECT max(at) FROM event WHERE event.channel = channel.id AND type = $1), 0),
		last_confirmed_at = coalesce((SELECT max(at) FROM event WHERE event.channel = channel.id AND type = $2 AND status BETWEEN 1 AND 3), 0)`,
		number(parley.MessageReceived), status); err != nil {
		return err
	}
	since := time.Now().Add(-24 * time.Hour).UnixMilli()
	for _, past := range []struct {
		what      parley.Counter
		condition string
	}{
		{parley.CountReceived, fmt.Sprintf(`type = %d`, number(parley.MessageReceived))},
		{parley.CountSent, fmt.Sprintf(`type = %d AND status = 1`, status)},
		{parley.CountDelivered, fmt.Sprintf(`type = %d AND status = 2`, status)},
		{parley.CountRead, fmt.Sprintf(`type = %d AND status = 3 AND message IN (SELECT seq FROM message WHERE from_me = 1)`, status)},
		{parley.CountFailed, fmt.Sprintf(`type = %d AND status = 5`, status)},
		{parley.CountApproved, fmt.Sprintf(`type = %d`, number(parley.OTPApproved))},
	} {
		for _, span := range []struct {
			table, column string
			ms            int64
		}{{"counter_minute", "minute", 60_000}, {"counter_hour", "hour", 3_600_000}} {
			for _, channel := range []string{"channel", "0"} {
				query := `INSERT INTO TABLE (channel, COLUMN, what, webhook, n) SELECT CHANNEL, received_at / $1, $2, '', count(*) FROM event
					WHERE received_at >= $3 AND ` + past.condition + ` GROUP BY 1, 2`
				query = strings.NewReplacer("TABLE", span.table, "COLUMN", span.column, "CHANNEL", channel).Replace(query)
				if _, err := c.Exec(query, span.ms, string(past.what), since); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
