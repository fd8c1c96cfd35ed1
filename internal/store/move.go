package store

import (
	"context"

	"parley"
)

// MoveHistory moves the chats and messages of a channel to another one. Chats keep their ids. Events stay where they happened.
func (t *Tx) MoveHistory(_ context.Context, fromCode, toCode parley.ChannelCode) error {
	from, err := t.channelID(fromCode)
	if err != nil {
		return err
	}
	to, err := t.channelID(toCode)
	if err != nil {
		return err
	}
	if err := t.clearOTPs(from); err != nil {
		return err
	}
	for _, statement := range []string{
		// A request that is asked again must not get the response of a network that its channel is not on any more.
		`DELETE FROM idempotency WHERE channel = $1`,
		// Nobody can fetch a file for a channel that never runs.
		`DELETE FROM media_fetch WHERE channel = $1`,
	} {
		if _, err := t.sql.Exec(statement, from); err != nil {
			return err
		}
	}
	for _, statement := range []string{
		`UPDATE message SET channel = $1 WHERE channel = $2`,
		`UPDATE chat SET channel = $1 WHERE channel = $2`,
		`UPDATE alias SET channel = $1 WHERE channel = $2`,
		`UPDATE channel SET chats = (SELECT chats FROM channel WHERE id = $2) WHERE id = $1`,
		`UPDATE channel SET chats = 0 WHERE $1 = $1 AND id = $2`,
	} {
		if _, err := t.sql.Exec(statement, to, from); err != nil {
			return err
		}
	}
	return t.revise()
}
