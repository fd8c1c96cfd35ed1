package contract_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/parleytest"
)

// TestTokens holds tokens to the contract, in a gateway with one channel and then with several.
func TestTokens(t *testing.T) {
	t.Parallel() // much of it is waiting
	e := parleytest.Start(t, behindProxy)
	t.Run("one channel", func(t *testing.T) { tokensOnOneChannel(t, within(t, e)) })
	e.CreateChannel("second")
	for name, test := range map[string]func(*testing.T, *parleytest.Env){
		"claims":            tokenClaims,
		"several channels":  tokensOnSeveralChannels,
		"401":               badTokens,
		"expiry":            expiringTokens,
		"revocation":        revokedTokens,
		"rotation":          rotatedKeys,
		"deleted channel":   tokensOfDeletedChannel,
		"last used":         tokensLastUsed,
		"only in a header":  tokensElsewhere,
		"an admin does not": adminSendsNothing,
	} {
		t.Run(name, func(t *testing.T) { test(t, within(t, e)) })
	}
	// At last there is no channel at all.
	for _, code := range column(e.Get("/api/manage/channels", parleytest.As(e.Admin)), "code") {
		e.Delete("/api/manage/channels/"+code, parleytest.As(e.Admin)).Expect(http.StatusAccepted)
	}
	e.Get("/api/channel/health", parleytest.As(e.Global)).ExpectError(http.StatusBadRequest, "no channel")
	e.Get("/api/channel/health", parleytest.As(e.Global), parleytest.On("demo")).ExpectError(http.StatusBadRequest, "X-Channel")
	pool := e.Post("/api/send-message/pool", `{"contact_id":"6281600000001@c.us","pools":[{"type":"text","data":["x"]}]}`,
		parleytest.As(e.Global)).Expect(http.StatusOK)
	wantValue(t, pool, "success", false)
	wantValue(t, pool, "message", "Failed to send pool message")
}

// keySet reads the public keys as anybody can.
func keySet(t *testing.T, e *parleytest.Env) map[string]ed25519.PublicKey {
	t.Helper()
	a := e.Get("/.well-known/jwks.json", parleytest.As("")).Expect(http.StatusOK)
	wantKeys(t, a, "", "keys")
	if got := a.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("the keys are %q", got)
	}
	var set struct {
		Keys []struct{ Kty, Crv, X, Kid, Alg, Use string }
	}
	if err := json.Unmarshal(a.Body, &set); err != nil {
		t.Fatal(err)
	}
	keys := map[string]ed25519.PublicKey{}
	for _, k := range set.Keys {
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil || len(x) != ed25519.PublicKeySize || k.Kty != "OKP" || k.Crv != "Ed25519" || k.Alg != "EdDSA" || k.Use != "sig" ||
			k.Kid == "" {
			t.Errorf("a key that is none: %+v (%v)", k, err)
		}
		keys[k.Kid] = x
	}
	if len(keys) == 0 || len(keys) != len(set.Keys) {
		t.Errorf("%d keys with %d names", len(set.Keys), len(keys))
	}
	if bytes.Contains(a.Body, []byte(`"d"`)) {
		t.Error("the private half of a key is published")
	}
	return keys
}

// wantSigned checks a token against the public keys, as a customer's server may.
func wantSigned(t *testing.T, e *parleytest.Env, raw string) (kid string) {
	t.Helper()
	header, _ := decoded(t, raw)
	text, signature, _ := cutLast(raw, ".")
	sum, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil {
		t.Fatal(err)
	}
	kid, _ = header["kid"].(string)
	if header["alg"] != "EdDSA" || kid == "" {
		t.Errorf("the header is %v", header)
	}
	if key := keySet(t, e)[kid]; key == nil || !ed25519.Verify(key, []byte(text), sum) {
		t.Errorf("key %q does not verify the token", kid)
	}
	return kid
}

func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
}

