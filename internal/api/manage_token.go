package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"parley"
	"parley/internal/api/form"
	"parley/internal/store"
	"parley/internal/token"
	"parley/internal/wire"
)

func toToken(t parley.Token) wire.Token {
	return wire.Token{
		ID: t.ID, Name: t.Name, Kind: t.Kind, Channel: wire.Text(t.Channel), Role: wire.Text(t.Role), CreatedAt: wire.At(t.CreatedAt),
		ExpiresAt: wire.At(t.ExpiresAt), LastUsedAt: wire.At(t.LastUsedAt), RevokedAt: wire.At(t.RevokedAt),
		LastUsedFrom: wire.Text(t.LastUsedFrom), UserAgent: wire.Text(t.UserAgent), Dev: t.Dev,
	}
}

func (s *server) listTokens(ctx context.Context, _ *request) (any, error) {
	tokens, err := s.config.Store.Tokens(ctx)
	return ok("OK", mapped(tokens, toToken)), err
}

func (s *server) createToken(ctx context.Context, r *request) (any, error) {
	t := parley.Token{
		ID:      parley.NewTokenID(),
		Kind:    parley.TokenKind(r.Choice("kind", true, string(parley.ChannelToken), string(parley.GlobalToken), string(parley.AdminToken))),
		Channel: parley.ChannelCode(r.OptionalText("channel", 1, 32)),
		Role:    r.role(),
		Name:    r.OptionalText("name", 1, 100),
	}
	t.ExpiresAt = futureTime(r.Form, "expires_at")
	switch {
	case t.Kind == parley.ChannelToken && !r.Has("channel"):
		r.Fail("channel", "is required for a channel token: the channel's code.")
	case t.Kind != "" && t.Kind != parley.ChannelToken && r.Has("channel"):
		r.Fail("channel", "is only for channel tokens.")
	}
	if t.Kind != "" && t.Kind != parley.AdminToken && r.Has("role") {
		r.Fail("role", onlyAdmin)
	}
	if err := r.Failed(func() error { return s.checkTokensChannel(ctx, t) }); err != nil {
		return nil, err
	}
	var row wire.Token
	signed, err := s.config.Tokens.Issue(ctx, t, func(tx *store.Tx, stored parley.Token) error {
		row = toToken(stored)
		// The stored response must not contain the token, so a retry gets only its row.
		return errors.Join(r.auditTx(ctx, tx, change{object: string(stored.ID), after: auditToken(stored)}),
			r.storeKey(ctx, tx, http.StatusCreated, ok(tokenExists, wire.NewToken{Token: row})))
	})
	return ok("Token created. Copy it now: it is not shown again.", wire.NewToken{Token: row, Secret: signed}), err
}

const onlyAdmin = "is only for admin tokens."

const tokenExists = "The token was already created and is not shown again. If it is lost, revoke it and create another."

func (s *server) checkTokensChannel(ctx context.Context, t parley.Token) error {
	if t.Channel == "" {
		return nil
	}
	_, err := s.config.Store.Channel(ctx, t.Channel)
	return notFoundAs(err, parley.InvalidField("channel", fmt.Sprintf("There is no channel %s.", t.Channel)))
}

func futureTime(f form.Form, name string) time.Time {
	t, _ := form.Parse(f, name, func(text string) (time.Time, error) {
		t, err := time.Parse(time.RFC3339, text)
		if err == nil && !t.After(time.Now()) {
			err = errors.New("in the past")
		}
		return t, err
	}, "a time in the future, for example "+time.Now().AddDate(1, 0, 0).UTC().Format(time.RFC3339))
	return t
}

// changeToken changes the given fields. Another role ends the console sessions that the token made.
func (s *server) changeToken(ctx context.Context, r *request) (any, error) {
	name := r.OptionalText("name", 1, 100)
	role := r.role()
	if err := r.Err(); err != nil {
		return nil, err
	}
	var changed envelope
	set := func(t *parley.Token) {
		t.Name, t.Role = cmp.Or(name, t.Name), cmp.Or(role, t.Role)
	}
	id := parley.TokenID(r.http.PathValue("id"))
	_, err := s.config.Tokens.Update(ctx, id, set, func(tx *store.Tx, before, after parley.Token) error {
		changed = ok("Token changed", toToken(after))
		return errors.Join(r.auditTx(ctx, tx, change{string(id), auditToken(before), auditToken(after)}),
			r.storeKey(ctx, tx, http.StatusOK, changed))
	})
	return changed, notFoundAs(err, errNoToken)
}

var errNoToken = parley.Errorf(parley.NotFound, "This token does not exist.")

func (s *server) revokeToken(ctx context.Context, r *request) (any, error) {
	id := parley.TokenID(r.http.PathValue("id"))
	err := s.config.Tokens.Revoke(ctx, id, func(tx *store.Tx, before parley.Token) error {
		after := before
		after.RevokedAt = time.Now()
		return r.auditTx(ctx, tx, change{string(id), auditToken(before), auditToken(after)})
	})
	if err != nil {
		return nil, notFoundAs(err, errNoToken)
	}
	t, err := s.config.Store.Token(ctx, id)
	return ok("Token revoked", toToken(t)), err
}

