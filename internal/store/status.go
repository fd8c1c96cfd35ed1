package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
)

// AdvanceMessage moves a message on to a status, if that can follow the one it has.
func (t *tx) AdvanceMessage(_ context.Context, channel parley.ChannelCode, ref parley.MessageRef, to parley.Status, why *parley.Failure, at time.Time) (bool, error) {
	seq, err := t.find(channel, ref)
	if err != nil {
		return false, err
	}
	return t.advance(channel, seq, to, why, at)
}

// advance moves a message on that is there.
func (t *tx) advance(channel parley.ChannelCode, seq int64, to parley.Status, why *parley.Failure, at time.Time) (bool, error) {
	from, kind, err := t.status(seq)
	if err != nil || !to.CanFollow(from) {
		return false, err
	}
	if from == parley.Pending {
		if _, err := t.Exec(`DELETE FROM queue WHERE channel = $1 AND seq = $2`, string(channel), seq); err != nil {
			return false, err
		}
		_, err = t.Exec(`INSERT INTO status (seq, status, updated_at) VALUES ($1, $2, $3)`, seq, int64(to), millis(at))
	} else {
		err = t.change(`UPDATE status SET status = $1, updated_at = $2 WHERE seq = $3`, int64(to), millis(at), seq)
	}
	if err != nil {
		return false, err
	}
	if from == parley.FailedForGood {
		if _, err := t.Exec(`DELETE FROM failure WHERE seq = $1`, seq); err != nil {
			return false, err
		}
	}
	if why != nil {
		if _, err := t.Exec(`INSERT INTO failure (seq, code, message, until) VALUES ($1, $2, $3, $4)`, seq, string(why.Code), why.Message, millis(why.Until)); err != nil {
			return false, err
		}
	}
	if kind.IsRecord() {
		err = t.log(channel, moved(nil, seq, from, to, at), nil)
	}
	return err == nil, err
}

// status returns where a message stands, and what it is.
func (t *tx) status(seq int64) (status parley.Status, kind parley.Kind, err error) {
	err = t.row(`SELECT coalesce(status, 0), kind FROM message LEFT JOIN status ON status.seq = message.seq WHERE message.seq = $1`, []any{seq}, &status, &kind)
	return status, kind, err
}

// atOnce is how many messages one statement moves at most.
const atOnce = 32

// forMany returns a statement for each number of messages up to atOnce: a text and a list of places at
// its end. Each place is made by a function of the number of its first argument.
func forMany(text string, first, step int, place func(n int) string, end string) (statements [atOnce + 1]string) {
	var places []string
	for n := 1; n <= atOnce; n++ {
		places = append(places, place(first+(n-1)*step))
		statements[n] = text + strings.Join(places, ", ") + end
	}
	return statements
}

// triple is a row of three places.
func triple(n int) string { return fmt.Sprintf("($%d, $%d, $%d)", n, n+1, n+2) }

// inMany is forMany for "… IN ($3, $4)".
func inMany(text string, first int) [atOnce + 1]string {
	return forMany(text+"(", first, 1, place, ")")
}

func place(n int) string { return "$" + strconv.Itoa(n) }

// The statements that move many messages on at once: from pending, out of the queue, and on from
// another status. Those that failed are left to advance, because their failure must go too.
var (
	settleMany  = forMany(`INSERT INTO status (seq, status, updated_at) VALUES `, 1, 3, triple, ` ON CONFLICT (seq) DO NOTHING`)
	unqueueMany = inMany(`DELETE FROM queue WHERE channel = $1 AND seq IN `, 2)
	advanceMany = func() map[parley.Status][atOnce + 1]string {
		statements := map[parley.Status][atOnce + 1]string{}
		for _, to := range []parley.Status{parley.Delivered, parley.Read, parley.Played} {
			var from []string
			for _, s := range to.Before() {
				if s != parley.FailedForGood {
					from = append(from, strconv.Itoa(int(s)))
				}
			}
			statements[to] = inMany(`UPDATE status SET status = $1, updated_at = $2 WHERE status IN (`+strings.Join(from, ", ")+`) AND seq IN `, 3)
		}
		return statements
	}()
)

