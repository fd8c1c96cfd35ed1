package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"parley"
	"parley/internal/store/sqldb"
)

const (
	// maxLooked is how many messages one step of a search reads. That takes some milliseconds in a store of any size.
	maxLooked = 5000
	// maxChats is how many chats whose numbers begin with some digits are searched one by one.
	maxChats = 2000
	// maxSorted is how many messages of such chats are sorted to find the newest.
	maxSorted = 6 * maxLooked
)

// FindMessages searches the histories, newest message first.
func (r Reader) FindMessages(ctx context.Context, q parley.MessageQuery) (parley.MessagePage, error) {
	r = r.with(ctx)
	if q.Before == 0 {
		q.Before = math.MaxInt64
	}
	switch {
	case q.Contact != "":
		return r.findWithContact(q)
	case q.Number != "" || q.Ending != "":
		return r.findByNumber(q)
	}
	return r.findInAll(q)
}

// CountMessagesAtMost is an upper bound of how many messages a search finds. It uses indexes only.
func (r Reader) CountMessagesAtMost(ctx context.Context, q parley.MessageQuery) (n int64, err error) {
	r = r.with(ctx)
	if q.Contact != "" {
		chats, err := r.findChats(q.Channel, withContact, string(q.Contact))
		for _, c := range chats {
			n += c.last
		}
		return n, err
	}
	q.Before = math.MaxInt64
	s := walk(q)
	return n, r.row(`SELECT count(*) FROM message`+s.index+` WHERE `+s.where, s.args, &n)
}

// search is the condition of a statement.
type search struct {
	where string
	args  []any
	index string // of the messages, if the database must not choose another one; empty: it may
}

func (s *search) and(condition string, args ...any) {
	for _, arg := range args {
		s.args = append(s.args, arg)
		condition = strings.Replace(condition, "?", param(len(s.args)), 1)
	}
	if s.where != "" {
		s.where += ` AND `
	}
	s.where += condition
}

// walk is the condition for all messages before the cursor, of a channel or of all. For pending and failed messages there
// are indexes. Without the hints SQLite walks over all messages to find them.
func walk(q parley.MessageQuery) search {
	var s search
	s.and(`message.seq < ?`, q.Before)
	if q.Channel != "" {
		s.and(`message.channel = `+channelIDFrom(`?`), string(q.Channel))
	}
	switch {
	case q.Status == nil:
	case *q.Status == parley.Pending:
		s.and(`message.status = 0`)
		s.index = ` INDEXED BY message_pending`
	case *q.Status == parley.Failed && q.Channel == "":
		s.and(`message.status = 5`)
		s.index = ` INDEXED BY message_failed`
	case *q.Status == parley.Failed:
		s.and(`message.status = 5`)
		s.index = ` INDEXED BY message_failed_of`
	}
	return s
}

// findInAll searches the next maxLooked messages.
func (r Reader) findInAll(q parley.MessageQuery) (parley.MessagePage, error) {
	s := walk(q)
	var lowest, count, newest int64
	err := r.row(`SELECT coalesce(min(seq), 0), count(*), coalesce(max(created_at), 0) FROM (SELECT seq, created_at FROM message`+s.index+`
		WHERE `+s.where+` ORDER BY seq DESC LIMIT `+param(len(s.args)+1)+`) AS next`, append(s.args, int64(maxLooked)), &lowest, &count, &newest)
	if err != nil || count == 0 {
		return parley.MessagePage{}, err
	}
	s.and(`message.seq >= ?`, lowest)
	if numbers, args := numbersIn(q); numbers != "" {
		s.and(`(SELECT id FROM chat WHERE chat.id = message.chat AND (`+numbers+`)) IS NOT NULL`, args...)
	}
	found, err := r.match(q, s, ` ORDER BY message.seq DESC`)
	if err != nil {
		return parley.MessagePage{}, err
	}
	// If so many in a row are too old, all earlier ones are too.
	if count < maxLooked || len(found) == 0 && newest < millis(q.Since) {
		lowest = 0
	}
	return page(found, lowest, q.Limit), nil
}

// page limits what was found. lowest is the last seq that was searched; 0: all were.
func page(found []parley.Message, lowest int64, limit int) parley.MessagePage {
	if len(found) > limit {
		found = found[:limit]
		lowest = found[limit-1].Seq
	}
	return parley.MessagePage{Messages: found, Next: lowest}
}