func tokenClaims(t *testing.T, e *parleytest.Env) {
	ends := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	for _, c := range []struct {
		kind, channel, subject string
		expires                bool
	}{
		{"channel", "demo", "demo", false}, {"channel", "second", "second", true}, {"global", "", "global", false}, {"admin", "", "admin", true},
	} {
		body := map[string]any{"kind": c.kind, "name": "A token"}
		if c.channel != "" {
			body["channel"] = c.channel
		}
		if c.expires {
			body["expires_at"] = ends.Format(time.RFC3339)
		}
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		a := e.Post("/api/manage/tokens", string(text), parleytest.As(e.Admin)).Expect(http.StatusCreated)
		raw := a.Text("data.token")
		wantSigned(t, e, raw)
		_, claims := decoded(t, raw)
		want := map[string]any{"iss": "parley", "sub": c.subject, "jti": a.Text("data.id"), "kind": c.kind, "iat": claims["iat"]}
		if c.channel != "" {
			want["channel"] = c.channel
		}
		if c.expires {
			want["exp"] = float64(ends.Unix())
		}
		if len(claims) != len(want) {
			t.Errorf("%s: claims %v, want %v", c.kind, claims, want)
		}
		for name, value := range want {
			if claims[name] != value {
				t.Errorf("%s: %s is %v, want %v", c.kind, name, claims[name], value)
			}
		}
		if issued, _ := claims["iat"].(float64); time.Since(time.Unix(int64(issued), 0)).Abs() > time.Minute {
			t.Errorf("%s: issued at %v", c.kind, claims["iat"])
		}
	}
}

