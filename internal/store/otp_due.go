package store

import (
	"context"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// DueOTPs returns the channels with open codes or links that expire until a time, and when the first of each does.
func (r Reader) DueOTPs(ctx context.Context, until time.Time) (map[parley.ChannelCode]time.Time, error) {
	due := map[parley.ChannelCode]time.Time{}
	err := each(r.with(ctx), `SELECT code, min(at) FROM (
			SELECT channel, expires_at AS at FROM otp_code WHERE status = 0 AND expires_at <= $1
			UNION ALL SELECT channel, expires_at FROM otp_link WHERE status = 0 AND expires_at <= $1
		) AS due JOIN channel ON channel.id = due.channel WHERE `+notMoving+` GROUP BY code`, []any{millis(until)}, func(row scanner) error {
		var code parley.ChannelCode
		var at int64
		err := row.Scan(&code, &at)
		due[code] = moment(at)
		return err
	})
	return due, err
}

// OldOTPs lists the channels that [Tx.PurgeOTPs] would change.
func (r Reader) OldOTPs(ctx context.Context, before time.Time) ([]parley.ChannelCode, error) {
	return list(r.with(ctx), `SELECT code FROM channel WHERE
		EXISTS (SELECT 1 FROM otp_code WHERE otp_code.channel = channel.id AND otp_code.expires_at < $1 AND otp_code.status <> 0)
		OR EXISTS (SELECT 1 FROM otp_link WHERE otp_link.channel = channel.id AND otp_link.ended_at < $1 AND otp_link.status <> 0)
		OR EXISTS (SELECT 1 FROM otp_reply WHERE otp_reply.channel = channel.id AND otp_reply.at < $1)`,
		[]any{millis(before)}, sqldb.ScanOne[parley.ChannelCode])
}

// FutureOTPs lists the channels that [Tx.CorrectOTPTimes] would change.
func (r Reader) FutureOTPs(ctx context.Context, now time.Time) ([]parley.ChannelCode, error) {
	return list(r.with(ctx), `SELECT code FROM channel WHERE
		EXISTS (SELECT 1 FROM otp_code WHERE otp_code.channel = channel.id AND otp_code.expires_at > $1 AND otp_code.created_at > $1)
		OR EXISTS (SELECT 1 FROM otp_link WHERE otp_link.channel = channel.id AND otp_link.status = 0
			AND otp_link.expires_at > $1 AND otp_link.created_at > $1)
		OR EXISTS (SELECT 1 FROM otp_link WHERE otp_link.channel = channel.id AND otp_link.status <> 0 AND otp_link.ended_at > $1)
		OR EXISTS (SELECT 1 FROM otp_reply WHERE otp_reply.channel = channel.id AND otp_reply.at > $1)
		OR EXISTS (SELECT 1 FROM otp_stranger WHERE otp_stranger.channel = channel.id AND otp_stranger.at > $1)
		OR EXISTS (SELECT 1 FROM otp_alarm WHERE otp_alarm.channel = channel.id AND otp_alarm.at > $1)
		OR EXISTS (SELECT 1 FROM otp_wrong WHERE otp_wrong.channel = channel.id AND otp_wrong.minute > $2)`,
		[]any{millis(now), now.Unix() / 60}, sqldb.ScanOne[parley.ChannelCode])
}
