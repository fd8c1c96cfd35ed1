package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"parley"
	"parley/internal/otp/rule"
)

const (
	ledgerColumns = `seq, contact, (SELECT code FROM channel WHERE channel.id = otp_code.channel), id, hash, encrypted, status, tries,
		created_at, expires_at, ended_at, wrong, requests, coalesce((SELECT state FROM otp_fallback WHERE otp_fallback.id = otp_code.id), '')`
	// Codes of a channel that is gone are hidden.
	readLedgers = `SELECT ` + ledgerColumns + ` FROM otp_code WHERE EXISTS (SELECT 1 FROM channel WHERE channel.id = otp_code.channel) AND `
)

func scanLedger(row scanner) (rule.Ledger, error) { return scanLedgerAnd(row) }

// scanLedgerAnd reads the columns of a ledger and those after them.
func scanLedgerAnd(row scanner, more ...any) (rule.Ledger, error) {
	var l rule.Ledger
	var seq, created, expires, ended int64
	var wrong, requests, fallback []byte
	c := &l.Code
	if err := row.Scan(append([]any{&seq, &c.Contact, &c.Channel, &c.ID, &c.Hash, &c.Encrypted, &c.Status, &c.Tries,
		&created, &expires, &ended, &wrong, &requests, &fallback}, more...)...); err != nil {
		return l, err
	}
	c.CreatedAt, c.ExpiresAt, c.EndedAt = moment(created), moment(expires), moment(ended)
	if len(fallback) > 0 {
		var f parley.Fallback
		if err := json.Unmarshal(fallback, &f); err != nil {
			return l, fmt.Errorf("channels of a one-time code: %w", err)
		}
		c.Tried = f.Tried()
	}
	return l, errors.Join(decodeTimes(wrong, &l.Wrong), decodeTimes(requests, &l.Requests))
}

// Ledger reads the ledger of a contact's codes on a channel. A code for another spelling of the number counts.
func (r Reader) Ledger(ctx context.Context, channel parley.ChannelCode, contact parley.ContactID) (rule.Ledger, error) {
	r = r.with(ctx)
	spellings, err := r.Spellings(ctx, channel, contact)
	if err != nil {
		return rule.Ledger{}, err
	}
	return r.ledger(channel, contact, spellings)
}

func (r Reader) ledger(channel parley.ChannelCode, contact parley.ContactID, spellings []parley.ContactID) (rule.Ledger, error) {
	in, args := inList(2, texts(spellings))
	l, err := one(r, readLedgers+ofChannel+` AND contact IN `+in+` ORDER BY created_at DESC LIMIT 1`,
		append([]any{string(channel)}, args...), scanLedger)
	if err == parley.ErrNotFound {
		return rule.Ledger{Code: parley.OTPCode{Channel: channel, Contact: contact}}, nil
	}
	return l, err
}

// Ledger is [Reader.Ledger] for a change. On PostgreSQL another node may still change the same ledger, while the channel is handed
// over: the later one waits and reads what the other stored.
func (t *Tx) Ledger(ctx context.Context, channel parley.ChannelCode, contact parley.ContactID) (rule.Ledger, error) {
	if l, only, err := t.onlyLedger(channel, contact); only || err != nil {
		return l, err
	}
	spellings, err := t.Spellings(ctx, channel, contact)
	if err != nil {
		return rule.Ledger{}, err
	}
	if t.conn.IsPostgres() {
		in, args := inList(2, texts(spellings))
		err = t.exec(`SELECT 1 FROM otp_code WHERE `+ofChannel+` AND contact IN `+in+` FOR UPDATE`, append([]any{string(channel)}, args...)...)
		if err != nil {
			return rule.Ledger{}, err
		}
	}
	return t.ledger(channel, contact, spellings)
}

// onlyLedger reads the ledger of a contact whose number has no other spelling, as most have none. It reports false if it has, or if
// there is no ledger.
func (t *Tx) onlyLedger(code parley.ChannelCode, contact parley.ContactID) (l rule.Ledger, only bool, err error) {
	channel, err := t.channelID(code)
	if err == parley.ErrNotFound {
		return l, false, nil
	}
	if err != nil {
		return l, false, err
	}
	lock := ``
	if t.conn.IsPostgres() {
		lock = ` FOR UPDATE`
	}
	l, err = one(t.Reader, `SELECT `+ledgerColumns+`, NOT EXISTS (SELECT 1 FROM alias WHERE chat = `+chatIDFrom(`$1`, `$2`)+`)
		FROM otp_code WHERE contact = $1 AND channel = $2`+lock, []any{string(contact), channel},
		func(row scanner) (rule.Ledger, error) { return scanLedgerAnd(row, &only) })
	if err == parley.ErrNotFound {
		err = nil
	}
	if only && err == nil { // what follows asks for them
		t.spelled.channel, t.spelled.contact, t.spelled.all = code, contact, []parley.ContactID{contact}
	}
	return l, only, err
}

// Ledgers reads a contact's ledgers on all channels, the newest of each channel last.
func (r Reader) Ledgers(ctx context.Context, contact parley.ContactID) ([]rule.Ledger, error) {
	return list(r.with(ctx), readLedgers+`contact IN (SELECT $1 UNION
		SELECT alias.contact FROM alias WHERE chat IN (SELECT id FROM chat WHERE contact = $1)) ORDER BY 3, created_at`,
		[]any{string(contact)}, scanLedger)
}

// Code finds a code if it is a contact's newest.
func (r Reader) Code(ctx context.Context, id parley.OTPID) (parley.OTPCode, error) {
	l, err := one(r.with(ctx), readLedgers+`id = $1`, []any{string(id)}, scanLedger)
	return l.Code, err
}