// match reads the messages that match a query, and one more than its limit, which shows that there are more.
func (r Reader) match(q parley.MessageQuery, s search, order string) ([]parley.Message, error) {
	s.and(`position > 0`)
	if q.Channel != "" { // the plus: what to walk over is decided already
		s.and(`+message.channel = `+channelIDFrom(`?`), string(q.Channel))
	}
	if q.Kind != "" {
		s.and(`kind = ?`, string(q.Kind))
	}
	if q.FromMe != nil {
		s.and(`from_me = ?`, flag(*q.FromMe))
	}
	if q.Status != nil {
		s.and(`message.status = ?`, int64(*q.Status))
	}
	if !q.Since.IsZero() {
		s.and(`message.created_at >= ?`, millis(q.Since))
	}
	if !q.Until.IsZero() {
		s.and(`message.created_at < ?`, millis(q.Until))
	}
	seqs, err := r.findSeqs(q, s, order)
	if err != nil {
		return nil, err
	}
	found, err := listIn(r, readMessages+`WHERE message.seq IN `, ``, nil, seqs, scanMessage)
	slices.SortFunc(found, newestFirst)
	return found, err
}

func newestFirst(a, b parley.Message) int { return cmp.Compare(b.Seq, a.Seq) }

// findSeqs lists the messages that match a query, one more than its limit. Only these are read completely: with a join PostgreSQL
// might read all chats. The text is compared here, because the database does not know the letters of every language. It closes its
// rows before the messages are read: searches that hold one connection and wait for another could block all readers.
func (r Reader) findSeqs(q parley.MessageQuery, s search, order string) ([]int64, error) {
	s.and(`(SELECT code FROM channel WHERE channel.id = message.channel) IS NOT NULL`) // not of a deleted one
	if q.Text == "" {
		return list(r, `SELECT message.seq FROM message`+s.index+` WHERE `+s.where+order+` LIMIT `+param(len(s.args)+1),
			append(s.args, int64(q.Limit)+1), sqldb.ScanOne[int64])
	}
	rows, err := r.conn.Query(`SELECT message.seq, body FROM message`+s.index+` WHERE `+s.where+order, s.args...)
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

// chatRange is a chat to search, with the position of its last message: at most so many it has.
type chatRange struct{ id, last int64 }

func scanChatRange(row scanner) (c chatRange, err error) { return c, row.Scan(&c.id, &c.last) }

// findWithContact searches the chats with a contact, one of each channel.
func (r Reader) findWithContact(q parley.MessageQuery) (parley.MessagePage, error) {
	chats, err := r.findChats(q.Channel, withContact, string(q.Contact))
	if err != nil || len(chats) == 0 {
		return parley.MessagePage{}, err
	}
	each := int64(max(maxLooked/len(chats), q.Limit+1))
	var all []parley.Message
	var lowest int64 // every chat is searched down to this seq
	for _, c := range chats {
		found, reached, err := r.findInChat(q, c, each)
		if err != nil {
			return parley.MessagePage{}, err
		}
		all, lowest = append(all, found...), max(lowest, reached)
	}
	slices.SortFunc(all, newestFirst)
	all = slices.DeleteFunc(all, func(m parley.Message) bool { return m.Seq < lowest })
	return page(all, lowest, q.Limit), nil
}

// withContact is the condition of the chats with a contact, by any spelling of its number.
const withContact = `chat.id IN (SELECT id FROM chat WHERE contact = $1 UNION
	SELECT chat FROM alias WHERE contact = $1)`

// findChats lists chats of a channel, or of all, up to one more than maxChats.
func (r Reader) findChats(channel parley.ChannelCode, condition string, args ...any) ([]chatRange, error) {
	n := len(args)
	return list(r, `SELECT chat.id, `+lastPosition+` FROM chat WHERE `+condition+` AND (SELECT id FROM channel
		WHERE channel.id = chat.channel AND (`+param(n+1)+` = '' OR code = `+param(n+1)+`)) IS NOT NULL AND last_at > 0 LIMIT `+param(n+2),
		append(args, string(channel), int64(maxChats)+1), scanChatRange)
}

// findInChat searches up to most messages of a chat. It returns the last seq that it read; 0: the chat's beginning.
func (r Reader) findInChat(q parley.MessageQuery, c chatRange, most int64) (found []parley.Message, reached int64, err error) {
	newest := c.last
	if q.Before != math.MaxInt64 {
		if newest, err = r.lastBelow(c, q.Before); err != nil || newest == 0 {
			return nil, 0, err
		}
	}
	oldest := max(newest-most+1, 1)
	var s search
	s.and(`message.chat = ? AND position BETWEEN ? AND ?`, c.id, oldest, newest)
	found, err = r.match(q, s, ` ORDER BY position DESC`)
	switch {
	case err != nil:
		return nil, 0, err
	case len(found) > q.Limit:
		return found, found[q.Limit].Seq, nil
	case oldest == 1:
		return found, 0, nil
	}
	reached, err = r.seqAt(c.id, oldest)
	return found, reached, err
}

// lastBelow returns the position of a chat's last message below a seq; 0: there is none. Positions and seqs grow together,
// so it is found by bisection.
func (r Reader) lastBelow(c chatRange, seq int64) (int64, error) {
	low, high := int64(0), c.last // the message at low is below the seq, the one after high is not
	for low < high {
		middle := (low + high + 1) / 2
		at, err := r.seqAt(c.id, middle)
		if err != nil {
			return 0, err
		}
		if at < seq {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low, nil
}

// seqAt returns the seq of the message at a position, or of the first one after it if that was purged.
func (r Reader) seqAt(chat, position int64) (seq int64, err error) {
	err = r.row(`SELECT seq FROM message WHERE chat = $1 AND position >= $2 ORDER BY position LIMIT 1`, []any{chat, position}, &seq)
	return seq, err
}

// findByNumber searches the chats with numbers that begin or end with some digits. If these chats have few messages it searches all
// of them. Else it searches the newest messages of all chats, among which theirs are not rare. Both are bounded.
func (r Reader) findByNumber(q parley.MessageQuery) (parley.MessagePage, error) {
	whole := parley.NewContactID(q.Number)
	known, err := r.findChats("", withContact, string(whole))
	if err != nil {
		return parley.MessagePage{}, err
	}
	if len(known) > 0 {
		q.Contact = whole
		return r.findWithContact(q)
	}
	numbers, args := numbersIn(q)
	var theirs search
	theirs.and(`(`+numbers+`)`, args...)
	chats, err := r.findChats(q.Channel, theirs.where, args...)
	if err != nil {
		return parley.MessagePage{}, err
	}
	var total int64
	for _, c := range chats {
		total += c.last
	}
	if len(chats) > maxChats || total > maxSorted {
		return r.findInAll(q)
	}
	var s search
	in := `(` + numbers + `)`
	if q.Channel != "" {
		in += ` AND +channel = ` + channelIDFrom(`?`) // the plus: by their numbers
		args = append(args, string(q.Channel))
	}
	s.and(`message.chat IN (SELECT id FROM chat WHERE `+in+`)`, args...)
	s.and(`+message.seq < ?`, q.Before)
	found, err := r.match(q, s, ` ORDER BY message.seq DESC`)
	return page(found, 0, q.Limit), err
}

// numbersIn is the condition of the chats with the numbers of a search, and its arguments; "": all.
func numbersIn(q parley.MessageQuery) (condition string, args []any) {
	if q.Number != "" {
		condition, args = `contact >= ? AND contact < ?`, []any{q.Number, afterNumber(q.Number)}
	}
	if q.Ending == "" {
		return condition, args
	}
	if condition != "" {
		condition += ` OR `
	}
	return condition + endsWith(`?`, `?`), append(args, lastDigits(q.Ending)...)
}

// endsWith is the condition of the chats with numbers that end with some digits, found by the last four. lastDigits has its arguments.
func endsWith(four, all string) string {
	return `substr(contact, length(contact) - 8, 4) = ` + four + ` AND contact LIKE ` + all
}

func lastDigits(digits string) []any {
	return []any{digits[len(digits)-parley.MinEnding:], "%" + string(parley.NewContactID(digits))}
}

// afterNumber is the upper end of the numbers that begin with some digits.
func afterNumber(digits string) string {
	digits = strings.TrimRight(digits, "9")
	if digits == "" {
		return "a" // after all numbers
	}
	last := len(digits) - 1
	return digits[:last] + string(digits[last]+1)
}
