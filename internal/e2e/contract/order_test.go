package contract_test

import (
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/app"
	"parley/internal/parleytest"
)

// TestOrderOfChecksByCallers walks down the order of checks: each request would fail all the later
// ones too. A request that an earlier check refuses costs nothing of a later limit.
func TestOrderOfChecksByCallers(t *testing.T) {
	e := parleytest.Start(t, behindProxy, func(c *app.Config) { c.RequestsPerSecond = 0.001 }) // one request for each token
	data := besides(t, e)
	token := func(kind parley.TokenKind) parleytest.Option {
		t.Helper()
		made := parley.Token{Kind: kind}
		if kind == parley.ChannelToken {
			made.Channel = app.DemoChannel
		}
		raw, err := data.Tokens.Issue(t.Context(), made)
		if err != nil {
			t.Fatal(err)
		}
		return parleytest.As(raw)
	}
	from := func(address string) parleytest.Option { return parleytest.With("X-Forwarded-For", address) }
	plain := parleytest.With("Content-Type", "text/plain")
	large := strings.Repeat("{", 1<<20+1)
	channel := token(parley.ChannelToken)

	for i := range 30 {
		if a := e.Post("/api/nowhere", "", parleytest.As("guess"), from("198.51.100.1")); a.Status != http.StatusUnauthorized {
			t.Fatalf("failure %d: %d", i+1, a.Status)
		}
	}
	for what, a := range map[string]*parleytest.Response{
		"a bad token": e.Post("/api/nowhere", large, parleytest.As("guess"), plain, from("198.51.100.1")),
		"no token":    e.Post(sendText, large, parleytest.As(""), plain, from("198.51.100.1")),
	} {
		a.ExpectError(http.StatusTooManyRequests, "authentications")
		if seconds := a.Header.Get("Retry-After"); seconds == "" || seconds == "0" {
			t.Errorf("%s: Retry-After %q", what, seconds)
		}
	}
	e.Post("/api/nowhere", large, channel, plain, from("198.51.100.1")).Expect(http.StatusNotFound) // a valid token passes
	admin := token(parley.AdminToken)
	for range 3 { // more than the limit of the token, which these do not touch
		e.Post("/api/nowhere", large, parleytest.As("guess"), plain, from("198.51.100.2")).Expect(http.StatusUnauthorized)
		e.Call("PATCH", sendText, large, admin, plain).Expect(http.StatusForbidden)
		e.Post("/api/send-message/pool", large, channel, plain).Expect(http.StatusForbidden)
		e.Post(sendText, large, channel, plain, parleytest.On("other")).Expect(http.StatusForbidden)
		e.Post("/api/nowhere", large, channel, plain).Expect(http.StatusNotFound)
		e.Call("PATCH", sendText, large, channel, plain).Expect(http.StatusMethodNotAllowed)
	}
	e.Get("/api/channel/health", channel).Expect(http.StatusOK)
	limited := e.Post(sendText, large, channel, plain).ExpectError(http.StatusTooManyRequests, "token")
	if limited.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	wantOnlyMessage(t, limited)
	e.Post("/api/nowhere", large, channel, plain).Expect(http.StatusNotFound)
	e.Call("PATCH", sendText, large, channel, plain).Expect(http.StatusMethodNotAllowed)

	e.Post(sendText, large, token(parley.GlobalToken), plain, parleytest.On("nobody")).Expect(http.StatusRequestEntityTooLarge)
	e.Post(sendText, `{"contact_id":1}`, token(parley.GlobalToken), plain, parleytest.On("nobody")).ExpectError(http.StatusBadRequest,
		"X-Channel")
	e.Post(sendText, `{"contact_id":1}`, token(parley.ChannelToken), plain).ExpectError(http.StatusBadRequest, "Content-Type")
	e.Post(sendText, `{"contact_id":1,}`, token(parley.ChannelToken)).ExpectError(http.StatusBadRequest, "JSON")
	e.Post(sendText, `{"contact_id":1}`, token(parley.ChannelToken)).ExpectFields("contact_id", "message")
	e.Post(sendText, textTo("6281400000011"), token(parley.ChannelToken)).Expect(http.StatusOK)
}

// behindProxy has the gateway believe what a caller on this machine says of its address, so that a
// test can be many callers.
func behindProxy(c *app.Config) {
	c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
}

// fromAnywhere gives a request an address that probably no other has, so that its failure to
// authenticate counts against nobody else.
func fromAnywhere() parleytest.Option {
	address := netip.AddrFrom4([4]byte{198, 19, byte(rand.N(256)), byte(rand.N(256))})
	return parleytest.With("X-Forwarded-For", address.String())
}

// TestMovedClockIsNoOtherTime holds the times of a channel whose clock was moved to the same form.
func TestMovedClockIsNoOtherTime(t *testing.T) {
	e := parleytest.Start(t)
	moved := e.Post("/api/sandbox/clock", `{"advance":86400}`).Expect(http.StatusOK)
	sent := e.Post(sendText, textTo("6281400000012")).Expect(http.StatusOK)
	for _, a := range []*parleytest.Response{moved, sent} {
		at, err := time.Parse(time.RFC3339, a.Text("data.timestamp"))
		if err != nil || !stampForm.MatchString(a.Text("data.timestamp")) || time.Until(at) < 23*time.Hour {
			t.Errorf("%s: timestamp %q, want one a day ahead", a.Request, a.Text("data.timestamp"))
		}
	}
}
