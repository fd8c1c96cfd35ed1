package store

import (
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// ending is what a transaction, or one caller's part of it, writes at its end: the rows that all nodes write. Each commit locks them in
// one order (the revision, counters, the log) and, because nothing follows but the commit, for a round trip.
type ending struct {
	counting
	changes []change
	flushes bool  // counters of earlier transactions must be written too
	removed int64 // events up to this seq are removed; 0: no more than before
	events  []newEvent
	stored  []func() error // see WhenStored
	after   []func() error // what needs the seqs of the events
}

// newEvent is an event that is not in the log yet.
type newEvent struct {
	channel, number, at, message int64
	about                        *parley.Message // if it has no seq until the end; nil: message is its seq, 0: it is about none
	status                       parley.Status
	contact                      parley.ContactID
	data, encrypted              []byte
	seq                          int64
	event                        *parley.Event // that gets the seq; nil: none does
}

// merge adds what a caller left to do to that of its transaction.
func (e *ending) merge(own *ending) {
	e.counting.merge(&own.counting)
	e.changes, e.flushes, e.removed = append(e.changes, own.changes...), e.flushes || own.flushes, max(e.removed, own.removed)
	e.events = append(e.events, own.events...)
	e.stored = append(e.stored, own.stored...)
	e.after = append(e.after, own.after...)
}

// batchEnding is the ending of the current transaction. Only the writer uses it.
type batchEnding struct {
	batch int64 // the number of the transaction
	ending
}

// of returns the ending of a transaction. That of a rolled back one is dropped.
func (b *batchEnding) of(batch int64) *ending {
	if b.batch != batch {
		*b = batchEnding{batch: batch}
	}
	return &b.ending
}

// WhenStored calls do at the end of the transaction, when a message of [Tx.ReceiveMessage] has its seq, unless it was stored before.
// Only the database may make do fail: it would fail other callers.
func (t *Tx) WhenStored(m *parley.Message, do func() error) {
	t.ending.stored = append(t.ending.stored, func() error {
		if m.Seq == 0 {
			return nil
		}
		return do()
	})
}

// beforeCommit ends a transaction.
func (db *DB) beforeCommit(t *sqldb.Tx) error {
	e := db.ending.of(t.Batch)
	defer func() { *e = ending{} }()
	if err := e.awaitMessages(t); err != nil {
		return err
	}
	if len(e.changes) > 0 {
		if db.onChanges != nil {
			t.OnCommit(db.onChanges)
		}
		if err := e.revise(t); err != nil {
			return err
		}
	}
	if err := db.pending.write(t, &e.counting, e.flushes); err != nil {
		return err
	}
	if e.removed == 0 && len(e.events) == 0 {
		return nil
	}
	if t.IsPostgres() { // before the row, so that two transactions do not wait for each other
		if err := t.Do(lockLog); err != nil {
			return err
		}
	}
	if e.removed > 0 {
		if err := t.Do(`UPDATE log SET removed_to = greatest(removed_to, $1)`, e.removed); err != nil {
			return err
		}
	}
	if len(e.events) == 0 {
		return nil
	}
	t.OnCommit(db.eventsAdded)
	if held := db.onLogHeld; held != nil && t.IsPostgres() {
		began := time.Now()
		t.OnCommit(func() { held(time.Since(began)) })
	}
	return e.addEvents(t, db)
}

// awaitMessages waits for the seqs of messages and drops the events of those that were stored before.
func (e *ending) awaitMessages(t *sqldb.Tx) error {
	waits := len(e.stored) > 0
	for _, n := range e.events {
		waits = waits || n.about != nil && n.about.Seq == 0
	}
	if waits {
		if err := t.Flush(); err != nil {
			return err
		}
	}
	for _, do := range e.stored {
		if err := do(); err != nil {
			return err
		}
	}
	events := e.events[:0]
	for _, n := range e.events {
		if n.about != nil {
			if n.message = n.about.Seq; n.message == 0 {
				continue
			}
		}
		if eventNumbers[n.number-1] == parley.MessageReceived {
			e.counting.add(n.channel, CountReceived, "", 1)
			later(&e.counting.received, n.channel, n.at)
		}
		events = append(events, n)
	}
	e.events = events
	return nil
}

// addEvents adds the events to the log.
func (e *ending) addEvents(t *sqldb.Tx, db *DB) error {
	now := db.now()
	for i := range e.events {
		n := &e.events[i]
		args := []any{n.channel, n.number, n.at, now, n.message, int64(n.status), string(n.contact), nullableText(n.data),
			append([]byte{}, n.encrypted...)}
		if err := t.ManyThen(&addEvents, args, &n.seq); err != nil {
			return err
		}
	}
	events := e.events
	name := func() {
		for _, n := range events {
			if n.event != nil {
				n.event.Seq, n.event.ID = n.seq, parley.NewEventID(n.event.At, db.logNumber, n.seq)
			}
		}
	}
	if len(e.after) == 0 {
		t.OnCommit(name)
		return nil
	}
	if err := t.Flush(); err != nil {
		return err
	}
	name()
	for _, do := range e.after {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

const (
	// lockLog makes the seqs of events follow the order of the commits of all nodes. The lock of a table leaves no old versions of a row
	// behind, which a long snapshot would make every commit read.
	lockLog = "LOCK TABLE log IN EXCLUSIVE MODE"

	eventColumns = `channel, type, at, received_at, message, status, contact, data, encrypted`
)

var addEvents = sqldb.Many{
	Insert: `INSERT INTO event (` + eventColumns + `) VALUES `,
	Row:    `($1, $2, $3, $4, CASE WHEN $5 <> 0 THEN $5 END, $6, $7, $8, CASE WHEN $9 <> x'' THEN $9 END)`,
	Postgres: `INSERT INTO event (` + eventColumns + `)
		SELECT channel, type, at, received_at, nullif(message, 0), status, contact, data, nullif(encrypted, '')
		FROM unnest($1::bigint[], $2::bigint[], $3::bigint[],
			$4::bigint[], $5::bigint[], $6::bigint[], $7::text[], $8::text[], $9::bytea[])
		WITH ORDINALITY AS given (` + eventColumns + `, n) ORDER BY n RETURNING seq`,
}
