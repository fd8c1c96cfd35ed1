package token

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley"
)

// TestForgedTokens holds the verifier to a list of tokens that must all be refused, with the same
// sentence, and without a request to an address that one of them names.
func TestForgedTokens(t *testing.T) {
	a, _ := newAuthority(t)
	var fetched atomic.Int64
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetched.Add(1)
		w.Write(a.JWKS())
	}))
	defer keys.Close()

	good := issue(t, a, parley.Token{Kind: parley.ChannelToken, Channel: "main"})
	forged := forge(t, a, good, keys.URL)
	if len(forged) < 40 {
		t.Fatalf("only %d forged tokens", len(forged))
	}
	for name, raw := range forged {
		t.Run(name, func(t *testing.T) { refused(t, a, raw) })
	}
	if n := fetched.Load(); n != 0 {
		t.Errorf("%d requests for keys that a token named", n)
	}
	verify(t, a, good)
}

// TestValidSignatureIsNotEnough shows that a stolen signing key invents no tokens: each of these is
// signed by our own key.
func TestValidSignatureIsNotEnough(t *testing.T) {
	a, _ := newAuthority(t)
	good := issue(t, a, parley.Token{Kind: parley.ChannelToken, Channel: "main"})
	for name, change := range map[string]func(header, claims map[string]any){
		"unknown jti":       func(_, c map[string]any) { c["jti"] = "tok_00000000000000000000000000000000" },
		"no jti":            func(_, c map[string]any) { delete(c, "jti") },
		"jti of wrong type": func(_, c map[string]any) { c["jti"] = 1 },
		"another kind":      func(_, c map[string]any) { c["kind"] = "admin" },
		"no kind":           func(_, c map[string]any) { delete(c, "kind") },
		"another channel":   func(_, c map[string]any) { c["channel"] = "second" },
		"no channel":        func(_, c map[string]any) { delete(c, "channel") },
		"another subject":   func(_, c map[string]any) { c["sub"] = "global" },
		"another issuer":    func(_, c map[string]any) { c["iss"] = "somebody" },
		"no issuer":         func(_, c map[string]any) { delete(c, "iss") },
		"jku":               func(h, _ map[string]any) { h["jku"] = "http://127.0.0.1:1/keys" },
		"jwk":               func(h, _ map[string]any) { h["jwk"] = map[string]any{"kty": "OKP"} },
		"x5u":               func(h, _ map[string]any) { h["x5u"] = "http://127.0.0.1:1/cert" },
		"crit":              func(h, _ map[string]any) { h["crit"] = []string{"exp"} },
		"unknown kid":       func(h, _ map[string]any) { h["kid"] = "key_0000000000000000" },
		"no kid":            func(h, _ map[string]any) { delete(h, "kid") },
		"kid of wrong type": func(h, _ map[string]any) { h["kid"] = []string{"x"} },
	} {
		t.Run(name, func(t *testing.T) {
			header, claims := parts(t, good)
			change(header, claims)
			refused(t, a, signEd(header, claims, a.keys.Load().signing))
		})
	}
	// The rule is not that every change is refused: a clock that is ahead is no forgery.
	header, claims := parts(t, good)
	claims["iat"] = time.Now().Add(time.Hour).Unix()
	verify(t, a, signEd(header, claims, a.keys.Load().signing))
}

