package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"parley"
)

const (
	// maxLooked is how many messages one step of a search looks at: some milliseconds' work, however many there are.
	maxLooked = 5000
	// maxChats is how many chats with numbers that begin with some digits are told apart.
	maxChats = 2000
	// maxSorted is how many messages of such chats are sorted to find the newest.
	maxSorted = 6 * maxLooked
)

// FindMessages looks for messages of histories, newest first.
func (r Reader) FindMessages(ctx context.Context, q parley.MessageQuery) (parley.MessagePage, error) {
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
	return r.findInAll(q)
}

// search is the part of a statement that says which messages are looked at.
type search struct {
	where string
	args  []any
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

// walk returns the messages to look through: all before the cursor, of a channel or of all, pending or failed ones alone where
// the query wants those. Each has an index.
func walk(q parley.MessageQuery) search {
	var s search
	s.and(`message.seq < ?`, q.Before)
	if q.Channel != "" {
		s.and(`message.channel = (SELECT id FROM channel WHERE code = ?)`, string(q.Channel))
	}
	if q.Status != nil && *q.Status == parley.Pending {
		s.and(`message.status = 0`)
	}
	if q.Status != nil && *q.Status == parley.FailedForGood {
		s.and(`message.status = 5`)
	}
	return s
}

// findInAll looks through the next messages.
func (r Reader) findInAll(q parley.MessageQuery) (parley.MessagePage, error) {
	s := walk(q)
	var lowest, count, newest int64
	err := r.row(`SELECT coalesce(min(seq), 0), count(*), coalesce(max(created_at), 0) FROM (SELECT seq, created_at FROM message WHERE `+s.where+
		` ORDER BY seq DESC LIMIT `+param(len(s.args)+1)+`) AS next`, append(s.args, int64(maxLooked)), &lowest, &count, &newest)
	if err != nil || count == 0 {
		return parley.MessagePage{}, err
	}
	s.and(`message.seq >= ?`, lowest)
	if q.Number != "" {
		s.and(`contact LIKE ?`, q.Number+"%")
	}
	found, err := r.match(q, s, ` ORDER BY message.seq DESC`)
	if err != nil {
		return parley.MessagePage{}, err
	}
	// If so many in a row are too old, so is what was accepted before them.
	if count < maxLooked || len(found) == 0 && newest < millis(q.Since) {
		lowest = 0
	}
	return page(found, lowest, q.Limit), nil
}

// page cuts what was found in everything down to a seq, or in all where that is zero.
func page(found []parley.Message, lowest int64, limit int) parley.MessagePage {
	if len(found) > limit {
		found = found[:limit]
		lowest = found[limit-1].Seq
	}
	return parley.MessagePage{Messages: found, Next: lowest}
}

// match reads those of some messages that a query wants, and one more than its limit, to tell whether there are more.
func (r Reader) match(q parley.MessageQuery, s search, order string) ([]parley.Message, error) {
	s.and(`position > 0`)
	if q.Channel != "" {
		s.and(`message.channel = (SELECT id FROM channel WHERE code = ?)`, string(q.Channel))
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
	if q.Text != "" {
		return r.matchText(q, s, order)
	}
	return list(r, readMessages+`WHERE `+s.where+order+` LIMIT `+param(len(s.args)+1), append(s.args, int64(q.Limit)+1), scanMessage)
}

// matchText is match for a query that wants a text. What that contains is decided here: the database does
// not know the letters of every language. Only what does is read whole.
func (r Reader) matchText(q parley.MessageQuery, s search, order string) ([]parley.Message, error) {
	seqs, err := r.findText(q, s, order)
	if err != nil {
		return nil, err
	}
	var found []parley.Message
	for some := range slices.Chunk(seqs, maxList) {
		in, args := inList(1, some)
		messages, err := list(r, readMessages+`WHERE message.seq IN `+in, args, scanMessage)
		if err != nil {
			return nil, err
		}
		found = append(found, messages...)
	}
	slices.SortFunc(found, newestFirst)
	return found, nil
}

func newestFirst(a, b parley.Message) int { return cmp.Compare(b.Seq, a.Seq) }

// findText lists the messages that contain the text of a query, one more than its limit. Its rows are closed when it
// returns, before the messages are read: a search that held one connection while it waits for another would block
// all readers once there are as many searches as connections.
func (r Reader) findText(q parley.MessageQuery, s search, order string) ([]int64, error) {
	rows, err := r.conn.Query(`SELECT message.seq, body`+fromMessages+`WHERE `+s.where+order, s.args...)
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

// chatRange is a chat to look through.
type chatRange struct{ id, messages int64 }

func scanChatRange(row scanner) (c chatRange, err error) { return c, row.Scan(&c.id, &c.messages) }

// findWithContact looks in the chats with a contact: one of each channel.
func (r Reader) findWithContact(q parley.MessageQuery) (parley.MessagePage, error) {
	chats, err := r.chatsOf(q.Channel, withContact, string(q.Contact))
	if err != nil || len(chats) == 0 {
		return parley.MessagePage{}, err
	}
	each := int64(max(maxLooked/len(chats), q.Limit+1))
	var all []parley.Message
	var lowest int64 // of every chat everything is looked through down to here
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
	SELECT chat FROM alias WHERE contact = $1 AND channel IN (SELECT id FROM channel))`

// chatsOf lists chats of a channel, or of all, up to one more than maxChats.
func (r Reader) chatsOf(channel parley.ChannelCode, condition string, args ...any) ([]chatRange, error) {
	n := len(args)
	return list(r, `SELECT chat.id, `+messagesOf+` FROM chat JOIN channel ON channel.id = chat.channel WHERE `+condition+
		` AND (`+param(n+1)+` = '' OR code = `+param(n+1)+`) AND last_at > 0 LIMIT `+param(n+2),
		append(args, string(channel), int64(maxChats)+1), scanChatRange)
}

// findInChat looks through so many messages of a chat and returns how far down it got; zero: to its end.
func (r Reader) findInChat(q parley.MessageQuery, c chatRange, most int64) (found []parley.Message, reached int64, err error) {
	newest := c.messages
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

// lastBelow returns the position in a chat of its last message below a seq; zero: there is none. Positions and
// seqs grow together, so it is found by bisection.
func (r Reader) lastBelow(c chatRange, seq int64) (int64, error) {
	low, high := int64(0), c.messages // the message at low is below, that after high is not
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

func (r Reader) seqAt(chat, position int64) (seq int64, err error) {
	err = r.row(`SELECT seq FROM message WHERE chat = $1 AND position = $2`, []any{chat, position}, &seq)
	return seq, err
}

// findByNumber looks in the chats with everybody whose number begins with some digits. There may be one or most of all, so it
// goes the way that is bounded: through all messages of those chats where there are not many, else through the newest messages
// of all, among which theirs are not rare.
func (r Reader) findByNumber(q parley.MessageQuery) (parley.MessagePage, error) {
	whole := parley.ContactOf(q.Number)
	known, err := r.chatsOf("", withContact, string(whole))
	if err != nil {
		return parley.MessagePage{}, err
	}
	if len(known) > 0 {
		q.Contact = whole
		return r.findWithContact(q)
	}
	from, to := q.Number, afterNumber(q.Number)
	chats, err := r.chatsOf(q.Channel, `contact >= $1 AND contact < $2`, from, to)
	if err != nil {
		return parley.MessagePage{}, err
	}
	var total int64
	for _, c := range chats {
		total += c.messages
	}
	if len(chats) > maxChats || total > maxSorted {
		return r.findInAll(q)
	}
	var s search
	s.and(`message.chat IN (SELECT id FROM chat WHERE contact >= ? AND contact < ?) AND message.seq < ?`, from, to, q.Before)
	found, err := r.match(q, s, ` ORDER BY message.seq DESC`)
	return page(found, 0, q.Limit), err
}

// afterNumber is what all numbers that begin with some digits come before.
func afterNumber(digits string) string {
	digits = strings.TrimRight(digits, "9")
	if digits == "" {
		return "a" // after everything that is a number
	}
	last := len(digits) - 1
	return digits[:last] + string(digits[last]+1)
}
