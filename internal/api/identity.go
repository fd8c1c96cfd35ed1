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
	public    access = iota // no token
	anyToken                // any valid token: for paths and methods that do not exist
	ofChannel               // a channel token, or a Global one with X-Channel
	ofAny                   // a channel token or a Global one; the endpoint checks the channel
	ofGlobal                // a Global token, optionally with X-Channel
	ofAdmin                 // an admin token
	ofEvery                 // any token; the endpoint calls others with it
)

const (
	authFailures = 30          // of one address, before further failures return 429
	authForgiven = time.Minute // after which one more may fail
)

// challenge begins every WWW-Authenticate header (RFC 6750).
const challenge = `Bearer realm="parley"`

// authenticate verifies the token before it counts anything, so that failures of others at the same address
// never refuse a valid one.
func (s *server) authenticate(ctx context.Context, hr *http.Request) (parley.Token, error) {
	if h, forwarded := hopFrom(ctx); forwarded {
		known, err := s.config.Tokens.ByID(ctx, h.Token)
		if parley.IsUnauthenticated(err) {
			err = challenged(err, true)
		}
		return known, err
	}
	raw, given := bearer(hr.Header)
	valid, err := s.config.Tokens.VerifyFrom(ctx, raw, func() (from, userAgent string) { return s.Caller(hr) })
	if err == nil {
		s.noteAuthenticated(hr)
		return valid, nil
	}
	if !parley.IsUnauthenticated(err) {
		return parley.Token{}, err
	}
	if !errors.Is(err, token.ErrSigned) {
		if err := s.CountFailure(hr); err != nil {
			return parley.Token{}, err
		}
	}
	return parley.Token{}, challenged(err, given)
}

func (s *server) noteAuthenticated(hr *http.Request) {
	if s.config.OnAuthenticated != nil {
		s.config.OnAuthenticated(hr.Context())
	}
}

// challenged adds the header WWW-Authenticate. given: something was sent, but it is not valid.
func challenged(err error, given bool) error {
	value := challenge
	if given {
		value += `, error="invalid_token"`
	}
	return &withHeader{err, field{"WWW-Authenticate", value}}
}

// Caller returns the client's address and what its program calls itself.
func (s *server) Caller(hr *http.Request) (from, userAgent string) {
	return s.clientAddress(hr).String(), truncate(hr.UserAgent(), maxUserAgent)
}

const maxUserAgent = 200 // bytes that are stored

func truncate(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "")
}

// CountFailure counts a failed authentication, and returns a 429 error when the address had too many.
// Callers behind a local proxy that is not trusted share one address, so they are not counted.
func (s *server) CountFailure(hr *http.Request) error {
	if s.isUntrustedProxy(hr) {
		return nil
	}
	if q := s.failures.Spend(limit.ToNetwork(s.clientAddress(hr)), time.Now()); q.Refused {
		return &parley.Error{Code: parley.TooMany, RetryAfter: q.Wait,
			Message: "Too many failed authentications from this address. Try again later."}
	}
	return nil
}

func (s *server) isUntrustedProxy(hr *http.Request) bool {
	if !isForwarded(hr.Header) {
		return false
	}
	remote, err := netip.ParseAddrPort(hr.RemoteAddr)
	addr := remote.Addr().Unmap()
	return err == nil && addr.IsLoopback() && !s.trusts(addr)
}

func isForwarded(h http.Header) bool {
	return h["X-Forwarded-For"] != nil || h["Forwarded"] != nil || h["X-Real-Ip"] != nil
}

func (s *server) noteProxy(hr *http.Request) {
	if s.proxyNoted.Load() || !s.isUntrustedProxy(hr) || s.proxyNoted.Swap(true) {
		return
	}
	s.config.Log.Warn("an untrusted proxy on this machine forwards requests: all its callers share one address", "hint", "set --behind-proxy")
	s.config.OnUntrustedProxy()
}

// bearer returns the token of the Authorization header, and whether one was sent. Two headers are ambiguous,
// so they count as an invalid token.
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

