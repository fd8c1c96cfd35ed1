package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/internal/api/limit"
	"parley/internal/token"
)

// access says who may call a route.
type access int

const (
	everybody access = iota // no token is asked for
	anyToken                // any good token: for paths and methods that do not exist
	ofChannel               // a channel token, or a Global one that names a channel
	ofAny                   // a channel token or a Global one; the work finds out whose thing it is about
	ofGlobal                // a Global token, which may pin a channel
	ofAdmin                 // an admin token
)

// How many authentications may fail from one address before further failures are answered with 429, and
// after how long one more may fail.
const (
	authFailures = 30
	authForgiven = time.Minute
)

// challenge begins every WWW-Authenticate header (RFC 6750).
const challenge = `Bearer realm="parley"`

// authenticate finds out whose request it is. The token is verified before anything is counted, so that
// failures of others at the same address never refuse a valid one.
func (s *server) authenticate(ctx context.Context, hr *http.Request) (parley.Token, error) {
	raw, given := bearer(hr.Header)
	valid, err := s.Tokens.VerifyFrom(ctx, raw, func() (from, userAgent string) {
		return s.addressOf(hr).String(), clipped(hr.UserAgent(), maxUserAgent)
	})
	if err == nil {
		return valid, nil
	}
	if parley.CodeOf(err) != parley.Unauthenticated {
		return parley.Token{}, err
	}
	if !errors.Is(err, token.ErrSigned) {
		if err := s.countFailure(hr); err != nil {
			return parley.Token{}, err
		}
	}
	value := challenge
	if given {
		value += `, error="invalid_token"`
	}
	return parley.Token{}, &withHeader{err, field{"WWW-Authenticate", value}}
}

// maxUserAgent is how much is kept of what a program calls itself, in bytes.
const maxUserAgent = 200

