package api

import (
	"context"
	"net/http"
	"strings"

	"parley"
)

// door finds out whether a request comes from somebody who may use the console.
type door func(ctx context.Context, hr *http.Request) error

// console is the kind of the identity behind the console's door: it may manage the server, and do for
// the channel that X-Channel names what that channel's tokens may. No token has this kind.
const console parley.TokenKind = "console"

// Console returns the same routes behind another door: below /console/api instead of /api, for whoever
// check lets in. It must answer with an [parley.Unauthenticated] error for everybody else. A token
// counts for nothing there.
func (a *API) Console(check func(ctx context.Context, hr *http.Request) error) http.Handler {
	m := emptyRouter(a.server, a.duration)
	m.door = check
	routes(m, m.server)
	m.finish()
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		inside := hr.Clone(hr.Context())
		inside.URL.Path = strings.TrimPrefix(hr.URL.Path, "/console")
		inside.URL.RawPath = strings.TrimPrefix(hr.URL.RawPath, "/console")
		if inside.URL.Path == "/events" { // browsers keep a stream open at a short address
			inside.URL.Path = "/api/manage/events"
		}
		m.ServeHTTP(w, inside)
	})
}

// CountFailure counts wrong credentials other than a token as a failed authentication of the caller's
// address. It returns a 429 error when there were too many.
func (a *API) CountFailure(hr *http.Request) error { return a.countFailure(hr) }

// Begin writes into an answer what every one carries: that it is nobody else's, and an id to ask about it by.
func (a *API) Begin(w http.ResponseWriter, hr *http.Request) { setHeaders(w.Header(), requestID(hr)) }

// RefuseMethod answers a request whose method the path does not take.
func (a *API) RefuseMethod(w http.ResponseWriter, hr *http.Request, allow string) {
	a.Refuse(w, hr, &notAllowed{allow})
}

// Refuse answers a request with an error, in the form that all errors have.
func (a *API) Refuse(w http.ResponseWriter, hr *http.Request, err error) {
	write(w, requestID(hr), refusal(err))
}

// identify finds out whose request it is.
func (rt *route) identify(ctx context.Context, hr *http.Request) (parley.Token, error) {
	rt.noteProxy(hr)
	if rt.door == nil {
		return rt.authenticate(ctx, hr)
	}
	if err := rt.door(ctx, hr); err != nil {
		return parley.Token{}, err
	}
	return parley.Token{ID: parley.TokenID(console), Kind: console}, nil
}

// stillKnown asks again whether whoever made a request may go on hearing the answer.
func (rt *route) stillKnown(ctx context.Context, hr *http.Request) error {
	if rt.door != nil {
		return rt.door(ctx, hr)
	}
	raw, _ := bearer(hr.Header)
	_, err := rt.Tokens.Verify(ctx, raw)
	return err
}

// reaches reports whether whoever asks may know of what is a channel's.
func (r *request) reaches(code parley.ChannelCode) bool {
	return r.token.Kind == parley.GlobalToken || r.token.Kind == console || r.token.Channel == code
}