// permitKind checks that the token is of the right kind.
func (rt *route) permitKind(token parley.Token, hr *http.Request) error {
	var sentence string
	switch {
	case token.Kind == console:
		return nil
	case (rt.access == ofChannel || rt.access == ofAny) && token.Kind == parley.AdminToken:
		sentence = "An admin token works only with the management API. Use a channel token or a Global one."
	case rt.access == ofGlobal && token.Kind != parley.GlobalToken:
		sentence = "This endpoint needs a Global token."
	case rt.access == ofAdmin && token.Kind != parley.AdminToken:
		sentence = "The management API needs an admin token."
	case (rt.access == ofChannel || rt.access == ofAny || rt.access == ofEvery) && token.Kind == parley.ChannelToken:
		named := readHeader(hr.Header, "X-Channel")
		if named == "" || named == string(token.Channel) {
			return nil
		}
		sentence = fmt.Sprintf("This token is only for channel %s. Remove the header X-Channel, or use a Global token.", token.Channel)
	default:
		return nil
	}
	return insufficient(sentence)
}

func insufficient(sentence string) error {
	return &withHeader{parley.Errorf(parley.Forbidden, "%s", sentence), field{"WWW-Authenticate", challenge + `, error="insufficient_scope"`}}
}

func (rt *route) chooseChannel(ctx context.Context, r *request) error {
	if len(r.http.Header["X-Channel"]) > 1 {
		return parley.Errorf(parley.BadRequest, "The header X-Channel was sent several times. Send it once.")
	}
	named := readHeader(r.http.Header, "X-Channel")
	var err error
	switch {
	case rt.namesChannels && r.Has("channels") && named == "" && r.token.Kind != parley.ChannelToken:
		if r.channels, err = rt.readChannels(ctx, r); err == nil {
			r.channel = r.channels[0]
		}
	case (rt.access == ofChannel || rt.access == ofAny) && r.token.Kind == parley.ChannelToken:
		r.channel, err = rt.channelNamed(ctx, r.token.Channel)
		if errors.Is(err, parley.ErrNotFound) {
			return parley.Errorf(parley.BadRequest, "Channel %s no longer exists.", r.token.Channel)
		}
	case rt.access == ofChannel && named == "":
		r.channel, err = rt.onlyChannel(ctx)
	case rt.access == ofEvery && r.token.Kind != parley.GlobalToken: // the endpoints that it calls choose
	case rt.access == ofChannel || (rt.access == ofGlobal || rt.access == ofAny || rt.access == ofEvery) && named != "":
		r.channel, err = rt.channelNamed(ctx, parley.ChannelCode(named))
		if errors.Is(err, parley.ErrNotFound) {
			return parley.Errorf(parley.BadRequest, "There is no channel %q. Check the header X-Channel.", truncate(named, 100))
		}
	}
	return err
}

// onlyChannel is the channel of a request that names none.
func (s *server) onlyChannel(ctx context.Context) (parley.Channel, error) {
	channels, err := s.config.Gateway.Choices(ctx)
	if err != nil {
		return parley.Channel{}, err
	}
	switch len(channels) {
	case 0:
		return parley.Channel{}, parley.Errorf(parley.BadRequest, "There is no channel yet. Create one with: parley channel create")
	case 1:
		return channels[0], nil
	}
	return parley.Channel{}, parley.Errorf(parley.BadRequest, "There are several channels. Name one in the header X-Channel.")
}

// channelNamed returns the channel of a request. A stream is not refused because its channel starts or stops: a standard
// EventSource never reconnects after any status but 200.
func (rt *route) channelNamed(ctx context.Context, code parley.ChannelCode) (parley.Channel, error) {
	if rt.readsLog {
		return rt.config.Store.Channel(ctx, code)
	}
	return rt.server.channelNamed(ctx, code)
}