// clipped cuts a text short, at the end of a character.
func clipped(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// countFailure counts a failed authentication, and returns a 429 error when the address had too many.
// Callers behind a local proxy that is not trusted share one address, so they are not counted.
func (s *server) countFailure(hr *http.Request) error {
	if s.isUntrustedProxy(hr) {
		return nil
	}
	if left, wait := s.failures.Take(limit.NetworkOf(s.addressOf(hr)), time.Now()); !left {
		return tooManyFailures(wait)
	}
	return nil
}

// isUntrustedProxy reports whether a request was passed on by a proxy on this machine that is not trusted.
func (s *server) isUntrustedProxy(hr *http.Request) bool {
	if !isForwarded(hr.Header) {
		return false
	}
	remote, err := netip.ParseAddrPort(hr.RemoteAddr)
	addr := remote.Addr().Unmap()
	return err == nil && addr.IsLoopback() && !s.trusts(addr)
}

// isForwarded reports whether a proxy says that it passed a request on.
func isForwarded(h http.Header) bool {
	return h["X-Forwarded-For"] != nil || h["Forwarded"] != nil || h["X-Real-Ip"] != nil
}

// noteProxy reports the first request that an untrusted local proxy passed on.
func (s *server) noteProxy(hr *http.Request) {
	if s.proxyNoted.Load() || !s.isUntrustedProxy(hr) || s.proxyNoted.Swap(true) {
		return
	}
	s.Log.Warn("requests come through a proxy on this machine that is not trusted: all its callers share one address", "hint", "set --behind-proxy")
	if s.OnUntrustedProxy != nil {
		s.OnUntrustedProxy()
	}
}

func tooManyFailures(wait time.Duration) error {
	return &parley.Error{Code: parley.TooMany, RetryAfter: wait, Message: "Too many failed authentications from this address. Try again later."}
}

// bearer returns the token of an Authorization header, and whether one was given at all. Two
// headers are none: which of them counts would be a guess.
func bearer(h http.Header) (raw string, given bool) {
	values := h["Authorization"]
	if len(values) != 1 {
		return "", len(values) > 1
	}
	scheme, raw, found := strings.Cut(values[0], " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return strings.Trim(raw, " "), true
}

// permit refuses a good token that may not call this route.
func (rt *route) permit(token parley.Token, hr *http.Request) error {
	var sentence string
	switch {
	case token.Kind == console:
		return nil
	case (rt.access == ofChannel || rt.access == ofAny) && token.Kind == parley.AdminToken:
		sentence = "An admin token is for the management API only. Use a channel token or a Global one."
	case rt.access == ofGlobal && token.Kind != parley.GlobalToken:
		sentence = "This endpoint needs a Global token."
	case rt.access == ofAdmin && token.Kind != parley.AdminToken:
		sentence = "The management API needs an admin token."
	case (rt.access == ofChannel || rt.access == ofAny) && token.Kind == parley.ChannelToken:
		named := headerOf(hr.Header, "X-Channel")
		if named == "" || named == string(token.Channel) {
			return nil
		}
		sentence = fmt.Sprintf("This token is for channel %s only. Leave the header X-Channel out, or use a Global token.", token.Channel)
	default:
		return nil
	}
	return &withHeader{parley.Errorf(parley.Forbidden, "%s", sentence), field{"WWW-Authenticate", challenge + `, error="insufficient_scope"`}}
}

// choose finds the channel that a request is for.
func (rt *route) choose(ctx context.Context, r *request) error {
	var err error
	var named string
	switch values := r.http.Header["X-Channel"]; len(values) {
	case 0:
	case 1:
		named = values[0]
	default:
		return parley.Errorf(parley.BadRequest, "The header X-Channel is there several times. Send it once.")
	}
	switch {
	case (rt.access == ofChannel || rt.access == ofAny) && r.token.Kind == parley.ChannelToken:
		r.channel, err = rt.channelNamed(ctx, r.token.Channel)
		if errors.Is(err, parley.ErrNotFound) {
			return parley.Errorf(parley.BadRequest, "Channel %s does not exist any more.", r.token.Channel)
		}
	case rt.access == ofChannel && named == "":
		r.channel, err = rt.onlyChannel()
	case rt.access == ofChannel || (rt.access == ofGlobal || rt.access == ofAny) && named != "":
		r.channel, err = rt.channelNamed(ctx, parley.ChannelCode(named))
		if errors.Is(err, parley.ErrNotFound) {
			return parley.Errorf(parley.BadRequest, "The header X-Channel names no channel of this server.")
		}
	}
	return err
}

// onlyChannel is what a Global token means that names no channel.
func (s *server) onlyChannel() (parley.Channel, error) {
	channels := slices.DeleteFunc(s.Gateway.Channels(), func(c parley.Channel) bool { return c.Settings.ArchiveOf != "" })
	switch len(channels) {
	case 0:
		return parley.Channel{}, parley.Errorf(parley.BadRequest, "There is no channel yet. Make one with: parley channel create")
	case 1:
		return channels[0], nil
	}
	return parley.Channel{}, parley.Errorf(parley.BadRequest, "There are several channels. Send the header X-Channel with the code of the one that is meant.")
}

// channelNamed finds a channel as it is now. While the server starts, and when one was just created, the store has it
// a moment before the gateway.
func (s *server) channelNamed(ctx context.Context, code parley.ChannelCode) (parley.Channel, error) {
	if c, ok := s.Gateway.Channel(code); ok {
		return c, nil
	}
	if _, err := s.Store.Channel(ctx, code); err != nil {
		return parley.Channel{}, err
	}
	return parley.Channel{}, &parley.Error{Code: parley.Unavailable, RetryAfter: time.Second,
		Message: fmt.Sprintf("Channel %s is not running here yet. Try again in a moment.", code)}
}

// addressOf returns who sent a request. What a proxy says of that counts only if it is trusted: the
// last address in X-Forwarded-For that is not a trusted proxy's.
func (s *server) addressOf(hr *http.Request) netip.Addr {
	remote, err := netip.ParseAddrPort(hr.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr := remote.Addr().Unmap()
	if !s.trusts(addr) {
		return addr
	}
	hops := strings.Split(strings.Join(hr.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			return addr
		}
		if addr = hop.Unmap(); !s.trusts(addr) {
			return addr
		}
	}
	return addr
}

func (s *server) trusts(addr netip.Addr) bool {
	for _, prefix := range s.TrustedProxies {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

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
