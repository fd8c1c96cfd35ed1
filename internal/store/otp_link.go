package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"parley"
)

// Links of a channel that is gone are hidden.
const readLinks = `SELECT id, (SELECT code FROM channel WHERE channel.id = otp_link.channel), contact, hash, name, messages,
	on_success, on_failure, status, tries, others, created_at, expires_at, ended_at, encrypted FROM otp_link
	WHERE EXISTS (SELECT 1 FROM channel WHERE channel.id = otp_link.channel) AND `

func scanLink(row scanner) (parley.OTPLink, error) {
	var l parley.OTPLink
	var messages []byte
	var created, expires, ended int64
	if err := row.Scan(&l.ID, &l.Channel, &l.Contact, &l.Hash, &l.Name, &messages, &l.OnSuccess, &l.OnFailure, &l.Status,
		&l.Tries, &l.Others, &created, &expires, &ended, &l.Encrypted); err != nil {
		return l, err
	}
	if err := json.Unmarshal(messages, &l.Messages); err != nil {
		return l, fmt.Errorf("messages of link %s: %w", l.ID, err)
	}
	l.CreatedAt, l.ExpiresAt, l.EndedAt = moment(created), moment(expires), moment(ended)
	return l, nil
}

// Link finds a link.
func (r Reader) Link(ctx context.Context, id parley.OTPID) (parley.OTPLink, error) {
	return one(r.with(ctx), readLinks+`id = $1`, []any{string(id)}, scanLink)
}

// Link is [Reader.Link] for a change. On PostgreSQL the later of two nodes waits, as in [Tx.Ledger].
func (t *Tx) Link(ctx context.Context, id parley.OTPID) (parley.OTPLink, error) {
	if t.conn.IsPostgres() {
		if err := t.exec(`SELECT 1 FROM otp_link WHERE id = $1 FOR UPDATE`, string(id)); err != nil {
			return parley.OTPLink{}, err
		}
	}
	return t.Reader.Link(ctx, id)
}

// LinksByHash finds the links of a channel whose code has one of these keyed hashes.
func (r Reader) LinksByHash(ctx context.Context, channel parley.ChannelCode, hashes [][]byte) ([]parley.OTPLink, error) {
	return listIn(r.with(ctx), readLinks+ofChannel+` AND hash IN `, ``, []any{string(channel)}, hashes, scanLink)
}

// LinkReplies lists when a sender got replies, oldest first.
func (r Reader) LinkReplies(ctx context.Context, channel parley.ChannelCode, to parley.ContactID, since time.Time) ([]time.Time, error) {
	return list(r.with(ctx), `SELECT at FROM otp_reply WHERE `+ofChannel+` AND contact = $2 AND +at >= $3 ORDER BY at`,
		[]any{string(channel), string(to), millis(since)}, scanMoment)
}

// AddLink stores a new link and invalidates the open one.
func (t *Tx) AddLink(ctx context.Context, l parley.OTPLink) error {
	messages, err := json.Marshal(l.Messages)
	if err != nil {
		return fmt.Errorf("messages of link %s: %w", l.ID, err)
	}
	spellings, err := t.Spellings(ctx, l.Channel, l.Contact)
	if err != nil {
		return err
	}
	in, args := inList(4, texts(spellings))
	if err := t.exec(`UPDATE otp_link SET status = $1, ended_at = $2, encrypted = NULL
		WHERE channel = `+channelIDFrom(`$3`)+` AND contact IN `+in+` AND status = 0`,
		append([]any{int64(parley.OTPStatusInvalid), millis(l.CreatedAt), string(l.Channel)}, args...)...); err != nil {
		return err
	}
	channel, err := t.channelID(l.Channel)
	if err != nil {
		return err
	}
	t.ending.add(channel, CountLinks, "", 1)
	return t.add(`INSERT INTO otp_link (id, channel, contact, hash, name, messages, on_success, on_failure, status, tries, others,
		created_at, expires_at, ended_at, encrypted)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) ON CONFLICT DO NOTHING`,
		string(l.ID), channel, string(l.Contact), l.Hash, l.Name, string(messages), l.OnSuccess, l.OnFailure,
		int64(l.Status), int64(l.Tries), int64(l.Others), millis(l.CreatedAt), millis(l.ExpiresAt), millis(l.EndedAt), nullable(l.Encrypted))
}

// UpdateLink stores the status, tries and end of a link. Without an end time, a finished link ended when it expired. A
// finished link loses its encrypted code.
func (t *Tx) UpdateLink(_ context.Context, l parley.OTPLink) error {
	if l.Status != parley.OTPStatusPending && l.EndedAt.IsZero() {
		l.EndedAt = l.ExpiresAt
	}
	if l.Status != parley.OTPStatusPending {
		l.Encrypted = nil
	}
	return t.change(`UPDATE otp_link SET status = $1, tries = $2, others = $3, ended_at = $4, encrypted = $5 WHERE id = $6`,
		int64(l.Status), int64(l.Tries), int64(l.Others), millis(l.EndedAt), nullable(l.Encrypted), string(l.ID))
}

// AddLinkReply stores that a sender gets a reply.
func (t *Tx) AddLinkReply(_ context.Context, channel parley.ChannelCode, to parley.ContactID, at time.Time) error {
	id, err := t.channelID(channel)
	if err != nil {
		return err
	}
	return t.exec(`INSERT INTO otp_reply (channel, contact, at) VALUES ($1, $2, $3)`, id, string(to), millis(at))
}

// ExpireLinks expires the open links of a channel that are past their time.
func (t *Tx) ExpireLinks(_ context.Context, channel parley.ChannelCode, now time.Time, limit int) ([]parley.OTPLink, error) {
	due, err := list(t.Reader, readLinks+ofChannel+` AND status = 0 AND expires_at <= $2 ORDER BY expires_at LIMIT $3`,
		[]any{string(channel), millis(now), int64(limit)}, scanLink)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(due))
	for i := range due {
		ids[i] = string(due[i].ID)
		due[i].Status, due[i].EndedAt, due[i].Encrypted = parley.OTPStatusExpired, due[i].ExpiresAt, nil
	}
	ended, err := t.expireOTPs(`otp_link`, ids)
	return slices.DeleteFunc(due, func(l parley.OTPLink) bool { return !ended[l.ID] }), err
}

// RecentLinks lists a channel's links, newest first. It reads the open links that expire last and the finished ones that
// ended last.
func (r Reader) RecentLinks(ctx context.Context, channel parley.ChannelCode, limit int) ([]parley.OTPLink, error) {
	var links []parley.OTPLink
	for _, some := range []string{`status = 0 ORDER BY expires_at`, `status <> 0 ORDER BY ended_at`} {
		found, err := list(r.with(ctx), readLinks+ofChannel+` AND `+some+` DESC LIMIT $2`,
			[]any{string(channel), int64(limit)}, scanLink)
		if err != nil {
			return nil, err
		}
		links = append(links, found...)
	}
	slices.SortStableFunc(links, func(a, b parley.OTPLink) int { return cmp.Compare(millis(b.CreatedAt), millis(a.CreatedAt)) })
	return links[:min(limit, len(links))], nil
}
