package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"parley"
)

const readFallbacks = `SELECT id, (SELECT code FROM channel WHERE channel.id = otp_fallback.channel), state, coalesce(due_at, 0), expires_at
	FROM otp_fallback WHERE `

func scanFallback(row scanner) (f parley.Fallback, err error) {
	var state []byte
	var due, expires int64
	if err := row.Scan(&f.ID, &f.Channel, &state, &due, &expires); err != nil {
		return f, err
	}
	if err := json.Unmarshal(state, &f); err != nil {
		return f, fmt.Errorf("channels of a one-time code: %w", err)
	}
	f.DueAt, f.ExpiresAt = moment(due), moment(expires)
	return f, nil
}

// DueFallbacks lists codes of all channels that may have to go on to their next channel, the first ones first.
func (r Reader) DueFallbacks(ctx context.Context, until time.Time, limit int) ([]parley.Fallback, error) {
	return list(r.with(ctx), readFallbacks+`due_at <= $1
		AND (SELECT id FROM channel WHERE channel.id = otp_fallback.channel AND `+notMoving+`) IS NOT NULL
		ORDER BY due_at LIMIT $2`, []any{millis(until), int64(limit)}, scanFallback)
}

// HasFallbacks reports whether a code may go on to another channel.
func (r Reader) HasFallbacks(ctx context.Context) (some bool, err error) {
	var due int64
	err = r.with(ctx).row(`SELECT coalesce(min(due_at), 0) FROM otp_fallback WHERE due_at IS NOT NULL`, nil, &due)
	return due > 0, err
}

// Fallback reads how a code goes from channel to channel, for a change: two nodes do not change it at once.
func (t *Tx) Fallback(_ context.Context, id parley.OTPID) (parley.Fallback, error) {
	query := readFallbacks + `id = $1`
	if t.conn.IsPostgres() {
		query += ` FOR UPDATE`
	}
	return one(t.Reader, query, []any{string(id)}, scanFallback)
}

// PutFallback stores how a code goes from channel to channel.
func (t *Tx) PutFallback(_ context.Context, f parley.Fallback) error {
	channel, err := t.channelID(f.Channel)
	if err != nil {
		return err
	}
	state, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return t.exec(`INSERT INTO otp_fallback (id, channel, state, due_at, expires_at) VALUES ($1, $2, $3, nullif(CAST($4 AS BIGINT), 0), $5)
		ON CONFLICT (id) DO UPDATE SET state = excluded.state, due_at = excluded.due_at`,
		string(f.ID), channel, string(state), millis(f.DueAt), millis(f.ExpiresAt))
}

// StopFallback stores that a code goes on to no other channel.
func (t *Tx) StopFallback(_ context.Context, id parley.OTPID) error {
	return t.exec(`UPDATE otp_fallback SET due_at = NULL WHERE id = $1`, string(id))
}

// DeleteFallback deletes that of a code which another one replaces.
func (t *Tx) DeleteFallback(_ context.Context, id parley.OTPID) error {
	return t.exec(`DELETE FROM otp_fallback WHERE id = $1`, string(id))
}

// FailCode decides what follows when a message with a one-time code fails: its next channel carries the code, or otp.failed is
// published. Neither happens for a copy whose code has gone on to another channel before.
func (t *Tx) FailCode(ctx context.Context, m *parley.Message, id parley.OTPID, why parley.FailureCode, at time.Time) error {
	f, err := t.Fallback(ctx, id)
	if err == parley.ErrNotFound {
		return t.AddEvent(ctx, parley.NewOTPEvent(parley.OTPFailed, id, m.Channel, m.Chat, string(why), at))
	}
	if err != nil || f.Current().Code != m.Channel || f.Message != m.ID {
		return err
	}
	if m.Status == parley.Pending && why.FallsBack() && f.Turns < len(f.Channels) {
		f.DueAt = at
		return t.PutFallback(ctx, f)
	}
	return t.EndFallback(ctx, f, string(why), at)
}

// EndFallback publishes that no channel could send a code.
func (t *Tx) EndFallback(ctx context.Context, f parley.Fallback, reason string, at time.Time) error {
	f.DueAt = time.Time{}
	if err := t.PutFallback(ctx, f); err != nil {
		return err
	}
	spellings, err := t.Spellings(ctx, f.Channel, f.To)
	if err != nil {
		return err
	}
	return t.AddEvent(ctx, parley.NewOTPEvent(parley.OTPFailed, f.ID, f.Channel, spellings[0], reason, at, f.Tried()...))
}
