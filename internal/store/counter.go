package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// Counter names something that is counted, by the minute. The names are stored and must not change.
type Counter string

const (
	CountSent           Counter = "sent"
	CountDelivered      Counter = "delivered"
	CountRead           Counter = "read"
	CountFailed         Counter = "failed"
	CountReceived       Counter = "received"
	CountCodes          Counter = "codes" // one-time codes that were requested
	CountCodesDelivered Counter = "codes_delivered"
	CountLinks          Counter = "links"    // login links that were requested
	CountApproved       Counter = "approved" // codes and links
	CountWebhookDone    Counter = "webhook_delivered"
	CountWebhookFailed  Counter = "webhook_failed"
	// CountAttemptFailed counts failed attempts to deliver to a webhook. The successful ones are CountWebhookDone.
	CountAttemptFailed Counter = "webhook_attempt_failed"
	// How long messages and attempts took, counted in buckets: see [Counter.Bucket].
	CountToSent      Counter = "to_sent"
	CountToDelivered Counter = "to_delivered"
	CountWebhookTook Counter = "webhook_took"
)

// CountFailedFor counts the failed messages with one reason.
func CountFailedFor(reason parley.FailureCode) Counter { return CountFailed + "_" + Counter(reason) }

// CounterQuery selects counters in steps of time.
type CounterQuery struct {
	Channel parley.ChannelCode // empty: all together
	Webhook parley.WebhookID   // empty: all together
	From    time.Time          // a multiple of Step
	Step    time.Duration      // in minutes, or in hours
}

// TimeBounds are the upper bounds of the buckets that times are counted in. What took longer is in a last one.
var TimeBounds = []time.Duration{
	5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond,
	500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute,
	5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 24 * time.Hour,
}

// Bucket names the bucket of a time: "to_sent_250" counts what took over 100 and at most 250 milliseconds.
func (c Counter) Bucket(took time.Duration) Counter {
	for _, bound := range TimeBounds {
		if took <= bound {
			return c + "_" + Counter(strconv.FormatInt(bound.Milliseconds(), 10))
		}
	}
	return c + "_more"
}

// ChannelActivity is what happened on a channel of late.
type ChannelActivity struct {
	Sent, Failed            int64     // since a time
	ReceivedAt, ConfirmedAt time.Time // when it last got a message, and last had one confirmed; zero: never
}

// Counters are per minute and per hour, for each channel and for all together. They are written in the transaction that
// they count. What is older than a chart shows in single minutes or hours is summed up by the steps of the next longer chart: ten minutes
// and four hours. So the rows of a counter are at most some 600 for each channel and each webhook.
const (
	minuteLife, exactMinutes, minuteSum = 25 * time.Hour, 2 * time.Hour, 10
	hourLife, exactHours, hourSum       = 31 * 24 * time.Hour, 8 * 24 * time.Hour, 4
)

// countKey is a row of the counters of one minute.
type countKey struct {
	channel int64 // 0: all channels
	what    Counter
	webhook parley.WebhookID // empty: not about a webhook
}

func (k countKey) compare(other countKey) int {
	return cmp.Or(cmp.Compare(k.channel, other.channel), cmp.Compare(k.what, other.what), cmp.Compare(k.webhook, other.webhook))
}

// counting holds the counters of a transaction, or of one caller's part of it.
type counting struct {
	counts map[countKey]int64
	// received and confirmed are when a channel last received a message and last had one confirmed, in milliseconds.
	received, confirmed map[int64]int64
}

func (c *counting) add(channel int64, what Counter, webhook parley.WebhookID, n int64) {
	if c.counts == nil {
		c.counts = map[countKey]int64{}
	}
	c.counts[countKey{0, what, webhook}] += n
	if channel != 0 {
		c.counts[countKey{channel, what, webhook}] += n
	}
}

// later stores a time of a channel unless it has a later one.
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

// countPause is how often a node writes its counters to PostgreSQL. Every commit counts something in the same few rows, and while a
// snapshot is held, as by a dump, each commit that changes a row makes the next one slower.
const countPause = time.Second

// pendingCounting holds the counters of committed transactions that are not written yet, on PostgreSQL.
type pendingCounting struct {
	counting             // only the writer uses it
	at       time.Time   // when they were last written
	some     atomic.Bool // there are some
	wake     func()      // writes them
}

