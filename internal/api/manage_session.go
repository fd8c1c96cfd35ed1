package api

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley"
	"parley/internal/store"
	"parley/internal/wire"
)

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
	return ok("OK", mapped(found, func(t parley.Ticket) wire.Session {
		used := t.LastUse.At
		if used.IsZero() {
			used = t.CreatedAt
		}
		return wire.Session{ID: t.SessionID(), Name: t.Name, Role: t.Role, Token: wire.Text(t.Token), Parent: wire.Text(t.ParentID()),
			CreatedAt: wire.At(t.CreatedAt), LastUsedAt: wire.At(used), LastUsedFrom: wire.Text(t.LastUse.From),
			UserAgent: wire.Text(t.LastUse.UserAgent), ExpiresAt: wire.At(t.ExpiresAt), EndsAt: wire.At(t.SessionEnd()), Current: r.isSession(t)}
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
