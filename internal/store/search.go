package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"parley"
)

// maxLooked is how many messages one step of a search looks at: some milliseconds' work, however many
// there are.
const maxLooked = 5000

// walk is a table that leads to messages by their seqs, and how to read them from there.
type walk struct{ table, from string }

// Most searches walk over all messages. Those that wait and those that failed are few among many, and
// have tables of their own.
var (
	walkAll     = walk{"message", `message ` + besides}
	walkPending = walk{"queue", `queue JOIN message ON message.seq = queue.seq
		JOIN chat ON chat.id = message.chat LEFT JOIN status ON status.seq = message.seq LEFT JOIN failure ON failure.seq = message.seq`}
	walkFailed = walk{"failure", `failure JOIN message ON message.seq = failure.seq
		JOIN chat ON chat.id = message.chat LEFT JOIN status ON status.seq = message.seq
		LEFT JOIN queue ON queue.channel = message.channel AND queue.seq = message.seq`}
)

func walkFor(q parley.MessageQuery) walk {
	switch {
	case q.Status == nil:
	case *q.Status == parley.Pending:
		return walkPending
	case *q.Status == parley.FailedForGood:
		return walkFailed
	}
	return walkAll
}

// FindMessages looks for records, newest first.
func (r reader) FindMessages(ctx context.Context, q parley.MessageQuery) (parley.MessagePage, error) {
	r = r.with(ctx)
	if q.Before == 0 {
		q.Before = math.MaxInt64
	}
	switch {
	case q.Contact != "":
		return r.findWithContact(q)
	case q.Number != "":
		return r.findByNumber(q)
	}
	return r.findInAll(q, "")
}

// findInAll looks among all messages, or those that a walk leads to, for those that a condition also holds for.
// Its arguments begin with $9.
func (r reader) findInAll(q parley.MessageQuery, also string, args ...any) (parley.MessagePage, error) {
	w := walkFor(q)
	lowest, more, err := r.stepOf(w, q.Before)
	if err != nil || lowest == 0 {
		return parley.MessagePage{}, err
	}
	found, err := r.match(q, w.from, ` AND `+w.table+`.seq >= $7 AND `+w.table+`.seq < $8`+also+` ORDER BY `+w.table+`.seq DESC`,
		append([]any{lowest, q.Before}, args...)...)
	if err != nil {
		return parley.MessagePage{}, err
	}
	if more && len(found) == 0 && w == walkAll && !q.Since.IsZero() {
		var newest int64
		if err := r.row(`SELECT coalesce(max(created_at), 0) FROM message WHERE seq >= $1 AND seq < $2`, []any{lowest, q.Before}, &newest); err != nil {
			return parley.MessagePage{}, err
		}
		more = newest >= millis(q.Since) // if so many in a row are too old, so is what was taken before them
	}
	if !more {
		lowest = 0
	}
	return page(found, lowest, q.Limit), nil
}

// stepOf returns how far down one step of a search looks; zero: there is nothing to look at.
func (r reader) stepOf(w walk, before int64) (lowest int64, more bool, err error) {
	if w != walkAll { // their seqs have gaps
		var count int64
		err = r.row(`SELECT coalesce(min(seq), 0), count(*) FROM (SELECT seq FROM `+w.table+` WHERE seq < $1 ORDER BY seq DESC LIMIT $2) AS next`,
			[]any{before, int64(maxLooked)}, &lowest, &count)
		return lowest, count == maxLooked, err
	}
	var newest int64
	if err = r.row(`SELECT coalesce(max(seq), 0) FROM message WHERE seq < $1`, []any{before}, &newest); err != nil || newest == 0 {
		return 0, false, err
	}
	lowest = max(newest-maxLooked+1, 1)
	return lowest, lowest > 1, nil
}

// page cuts what was found in everything down to a seq, or in all where that is zero.
func page(found []parley.Message, lowest int64, limit int) parley.MessagePage {
	if len(found) > limit {
		found = found[:limit]
		lowest = found[limit-1].Seq
	}
	return parley.MessagePage{Messages: found, Next: lowest}
}

// matching is what a query asks of a message, with the arguments that wanted makes.
const matching = isRecord + ` AND ($1 = '' OR message.channel = $1) AND ($2 = '' OR kind = $2) AND ($3 < 0 OR message.from_me = $3)
	AND created_at >= $4 AND created_at < $5 AND ($6 < 0 OR coalesce(status.status, 0) = $6)`

func wanted(q parley.MessageQuery) []any {
	fromMe, status, until := int64(-1), int64(-1), int64(math.MaxInt64)
	if q.FromMe != nil {
		fromMe = flag(*q.FromMe)
	}
	if q.Status != nil {
		status = int64(*q.Status)
	}
	if !q.Until.IsZero() {
		until = millis(q.Until)
	}
	return []any{string(q.Channel), string(q.Kind), fromMe, millis(q.Since), until, status}
}

// match reads the messages that a query wants, and one more than its limit, to tell whether there are
// more.
func (r reader) match(q parley.MessageQuery, from, where string, args ...any) ([]parley.Message, error) {
	args = append(wanted(q), args...)
	if q.Text != "" {
		return r.matchText(q, from, where, args)
	}
	query := `SELECT ` + messageColumns + ` FROM ` + from + ` WHERE ` + matching + where + ` LIMIT ` + place(len(args)+1)
	return list(r, query, append(args, int64(q.Limit)+1), scanMessage)
}

