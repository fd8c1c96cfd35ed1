package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"parley"
)

const answerColumns = `scope, key, fingerprint, channel, messages, created_at, status_code, content_type, body`

// Answer finds what was answered to a request with an idempotency key.
func (r reader) Answer(ctx context.Context, scope, key string) (parley.Answer, error) {
	r = r.with(ctx)
	return one(r, `SELECT `+answerColumns+` FROM answer WHERE scope = $1 AND key = $2`, []any{scope, key}, scanAnswer)
}

func scanAnswer(row scanner) (parley.Answer, error) {
	var a parley.Answer
	var messages []byte
	var created int64
	if err := row.Scan(&a.Scope, &a.Key, &a.Fingerprint, &a.Channel, &messages, &created, &a.StatusCode, &a.ContentType, &a.Body); err != nil {
		return a, err
	}
	if err := json.Unmarshal(messages, &a.Messages); err != nil {
		return a, fmt.Errorf("messages of an answer: %w", err)
	}
	a.CreatedAt = moment(created)
	return a, nil
}

// AddAnswer stores that a request with an idempotency key was taken.
func (t *tx) AddAnswer(_ context.Context, a parley.Answer) error {
	messages, err := json.Marshal(a.Messages)
	if err != nil {
		return fmt.Errorf("messages of an answer: %w", err)
	}
	return t.add(`INSERT INTO answer (`+answerColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`,
		a.Scope, a.Key, a.Fingerprint, string(a.Channel), string(messages), millis(a.CreatedAt), a.StatusCode, a.ContentType, a.Body)
}

// SetAnswer stores what the request was answered.
func (t *tx) SetAnswer(_ context.Context, a parley.Answer) error {
	return t.change(`UPDATE answer SET status_code = $1, content_type = $2, body = $3 WHERE scope = $4 AND key = $5`,
		a.StatusCode, a.ContentType, a.Body, a.Scope, a.Key)
}

// RemoveAnswer removes what is kept of a request.
func (t *tx) RemoveAnswer(_ context.Context, scope, key string) error {
	_, err := t.Exec(`DELETE FROM answer WHERE scope = $1 AND key = $2`, scope, key)
	return err
}

// ForgetAnswers removes up to limit answers from before the given time, the oldest first.
func (t *tx) ForgetAnswers(_ context.Context, before time.Time, limit int) (int, error) {
	n, err := t.count(`DELETE FROM answer WHERE (scope, key) IN
		(SELECT scope, key FROM answer WHERE created_at < $1 ORDER BY created_at LIMIT $2)`, millis(before), limit)
	return int(n), err
}
