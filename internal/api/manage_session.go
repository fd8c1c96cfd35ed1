package api

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley"
	"parley/internal/store"
)

type sessionRow struct {
	ID           string      `json:"id"`
	Name         string      `json:"name"`
	Role         parley.Role `json:"role"`
	Token        *string     `json:"token"`  // that it goes back to; null: the command line
	Parent       *string     `json:"parent"` // the session in which its link was made; null: none
	CreatedAt    string      `json:"created_at"`
	LastUsedAt   string      `json:"last_used_at"`
	LastUsedFrom *string     `json:"last_used_from"`
	UserAgent    *string     `json:"user_agent"`
	ExpiresAt    string      `json:"expires_at"` // unless it is used
	EndsAt       string      `json:"ends_at"`    // even if it is used
	Current      bool        `json:"current"`
}

// sessions lists the console sessions that the caller may see and end: an owner all, others their own. Own are the session itself
// and those of the same token that have no higher role.
func (s *server) sessions(ctx context.Context, r *request) ([]parley.Ticket, error) {
	all, err := s.config.Store.Sessions(ctx, time.Now())
	if err != nil || r.token.Role == parley.Owner {
		return all, err
	}
	own := r.token.ID // of a token
	if i := slices.IndexFunc(all, r.isSession); i >= 0 {
		own = all[i].Token
	}
	return slices.DeleteFunc(all, func(t parley.Ticket) bool {
		return !r.isSession(t) && (own == "" || t.Token != own || !r.token.Role.Includes(t.Role))
	}), nil
}

// isSession reports whether the request was made in a session.
func (r *request) isSession(t parley.Ticket) bool {
	return r.token.Kind == console && string(r.token.ID) == t.SessionID()
}

func (s *server) listSessions(ctx context.Context, r *request) (any, error) {
	found, err := s.sessions(ctx, r)
	return ok("OK", mapped(found, func(t parley.Ticket) sessionRow {
		used := t.LastUse.At
		if used.IsZero() {
			used = t.CreatedAt
		}
		return sessionRow{t.SessionID(), t.Name, t.Role, textOrNil(t.Token), textOrNil(t.ParentID()), parley.Stamp(t.CreatedAt),
			parley.Stamp(used), textOrNil(t.LastUse.From), textOrNil(t.LastUse.UserAgent), parley.Stamp(t.ExpiresAt),
			parley.Stamp(t.SessionEnd()), r.isSession(t)}
	})), err
}

var errNoSession = parley.Errorf(parley.NotFound, "This session does not exist, or has ended.")

func (s *server) endSession(ctx context.Context, r *request) (any, error) {
	found, err := s.sessions(ctx, r)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(found, func(t parley.Ticket) bool { return t.SessionID() == r.http.PathValue("id") })
	if i < 0 {
		return nil, errNoSession
	}
	err = s.tx(ctx, func(tx *store.Tx) error {
		err := tx.EndSession(ctx, found[i].Hash, time.Now())
		return errors.Join(err, r.auditTx(ctx, tx, change{object: found[i].SessionID()}))
	})
	return ok("Session ended", struct{}{}), notFoundAs(err, errNoSession)
}

type endedData struct {
	Ended int `json:"ended"`
}

// endOtherSessions ends all sessions that the caller may end, except its own.
func (s *server) endOtherSessions(ctx context.Context, r *request) (any, error) {
	found, err := s.sessions(ctx, r)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, r.isSession)
	err = s.tx(ctx, func(tx *store.Tx) error {
		for _, t := range found {
			if err := tx.EndSession(ctx, t.Hash, time.Now()); parley.IgnoreNotFound(err) != nil {
				return err
			}
		}
		return r.auditTx(ctx, tx, change{after: endedData{len(found)}})
	})
	return ok("Sessions ended", endedData{len(found)}), err
}
