package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// eventLog is what the writer knows of the event log, and who waits for it to grow.
type eventLog struct {
	number uint32

	// The writer's own.
	last  int64    // the newest seq that was ever given, committed or not
	batch int64    // the transaction that fresh belongs to
	fresh []logged // events that are to be written before it is committed
	row   []entry  // used again for every row

	mu    sync.Mutex
	added chan struct{} // closed when events were committed; nil: nobody waits
}

// startLog finds out how far the log is.
func (db *DB) startLog() error {
	var err error
	db.log.last, err = db.LastEvent(context.Background())
	return errors.Join(err, db.row(`SELECT number FROM log`, nil, &db.log.number))
}

// EventAdded returns a channel that is closed when this process next adds to the event log.
func (db *DB) EventAdded() <-chan struct{} {
	db.log.mu.Lock()
	defer db.log.mu.Unlock()
	if db.log.added == nil {
		db.log.added = make(chan struct{})
	}
	return db.log.added
}

func (l *eventLog) tell() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.added != nil {
		close(l.added)
		l.added = nil
	}
}

// AddEvent adds an event to the log.
func (t *tx) AddEvent(_ context.Context, e *parley.Event) error {
	one := entry{kind: e.Type, at: millis(e.At), chat: e.Chat, data: e.Data}
	if e.Message != nil {
		one.message, one.status, one.chat = e.Message.Seq, e.Message.Status, ""
	}
	if err := t.log(e.Channel, []entry{one}, e.Sealed); err != nil {
		return err
	}
	e.Seq = t.db.log.last
	e.ID = parley.NewEventID(e.At, t.db.log.number, e.Seq)
	if e.Type == parley.ChannelStatusChanged {
		return t.keepState(e)
	}
	return nil
}

// logged are events of one channel that were added together and have seqs without a gap.
type logged struct {
	first   int64
	channel parley.ChannelCode
	entries []entry
	sealed  []byte
}

// log adds events of one channel, in order.
func (t *tx) log(channel parley.ChannelCode, entries []entry, sealed []byte) error {
	if len(entries) == 0 {
		return nil
	}
	if len(t.logged) == 0 {
		t.OnCommit(t.db.log.tell)
	}
	t.logged = append(t.logged, logged{t.db.log.last + 1, channel, entries, sealed})
	t.db.log.last += int64(len(entries))
	return nil
}

// take takes the events of one caller, whose part of the transaction is done.
func (l *eventLog) take(batch int64, events []logged) {
	if len(events) == 0 {
		return
	}
	if l.batch != batch { // what is there is of a transaction that was not committed
		l.batch, l.fresh = batch, l.fresh[:0]
	}
	l.fresh = append(l.fresh, events...)
}

// discard drops the events of a deleted channel that others added in the same transaction.
func (l *eventLog) discard(batch int64, channel parley.ChannelCode) {
	if l.batch == batch {
		l.fresh = slices.DeleteFunc(l.fresh, func(e logged) bool { return e.channel == channel })
	}
}

// writeLog writes the events of all callers of a transaction. Those of one channel that follow each
// other become one row.
func (db *DB) writeLog(t *sqldb.Tx) error {
	l := &db.log
	if l.batch != t.Batch {
		return nil
	}
	for rest := l.fresh; len(rest) > 0; {
		row := rest[0]
		l.row = append(l.row[:0], row.entries...)
		row.entries = l.row
		n := 1
		for ; n < len(rest) && rest[n].follows(row); n++ {
			l.row = append(l.row, rest[n].entries...)
			row.entries = l.row
		}
		if err := row.write(t); err != nil {
			return err
		}
		rest = rest[n:]
	}
	clear(l.fresh)
	l.fresh = l.fresh[:0]
	return nil
}

// follows reports whether the events can stand in one row with those before them.
func (e logged) follows(before logged) bool {
	return e.channel == before.channel && e.sealed == nil && before.sealed == nil && e.first == before.first+int64(len(before.entries))
}

