package store

import (
	"context"
	"strings"
	"time"

	"parley"
	"parley/internal/otp/rule"
)

// KnowsContact reports whether a contact is known to a channel. A message with a priority is a code, or a reply to a
// contact that has written. Statuses 1 to 4 mean that a message was sent.
func (r Reader) KnowsContact(ctx context.Context, channel parley.ChannelCode, contact parley.ContactID) (bool, error) {
	r = r.with(ctx)
	var chat, known int64
	err := r.optional(`SELECT id, known FROM chat WHERE id = `+chatIDFrom(`$1`, channelIDFrom(`$2`)),
		[]any{string(contact), string(channel)}, &chat, &known)
	if err != nil || known != 0 || chat == 0 {
		return known != 0, err
	}
	err = r.row(`SELECT CASE WHEN EXISTS (SELECT 1 FROM message
		WHERE chat = $1 AND position > 0 AND (from_me = 0 OR priority = 0 AND status BETWEEN 1 AND 4)) THEN 1 ELSE 0 END`, []any{chat}, &known)
	return known != 0, err
}

// alikeDigits is the number of last digits in which similar numbers may differ. An operator assigns such numbers in one
// block.
const alikeDigits = 4

// Strangers reads the codes that a channel sent to strangers.
func (r Reader) Strangers(ctx context.Context, channel parley.ChannelCode, contact parley.ContactID, now time.Time, limit int) (
	s rule.Strangers, err error) {
	r = r.with(ctx)
	var pausedUntil int64
	err = r.optional(`SELECT until FROM otp_alarm WHERE `+ofChannel+` AND type = $2`,
		[]any{string(channel), string(parley.OTPPaused)}, &pausedUntil)
	if err != nil {
		return s, err
	}
	s.PausedUntil = moment(pausedUntil)
	var codes, approved, counted int64
	err = r.row(`SELECT count(*), coalesce(sum(approved), 0) FROM otp_stranger WHERE `+ofChannel+` AND at > $2`,
		[]any{string(channel), max(millis(now.Add(-rule.ApprovalWindow)), pausedUntil-1)}, &codes, &approved)
	if err != nil {
		return s, err
	}
	s.Codes, s.Approved = int(codes), int(approved)
	since := millis(now.Add(-rule.StrangerWindow))
	// The plus: by the contact, not among all of the window.
	err = r.row(`SELECT CASE WHEN EXISTS (SELECT 1 FROM otp_stranger
		WHERE `+ofChannel+` AND contact = $2 AND +at > $3 AND counted = 1) THEN 1 ELSE 0 END`,
		[]any{string(channel), string(contact), since}, &counted)
	if err != nil || counted != 0 {
		s.Counted = counted != 0
		return s, err
	}
	s.Since, err = list(r, `SELECT at FROM otp_stranger WHERE `+ofChannel+` AND at > $2 AND counted = 1 ORDER BY at DESC LIMIT $3`,
		[]any{string(channel), since, int64(limit)}, scanMoment)
	if err != nil {
		return s, err
	}
	number, rest, _ := strings.Cut(string(contact), "@")
	block := number[:max(0, len(number)-alikeDigits)]
	// In ASCII the colon follows the digits, so this range has all numbers that begin with the block.
	s.Alike, err = list(r, `SELECT at FROM otp_stranger WHERE `+ofChannel+` AND contact >= $2 AND contact < $3
		AND length(contact) = $4 AND +at > $5 AND counted = 1 ORDER BY at DESC LIMIT $6`,
		[]any{string(channel), block + strings.Repeat("0", alikeDigits), block + ":", int64(len(number) + len("@") + len(rest)),
			since, int64(limit)}, scanMoment)
	return s, err
}

