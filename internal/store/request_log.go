package store

import (
	"context"
	"strings"
	"time"

	"parley"
)

// AddRequests appends requests of one channel to the request log. Requests of a channel that was deleted are ignored.
func (t *Tx) AddRequests(_ context.Context, channel parley.ChannelCode, all []parley.LoggedRequest) error {
	id, err := t.channelID(channel)
	if err != nil {
		return parley.IgnoreNotFound(err)
	}
	for i := range all {
		r := &all[i]
		if err := t.exec(`INSERT INTO request_log (channel, seq, at, method, path, status, code, took, request, idempotency, token)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING`,
			id, r.Seq, millis(r.At), r.Method, r.Path, int64(r.Status), r.Code, r.Took.Microseconds(), r.Request, r.IdempotencyKey,
			string(r.Token)); err != nil {
			return err
		}
	}
	return nil
}

// TrimRequests deletes all but the latest requests of a channel.
func (t *Tx) TrimRequests(_ context.Context, channel parley.ChannelCode, keep int) error {
	id, err := t.channelID(channel)
	if err != nil {
		return parley.IgnoreNotFound(err)
	}
	return t.exec(`DELETE FROM request_log WHERE channel = $1 AND seq <=
		(SELECT seq FROM request_log WHERE channel = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2)`, id, int64(keep))
}

// Requests lists requests of a channel, newest first, and counts all that the query selects.
func (r Reader) Requests(
	ctx context.Context, channel parley.ChannelCode, q parley.RequestQuery, page parley.Page,
) (found []parley.LoggedRequest, total int64, err error) {
	in := r.with(ctx)
	var id int64
	if err := in.row(`SELECT id FROM channel WHERE code = $1`, []any{string(channel)}, &id); err != nil {
		return nil, 0, err
	}
	where, args := requestCondition(id, q)
	if err := in.row(`SELECT count(*) FROM request_log WHERE `+where, args, &total); err != nil {
		return nil, 0, err
	}
	n := len(args)
	found, err = list(in, `SELECT seq, at, method, path, status, code, took, request, idempotency, token FROM request_log WHERE `+where+`
		ORDER BY seq DESC LIMIT `+param(n+1)+` OFFSET `+param(n+2), append(args, int64(page.Limit), page.Offset),
		func(row scanner) (parley.LoggedRequest, error) {
			l := parley.LoggedRequest{Channel: channel}
			var at, took int64
			err := row.Scan(&l.Seq, &at, &l.Method, &l.Path, &l.Status, &l.Code, &took, &l.Request, &l.IdempotencyKey, &l.Token)
			l.At, l.Took = moment(at), time.Duration(took)*time.Microsecond
			return l, err
		})
	return found, total, err
}

// requestCondition needs no index but the primary key: a channel has about a thousand rows.
func requestCondition(channel int64, q parley.RequestQuery) (where string, args []any) {
	conditions, args := []string{"channel = $1"}, []any{channel}
	add := func(condition string, value any) {
		args = append(args, value)
		conditions = append(conditions, strings.ReplaceAll(condition, "?", param(len(args))))
	}
	if q.Status[0] != 0 {
		add(`status >= ?`, int64(q.Status[0]))
		add(`status <= ?`, int64(q.Status[1]))
	}
	for _, equal := range [][2]string{
		{"code", q.Code}, {"method", q.Method}, {"request", q.Request}, {"idempotency", q.IdempotencyKey}, {"token", string(q.Token)},
	} {
		if equal[1] != "" {
			add(equal[0]+` = ?`, equal[1])
		}
	}
	if q.Path != "" {
		add(`replace(path, ?, '') <> path`, q.Path) // contains it; the same on both databases
	}
	if q.After != 0 {
		add(`seq > ?`, q.After)
	}
	return strings.Join(conditions, " AND "), args
}