func (e logged) write(t *sqldb.Tx) error {
	since := e.entries[0].at
	for _, one := range e.entries[1:] {
		since = min(since, one.at)
	}
	packed := make([]byte, 0, 8*len(e.entries))
	for _, one := range e.entries {
		packed = appendEntry(packed, one, since)
	}
	var sealed any // NULL
	if e.sealed != nil {
		sealed = e.sealed
	}
	_, err := t.Exec(`INSERT INTO event (seq, count, channel, at, entries, sealed) VALUES ($1, $2, $3, $4, $5, $6)`,
		e.first+int64(len(e.entries))-1, int64(len(e.entries)), string(e.channel), since, packed, sealed)
	return err
}

// moved makes the entries of messages that got another status. One that jumps over Sent was sent too.
func moved(entries []entry, seq int64, from, to parley.Status, at time.Time) []entry {
	e := entry{kind: parley.MessageStatus, at: millis(at), message: seq, status: to}
	switch to {
	case parley.Deleted:
		e.kind = parley.MessageDeleted
	case parley.Delivered, parley.Read, parley.Played:
		if from == parley.Pending {
			sent := e
			sent.status = parley.Sent
			entries = append(entries, sent)
		}
	}
	return append(entries, e)
}

// logRow is a row of the log.
type logRow struct {
	seq, count, at  int64
	channel         parley.ChannelCode
	entries, sealed []byte
}

const logColumns = `seq, count, at, channel, entries, sealed`

func scanLog(row scanner) (r logRow, err error) {
	err = row.Scan(&r.seq, &r.count, &r.at, &r.channel, &r.entries, &r.sealed)
	return r, err
}

// Events reads the log after a place, in order.
func (r reader) Events(ctx context.Context, after int64, filter parley.EventFilter, limit int) ([]parley.Event, int64, error) {
	r = r.with(ctx)
	var found []parley.Event
	reached := after
	for len(found) < limit {
		rows, err := list(r, `SELECT `+logColumns+` FROM event WHERE seq > $1 ORDER BY seq LIMIT $2`, []any{reached, int64(limit)}, scanLog)
		if err != nil {
			return nil, 0, err
		}
		for _, row := range rows {
			if found, err = r.unpack(found, row, max(after, reached), filter); err != nil {
				return nil, 0, err
			}
			if reached = row.seq; len(found) >= limit {
				break
			}
		}
		if len(rows) < limit {
			break
		}
	}
	found, err := r.addMessages(found)
	return found, reached, err
}

// unpack appends the events of a row that come after a place and that the filter wants.
func (r reader) unpack(found []parley.Event, row logRow, after int64, filter parley.EventFilter) ([]parley.Event, error) {
	err := row.each(func(seq int64, one entry) {
		if seq <= after {
			return
		}
		if e := row.event(seq, one); filter.Wants(&e) {
			found = append(found, e)
		}
	})
	return found, err
}

// event is what an entry of a row tells, of the message only its number and its status then.
func (r *logRow) event(seq int64, one entry) parley.Event {
	e := parley.Event{Seq: seq, Type: one.kind, Channel: r.channel, At: moment(one.at), Chat: one.chat, Data: one.data, Sealed: r.sealed}
	if one.message != 0 {
		e.Message = &parley.Message{Seq: one.message, Status: one.status}
	}
	return e
}

// each visits the entries of a row with their seqs.
func (r *logRow) each(visit func(seq int64, e entry)) error {
	rest := r.entries
	for seq := r.seq - r.count + 1; seq <= r.seq; seq++ {
		var one entry
		var err error
		if one, rest, err = nextEntry(rest, r.at); err != nil {
			return fmt.Errorf("event %d: %w", seq, err)
		}
		visit(seq, one)
	}
	return nil
}

var messagesBySeq = inMany(`SELECT `+messageColumns+` FROM message `+besides+` WHERE message.seq IN `, 1)

