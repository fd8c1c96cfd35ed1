package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"time"

	"parley"
	"parley/internal/api"
	"parley/internal/store"
)

// LinkLife is how long a sign-in link is valid.
const LinkLife = api.SignInLife

const (
	sessionLife = 12 * time.Hour    // without a request; a session ends after [parley.MaxSession] anyway
	touchEvery  = time.Minute       // precision of sessionLife; each touch costs a write
	purgeAfter  = parley.MaxSession // an ended session stays as long as those made in it may last, to end them with its parent
	maxSignIn   = 4 << 10           // bytes; a ticket has 43
)

// NewLink creates a link that signs in the first browser that opens it. The secret is in the fragment,
// which browsers do not send and servers do not log.
func NewLink(ctx context.Context, db *store.DB, url string) (string, error) {
	secret, ticket := parley.NewTicket(parley.SignInTicket, "", time.Now(), LinkLife)
	ticket.Role = parley.Owner
	if err := db.Tx(ctx, func(tx *store.Tx) error { return tx.AddTicket(ctx, ticket) }); err != nil {
		return "", err
	}
	return url + "/console/login#" + secret, nil
}

var errSignedOut = parley.Errorf(parley.Unauthenticated,
	"You are not signed in, or the session has ended. Open a new link with: parley open")

func (c *Console) session(ctx context.Context, hr *http.Request) (parley.Ticket, error) {
	hash := api.ForwardedTicket(ctx)
	if hash == nil {
		secret := requestSecret(hr)
		if secret == "" {
			return parley.Ticket{}, errSignedOut
		}
		hash = parley.HashTicket(secret)
	}
	t, err := c.config.Store.Ticket(ctx, hash)
	if errors.Is(err, parley.ErrNotFound) || err == nil && (t.Purpose != parley.SessionTicket || !t.Active(time.Now())) {
		return parley.Ticket{}, errSignedOut
	}
	return t, err
}

func (c *Console) prolong(w http.ResponseWriter, hr *http.Request) {
	ctx, now := hr.Context(), time.Now()
	t, err := c.session(ctx, hr)
	if err != nil {
		return // the API itself refuses a request without a session
	}
	if now.Sub(t.LastUse.At) < touchEvery {
		return
	}
	until := earlier(now.Add(sessionLife), t.SessionEnd())
	err = c.config.Store.Tx(ctx, func(tx *store.Tx) error { return tx.ExtendTicket(ctx, t.Hash, until, c.newUse(hr, now)) })
	switch {
	case err == nil:
		setSession(w, hr, requestSecret(hr))
	case !errors.Is(err, parley.ErrNotFound) && ctx.Err() == nil: // the session ended just now, or the caller left
		c.config.Log.Warn("cannot extend a console session", "error", err)
	}
}

// newUse says who uses a session now.
func (c *Console) newUse(hr *http.Request, now time.Time) parley.TokenUse {
	from, userAgent := c.config.API.Caller(hr)
	return parley.TokenUse{At: now, From: from, UserAgent: userAgent}
}

// audit logs that a session began or ended.
func (c *Console) audit(
	ctx context.Context, tx *store.Tx, action string, session parley.Ticket, w http.ResponseWriter, hr *http.Request,
) error {
	from, _ := c.config.API.Caller(hr)
	return tx.AddAudit(ctx, store.AuditEntry{
		At: time.Now(), Action: action, Object: session.SessionID(), Address: from, Request: w.Header().Get("X-Request-Id"),
		Actor: store.Actor{Kind: store.ActorSession, ID: session.SessionID(), Name: session.Name, Role: session.Role},
	})
}

func earlier(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }

func (c *Console) serveSession(w http.ResponseWriter, hr *http.Request) {
	err := c.checkOrigin(hr)
	done := "Signed in"
	if err == nil {
		switch hr.Method {
		case http.MethodPost:
			var other *parley.Ticket
			if other, err = c.signIn(w, hr); other != nil {
				askFirst(w, *other)
				return
			}
		case http.MethodDelete:
			done, err = "Signed out", c.signOut(w, hr)
		default:
			c.config.API.RefuseMethod(w, hr, "DELETE, POST")
			return
		}
	}
	if err != nil {
		c.config.API.Refuse(w, hr, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, "{\"success\":true,\"message\":%q}\n", done) // the only error is a closed connection
}

// askFirst responds to a link of somebody else: a link that came from a stranger must not end the own session unasked.
func askFirst(w http.ResponseWriter, link parley.Ticket) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusConflict)
	json.NewEncoder(w).Encode(map[string]any{ // the only error is a closed connection
		"message": "You are signed in already. Send replace: true to end that session and use this link.",
		"code":    "signed_in", "data": map[string]any{"name": link.Name, "role": link.Role},
	})
}

