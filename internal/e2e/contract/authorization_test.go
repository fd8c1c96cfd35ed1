package contract_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"parley"
	"parley/internal/encrypt"
	"parley/internal/parleytest"
	"parley/internal/postgrestest"
)

// operation is one method of one path, as the OpenAPI document has it.
type operation struct {
	method, path string
	filled       string // the path with names of nothing in its braces
	whom         string // whom it is for: everybody, channel, global, both of these, admin, every token, or who has a ticket
	takesBody    bool   // of JSON
	unasked      int    // the status for somebody who may, and who sends nothing
}

// operations reads them from the document, by path.
func operations(t testing.TB) []operation {
	t.Helper()
	doc := parleytest.OpenAPI(t)
	fill := strings.NewReplacer("{code}", "nobody", "{id}", "tok_unknown", "{number}", "6281500000001", "{file}", "style.css",
		"{message_id}", "3EB0C4312F6A1D2E9B8870")
	var list []operation
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		item := doc.Paths.Value(path)
		for _, method := range slices.Sorted(maps.Keys(item.Operations())) {
			op := item.Operations()[method]
			one := operation{
				method: method, path: path, filled: fill.Replace(path), whom: whomFor(method, path, op),
				takesBody: op.RequestBody != nil && path != "/api/media", unasked: unasked(path, op),
			}
			if op.Responses.Status(http.StatusOK) != nil && op.Responses.Status(http.StatusOK).Value.Content["text/event-stream"] != nil {
				// A stream does not end by itself; one that is asked for nonsense does not begin.
				one.filled, one.unasked = one.filled+"?after=nonsense", http.StatusUnprocessableEntity
			}
			list = append(list, one)
		}
	}
	return list
}

func whomFor(method, path string, op *openapi3.Operation) string {
	switch {
	case op.Security != nil && len(*op.Security) == 0:
		return "everybody"
	case op.Security != nil && (*op.Security)[0]["pairTicket"] != nil:
		return "ticket"
	case strings.HasPrefix(path, "/api/manage/"):
		return "admin"
	case method+" "+path == "POST /api/send-message/pool", method+" "+path == "POST /api/otp/link/global",
		method+" "+path == "POST /api/otp/code/global":
		return "global"
	case path == "/mcp":
		return "every"
	case path == "/api/events", path == "/api/events/recent", path == "/api/otp/link/{id}":
		return "both"
	}
	return "channel"
}

// unasked is what a request with neither a body nor a query is answered.
func unasked(path string, op *openapi3.Operation) int {
	// The first takes the same in a body, the second one of two.
	needsQuery := path == "/api/send-message/delete" || strings.HasPrefix(path, "/api/chat/detail")
	for _, p := range op.Parameters {
		needsQuery = needsQuery || p.Value.In == "query" && p.Value.Required
	}
	switch {
	case op.RequestBody != nil && op.RequestBody.Value.Required:
		return http.StatusBadRequest
	case needsQuery:
		return http.StatusUnprocessableEntity
	case strings.HasSuffix(path, "/drain") && !postgrestest.Running(): // for nodes on PostgreSQL only
		return http.StatusBadRequest
	case strings.Contains(path, "{code}"), strings.Contains(path, "{id}"), strings.Contains(path, "{message_id}"),
		strings.Contains(path, "{contact}"), strings.Contains(path, "{name}"):
		return http.StatusNotFound
	}
	return http.StatusOK
}

// goodToken is one that may do it.
func (op operation) goodToken(e *parleytest.Env) string {
	if op.whom == "ticket" {
		return pairTicketFor(e.T.(*testing.T), e, "demo", time.Hour)
	}
	return map[string]string{"everybody": "", "channel": e.Token, "both": e.Token, "every": e.Token, "global": e.Global,
		"admin": e.Admin}[op.whom]
}

// signer makes tokens that look like the gateway's own, with its own key.
type signer struct {
	id     string
	key    ed25519.PrivateKey
	claims map[string]any // of a good token of channel demo
}

func newSigner(t *testing.T, e *parleytest.Env) *signer {
	t.Helper()
	keys, err := besides(t, e).Store.SigningKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := encrypt.OpenKeyFile(e.Data.Key())
	if err != nil {
		t.Fatal(err)
	}
	header, claims := decoded(t, e.Token)
	// Another test may have rotated the key; only the one that signed a token is good for it.
	i := slices.IndexFunc(keys, func(k parley.SigningKey) bool { return k.ID == header["kid"] })
	seed, err := keyring.Decrypt(keys[i].Encrypted, keys[i].ID)
	if err != nil {
		t.Fatal(err)
	}
	return &signer{id: keys[i].ID, key: ed25519.NewKeyFromSeed(seed), claims: claims}
}

