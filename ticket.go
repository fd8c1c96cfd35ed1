package parley

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"time"
)

// TicketPurpose says what a ticket lets its holder do.
type TicketPurpose string

const (
	SignInTicket  TicketPurpose = "sign-in" // open the console, once: the secret is in a link
	SessionTicket TicketPurpose = "session" // use the console: the secret is in a cookie
	PairTicket    TicketPurpose = "pair"    // link a phone to one channel, once: the secret is in a link
)

// ticketBytes is how long a secret is before it is written down: nobody guesses 256 bits.
const ticketBytes = 32

// Ticket is what is stored of a ticket: a hash, never the secret itself.
type Ticket struct {
	Hash      []byte // see [HashTicket]
	Purpose   TicketPurpose
	Channel   ChannelCode // pair tickets only
	CreatedAt time.Time
	ExpiresAt time.Time
	UsedAt    time.Time // zero: not used; a session is used up when it is signed out
}

// NewTicket makes a ticket that is valid for a while, and its secret, which only its holder gets.
func NewTicket(purpose TicketPurpose, channel ChannelCode, now time.Time, life time.Duration) (secret string, t Ticket) {
	random := make([]byte, ticketBytes)
	rand.Read(random) // never fails
	secret = base64.RawURLEncoding.EncodeToString(random)
	now = now.UTC().Truncate(time.Millisecond) // as it is stored
	return secret, Ticket{Hash: HashTicket(secret), Purpose: purpose, Channel: channel, CreatedAt: now, ExpiresAt: now.Add(life)}
}

// HashTicket is what a ticket is found by. The secret is random and long, so a plain hash hides it.
func HashTicket(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

func (t Ticket) Active(now time.Time) bool {
	return t.UsedAt.IsZero() && now.Before(t.ExpiresAt)
}