// write stores the counters of a transaction with those that are pending, or leaves both for later.
func (p *pendingCounting) write(t *sqldb.Tx, own *counting, must bool) error {
	if !t.IsPostgres() {
		return own.write(t)
	}
	if own.isEmpty() && !must {
		return nil
	}
	all := *own
	if !must && time.Since(p.at) < countPause {
		t.OnCommit(func() {
			p.counting.merge(&all)
			if !p.some.Swap(true) { // in case no transaction follows
				time.AfterFunc(countPause, p.wake)
			}
		})
		return nil
	}
	t.OnCommit(func() {
		p.counting, p.at = counting{}, time.Now()
		p.some.Store(false)
	})
	all.merge(&p.counting)
	return all.write(t)
}

// writeCounters writes the counters that are pending, unless that takes long.
func (db *DB) writeCounters(ctx context.Context) {
	if !db.pending.some.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, countPause)
	defer cancel()
	done := make(chan struct{})
	db.sql.Begin(ctx, db.writing(func(tx *Tx) error {
		tx.ending.flushes = true
		return nil
	}), func(error) { close(done) })
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// counted returns a reader of counters. It has written those that are pending.
func (db *DB) counted(ctx context.Context) Reader {
	db.writeCounters(ctx)
	return db.with(ctx)
}

func (c *counting) isEmpty() bool { return len(c.counts)+len(c.received)+len(c.confirmed) == 0 }

// write stores the counters. All nodes lock the rows in the same order, so they do not wait for each other in a circle: channels
// first, which statements before this may have locked.
func (c *counting) write(t *sqldb.Tx) error {
	for _, set := range []struct {
		statement string
		times     map[int64]int64
	}{
		{`UPDATE channel SET last_received_at = greatest(last_received_at, $1) WHERE id = $2`, c.received},
		{`UPDATE channel SET last_confirmed_at = greatest(last_confirmed_at, $1) WHERE id = $2`, c.confirmed},
	} {
		for _, channel := range slices.Sorted(maps.Keys(set.times)) {
			if err := t.Do(set.statement, set.times[channel], channel); err != nil {
				return err
			}
		}
	}
	now := time.Now().Unix()
	keys := slices.SortedFunc(maps.Keys(c.counts), countKey.compare)
	for _, into := range []struct {
		table *sqldb.Many
		start int64
	}{{&addMinutes, now / 60}, {&addHours, now / 3600}} {
		for _, k := range keys {
			if err := addCount(t, into.table, k, into.start, c.counts[k]); err != nil {
				return err
			}
		}
	}
	return nil
}

// addCount adds to a counter, together with others.
func addCount(t *sqldb.Tx, table *sqldb.Many, k countKey, start, n int64) error {
	return t.ManyThen(table, []any{k.channel, start, string(k.what), string(k.webhook), n}, new(int64))
}

// Both add to all counters of a transaction.
var addMinutes, addHours = addCounts("minute"), addCounts("hour")

func addCounts(unit string) sqldb.Many {
	table := `counter_` + unit
	insert := `INSERT INTO ` + table + ` (channel, ` + unit + `, what, webhook, n) `
	plus := ` ON CONFLICT (channel, ` + unit + `, what, webhook) DO UPDATE SET n = ` + table + `.n + excluded.n`
	return sqldb.Many{
		Insert: insert + `VALUES `, Row: `($1, $2, $3, $4, $5)`, Then: plus,
		Postgres: insert + `SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[])` + plus + ` RETURNING n`,
	}
}

// countTime counts how long something took.
func (t *Tx) countTime(channel int64, what Counter, webhook parley.WebhookID, took time.Duration) {
	if took >= 0 {
		t.ending.add(channel, what.Bucket(took), webhook, 1)
	}
}

// countAttempt counts an attempt to deliver to a webhook, and the delivery if it has finished.
func (t *Tx) countAttempt(channel int64, d *parley.Delivery) {
	t.countTime(channel, CountWebhookTook, d.Webhook, d.Took)
	if d.State == parley.DeliveryDone {
		t.ending.add(channel, CountWebhookDone, d.Webhook, 1)
		return
	}
	t.ending.add(channel, CountAttemptFailed, d.Webhook, 1)
	if d.State == parley.DeliveryFailed {
		t.ending.add(channel, CountWebhookFailed, d.Webhook, 1)
	}
}

// CountSendTimes counts how long messages of a channel took from their acceptance to the network's confirmation.
func (t *Tx) CountSendTimes(_ context.Context, code parley.ChannelCode, took []time.Duration) error {
	channel, err := t.channelID(code)
	if err != nil {
		return err
	}
	for _, d := range took {
		t.countTime(channel, CountToSent, "", d)
	}
	return nil
}

