package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley"
)

// StoredResponse is the stored response to a request with an idempotency key.
type StoredResponse struct {
	Scope       string // the channel's code, or the kind of the token where no channel is meant
	Key         string
	Fingerprint []byte // of method, path, query and body
	Channel     parley.ChannelCode
	Messages    []parley.MessageRef // what the request made, in order
	CreatedAt   time.Time

	// The response; zero and nil while it is not stored yet.
	StatusCode  int
	ContentType string
	Body        []byte
}

// IsComplete reports whether the response is stored, not only that the request was accepted.
func (a StoredResponse) IsComplete() bool { return a.StatusCode != 0 }

const idempotencyColumns = `scope, key, fingerprint, channel, messages, created_at, status_code, content_type, body`

// scope is the stored scope of an idempotency key. It has the channel's number, so the keys of a deleted or reset channel
// are not valid for the next one with its code.
func (r Reader) scope(scope string) (string, error) {
	if strings.HasPrefix(scope, "*") { // the kind of a token
		return scope, nil
	}
	code, rest, days := strings.Cut(scope, "+") // after the plus: the days that a sandbox's clock is ahead
	id, err := r.channelID(parley.ChannelCode(code))
	stored := "channel " + strconv.FormatInt(id, 10)
	if days {
		stored += "+" + rest
	}
	return stored, err
}

// StoredResponse finds the stored response to a request with an idempotency key.
func (r Reader) StoredResponse(ctx context.Context, scope, key string) (StoredResponse, error) {
	r = r.with(ctx)
	stored, err := r.scope(scope)
	if err != nil {
		return StoredResponse{}, err
	}
	a := StoredResponse{Scope: scope, Key: key}
	var messages []byte
	var created int64
	err = r.row(`SELECT fingerprint, coalesce((SELECT code FROM channel WHERE channel.id = idempotency.channel), ''), messages,
		created_at, status_code, content_type, body FROM idempotency WHERE scope = $1 AND key = $2`, []any{stored, key},
		&a.Fingerprint, &a.Channel, &messages, &created, &a.StatusCode, &a.ContentType, &a.Body)
	if err != nil {
		return StoredResponse{}, err
	}
	if err := json.Unmarshal(messages, &a.Messages); err != nil {
		return a, fmt.Errorf("messages of an idempotency key: %w", err)
	}
	a.CreatedAt = moment(created)
	return a, nil
}

// AddStoredResponse stores that a request with an idempotency key was accepted.
func (t *Tx) AddStoredResponse(_ context.Context, a StoredResponse) error {
	messages, err := json.Marshal(a.Messages)
	if err != nil {
		return fmt.Errorf("messages of an idempotency key: %w", err)
	}
	scope, err := t.scope(a.Scope)
	if err != nil {
		return err
	}
	return t.sql.DoOr(parley.ErrExists, `INSERT INTO idempotency (`+idempotencyColumns+`)
		VALUES ($1, $2, $3, coalesce((SELECT id FROM channel WHERE code = $4), 0), $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`,
		scope, a.Key, a.Fingerprint, string(a.Channel), string(messages), millis(a.CreatedAt), int64(a.StatusCode), a.ContentType, a.Body)
}

// SetStoredResponse stores the response.
func (t *Tx) SetStoredResponse(_ context.Context, a StoredResponse) error {
	scope, err := t.scope(a.Scope)
	if err != nil {
		return err
	}
	return t.sql.DoOr(parley.ErrNotFound,
		`UPDATE idempotency SET status_code = $1, content_type = $2, body = $3 WHERE scope = $4 AND key = $5`,
		int64(a.StatusCode), a.ContentType, a.Body, scope, a.Key)
}

// DeleteStoredResponse deletes an idempotency key.
func (t *Tx) DeleteStoredResponse(_ context.Context, scope, key string) error {
	stored, err := t.scope(scope)
	if err == nil {
		return t.exec(`DELETE FROM idempotency WHERE scope = $1 AND key = $2`, stored, key)
	}
	if err == parley.ErrNotFound {
		return nil
	}
	return err
}

// PurgeStoredResponses deletes up to limit idempotency keys from before a time, the oldest first.
func (t *Tx) PurgeStoredResponses(_ context.Context, before time.Time, limit int) (int, error) {
	n, err := t.sql.Exec(`DELETE FROM idempotency WHERE (scope, key) IN
		(SELECT scope, key FROM idempotency WHERE created_at < $1 ORDER BY created_at LIMIT $2)`, millis(before), int64(limit))
	return int(n), err
}
