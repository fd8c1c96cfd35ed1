package store

import (
	"context"
	"slices"
	"time"

	"parley"
)

// statusRow is what is needed of a message to change its status.
type statusRow struct {
	seq, channel, created     int64
	id                        parley.MessageID
	status                    parley.Status
	inHistory, fromMe, secret bool
}

func scanStatus(row scanner) (s statusRow, err error) {
	return s, row.Scan(&s.seq, &s.channel, &s.created, &s.id, &s.status, &s.inHistory, &s.fromMe, &s.secret)
}

const statusColumns = `seq, channel, created_at, id, status, position IS NOT NULL, from_me, secret`

// AdvanceMessage moves a message on to a status, if that can follow the one it has.
func (t *Tx) AdvanceMessage(_ context.Context, channel parley.ChannelCode, ref parley.MessageRef, to parley.Status, why *parley.Failure, at time.Time) (bool, error) {
	seq, err := t.find(channel, ref)
	if err != nil {
		return false, err
	}
	moved, err := t.advanceSeqs([]int64{seq}, to, why, at)
	return len(moved) > 0, err
}

// AdvanceMessages moves messages that the channel sent to one chat on to a status, where that can
// follow the one they have. It returns those that moved, and the ids that are not there.
func (t *Tx) AdvanceMessages(_ context.Context, code parley.ChannelCode, contact parley.ContactID, ids []parley.MessageID, to parley.Status, at time.Time) (
	moved []parley.MessageID, seqs []int64, unknown []parley.MessageID, err error) {
	channel, err := t.channelID(code)
	if err == parley.ErrNotFound {
		return nil, nil, ids, nil
	}
	if err != nil {
		return nil, nil, nil, err
	}
	for some := range slices.Chunk(ids, maxList) {
		in, args := inList(3, texts(some))
		found, err := list(t.Reader, `SELECT `+statusColumns+` FROM message
			WHERE chat = `+chatOf(`$1`, `$2`)+` AND from_me = 1 AND id IN `+in+` ORDER BY seq`,
			append([]any{string(contact), channel}, args...), scanStatus)
		if err != nil {
			return nil, nil, nil, err
		}
		for _, id := range some {
			if !slices.ContainsFunc(found, func(s statusRow) bool { return s.id == id }) {
				unknown = append(unknown, id)
			}
		}
		advanced, err := t.advance(found, to, nil, at)
		if err != nil {
			return nil, nil, nil, err
		}
		for _, s := range advanced {
			moved, seqs = append(moved, s.id), append(seqs, s.seq)
		}
	}
	return moved, seqs, unknown, nil
}

// ConfirmMessages moves messages on from pending to sent. Those that are further already, or gone, stay as they are.
func (t *Tx) ConfirmMessages(_ context.Context, _ parley.ChannelCode, seqs []int64, at time.Time) error {
	_, err := t.advanceSeqs(seqs, parley.Sent, nil, at)
	return err
}

// advanceSeqs moves messages on and returns those that moved.
func (t *Tx) advanceSeqs(seqs []int64, to parley.Status, why *parley.Failure, at time.Time) (moved []statusRow, err error) {
	for some := range slices.Chunk(seqs, maxList) {
		in, args := inList(1, some)
		found, err := list(t.Reader, `SELECT `+statusColumns+` FROM message WHERE seq IN `+in+` ORDER BY seq`, args, scanStatus)
		if err != nil {
			return nil, err
		}
		advanced, err := t.advance(found, to, why, at)
		if err != nil {
			return nil, err
		}
		moved = append(moved, advanced...)
	}
	return moved, nil
}

// advance moves up to maxList messages on to a status, where that can follow the one they have, and publishes it. It returns
// those that moved.
func (t *Tx) advance(all []statusRow, to parley.Status, why *parley.Failure, at time.Time) ([]statusRow, error) {
	moved := slices.DeleteFunc(all, func(s statusRow) bool { return !to.CanFollow(s.status) })
	if len(moved) == 0 {
		return nil, nil
	}
	var code parley.FailureCode
	var text string
	var until int64
	if why != nil {
		code, text, until = why.Code, why.Message, millis(why.Until)
	}
	seqs, published, skipped := make([]int64, len(moved)), make([]int64, 0, len(moved)), []int64(nil)
	for i, s := range moved {
		seqs[i] = s.seq
		switch {
		case !s.inHistory:
		case s.status == parley.Pending && (to == parley.Delivered || to == parley.Read || to == parley.Played): // it was sent, too
			skipped = append(skipped, s.seq)
			t.countStatus([]statusRow{s}, parley.Sent, at)
		default:
			published = append(published, s.seq)
		}
	}
	t.countStatus(moved, to, at)
	in, args := inList(6, seqs)
	if _, err := t.sql.Exec(`UPDATE message SET status = $1, updated_at = $2, failure_code = $3, failure = $4, failure_until = $5 WHERE seq IN `+in,
		append([]any{int64(to), millis(at), string(code), text, until}, args...)...); err != nil {
		return nil, err
	}
	if err := t.publishStatus(published, to, at); err != nil {
		return nil, err
	}
	return moved, t.publishDelivered(skipped, to, at)
}

// DelayMessage stores that sending failed for now and when to try again.
func (t *Tx) DelayMessage(_ context.Context, channel parley.ChannelCode, ref parley.MessageRef, attempts int, next time.Time) error {
	return t.set(channel, ref, `UPDATE message SET attempts = $1, next_attempt = $2 WHERE status = 0 AND seq = $3`, int64(attempts), millis(next))
}

// FailPool fails what is still pending of a pool and returns the messages' references in order.
func (t *Tx) FailPool(_ context.Context, channel parley.ChannelCode, pool parley.PoolID, why parley.Failure, at time.Time) ([]parley.MessageRef, error) {
	type waiting struct {
		seq int64
		ref parley.MessageRef
	}
	pending, err := list(t.Reader, `SELECT message.seq, from_me, contact, message.id FROM message JOIN chat ON chat.id = message.chat
		WHERE message.channel = (SELECT id FROM channel WHERE code = $1) AND status = 0 AND pool = $2 AND pool <> '' ORDER BY message.seq`,
		[]any{string(channel), string(pool)}, func(row scanner) (w waiting, err error) {
			return w, row.Scan(&w.seq, &w.ref.FromMe, &w.ref.Chat, &w.ref.ID)
		})
	if err != nil {
		return nil, err
	}
	var failed []parley.MessageRef
	var seqs []int64
	for _, w := range pending {
		failed, seqs = append(failed, w.ref), append(seqs, w.seq)
	}
	_, err = t.advanceSeqs(seqs, parley.FailedForGood, &why, at)
	return failed, err
}
