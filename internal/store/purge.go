package store

import (
	"context"
	"fmt"

	"parley"
)

// Everything of a channel names it by its number. To delete a channel removes its row, to reset it gives it another number:
// in both cases all that names the old number is out of sight at once. The rows themselves are purged later, some hundred in a
// transaction, so that nobody waits long behind them.

// DeleteChannel removes a channel. What is its own is out of sight at once; [Tx.PurgeChannels] removes it.
func (t *Tx) DeleteChannel(ctx context.Context, code parley.ChannelCode) error {
	id, err := t.channelID(code)
	if err != nil {
		return err
	}
	for _, own := range []string{
		`DELETE FROM channel WHERE code = $1`,
		`DELETE FROM token WHERE channel = $1`,
		`DELETE FROM ticket WHERE channel = $1`,
	} {
		if _, err := t.sql.Exec(own, string(code)); err != nil {
			return err
		}
	}
	if err := t.deleteCallbacks(ctx, code); err != nil {
		return err
	}
	if err := t.retire(id, 0); err != nil {
		return err
	}
	return t.revise()
}

// ClearChannel forgets all messages of a channel, its codes and links, and the responses to its requests. They are out of
// sight at once; [Tx.PurgeChannels] removes them.
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
	if _, err := t.sql.Exec(`UPDATE channel_state SET channel = $1 WHERE channel = $2`, next, id); err != nil {
		return err
	}
	return t.retire(id, next)
}

// retire forgets a number, and notes that its rows of a number are to be purged.
func (t *Tx) retire(id, successor int64) error {
	t.lastCode = ""
	if _, err := t.sql.Exec(`UPDATE retired SET successor = $1 WHERE successor = $2`, successor, id); err != nil {
		return err
	}
	_, err := t.sql.Exec(`INSERT INTO retired (channel, successor) VALUES ($1, $2)`, id, successor)
	return err
}

// purgeBatch is how many rows of a table one call of PurgeChannels removes.
const purgeBatch = 200

// PurgeChannels removes some rows of channels that were deleted or reset and of webhooks that were deleted, and returns the
// files of their messages. It reports whether there is more to do.
func (t *Tx) PurgeChannels(_ context.Context) (files []parley.Media, more bool, err error) {
	if more, err := t.purgeWebhook(); more || err != nil {
		return nil, more, err
	}
	var id, successor int64
	err = t.row(`SELECT channel, successor FROM retired ORDER BY channel LIMIT 1`, nil, &id, &successor)
	if err == parley.ErrNotFound {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	files, done, err := t.purgeMessages(id)
	if err != nil || !done {
		return files, true, err
	}
	for _, p := range purges(successor) {
		args := []any{id, int64(purgeBatch)}
		if p.moves {
			args = append(args, successor)
		}
		n, err := t.sql.Exec(p.statement, args...)
		if err != nil {
			return files, false, fmt.Errorf("purge a channel: %w", err)
		}
		if n == purgeBatch {
			return files, true, nil
		}
	}
	_, err = t.sql.Exec(`DELETE FROM retired WHERE channel = $1`, id)
	return files, true, err
}

// purgeWebhook removes some deliveries of a webhook that was deleted. It reports whether there was such a webhook.
func (t *Tx) purgeWebhook() (found bool, err error) {
	var id string
	if err := t.row(`SELECT id FROM retired_webhook LIMIT 1`, nil, &id); err != nil {
		if err == parley.ErrNotFound {
			err = nil
		}
		return false, err
	}
	n, err := t.sql.Exec(`DELETE FROM delivery WHERE seq IN (SELECT seq FROM delivery WHERE endpoint = $1 LIMIT $2)`, id, int64(purgeBatch))
	if err != nil || n == purgeBatch {
		return true, err
	}
	_, err = t.sql.Exec(`DELETE FROM retired_webhook WHERE id = $1`, id)
	return true, err
}

// purgeMessages removes some messages of a number with what hangs on them.
func (t *Tx) purgeMessages(id int64) (files []parley.Media, done bool, err error) {
	type row struct {
		seq  int64
		file *parley.Media
	}
	found, err := list(t.Reader, `SELECT seq, kind, data FROM message WHERE channel = $1 ORDER BY seq LIMIT $2`, []any{id, int64(purgeBatch)},
		func(r scanner) (m row, err error) {
			m.file, err = scanFile(r, &m.seq)
			return m, err
		})
	if err != nil || len(found) == 0 {
		return nil, err == nil, err
	}
	for _, m := range found {
		if m.file != nil {
			files = append(files, *m.file)
		}
	}
	first, last := found[0].seq, found[len(found)-1].seq
	const those = ` IN (SELECT seq FROM message WHERE channel = $1 AND seq BETWEEN $2 AND $3)`
	for _, statement := range []string{
		`DELETE FROM media_fetch WHERE seq` + those,
		`DELETE FROM resend WHERE seq` + those,
		`DELETE FROM reaction WHERE seq` + those,
		`DELETE FROM event WHERE message` + those,
		`DELETE FROM message WHERE channel = $1 AND seq BETWEEN $2 AND $3`,
	} {
		if _, err := t.sql.Exec(statement, id, first, last); err != nil {
			return nil, false, err
		}
	}
	return files, false, nil
}

// scanFile reads the file that a message carries, from its seq, kind and data; nil: none.
func scanFile(r scanner, seq *int64) (*parley.Media, error) {
	var kind string
	var data []byte
	if err := r.Scan(seq, &kind, &data); err != nil || data == nil || !parley.Kind(kind).IsMedia() {
		return nil, err
	}
	content, err := parley.DecodeContent(parley.Kind(kind), "", data)
	if err != nil {
		return nil, err
	}
	if file := parley.MediaOf(content); file != nil && file.Key != "" {
		return file, nil
	}
	return nil, nil
}

// purge is a statement that removes up to $2 rows of a number, or gives them another one.
type purge struct {
	statement string
	moves     bool
}

// purges lists what to do with the other rows of a number. What a channel that was reset keeps moves to its new number: the
// events that are not about messages, and the deliveries.
func purges(successor int64) []purge {
	remove := func(table, key string) purge {
		return purge{`DELETE FROM ` + table + ` WHERE ` + key + ` IN (SELECT ` + trim(key) + ` FROM ` + table + ` WHERE channel = $1 LIMIT $2)`, false}
	}
	move := func(table string) purge {
		if successor == 0 {
			return remove(table, "seq")
		}
		return purge{`UPDATE ` + table + ` SET channel = $3 WHERE seq IN (SELECT seq FROM ` + table + ` WHERE channel = $1 LIMIT $2)`, true}
	}
	all := []purge{
		remove("chat", "id"), remove("alias", "(channel, contact)"), remove("idempotency", "(scope, key)"),
		remove("otp_code", "seq"), remove("otp_link", "id"), remove("otp_reply", "seq"), remove("otp_stranger", "code"),
		remove("otp_wrong", "(channel, minute)"), remove("otp_alarm", "(channel, type)"),
		move("event"), move("delivery"),
		remove("counter_minute", "(channel, minute, what, webhook)"), remove("counter_hour", "(channel, hour, what, webhook)"),
	}
	if successor == 0 {
		all = append(all, remove("channel_state", "(channel, seq)"))
	}
	return all
}

// trim removes the parentheses of a row value.
func trim(key string) string {
	if key[0] == '(' {
		return key[1 : len(key)-1]
	}
	return key
}