// settle moves those messages of up to atOnce that are pending on and returns how many those were. It
// does not look whether they are there: a number that is free stays free, so that an entry for it
// means nothing.
func (t *tx) settle(channel parley.ChannelCode, seqs []int64, to parley.Status, at time.Time) (int64, error) {
	args := make([]any, 0, 3*atOnce)
	for _, seq := range seqs {
		args = append(args, seq, int64(to), millis(at))
	}
	n, err := t.count(settleMany[len(seqs)], args...)
	if err != nil || n == 0 || slices.Min(seqs) > t.db.filing.reached { // what is not filed is in no queue
		return n, err
	}
	_, err = t.Exec(unqueueMany[len(seqs)], withSeqs(seqs, string(channel))...)
	return n, err
}

func withSeqs(seqs []int64, args ...any) []any {
	args = slices.Grow(args, len(seqs))
	for _, seq := range seqs {
		args = append(args, seq)
	}
	return args
}

// ConfirmMessages moves messages on from pending to sent.
func (t *tx) ConfirmMessages(_ context.Context, channel parley.ChannelCode, seqs []int64, at time.Time) error {
	var entries []entry
	for chunk := range slices.Chunk(seqs, atOnce) {
		n, err := t.settle(channel, chunk, parley.Sent, at)
		if err != nil {
			return err
		}
		if n > 0 && n < int64(len(chunk)) { // the others were moved before, further or at another time
			now, err := t.statuses(chunk)
			if err != nil {
				return err
			}
			chunk = slices.DeleteFunc(slices.Clone(chunk), func(seq int64) bool { return now[seq] != standing{parley.Sent, millis(at)} })
		}
		if n > 0 {
			for _, seq := range chunk {
				entries = moved(entries, seq, parley.Pending, parley.Sent, at)
			}
		}
	}
	return t.log(channel, entries, nil)
}

// AdvanceMessages moves messages that the channel sent to one chat on to a status, where that can
// follow the one they have. It returns those that moved, and the ids that are not there.
func (t *tx) AdvanceMessages(_ context.Context, channel parley.ChannelCode, chat parley.ContactID, ids []parley.MessageID, to parley.Status, at time.Time) (advanced []parley.MessageID, advancedSeqs []int64, unknown []parley.MessageID, err error) {
	within, err := t.chatID(channel, chat)
	if err == parley.ErrNotFound {
		return nil, nil, ids, nil
	}
	if err != nil {
		return nil, nil, nil, err
	}
	for chunk := range slices.Chunk(ids, atOnce) {
		known, seqs := make([]parley.MessageID, 0, len(chunk)), make([]int64, 0, len(chunk))
		for _, id := range chunk {
			seq, err := t.findIn(within, parley.MessageRef{FromMe: true, Chat: chat, ID: id})
			if err == parley.ErrNotFound {
				unknown = append(unknown, id)
				continue
			}
			if err != nil {
				return nil, nil, nil, err
			}
			known, seqs = append(known, id), append(seqs, seq)
		}
		some, theirs, err := t.advanceSome(channel, known, seqs, to, at)
		if err != nil {
			return nil, nil, nil, err
		}
		advanced, advancedSeqs = append(advanced, some...), append(advancedSeqs, theirs...)
	}
	return advanced, advancedSeqs, unknown, nil
}

