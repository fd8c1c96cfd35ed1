package console

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"parley"
	"parley/internal/api"
	"parley/internal/store"
)

const (
	// LinkLife is how long a sign-in link is good.
	LinkLife = api.SignInLife

	sessionLife = 12 * time.Hour // without a request
	touchEvery  = time.Minute    // how exactly that is kept: each time costs a write
	forgetAfter = 24 * time.Hour // a ticket that has ended is known for a while, to say why it is refused
	maxSignIn   = 4 << 10        // bytes; a ticket has 43
)

// NewLink makes a link that signs in whoever opens it first, on the server with the given address. Its
// secret stands in the fragment, which browsers do not send and servers do not log.
func NewLink(ctx context.Context, db *store.DB, url string) (string, error) {
	secret, ticket := parley.NewTicket(parley.SignInTicket, "", time.Now(), LinkLife)
	if err := db.Tx(ctx, func(tx *store.Tx) error { return tx.AddTicket(ctx, ticket) }); err != nil {
		return "", err
	}
	return url + "/console/login#" + secret, nil
}

var errSignedOut = parley.Errorf(parley.Unauthenticated, "Nobody is signed in to the console here, or not any more. Open a new link with: parley open")

// check lets in whoever is signed in.
func (c *Console) check(ctx context.Context, hr *http.Request) error {
	_, err := c.session(ctx, hr)
	return err
}

// session finds the session of a request.
func (c *Console) session(ctx context.Context, hr *http.Request) (parley.Ticket, error) {
	secret := secretOf(hr)
	if secret == "" {
		return parley.Ticket{}, errSignedOut
	}
	t, err := c.Store.Ticket(ctx, parley.HashTicket(secret))
	if errors.Is(err, parley.ErrNotFound) || err == nil && (t.Purpose != parley.SessionTicket || !t.Active(time.Now())) {
		return parley.Ticket{}, errSignedOut
	}
	return t, err
}

// prolong moves the end of a session that is used.
func (c *Console) prolong(w http.ResponseWriter, hr *http.Request) {
	ctx, now := hr.Context(), time.Now()
	t, err := c.session(ctx, hr)
	if err != nil || now.Add(sessionLife-touchEvery).Before(t.ExpiresAt) {
		return // whoever is not signed in is told so by the API
	}
	err = c.Store.Tx(ctx, func(tx *store.Tx) error { return tx.TouchTicket(ctx, t.Hash, now.Add(sessionLife)) })
	switch {
	case err == nil:
		setSession(w, hr, secretOf(hr))
	case !errors.Is(err, parley.ErrNotFound) && ctx.Err() == nil: // it ended just now, or the caller is gone
		c.Log.Warn("the end of a console session could not be moved", "error", err)
	}
}

// serveSession signs in and out.
func (c *Console) serveSession(w http.ResponseWriter, hr *http.Request) {
	var done signedIn
	err := c.refuseForeign(hr)
	if err == nil {
		switch hr.Method {
		case http.MethodPost:
			done, err = c.signIn(w, hr)
		case http.MethodDelete:
			done, err = c.signOut(w, hr)
		default:
			c.API.RefuseMethod(w, hr, "DELETE, POST")
			return
		}
	}
	if err != nil {
		c.API.Refuse(w, hr, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(done) // a reader that is gone learns nothing
}

// signedIn is the answer to signing in and out.
type signedIn struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
}

// signIn takes the ticket of a link and gives a session for it.
func (c *Console) signIn(w http.ResponseWriter, hr *http.Request) (signedIn, error) {
	secret, err := readTicket(hr)
	if err != nil {
		return signedIn{}, err
	}
	if !keepsSecure(hr) && !isHome(hr) { // said before the link is used up
		return signedIn{}, parley.Errorf(parley.BadRequest, "This browser keeps no secure cookie here. Open the console over https, or on the server itself at http://localhost.")
	}
	ctx, now := hr.Context(), time.Now()
	link, err := c.Store.Ticket(ctx, parley.HashTicket(secret))
	if errors.Is(err, parley.ErrNotFound) || err == nil && link.Purpose != parley.SignInTicket {
		if err := c.API.CountFailure(hr); err != nil {
			return signedIn{}, err
		}
		return signedIn{}, parley.Errorf(parley.Unauthenticated, "This is no sign-in link of this server. Make one with: parley open")
	}
	if err != nil {
		return signedIn{}, err
	}
	session, ticket := parley.NewTicket(parley.SessionTicket, "", now, sessionLife)
	err = c.Store.Tx(ctx, func(tx *store.Tx) error {
		if _, err := tx.UseTicket(ctx, link.Hash, now); err != nil {
			return err
		}
		return errors.Join(endSession(ctx, tx, hr, now), tx.AddTicket(ctx, ticket), tx.ForgetTickets(ctx, now.Add(-forgetAfter)))
	})
	if errors.Is(err, parley.ErrNotFound) {
		return signedIn{}, c.whyRefused(ctx, link.Hash)
	}
	if err != nil {
		return signedIn{}, err
	}
	setSession(w, hr, session)
	c.Log.Info("somebody signed in to the console")
	return signedIn{true, "Signed in"}, nil
}

// whyRefused says why a link of this server does not sign in any more. Its holder guessed nothing, so this
// is not counted as a failed authentication.
func (c *Console) whyRefused(ctx context.Context, hash []byte) error {
	t, err := c.Store.Ticket(ctx, hash)
	switch {
	case err != nil && !errors.Is(err, parley.ErrNotFound):
		return err
	case err == nil && !t.UsedAt.IsZero():
		return parley.Errorf(parley.Unauthenticated, "This link was used already: it works once. Make a new one with: parley open")
	}
	return parley.Errorf(parley.Unauthenticated, "This link is older than 15 minutes. Make a new one with: parley open")
}

// signOut ends the session of a request, if it has one.
func (c *Console) signOut(w http.ResponseWriter, hr *http.Request) (signedIn, error) {
	err := c.Store.Tx(hr.Context(), func(tx *store.Tx) error { return endSession(hr.Context(), tx, hr, time.Now()) })
	if err != nil {
		return signedIn{}, err
	}
	for _, name := range []string{secureName, homeName} {
		http.SetCookie(w, cookie(name, "", -1))
	}
	return signedIn{true, "Signed out"}, nil
}

func endSession(ctx context.Context, tx *store.Tx, hr *http.Request, now time.Time) error {
	secret := secretOf(hr)
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
	_, err = tx.UseTicket(ctx, t.Hash, now)
	return err
}

// readTicket reads the body of a sign-in.
func readTicket(hr *http.Request) (string, error) {
	if kind, _, err := mime.ParseMediaType(hr.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return "", parley.Errorf(parley.BadRequest, "Send the ticket as JSON.")
	}
	body, err := io.ReadAll(io.LimitReader(hr.Body, maxSignIn+1))
	if err != nil {
		return "", &parley.Error{Code: parley.BadRequest, Message: "The body could not be read to its end.", Cause: err}
	}
	var in struct {
		Ticket string `json:"ticket"`
	}
	if len(body) > maxSignIn || json.Unmarshal(body, &in) != nil || in.Ticket == "" {
		return "", parley.InvalidField("ticket", "ticket must be what stands after # in a sign-in link.")
	}
	return in.Ticket, nil
}
