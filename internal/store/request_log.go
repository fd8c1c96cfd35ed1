package store

import (
	"context"
	"strings"
	"time"

	"parley"
)

// RequestsPerChannel is how many of the latest requests of a channel the request log has at least.
const RequestsPerChannel = 1000

// LoggedRequest is one request to the API for a channel. It has no body, no query string and no token.
type LoggedRequest struct {
	Seq            int64 // in the order of the responses; unique in its channel
	Channel        parley.ChannelCode
	At             time.Time // when it arrived
	Method         string
	Path           string
	Status         int
	Code           string // of the error; empty: none
	Took           time.Duration
	Request        string // its id
	IdempotencyKey string // empty: none
	Token          parley.TokenID
}

// RequestQuery selects requests of a channel. Empty fields select all.
type RequestQuery struct {
	Status         [2]int // from the first to the second
	Code           string
	Method         string
	Path           string // a part of it
	Request        string
	IdempotencyKey string
	Token          parley.TokenID
	After          int64 // seq
}

// AddRequests appends requests of one channel to the request log. Requests of a channel that was deleted are ignored.
func (t *Tx) AddRequests(_ context.Context, channel parley.ChannelCode, all []LoggedRequest) error {
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
	ctx context.Context, channel parley.ChannelCode, q RequestQuery, page parley.Page,
) (found []LoggedRequest, total int64, err error) {
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
		AND seq < `+param(n+1)+` ORDER BY seq DESC LIMIT `+param(n+2), append(args, before(page), int64(page.Limit)),
		func(row scanner) (LoggedRequest, error) {
			l := LoggedRequest{Channel: channel}
			var at, took int64
			err := row.Scan(&l.Seq, &at, &l.Method, &l.Path, &l.Status, &l.Code, &took, &l.Request, &l.IdempotencyKey, &l.Token)
			l.At, l.Took = moment(at), time.Duration(took)*time.Microsecond
			return l, err
		})
	return found, total, err
}

// requestCondition needs no index but the primary key: a channel has about a thousand rows.
func requestCondition(channel int64, q RequestQuery) (where string, args []any) {
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