// matchText is match for a query that wants a text. What that contains is decided here: the database does
// not know the letters of every language. Only what does is read whole.
func (r reader) matchText(q parley.MessageQuery, from, where string, args []any) ([]parley.Message, error) {
	seqs, err := r.findText(q, from, where, args)
	if err != nil {
		return nil, err
	}
	var found []parley.Message
	for some := range slices.Chunk(seqs, atOnce) {
		messages, err := list(r, messagesBySeq[len(some)], withSeqs(some), scanMessage)
		if err != nil {
			return nil, err
		}
		found = append(found, messages...)
	}
	slices.SortFunc(found, func(a, b parley.Message) int { return cmp.Compare(b.Seq, a.Seq) })
	return found, nil
}

// findText lists the messages that contain the text of a query, one more than its limit. Its rows are closed when it
// returns, before the messages are read: a search that held one connection while it waits for another would block
// all readers once there are as many searches as connections.
func (r reader) findText(q parley.MessageQuery, from, where string, args []any) ([]int64, error) {
	rows, err := r.conn.Query(`SELECT message.seq, body FROM `+from+` WHERE `+matching+where, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var seqs []int64
	text := strings.ToLower(q.Text)
	for len(seqs) <= q.Limit && rows.Next() {
		var seq int64
		var body string
		if err := rows.Scan(&seq, &body); err != nil {
			return nil, err
		}
		if strings.Contains(strings.ToLower(body), text) {
			seqs = append(seqs, seq)
		}
	}
	return seqs, rows.Err()
}

// chatPlace is a chat in which records are looked for, and how many it has.
type chatPlace struct{ id, messages int64 }

// findWithContact looks in the chats with a contact: one of each channel.
func (r reader) findWithContact(q parley.MessageQuery) (parley.MessagePage, error) {
	chats, err := list(r, `SELECT id, messages FROM chat WHERE contact = $1 AND ($2 = '' OR channel = $2) AND messages > 0`,
		[]any{string(q.Contact), string(q.Channel)}, func(row scanner) (c chatPlace, err error) { return c, row.Scan(&c.id, &c.messages) })
	if err != nil {
		return parley.MessagePage{}, err
	}
	return r.findInChats(q, chats)
}

// findInChats looks in some chats.
func (r reader) findInChats(q parley.MessageQuery, chats []chatPlace) (parley.MessagePage, error) {
	if len(chats) == 0 {
		return parley.MessagePage{}, nil
	}
	each := int64(max(maxLooked/len(chats), q.Limit+1))
	var all []parley.Message
	var lowest int64 // of every chat everything is looked through down to here
	for _, c := range chats {
		found, reached, err := r.findInChat(q, c.id, c.messages, each)
		if err != nil {
			return parley.MessagePage{}, err
		}
		all, lowest = append(all, found...), max(lowest, reached)
	}
	slices.SortFunc(all, func(a, b parley.Message) int { return cmp.Compare(b.Seq, a.Seq) })
	all = slices.DeleteFunc(all, func(m parley.Message) bool { return m.Seq < lowest })
	return page(all, lowest, q.Limit), nil
}

// findInChat looks through so many records of a chat and returns how far down it got; zero: to its end.
func (r reader) findInChat(q parley.MessageQuery, chat, messages, most int64) (found []parley.Message, reached int64, err error) {
	newest, err := r.lastBelow(chat, messages, q.Before)
	if err != nil || newest == 0 {
		return nil, 0, err
	}
	oldest := max(newest-most+1, 1)
	found, err = r.match(q, `history JOIN message ON message.seq = history.seq `+besides,
		` AND history.chat = $7 AND ordinal BETWEEN $8 AND $9 ORDER BY ordinal DESC`, chat, oldest, newest)
	switch {
	case err != nil:
		return nil, 0, err
	case len(found) > q.Limit:
		return found, found[q.Limit].Seq, nil
	case oldest == 1:
		return found, 0, nil
	}
	reached, err = r.seqAt(chat, oldest)
	return found, reached, err
}

// lastBelow returns the place in a chat of its last record below a seq; zero: there is none. Places and
// seqs grow together, so it is found by halving.
func (r reader) lastBelow(chat, messages, seq int64) (int64, error) {
	if seq == math.MaxInt64 {
		return messages, nil
	}
	low, high := int64(0), messages // the record at low is below, that after high is not
	for low < high {
		middle := (low + high + 1) / 2
		there, err := r.seqAt(chat, middle)
		if err != nil {
			return 0, err
		}
		if there < seq {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low, nil
}

func (r reader) seqAt(chat, ordinal int64) (seq int64, err error) {
	err = r.row(`SELECT seq FROM history WHERE chat = $1 AND ordinal = $2`, []any{chat, ordinal}, &seq)
	return seq, err
}

// FindMessages looks for records, newest first.
func (db *DB) FindMessages(ctx context.Context, q parley.MessageQuery) (parley.MessagePage, error) {
	if err := db.fileIfPossible(ctx); err != nil {
		return parley.MessagePage{}, err
	}
	return db.reader.FindMessages(ctx, q)
}

func (t *tx) FindMessages(ctx context.Context, q parley.MessageQuery) (parley.MessagePage, error) {
	if err := t.fileAll(); err != nil {
		return parley.MessagePage{}, err
	}
	return t.reader.FindMessages(ctx, q)
}