// addMessages fills in the ids of events, and the messages that they are about. Events of messages
// that are gone, or that are no records, are left out.
func (r reader) addMessages(events []parley.Event) ([]parley.Event, error) {
	if len(events) == 0 {
		return nil, nil
	}
	var number uint32
	if err := r.row(`SELECT number FROM log`, nil, &number); err != nil {
		return nil, err
	}
	bySeq := map[int64]*parley.Message{}
	for i := range events {
		if m := events[i].Message; m != nil {
			bySeq[m.Seq] = nil
		}
	}
	seqs := make([]int64, 0, len(bySeq))
	for seq := range bySeq {
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	if err := r.readMessages(seqs, bySeq); err != nil {
		return nil, err
	}
	kept := events[:0]
	for _, e := range events {
		e.ID = parley.NewEventID(e.At, number, e.Seq)
		if e.Message != nil {
			m := bySeq[e.Message.Seq]
			if m == nil || !m.Content.Kind().IsRecord() {
				continue
			}
			then := *m
			then.Status = e.Message.Status
			if then.Status != parley.FailedForGood {
				then.Failure = nil
			}
			e.Message, e.Chat = &then, m.Chat
		}
		kept = append(kept, e)
	}
	return kept, nil
}

func (r reader) readMessages(seqs []int64, bySeq map[int64]*parley.Message) error {
	for some := range slices.Chunk(seqs, atOnce) {
		messages, err := list(r, messagesBySeq[len(some)], withSeqs(some), scanMessage)
		if err != nil {
			return err
		}
		for i := range messages {
			bySeq[messages[i].Seq] = &messages[i]
		}
		reactions, err := r.conn.Query(reactionsBySeq[len(some)], withSeqs(some)...)
		if err != nil {
			return err
		}
		for reactions.Next() {
			var seq int64
			var emoji string
			if err := reactions.Scan(&seq, &emoji); err != nil {
				reactions.Close()
				return err
			}
			if m := bySeq[seq]; m != nil {
				m.Reactions = append(m.Reactions, emoji)
			}
		}
		err = reactions.Err()
		reactions.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

var reactionsBySeq = forMany(`SELECT seq, emoji FROM reaction WHERE seq IN (`, 1, 1, place, `) ORDER BY seq, contact`)

// EventsAt reads the events at some places, in order. Those that are not there any more are left out. A row of
// the log is read once for all that it holds of them.
func (r reader) EventsAt(ctx context.Context, seqs []int64) ([]parley.Event, error) {
	r = r.with(ctx)
	var found []parley.Event
	for wanted := slices.Compact(slices.Sorted(slices.Values(seqs))); len(wanted) > 0; {
		row, err := one(r, `SELECT `+logColumns+` FROM event WHERE seq >= $1 ORDER BY seq LIMIT 1`, []any{wanted[0]}, scanLog)
		if err == parley.ErrNotFound {
			break
		}
		if err != nil {
			return nil, err
		}
		err = row.each(func(seq int64, one entry) {
			for len(wanted) > 0 && wanted[0] < seq { // it is gone
				wanted = wanted[1:]
			}
			if len(wanted) > 0 && wanted[0] == seq {
				found = append(found, row.event(seq, one))
				wanted = wanted[1:]
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return r.addMessages(found)
}

// LastEvent is the place of the newest event.
func (r reader) LastEvent(ctx context.Context) (int64, error) {
	r = r.with(ctx)
	var removed, last int64
	err := r.row(`SELECT seq, coalesce((SELECT max(seq) FROM event), 0) FROM log`, nil, &removed, &last)
	return max(removed, last), err
}

// LastEvent is the place of the newest event, of this transaction too.
func (t *tx) LastEvent(ctx context.Context) (int64, error) {
	last, err := t.reader.LastEvent(ctx)
	return max(last, t.db.log.last), err
}

// ForgetEvents removes rows of the log from before a time.
func (t *tx) ForgetEvents(_ context.Context, before time.Time, limit int) (int, error) {
	if err := t.keepPlace(); err != nil {
		return 0, err
	}
	n, err := t.count(`DELETE FROM event WHERE seq IN (SELECT seq FROM event WHERE at < $1 ORDER BY at LIMIT $2)`, millis(before), int64(limit))
	if err != nil {
		return 0, err
	}
	return int(n), t.forgetStates(before)
}

// keepPlace keeps the newest place from being given again when the events at the end are removed. Another
// process may know of a newer one.
func (t *tx) keepPlace() error {
	last, err := t.LastEvent(context.Background())
	if err != nil {
		return err
	}
	_, err = t.Exec(`UPDATE log SET seq = $1 WHERE seq < $1`, last)
	return err
}

// ForgetSealed removes the encrypted texts from before a time.
func (t *tx) ForgetSealed(_ context.Context, before time.Time) error {
	_, err := t.Exec(`UPDATE event SET sealed = NULL WHERE sealed IS NOT NULL AND at < $1`, millis(before))
	return err
}