// countStatus counts messages of the history that got a status. Why they failed is empty otherwise.
func (t *Tx) countStatus(all []statusRow, to parley.Status, why parley.FailureCode, at time.Time) {
	for _, s := range all {
		if !s.inHistory {
			continue
		}
		switch to {
		case parley.Sent:
			t.ending.add(s.channel, CountSent, "", 1)
		case parley.Delivered:
			t.ending.add(s.channel, CountDelivered, "", 1)
			if s.secret {
				t.ending.add(s.channel, CountCodesDelivered, "", 1)
			}
			if s.created != 0 {
				t.countTime(s.channel, CountToDelivered, "", at.Sub(moment(s.created)))
			}
		case parley.Read:
			if !s.fromMe { // read by the channel
				continue
			}
			t.ending.add(s.channel, CountRead, "", 1)
		case parley.Failed:
			t.ending.add(s.channel, CountFailed, "", 1)
			if why != "" {
				t.ending.add(s.channel, CountFailedFor(why), "", 1)
			}
			continue
		default:
			continue
		}
		later(&t.ending.confirmed, s.channel, millis(at))
	}
}

// Counters sums the counters since a time, over all channels.
func (db *DB) Counters(ctx context.Context, since time.Time) (map[Counter]int64, error) {
	// Whole hours, and the minutes before the first of them.
	hour := (since.Unix() + 3599) / 3600
	sums := map[Counter]int64{}
	err := each(db.counted(ctx), `SELECT what, sum(n) FROM (
		SELECT what, n FROM counter_hour WHERE channel = 0 AND hour >= $1
		UNION ALL SELECT what, n FROM counter_minute WHERE channel = 0 AND minute >= $2 AND minute < $3) AS all_counts GROUP BY what`,
		[]any{hour, since.Unix() / 60, 60 * hour}, func(row scanner) error {
			var what Counter
			var n int64
			err := row.Scan(&what, &n)
			sums[what] = n
			return err
		})
	return sums, err
}

// WebhookCounters sums the counters of each webhook since a time.
func (db *DB) WebhookCounters(ctx context.Context, since time.Time) (map[parley.WebhookID]map[Counter]int64, error) {
	since = since.Truncate(minuteSum * time.Minute) // its minutes are summed up
	hour := (since.Unix() + 3599) / 3600
	sums := map[parley.WebhookID]map[Counter]int64{}
	err := each(db.counted(ctx), `SELECT webhook, what, sum(n) FROM (
		SELECT webhook, what, n FROM counter_hour WHERE channel = 0 AND hour >= $1 AND webhook <> ''
		UNION ALL SELECT webhook, what, n FROM counter_minute WHERE channel = 0 AND minute >= $2 AND minute < $3 AND webhook <> '')
		AS all_counts GROUP BY webhook, what`,
		[]any{hour, since.Unix() / 60, 60 * hour}, func(row scanner) error {
			var webhook parley.WebhookID
			var what Counter
			var n int64
			err := row.Scan(&webhook, &what, &n)
			if sums[webhook] == nil {
				sums[webhook] = map[Counter]int64{}
			}
			sums[webhook][what] = n
			return err
		})
	return sums, err
}

// CounterSteps sums the counters of each step of time since q.From. Steps are numbered from 0.
func (db *DB) CounterSteps(ctx context.Context, q CounterQuery) (map[int64]map[Counter]int64, error) {
	table, unit, seconds := "counter_minute", "minute", int64(60)
	if q.Step >= time.Hour {
		table, unit, seconds = "counter_hour", "hour", 3600
	}
	args := []any{q.From.Unix() / seconds, int64(q.Step.Seconds()) / seconds}
	channel, webhook := "0", ""
	if q.Channel != "" {
		args = append(args, string(q.Channel))
		channel = fmt.Sprintf("(SELECT id FROM channel WHERE code = $%d)", len(args))
	}
	if q.Webhook != "" {
		args = append(args, string(q.Webhook))
		webhook = fmt.Sprintf(" AND webhook = $%d", len(args))
	}
	steps := map[int64]map[Counter]int64{}
	err := each(db.counted(ctx), `SELECT (`+unit+` - $1) / $2 AS step, what, sum(n) FROM `+table+`
		WHERE channel = `+channel+` AND `+unit+` >= $1`+webhook+` GROUP BY 1, 2`, args, func(row scanner) error {
		var step, n int64
		var what Counter
		err := row.Scan(&step, &what, &n)
		if steps[step] == nil {
			steps[step] = map[Counter]int64{}
		}
		steps[step][what] = n
		return err
	})
	return steps, err
}

// PendingByChannel counts the messages of each channel that wait to be sent, also those of other nodes.
func (r Reader) PendingByChannel(ctx context.Context) (map[parley.ChannelCode]int, error) {
	counts := map[parley.ChannelCode]int{}
	err := each(r.with(ctx), `SELECT code, n FROM (SELECT channel, count(*) AS n FROM message INDEXED BY message_pending
		WHERE status = 0 GROUP BY channel) AS pending JOIN channel ON channel.id = pending.channel`, nil, func(row scanner) error {
		var code parley.ChannelCode
		var n int
		err := row.Scan(&code, &n)
		counts[code] = n
		return err
	})
	return counts, err
}