// channelNamed returns a channel. While the server starts, and just after it was created, a channel is in the
// store but not yet in the gateway.
func (s *server) channelNamed(ctx context.Context, code parley.ChannelCode) (parley.Channel, error) {
	if c, ok := s.config.Gateway.Channel(code); ok {
		return c, nil
	}
	if _, err := s.config.Store.Channel(ctx, code); err != nil {
		return parley.Channel{}, err
	}
	return parley.Channel{}, &parley.Error{Code: parley.Unavailable, RetryAfter: time.Second,
		Message: fmt.Sprintf("Channel %s is still starting. Try again in a moment.", code)}
}

// clientAddress returns the client's address. Behind one proxy that is the last address in X-Forwarded-For, which the proxy
// added; behind several, the last one that is not of a trusted proxy.
func (s *server) clientAddress(hr *http.Request) netip.Addr {
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
		if addr = hop.Unmap(); s.config.OneProxy || !s.trusts(addr) {
			return addr
		}
	}
	return addr
}

func (s *server) trusts(addr netip.Addr) bool {
	return slices.ContainsFunc(s.config.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// sessionCheck returns the console session of a request, or an error.
type sessionCheck func(ctx context.Context, hr *http.Request) (parley.Ticket, error)

// console is the kind of a console session: as far as its role allows, it manages the server and, with X-Channel, does what
// the channel's tokens may. No token has this kind.
const console parley.TokenKind = "console"

// Console returns the same routes below /console/api, authenticated by check instead of tokens. For a request
// without a session, check must return a [parley.Unauthenticated] error.
func (a *API) Console(check func(ctx context.Context, hr *http.Request) (parley.Ticket, error)) http.Handler {
	m := emptyRouter(a.server, a.duration)
	m.checkSession = check
	m.add(tokenRoutes(a.server))
	m.finish()
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		inside := hr.Clone(hr.Context())
		inside.URL.Path = strings.TrimPrefix(hr.URL.Path, "/console")
		inside.URL.RawPath = strings.TrimPrefix(hr.URL.RawPath, "/console")
		if inside.URL.Path == "/events" { // the stream of the console
			inside.URL.Path = "/api/manage/events"
		}
		m.ServeHTTP(w, inside)
	})
}

func (a *API) Begin(w http.ResponseWriter, hr *http.Request) { setHeaders(w.Header(), requestID(hr)) }

func (a *API) RefuseMethod(w http.ResponseWriter, hr *http.Request, allow string) {
	a.Refuse(w, hr, methodNotAllowed(allow))
}

func (a *API) Refuse(w http.ResponseWriter, hr *http.Request, err error) { Refuse(w, hr, err) }

// Refuse responds with an error, in the form of all errors.
func Refuse(w http.ResponseWriter, hr *http.Request, err error) {
	write(w, requestID(hr), refusal(err))
}

func (rt *route) identify(ctx context.Context, r *request) (parley.Token, error) {
	rt.noteProxy(r.http)
	if rt.checkSession == nil {
		return rt.authenticate(ctx, r.http)
	}
	session, err := rt.checkSession(ctx, r.http)
	if err != nil {
		return parley.Token{}, err
	}
	rt.noteAuthenticated(r.http)
	r.ticket = session.Hash
	return parley.Token{ID: parley.TokenID(session.SessionID()), Kind: console, Name: session.Name, Role: session.Role}, nil
}

// reauthenticate returns the caller of a request that has lasted for some time, as it is now.
func (rt *route) reauthenticate(ctx context.Context, hr *http.Request) (parley.Token, error) {
	if rt.checkSession != nil {
		session, err := rt.checkSession(ctx, hr)
		return parley.Token{Role: session.Role}, err
	}
	if h, forwarded := hopFrom(ctx); forwarded {
		return rt.config.Tokens.ByID(ctx, h.Token)
	}
	raw, _ := bearer(hr.Header)
	return rt.config.Tokens.Verify(ctx, raw)
}

func (r *request) mayAccess(code parley.ChannelCode) bool {
	return r.token.Kind == parley.GlobalToken || r.token.Kind == console || r.token.Channel == code
}
