package store

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"parley"
)

const ledgerColumns = `seq, contact, channel, id, hash, sealed, status, tries, created_at, expires_at, ended_at, wrong, requests`

// ledgerRow is a ledger as it is stored, in the types that are quick to scan.
type ledgerRow struct {
	contact, channel, id                        string
	hash, sealed, wrong, requests               []byte
	seq, status, tries, created, expires, ended int64
}

func (s *ledgerRow) fields() []any {
	return []any{&s.seq, &s.contact, &s.channel, &s.id, &s.hash, &s.sealed, &s.status, &s.tries, &s.created, &s.expires, &s.ended, &s.wrong, &s.requests}
}

func (s *ledgerRow) ledger() (parley.OTPLedger, error) {
	wrong, err := unpackTimes(s.wrong)
	requests, err2 := unpackTimes(s.requests)
	return parley.OTPLedger{
		Code: parley.OTPCode{
			ID: parley.OTPID(s.id), Channel: parley.ChannelCode(s.channel), Contact: parley.ContactID(s.contact), Hash: s.hash, Sealed: s.sealed,
			Status: parley.OTPStatus(s.status), Tries: int(s.tries), CreatedAt: moment(s.created), ExpiresAt: moment(s.expires), EndedAt: moment(s.ended),
		},
		Wrong: wrong, Requests: requests,
	}, errors.Join(err, err2)
}

func scanLedger(row scanner) (parley.OTPLedger, error) {
	var s ledgerRow
	if err := row.Scan(s.fields()...); err != nil {
		return parley.OTPLedger{}, err
	}
	return s.ledger()
}

// Ledger reads what is known of the codes of a contact on a channel.
func (r reader) Ledger(ctx context.Context, channel parley.ChannelCode, contact parley.ContactID) (parley.OTPLedger, error) {
	r = r.with(ctx)
	_, l, err := r.readLedger(channel, contact)
	return l, err
}

// readLedger reads a ledger and the seq of its row.
func (r reader) readLedger(channel parley.ChannelCode, contact parley.ContactID) (int64, parley.OTPLedger, error) {
	var s ledgerRow
	err := r.row(`SELECT `+ledgerColumns+` FROM otp_code WHERE contact = $1 AND channel = $2`, []any{string(contact), string(channel)}, s.fields()...)
	if err == parley.ErrNotFound {
		return 0, parley.OTPLedger{Code: parley.OTPCode{Channel: channel, Contact: contact}}, nil
	}
	if err != nil {
		return 0, parley.OTPLedger{}, err
	}
	l, err := s.ledger()
	return s.seq, l, err
}

// Ledgers reads what every channel knows of a contact's codes.
func (r reader) Ledgers(ctx context.Context, contact parley.ContactID) ([]parley.OTPLedger, error) {
	r = r.with(ctx)
	return list(r, `SELECT `+ledgerColumns+` FROM otp_code WHERE contact = $1 ORDER BY channel`, []any{string(contact)}, scanLedger)
}

// Code finds a code that is still a contact's newest.
func (r reader) Code(ctx context.Context, id parley.OTPID) (parley.OTPCode, error) {
	r = r.with(ctx)
	l, err := one(r, `SELECT `+ledgerColumns+` FROM otp_code WHERE id = $1`, []any{string(id)}, scanLedger)
	return l.Code, err
}

// OTPsDue reports whether a channel has codes or links to expire.
func (r reader) OTPsDue(ctx context.Context, channel parley.ChannelCode, after, now time.Time) (bool, error) {
	r = r.with(ctx)
	var due int64
	err := r.row(`SELECT CASE WHEN EXISTS (SELECT 1 FROM otp_code WHERE channel = $1 AND expires_at > $2 AND expires_at <= $3 AND status = 0)
		OR EXISTS (SELECT 1 FROM otp_link WHERE channel = $1 AND expires_at <= $3 AND status = 0) THEN 1 ELSE 0 END`,
		[]any{string(channel), millis(after), millis(now)}, &due)
	return due != 0, err
}

// PutLedger stores all of a ledger.
func (t *tx) PutLedger(_ context.Context, l parley.OTPLedger) error {
	c := l.Code
	var seq int64
	err := t.row(`INSERT INTO otp_code (contact, channel, id, hash, sealed, status, tries, created_at, expires_at, ended_at, wrong, requests)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (contact, channel) DO UPDATE SET id = excluded.id, hash = excluded.hash, sealed = excluded.sealed,
		status = excluded.status, tries = excluded.tries, created_at = excluded.created_at, expires_at = excluded.expires_at,
		ended_at = excluded.ended_at, wrong = excluded.wrong, requests = excluded.requests RETURNING seq`,
		[]any{string(c.Contact), string(c.Channel), string(c.ID), c.Hash, nullable(c.Sealed), int64(c.Status), int64(c.Tries),
			millis(c.CreatedAt), millis(c.ExpiresAt), millis(c.EndedAt), nullable(packTimes(l.Wrong)), nullable(packTimes(l.Requests))}, &seq)
	t.keepLedger(l, seq)
	return err
}

