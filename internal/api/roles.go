package api

import (
	"context"
	"fmt"

	"parley"
	"parley/internal/token"
)

// permitRole refuses an admin token or a console session whose role does not suffice.
func (rt *route) permitRole(t parley.Token) error {
	if rt.input == noRoute || t.Kind != console && t.Kind != parley.AdminToken {
		return nil
	}
	if !t.Role.Includes(rt.role) {
		return lacksRole(t, rt.role)
	}
	return nil
}

// lacksRole is the error of a caller that needs another role.
func lacksRole(t parley.Token, least parley.Role) error {
	if t.Kind == console {
		return parley.Errorf(parley.Forbidden, "This needs the role %s. You are signed in as %s. Ask an owner for a link with that role.",
			least, t.Role)
	}
	return insufficient(fmt.Sprintf("This needs the role %s. This token has the role %s. "+
		"An owner can change it with: parley token set %s --role %s", least, t.Role, t.ID, least))
}

// role reads the field role; empty: it was not sent.
func (r *request) role() parley.Role {
	if !r.Has("role") {
		return ""
	}
	return parley.Role(r.Choice("role", true, parley.RoleNames()...))
}

type meData struct {
	ID   parley.TokenID `json:"id"`
	Name string         `json:"name"`
	Kind string         `json:"kind"` // token, session or local
	Role parley.Role    `json:"role"`
}

// readMe says who the caller is and what role it has.
func (s *server) readMe(_ context.Context, r *request) (any, error) {
	me := meData{ID: r.token.ID, Name: r.token.Name, Kind: "token", Role: r.token.Role}
	switch {
	case r.token.Kind == console:
		me.Kind = "session"
	case token.IsLocal(r.token):
		me.Kind = "local"
	}
	return ok("OK", me), nil
}