func tokensOnOneChannel(t *testing.T, e *parleytest.Env) {
	global := parleytest.As(e.Global)
	for _, options := range [][]parleytest.Option{
		{global}, {global, parleytest.On("demo")}, {parleytest.As(e.Token)}, {parleytest.As(e.Token), parleytest.On("demo")},
	} {
		wantValue(t, e.Get("/api/channel/health", options...).Expect(http.StatusOK), "data.code", "demo")
	}
	wantValue(t, e.Post(sendText, textTo("6281600000002"), global).Expect(http.StatusOK), "data.status", "SENT")
	for _, code := range []string{"second", "DEMO", "demo2", "*", "demo,demo"} {
		e.Get("/api/channel/health", global, parleytest.On(code)).ExpectError(http.StatusBadRequest, "X-Channel")
		e.Get("/api/channel/health", parleytest.On(code)).Expect(http.StatusForbidden)
	}
	// The channel that is stopped is still the only one.
	e.Post("/api/manage/channels/demo/stop", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	wantValue(t, e.Get("/api/channel/health", global).Expect(http.StatusOK), "data.status", "STOPPED")
	e.Post("/api/manage/channels/demo/start", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	e.Eventually("it works again", func() bool { return e.Get("/api/channel/health", global).Text("data.status") == "WORKING" })
}

func tokensOnSeveralChannels(t *testing.T, e *parleytest.Env) {
	global, second := parleytest.As(e.Global), parleytest.As(e.CreateToken("channel", "second"))
	for _, code := range []string{"demo", "second"} {
		wantValue(t, e.Get("/api/channel/health", global, parleytest.On(code)).Expect(http.StatusOK), "data.code", code)
	}
	wantValue(t, e.Get("/api/channel/health", second).Expect(http.StatusOK), "data.code", "second")
	wantValue(t, e.Get("/api/channel/health", second, parleytest.On("second")).Expect(http.StatusOK), "data.code", "second")
	for _, path := range []string{"/api/channel/health", "/api/chat", "/api/groups", "/api/contact", "/api/sandbox/phones"} {
		a := e.Get(path, global).ExpectError(http.StatusBadRequest, "X-Channel")
		wantOnlyMessage(t, a)
		e.Get(path, global, parleytest.On("nobody")).ExpectError(http.StatusBadRequest, "X-Channel")
		for _, code := range []string{"demo", "nobody"} {
			wantForbidden(t, e.Get(path, second, parleytest.On(code)))
		}
	}
	e.Post(sendText, textTo("6281600000003"), global).ExpectError(http.StatusBadRequest, "X-Channel")

	// On the Global endpoint the header pins the channel, and may be left out.
	pool := `{"contact_id":"6281600000003@c.us","pools":[{"type":"text","data":["pinned"]}]}`
	wantValue(t, e.Post("/api/send-message/pool", pool, global, parleytest.On("second")).Expect(http.StatusOK), "success", true)
	wantValue(t, e.Get("/api/chat/detail?contact_id=6281600000003@c.us", second).Expect(http.StatusOK), "data.0.body", "pinned")
	wantValue(t, e.Get("/api/chat/detail?contact_id=6281600000003@c.us").Expect(http.StatusOK), "meta.total", 0.0)
	wantValue(t, e.Post("/api/send-message/pool", strings.Replace(pool, "pinned", "free", 1), global).Expect(http.StatusOK), "success", true)
	// where they last spoke
	wantValue(t, e.Get("/api/chat/detail?contact_id=6281600000003@c.us", second).Expect(http.StatusOK), "data.0.body", "free")
	e.Post("/api/send-message/pool", pool, global, parleytest.On("nobody")).ExpectError(http.StatusBadRequest, "X-Channel")
	wantForbidden(t, e.Post("/api/send-message/pool", pool))
	wantForbidden(t, e.Post("/api/send-message/pool", pool, second, parleytest.On("second")))
}

func wantForbidden(t *testing.T, a *parleytest.Response) {
	t.Helper()
	wantOnlyMessage(t, a.Expect(http.StatusForbidden))
	wantHeader(t, a, "WWW-Authenticate", notPermitted)
}

func badTokens(t *testing.T, e *parleytest.Env) {
	own := newSigner(t, e)
	head, rest, _ := strings.Cut(e.Token, ".")
	claims, signature, _ := strings.Cut(rest, ".")
	sentences := map[string]bool{}
	for header, challenge := range map[string]string{
		"":                                  noToken,
		"Basic dXNlcjpwYXNz":                noToken,
		"Digest username=x":                 noToken,
		"Bearer":                            noToken,
		e.Token:                             noToken,
		"Token " + e.Token:                  noToken,
		"Bearer x":                          badToken,
		"Bearer null":                       badToken,
		"Bearer ..":                         badToken,
		"Bearer " + e.Token + "x":           badToken,
		"Bearer " + e.Token + "=":           badToken,
		"Bearer " + e.Token + "," + "x":     badToken,
		"Bearer \"" + e.Token + "\"":        badToken,
		"Bearer " + head + "." + claims:     badToken,
		"Bearer " + head + ".." + signature: badToken,
		"Bearer " + head + "." + encoded(map[string]any{"kind": "admin"}) + "." + signature:         badToken,
		"Bearer " + strings.ToLower(e.Token):                                                        badToken,
		"Bearer " + strings.Repeat("x", 4097):                                                       badToken,
		"Bearer " + own.token(map[string]any{"iss": "other"}):                                       badToken,
		"Bearer " + own.token(map[string]any{"jti": "tok_none"}):                                    badToken,
		"Bearer " + own.token(map[string]any{"kind": "global"}):                                     badToken,
		"Bearer " + own.token(map[string]any{"sub": "second"}):                                      badToken,
		"Bearer " + own.token(map[string]any{"jti": nil}):                                           badToken,
		"Bearer " + signed(map[string]any{"alg": "EdDSA", "kid": "key_none"}, own.claims, own.sign): badToken,
		"Bearer " + signed(map[string]any{"alg": "EdDSA"}, own.claims, own.sign):                    badToken,
		"Bearer " + signed(map[string]any{"alg": "ES256", "kid": own.id}, own.claims, own.sign):     badToken,
	} {
		a := e.Get("/api/channel/health", parleytest.With("Authorization", header), fromAnywhere()).Expect(http.StatusUnauthorized)
		wantOnlyMessage(t, a)
		wantHeader(t, a, "WWW-Authenticate", challenge)
		if none := strings.HasPrefix(a.Text("message"), "No token was sent"); none != (challenge == noToken) {
			t.Errorf("%.60q: %s", header, a.Text("message"))
		}
		sentences[a.Text("message")] = true
	}
	if len(sentences) != 3 { // no token, not a token, not valid here
		t.Errorf("the sentences are %q", slices.Collect(maps.Keys(sentences)))
	}
	a := e.Get("/api/channel/health", parleytest.As(own.token(map[string]any{"exp": time.Now().Add(-time.Second).Unix()}))).
		ExpectError(http.StatusUnauthorized, "expired")
	wantHeader(t, a, "WWW-Authenticate", badToken)
	if sentences[a.Text("message")] {
		t.Error("an expired token gets the sentence of a bad one")
	}
	for _, header := range []string{"bearer " + e.Token, "BEARER " + e.Token, "Bearer  " + e.Token, "Bearer " + own.token(nil)} {
		e.Get("/api/channel/health", parleytest.With("Authorization", header)).Expect(http.StatusOK)
	}
}

// expiringTokens lets a token that works run out.
func expiringTokens(t *testing.T, e *parleytest.Env) {
	raw, err := besides(t, e).Tokens.Issue(t.Context(), parley.Token{Kind: parley.GlobalToken, ExpiresAt: time.Now().Add(3 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	_, claims := decoded(t, raw)
	ends := time.Unix(int64(claims["exp"].(float64)), 0)
	ask := func() *parleytest.Response { return e.Get("/api/manage/channels", parleytest.As(raw)) }
	e.Eventually("it has run out", func() bool {
		began := time.Now()
		good := ask().Status == http.StatusForbidden // and no admin's
		if good && began.After(ends) || !good && time.Now().Before(ends) {
			t.Errorf("between %s and %s, with a token until %s: it is good: %t", began, time.Now(), ends, good)
		}
		return !good
	})
	ask().ExpectError(http.StatusUnauthorized, "expired")
}

func revokedTokens(t *testing.T, e *parleytest.Env) {
	made := e.Post("/api/manage/tokens", `{"kind":"channel","channel":"demo"}`, parleytest.As(e.Admin)).Expect(http.StatusCreated)
	as := parleytest.As(made.Text("data.token"))
	e.Get("/api/chat", as).Expect(http.StatusOK)
	e.Delete("/api/manage/tokens/"+made.Text("data.id"), parleytest.As(e.Admin)).Expect(http.StatusOK)
	a := e.Get("/api/chat", as).Expect(http.StatusUnauthorized) // at once
	wantHeader(t, a, "WWW-Authenticate", badToken)
	e.Get("/api/chat").Expect(http.StatusOK) // the others stay
	// An admin can revoke its own.
	own := e.Post("/api/manage/tokens", `{"kind":"admin"}`, parleytest.As(e.Admin)).Expect(http.StatusCreated)
	e.Delete("/api/manage/tokens/"+own.Text("data.id"), parleytest.As(own.Text("data.token"))).Expect(http.StatusOK)
	e.Get("/api/manage/tokens", parleytest.As(own.Text("data.token"))).Expect(http.StatusUnauthorized)
}

// rotatedKeys makes a new key: what the old one signed stays valid.
func rotatedKeys(t *testing.T, e *parleytest.Env) {
	old := keySet(t, e)
	before := e.CreateToken("global", "")
	oldKey := wantSigned(t, e, before)
	e.Post("/api/manage/signing-key/rotate", "", parleytest.As(before)).Expect(http.StatusForbidden)
	e.Post("/api/manage/signing-key/rotate", `{"keep_current":true}`, parleytest.As(e.Admin)).ExpectError(http.StatusUnprocessableEntity,
		"only for retire")
	e.Post("/api/manage/signing-key/rotate", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	if now := keySet(t, e); len(now) != len(old)+1 {
		t.Errorf("%d keys are published, want %d", len(now), len(old)+1)
	}
	if _, still := keySet(t, e)[oldKey]; !still {
		t.Error("the old key is not published any more")
	}
	after := e.CreateToken("global", "")
	if kid := wantSigned(t, e, after); kid == oldKey {
		t.Error("the old key still signs")
	}
	for _, raw := range []string{before, after} {
		e.Get("/api/chat", parleytest.As(raw), parleytest.On("demo")).Expect(http.StatusOK)
	}
}

// tokensOfDeletedChannel checks that a token ends with its channel, and does not come back with another
// of the same code.
func tokensOfDeletedChannel(t *testing.T, e *parleytest.Env) {
	raw := e.CreateChannel("brief")
	_, claims := decoded(t, raw)
	e.Get("/api/chat", parleytest.As(raw)).Expect(http.StatusOK)
	e.Delete("/api/manage/channels/brief", parleytest.As(e.Admin)).Expect(http.StatusAccepted)
	e.Get("/api/chat", parleytest.As(raw)).Expect(http.StatusUnauthorized) // at once
	if strings.Contains(string(e.Get("/api/manage/tokens", parleytest.As(e.Admin)).Body), claims["jti"].(string)) {
		t.Error("the token of a deleted channel is still listed")
	}
	e.CreateChannel("brief")
	e.Get("/api/chat", parleytest.As(raw)).Expect(http.StatusUnauthorized)
}

func tokensLastUsed(t *testing.T, e *parleytest.Env) {
	made := e.Post("/api/manage/tokens", `{"kind":"global"}`, parleytest.As(e.Admin)).Expect(http.StatusCreated)
	wantValue(t, made, "data.last_used_at", nil)
	e.Get("/api/chat", parleytest.As(made.Text("data.token")), parleytest.On("demo")).Expect(http.StatusOK)
	e.Eventually("it is known when it was last used", func() bool {
		list := e.Get("/api/manage/tokens", parleytest.As(e.Admin)).Expect(http.StatusOK)
		row := rowWhere(list, "id", made.Text("data.id"))
		if list.Value(row+".last_used_at") == nil {
			return false
		}
		wantRecent(t, list, row+".last_used_at")
		return true
	})
}

func tokensElsewhere(t *testing.T, e *parleytest.Env) {
	for _, option := range []parleytest.Option{
		parleytest.With("Cookie", "token="+e.Token), parleytest.With("X-Api-Key", e.Token), parleytest.With("X-Access-Token", e.Token),
		parleytest.With("Proxy-Authorization", "Bearer "+e.Token),
	} {
		e.Get("/api/chat", parleytest.As(""), option, fromAnywhere()).Expect(http.StatusUnauthorized)
	}
	e.Get("/api/chat?access_token="+e.Token+"&token="+e.Token, parleytest.As("")).Expect(http.StatusUnauthorized)
	e.Post(sendText, `{"access_token":"`+e.Token+`","contact_id":"6281600000004@c.us","message":"x"}`, parleytest.As("")).
		Expect(http.StatusUnauthorized)
}

func adminSendsNothing(t *testing.T, e *parleytest.Env) {
	admin := parleytest.As(e.Admin)
	for _, a := range []*parleytest.Response{
		e.Post(sendText, textTo("6281600000005"), admin), e.Post(sendText, textTo("6281600000005"), admin, parleytest.On("demo")),
		e.Post("/api/send-message/pool", `{}`, admin), e.Get("/api/chat", admin), e.Get("/api/sandbox/phones", admin, parleytest.On("demo")),
	} {
		wantForbidden(t, a)
	}
	for _, token := range []string{e.Token, e.Global} {
		wantForbidden(t, e.Get("/api/manage/channels", parleytest.As(token)))
		wantForbidden(t, e.Post("/api/manage/tokens", `{"kind":"admin"}`, parleytest.As(token)))
	}
	wantValue(t, e.Get("/api/chat/detail?contact_id=6281600000005@c.us").Expect(http.StatusOK), "meta.total", 0.0)
}
