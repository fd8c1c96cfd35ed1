package store

import (
	"context"
	"time"

	"parley"
)

// Deletion is the deletion of a channel. The channel is gone when it starts. What it had is purged in the background.
type Deletion struct {
	ID        int64 // the number of the channel
	Channel   parley.ChannelCode
	Network   parley.NetworkName // that still stores something of the channel; empty: none does
	StartedAt time.Time
	// FinishedAt is zero while anything of the channel is stored.
	FinishedAt time.Time
	Messages   int64  // that the channel had; negative: they are not counted yet
	Purged     int64  // of these messages
	Problem    string // why the last attempt failed, a sentence; empty: it did not
}

// DeletionRetention is how long a finished deletion is listed.
const DeletionRetention = 7 * 24 * time.Hour

const (
	readDeletions = `SELECT id, code, network, started_at, finished_at, messages, messages_purged, problem FROM deletion `
	maxDeletions  = 1000
)

// Deletions lists the deletions of channels: first those under way, then the finished ones, each newest first.
func (r Reader) Deletions(ctx context.Context) ([]Deletion, error) {
	return list(r.with(ctx), readDeletions+`WHERE code <> '' ORDER BY finished_at > 0, id DESC LIMIT $1`,
		[]any{int64(maxDeletions)}, scanDeletion)
}

// Deletion finds the deletion of a channel by the channel's number.
func (r Reader) Deletion(ctx context.Context, id int64) (Deletion, error) {
	return one(r.with(ctx), readDeletions+`WHERE id = $1`, []any{id}, scanDeletion)
}

// NetworkDeletions lists the deletions of channels of which a network still stores something.
func (r Reader) NetworkDeletions(ctx context.Context) ([]Deletion, error) {
	return list(r.with(ctx), readDeletions+`WHERE network <> '' ORDER BY id`, nil, scanDeletion)
}

// NextDeletion finds the channel whose rows [Tx.PurgeChannels] deletes next. A webhook comes before the channels, and is
// returned as an empty deletion.
func (r Reader) NextDeletion(ctx context.Context) (Deletion, error) {
	r = r.with(ctx)
	var webhook bool
	if err := r.row(`SELECT EXISTS (SELECT 1 FROM retired_webhook)`, nil, &webhook); err != nil || webhook {
		return Deletion{}, err
	}
	return one(r, readDeletions+`WHERE purged = 0 ORDER BY id DESC LIMIT 1`, nil, scanDeletion)
}

// CountDeletion counts the messages of a deleted channel. It reads an index of the whole channel, so it runs once for a
// deletion and never on the connection that writes.
func (r Reader) CountDeletion(ctx context.Context, id int64) (n int64, err error) {
	err = r.with(ctx).row(`SELECT count(*) FROM message WHERE channel = $1`, []any{id}, &n)
	return n, err
}

func scanDeletion(row scanner) (d Deletion, err error) {
	var started, finished int64
	err = row.Scan(&d.ID, &d.Channel, &d.Network, &started, &finished, &d.Messages, &d.Purged, &d.Problem)
	d.StartedAt, d.FinishedAt = moment(started), moment(finished)
	return d, err
}

// SetDeletionMessages stores how many messages a deleted channel had, as they were counted before any was purged.
func (t *Tx) SetDeletionMessages(_ context.Context, id, messages int64) error {
	return t.exec(`UPDATE deletion SET messages = $1 WHERE id = $2`, messages, id)
}

// SetDeletionProblem stores why the last attempt of a deletion failed; empty: it did not.
func (t *Tx) SetDeletionProblem(_ context.Context, id int64, problem string) error {
	return t.exec(`UPDATE deletion SET problem = $1 WHERE id = $2 AND problem <> $1`, problem, id)
}

// LeaveNetwork stores that a deleted channel's network stores nothing of it any more.
func (t *Tx) LeaveNetwork(_ context.Context, id int64) error {
	if err := t.exec(`UPDATE deletion SET network = '', problem = '' WHERE id = $1`, id); err != nil {
		return err
	}
	return t.finishDeletion(id)
}

// purged stores that no rows of a number are left.
func (t *Tx) purged(id int64) error {
	if err := t.execAll([]string{
		`DELETE FROM deletion WHERE id = $1 AND code = ''`, // a reset
		`UPDATE deletion SET purged = 1, problem = '' WHERE id = $1`,
	}, id); err != nil {
		return err
	}
	return t.finishDeletion(id)
}

func (t *Tx) finishDeletion(id int64) error {
	return t.exec(`UPDATE deletion SET finished_at = $1 WHERE id = $2 AND purged = 1 AND network = ''`, t.db.now(), id)
}

// PurgeDeletions deletes what is known of deletions that finished before a time.
func (t *Tx) PurgeDeletions(_ context.Context, before time.Time) error {
	return t.exec(`DELETE FROM deletion WHERE finished_at > 0 AND finished_at < $1`, millis(before))
}
