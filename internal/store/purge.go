package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// Rows of a channel name it by its number. Deleting a channel deletes its row, resetting it gives it another number. Both
// hide all rows with the old number at once. The rows are purged later, some in a transaction, so other writers do not wait
// long. The table deletion lists the numbers, and how far their purge is.
//
// A channel that went live has another number too, and its archive has the old one: the messages, chats and counters of that number stay.

// DeleteChannel deletes a channel. Its rows are hidden at once; [Tx.PurgeChannels] deletes them.
func (t *Tx) DeleteChannel(ctx context.Context, code parley.ChannelCode) error {
	id, err := t.channelID(code)
	if err != nil {
		return err
	}
	if err := t.retire(id, 0); err != nil {
		return err
	}
	if err := t.exec(`UPDATE deletion SET (code, network) = (SELECT code, network FROM channel WHERE channel.id = deletion.id) WHERE id = $1`,
		id); err != nil {
		return err
	}
	if err := t.execAll([]string{
		`DELETE FROM channel WHERE code = $1`,
		`DELETE FROM token WHERE channel = $1`,
		`DELETE FROM ticket WHERE channel = $1`,
	}, string(code)); err != nil {
		return err
	}
	return t.revised(ChannelChange, code, t.revised(WebhookChange, "", t.deleteCallbacks(ctx, code)))
}

// ClearChannel deletes the messages, codes, links and stored responses of a channel. They are hidden at once;
// [Tx.PurgeChannels] deletes them.
func (t *Tx) ClearChannel(_ context.Context, code parley.ChannelCode) error {
	_, _, err := t.renumber(code)
	return t.revised(ChannelChange, code, err)
}

// retire schedules the purge of a number's rows, and deletes the credentials at once.
func (t *Tx) retire(id, successor int64) error {
	t.channelsChange()
	if err := t.exec(`DELETE FROM secret WHERE owner = $1`, string(parley.NetworkSecret(id))); err != nil {
		return err
	}
	if err := t.exec(`UPDATE deletion SET successor = $1 WHERE successor = $2`, successor, id); err != nil {
		return err
	}
	// An archive may be deleted before everything that it does not have has moved to its channel.
	return t.exec(`INSERT INTO deletion (id, successor, started_at) VALUES ($1, $2, $3)
		ON CONFLICT (id) DO UPDATE SET started_at = excluded.started_at`, id, successor, t.db.now())
}

// notMoving is the condition that a channel is not an archive from which a purge still removes something.
const notMoving = `NOT EXISTS (SELECT 1 FROM deletion WHERE deletion.id = channel.id)`

// purgeBatch is how many rows of a table one call of PurgeChannels deletes.
const purgeBatch = 50

// PurgeChannels deletes some rows of deleted or reset channels and of deleted webhooks. It returns the files of the deleted
// messages, and whether there is more to do.
func (t *Tx) PurgeChannels(_ context.Context) (files []parley.Media, more bool, err error) {
	if more, err := t.purgeWebhook(); more || err != nil {
		return nil, more, err
	}
	var id, successor int64
	var archive bool
	err = t.optional(`SELECT id, successor, EXISTS (SELECT 1 FROM channel WHERE channel.id = deletion.id) FROM deletion
		WHERE purged = 0 ORDER BY id DESC LIMIT 1`, nil, &id, &successor, &archive)
	if err != nil || id == 0 {
		return nil, false, err
	}
	if more, err := t.purgeRows(id, secretPurges); more || err != nil { // first: they are secrets
		return nil, more, err
	}
	if archive {
		if more, err := t.purgeRows(id, archivePurges(successor)); more || err != nil {
			return nil, more, err
		}
		return nil, true, t.purged(id)
	}
	files, done, err := t.purgeMessages(id)
	if err != nil || !done {
		return files, true, err
	}
	if more, err := t.purgeRows(id, purges(successor)); more || err != nil {
		return nil, more, err
	}
	if files, err = t.purgeFiles(id); err != nil || len(files) > 0 {
		return files, true, err
	}
	return nil, true, t.purged(id)
}

// purgeRows runs purges until one of them finds a whole batch, and reports whether one did.
func (t *Tx) purgeRows(id int64, all []purge) (more bool, err error) {
	for _, p := range all {
		n, err := p(t, id)
		if err != nil {
			return false, fmt.Errorf("purge a channel: %w", err)
		}
		if n == purgeBatch {
			return true, nil
		}
	}
	return false, nil
}

// purgeFiles deletes some rows of files of a number, which has no messages and uploads any more. Messages may have moved to
// another channel, so some of the files may be named nevertheless.
func (t *Tx) purgeFiles(id int64) (files []parley.Media, err error) {
	keys, err := list(t.Reader, `SELECT key FROM file WHERE channel = $1 LIMIT $2`, []any{id, int64(purgeBatch)}, sqldb.ScanOne[string])
	for _, key := range keys {
		files = append(files, parley.Media{Key: key})
		if err := t.exec(`DELETE FROM file WHERE key = $1`, key); err != nil {
			return nil, err
		}
	}
	return files, err
}

