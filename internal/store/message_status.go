package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// statusRow is the part of a message that a change of its status needs.
type statusRow struct {
	seq, channel, created     int64
	chat                      int64 // chat and contact are set for receipts only
	contact                   parley.ContactID
	id                        parley.MessageID
	status                    parley.Status
	inHistory, fromMe, secret bool
	moved                     bool // by a receipt that is being applied
}

// scanStatus reads the columns before statusColumns into variables, and then those.
func scanStatus(row scanner, before ...any) (s statusRow, err error) {
	return s, row.Scan(append(before, &s.seq, &s.channel, &s.created, &s.id, &s.status, &s.inHistory, &s.fromMe, &s.secret)...)
}

func scanStatusRow(row scanner) (statusRow, error) { return scanStatus(row) }

const statusColumns = `message.seq, message.channel, message.created_at, message.id, message.status, message.position IS NOT NULL,
	message.from_me, message.secret`

// AdvanceMessage sets the status of a message, if it can follow the current one.
func (t *Tx) AdvanceMessage(_ context.Context, channel parley.ChannelCode, ref parley.MessageRef, to parley.Status,
	why *parley.Failure, at time.Time) (bool, error) {
	seq, err := t.find(channel, ref)
	if err != nil {
		return false, err
	}
	moved, err := t.advanceSeqs(0, []int64{seq}, to, why, at)
	return len(moved) > 0, err
}

// Receipt says that messages which a channel sent to one chat have a status.
type Receipt struct {
	Channel parley.ChannelCode
	Chat    parley.ContactID
	IDs     []parley.MessageID
	Status  parley.Status
	At      time.Time
}

// Advanced is what a receipt changed: messages with their seqs. Unknown are the ids that were not found.
type Advanced struct {
	IDs     []parley.MessageID
	Seqs    []int64
	Unknown []parley.MessageID
}

// AdvanceMessages applies receipts of any channels: it sets the status of messages where it can follow the current one. The results
// are in the order of the receipts.
func (t *Tx) AdvanceMessages(_ context.Context, receipts ...Receipt) ([]Advanced, error) {
	found, err := t.receiptRows(receipts)
	if err != nil {
		return nil, err
	}
	results := make([]Advanced, len(receipts))
	order := make([]int, len(receipts))
	for i, r := range receipts {
		order[i] = i
		for n, id := range r.IDs {
			if found[i][n] == nil {
				results[i].Unknown = append(results[i].Unknown, id)
			}
		}
	}
	same := func(i, j int) bool {
		return receipts[i].Status == receipts[j].Status && receipts[i].At.Equal(receipts[j].At)
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(receipts[i].Status, receipts[j].Status), receipts[i].At.Compare(receipts[j].At))
	})
	for len(order) > 0 { // equal receipts together
		n := 1
		for n < len(order) && same(order[0], order[n]) {
			n++
		}
		if err := t.advanceEqual(receipts, found, order[:n], results); err != nil {
			return nil, err
		}
		order = order[n:]
	}
	return results, nil
}

// advanceEqual applies some of the receipts, which have the same status and time. An operation takes effect with its confirmation,
// so receipts do not confirm it.
func (t *Tx) advanceEqual(receipts []Receipt, found [][]*statusRow, which []int, results []Advanced) error {
	rows := map[int64]*statusRow{} // by seq
	for _, i := range which {
		for _, row := range found[i] {
			if row != nil && row.inHistory {
				rows[row.seq] = row
			}
		}
	}
	first := receipts[which[0]]
	for some := range slices.Chunk(slices.Sorted(maps.Keys(rows)), maxList) {
		list := make([]statusRow, len(some))
		for i, seq := range some {
			list[i] = *rows[seq]
		}
		moved, err := t.advance(list, first.Status, nil, first.At)
		if err != nil {
			return err
		}
		for _, m := range moved {
			rows[m.seq].status, rows[m.seq].moved = first.Status, true
		}
	}
	for _, i := range which {
		for _, row := range found[i] {
			if row != nil && row.moved {
				results[i].IDs, results[i].Seqs = append(results[i].IDs, row.id), append(results[i].Seqs, row.seq)
				row.moved = false // another receipt of the same message changes nothing
			}
		}
	}
	return nil
}

