package store

import (
	"context"
	"math"
	"slices"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// OldStates lists up to limit statuses of channels from before a time, by the seqs of their events. The current status of a channel stays,
// however old it is. To find the others it reads those too, so it does not run on the connection that writes.
func (r Reader) OldStates(ctx context.Context, before time.Time, limit int) ([]int64, error) {
	return list(r.with(ctx), `SELECT seq FROM channel_state WHERE at < $1 AND EXISTS
		(SELECT 1 FROM channel_state AS later WHERE later.channel = channel_state.channel AND later.seq > channel_state.seq) LIMIT $2`,
		[]any{millis(before), int64(limit)}, sqldb.ScanOne[int64])
}

// DeleteStates deletes statuses of channels.
func (t *Tx) DeleteStates(_ context.Context, seqs []int64) error {
	for some := range slices.Chunk(seqs, maxList) {
		in, args := inList(1, some)
		if err := t.exec(`DELETE FROM channel_state WHERE seq IN `+in, args...); err != nil {
			return err
		}
	}
	return nil
}

// NeededEvents returns the seq up to which no enabled webhook and no waiting delivery needs events. It reads all chats with waiting
// deliveries, so it does not run on the connection that writes.
func (r Reader) NeededEvents(ctx context.Context) (upTo int64, err error) {
	// The delivery with the oldest event of a chat is not held. Without the hint the database walks over all delivered ones.
	err = r.with(ctx).row(`SELECT greatest(removed_to, least(
		coalesce((SELECT min(cursor) FROM webhook WHERE disabled_at = 0), $1),
		coalesce((SELECT min(event) - 1 FROM delivery INDEXED BY delivery_due WHERE `+first+`), $1))) FROM log`,
		[]any{int64(math.MaxInt64)}, &upTo)
	return upTo, err
}

// PurgeEvents deletes up to limit events that were stored before a time, the oldest first. Events after a seq are needed and stay, unless
// the log is longer than most events.
func (t *Tx) PurgeEvents(ctx context.Context, upTo int64, before time.Time, most int64, limit int) (int, error) {
	n, err := t.removeEvents(ctx, upTo, millis(before), most, int64(limit))
	return int(n), err
}

func (t *Tx) removeEvents(ctx context.Context, upTo, before, most, limit int64) (int64, error) {
	var oldest int64
	err := t.optional(`SELECT seq FROM event ORDER BY seq LIMIT 1`, nil, &oldest)
	if err != nil || oldest == 0 {
		return 0, err
	}
	if oldest > upTo {
		if upTo, err = t.dropNeeded(ctx, oldest, before, most); err != nil {
			return 0, err
		}
	}
	var last int64
	if err := t.row(`SELECT coalesce(max(seq), 0) FROM (SELECT seq, received_at FROM event WHERE seq <= $1 ORDER BY seq LIMIT $2) AS oldest
		WHERE received_at < $3`, []any{upTo, limit, before}, &last); err != nil || last == 0 {
		return 0, err
	}
	t.setRemoved(last)
	return t.sql.Exec(`DELETE FROM event WHERE seq <= $1 AND received_at < $2`, last, before)
}

// dropNeeded drops the oldest events although they are needed, if the log is longer than most events. It returns the last
// dropped seq; 0: none. It drops a hundredth of the log at a time, so a webhook gets few reports of gaps.
func (t *Tx) dropNeeded(ctx context.Context, oldest, before, most int64) (upTo int64, err error) {
	end := oldest + max(most/100, 1) - 1
	last, err := t.lastEvent()
	if err != nil || end > last-most {
		return 0, err
	}
	var stored int64
	err = t.row(`SELECT received_at FROM event WHERE seq <= $1 ORDER BY seq DESC LIMIT 1`, []any{end}, &stored)
	if err != nil || stored >= before {
		return 0, err
	}
	t.setRemoved(end)
	return end, t.reportGaps(ctx)
}

// setRemoved stores at the end of the transaction that events up to a seq are removed.
func (t *Tx) setRemoved(seq int64) { t.ending.removed = max(t.ending.removed, seq) }

// reportGaps publishes an event for each enabled webhook that lost events, and moves its cursor behind them.
func (t *Tx) reportGaps(ctx context.Context) error {
	var removed int64
	if err := t.row(`SELECT removed_to FROM log`, nil, &removed); err != nil {
		return err
	}
	removed = max(removed, t.ending.removed, t.db.ending.of(t.sql.Batch).removed)
	lost, err := list(t.Reader, readWebhooks+`WHERE disabled_at = 0 AND cursor < $1`, []any{removed}, scanWebhook)
	if err != nil {
		return err
	}
	now := t.db.now()
	for _, w := range lost {
		if err := t.AddEvent(ctx, parley.NewGapEvent(w, removed, moment(now))); err != nil {
			return err
		}
		if err := t.change(`UPDATE webhook SET cursor = $1, lost = lost + $2, lost_at = $3 WHERE id = $4`,
			removed, removed-w.Cursor, now, string(w.ID)); err != nil {
			return err
		}
	}
	return nil
}
