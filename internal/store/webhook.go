package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

const (
	webhookColumns = `id, url, channel, types, created_at, cursor, disabled_at, reason, failing_since, failing_ms, failures, signed_media`
	readWebhooks   = `SELECT ` + webhookColumns + `, lost, lost_at FROM webhook `
)

// Webhooks lists all webhooks, oldest first.
func (r Reader) Webhooks(ctx context.Context) ([]parley.Webhook, error) {
	return list(r.with(ctx), readWebhooks+`ORDER BY created_at, seq`, nil, scanWebhook)
}

// Webhook finds a webhook.
func (r Reader) Webhook(ctx context.Context, id parley.WebhookID) (parley.Webhook, error) {
	return one(r.with(ctx), readWebhooks+`WHERE id = $1`, []any{string(id)}, scanWebhook)
}

func scanWebhook(row scanner) (parley.Webhook, error) {
	var w parley.Webhook
	var types []byte
	var created, disabled, failing, failingFor, lost int64
	if err := row.Scan(&w.ID, &w.URL, &w.Channel, &types, &created, &w.Cursor, &disabled, &w.Reason,
		&failing, &failingFor, &w.Failures, &w.SignedMedia, &w.Lost, &lost); err != nil {
		return w, err
	}
	if err := json.Unmarshal(types, &w.Types); err != nil {
		return w, fmt.Errorf("types of webhook %s: %w", w.ID, err)
	}
	if len(w.Types) == 0 {
		w.Types = nil
	}
	w.CreatedAt, w.DisabledAt, w.FailingSince, w.LostAt = moment(created), moment(disabled), moment(failing), moment(lost)
	w.FailingFor = time.Duration(failingFor) * time.Millisecond
	return w, nil
}

// encodeTypes encodes the event types of a webhook.
func encodeTypes(types []parley.EventType) (string, error) {
	if len(types) == 0 {
		return "[]", nil
	}
	encoded, err := json.Marshal(types)
	return string(encoded), err
}

// AddWebhook stores a new webhook.
func (t *Tx) AddWebhook(ctx context.Context, w parley.Webhook) error {
	types, err := encodeTypes(w.Types)
	if err != nil {
		return err
	}
	if w.Cursor == 0 {
		if w.Cursor, err = t.LastEvent(ctx); err != nil {
			return err
		}
	}
	return t.revised(WebhookChange, w.ID, t.add(`INSERT INTO webhook (`+webhookColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING`,
		string(w.ID), w.URL, string(w.Channel), types, millis(w.CreatedAt), w.Cursor,
		millis(w.DisabledAt), w.Reason, millis(w.FailingSince), w.FailingFor.Milliseconds(), int64(w.Failures), flag(w.SignedMedia)))
}

// UpdateWebhook stores a webhook except its cursor and losses. For one that is enabled again it reports the events that
// were purged meanwhile.
func (t *Tx) UpdateWebhook(ctx context.Context, w parley.Webhook) error {
	types, err := encodeTypes(w.Types)
	if err != nil {
		return err
	}
	if err := t.change(`UPDATE webhook SET url = $1, channel = $2, types = $3, created_at = $4, disabled_at = $5, reason = $6,
		failing_since = $7, failing_ms = $8, failures = $9, signed_media = $10 WHERE id = $11`,
		w.URL, string(w.Channel), types, millis(w.CreatedAt), millis(w.DisabledAt), w.Reason,
		millis(w.FailingSince), w.FailingFor.Milliseconds(), int64(w.Failures), flag(w.SignedMedia), string(w.ID)); err != nil {
		return err
	}
	return t.revised(WebhookChange, w.ID, t.reportGaps(ctx))
}

// SetWebhookCursor stores up to which event deliveries were created. It never goes back, as a reported gap may be there.
func (t *Tx) SetWebhookCursor(_ context.Context, id parley.WebhookID, cursor int64) error {
	return t.exec(`UPDATE webhook SET cursor = greatest(cursor, $1) WHERE id = $2`, cursor, string(id))
}

// LockWebhooks returns those of some webhooks that exist. On PostgreSQL, transactions of other nodes that lock them too wait for the end of
// this one: while a webhook moves to another node, both of them change its deliveries. A delivery is held while another one of its
// chat waits, so one node must see which one the other has just finished, or nobody would ever release the next.
func (t *Tx) LockWebhooks(ids []parley.WebhookID) ([]parley.WebhookID, error) {
	lock := ``
	if t.conn.IsPostgres() {
		lock = ` ORDER BY id FOR UPDATE`
	}
	sorted := slices.Compact(slices.Sorted(slices.Values(ids)))
	return listIn(t.Reader, `SELECT id FROM webhook WHERE id IN `, lock, nil, texts(sorted), sqldb.ScanOne[parley.WebhookID])
}

// SetWebhookHealth stores since when, for how long and how often a webhook has failed without a success.
func (t *Tx) SetWebhookHealth(_ context.Context, w parley.Webhook) error {
	return t.exec(`UPDATE webhook SET failing_since = $1, failing_ms = $2, failures = $3 WHERE id = $4`,
		millis(w.FailingSince), w.FailingFor.Milliseconds(), int64(w.Failures), string(w.ID))
}

// DeleteWebhook deletes a webhook with its secret. Its deliveries are hidden at once; [Tx.PurgeChannels] deletes them.
func (t *Tx) DeleteWebhook(_ context.Context, id parley.WebhookID) error {
	if err := t.change(`DELETE FROM webhook WHERE id = $1`, string(id)); err != nil {
		return err
	}
	if err := t.exec(`INSERT INTO retired_webhook (id) VALUES ($1)`, string(id)); err != nil {
		return err
	}
	return t.revised(WebhookChange, id, t.exec(`DELETE FROM secret WHERE owner = $1`, string(parley.WebhookSecret(id))))
}

// deleteCallbacks deletes the webhooks and secrets of a channel.
func (t *Tx) deleteCallbacks(ctx context.Context, code parley.ChannelCode) error {
	own, err := list(t.Reader, readWebhooks+`WHERE channel = $1`, []any{string(code)}, scanWebhook)
	if err != nil {
		return err
	}
	for _, w := range own {
		if err := t.DeleteWebhook(ctx, w.ID); err != nil {
			return err
		}
	}
	return t.exec(`DELETE FROM secret WHERE owner = $1`, string(parley.ChannelSecret(code)))
}

// Secret finds the signing secret of an owner.
func (r Reader) Secret(ctx context.Context, owner parley.SecretOwner) (parley.SigningSecret, error) {
	s := parley.SigningSecret{Owner: owner}
	var until int64
	err := r.with(ctx).row(`SELECT sealed, old_sealed, old_until FROM secret WHERE owner = $1`, []any{string(owner)},
		&s.Encrypted, &s.OldEncrypted, &until)
	if err != nil {
		return parley.SigningSecret{}, err
	}
	s.OldUntil = moment(until)
	return s, nil
}

// SetSecret stores the signing secret of an owner and replaces the current one.
func (t *Tx) SetSecret(_ context.Context, s parley.SigningSecret) error {
	return t.exec(`INSERT INTO secret (owner, sealed, old_sealed, old_until) VALUES ($1, $2, $3, $4)
		ON CONFLICT (owner) DO UPDATE SET sealed = excluded.sealed, old_sealed = excluded.old_sealed, old_until = excluded.old_until`,
		string(s.Owner), s.Encrypted, nullable(s.OldEncrypted), millis(s.OldUntil))
}