type rotatedKey struct {
	Key   string       `json:"key"`
	Ended []wire.Token `json:"ended"`
}

type auditedRotation struct {
	Retired bool             `json:"retired"`
	Ended   []parley.TokenID `json:"ended"`
}

// rotateSigningKey creates a new key for new tokens. Existing tokens stay valid unless the older keys are retired.
func (s *server) rotateSigningKey(ctx context.Context, r *request) (any, error) {
	rotation := token.Rotation{Retire: r.Bool("retire", false), KeepCurrent: r.Bool("keep_current", false)}
	if rotation.KeepCurrent && !rotation.Retire {
		r.Fail("keep_current", "is only for retire: without either, nothing would change.")
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	var done envelope
	_, err := s.config.Tokens.Rotate(ctx, rotation, func(tx *store.Tx, id string, ended []parley.Token) error {
		message := "New tokens are signed with a new key."
		c := change{object: id}
		if rotation.Retire {
			message = fmt.Sprintf("Older signing keys are retired. Tokens that ended: %d.", len(ended))
			c.after = auditedRotation{true, mapped(ended, func(t parley.Token) parley.TokenID { return t.ID })}
		}
		done = ok(message, rotatedKey{id, mapped(ended, toToken)})
		return errors.Join(r.auditTx(ctx, tx, c), r.storeKey(ctx, tx, http.StatusOK, done))
	})
	return done, err
}

const SignInLife = 15 * time.Minute

type signInLink struct {
	URL       string      `json:"url"`
	ExpiresAt string      `json:"expires_at"`
	Role      parley.Role `json:"role"`
}

type auditedLink struct {
	Role parley.Role `json:"role"`
	Name string      `json:"name"`
}

// makeSignInLink creates a link for the caller's role, or for a lesser one. Only an owner may do so in the console: else a
// session could be prolonged for ever.
func (s *server) makeSignInLink(ctx context.Context, r *request) (any, error) {
	role := cmp.Or(r.role(), r.token.Role)
	name := r.OptionalText("name", 1, 100)
	if err := r.Err(); err != nil {
		return nil, err
	}
	if !r.token.Role.Includes(role) {
		return nil, lacksRole(r.token, role)
	}
	if r.token.Kind == console && r.token.Role != parley.Owner {
		return nil, lacksRole(r.token, parley.Owner)
	}
	if name != "" && r.token.Role != parley.Owner { // else a viewer could act under the name of somebody else
		return nil, lacksRole(r.token, parley.Owner)
	}
	secret, ticket := parley.NewTicket(parley.SignInTicket, "", time.Now(), SignInLife)
	ticket.Role = role
	link := signInLink{ExpiresAt: parley.Stamp(ticket.ExpiresAt), Role: role}
	err := s.tx(ctx, func(tx *store.Tx) error {
		maker, err := r.bindLink(ctx, tx, &ticket)
		if err != nil {
			return err
		}
		ticket.Name = r.linkName(name, maker)
		// The stored response must not contain the ticket.
		before := ok("The link was already created and is not shown again. Create another.", link)
		return errors.Join(tx.AddTicket(ctx, ticket), r.auditTx(ctx, tx, change{after: auditedLink{role, ticket.Name}}),
			r.storeKey(ctx, tx, http.StatusOK, before))
	})
	link.URL = s.baseURL(r.http) + "/console/login#" + secret
	return ok(fmt.Sprintf("Link created. It works once and signs in as %s.", role), link), err
}

// bindLink makes a link, and the session that it begins, end with what made it: the token, or the session and its token. It returns
// the name of the token, which the holder of the link cannot choose.
func (r *request) bindLink(ctx context.Context, tx *store.Tx, link *parley.Ticket) (maker string, err error) {
	if token.IsLocal(r.token) {
		return r.token.Name, nil
	}
	if r.token.Kind != console {
		t, err := tx.Token(ctx, r.token.ID)
		if err == nil && (!t.Active(time.Now()) || t.Role != r.token.Role) {
			err = parley.Errorf(parley.Conflict, "The token was changed just now. Try again.")
		}
		link.Token, link.EndsAt = t.ID, t.ExpiresAt
		return t.Name, err
	}
	open, err := tx.Sessions(ctx, time.Now())
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(open, r.isSession)
	if i < 0 {
		return "", errNoSession // it ended just now
	}
	link.Token, link.Parent, link.EndsAt = open[i].Token, open[i].Hash, open[i].SessionEnd()
	if link.Token == "" {
		return token.LocalToken(parley.AdminToken).Name, nil
	}
	t, err := tx.Token(ctx, link.Token)
	return t.Name, err
}

// linkName is the name of a session: that of its maker, or a chosen one together with the name of the token.
func (r *request) linkName(chosen, token string) string {
	if chosen == "" || token == "" {
		return cmp.Or(chosen, r.token.Name)
	}
	return fmt.Sprintf("%s (%s)", chosen, token)
}