// advanceSome moves messages that are there on, and returns those that moved.
func (t *tx) advanceSome(channel parley.ChannelCode, ids []parley.MessageID, seqs []int64, to parley.Status, at time.Time) (advanced []parley.MessageID, advancedSeqs []int64, err error) {
	if len(seqs) == 0 {
		return nil, nil, nil
	}
	n, err := t.settle(channel, seqs, to, at)
	if err != nil {
		return nil, nil, err
	}
	entries := make([]entry, 0, 2*len(seqs))
	if n == int64(len(seqs)) { // mostly the receipt is the first to say that it was sent
		for _, seq := range seqs {
			entries = moved(entries, seq, parley.Pending, to, at)
		}
		return ids, seqs, t.log(channel, entries, nil)
	}
	before, err := t.statuses(seqs)
	if err != nil {
		return nil, nil, err
	}
	if n > 0 { // those that were settled just now were pending
		for seq, s := range before {
			if s == (standing{to, millis(at)}) {
				delete(before, seq)
			}
		}
	}
	if text := advanceMany[to][len(seqs)]; text != "" {
		if _, err := t.Exec(text, withSeqs(seqs, int64(to), millis(at))...); err != nil {
			return nil, nil, err
		}
	}
	for i, id := range ids {
		from := before[seqs[i]].status
		switch {
		case from == parley.FailedForGood:
			if _, err := t.advance(channel, seqs[i], to, nil, at); err != nil {
				return nil, nil, err
			}
		case to.CanFollow(from):
			entries = moved(entries, seqs[i], from, to, at)
		}
		if to.CanFollow(from) {
			advanced, advancedSeqs = append(advanced, id), append(advancedSeqs, seqs[i])
		}
	}
	return advanced, advancedSeqs, t.log(channel, entries, nil)
}

// standing is where a message stands, and since when.
type standing struct {
	status  parley.Status
	updated int64
}

var statusMany = inMany(`SELECT seq, status, updated_at FROM status WHERE seq IN `, 1)

// statuses returns where those messages stand that are not pending.
func (t *tx) statuses(seqs []int64) (map[int64]standing, error) {
	rows, err := t.Query(statusMany[len(seqs)], withSeqs(seqs)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := make(map[int64]standing, len(seqs))
	for rows.Next() {
		var seq int64
		var s standing
		if err := rows.Scan(&seq, &s.status, &s.updated); err != nil {
			return nil, err
		}
		found[seq] = s
	}
	return found, rows.Err()
}

// DelayMessage stores that sending failed for now and when to try again.
func (t *tx) DelayMessage(_ context.Context, channel parley.ChannelCode, ref parley.MessageRef, attempts int, next time.Time) error {
	if err := t.fileAll(); err != nil { // into the queue
		return err
	}
	return t.set(channel, ref, `UPDATE queue SET attempts = $1, next_attempt = $2 WHERE channel = $3 AND seq = $4`, int64(attempts), millis(next), string(channel))
}

// FailPool fails what is still pending of a pool and returns the messages' references in order.
func (t *tx) FailPool(_ context.Context, channel parley.ChannelCode, pool parley.PoolID, why parley.Failure, at time.Time) ([]parley.MessageRef, error) {
	if err := t.fileAll(); err != nil { // into the queue
		return nil, err
	}
	type waiting struct {
		seq int64
		ref parley.MessageRef
	}
	pending, err := list(t.reader, `SELECT message.seq, from_me, contact, message.id FROM message
		JOIN chat ON chat.id = message.chat JOIN queue ON queue.channel = message.channel AND queue.seq = message.seq
		WHERE pool = $1 AND pool <> '' AND message.channel = $2 ORDER BY message.seq`, []any{string(pool), string(channel)},
		func(row scanner) (w waiting, err error) {
			err = row.Scan(&w.seq, &w.ref.FromMe, &w.ref.Chat, &w.ref.ID)
			return w, err
		})
	if err != nil {
		return nil, err
	}
	var failed []parley.MessageRef
	for _, w := range pending {
		if _, err := t.advance(channel, w.seq, parley.FailedForGood, &why, at); err != nil {
			return nil, err
		}
		failed = append(failed, w.ref)
	}
	return failed, nil
}
