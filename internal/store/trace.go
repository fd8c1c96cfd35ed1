package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"parley"
)

// Traces visits the log after a place, in order.
func (r reader) Traces(ctx context.Context, after int64, limit int, visit func(parley.Trace)) (int64, error) {
	r = r.with(ctx)
	reached, visited := after, 0
	err := r.walkLog(`WHERE seq > $1 ORDER BY seq LIMIT $2`, []any{after, int64(limit)}, func(row logRow) (bool, error) {
		err := row.each(func(seq int64, e entry) {
			if seq > after {
				visited++
				visit(parley.Trace{Seq: seq, Type: e.kind, Channel: row.channel, At: moment(e.at), Message: e.message, Status: e.status})
			}
		})
		reached = row.seq
		return visited < limit, err
	})
	return reached, err
}

// walkLog visits rows of the log as long as the visitor wants more.
func (r reader) walkLog(which string, args []any, visit func(logRow) (more bool, err error)) error {
	rows, err := r.conn.Query(`SELECT `+logColumns+` FROM event `+which, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		row, err := scanLog(rows)
		if err != nil {
			return err
		}
		if more, err := visit(row); err != nil || !more {
			return err
		}
	}
	return rows.Err()
}

// PlaceBefore is a place in the log that everything since a time comes after. Rows are nearly in the
// order of time; where the first of that time comes late, what lies before it is older but for a moment.
func (r reader) PlaceBefore(ctx context.Context, at time.Time) (place int64, err error) {
	r = r.with(ctx)
	err = r.row(`SELECT seq - count FROM event WHERE at >= $1 ORDER BY at, seq LIMIT 1`, []any{millis(at)}, &place)
	if err == parley.ErrNotFound {
		return r.LastEvent(ctx)
	}
	return place, err
}

// maxEntries is how many events of the log are looked at for those of a message, in each of three places:
// some milliseconds' work.
const maxEntries = 20_000

// EventsAbout lists events of a message, in order.
func (r reader) EventsAbout(ctx context.Context, m *parley.Message) ([]parley.Event, error) {
	r = r.with(ctx)
	first := m.CreatedAt
	if m.UpdatedAt.Before(first) { // the clock of a sandbox channel was moved
		first = m.UpdatedAt
	}
	first = first.Add(-time.Second)
	byPlace := map[int64]parley.Event{}
	for _, look := range []struct {
		which string
		at    time.Time
	}{
		{`WHERE at >= $1 ORDER BY at LIMIT $2`, first},
		{`WHERE at <= $1 ORDER BY at DESC LIMIT $2`, m.UpdatedAt},
		{`WHERE at >= $1 ORDER BY at DESC LIMIT $2`, first},
	} {
		looked := 0
		err := r.walkLog(look.which, []any{millis(look.at), int64(maxEntries)}, func(row logRow) (bool, error) {
			if looked += int(row.count); row.channel != m.Channel {
				return looked < maxEntries, nil
			}
			err := row.each(func(seq int64, e entry) {
				if e.message == m.Seq {
					byPlace[seq] = parley.Event{Seq: seq, Type: e.kind, Channel: row.channel, At: moment(e.at), Data: e.data, Sealed: row.sealed,
						Message: &parley.Message{Seq: e.message, Status: e.status}}
				}
			})
			return looked < maxEntries, err
		})
		if err != nil {
			return nil, err
		}
	}
	found := slices.SortedFunc(maps.Values(byPlace), func(a, b parley.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	return r.addMessages(found)
}

// keepState keeps what a channel's status became beside the log, where it is found without reading all
// that happened meanwhile.
func (t *tx) keepState(e *parley.Event) error {
	if len(e.Data) == 0 {
		return nil
	}
	var told struct {
		Status string `json:"status"`
		Reason string `json:"reason"`
	}
	if err := json.Unmarshal(e.Data, &told); err != nil {
		return fmt.Errorf("event of a channel's status: %w", err)
	}
	_, err := t.Exec(`INSERT INTO channel_state (channel, seq, at, status, reason) VALUES ($1, $2, $3, $4, $5)`,
		string(e.Channel), e.Seq, millis(e.At), told.Status, told.Reason)
	return err
}

// forgetStates removes what channels were before a time, but not what they are since then.
func (t *tx) forgetStates(before time.Time) error {
	_, err := t.Exec(`DELETE FROM channel_state WHERE at < $1 AND EXISTS
		(SELECT 1 FROM channel_state AS later WHERE later.channel = channel_state.channel AND later.seq > channel_state.seq)`, millis(before))
	return err
}

// ChannelStates lists what a channel's status was, newest first.
func (r reader) ChannelStates(ctx context.Context, code parley.ChannelCode, since time.Time, limit int) ([]parley.ChannelState, error) {
	r = r.with(ctx)
	states, err := list(r, `SELECT status, reason, at FROM channel_state WHERE channel = $1 ORDER BY seq DESC LIMIT $2`,
		[]any{string(code), int64(limit)}, func(row scanner) (s parley.ChannelState, err error) {
			var at int64
			err = row.Scan(&s.Status, &s.Reason, &at)
			s.Since = moment(at)
			return s, err
		})
	for i, s := range states {
		if s.Since.Before(since) { // it lasted into that time; those before it did not
			return states[:i+1], err
		}
	}
	return states, err
}
