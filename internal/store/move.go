package store

import (
	"context"

	"parley"
)

// MoveHistory moves what was said on a channel to another one. Chats keep their ids, so that all that hangs
// on those stays as it is.
func (t *tx) MoveHistory(_ context.Context, from, to parley.ChannelCode) error {
	if err := t.clearOTPs(from); err != nil {
		return err
	}
	if err := t.fileAll(); err != nil {
		return err
	}
	// A request that is asked again must not get the answer of a network that its channel is not on any more.
	if _, err := t.Exec(`DELETE FROM answer WHERE channel = $1`, string(from)); err != nil {
		return err
	}
	// Nobody can fetch a file for a channel that never runs.
	if _, err := t.Exec(`DELETE FROM media_fetch WHERE channel = $1`, string(from)); err != nil {
		return err
	}
	for _, moves := range []string{
		`UPDATE message SET channel = $1 WHERE chat IN (SELECT id FROM chat WHERE channel = $2)`,
		`UPDATE chat SET channel = $1 WHERE channel = $2`,
	} {
		if _, err := t.Exec(moves, string(to), string(from)); err != nil {
			return err
		}
	}
	if err := t.change(`UPDATE channel SET erased_to = (SELECT erased_to FROM channel WHERE code = $1) WHERE code = $2`, string(from), string(to)); err != nil {
		return err
	}
	t.db.memory.forget() // at once: others in the same transaction must not use it either
	t.OnCommit(t.db.memory.forget)
	return t.revise() // other processes must forget too
}
