package console_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/app"
	"parley/internal/parleytest"
	"parley/internal/store"
)

// env is a gateway, and a browser that is not quite one: it sends what the test wants.
type env struct {
	*parleytest.Env
	t *testing.T
}

func start(t *testing.T, change ...func(*app.Config)) *env {
	return &env{parleytest.Start(t, change...), t}
}

// data works on the gateway's data as a command beside it does.
func (e *env) data(do func(ctx context.Context, d *app.Data) error) {
	e.t.Helper()
	d, err := app.OpenData(e.t.Context(), e.Data, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	defer d.Close()
	if err := do(e.t.Context(), d); err != nil {
		e.t.Fatal(err)
	}
}

// ticket adds a ticket and returns its secret.
func (e *env) ticket(purpose parley.TicketPurpose, at time.Time, life time.Duration) string {
	e.t.Helper()
	secret, ticket := parley.NewTicket(purpose, "", at, life)
	ticket.Role = parley.Owner
	e.data(func(ctx context.Context, d *app.Data) error {
		return d.Store.Tx(ctx, func(tx *store.Tx) error { return tx.AddTicket(ctx, ticket) })
	})
	return secret
}

// session signs in and returns the cookie.
func (e *env) session() string {
	e.t.Helper()
	return "__Host-parley=" + e.ticket(parley.SessionTicket, time.Now(), 12*time.Hour)
}

// ask makes a request. Headers come in pairs.
func (e *env) ask(method, path, body string, headers ...string) *parleytest.Response {
	e.t.Helper()
	req, err := http.NewRequestWithContext(e.t.Context(), method, e.URL+path, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(req) // follows no redirect
	if err != nil {
		e.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	return &parleytest.Response{T: e.t, Request: method + " " + path, Status: resp.StatusCode, Header: resp.Header, Body: text}
}

func (e *env) signIn(ticket string, headers ...string) *parleytest.Response {
	e.t.Helper()
	return e.ask(http.MethodPost, "/console/session", `{"ticket":"`+ticket+`"}`, headers...)
}

const probe = "__Host-parley-probe=1"

func TestLinkSignsInOnce(t *testing.T) {
	t.Parallel()
	e := start(t)
	var link string
	e.data(func(ctx context.Context, d *app.Data) (err error) {
		link, err = d.SignInLink(ctx, e.URL)
		return err
	})
	address, ticket, found := strings.Cut(link, "#")
	if !found || address != e.URL+"/console/login" {
		t.Fatalf("the link is %s", link)
	}
	a := e.signIn(ticket, "Cookie", probe).Expect(http.StatusOK)
	set := a.Header.Get("Set-Cookie")
	secret := regexp.MustCompile(`^__Host-parley=([\w-]{43}); Path=/; Max-Age=43200; HttpOnly; Secure; SameSite=Strict$`).
		FindStringSubmatch(set)
	if secret == nil {
		t.Fatalf("the cookie is %q", set)
	}
	cookie := "__Host-parley=" + secret[1]
	e.ask(http.MethodGet, "/console/api/manage/channels", "", "Cookie", cookie).Expect(http.StatusOK)
	e.signIn(ticket, "Cookie", probe).ExpectError(http.StatusConflict, "already used")

	// The session is stored: another process goes on with it.
	e.Restart()
	e.ask(http.MethodGet, "/console/api/manage/channels", "", "Cookie", cookie).Expect(http.StatusOK)

	e.ask(http.MethodDelete, "/console/session", "", "Cookie", cookie).Expect(http.StatusOK)
	e.ask(http.MethodGet, "/console/api/manage/channels", "", "Cookie", cookie).ExpectError(http.StatusUnauthorized, "parley open")
	e.ask(http.MethodDelete, "/console/session", "").Expect(http.StatusOK) // nobody is signed in: so it stays

	for _, s := range []string{secret[1], ticket} {
		if strings.Contains(e.Log.String(), s) {
			t.Error("the log contains a secret")
		}
	}
}

func TestRefusedTickets(t *testing.T) {
	t.Parallel()
	e := start(t)
	now := time.Now()
	for name, c := range map[string]struct {
		ticket, want string
		status       int
	}{
		"expired":      {e.ticket(parley.SignInTicket, now.Add(-time.Hour), 15*time.Minute), "has expired", http.StatusUnauthorized},
		"unknown":      {"x", "does not belong", http.StatusUnauthorized},
		"of a session": {e.ticket(parley.SessionTicket, now, time.Hour), "does not belong", http.StatusUnauthorized},
		"for pairing":  {e.ticket(parley.PairTicket, now, time.Hour), "does not belong", http.StatusUnauthorized},
		"none":         {"", "ticket must be", http.StatusUnprocessableEntity},
		"too long":     {strings.Repeat("x", 5000), "ticket must be", http.StatusUnprocessableEntity},
	} {
		t.Run(name, func(t *testing.T) {
			if a := e.signIn(c.ticket, "Cookie", probe).ExpectError(c.status, c.want); a.Header.Get("Set-Cookie") != "" {
				t.Error("a cookie was set")
			}
		})
	}
	e.ask(http.MethodPost, "/console/session", `ticket=x`, "Content-Type", "application/x-www-form-urlencoded").
		ExpectError(http.StatusBadRequest, "JSON")
	// A ticket that was offered for the wrong thing is still good for the right one.
	secret := e.ticket(parley.SessionTicket, now, time.Hour)
	e.signIn(secret, "Cookie", probe).Expect(http.StatusUnauthorized)
	e.ask(http.MethodGet, "/console/api/manage/tokens", "", "Cookie", "__Host-parley="+secret).Expect(http.StatusOK)
}

func TestGuessingTicketsIsSlow(t *testing.T) {
	t.Parallel()
	e := start(t)
	for range 30 {
		e.signIn("wrong", "Cookie", probe).Expect(http.StatusUnauthorized)
	}
	if a := e.signIn("wrong", "Cookie", probe).Expect(http.StatusTooManyRequests); a.Header.Get("Retry-After") == "" {
		t.Error("it does not say when to come back")
	}
	// A valid link passes, and one that was used says so: neither was guessed.
	good := e.ticket(parley.SignInTicket, time.Now(), time.Minute)
	e.signIn(good, "Cookie", probe).Expect(http.StatusOK)
	e.signIn(good, "Cookie", probe).ExpectError(http.StatusConflict, "already used")
}

// TestCookieForBrowsersWithoutSecureOnes: some browsers keep no secure cookie on http://localhost. On
// this machine they get another one; elsewhere they get an error before their link is used.
func TestCookieForBrowsersWithoutSecureOnes(t *testing.T) {
	t.Parallel()
	e := start(t)
	ticket := e.ticket(parley.SignInTicket, time.Now(), time.Minute)
	e.signIn(ticket, "Host", "chat.example.com").ExpectError(http.StatusBadRequest, "https")
	set := e.signIn(ticket).Expect(http.StatusOK).Header.Get("Set-Cookie")
	if !strings.HasPrefix(set, "parley=") || strings.Contains(set, "Secure") || !strings.Contains(set, "HttpOnly; SameSite=Strict") {
		t.Fatalf("the cookie is %q", set)
	}
	cookie, _, _ := strings.Cut(set, ";")
	e.ask(http.MethodGet, "/console/api/manage/channels", "", "Cookie", cookie).Expect(http.StatusOK)
	e.ask(http.MethodGet, "/console/api/manage/channels", "", "Cookie", cookie, "Host", "chat.example.com").Expect(http.StatusUnauthorized)
	page := e.ask(http.MethodGet, "/console/login", "").Expect(http.StatusOK)
	if set := page.Header.Get("Set-Cookie"); !strings.HasPrefix(set, probe+";") || !strings.Contains(set, "Secure") {
		t.Errorf("the sign-in page sets %q", set)
	}
}

// TestForeignLinkAsksFirst opens links while signed in. That of somebody else is neither used nor ends the own session until
// the person agrees.
func TestForeignLinkAsksFirst(t *testing.T) {
	t.Parallel()
	e := start(t)
	link := func(name string, role parley.Role) string {
		secret, ticket := parley.NewTicket(parley.SignInTicket, "", time.Now(), time.Minute)
		ticket.Name, ticket.Role = name, role
		e.data(func(ctx context.Context, d *app.Data) error {
			return d.Store.Tx(ctx, func(tx *store.Tx) error { return tx.AddTicket(ctx, ticket) })
		})
		return secret
	}
	me := func(cookie string) *parleytest.Response {
		return e.ask(http.MethodGet, "/console/api/manage/me", "", "Cookie", cookie)
	}
	own := e.session() // an owner without a name
	for name, ticket := range map[string]string{"Mallory": link("Mallory", parley.Owner), "": link("", parley.Viewer)} {
		for range 2 { // asking does not use the link
			a := e.signIn(ticket, "Cookie", probe+"; "+own).Expect(http.StatusConflict)
			if a.Text("code") != "signed_in" || a.Text("data.name") != name || a.Text("data.role") == "" || a.Header.Get("Set-Cookie") != "" {
				t.Errorf("%v: %s", a.Header, a.Body)
			}
		}
	}
	expired := e.ticket(parley.SignInTicket, time.Now().Add(-time.Hour), time.Minute)
	e.signIn(expired, "Cookie", probe+"; "+own).ExpectError(http.StatusUnauthorized, "expired")
	e.ask(http.MethodPost, "/console/session", `{"ticket":"`+expired+`","replace":true}`, "Cookie", probe+"; "+own).
		ExpectError(http.StatusUnauthorized, "expired")
	me(own).Expect(http.StatusOK)

	agreed := link("Ayu", parley.Viewer)
	e.signIn(agreed, "Cookie", probe+"; "+own).Expect(http.StatusConflict)
	a := e.ask(http.MethodPost, "/console/session", `{"ticket":"`+agreed+`","replace":true}`, "Cookie", probe+"; "+own).Expect(http.StatusOK)
	me(own).Expect(http.StatusUnauthorized)
	ayu, _, _ := strings.Cut(a.Header.Get("Set-Cookie"), ";")
	if got := me(ayu).Expect(http.StatusOK); got.Text("data.name") != "Ayu" || got.Text("data.role") != "viewer" {
		t.Errorf("signed in as %s", got.Body)
	}
	// A new link of the same person changes nothing that is worth a question, nor does that of a session that has ended.
	e.signIn(link("Ayu", parley.Viewer), "Cookie", probe+"; "+ayu).Expect(http.StatusOK)
	me(ayu).Expect(http.StatusUnauthorized)
	e.signIn(link("Mallory", parley.Owner), "Cookie", probe+"; "+ayu).Expect(http.StatusOK)
}

// TestSessionEndsAfterAWeek: however much it is used, and earlier with the token that made its link.
func TestSessionEndsAfterAWeek(t *testing.T) {
	t.Parallel()
	e := start(t)
	now := time.Now()
	for name, c := range map[string]struct {
		age, endsIn time.Duration
		want        time.Duration // that is left after a request
	}{
		"a week old":           {parley.MaxSession - time.Hour, 0, time.Hour},
		"with an ending token": {time.Hour, 2 * time.Hour, 2 * time.Hour},
		"young":                {time.Hour, 0, 12 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			secret, ticket := parley.NewTicket(parley.SessionTicket, "", now.Add(-c.age), c.age+10*time.Minute)
			ticket.Role = parley.Viewer
			if c.endsIn > 0 {
				ticket.EndsAt = now.Add(c.endsIn)
			}
			e.data(func(ctx context.Context, d *app.Data) error {
				return d.Store.Tx(ctx, func(tx *store.Tx) error { return tx.AddTicket(ctx, ticket) })
			})
			e.ask(http.MethodGet, "/console/api/manage/channels", "", "Cookie", "__Host-parley="+secret).Expect(http.StatusOK)
			e.data(func(ctx context.Context, d *app.Data) error {
				stored, err := d.Store.Ticket(ctx, ticket.Hash)
				if left := stored.ExpiresAt.Sub(now); left < c.want-time.Minute || left > c.want+time.Minute {
					t.Errorf("%s left, want %s", left, c.want)
				}
				return err
			})
		})
	}
}

func TestSessionEndsWhenItIsIdle(t *testing.T) {
	t.Parallel()
	e := start(t)
	now := time.Now()
	expiry := func(secret string) (at time.Time) {
		e.data(func(ctx context.Context, d *app.Data) error {
			ticket, err := d.Store.Ticket(ctx, parley.HashTicket(secret))
			at = ticket.ExpiresAt
			return err
		})
		return at
	}
	idle := e.ticket(parley.SessionTicket, now.Add(-13*time.Hour), 12*time.Hour)
	e.ask(http.MethodGet, "/console/api/manage/channels", "", "Cookie", "__Host-parley="+idle).Expect(http.StatusUnauthorized)

	used := e.ticket(parley.SessionTicket, now.Add(-11*time.Hour), 12*time.Hour)
	before := expiry(used)
	a := e.ask(http.MethodGet, "/console/api/manage/channels", "", "Cookie", "__Host-parley="+used).Expect(http.StatusOK)
	if !strings.HasPrefix(a.Header.Get("Set-Cookie"), "__Host-parley="+used+";") {
		t.Errorf("the cookie is not extended: %q", a.Header.Get("Set-Cookie"))
	}
	after := expiry(used)
	if left := after.Sub(now); left < 12*time.Hour-time.Minute || !after.After(before) {
		t.Errorf("it ends in %s", left)
	}
	// Within the same minute it is not written again.
	a = e.ask(http.MethodGet, "/console/api/manage/channels", "", "Cookie", "__Host-parley="+used).Expect(http.StatusOK)
	if a.Header.Get("Set-Cookie") != "" || !expiry(used).Equal(after) {
		t.Error("it was prolonged at every request")
	}
}

// TestTheDoors: the cookie opens the console's door and no other, a token opens the API's and no other.
func TestTheDoors(t *testing.T) {
	t.Parallel()
	e := start(t)
	cookie, bearer := e.session(), "Bearer "+e.Admin
	for name, c := range map[string]struct {
		path, header, value string
		status              int
	}{
		"cookie at the console":         {"/console/api/manage/channels", "Cookie", cookie, http.StatusOK},
		"cookie at the API":             {"/api/manage/channels", "Cookie", cookie, http.StatusUnauthorized},
		"token at the API":              {"/api/manage/channels", "Authorization", bearer, http.StatusOK},
		"token at the console":          {"/console/api/manage/channels", "Authorization", bearer, http.StatusUnauthorized},
		"nothing at the console":        {"/console/api/manage/channels", "X-Channel", "demo", http.StatusUnauthorized},
		"another cookie at the console": {"/console/api/manage/channels", "Cookie", "__Host-parley=x", http.StatusUnauthorized},
		"token at the stream":           {"/console/events", "Authorization", bearer, http.StatusUnauthorized},
		"cookie at the API's stream":    {"/api/manage/events", "Cookie", cookie, http.StatusUnauthorized},
		"a path that is not clean":      {"/console/api/../api/manage/channels", "Cookie", cookie, http.StatusNotFound},
		"what is not of the API":        {"/console/livez", "Cookie", cookie, http.StatusNotFound},
		"no such endpoint":              {"/console/api/nothing", "Cookie", cookie, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) { e.ask(http.MethodGet, c.path, "", c.header, c.value).Expect(c.status) })
	}
}

// TestOneIdentityForEverything: who is signed in manages the server and does what each channel does.
func TestOneIdentityForEverything(t *testing.T) {
	t.Parallel()
	e := start(t)
	cookie := e.session()
	e.Post("/api/manage/channels", `{"code":"second","network":"sandbox"}`, parleytest.As(e.Admin)).Expect(http.StatusCreated)
	const text = `{"contact_id":"6281234567890@c.us","message":"Halo"}`
	a := e.ask(http.MethodPost, "/console/api/send-message/text", text, "Cookie", cookie, "X-Channel", "demo").Expect(http.StatusOK)
	if a.Text("data.message_id") == "" {
		t.Errorf("answer: %s", a.Body)
	}
	e.ask(http.MethodPost, "/console/api/send-message/text", text, "Cookie", cookie).ExpectError(http.StatusBadRequest, "X-Channel")
	e.ask(http.MethodPost, "/console/api/send-message/text?channel=demo", text, "Cookie", cookie).ExpectError(http.StatusBadRequest,
		"X-Channel")
	e.ask(http.MethodPost, "/console/api/send-message/pool",
		`{"contact_id":"6281234567890@c.us","pools":[{"type":"text","data":{"message":"Halo"}}]}`,
		"Cookie", cookie, "X-Channel", "demo").Expect(http.StatusOK)
	link := e.ask(http.MethodPost, "/console/api/otp/link/request",
		`{"contact_id":"6281234567890@c.us","expires":300,"name":"Toko","callback":{"success":"http://127.0.0.1:1/a",`+
			`"failed":"http://127.0.0.1:1/b"}}`,
		"Cookie", cookie, "X-Channel", "demo").Expect(http.StatusOK)
	e.ask(http.MethodGet, "/console/api/otp/link/"+link.Text("data.id"), "", "Cookie", cookie).Expect(http.StatusOK)
}

// TestSessionHasARole: a link signs in with the role of its token or less, and the session ends with the token.
func TestSessionHasARole(t *testing.T) {
	t.Parallel()
	e := start(t)
	const text = `{"contact_id":"6281234567890@c.us","message":"Halo"}`
	made := e.Post("/api/manage/tokens", `{"kind":"admin","role":"support","name":"Ayu"}`, parleytest.As(e.Admin)).Expect(http.StatusCreated)
	signIn := func(body string) (cookie string) {
		link := e.Post("/api/manage/sign-in-link", body, parleytest.As(made.Text("data.token"))).Expect(http.StatusOK)
		_, ticket, _ := strings.Cut(link.Text("data.url"), "#")
		cookie, _, _ = strings.Cut(e.signIn(ticket, "Cookie", probe).Expect(http.StatusOK).Header.Get("Set-Cookie"), ";")
		return cookie
	}
	send := func(cookie string) *parleytest.Response {
		return e.ask(http.MethodPost, "/console/api/send-message/text", text, "Cookie", cookie, "X-Channel", "demo")
	}
	stop := func(cookie string) *parleytest.Response {
		return e.ask(http.MethodPost, "/console/api/manage/channels/demo/stop", "", "Cookie", cookie)
	}
	support, viewer := signIn(`{}`), signIn(`{"role":"viewer"}`)
	send(support).Expect(http.StatusOK)
	stop(support).ExpectError(http.StatusForbidden, "the role operator. You are signed in as support")
	send(viewer).ExpectError(http.StatusForbidden, "the role support. You are signed in as viewer")
	e.ask(http.MethodGet, "/console/api/manage/messages", "", "Cookie", viewer).Expect(http.StatusOK)
	if me := e.ask(http.MethodGet, "/console/api/manage/me", "", "Cookie", viewer); me.Text("data.role") != "viewer" ||
		me.Text("data.name") != "Ayu" || me.Text("data.kind") != "session" {
		t.Errorf("me: %s", me.Body)
	}
	page := e.ask(http.MethodGet, "/console/", "", "Cookie", viewer, "Sec-Fetch-Site", "none").Expect(http.StatusOK)
	if !strings.Contains(string(page.Body), "&#34;role&#34;:&#34;viewer&#34;") {
		t.Error("the page does not know the role")
	}
	// Only an owner's session makes links: else a session could be prolonged for ever.
	e.ask(http.MethodPost, "/console/api/manage/sign-in-link", `{}`, "Cookie", support).ExpectError(http.StatusForbidden, "the role owner")
	e.ask(http.MethodPost, "/console/api/manage/sign-in-link", `{}`, "Cookie", e.session()).Expect(http.StatusOK)

	// Another role or the end of the token ends its sessions.
	path := "/api/manage/tokens/" + made.Text("data.id")
	e.ask(http.MethodPatch, path, `{"name":"Ayu S."}`, "Authorization", "Bearer "+e.Admin).Expect(http.StatusOK)
	send(support).Expect(http.StatusOK)
	e.ask(http.MethodPatch, path, `{"role":"operator"}`, "Authorization", "Bearer "+e.Admin).Expect(http.StatusOK)
	send(support).Expect(http.StatusUnauthorized)
	operator := signIn(`{}`)
	stop(operator).Expect(http.StatusOK)
	e.Delete(path, parleytest.As(e.Admin)).Expect(http.StatusOK)
	stop(operator).Expect(http.StatusUnauthorized)
}

// TestSessionsEndWithWhatTheyCameFrom goes through two links made in the console. The last session ends with the token, however
// that loses its role, or with the first session if there is no token.
func TestSessionsEndWithWhatTheyCameFrom(t *testing.T) {
	t.Parallel()
	e := start(t)
	follow := func(link *parleytest.Response) (cookie string) {
		_, ticket, _ := strings.Cut(link.Expect(http.StatusOK).Text("data.url"), "#")
		cookie, _, _ = strings.Cut(e.signIn(ticket, "Cookie", probe).Expect(http.StatusOK).Header.Get("Set-Cookie"), ";")
		return cookie
	}
	inConsole := func(cookie string) *parleytest.Response {
		return e.ask(http.MethodPost, "/console/api/manage/sign-in-link", `{"name":"Budi"}`, "Cookie", cookie)
	}
	list := func(cookie string) *parleytest.Response {
		return e.ask(http.MethodGet, "/console/api/manage/sessions", "", "Cookie", cookie)
	}
	for name, end := range map[string]func(token *parleytest.Response, first string){
		"revoked": func(token *parleytest.Response, _ string) {
			e.Delete("/api/manage/tokens/"+token.Text("data.id"), parleytest.As(e.Admin)).Expect(http.StatusOK)
		},
		"demoted": func(token *parleytest.Response, _ string) {
			e.ask(http.MethodPatch, "/api/manage/tokens/"+token.Text("data.id"), `{"role":"viewer"}`,
				"Authorization", "Bearer "+e.Admin).Expect(http.StatusOK)
		},
		"signed out": func(_ *parleytest.Response, first string) {
			e.ask(http.MethodDelete, "/console/session", "", "Cookie", first).Expect(http.StatusOK)
		},
	} {
		t.Run(name, func(t *testing.T) {
			expires := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
			token := e.Post("/api/manage/tokens", `{"kind":"admin","role":"owner","name":"Ayu","expires_at":"`+
				expires.Format(time.RFC3339)+`"}`, parleytest.As(e.Admin)).Expect(http.StatusCreated)
			first := follow(e.Post("/api/manage/sign-in-link", `{}`, parleytest.As(token.Text("data.token"))))
			second := follow(inConsole(first))
			third := follow(inConsole(second))
			unused := inConsole(third).Expect(http.StatusOK)

			row := list(third).Expect(http.StatusOK)
			if row.Text("data.0.token") != token.Text("data.id") || row.Text("data.0.parent") != row.Text("data.1.id") {
				t.Errorf("the third session does not show what it came from: %s", row.Body)
			}
			if ends, err := time.Parse(time.RFC3339, row.Text("data.0.ends_at")); err != nil || ends.After(expires) {
				t.Errorf("it ends at %v, after the token: %v", ends, expires)
			}
			if name := row.Text("data.0.name"); name != "Budi (Ayu)" {
				t.Errorf("name %q", name)
			}
			end(token, first)
			for _, cookie := range []string{first, second, third} {
				list(cookie).Expect(http.StatusUnauthorized)
			}
			_, ticket, _ := strings.Cut(unused.Text("data.url"), "#")
			e.signIn(ticket, "Cookie", probe).ExpectError(http.StatusConflict, "ended with the token or session")
		})
	}
	t.Run("without a token", func(t *testing.T) {
		root := e.session()
		child := follow(inConsole(root))
		grandchild := follow(inConsole(child))
		ends := list(grandchild).Expect(http.StatusOK)
		if ends.Text("data.0.ends_at") != ends.Text("data.2.ends_at") {
			t.Errorf("links prolong a session: %s", ends.Body)
		}
		e.ask(http.MethodDelete, "/console/api/manage/sessions/"+ends.Text("data.2.id"), "", "Cookie", grandchild).Expect(http.StatusOK)
		for _, cookie := range []string{root, child, grandchild} {
			list(cookie).Expect(http.StatusUnauthorized)
		}
	})
}

// TestSessionsAreListedAndEnded: own ones, and by an owner all of them.
func TestSessionsAreListedAndEnded(t *testing.T) {
	t.Parallel()
	e := start(t)
	signIn := func(token, body string) (cookie string) {
		link := e.Post("/api/manage/sign-in-link", body, parleytest.As(token)).Expect(http.StatusOK)
		_, ticket, _ := strings.Cut(link.Text("data.url"), "#")
		answer := e.signIn(ticket, "Cookie", probe, "User-Agent", "Firefox").Expect(http.StatusOK)
		cookie, _, _ = strings.Cut(answer.Header.Get("Set-Cookie"), ";")
		return cookie
	}
	list := func(cookie string) *parleytest.Response {
		return e.ask(http.MethodGet, "/console/api/manage/sessions", "", "Cookie", cookie).Expect(http.StatusOK)
	}
	count := func(a *parleytest.Response) int { return strings.Count(string(a.Body), `"id":"ses_`) }
	made := e.Post("/api/manage/tokens", `{"kind":"admin","role":"support","name":"Ayu"}`, parleytest.As(e.Admin)).Expect(http.StatusCreated)
	token := made.Text("data.token")
	owner, first, second := signIn(e.Admin, `{}`), signIn(token, `{}`), signIn(token, `{"role":"viewer"}`)
	own := list(first)
	if count(own) != 2 || own.Text("data.0.name") != "Ayu" || own.Text("data.0.user_agent") != "Firefox" ||
		own.Text("data.0.last_used_from") != "127.0.0.1" {
		t.Errorf("own sessions: %s", own.Body)
	}
	all := list(owner)
	if count(all) != 3 || strings.Count(string(all.Body), `"current":true`) != 1 {
		t.Errorf("all sessions: %s", all.Body)
	}
	// A session of somebody else is not found.
	ownersID := all.Text("data.2.id")
	e.ask(http.MethodDelete, "/console/api/manage/sessions/"+ownersID, "", "Cookie", first).ExpectError(http.StatusNotFound, "does not exist")
	e.ask(http.MethodDelete, "/console/api/manage/sessions", "", "Cookie", first).Expect(http.StatusOK)
	e.ask(http.MethodGet, "/console/api/manage/me", "", "Cookie", second).Expect(http.StatusUnauthorized)
	firstID := list(first).Text("data.0.id")
	e.ask(http.MethodDelete, "/console/api/manage/sessions/"+firstID, "", "Cookie", owner).Expect(http.StatusOK)
	e.ask(http.MethodGet, "/console/api/manage/me", "", "Cookie", first).Expect(http.StatusUnauthorized)
	e.ask(http.MethodDelete, "/console/api/manage/sessions/"+firstID, "", "Cookie", owner).Expect(http.StatusNotFound)
	e.ask(http.MethodGet, "/console/api/manage/me", "", "Cookie", owner).Expect(http.StatusOK)

	e.ask(http.MethodDelete, "/console/session", "", "Cookie", owner).Expect(http.StatusOK)
	log := string(e.Get("/api/manage/audit?action=session.&limit=100", parleytest.As(e.Admin)).Expect(http.StatusOK).Body)
	for action, n := range map[string]int{"begin": 3, "end": 1, "end_others": 1, "leave": 1, "link": 3} {
		if got := strings.Count(log, `"session.`+action+`"`); got != n {
			t.Errorf("the audit log has %d of session.%s, want %d", got, action, n)
		}
	}
}

// TestPagesOfOthersAreKeptOut: what another page makes the browser ask is refused, reading too.
func TestPagesOfOthersAreKeptOut(t *testing.T) {
	t.Parallel()
	e := start(t)
	cookie := e.session()
	for name, headers := range map[string][]string{
		"another site":            {"Sec-Fetch-Site", "cross-site"},
		"another port":            {"Sec-Fetch-Site", "same-site"},
		"by origin":               {"Origin", "http://localhost:3000"},
		"no origin that is known": {"Origin", "null"},
	} {
		t.Run(name, func(t *testing.T) {
			headers = append(headers, "Cookie", cookie+"; "+probe)
			for _, c := range [][2]string{
				{http.MethodPost, "/console/api/manage/channels"}, {http.MethodGet, "/console/api/manage/channels"},
				{http.MethodGet, "/console/events"}, {http.MethodPost, "/console/session"}, {http.MethodDelete, "/console/session"},
			} {
				e.ask(c[0], c[1], "", headers...).ExpectError(http.StatusForbidden, "own pages")
			}
		})
	}
	for _, site := range []string{"same-origin", "none"} {
		e.ask(http.MethodGet, "/console/api/manage/channels", "", "Cookie", cookie, "Sec-Fetch-Site", site).Expect(http.StatusOK)
	}
	e.ask(http.MethodPost, "/console/api/manage/channels", `{"code":"mine","network":"sandbox"}`, "Cookie", cookie, "Origin", e.URL,
		"Sec-Fetch-Site", "same-origin").Expect(http.StatusCreated)
}

// TestStreamEndsWithTheSession opens the stream, sees an event, signs out and finds the stream ended.
func TestStreamEndsWithTheSession(t *testing.T) {
	t.Parallel()
	e := start(t)
	cookie := e.session()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.URL+"/console/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Cookie", cookie)
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("answer %d %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	e.Phone("6281234567890").Types("makasih!")
	e.ask(http.MethodDelete, "/console/session", "", "Cookie", cookie).Expect(http.StatusOK)
	rest, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(rest), "no longer valid") {
		t.Errorf("the stream went on: %q, %v", rest, err)
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	e := start(t)
	cookie := e.session()
	for path, status := range map[string]int{
		"/console/": 200, "/console/channels": 200, "/console/channels/demo/pair": 200, "/console/messages?status=failed": 200,
		"/console/phone/6281234567890": 200, "/console/otp": 200, "/console/webhooks": 200, "/console/tokens": 200,
		"/console/api-recipes": 200, "/console/settings": 200, "/console/login": 200, "/console/nothing": 404,
	} {
		a := e.ask(http.MethodGet, path, "", "Cookie", cookie, "Sec-Fetch-Site", "none").Expect(status)
		if kind := a.Header.Get("Content-Type"); kind != "text/html; charset=utf-8" {
			t.Errorf("%s is %s", path, kind)
		}
		for _, want := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "require-trusted-types-for 'script'",
			"trusted-types parley", "frame-ancestors 'none'", "worker-src 'self'"} {
			if got := a.Header.Get("Content-Security-Policy"); !strings.Contains(got, want) || strings.Contains(got, "unsafe") {
				t.Errorf("%s: the policy is %q, want %q", path, got, want)
			}
		}
		if got := a.Header.Get("Permissions-Policy"); got != "camera=(), geolocation=(), microphone=(self)" {
			t.Errorf("%s may use %q", path, got)
		}
	}
	e.ask(http.MethodPost, "/console/channels", "", "Cookie", cookie).Expect(http.StatusMethodNotAllowed)

	// A browser without a session is redirected to the sign-in page, if that is certain.
	for site, status := range map[string]int{"none": 303, "same-origin": 303, "cross-site": 200, "": 200} {
		a := e.ask(http.MethodGet, "/console/messages?status=failed", "", "Sec-Fetch-Site", site).Expect(status)
		if to := a.Header.Get("Location"); status == 303 && to != "/console/login?next=%2Fconsole%2Fmessages%3Fstatus%3Dfailed" {
			t.Errorf("it leads to %s", to)
		}
	}
}