// ChannelActivity reads the recent activity of channels.
func (db *DB) ChannelActivity(
	ctx context.Context, since time.Time, codes []parley.ChannelCode,
) (map[parley.ChannelCode]ChannelActivity, error) {
	all := map[parley.ChannelCode]ChannelActivity{}
	_, err := listIn(db.counted(ctx), `SELECT code, last_received_at, last_confirmed_at,
		coalesce((SELECT sum(n) FROM counter_hour WHERE counter_hour.channel = channel.id AND hour >= $1 AND what = $2), 0),
		coalesce((SELECT sum(n) FROM counter_hour WHERE counter_hour.channel = channel.id AND hour >= $1 AND what = $3), 0)
		FROM channel WHERE code IN `, ``, []any{since.Unix() / 3600, string(CountSent), string(CountFailed)}, texts(codes),
		func(row scanner) (struct{}, error) {
			var code parley.ChannelCode
			var a ChannelActivity
			var received, confirmed int64
			err := row.Scan(&code, &received, &confirmed, &a.Sent, &a.Failed)
			a.ReceivedAt, a.ConfirmedAt = moment(received), moment(confirmed)
			all[code] = a
			return struct{}{}, err
		})
	return all, err
}

// PurgeCounters deletes up to limit old counters of minutes and as many of hours, and sums up as many that are not as old. It reports
// whether there may be more.
func (t *Tx) PurgeCounters(_ context.Context, now time.Time, limit int) (more bool, err error) {
	minutes, err := t.sql.Exec(`DELETE FROM counter_minute WHERE (channel, minute, what, webhook) IN
		(SELECT channel, minute, what, webhook FROM counter_minute WHERE minute < $1 LIMIT $2)`,
		now.Add(-minuteLife).Unix()/60, int64(limit))
	if err != nil {
		return false, err
	}
	hours, err := t.sql.Exec(`DELETE FROM counter_hour WHERE (channel, hour, what, webhook) IN
		(SELECT channel, hour, what, webhook FROM counter_hour WHERE hour < $1 LIMIT $2)`, now.Add(-hourLife).Unix()/3600, int64(limit))
	if err != nil {
		return false, err
	}
	for _, s := range []struct {
		remove     string
		add        *sqldb.Many
		before, by int64
	}{
		{removeMinutes, &addMinutes, now.Add(-exactMinutes).Unix() / 60, minuteSum},
		{removeHours, &addHours, now.Add(-exactHours).Unix() / 3600, hourSum},
	} {
		left := limit
		for step := int64(1); step <= sumSteps && left > 0; step++ {
			n, err := t.sumUp(s.remove, s.add, (s.before/s.by-step)*s.by, s.by, left)
			if err != nil {
				return false, err
			}
			left -= n
		}
		more = more || left == 0
	}
	return more || max(minutes, hours) == int64(limit), nil
}

// sumSteps is how many steps are looked at for what is not summed up. It happens every minute, and what it misses while no server runs is
// deleted when it is old.
const sumSteps = 6

// They delete counters within one step of minutes or hours. Those of all channels together are few, and stay.
const (
	removeMinutes = `DELETE FROM counter_minute WHERE (channel, minute, what, webhook) IN (SELECT channel, minute, what, webhook
		FROM counter_minute WHERE minute > $1 AND minute < $2 AND (channel <> 0 OR webhook <> '') LIMIT $3)
		RETURNING channel, what, webhook, n`
	removeHours = `DELETE FROM counter_hour WHERE (channel, hour, what, webhook) IN (SELECT channel, hour, what, webhook
		FROM counter_hour WHERE hour > $1 AND hour < $2 AND (channel <> 0 OR webhook <> '') LIMIT $3)
		RETURNING channel, what, webhook, n`
)

// sumUp adds up to limit counters of a step to those of its beginning, and returns how many.
func (t *Tx) sumUp(remove string, add *sqldb.Many, begin, by int64, limit int) (removed int, err error) {
	sums := map[countKey]int64{}
	err = each(t.Reader, remove, []any{begin, begin + by, int64(limit)}, func(row scanner) error {
		var k countKey
		var n int64
		err := row.Scan(&k.channel, &k.what, &k.webhook, &n)
		sums[k] += n
		removed++
		return err
	})
	for k, n := range sums {
		if err == nil {
			err = addCount(t.sql, add, k, begin, n)
		}
	}
	return removed, err
}
