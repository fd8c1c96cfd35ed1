package cluster

import (
	"github.com/jackc/pgx/v5"

	"parley"
	"parley/internal/store"
)

// Changes say what nodes changed, this one included.
type Changes struct {
	All      bool // too much to list
	Channels []parley.ChannelCode
	Statuses []parley.ChannelCode // channels with another status
	Tokens   []parley.TokenID
	Webhooks []parley.WebhookID
	Keys     bool // those that sign tokens

	revision, state int64 // up to where changes and statuses were read
}

// maxChanges is how many changes are read at once. Beyond them everything is read again.
const maxChanges = 500

// newestChanges reads up to where there are changes and statuses.
const newestChanges = `SELECT coalesce((SELECT max(seq) FROM change), 0), coalesce((SELECT max(seq) FROM channel_state), 0)`

func (c *Changes) any() bool {
	return c.All || c.Keys || len(c.Channels)+len(c.Statuses)+len(c.Tokens)+len(c.Webhooks) > 0
}

// queue adds the statements that read the changes since the last ones.
func (c *Changes) queue(batch *pgx.Batch) {
	n, since := 0, c.revision
	var revision, state int64 // the newest
	batch.Queue(newestChanges).QueryRow(func(row pgx.Row) error { return row.Scan(&revision, &state) })
	batch.Queue(`SELECT seq, kind, key FROM change WHERE seq > $1 ORDER BY seq LIMIT $2`, c.revision, maxChanges).Query(
		func(rows pgx.Rows) error {
			var kind store.ChangeKind
			var key string
			_, err := pgx.ForEachRow(rows, []any{&c.revision, &kind, &key}, func() error {
				n++
				switch kind {
				case store.ChannelChange:
					c.Channels = append(c.Channels, parley.ChannelCode(key))
				case store.TokenChange:
					c.Tokens = append(c.Tokens, parley.TokenID(key))
				case store.WebhookChange:
					c.Webhooks = append(c.Webhooks, parley.WebhookID(key))
				default:
					c.Keys = true
				}
				return nil
			})
			return err
		})
	batch.Queue(`SELECT state.seq, coalesce(channel.code, '') FROM
		(SELECT seq, channel FROM channel_state WHERE seq > $1 ORDER BY seq LIMIT $2) AS state
		LEFT JOIN channel ON channel.id = state.channel ORDER BY state.seq`, c.state, maxChanges).Query(func(rows pgx.Rows) error {
		var code parley.ChannelCode
		_, err := pgx.ForEachRow(rows, []any{&c.state, &code}, func() error {
			c.Statuses = append(c.Statuses, code)
			return nil
		})
		if c.All = n == maxChanges || len(c.Statuses) == maxChanges || revision-since >= store.KeptChanges; c.All {
			c.revision, c.state = max(c.revision, revision), max(c.state, state)
		}
		return err
	})
}

// Add adds later changes.
func (c *Changes) Add(d Changes) {
	c.All, c.Keys = c.All || d.All, c.Keys || d.Keys
	c.Channels, c.Statuses = append(c.Channels, d.Channels...), append(c.Statuses, d.Statuses...)
	c.Tokens, c.Webhooks = append(c.Tokens, d.Tokens...), append(c.Webhooks, d.Webhooks...)
}