// purgeWebhook deletes some deliveries of a deleted webhook. It reports whether there was such a webhook.
func (t *Tx) purgeWebhook() (found bool, err error) {
	var id string
	if err := t.optional(`SELECT id FROM retired_webhook LIMIT 1`, nil, &id); err != nil || id == "" {
		return false, err
	}
	n, err := t.sql.Exec(`DELETE FROM delivery WHERE seq IN (SELECT seq FROM delivery WHERE endpoint = $1 LIMIT $2)`, id, int64(purgeBatch))
	if err != nil || n == purgeBatch {
		return true, err
	}
	return true, t.exec(`DELETE FROM retired_webhook WHERE id = $1`, id)
}

// purgeMessages deletes some messages of a number with the rows that refer to them.
func (t *Tx) purgeMessages(id int64) (files []parley.Media, done bool, err error) {
	seqs, files, err := t.messageFiles(`channel = $1 LIMIT $2`, id, int64(purgeBatch))
	if err != nil || len(seqs) == 0 {
		return nil, err == nil, err
	}
	those, args := inList(1, seqs)
	if err := t.execAll(messageRemovals(those), args...); err != nil {
		return nil, false, err
	}
	return files, false, t.exec(`UPDATE deletion SET messages_purged = messages_purged + $1 WHERE id = $2`, int64(len(seqs)), id)
}

// messageRemovals delete messages, given as a list of seqs, with the rows that refer to them.
func messageRemovals(those string) []string {
	return []string{
		`DELETE FROM media_fetch WHERE seq IN ` + those,
		`DELETE FROM resend WHERE seq IN ` + those,
		`DELETE FROM reaction WHERE seq IN ` + those,
		`DELETE FROM event WHERE message IN ` + those,
		`DELETE FROM message WHERE seq IN ` + those,
	}
}

// messageFiles lists the seqs of messages, and their files that have a key.
func (t *Tx) messageFiles(where string, args ...any) (seqs []int64, files []parley.Media, err error) {
	seqs, err = list(t.Reader, `SELECT seq, kind, data FROM message WHERE `+where, args, func(row scanner) (seq int64, err error) {
		file, err := scanFile(row, &seq)
		if file != nil && file.Key != "" {
			files = append(files, *file)
		}
		return seq, err
	})
	return seqs, files, err
}

// scanFile reads the file of a message from its seq, kind and data; nil: none.
func scanFile(row scanner, seq *int64) (*parley.Media, error) {
	var kind parley.Kind
	var data []byte
	if err := row.Scan(seq, &kind, &data); err != nil || data == nil || !kind.IsMedia() {
		return nil, err
	}
	content, err := parley.DecodeContent(kind, "", data)
	if err != nil {
		return nil, fmt.Errorf("file of a message: %w", err)
	}
	return parley.MediaIn(content), nil
}

// purge deletes up to purgeBatch rows of a number, or gives them another number. It returns how many.
type purge func(t *Tx, id int64) (int64, error)

func removal(table, key string) purge {
	some := `(SELECT ` + strings.Trim(key, "()") + ` FROM ` + table + ` WHERE channel = $1 LIMIT $2)`
	statement := `DELETE FROM ` + table + ` WHERE ` + key + ` IN ` + some
	return func(t *Tx, id int64) (int64, error) { return t.sql.Exec(statement, id, int64(purgeBatch)) }
}

var secretPurges = []purge{
	removal("otp_code", "seq"), removal("otp_link", "id"), removal("otp_reply", "seq"), removal("otp_stranger", "code"),
	removal("otp_fallback", "id"),
	removal("otp_wrong", "(channel, minute)"), removal("otp_alarm", "(channel, type)"),
}

// purges lists what purges the rows of a number that are neither secrets nor messages. After a reset, deliveries, statuses and events
// that are not about messages move to the new number.
func purges(successor int64) []purge {
	return append(movePurges(successor), removal("chat", "id"), removal("alias", "(channel, contact)"), removal("upload", "id"),
		removal("request_log", "(channel, seq)"), removal("remote_attempt", "(channel, message)"),
		removal("remote_message", "(channel, remote)"), removal("remote_contact", "(channel, contact)"),
		removal("remote_file", "(channel, sha256)"), removal("counter_minute", "(channel, minute, what, webhook)"),
		removal("counter_hour", "(channel, hour, what, webhook)"))
}

// archivePurges lists what purges the rows of an archive's number that do not belong to it. It never runs, so its files are not fetched.
func archivePurges(successor int64) []purge {
	return append(movePurges(successor), removal("media_fetch", "seq"), move("upload", "id", "", successor))
}

func movePurges(successor int64) []purge {
	deliveries := removal("delivery", "seq")
	if successor != 0 {
		deliveries = func(t *Tx, id int64) (int64, error) { return t.moveDeliveries(id, successor, purgeBatch) }
	}
	return []purge{removal("idempotency", "(scope, key)"), removal("stored_hour", "(channel, chat, hour)"), deliveries,
		move("event", "seq", lastFirst, successor), move("channel_state", "(channel, seq)", lastFirst, successor)}
}

const lastFirst = ` ORDER BY seq DESC`

