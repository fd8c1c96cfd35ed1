package store

import (
	"context"
	"slices"
	"time"

	"parley"
)

// statusRow is the part of a message that a change of its status needs.
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

// AdvanceMessage sets the status of a message, if it can follow the current one.
func (t *Tx) AdvanceMessage(_ context.Context, channel parley.ChannelCode, ref parley.MessageRef, to parley.Status,
	why *parley.Failure, at time.Time) (bool, error) {
	seq, err := t.find(channel, ref)
	if err != nil {
		return false, err
	}
	moved, err := t.advanceSeqs([]int64{seq}, to, why, at)
	return len(moved) > 0, err
}

// AdvanceMessages sets the status of messages that the channel sent to one chat, where it can follow the current one. It
// returns the messages that changed, and the ids that it did not find.
func (t *Tx) AdvanceMessages(_ context.Context, code parley.ChannelCode, contact parley.ContactID, ids []parley.MessageID,
	to parley.Status, at time.Time) (moved []parley.MessageID, seqs []int64, unknown []parley.MessageID, err error) {
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

// ConfirmMessages sets pending messages to SENT. It ignores messages that are further or do not exist.
func (t *Tx) ConfirmMessages(_ context.Context, _ parley.ChannelCode, seqs []int64, at time.Time) error {
	_, err := t.advanceSeqs(seqs, parley.Sent, nil, at)
	return err
}

// advanceSeqs advances messages and returns those that changed.
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

// advance sets the status of up to maxList messages, where it can follow the current one, and publishes it. It returns the
// messages that changed.
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
		case s.status == parley.Pending && (to == parley.Delivered || to == parley.Read || to == parley.Played): // SENT was skipped
			skipped = append(skipped, s.seq)
			t.countStatus([]statusRow{s}, parley.Sent, at)
		default:
			published = append(published, s.seq)
		}
	}
	t.countStatus(moved, to, at)
	in, args := inList(6, seqs)
	if err := t.exec(`UPDATE message SET status = $1, updated_at = $2, failure_code = $3, failure = $4, failure_until = $5
		WHERE seq IN `+in,
		append([]any{int64(to), millis(at), string(code), text, until}, args...)...); err != nil {
		return nil, err
	}
	if err := t.publishStatus(published, to, at); err != nil {
		return nil, err
	}
	return moved, t.publishDelivered(skipped, to, at)
}

// DelayMessage stores a failed attempt and the time of the next one.
func (t *Tx) DelayMessage(_ context.Context, channel parley.ChannelCode, ref parley.MessageRef, attempts int, next time.Time) error {
	return t.set(channel, ref, `UPDATE message SET attempts = $1, next_attempt = $2 WHERE status = 0 AND seq = $3`,
		int64(attempts), millis(next))
}

// FailPool fails the pending messages of a pool and returns their references in order.
func (t *Tx) FailPool(_ context.Context, channel parley.ChannelCode, pool parley.PoolID, why parley.Failure, at time.Time) (
	[]parley.MessageRef, error) {
	var seqs []int64
	failed, err := list(t.Reader, `SELECT message.seq, from_me, contact, message.id FROM message JOIN chat ON chat.id = message.chat
		WHERE message.`+ofChannel+` AND status = 0 AND pool = $2 AND pool <> '' ORDER BY message.seq`,
		[]any{string(channel), string(pool)}, func(row scanner) (ref parley.MessageRef, err error) {
			var seq int64
			err = row.Scan(&seq, &ref.FromMe, &ref.Chat, &ref.ID)
			seqs = append(seqs, seq)
			return ref, err
		})
	if err != nil {
		return nil, err
	}
	_, err = t.advanceSeqs(seqs, parley.Failed, &why, at)
	return failed, err
}
