package store

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"parley"
)

// A chat's history is read by position, so each record has an ordinal in its chat. It does not get it
// when it is stored: that would touch the chat's row and another page of the history for every
// message. Records are filed a moment later, many at a time, in the order in which they were
// taken, and always before a chat is read. What is not filed when the process dies is filed by the
// next one: everything after the mark.
const fileAt = 256 // so many are filed together, so that no caller waits long behind them

// filing knows whether there is anything to file.
type filing struct {
	one     sync.Mutex    // held while records are filed
	waiting atomic.Int64  // records that were added and not filed; more than there are does no harm
	enough  chan struct{} // holds one: fileAt of them wait
	done    sync.WaitGroup
}

// add counts records that were committed.
func (f *filing) add(records int64) {
	if f.waiting.Add(records) >= fileAt {
		select {
		case f.enough <- struct{}{}:
		default:
		}
	}
}

// fileInTime files whenever enough records wait, until the store is closed.
func (db *DB) fileInTime() {
	for range db.filing.enough {
		if err := db.file(context.Background()); err != nil {
			return // whoever reads next tries again, and sees why
		}
	}
}

// file files what waits.
func (db *DB) file(ctx context.Context) error {
	if db.filing.waiting.Load() == 0 {
		return nil
	}
	db.filing.one.Lock()
	defer db.filing.one.Unlock()
	for {
		waiting := db.filing.waiting.Load()
		if waiting == 0 {
			return nil
		}
		var filed int
		err := db.Tx(ctx, func(t parley.Tx) (err error) {
			filed, err = t.(*tx).file()
			return err
		})
		if err != nil {
			return err
		}
		if filed < fileAt { // there were no more
			db.filing.waiting.Add(-waiting)
		}
	}
}

// fileAll files everything, inside a transaction.
func (t *tx) fileAll() error {
	for {
		if filed, err := t.file(); err != nil || filed < fileAt {
			return err
		}
	}
}

// unfiled is a message that has no place in its chat yet.
type unfiled struct {
	seq, chat, createdAt int64
	kind                 string
}

// file gives the next records their places and returns how many messages it looked at.
func (t *tx) file() (int, error) {
	var mark int64
	if err := t.row(`SELECT seq FROM filed`, nil, &mark); err != nil {
		return 0, err
	}
	next, err := list(t.reader, `SELECT seq, chat, created_at, kind FROM message WHERE seq > $1 ORDER BY seq LIMIT $2`, []any{mark, int64(fileAt)},
		func(row scanner) (u unfiled, err error) {
			err = row.Scan(&u.seq, &u.chat, &u.createdAt, &u.kind)
			return u, err
		})
	if err != nil || len(next) == 0 {
		return 0, err
	}
	mark = next[len(next)-1].seq
	records := slices.DeleteFunc(slices.Clone(next), func(u unfiled) bool { return !parley.Kind(u.kind).IsRecord() })
	slices.SortStableFunc(records, func(a, b unfiled) int { return cmp.Compare(a.chat, b.chat) }) // chat by chat, still in order
	for len(records) > 0 {
		n := slices.IndexFunc(records, func(r unfiled) bool { return r.chat != records[0].chat })
		if n < 0 {
			n = len(records)
		}
		if err := t.fileChat(records[:n]); err != nil {
			return 0, err
		}
		records = records[n:]
	}
	return len(next), t.change(`UPDATE filed SET seq = $1`, mark)
}

// fileChat gives records of one chat their places.
func (t *tx) fileChat(records []unfiled) error {
	var messages, last int64
	if err := t.row(`SELECT messages, last_at FROM chat WHERE id = $1`, []any{records[0].chat}, &messages, &last); err != nil {
		return err
	}
	for _, r := range records {
		messages++
		last = max(last, r.createdAt)
		if _, err := t.Exec(`INSERT INTO history (chat, ordinal, seq) VALUES ($1, $2, $3)`, r.chat, messages, r.seq); err != nil {
			return err
		}
	}
	return t.change(`UPDATE chat SET messages = $1, last_at = $2 WHERE id = $3`, messages, last, records[0].chat)
}

// What is read of chats is read after filing: by anybody, and inside a transaction.

// fileIfPossible files before somebody reads. If the database cannot be written to now, what is filed
// can be read all the same.
func (db *DB) fileIfPossible(ctx context.Context) error {
	err := db.file(ctx)
	if parley.CodeOf(err) == parley.Unavailable {
		return nil
	}
	return err
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

// LastChannelWith returns the channel among those given that last exchanged a message with the contact.
func (db *DB) LastChannelWith(ctx context.Context, contact parley.ContactID, among []parley.ChannelCode) (parley.ChannelCode, error) {
	if err := db.fileIfPossible(ctx); err != nil {
		return "", err
	}
	return db.reader.LastChannelWith(ctx, contact, among)
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

func (t *tx) LastChannelWith(ctx context.Context, contact parley.ContactID, among []parley.ChannelCode) (parley.ChannelCode, error) {
	if err := t.fileAll(); err != nil {
		return "", err
	}
	return t.reader.LastChannelWith(ctx, contact, among)
}