// token signs the claims of a good token, changed. A change to nil leaves the claim out.
func (s *signer) token(changes map[string]any) string {
	claims := maps.Clone(s.claims)
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return signed(map[string]any{"alg": "EdDSA", "typ": "JWT", "kid": s.id}, claims, s.sign)
}

func (s *signer) sign(text []byte) []byte { return ed25519.Sign(s.key, text) }

// forged writes the claims of a good token under another algorithm.
func (s *signer) forged(algorithm string, sign func(text []byte) []byte) string {
	return signed(map[string]any{"alg": algorithm, "typ": "JWT", "kid": s.id}, s.claims, sign)
}

func signed(header, claims map[string]any, sign func(text []byte) []byte) string {
	text := encoded(header) + "." + encoded(claims)
	return text + "." + base64.RawURLEncoding.EncodeToString(sign([]byte(text)))
}

func encoded(v map[string]any) string {
	b, _ := json.Marshal(v) // maps of strings and numbers always can be written
	return base64.RawURLEncoding.EncodeToString(b)
}

// decoded reads the header and the claims of a token.
func decoded(t *testing.T, raw string) (header, claims map[string]any) {
	t.Helper()
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		t.Fatalf("a token of %d parts", len(parts))
	}
	for i, into := range []*map[string]any{&header, &claims} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return header, claims
}

const (
	noToken      = `Bearer realm="parley"`
	badToken     = `Bearer realm="parley", error="invalid_token"`
	notPermitted = `Bearer realm="parley", error="insufficient_scope"`
)

// verdict is how a request ends before its fields are looked at: an error, or that it may go on.
type verdict struct {
	status    int // zero: it may go on
	challenge string
	says      string // a part of the message
}

var (
	nobody    = verdict{http.StatusUnauthorized, noToken, "No token was sent"}
	twice     = verdict{http.StatusUnauthorized, badToken, "No token was sent"}
	garbage   = verdict{http.StatusUnauthorized, badToken, "This is not a token"}
	stranger  = verdict{http.StatusUnauthorized, badToken, "not valid on this server"}
	expired   = verdict{http.StatusUnauthorized, badToken, "expired"}
	forbidden = verdict{http.StatusForbidden, notPermitted, ""}
	noLink    = verdict{http.StatusUnauthorized, noToken, "This link is invalid"}
	badLink   = verdict{http.StatusUnauthorized, badToken, "This link is invalid"}
	nameOne   = verdict{http.StatusBadRequest, "", "X-Channel"}
	may       = verdict{}
)

// actor is somebody who calls.
type actor struct {
	name    string
	options []parleytest.Option
	query   string
	channel verdict // on an endpoint for channel tokens
	global  verdict
	admin   verdict
}

func (a actor) on(whom string) verdict {
	if whom == "ticket" { // which none of the tokens is
		return map[bool]verdict{true: noLink, false: badLink}[a.channel == nobody]
	}
	if whom == "every" && a.admin == may {
		return may
	}
	if whom == "both" || whom == "every" { // as for channel tokens, but a Global one need not name a channel
		if a.global == may {
			return may
		}
		return a.channel
	}
	return map[string]verdict{"everybody": may, "channel": a.channel, "global": a.global, "admin": a.admin}[whom]
}