func forge(t *testing.T, a *Authority, good, keyURL string) map[string]string {
	t.Helper()
	header, claims := parts(t, good)
	_, foreign, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	ring := a.keys.Load()
	public := ring.public[ring.signingID]
	h, c, s := split(good)
	forged := map[string]string{
		"empty":                  "",
		"one dot":                ".",
		"two dots":               "..",
		"three dots":             "...",
		"no signature":           h + "." + c + ".",
		"signature cut off":      h + "." + c,
		"header only":            h,
		"empty header":           "." + c + "." + s,
		"empty claims":           h + ".." + s,
		"a fourth part":          good + ".x",
		"trailing garbage":       good + "x",
		"trailing dot":           good + ".",
		"trailing blank":         good + " ",
		"leading blank":          " " + good,
		"line break inside":      h + "\n." + c + "." + s,
		"line break at the end":  good + "\r\n",
		"NUL at the end":         good + "\x00",
		"padding":                good + "==",
		"standard base64":        h + "." + c + "." + strings.NewReplacer("-", "+", "_", "/").Replace(s) + "+",
		"percent-encoded":        strings.ReplaceAll(good, ".", "%2E"),
		"upper case":             strings.ToUpper(good),
		"non-canonical last bit": h + "." + c + "." + otherLastBits(s),
		"parts swapped":          c + "." + h + "." + s,
		"not JSON":               b64([]byte("not json")) + "." + c + "." + s,
		"claims not JSON":        h + "." + b64([]byte("{")) + "." + s,
		"claims null":            h + "." + b64([]byte("null")) + "." + s,
		"claims array":           h + "." + b64([]byte("[]")) + "." + s,
		"header array":           b64([]byte("[]")) + "." + c + "." + s,
		"header null":            b64([]byte("null")) + "." + c + "." + s,
		"alg missing":            unsigned(without(header, "alg"), claims),
		"alg number":             unsigned(with(header, "alg", 5), claims),
		"signed by a stranger":   signEd(header, claims, foreign),
		"HS256 with public key":  signHMAC(with(header, "alg", "HS256"), claims, public),
		"HS256 with key's text":  signHMAC(with(header, "alg", "HS256"), claims, []byte(b64(public))),
		"HS256 with JWKS":        signHMAC(with(header, "alg", "HS256"), claims, a.JWKS()),
		"HS256 with empty key":   signHMAC(with(header, "alg", "HS256"), claims, nil),
		"HS256 with kid as key":  signHMAC(with(header, "alg", "HS256"), claims, []byte(ring.signingID)),
		"EdDSA said, HMAC done":  signHMAC(header, claims, public),
		"stranger with jku":      signEd(with(header, "jku", keyURL), claims, foreign),
		"stranger with x5u":      signEd(with(header, "x5u", keyURL), claims, foreign),
		"stranger with own jwk":  signEd(with(header, "jwk", ownJWK(foreign)), claims, foreign),
		"zeroed signature":       h + "." + c + "." + b64(make([]byte, 64)),
		"signature too long":     h + "." + c + "." + b64(make([]byte, 65)),
	}
	for _, alg := range []string{"none", "None", "nOnE", "NONE", "", "ES256", "RS256", "PS256", "HS512", "Ed25519", "eddsa", "EdDSA "} {
		forged["alg "+alg+" unsigned"] = unsigned(with(header, "alg", alg), claims)
		forged["alg "+alg+" with old signature"] = unsigned(with(header, "alg", alg), claims) + s
	}
	for _, kid := range []string{"../../../../dev/null", "/etc/passwd", "' OR 1=1 --", "key' UNION SELECT 'x", "\x00", keyURL, "*",
		strings.Repeat("k", 2000)} {
		forged["kid "+kid] = signEd(with(header, "kid", kid), claims, foreign)
	}
	for claim, value := range map[string]any{
		"kind": "admin", "channel": "second", "sub": "global", "jti": "tok_x", "exp": 99999999999, "iat": 1, "iss": "x", "aud": "x",
	} {
		forged["changed "+claim] = unsigned(header, with(claims, claim, value)) + s
	}
	return forged
}

func parts(t *testing.T, raw string) (header, claims map[string]any) {
	t.Helper()
	h, c, _ := split(raw)
	for text, into := range map[string]*map[string]any{h: &header, c: &claims} {
		b, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, into); err != nil {
			t.Fatal(err)
		}
	}
	return header, claims
}

func split(raw string) (header, claims, signature string) {
	p := strings.Split(raw, ".")
	return p[0], p[1], p[2]
}

func with(m map[string]any, key string, value any) map[string]any {
	changed := without(m, key)
	changed[key] = value
	return changed
}

func without(m map[string]any, key string) map[string]any {
	changed := map[string]any{}
	for k, v := range m {
		if k != key {
			changed[k] = v
		}
	}
	return changed
}

func unsigned(header, claims map[string]any) string {
	h, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	c, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("%s.%s.", b64(h), b64(c))
}

func signEd(header, claims map[string]any, key ed25519.PrivateKey) string {
	text := strings.TrimSuffix(unsigned(header, claims), ".")
	return text + "." + b64(ed25519.Sign(key, []byte(text)))
}

func signHMAC(header, claims map[string]any, key []byte) string {
	text := strings.TrimSuffix(unsigned(header, claims), ".")
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return text + "." + b64(mac.Sum(nil))
}

func ownJWK(key ed25519.PrivateKey) map[string]any {
	return map[string]any{"kty": "OKP", "crv": "Ed25519", "x": b64(key.Public().(ed25519.PublicKey))}
}

// otherLastBits changes the bits of the last character that a lenient decoder throws away.
func otherLastBits(signature string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, signature[len(signature)-1])
	return signature[:len(signature)-1] + string(alphabet[last^1])
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
