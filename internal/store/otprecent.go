package store

import (
	"cmp"
	"context"
	"slices"

	"parley"
)

// RecentCodes lists a channel's codes, newest first.
func (r Reader) RecentCodes(ctx context.Context, channel parley.ChannelCode, limit int) ([]parley.OTPCode, error) {
	r = r.with(ctx)
	ledgers, err := list(r, `SELECT `+ledgerColumns+` FROM otp_code WHERE channel = (SELECT id FROM channel WHERE code = $1) ORDER BY expires_at DESC LIMIT $2`,
		[]any{string(channel), int64(limit)}, scanLedger)
	codes := make([]parley.OTPCode, len(ledgers))
	for i, l := range ledgers {
		codes[i] = l.Code
	}
	slices.SortStableFunc(codes, func(a, b parley.OTPCode) int { return cmp.Compare(millis(b.CreatedAt), millis(a.CreatedAt)) })
	return codes, err
}

// RecentLinks lists a channel's links, newest first: of those that are open the last to end, and of
// those that ended the last that did.
func (r Reader) RecentLinks(ctx context.Context, channel parley.ChannelCode, limit int) ([]parley.OTPLink, error) {
	r = r.with(ctx)
	var links []parley.OTPLink
	for _, some := range []string{`status = 0 ORDER BY expires_at`, `status <> 0 ORDER BY ended_at`} {
		found, err := list(r, `SELECT `+linkColumns+` FROM otp_link WHERE channel = (SELECT id FROM channel WHERE code = $1) AND `+some+` DESC LIMIT $2`,
			[]any{string(channel), int64(limit)}, scanLink)
		if err != nil {
			return nil, err
		}
		links = append(links, found...)
	}
	slices.SortStableFunc(links, func(a, b parley.OTPLink) int { return cmp.Compare(millis(b.CreatedAt), millis(a.CreatedAt)) })
	return links[:min(limit, len(links))], nil
}
