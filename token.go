package parley

import (
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
	switch k := TokenKind(s); k {
	case ChannelToken, GlobalToken, AdminToken:
		return k, nil
	}
	return "", Errorf(BadRequest, "A token's kind is channel, global or admin.")
}

// Token is what is stored of a token: never the token itself. Clients decode the rows of the management API into it.
type Token struct {
	ID         TokenID     `json:"id"`
	Name       string      `json:"name"`
	Kind       TokenKind   `json:"kind"`
	Channel    ChannelCode `json:"channel"` // channel tokens only
	Role       Role        `json:"role"`    // admin tokens only
	CreatedAt  time.Time   `json:"created_at"`
	ExpiresAt  time.Time   `json:"expires_at"`   // zero: never
	LastUsedAt time.Time   `json:"last_used_at"` // zero: never; stored to the minute
	RevokedAt  time.Time   `json:"revoked_at"`   // zero: not revoked

	Dev          bool   `json:"dev"` // parley dev wrote it to dev.env; only a development server accepts it
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
	own, needed := slices.Index(Roles, r), slices.Index(Roles, least)
	return own >= 0 && needed >= 0 && own >= needed
}
