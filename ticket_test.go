package parley_test

import (
	"bytes"
	"testing"
	"time"

	"parley"
)

func TestTicketKeepsOnlyTheHashOfItsSecret(t *testing.T) {
	now := time.Date(2026, 11, 15, 5, 0, 0, 0, time.UTC)
	secret, ticket := parley.NewTicket(parley.PairTicket, "toko", now, time.Hour)
	if len(secret) != 43 {
		t.Errorf("the secret has %d characters, want the 43 of 256 bits", len(secret))
	}
	if bytes.Contains(ticket.Hash, []byte(secret)) || !bytes.Equal(ticket.Hash, parley.HashTicket(secret)) {
		t.Error("the ticket is not found by the hash of its secret")
	}
	if other, _ := parley.NewTicket(parley.PairTicket, "toko", now, time.Hour); other == secret {
		t.Error("two tickets have one secret")
	}
	if ticket.Purpose != parley.PairTicket || ticket.Channel != "toko" || !ticket.CreatedAt.Equal(now) ||
		!ticket.ExpiresAt.Equal(now.Add(time.Hour)) {
		t.Errorf("got %+v", ticket)
	}
}

func TestTicketIsGoodUntilItExpiresOrIsUsed(t *testing.T) {
	now := time.Date(2026, 11, 15, 5, 0, 0, 0, time.UTC)
	_, fresh := parley.NewTicket(parley.SignInTicket, "", now, 15*time.Minute)
	used := fresh
	used.UsedAt = now
	for name, c := range map[string]struct {
		ticket parley.Ticket
		at     time.Time
		want   bool
	}{
		"new":                {fresh, now, true},
		"just before expiry": {fresh, now.Add(15*time.Minute - time.Millisecond), true},
		"at expiry":          {fresh, now.Add(15 * time.Minute), false},
		"used":               {used, now, false},
	} {
		if got := c.ticket.Active(c.at); got != c.want {
			t.Errorf("%s: active %v, want %v", name, got, c.want)
		}
	}
}