// signIn exchanges the ticket of a link for a session. Without consent to replace the own session, it returns the link of
// somebody else unused.
func (c *Console) signIn(w http.ResponseWriter, hr *http.Request) (other *parley.Ticket, err error) {
	in, err := readSignIn(hr)
	if err != nil {
		return nil, err
	}
	if cookieValue(hr, probeCookie) == "" && !isLoopback(hr) { // checked before the link is used
		return nil, parley.Errorf(parley.BadRequest,
			"This browser does not store secure cookies here. Open the console over https, or on the server itself at http://localhost.")
	}
	ctx, now := hr.Context(), time.Now()
	link, err := c.config.Store.Ticket(ctx, parley.HashTicket(in.Ticket))
	if errors.Is(err, parley.ErrNotFound) || err == nil && link.Purpose != parley.SignInTicket {
		return nil, cmp.Or(c.config.API.CountFailure(hr), error(parley.Errorf(parley.Unauthenticated,
			"This sign-in link does not belong to this server. Create one with: parley open")))
	}
	if err != nil {
		return nil, err
	}
	if !link.Active(now) {
		return nil, c.whyRefused(ctx, link.Hash)
	}
	switch own, err := c.session(ctx, hr); {
	case err == nil && !in.Replace && !isSamePerson(own, link):
		return &link, nil
	case err != nil && !errors.Is(err, errSignedOut):
		return nil, err
	}
	session, ticket := parley.NewTicket(parley.SessionTicket, "", now, sessionLife)
	ticket.Role, ticket.Name, ticket.Token, ticket.Parent, ticket.EndsAt = link.Role, link.Name, link.Token, link.Parent, link.EndsAt
	ticket.LastUse = c.newUse(hr, now)
	ticket.ExpiresAt = earlier(ticket.ExpiresAt, ticket.SessionEnd())
	err = c.config.Store.Tx(ctx, func(tx *store.Tx) error {
		if _, err := tx.UseTicket(ctx, link.Hash, now); err != nil {
			return err
		}
		return errors.Join(c.endSession(ctx, tx, w, hr, now), tx.AddTicket(ctx, ticket), tx.PurgeTickets(ctx, now.Add(-purgeAfter)),
			c.audit(ctx, tx, "session.begin", ticket, w, hr))
	})
	if errors.Is(err, parley.ErrNotFound) {
		return nil, c.whyRefused(ctx, link.Hash)
	}
	if err != nil {
		return nil, err
	}
	setSession(w, hr, session)
	c.config.Log.Info("signed in to the console", "session", ticket.SessionID(), "role", ticket.Role)
	return nil, nil
}

// isSamePerson reports whether a link leads to a session like the own one, so that there is nothing to ask.
func isSamePerson(own, link parley.Ticket) bool {
	return own.Name == link.Name && own.Role == link.Role && own.Token == link.Token && bytes.Equal(own.Parent, link.Parent)
}

// whyRefused explains why a link of this server no longer works. That is no guess, so it does not count as
// a failed authentication.
func (c *Console) whyRefused(ctx context.Context, hash []byte) error {
	t, err := c.config.Store.Ticket(ctx, hash)
	switch {
	case err != nil && !errors.Is(err, parley.ErrNotFound):
		return err
	case err == nil && !t.UsedAt.IsZero():
		return parley.Errorf(parley.Conflict, "This link was already used, or has ended with the token or session that made it. "+
			"Create a new one with: parley open")
	}
	return parley.Errorf(parley.TokenExpired, "This link has expired. Create a new one with: parley open")
}

func (c *Console) signOut(w http.ResponseWriter, hr *http.Request) error {
	err := c.config.Store.Tx(hr.Context(), func(tx *store.Tx) error { return c.endSession(hr.Context(), tx, w, hr, time.Now()) })
	if err == nil {
		http.SetCookie(w, newCookie(secureCookie, "", -1))
		http.SetCookie(w, newCookie(localCookie, "", -1))
	}
	return err
}

func (c *Console) endSession(ctx context.Context, tx *store.Tx, w http.ResponseWriter, hr *http.Request, now time.Time) error {
	secret := requestSecret(hr)
	if secret == "" {
		return nil
	}
	t, err := tx.Ticket(ctx, parley.HashTicket(secret))
	if errors.Is(err, parley.ErrNotFound) || err == nil && (t.Purpose != parley.SessionTicket || !t.Active(now)) {
		return nil
	}
	if err != nil {
		return err
	}
	err = tx.EndSession(ctx, t.Hash, now)
	return errors.Join(err, c.audit(ctx, tx, "session.leave", t, w, hr))
}

type signInRequest struct {
	Ticket  string `json:"ticket"`
	Replace bool   `json:"replace"` // the person agreed that the own session ends
}

func readSignIn(hr *http.Request) (in signInRequest, err error) {
	if kind, _, err := mime.ParseMediaType(hr.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return in, parley.Errorf(parley.BadRequest, "Send the ticket as JSON.")
	}
	body, err := io.ReadAll(io.LimitReader(hr.Body, maxSignIn+1))
	if err != nil {
		return in, &parley.Error{Code: parley.BadRequest, Message: "The request body is incomplete.", Cause: err}
	}
	if len(body) > maxSignIn || json.Unmarshal(body, &in) != nil || in.Ticket == "" {
		return in, parley.InvalidField("ticket", "ticket must be the part after # of a sign-in link.")
	}
	return in, nil
}

// Browsers store the secure cookie over https, and most of them at http://localhost too. Those that do not
// get the local cookie, which is accepted on this machine only, where nothing crosses a network. The probe
// cookie shows which kind of browser it is before the link is used.
const (
	secureCookie = "__Host-parley"
	localCookie  = "parley"
	probeCookie  = "__Host-parley-probe"
)

func newCookie(name, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: age,
		HttpOnly: true, Secure: name != localCookie, SameSite: http.SameSiteStrictMode,
	}
}

func setSession(w http.ResponseWriter, hr *http.Request, secret string) {
	name := secureCookie
	if cookieValue(hr, secureCookie) == "" && cookieValue(hr, probeCookie) == "" {
		name = localCookie
	}
	http.SetCookie(w, newCookie(name, secret, int(sessionLife.Seconds())))
}

func requestSecret(hr *http.Request) string {
	if c, err := hr.Cookie(secureCookie); err == nil {
		return c.Value
	}
	if isLoopback(hr) {
		return cookieValue(hr, localCookie)
	}
	return ""
}

// isLoopback reports whether a browser on this machine calls it by a local name, without TLS.
func isLoopback(hr *http.Request) bool { return hr.TLS == nil && api.NamesThisMachine(hr.Host) }
