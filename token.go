package parley

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// TokenKind says what a token is for.
type TokenKind string

const (
	ChannelToken TokenKind = "channel" // every endpoint of one channel but the Global ones
	GlobalToken  TokenKind = "global"  // the Global endpoints, and every channel by X-Channel
	AdminToken   TokenKind = "admin"   // the management API only; it sends nothing
)

func ParseTokenKind(s string) (TokenKind, error) {
	if k := TokenKind(s); k == ChannelToken || k == GlobalToken || k == AdminToken {
		return k, nil
	}
	return "", Errorf(BadRequest, "A token's kind is channel, global or admin.")
}

// Token is what is stored of a token: never the token itself.
type Token struct {
	ID         TokenID
	Name       string
	Kind       TokenKind
	Channel    ChannelCode // channel tokens only
	Role       Role        // admin tokens only
	CreatedAt  time.Time
	ExpiresAt  time.Time // zero: never
	LastUsedAt time.Time // zero: never; stored to the minute
	RevokedAt  time.Time // zero: not revoked

	Dev          bool   // parley dev wrote it to dev.env; only a development server accepts it
	LastUsedFrom string // an address; empty: not known
	UserAgent    string // what the program that last used it calls itself; empty: not known
	SignedBy     string // the id of the signing key; no other key may verify it
}

type TokenUse struct {
	At        time.Time
	From      string // an address
	UserAgent string
}

func (t Token) Active(now time.Time) bool {
	return t.RevokedAt.IsZero() && (t.ExpiresAt.IsZero() || now.Before(t.ExpiresAt))
}

// Subject is the token's "sub" claim.
func (t Token) Subject() string {
	if t.Kind == ChannelToken {
		return string(t.Channel)
	}
	return string(t.Kind)
}

// SigningKey is a key that signs tokens. The newest signs; the others still verify the tokens that they signed, until they are retired.
type SigningKey struct {
	ID        string // the "kid" of the tokens that it signed
	Public    []byte // Ed25519
	Encrypted []byte // the private seed, encrypted
	CreatedAt time.Time
}

// Role says how much of the management API an admin token or a console session may use.
type Role string

const (
	Viewer   Role = "viewer"   // reads everything but secrets
	Support  Role = "support"  // also replies to contacts, in the console
	Operator Role = "operator" // also manages channels, webhooks, deliveries and the server
	Owner    Role = "owner"    // also manages tokens, roles and sessions, and downloads backups
)

// Roles lists every role. Each may do what those before it may.
var Roles = []Role{Viewer, Support, Operator, Owner}

// ParseRole reads a role.
func ParseRole(s string) (Role, error) {
	if r := Role(s); slices.Contains(Roles, r) {
		return r, nil
	}
	return "", Errorf(BadRequest, "A role is %s.", strings.Join(RoleNames(), ", "))
}

// RoleNames lists every role as text.
func RoleNames() []string {
	names := make([]string, len(Roles))
	for i, r := range Roles {
		names[i] = string(r)
	}
	return names
}

// Includes reports whether r may do what least may. An unknown role includes nothing.
func (r Role) Includes(least Role) bool {
	needed := slices.Index(Roles, least)
	return needed >= 0 && slices.Index(Roles, r) >= needed
}

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
func (t Ticket) ParentID() string { return sessionID(t.Parent) }

func sessionID(hash []byte) string {
	const enough = 12 // bytes of the hash
	if hash == nil {
		return ""
	}
	return "ses_" + hex.EncodeToString(hash[:min(enough, len(hash))])
}
