package parley

import (
	"slices"
	"strings"
)

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