func TestRoot(t *testing.T) {
	t.Parallel()
	e := start(t)
	for _, path := range []string{"/", "/console"} {
		a := e.ask(http.MethodGet, path, "", "Accept", "text/html,application/xhtml+xml,*/*;q=0.8").Expect(http.StatusSeeOther)
		if to := a.Header.Get("Location"); to != "/console/" {
			t.Errorf("%s leads to %s", path, to)
		}
	}
	e.ask(http.MethodGet, "/", "", "Accept", "application/json").ExpectError(http.StatusNotFound, "/docs")
	e.ask(http.MethodPost, "/", "", "Accept", "text/html").Expect(http.StatusNotFound)
}

// TestFrame checks what the server itself decides of a page: language, theme, band.
func TestFrame(t *testing.T) {
	t.Parallel()
	e := start(t)
	for name, c := range map[string]struct {
		headers []string
		want    []string
	}{
		"as it comes":          {nil, []string{`lang="en"`, `data-theme="auto"`, `data-band="plain"`, `icon_plain.svg`}},
		"signed in":            {[]string{"Cookie", e.session()}, []string{`data-band="sandbox"`, `icon_sandbox.svg`, `<title>SANDBOX`}},
		"chosen":               {[]string{"Cookie", "theme=dark; lang=pt-BR"}, []string{`lang="pt-BR"`, `data-theme="dark"`}},
		"asked for":            {[]string{"Accept-Language", "fr-FR, id-ID;q=0.9, en;q=0.8"}, []string{`lang="id"`}},
		"Portuguese of Europe": {[]string{"Accept-Language", "pt-PT"}, []string{`lang="pt-BR"`}},
		"what there is not": {[]string{"Cookie", `theme="><script>; lang=xx`, "Accept-Language", "zz"}, []string{`lang="en"`,
			`data-theme="auto"`}},
		"chosen before askings": {[]string{"Cookie", "lang=en", "Accept-Language", "id"}, []string{`lang="en"`}},
	} {
		t.Run(name, func(t *testing.T) {
			page := string(e.ask(http.MethodGet, "/console/login", "", c.headers...).Expect(http.StatusOK).Body)
			for _, want := range c.want {
				if !strings.Contains(page, want) {
					t.Errorf("the page lacks %s", want)
				}
			}
		})
	}
	page := string(e.ask(http.MethodGet, "/console/login", "").Body)
	build := regexp.MustCompile(`data-build="([0-9a-f]{12})"`).FindStringSubmatch(page)
	meta := regexp.MustCompile(`<meta name="parley" content="([^"]*)">`).FindStringSubmatch(page)
	if build == nil || meta == nil {
		t.Fatalf("the page is %s", page)
	}
	var begin map[string]any
	if err := json.Unmarshal([]byte(strings.ReplaceAll(meta[1], "&#34;", `"`)), &begin); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"base": "/console/" + build[1] + "/", "version": "", "mode": "", "band": "plain",
		"lang": "en"} {
		if begin[key] != want {
			t.Errorf("%s is %v, want %v", key, begin[key], want)
		}
	}
	for _, banned := range []string{`(?i)https?://`, `(?i)<style`, `(?i)\sstyle=`, `(?i)\son[a-z]+=`, `(?i)<script>`} {
		if found := regexp.MustCompile(banned).FindString(page); found != "" {
			t.Errorf("the page contains %q", found)
		}
	}
	for _, r := range regexp.MustCompile(`(?:src|href)="([^"#]+)"`).FindAllStringSubmatch(page, -1) {
		if r[1] == "/console/manifest.webmanifest" {
			continue // of the app, which outlives this version: see TestManifest
		}
		a := e.ask(http.MethodGet, r[1], "", "Accept-Encoding", "gzip").Expect(http.StatusOK)
		if got := a.Header.Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
			t.Errorf("%s may be kept by %q", r[1], got)
		}
		if a.Header.Get("Content-Encoding") != "gzip" || a.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", r[1], a.Header)
		}
	}
	for _, path := range []string{"/console/000000000000/app.js", "/console/" + build[1] + "/nothing.js", "/console/" + build[1] +
		"/index.html", "/console/" + build[1] + "/README.md", "/console/" + build[1] + "/"} {
		if a := e.ask(http.MethodGet, path, "").Expect(http.StatusNotFound); a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("that %s is not there may be kept", path)
		}
	}
}