// receiptRows finds the messages of receipts; nil: a message is unknown. A message that is in several receipts has one row.
func (t *Tx) receiptRows(receipts []Receipt) ([][]*statusRow, error) {
	var ids []string
	for _, r := range receipts {
		ids = append(ids, texts(r.IDs)...)
	}
	slices.Sort(ids)
	byID := map[parley.MessageID][]*statusRow{} // ids of different chats can be equal
	_, err := listIn(t.Reader, `SELECT contact, chat, `+statusColumns+` FROM message JOIN chat ON chat.id = message.chat
		WHERE message.id IN `, ` AND from_me = 1`, nil, slices.Compact(ids), func(row scanner) (_ struct{}, err error) {
		var contact parley.ContactID
		var chat int64
		s, err := scanStatus(row, &contact, &chat)
		if err == nil {
			s.contact, s.chat = contact, chat
			byID[s.id] = append(byID[s.id], &s)
		}
		return struct{}{}, err
	})
	if err != nil {
		return nil, err
	}
	found := make([][]*statusRow, len(receipts))
	for i, r := range receipts {
		found[i] = make([]*statusRow, len(r.IDs))
		channel, err := t.channelID(r.Channel)
		if err == parley.ErrNotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		for n, id := range r.IDs {
			if found[i][n], err = t.inChat(byID[id], channel, r.Chat); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// inChat returns the message that is in a contact's chat on a channel; nil: none is.
func (t *Tx) inChat(rows []*statusRow, channel int64, contact parley.ContactID) (*statusRow, error) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(s *statusRow) bool { return s.channel != channel })
	for _, s := range rows {
		if s.contact == contact {
			return s, nil
		}
	}
	if len(rows) == 0 {
		return nil, nil
	}
	var chat int64 // by another spelling of its number
	err := t.optional(`SELECT chat FROM alias WHERE contact = $1 AND channel = $2`, []any{string(contact), channel}, &chat)
	if i := slices.IndexFunc(rows, func(s *statusRow) bool { return s.chat == chat }); err == nil && i >= 0 {
		return rows[i], nil
	}
	return nil, err
}

// ConfirmMessages sets pending messages to SENT. It ignores messages that are further or do not exist.
func (t *Tx) ConfirmMessages(_ context.Context, _ parley.ChannelCode, seqs []int64, at time.Time) error {
	_, err := t.advanceSeqs(0, seqs, parley.Sent, nil, at)
	return err
}

// FailMessages fails messages of a channel, given by their seqs, where that can follow their status. It returns the seqs of these.
func (t *Tx) FailMessages(_ context.Context, channel parley.ChannelCode, seqs []int64, why *parley.Failure, at time.Time) (
	moved []int64, err error) {
	number, err := t.channelID(channel)
	if err != nil {
		return nil, err
	}
	rows, err := t.advanceSeqs(number, seqs, parley.Failed, why, at)
	for _, row := range rows {
		moved = append(moved, row.seq)
	}
	return moved, err
}

// advanceSeqs advances messages of a channel, or of any if its number is 0, and returns those that changed.
func (t *Tx) advanceSeqs(channel int64, seqs []int64, to parley.Status, why *parley.Failure, at time.Time) (moved []statusRow, err error) {
	for some := range slices.Chunk(seqs, maxList) {
		in, args := inList(1, some)
		found, err := list(t.Reader, `SELECT `+statusColumns+` FROM message WHERE seq IN `+in+` ORDER BY seq`, args, scanStatusRow)
		if err != nil {
			return nil, err
		}
		found = slices.DeleteFunc(found, func(s statusRow) bool { return channel != 0 && s.channel != channel })
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
	seqs := make([]int64, len(moved))
	for i, s := range moved {
		seqs[i] = s.seq
		if !s.inHistory {
			continue
		}
		if s.status == parley.Pending && (to == parley.Delivered || to == parley.Read || to == parley.Played) { // SENT was skipped
			t.countStatus([]statusRow{s}, parley.Sent, "", at)
			if err := t.publishStatus(s, parley.Sent, at); err != nil {
				return nil, err
			}
		}
		if err := t.publishStatus(s, to, at); err != nil {
			return nil, err
		}
	}
	t.countStatus(moved, to, code, at)
	in, args := inList(6, seqs)
	update := setStatuses
	if !t.conn.IsPostgres() {
		update = sqldb.OrFail(update)
	}
	return moved, t.exec(update+in, append([]any{int64(to), millis(at), string(code), text, until}, args...)...)
}

const setStatuses = `UPDATE message SET status = $1, updated_at = $2, failure_code = $3, failure = $4, failure_until = $5 WHERE seq IN `

// SetCopies stores how often the network may have a message, unless more copies are known; see [parley.Message]. A copy that the network
// confirmed is published as another event of the message's status.
func (t *Tx) SetCopies(_ context.Context, channel parley.ChannelCode, ref parley.MessageRef, copies int, at time.Time) error {
	seq, err := t.find(channel, ref)
	if err != nil {
		return err
	}
	n, err := t.sql.Exec(`UPDATE message SET copies = $1 WHERE seq = $2 AND copies < $1`, int64(copies), seq)
	if err != nil || n == 0 || copies < 2 {
		return err
	}
	s, err := one(t.Reader, `SELECT `+statusColumns+` FROM message WHERE seq = $1`, []any{seq}, scanStatusRow)
	if err != nil || s.status == parley.Pending || s.status == parley.Deleted {
		return err
	}
	return t.publishStatus(s, s.status, at)
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
	_, err = t.advanceSeqs(0, seqs, parley.Failed, &why, at)
	return failed, err
}