// AddStranger stores that a code is sent to a stranger.
func (t *Tx) AddStranger(_ context.Context, c parley.OTPCode, count bool) error {
	channel, err := t.channelID(c.Channel)
	if err != nil {
		return err
	}
	if err := t.exec(`DELETE FROM otp_stranger WHERE channel = $1 AND at <= $2`,
		channel, millis(c.CreatedAt.Add(-rule.StrangerWindow))); err != nil {
		return err
	}
	return t.add(`INSERT INTO otp_stranger (code, channel, contact, at, counted) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
		string(c.ID), channel, string(c.Contact), millis(c.CreatedAt), flag(count))
}

// ApproveContact stores that a contact approved a code.
func (t *Tx) ApproveContact(_ context.Context, c parley.OTPCode) error {
	if err := t.exec(`UPDATE otp_stranger SET approved = 1 WHERE code = $1`, string(c.ID)); err != nil {
		return err
	}
	channel, err := t.channelID(c.Channel)
	if err != nil {
		return err
	}
	// Nearly every chat exists: its contact got the code.
	n, err := t.sql.Exec(`UPDATE chat SET known = 1 WHERE id = `+chatIDFrom(`$1`, `$2`)+` AND known = 0`, string(c.Contact), channel)
	if err != nil || n > 0 {
		return err
	}
	chat, err := t.openChat(channel, c.Contact)
	if err != nil {
		return err
	}
	return t.exec(`UPDATE chat SET known = 1 WHERE id = $1 AND known = 0`, chat)
}

// CountWrongTry counts a wrong try and returns the tries in the window.
func (t *Tx) CountWrongTry(_ context.Context, code parley.ChannelCode, at time.Time) (int, error) {
	channel, err := t.channelID(code)
	if err != nil {
		return 0, err
	}
	minute := at.Unix() / 60
	oldest := minute - int64(rule.GuessWindow/time.Minute)
	if err := t.exec(`DELETE FROM otp_wrong WHERE channel = $1 AND minute <= $2`, channel, oldest); err != nil {
		return 0, err
	}
	if err := t.exec(`INSERT INTO otp_wrong (channel, minute, tries) VALUES ($1, $2, 1)
		ON CONFLICT (channel, minute) DO UPDATE SET tries = otp_wrong.tries + 1`, channel, minute); err != nil {
		return 0, err
	}
	var tries int64
	err = t.row(`SELECT sum(tries) FROM otp_wrong WHERE channel = $1`, []any{channel}, &tries)
	return int(tries), err
}

// OTPAlarms lists the alarms of all channels.
func (r Reader) OTPAlarms(ctx context.Context) ([]parley.OTPAlarm, error) {
	return list(r.with(ctx), `SELECT code, type, at, until, count FROM otp_alarm CROSS JOIN channel WHERE channel.id = otp_alarm.channel
		ORDER BY code, type`, nil, scanAlarm)
}

func scanAlarm(row scanner) (a parley.OTPAlarm, err error) {
	var at, until int64
	err = row.Scan(&a.Channel, &a.Type, &at, &until, &a.Count)
	a.At, a.Until = moment(at), moment(until)
	return a, err
}

// RaiseOTPAlarm stores an alarm, unless an earlier one has not ended yet.
func (t *Tx) RaiseOTPAlarm(_ context.Context, a parley.OTPAlarm) (bool, error) {
	channel, err := t.channelID(a.Channel)
	if err != nil {
		return false, err
	}
	n, err := t.sql.Exec(`INSERT INTO otp_alarm (channel, type, at, until, count) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (channel, type) DO UPDATE SET at = excluded.at, until = excluded.until, count = excluded.count
		WHERE otp_alarm.until <= excluded.at`,
		channel, string(a.Type), millis(a.At), millis(a.Until), int64(a.Count))
	return n > 0, err
}

// CorrectOTPTimes replaces times in the future by the current time.
func (t *Tx) CorrectOTPTimes(_ context.Context, channel parley.ChannelCode, now time.Time) error {
	if err := t.execAll([]string{
		`UPDATE otp_code SET expires_at = expires_at - created_at + $2, created_at = $2
			WHERE ` + ofChannel + ` AND expires_at > $2 AND created_at > $2`,
		`UPDATE otp_link SET expires_at = expires_at - created_at + $2, created_at = $2
			WHERE ` + ofChannel + ` AND status = 0 AND created_at > $2`,
		`UPDATE otp_link SET ended_at = $2 WHERE ` + ofChannel + ` AND status <> 0 AND ended_at > $2`,
		`UPDATE otp_reply SET at = $2 WHERE ` + ofChannel + ` AND at > $2`,
		`UPDATE otp_stranger SET at = $2 WHERE ` + ofChannel + ` AND at > $2`,
		`UPDATE otp_fallback SET due_at = $2 WHERE ` + ofChannel + ` AND expires_at > $2 AND due_at > $2`,
		`UPDATE otp_alarm SET until = until - at + $2, at = $2 WHERE ` + ofChannel + ` AND at > $2`,
	}, string(channel), millis(now)); err != nil {
		return err
	}
	var tries int64
	minute := now.Unix() / 60
	err := t.row(`SELECT coalesce(sum(tries), 0) FROM otp_wrong WHERE `+ofChannel+` AND minute > $2`,
		[]any{string(channel), minute}, &tries)
	if err != nil || tries == 0 {
		return err
	}
	if err := t.exec(`DELETE FROM otp_wrong WHERE `+ofChannel+` AND minute > $2`, string(channel), minute); err != nil {
		return err
	}
	return t.exec(`INSERT INTO otp_wrong (channel, minute, tries) VALUES ((SELECT id FROM channel WHERE code = $1), $2, $3)
		ON CONFLICT (channel, minute) DO UPDATE SET tries = otp_wrong.tries + excluded.tries`, string(channel), minute, tries)
}