// PutLedger stores a whole ledger.
func (t *Tx) PutLedger(_ context.Context, l rule.Ledger) error {
	c := l.Code
	channel, err := t.channelID(c.Channel)
	if err != nil {
		return err
	}
	return t.exec(`INSERT INTO otp_code
		(contact, channel, id, hash, encrypted, status, tries, created_at, expires_at, ended_at, wrong, requests)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (contact, channel) DO UPDATE SET id = excluded.id, hash = excluded.hash, encrypted = excluded.encrypted,
		status = excluded.status, tries = excluded.tries, created_at = excluded.created_at, expires_at = excluded.expires_at,
		ended_at = excluded.ended_at, wrong = excluded.wrong, requests = excluded.requests`,
		string(c.Contact), channel, string(c.ID), c.Hash, nullable(c.Encrypted), int64(c.Status), int64(c.Tries),
		millis(c.CreatedAt), millis(c.ExpiresAt), millis(c.EndedAt), encodeTimes(l.Wrong), encodeTimes(l.Requests))
}

// UpdateLedger stores the part of a ledger that a try changes.
func (t *Tx) UpdateLedger(_ context.Context, l rule.Ledger) error {
	c := l.Code
	if c.Status != parley.OTPStatusPending {
		c.Encrypted = nil
	}
	return t.change(`UPDATE otp_code SET status = $1, tries = $2, ended_at = $3, wrong = $4, encrypted = $5 WHERE id = $6`,
		int64(c.Status), int64(c.Tries), millis(c.EndedAt), encodeTimes(l.Wrong), nullable(c.Encrypted), string(c.ID))
}

// ExpireCodes expires the open codes of a channel that are past their time.
func (t *Tx) ExpireCodes(_ context.Context, channel parley.ChannelCode, after, now time.Time, limit int) ([]parley.OTPCode, error) {
	due, err := list(t.Reader, readLedgers+ofChannel+` AND expires_at > $2 AND expires_at <= $3 AND status = 0
		ORDER BY expires_at LIMIT $4`, []any{string(channel), millis(after), millis(now), int64(limit)}, scanLedger)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(due))
	for i, l := range due {
		ids[i] = string(l.Code.ID)
	}
	ended, err := t.expireOTPs(`otp_code`, ids)
	var codes []parley.OTPCode
	for _, l := range due {
		c := l.Code
		if c.Status, c.EndedAt, c.Encrypted = parley.OTPStatusExpired, c.ExpiresAt, nil; ended[c.ID] {
			codes = append(codes, c)
		}
	}
	return codes, err
}

// expireOTPs ends codes or links that are open, and returns these. Another node may have ended others meanwhile.
func (t *Tx) expireOTPs(table string, ids []string) (map[parley.OTPID]bool, error) {
	ended := map[parley.OTPID]bool{}
	_, err := listIn(t.Reader, `UPDATE `+table+` SET status = $1, ended_at = expires_at, encrypted = NULL WHERE status = 0 AND id IN `,
		` RETURNING id`, []any{int64(parley.OTPStatusExpired)}, ids, func(row scanner) (id parley.OTPID, err error) {
			err = row.Scan(&id)
			ended[id] = true
			return id, err
		})
	return ended, err
}

// PurgeOTPs deletes codes, links and replies of a channel from before a time.
func (t *Tx) PurgeOTPs(_ context.Context, channel parley.ChannelCode, before time.Time, limit int) (int, error) {
	var removed int64
	for _, old := range []string{
		`DELETE FROM otp_code WHERE seq IN
			(SELECT seq FROM otp_code WHERE ` + ofChannel + ` AND expires_at < $2 AND status <> 0 ORDER BY expires_at LIMIT $3)`,
		`DELETE FROM otp_fallback WHERE id IN
			(SELECT id FROM otp_fallback WHERE ` + ofChannel + ` AND expires_at < $2 ORDER BY expires_at LIMIT $3)`,
		`DELETE FROM otp_link WHERE id IN
			(SELECT id FROM otp_link WHERE ` + ofChannel + ` AND status <> 0 AND ended_at < $2 ORDER BY ended_at LIMIT $3)`,
		`DELETE FROM otp_reply WHERE seq IN
			(SELECT seq FROM otp_reply WHERE ` + ofChannel + ` AND at < $2 ORDER BY at LIMIT $3)`,
	} {
		n, err := t.sql.Exec(old, string(channel), millis(before), int64(limit))
		if err != nil {
			return 0, err
		}
		removed += n
	}
	return int(removed), nil
}

// encodeTimes writes times as JSON, in milliseconds.
func encodeTimes(times []time.Time) string {
	b := []byte{'['}
	for i, at := range times {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, millis(at), 10)
	}
	return string(append(b, ']'))
}

func decodeTimes(encoded []byte, into *[]time.Time) error {
	var all []int64
	if string(encoded) == "[]" { // as most are
		return nil
	}
	if err := json.Unmarshal(encoded, &all); err != nil {
		return fmt.Errorf("times of one-time codes: %w", err)
	}
	for _, at := range all {
		*into = append(*into, moment(at))
	}
	return nil
}

// RecentCodes lists a channel's codes, newest first.
func (r Reader) RecentCodes(ctx context.Context, channel parley.ChannelCode, limit int) ([]parley.OTPCode, error) {
	ledgers, err := list(r.with(ctx), readLedgers+ofChannel+` ORDER BY expires_at DESC LIMIT $2`,
		[]any{string(channel), int64(limit)}, scanLedger)
	codes := make([]parley.OTPCode, len(ledgers))
	for i, l := range ledgers {
		codes[i] = l.Code
	}
	slices.SortStableFunc(codes, func(a, b parley.OTPCode) int { return cmp.Compare(millis(b.CreatedAt), millis(a.CreatedAt)) })
	return codes, err
}