// actors are all kinds of callers, in a gateway that has several channels.
func actors(t *testing.T, e *parleytest.Env) []actor {
	t.Helper()
	own := newSigner(t, e)
	other := e.CreateChannel("other")
	_, foreign, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	public := own.key.Public().(ed25519.PublicKey)
	hs256 := func(text []byte) []byte {
		mac := hmac.New(sha256.New, public)
		mac.Write(text)
		return mac.Sum(nil)
	}
	revoked := e.Post("/api/manage/tokens", `{"kind":"admin"}`, parleytest.As(e.Admin)).Expect(http.StatusCreated)
	e.Delete("/api/manage/tokens/"+revoked.Text("data.id"), parleytest.As(e.Admin)).Expect(http.StatusOK)

	with := func(name, token string, on verdict, more ...parleytest.Option) actor {
		return actor{name: name, options: append([]parleytest.Option{parleytest.As(token)}, more...), channel: on, global: on, admin: on}
	}
	list := []actor{
		with("no header", "", nobody),
		with("garbage", "garbage", garbage),
		with("another scheme", "", nobody, parleytest.With("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("admin:admin")))),
		with("a token without its scheme", "", nobody, parleytest.With("Authorization", e.Token)),
		with("two headers", e.Token, twice, func(r *http.Request) { r.Header.Add("Authorization", "Bearer "+e.Token) }),
		with("a long header", strings.Repeat("x.", 3000), garbage),
		with("no algorithm", own.forged("none", func([]byte) []byte { return nil }), stranger),
		with("HS256 with the public key", own.forged("HS256", hs256), stranger),
		with("another key", own.forged("EdDSA", func(text []byte) []byte { return ed25519.Sign(foreign, text) }), stranger),
		with("expired", own.token(map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}), expired),
		with("revoked", revoked.Text("data.token"), stranger),
		with("unknown jti", own.token(map[string]any{"jti": string(parley.NewTokenID())}), stranger),
		with("a kind that it is not", own.token(map[string]any{"kind": "admin", "sub": "admin", "channel": nil}), stranger),
		with("a channel that it is not for", own.token(map[string]any{"channel": "other", "sub": "other"}), stranger),
		with("another issuer", own.token(map[string]any{"iss": "somebody"}), stranger),
		with("of another channel, naming ours", other, forbidden, parleytest.On("demo")),
		with("of our channel, naming another", e.Token, forbidden, parleytest.On("other")),
		{name: "token in the query", options: []parleytest.Option{parleytest.As("")}, query: "access_token=" + e.Token, channel: nobody,
			global: nobody, admin: nobody},
		{name: "of another channel", options: []parleytest.Option{parleytest.As(other)}, channel: may, global: forbidden, admin: forbidden},
		{name: "channel", options: []parleytest.Option{parleytest.As(e.Token)}, channel: may, global: forbidden, admin: forbidden},
		{name: "channel, naming itself", options: []parleytest.Option{parleytest.As(e.Token), parleytest.On("demo")}, channel: may,
			global: forbidden, admin: forbidden},
		{name: "global, naming none of several", options: []parleytest.Option{parleytest.As(e.Global)}, channel: nameOne, global: may,
			admin: forbidden},
		{name: "global", options: []parleytest.Option{parleytest.As(e.Global), parleytest.On("other")}, channel: may, global: may,
			admin: forbidden},
		{name: "global, naming nobody", options: []parleytest.Option{parleytest.As(e.Global), parleytest.On("nobody")}, channel: nameOne,
			global: nameOne, admin: forbidden},
		{name: "admin", options: []parleytest.Option{parleytest.As(e.Admin)}, channel: forbidden, global: forbidden, admin: may},
		{name: "admin, naming a channel", options: []parleytest.Option{parleytest.As(e.Admin), parleytest.On("demo")}, channel: forbidden,
			global: forbidden, admin: may},
	}
	return list
}

// TestAuthorization has every actor try every operation of the OpenAPI document.
func TestAuthorization(t *testing.T) {
	e := parleytest.Start(t, behindProxy)
	everyone := actors(t, e)
	tried := 0
	for _, op := range operations(t) {
		if op.path == "/metrics" {
			continue // behind a proxy it asks for an admin token, which its own test covers
		}
		t.Run(op.method+" "+op.path, func(t *testing.T) {
			if strings.HasPrefix(op.path, "/api/manage/backup") {
				postgrestest.Skip(t, "the database is not a file")
			}
			e := within(t, e)
			for i, who := range everyone {
				if op.whom == "everybody" && i%8 != 0 {
					continue // some will do: nobody is asked for a token
				}
				tried++
				path := op.filled
				if who.query != "" {
					path += "?" + who.query
				}
				options := who.options
				if op.whom != "everybody" {
					// Each from an address of its own, so that no failure counts against another.
					address := fmt.Sprintf("198.18.%d.%d", tried/250, tried%250+1)
					options = append(slices.Clone(options), parleytest.With("X-Forwarded-For", address))
				}
				want := who.on(op.whom)
				a := e.Call(op.method, path, "", options...)
				if want == may {
					if a.Status != op.unasked {
						t.Errorf("%s: %d, want %d: %.300s", who.name, a.Status, op.unasked, a.Body)
					}
				} else if a.Status != want.status || !strings.Contains(a.Text("message"), want.says) {
					t.Errorf("%s: %d, want %d with %q: %.300s", who.name, a.Status, want.status, want.says, a.Body)
				}
				if got := strings.Join(a.Header.Values("WWW-Authenticate"), "|"); got != want.challenge {
					t.Errorf("%s: WWW-Authenticate %q, want %q", who.name, got, want.challenge)
				}
			}
		})
	}
	if tried < 1000 {
		t.Errorf("only %d requests", tried)
	}
}