// TestHeaders looks at what every answer of the console carries, whatever became of the request.
func TestHeaders(t *testing.T) {
	t.Parallel()
	e := start(t)
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/console", 303}, {"POST", "/console/", 405}, {"GET", "/console/", 200}, {"GET", "/console/nothing", 404},
		{"GET", "/console/login", 200},
		{"GET", "/console/session", 405}, {"DELETE", "/console/session", 200}, {"POST", "/console/session", 400},
		{"GET", "/console/api/manage/server", 401},
	} {
		a := e.ask(c.method, c.path, "").Expect(c.status)
		for header, want := range map[string]string{"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
			"Referrer-Policy": "no-referrer"} {
			if got := a.Header.Get(header); got != want {
				t.Errorf("%s %s: %s is %q, want %q", c.method, c.path, header, got, want)
			}
		}
		if !strings.Contains(a.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") || a.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s %s: %v", c.method, c.path, a.Header)
		}
		if c.status == 405 && (a.Text("message") == "" || a.Header.Get("Allow") == "") {
			t.Errorf("%s %s: %v, %s", c.method, c.path, a.Header, a.Body)
		}
	}
}

// TestManifest checks the manifest of the installed app.
func TestManifest(t *testing.T) {
	t.Parallel()
	e := start(t)
	for language, phone := range map[string]string{"en": "Phone", "id-ID": "Ponsel", "pt-BR": "Celular"} {
		a := e.ask(http.MethodGet, "/console/manifest.webmanifest", "", "Accept-Language", language, "Sec-Fetch-Site", "same-origin",
			"Cookie", e.session()).Expect(http.StatusOK)
		for header, want := range map[string]string{"Content-Type": "application/manifest+json", "Cache-Control": "no-cache",
			"X-Content-Type-Options": "nosniff"} {
			if got := a.Header.Get(header); got != want {
				t.Errorf("%s is %q, want %q", header, got, want)
			}
		}
		for path, want := range map[string]string{
			"name": "Parley", "id": "/console/", "start_url": "/console/", "scope": "/console/", "display": "standalone",
			"theme_color": "#f5b83d", "shortcuts.0.name": phone, "shortcuts.0.url": "/console/phone?window=1",
		} {
			if got := a.Text(path); got != want {
				t.Errorf("in %s %s is %q, want %q", language, path, got, want)
			}
		}
		drawn := e.ask(http.MethodGet, a.Text("icons.0.src"), "").Expect(http.StatusOK)
		if kind := drawn.Header.Get("Content-Type"); kind != a.Text("icons.0.type") {
			t.Errorf("the icon is %s", kind)
		}
	}
	strangers := e.ask(http.MethodGet, "/console/manifest.webmanifest", "").Expect(http.StatusOK)
	if colour := strangers.Text("theme_color"); colour != "#5b6672" || !strings.HasSuffix(strangers.Text("icons.0.src"), "/icon_plain.svg") {
		t.Errorf("strangers get %s", strangers.Body)
	}
	e.ask(http.MethodPost, "/console/manifest.webmanifest", "").Expect(http.StatusMethodNotAllowed)
}

// TestGoCookieJar is a program that signs in as a browser does, with the cookies that it is given.
func TestGoCookieJar(t *testing.T) {
	t.Parallel()
	e := start(t)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	for _, do := range []func() (*http.Response, error){
		func() (*http.Response, error) {
			return client.Post(e.URL+"/console/session", "application/json", strings.NewReader(`{"ticket":"`+e.ticket(parley.SignInTicket,
				time.Now(), time.Minute)+`"}`))
		},
		func() (*http.Response, error) { return client.Get(e.URL + "/console/api/manage/tokens") },
	} {
		resp, err := do()
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: answer %d", resp.Request.URL.Path, resp.StatusCode)
		}
	}
}
