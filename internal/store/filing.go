package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley"
)

// A send stores one row, which is all that must be durable. What is needed to find the message later
// (by its place in the chat, as pending) would touch more trees, each at another page. So messages are filed a moment later, many at a time, in the order in which they were taken,
// and always before anybody looks. By then most are sent and need no place in the queue. What is not
// filed when the process dies is filed by the next one: everything after the mark.
const (
	fileAtOnce = 512                    // so many in one transaction, so that no caller waits long behind them
	fileAfter  = 300 * time.Millisecond // most messages are sent and delivered by then
)

// filing knows what is filed.
type filing struct {
	one     chan struct{} // holds one while messages are filed
	newest  atomic.Int64  // the newest message
	mark    atomic.Int64  // the newest that is filed
	enough  chan struct{} // holds one: many wait
	closing context.Context
	done    sync.WaitGroup

	// The writer's own.
	reached int64    // how far filing ever got, committed or not
	began   int64    // the newest message when this process began
	recent  []record // those that came since and are not filed, in order
}

// add takes note of messages that were committed.
func (f *filing) add(newest int64) {
	f.newest.Store(max(f.newest.Load(), newest)) // only the writer calls it
	if f.newest.Load()-f.mark.Load() >= fileAtOnce {
		select {
		case f.enough <- struct{}{}:
		default:
		}
	}
}

// fileInTime files whenever many messages wait, until the store is closed.
func (db *DB) fileInTime() {
	for {
		select {
		case <-db.filing.enough:
		case <-db.filing.closing.Done():
			return
		}
		upTo := db.filing.newest.Load()
		timer := time.NewTimer(fileAfter)
		select {
		case <-timer.C:
		case <-db.filing.closing.Done():
			timer.Stop()
			return
		}
		db.fileUpTo(db.filing.closing, upTo) // whoever reads next tries again, and sees why
	}
}

// file files everything.
func (db *DB) file(ctx context.Context) error { return db.fileUpTo(ctx, db.filing.newest.Load()) }

