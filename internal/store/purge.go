package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"parley"
)

// Rows of a channel name it by its number. Deleting a channel deletes its row, resetting it gives it another number. Both
// hide all rows with the old number at once. The rows are purged later, some hundred in a transaction, so other writers do
// not wait long.

// DeleteChannel deletes a channel. Its rows are hidden at once; [Tx.PurgeChannels] deletes them.
func (t *Tx) DeleteChannel(ctx context.Context, code parley.ChannelCode) error {
	id, err := t.channelID(code)
	if err != nil {
		return err
	}
	if err := t.execAll([]string{
		`DELETE FROM channel WHERE code = $1`,
		`DELETE FROM token WHERE channel = $1`,
		`DELETE FROM ticket WHERE channel = $1`,
	}, string(code)); err != nil {
		return err
	}
	if err := t.deleteCallbacks(ctx, code); err != nil {
		return err
	}
	return t.revised(t.retire(id, 0))
}

// ClearChannel deletes the messages, codes, links and stored responses of a channel. They are hidden at once;
// [Tx.PurgeChannels] deletes them.
func (t *Tx) ClearChannel(_ context.Context, code parley.ChannelCode) error {
	id, err := t.channelID(code)
	if err != nil {
		return err
	}
	next, err := t.nextNumber()
	if err != nil {
		return err
	}
	if err := t.change(`UPDATE channel SET id = $1, chats = 0 WHERE id = $2`, next, id); err != nil {
		return err
	}
	if err := t.exec(`UPDATE channel_state SET channel = $1 WHERE channel = $2`, next, id); err != nil {
		return err
	}
	return t.retire(id, next)
}

// retire schedules the purge of a number's rows.
func (t *Tx) retire(id, successor int64) error {
	t.channelsChange()
	if err := t.exec(`UPDATE retired SET successor = $1 WHERE successor = $2`, successor, id); err != nil {
		return err
	}
	return t.exec(`INSERT INTO retired (channel, successor) VALUES ($1, $2)`, id, successor)
}

// purgeBatch is how many rows of a table one call of PurgeChannels deletes.
const purgeBatch = 50

// PurgeChannels deletes some rows of deleted or reset channels and of deleted webhooks. It returns the files of the deleted
// messages, and whether there is more to do.
func (t *Tx) PurgeChannels(_ context.Context) (files []parley.Media, more bool, err error) {
	if more, err := t.purgeWebhook(); more || err != nil {
		return nil, more, err
	}
	var id, successor int64
	err = t.optional(`SELECT channel, successor FROM retired ORDER BY channel LIMIT 1`, nil, &id, &successor)
	if err != nil || id == 0 {
		return nil, false, err
	}
	files, done, err := t.purgeMessages(id)
	if err != nil || !done {
		return files, true, err
	}
	for _, p := range purges(successor) {
		n, err := p(t, id)
		if err != nil {
			return files, false, fmt.Errorf("purge a channel: %w", err)
		}
		if n == purgeBatch {
			return files, true, nil
		}
	}
	return files, true, t.exec(`DELETE FROM retired WHERE channel = $1`, id)
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
	seqs, files, err := t.messageFiles(`channel = $1 ORDER BY seq LIMIT $2`, id, int64(purgeBatch))
	if err != nil || len(seqs) == 0 {
		return nil, err == nil, err
	}
	const those = ` IN (SELECT seq FROM message WHERE channel = $1 AND seq BETWEEN $2 AND $3)`
	return files, false, t.execAll([]string{
		`DELETE FROM media_fetch WHERE seq` + those,
		`DELETE FROM resend WHERE seq` + those,
		`DELETE FROM reaction WHERE seq` + those,
		`DELETE FROM event WHERE message` + those,
		`DELETE FROM message WHERE channel = $1 AND seq BETWEEN $2 AND $3`,
	}, id, seqs[0], seqs[len(seqs)-1])
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
	return parley.MediaOf(content), nil
}

// purge deletes up to purgeBatch rows of a number, or gives them another number. It returns how many.
type purge func(t *Tx, id int64) (int64, error)

// purges lists what purges the other rows of a number. After a reset, deliveries and events that are not about messages move
// to the new number.
func purges(successor int64) []purge {
	remove := func(table, key string) purge {
		columns := strings.Trim(key, "()")
		statement := `DELETE FROM ` + table + ` WHERE ` + key + ` IN (SELECT ` + columns + ` FROM ` + table + ` WHERE channel = $1 LIMIT $2)`
		return func(t *Tx, id int64) (int64, error) { return t.sql.Exec(statement, id, int64(purgeBatch)) }
	}
	events, deliveries := remove("event", "seq"), remove("delivery", "seq")
	if successor != 0 {
		events = func(t *Tx, id int64) (int64, error) {
			return t.sql.Exec(`UPDATE event SET channel = $3 WHERE seq IN (SELECT seq FROM event WHERE channel = $1 LIMIT $2)`,
				id, int64(purgeBatch), successor)
		}
		deliveries = func(t *Tx, id int64) (int64, error) { return t.moveDeliveries(id, successor, purgeBatch) }
	}
	all := []purge{
		remove("chat", "id"), remove("alias", "(channel, contact)"), remove("idempotency", "(scope, key)"),
		remove("otp_code", "seq"), remove("otp_link", "id"), remove("otp_reply", "seq"), remove("otp_stranger", "code"),
		remove("otp_wrong", "(channel, minute)"), remove("otp_alarm", "(channel, type)"),
		remove("upload", "id"), // the files become orphans
		remove("request_log", "(channel, seq)"),
		events, deliveries,
		remove("counter_minute", "(channel, minute, what, webhook)"), remove("counter_hour", "(channel, hour, what, webhook)"),
	}
	if successor == 0 {
		all = append(all, remove("channel_state", "(channel, seq)"))
	}
	return all
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
	for _, seq := range due {
		if err := t.erase(seq); err != nil {
			return 0, nil, err
		}
	}
	return len(due), files, nil
}
