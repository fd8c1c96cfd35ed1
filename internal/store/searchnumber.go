package store

import (
	"slices"
	"strings"

	"parley"
)

const (
	// fewChats is how many chats are looked through one by one: each takes some questions.
	fewChats = 16
	// maxChats is how many chats are told apart at all: to list them costs what a step of a search does.
	maxChats = 2000
	// maxPlaces is how many places of records are looked at: six cost about as much as one record.
	maxPlaces = 6 * maxLooked
)

// findByNumber looks in the chats with everybody whose number begins with some digits. Those are found by the
// index of contacts, and there may be one or most of all. So it goes the way that is bounded: through each
// chat where there are few; through the places of all their records where those are not many; else over all
// messages, among which they are not rare.
func (r reader) findByNumber(q parley.MessageQuery) (parley.MessagePage, error) {
	whole := parley.ContactOf(q.Number)
	var known int64
	if err := r.row(`SELECT count(*) FROM chat WHERE contact = $1 AND messages > 0`, []any{string(whole)}, &known); err != nil {
		return parley.MessagePage{}, err
	}
	if known > 0 {
		q.Contact = whole
		return r.findWithContact(q)
	}
	from, to := q.Number, afterNumber(q.Number)
	chats, said, err := r.chatsBetween(from, to, q.Channel)
	switch {
	case err != nil:
		return parley.MessagePage{}, err
	case said >= 0 && len(chats) <= fewChats:
		return r.findInChats(q, chats)
	case said >= 0 && said <= maxPlaces:
		return r.findAtPlaces(q, from, to)
	}
	return r.findInAll(q, ` AND contact LIKE $9`, q.Number+"%") // not a range: the index would lead past the messages
}

// findAtPlaces looks at the newest records of the chats with contacts from one on and before another. Which
// those are is told by their places alone, which are narrow; so many of them are then looked at and no more.
func (r reader) findAtPlaces(q parley.MessageQuery, from, to string) (parley.MessagePage, error) {
	seqs, err := list(r, `SELECT history.seq FROM chat JOIN history ON history.chat = chat.id
		WHERE contact >= $1 AND contact < $2 AND ($3 = '' OR channel = $3) AND history.seq < $4 ORDER BY history.seq DESC LIMIT $5`,
		[]any{from, to, string(q.Channel), q.Before, int64(maxLooked)}, func(row scanner) (seq int64, err error) { return seq, row.Scan(&seq) })
	if err != nil {
		return parley.MessagePage{}, err
	}
	var lowest int64
	if len(seqs) == maxLooked {
		lowest = seqs[maxLooked-1]
	}
	var all []parley.Message
	for some := range slices.Chunk(seqs, readAtOnce) {
		args := withSeqs(some)
		for len(args) < readAtOnce { // so that there is one statement
			args = append(args, some[len(some)-1])
		}
		found, err := r.match(q, `message `+besides, readMany, args...)
		if err != nil {
			return parley.MessagePage{}, err
		}
		if all = append(all, found...); len(all) > q.Limit {
			break
		}
	}
	return page(all, lowest, q.Limit), nil
}

// readAtOnce is how many records one statement looks at.
const readAtOnce = 200

// readMany is the condition for them, after those of matching.
var readMany = func() string {
	places := make([]string, readAtOnce)
	for i := range places {
		places[i] = place(7 + i)
	}
	return ` AND message.seq IN (` + strings.Join(places, ", ") + `) ORDER BY message.seq DESC`
}()

// afterNumber is what all numbers that begin with some digits come before.
func afterNumber(digits string) string {
	digits = strings.TrimRight(digits, "9")
	if digits == "" {
		return "a" // after everything that is a number
	}
	last := len(digits) - 1
	return digits[:last] + string(digits[last]+1)
}

// chatsBetween lists the chats of a channel, or of all, with contacts from one on and before another, and
// how many messages they have together; below zero: there are too many to list.
func (r reader) chatsBetween(from, to string, channel parley.ChannelCode) (chats []chatPlace, said int64, err error) {
	rows, err := r.conn.Query(`SELECT id, channel, messages FROM chat WHERE contact >= $1 AND contact < $2 LIMIT $3`, from, to, int64(maxChats)+1)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	listed := 0
	for rows.Next() {
		var c chatPlace
		var of parley.ChannelCode
		if err := rows.Scan(&c.id, &of, &c.messages); err != nil {
			return nil, 0, err
		}
		listed++
		if c.messages > 0 && (channel == "" || of == channel) {
			chats, said = append(chats, c), said+c.messages
		}
	}
	if listed > maxChats {
		said = -1
	}
	return chats, said, rows.Err()
}