// UpdateLedger stores what a try changes.
func (t *tx) UpdateLedger(_ context.Context, l parley.OTPLedger) error {
	c := &l.Code
	if c.Status != parley.OTPStatusPending {
		c.Sealed = nil
	}
	const change = `UPDATE otp_code SET status = $1, tries = $2, ended_at = $3, wrong = $4, sealed = $5 WHERE id = $6 AND `
	args := []any{int64(c.Status), int64(c.Tries), millis(c.EndedAt), nullable(packTimes(l.Wrong)), nullable(c.Sealed), string(c.ID)}
	kept, _ := t.db.memory.ledgers.get(chatName{c.Channel, c.Contact})
	t.keepLedger(l, kept.seq)
	if kept.seq != 0 && c.Status == parley.OTPStatusApproved && len(l.Wrong) == 0 { // what logs people in, in fewest words
		return t.change(`UPDATE otp_code SET status = $1, ended_at = $2, wrong = NULL, sealed = NULL WHERE id = $3 AND seq = $4`,
			int64(c.Status), millis(c.EndedAt), string(c.ID), kept.seq)
	}
	if kept.seq != 0 {
		return t.change(change+`seq = $7`, append(args, kept.seq)...)
	}
	return t.change(change+`contact = $7 AND channel = $8`, append(args, string(c.Contact), string(c.Channel))...)
}

// ExpireCodes ends open codes of a channel that are past their time.
func (t *tx) ExpireCodes(_ context.Context, channel parley.ChannelCode, after, now time.Time, limit int) ([]parley.OTPCode, error) {
	due, err := list(t.reader, `SELECT `+ledgerColumns+` FROM otp_code WHERE channel = $1 AND expires_at > $2 AND expires_at <= $3 AND status = 0
		ORDER BY expires_at LIMIT $4`, []any{string(channel), millis(after), millis(now), int64(limit)}, scanLedger)
	if err != nil {
		return nil, err
	}
	var codes []parley.OTPCode
	for _, l := range due {
		c := l.Code
		c.Status, c.EndedAt, c.Sealed = parley.OTPStatusExpired, c.ExpiresAt, nil
		t.dropLedger(chatName{c.Channel, c.Contact})
		if err := t.change(`UPDATE otp_code SET status = $1, ended_at = $2, sealed = NULL WHERE contact = $3 AND channel = $4`,
			int64(c.Status), millis(c.EndedAt), string(c.Contact), string(c.Channel)); err != nil {
			return nil, err
		}
		codes = append(codes, c)
	}
	return codes, nil
}

// ForgetOTPs removes codes, links and replies of a channel from before a time.
func (t *tx) ForgetOTPs(_ context.Context, channel parley.ChannelCode, before time.Time, limit int) (int, error) {
	var removed int64
	for _, old := range []string{
		`DELETE FROM otp_code WHERE seq IN
			(SELECT seq FROM otp_code WHERE channel = $1 AND expires_at < $2 AND status <> 0 ORDER BY expires_at LIMIT $3)`,
		`DELETE FROM otp_link WHERE id IN
			(SELECT id FROM otp_link WHERE channel = $1 AND status <> 0 AND ended_at < $2 ORDER BY ended_at LIMIT $3)`,
		`DELETE FROM otp_reply WHERE seq IN
			(SELECT seq FROM otp_reply WHERE channel = $1 AND at < $2 ORDER BY at LIMIT $3)`,
	} {
		n, err := t.count(old, string(channel), millis(before), int64(limit))
		if err != nil {
			return 0, err
		}
		removed += n
	}
	if removed > 0 {
		t.forgetLedgers()
	}
	return int(removed), nil
}

// clearOTPs removes all that is kept of a channel's codes and links.
func (t *tx) clearOTPs(code parley.ChannelCode) error {
	t.forgetLedgers()
	for _, own := range []string{
		`DELETE FROM otp_code WHERE channel = $1`,
		`DELETE FROM otp_link WHERE channel = $1`,
		`DELETE FROM otp_reply WHERE channel = $1`,
		`DELETE FROM otp_crowd WHERE channel = $1`,
	} {
		if _, err := t.Exec(own, string(code)); err != nil {
			return err
		}
	}
	return nil
}

// packTimes writes times as the milliseconds since the one before.
func packTimes(times []time.Time) []byte {
	var b []byte
	var before int64
	for _, at := range times {
		b = binary.AppendVarint(b, millis(at)-before)
		before = millis(at)
	}
	return b
}

var errTimes = errors.New("the times of one-time codes are damaged")

func unpackTimes(b []byte) ([]time.Time, error) {
	var times []time.Time
	var at int64
	for len(b) > 0 {
		since, n := binary.Varint(b)
		if n <= 0 {
			return nil, errTimes
		}
		at, b = at+since, b[n:]
		times = append(times, moment(at))
	}
	return times, nil
}

// nullable is a blob whose absence is NULL.
func nullable(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}
