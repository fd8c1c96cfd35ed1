package api

import (
	"cmp"
	"context"
	"slices"
	"time"

	"parley"
)

type otpRow struct {
	ID        parley.OTPID       `json:"id"`
	Kind      string             `json:"kind"` // code or link
	Channel   parley.ChannelCode `json:"channel"`
	ContactID parley.ContactID   `json:"contact_id"`
	Status    parley.OTPStatus   `json:"status"`
	CreatedAt string             `json:"created_at"`
	ExpiresAt string             `json:"expires_at"`
	EndedAt   *string            `json:"ended_at"`
	Attempts  int                `json:"attempts"` // wrong ones

	ChannelsTried []parley.ChannelCode `json:"channels_tried,omitempty"`
}

func (s *server) listOTPs(ctx context.Context, r *request) (any, error) {
	limit, only := int(r.Whole("limit", 50, 1, maxFound)), parley.ChannelCode(r.OptionalText("channel", 1, 100))
	if err := r.Err(); err != nil {
		return nil, err
	}
	var rows []otpRow
	for _, c := range s.config.Gateway.Channels() {
		if only != "" && only != c.Code {
			continue
		}
		codes, err := s.config.Store.RecentCodes(ctx, c.Code, limit)
		if err != nil {
			return nil, err
		}
		links, err := s.config.Store.RecentLinks(ctx, c.Code, limit)
		if err != nil {
			return nil, err
		}
		now := s.config.Gateway.Now(c.Code)
		for _, code := range codes {
			rows = append(rows, codeRow(code, now))
		}
		for _, link := range links {
			rows = append(rows, linkRow(link, now))
		}
	}
	newestFirst(rows)
	return ok("OK", rows[:min(len(rows), limit)]), nil
}

func newestFirst(rows []otpRow) {
	slices.SortStableFunc(rows, func(a, b otpRow) int { return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(a.ID, b.ID)) })
}

func codeRow(c parley.OTPCode, now time.Time) otpRow {
	if c.Status == parley.OTPStatusPending && !now.Before(c.ExpiresAt) {
		c.Status = parley.OTPStatusExpired // not stored yet
	}
	return otpRow{ID: c.ID, Kind: "code", Channel: c.Channel, ContactID: c.Contact, Status: c.Status, CreatedAt: parley.Stamp(c.CreatedAt),
		ExpiresAt: parley.Stamp(c.ExpiresAt), EndedAt: stampOrNil(c.EndedAt), Attempts: c.Tries, ChannelsTried: c.Tried}
}

func linkRow(l parley.OTPLink, now time.Time) otpRow {
	return otpRow{ID: l.ID, Kind: "link", Channel: l.Channel, ContactID: l.Contact, Status: l.StatusAt(now),
		CreatedAt: parley.Stamp(l.CreatedAt), ExpiresAt: parley.Stamp(l.ExpiresAt), EndedAt: stampOrNil(l.EndedAt), Attempts: l.Tries}
}