// move gives rows of a number that of its successor, or deletes them if there is none.
func move(table, key, order string, successor int64) purge {
	if successor == 0 {
		return removal(table, key)
	}
	some := `(SELECT ` + strings.Trim(key, "()") + ` FROM ` + table + ` WHERE channel = $1` + order + ` LIMIT $2)`
	statement := `UPDATE ` + table + ` SET channel = $3 WHERE ` + key + ` IN ` + some
	return func(t *Tx, id int64) (int64, error) { return t.sql.Exec(statement, id, int64(purgeBatch), successor) }
}

// EraseOlder erases up to limit messages of a channel that are not pending and were received before a time, the oldest
// first. It returns their number, and the files that no message needs any more.
func (t *Tx) EraseOlder(_ context.Context, channel parley.ChannelCode, before time.Time, limit int) (int, []parley.Media, error) {
	id, err := t.channelID(channel)
	if err != nil {
		return 0, nil, err
	}
	due, files, err := t.messageFiles(`channel = $1 AND received_at < $2 AND (body <> '' OR data IS NOT NULL)
		AND status <> 0 ORDER BY received_at LIMIT $3`, id, millis(before), int64(limit))
	if err != nil {
		return 0, nil, err
	}
	return len(due), files, t.erase(due...)
}

// OldMessage is a message that was received before a time.
type OldMessage struct {
	Seq     int64
	Channel parley.ChannelCode
}

// OldMessages lists messages that were received before a time, among the next limit messages after a seq, and returns the last seq that it
// read; 0: there are no more. A pending message stays, with the later ones of its chat, because positions have no gaps: kept has these
// chats, from the first call to the last.
func (r Reader) OldMessages(ctx context.Context, after int64, before time.Time, limit int, kept map[int64]bool) (
	old []OldMessage, last int64, err error) {
	young, n := 0, 0
	err = each(r.with(ctx), `SELECT seq, coalesce((SELECT code FROM channel WHERE channel.id = message.channel), ''), chat, status, received_at
		FROM message WHERE seq > $1 ORDER BY seq LIMIT $2`, []any{after, int64(limit)}, func(row scanner) error {
		var m OldMessage
		var chat, status, received int64
		if err := row.Scan(&m.Seq, &m.Channel, &chat, &status, &received); err != nil {
			return err
		}
		n, last = n+1, m.Seq
		switch {
		case received >= millis(before):
			young++
			kept[chat] = true
		case status == int64(parley.Pending):
			kept[chat] = true
		case !kept[chat] && m.Channel != "": // else a purge of its channel deletes it
			old = append(old, m)
		}
		return nil
	})
	if n < limit || young == n {
		last = 0
	}
	return old, last, err
}

// DeleteMessages deletes messages of the history that are not pending, with everything that refers to them, and chats that have no more
// messages and tell nothing else. It returns the files that no message needs any more. It must run where the channels are served: a
// message that another node adds to such a chat at this moment would have none.
func (t *Tx) DeleteMessages(_ context.Context, seqs []int64) (files []parley.Media, err error) {
	for some := range slices.Chunk(seqs, maxList) {
		in, args := inList(1, some)
		found, more, err := t.messageFiles(`seq IN `+in+` AND status <> 0`, args...)
		if err != nil || len(found) == 0 {
			return files, err
		}
		files = append(files, more...)
		those, args := inList(1, found)
		chats, err := list(t.Reader, `SELECT DISTINCT chat FROM message WHERE seq IN `+those, args, sqldb.ScanOne[int64])
		if err != nil {
			return nil, err
		}
		names := `DELETE FROM remote_message WHERE (channel, remote) IN (SELECT named.channel, named.remote FROM message
			JOIN remote_message AS named ON named.channel = message.channel AND named.message = message.id WHERE message.seq IN ` + those + `)`
		if err := t.execAll(append([]string{names}, messageRemovals(those)...), args...); err != nil {
			return nil, err
		}
		if err := t.closeChats(chats); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// closeChats hides those of some chats that have no messages in their history, and deletes those of which nothing else is known.
func (t *Tx) closeChats(chats []int64) error {
	those, args := inList(1, chats)
	const empty = ` AND NOT EXISTS (SELECT 1 FROM message WHERE message.chat = chat.id AND position > 0)`
	closed, err := list(t.Reader, `SELECT channel FROM chat WHERE last_at > 0 AND id IN `+those+empty, args, sqldb.ScanOne[int64])
	if err != nil {
		return err
	}
	for _, channel := range closed {
		if err := t.exec(`UPDATE channel SET chats = chats - 1 WHERE id = $1`, channel); err != nil {
			return err
		}
	}
	return t.execAll([]string{
		`UPDATE chat SET last_at = 0 WHERE last_at > 0 AND id IN ` + those + empty,
		`DELETE FROM chat WHERE id IN ` + those + ` AND known = 0 AND archived = 0
			AND NOT EXISTS (SELECT 1 FROM message WHERE message.chat = chat.id)
			AND NOT EXISTS (SELECT 1 FROM alias WHERE alias.chat = chat.id)`,
	}, args...)
}