func (db *DB) fileUpTo(ctx context.Context, upTo int64) error {
	if db.filing.mark.Load() >= upTo {
		return nil
	}
	select {
	case db.filing.one <- struct{}{}:
		defer func() { <-db.filing.one }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for more := true; more; {
		var err error
		if more, err = db.fileSome(ctx, upTo); err != nil {
			return err
		}
	}
	return nil
}

// fileSome files the next messages in one transaction. It does not wait for that longer than ctx allows: the
// transaction then ends by itself, and the next caller finds out how far it got.
func (db *DB) fileSome(ctx context.Context, upTo int64) (more bool, err error) {
	type outcome struct {
		more bool
		err  error
	}
	done := make(chan outcome, 1)
	var left bool // of the writer until done
	db.Begin(ctx, func(t parley.Tx) (err error) {
		left, err = t.(*tx).file(upTo)
		return err
	}, func(err error) { done <- outcome{left, err} })
	select {
	case o := <-done:
		return o.more, o.err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// fileAll files everything, inside a transaction.
func (t *tx) fileAll() error {
	for {
		if more, err := t.file(math.MaxInt64); err != nil || !more {
			return err
		}
	}
}

// file files the next messages, up to one, and reports whether there may be more.
func (t *tx) file(upTo int64) (more bool, err error) {
	var mark int64
	if err := t.row(`SELECT seq FROM filed`, nil, &mark); err != nil {
		return false, err
	}
	last, records, err := t.unfiled(mark, upTo)
	if err != nil {
		return false, err
	}
	if last == mark { // another process may have filed them
		t.setMark(mark)
		return false, nil
	}
	if _, err := t.Exec(filePending, mark, last); err != nil {
		return false, err
	}
	if err := t.fileRecords(records); err != nil {
		return false, err
	}
	t.setMark(last)
	return last < upTo, t.change(`UPDATE filed SET seq = $1`, last)
}

// setMark takes note of how far messages are filed.
func (t *tx) setMark(mark int64) {
	f := &t.db.filing
	f.reached = max(f.reached, mark)
	t.OnCommit(func() {
		f.mark.Store(mark)
		f.recent = slices.Delete(f.recent, 0, f.place(mark+1))
	})
}

// filePending puts those messages into the queue that are still to be sent.
const filePending = `INSERT INTO queue (channel, seq) SELECT channel, seq FROM message
	WHERE seq > $1 AND seq <= $2 AND from_me = 1 AND NOT EXISTS (SELECT 1 FROM status WHERE status.seq = message.seq)`

// record is a message that gets a place in its chat.
type record struct{ seq, chat, createdAt int64 }

// unfiled returns the next records to file after the mark, and how far they go: to the mark where
// nothing is left.
func (t *tx) unfiled(mark, upTo int64) (last int64, records []record, err error) {
	f := &t.db.filing
	if mark >= upTo {
		return mark, nil, nil
	}
	if mark >= f.began && upTo <= f.newest.Load() { // committed by this process: all are in memory
		from, to := f.place(mark+1), f.place(upTo+1)
		if to-from <= fileAtOnce {
			return upTo, slices.Clone(f.recent[from:to]), nil
		}
		records = slices.Clone(f.recent[from : from+fileAtOnce])
		return records[fileAtOnce-1].seq, records, nil
	}
	var count int64
	err = t.row(`SELECT coalesce(max(seq), 0), count(*) FROM
		(SELECT seq FROM message WHERE seq > $1 AND seq <= $2 ORDER BY seq LIMIT $3) AS next`, []any{mark, upTo, int64(fileAtOnce)}, &last, &count)
	if err != nil || count == 0 {
		return mark, nil, err
	}
	records, err = list(t.reader, `SELECT seq, chat, created_at FROM message WHERE seq > $1 AND seq <= $2 AND `+isRecord+` ORDER BY seq`,
		[]any{mark, last}, func(row scanner) (r record, err error) { return r, row.Scan(&r.seq, &r.chat, &r.createdAt) })
	return last, records, err
}

// place returns where in recent the records from a seq on begin.
func (f *filing) place(seq int64) int {
	i, _ := slices.BinarySearchFunc(f.recent, seq, func(r record, seq int64) int { return cmp.Compare(r.seq, seq) })
	return i
}

// fileRecords gives records their places, each after those that its chat has. Numbering them in the
// database would cost twice as much.
func (t *tx) fileRecords(records []record) (err error) {
	slices.SortStableFunc(records, func(a, b record) int { return cmp.Compare(a.chat, b.chat) }) // chat by chat, still in order
	places := make([]any, 0, 3*len(records))
	for len(records) > 0 {
		n := slices.IndexFunc(records, func(r record) bool { return r.chat != records[0].chat })
		if n < 0 {
			n = len(records)
		}
		if places, err = t.countRecords(places, records[:n]); err != nil {
			return err
		}
		records = records[n:]
	}
	for some := range slices.Chunk(places, 3*atOnce) {
		if _, err := t.Exec(placeMany[len(some)/3], some...); err != nil {
			return err
		}
	}
	return nil
}

// countRecords counts records of one chat and appends their places.
func (t *tx) countRecords(places []any, records []record) ([]any, error) {
	chat, newest := records[0].chat, records[0].createdAt
	for _, r := range records {
		newest = max(newest, r.createdAt)
	}
	var messages int64
	err := t.row(`UPDATE chat SET messages = messages + $1, last_at = CASE WHEN last_at > $2 THEN last_at ELSE $2 END WHERE id = $3 RETURNING messages`,
		[]any{int64(len(records)), newest, chat}, &messages)
	if err == parley.ErrNotFound { // it was removed meanwhile, and so has no places
		return places, nil
	}
	if err != nil {
		return nil, err
	}
	for i, r := range records {
		places = append(places, chat, messages-int64(len(records)-1-i), r.seq)
	}
	return places, nil
}

var placeMany = forMany(`INSERT INTO history (chat, ordinal, seq) VALUES `, 1, 3, triple, "")

// isRecord is parley.Kind.IsRecord.
const isRecord = `kind IN ('text', 'image', 'video', 'file', 'voice', 'location', 'poll')`

// What must be found is looked for after filing: by anybody, and inside a transaction.

// fileWait is how long a reader waits for messages to be filed: as long as a write may take before the writer counts as
// stuck.
const fileWait = 10 * time.Second

// fileIfPossible files before somebody reads. If the database cannot be written to now, or not in time, what
// is filed can be read all the same.
func (db *DB) fileIfPossible(ctx context.Context) error {
	if db.filing.mark.Load() >= db.filing.newest.Load() {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, fileWait)
	defer cancel()
	err := db.file(limited)
	if parley.CodeOf(err) == parley.Unavailable || err != nil && limited.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

// Queue lists what a channel still has to send: by priority, then as they were accepted.
func (db *DB) Queue(ctx context.Context, channel parley.ChannelCode) ([]parley.Queued, error) {
	if err := db.file(ctx); err != nil {
		return nil, err
	}
	return db.reader.Queue(ctx, channel)
}

// History reads a chat's records, newest first, with their reactions, and how many there are.
func (db *DB) History(ctx context.Context, channel parley.ChannelCode, chat parley.ContactID, page parley.Page) ([]parley.Message, int64, error) {
	if err := db.fileIfPossible(ctx); err != nil {
		return nil, 0, err
	}
	return db.reader.History(ctx, channel, chat, page)
}

// Chats lists a channel's chats, newest first, and how many there are.
func (db *DB) Chats(ctx context.Context, channel parley.ChannelCode, page parley.Page) ([]parley.Chat, int64, error) {
	if err := db.fileIfPossible(ctx); err != nil {
		return nil, 0, err
	}
	return db.reader.Chats(ctx, channel, page)
}

// Chat finds a chat.
func (db *DB) Chat(ctx context.Context, channel parley.ChannelCode, chat parley.ContactID) (parley.Chat, error) {
	if err := db.fileIfPossible(ctx); err != nil {
		return parley.Chat{}, err
	}
	return db.reader.Chat(ctx, channel, chat)
}

// KnowsContact reports whether a contact is known to a channel.
func (db *DB) KnowsContact(ctx context.Context, channel parley.ChannelCode, contact parley.ContactID) (bool, error) {
	if err := db.fileIfPossible(ctx); err != nil {
		return false, err
	}
	return db.reader.KnowsContact(ctx, channel, contact)
}

// LastChannelWith returns the channel among those given that last exchanged a message with the contact.
func (db *DB) LastChannelWith(ctx context.Context, contact parley.ContactID, among []parley.ChannelCode) (parley.ChannelCode, error) {
	if err := db.fileIfPossible(ctx); err != nil {
		return "", err
	}
	return db.reader.LastChannelWith(ctx, contact, among)
}

func (t *tx) Queue(ctx context.Context, channel parley.ChannelCode) ([]parley.Queued, error) {
	if err := t.fileAll(); err != nil {
		return nil, err
	}
	return t.reader.Queue(ctx, channel)
}

func (t *tx) History(ctx context.Context, channel parley.ChannelCode, chat parley.ContactID, page parley.Page) ([]parley.Message, int64, error) {
	if err := t.fileAll(); err != nil {
		return nil, 0, err
	}
	return t.reader.History(ctx, channel, chat, page)
}

func (t *tx) Chats(ctx context.Context, channel parley.ChannelCode, page parley.Page) ([]parley.Chat, int64, error) {
	if err := t.fileAll(); err != nil {
		return nil, 0, err
	}
	return t.reader.Chats(ctx, channel, page)
}

func (t *tx) Chat(ctx context.Context, channel parley.ChannelCode, chat parley.ContactID) (parley.Chat, error) {
	if err := t.fileAll(); err != nil {
		return parley.Chat{}, err
	}
	return t.reader.Chat(ctx, channel, chat)
}

func (t *tx) KnowsContact(ctx context.Context, channel parley.ChannelCode, contact parley.ContactID) (bool, error) {
	if err := t.fileAll(); err != nil {
		return false, err
	}
	return t.reader.KnowsContact(ctx, channel, contact)
}

func (t *tx) LastChannelWith(ctx context.Context, contact parley.ContactID, among []parley.ChannelCode) (parley.ChannelCode, error) {
	if err := t.fileAll(); err != nil {
		return "", err
	}
	return t.reader.LastChannelWith(ctx, contact, among)
}
