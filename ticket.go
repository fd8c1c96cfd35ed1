package parley

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
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
	Role      Role        // sign-in and session tickets: what the console may do
	Name      string      // whom a session is for; may be empty
	Token     TokenID     // of the admin token that the session goes back to; empty: the command line on the server
	Parent    []byte      // the hash of the session in which the link was made; nil: it was made outside the console
	CreatedAt time.Time
	ExpiresAt time.Time
	UsedAt    time.Time // zero: not used; a session is used up when it is signed out
	LastUse   TokenUse  // of a session, to the minute; zero: not known
	EndsAt    time.Time // after it a session is not prolonged; zero: see [Ticket.SessionEnd]
}

// MaxSession is how long a console session lasts at most, however much it is used.
const MaxSession = 7 * 24 * time.Hour

// SessionEnd is when a session ends whatever happens: after [MaxSession], or earlier with the token or session that made its link.
func (t Ticket) SessionEnd() time.Time {
	end := t.CreatedAt.Add(MaxSession)
	if !t.EndsAt.IsZero() && t.EndsAt.Before(end) {
		end = t.EndsAt
	}
	return end
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

// SessionID names a session without its secret.
func (t Ticket) SessionID() string { return sessionID(t.Hash) }

// ParentID names the session in which the link was made; empty: none.
func (t Ticket) ParentID() string {
	if t.Parent == nil {
		return ""
	}
	return sessionID(t.Parent)
}

func sessionID(hash []byte) string {
	const enough = 12 // bytes of the hash
	return "ses_" + hex.EncodeToString(hash[:min(enough, len(hash))])
}
