package contract_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/internal/parleytest"
	"parley/internal/wire"
)

const (
	codeRequest  = "/api/otp/code/request"
	codeValidate = "/api/otp/code/validate"
)

var lastBuyer atomic.Int64

// newBuyer is a number that nobody sent a code to yet.
func newBuyer() string { return fmt.Sprintf("62899%08d", lastBuyer.Add(1)) }

// askCode asks for a code and demands the form of the answer.
func askCode(e *parleytest.Env, body object, options ...parleytest.Option) *parleytest.Response {
	e.T.Helper()
	a := e.Post(codeRequest, toJSON(e.T, body), options...).Expect(http.StatusOK)
	if got := jsonKeys(a, ""); !slices.Equal(got, []string{"data", "message", "success"}) || !a.Bool("success") || a.Text("message") == "" {
		e.T.Errorf("the envelope is %s", a.Body)
	}
	if got := jsonKeys(a, "data"); !slices.Equal(got, []string{"contact_id", "expired_at", "id", "status", "timestamp"}) ||
		a.Text("data.status") != "PENDING" {
		e.T.Errorf("the data is %s", a.Body)
	}
	return a
}

// sentCode asks for a code and reads it on the phone.
func sentCode(e *parleytest.Env, number string, more object, options ...parleytest.Option) (code string, a *parleytest.Response) {
	e.T.Helper()
	body := object{"contact_id": number + "@c.us"}
	for name, value := range more {
		body[name] = value
	}
	before := len(e.Phone(number).Messages())
	a = askCode(e, body, options...)
	e.Eventually("the code arrives", func() bool { return len(e.Phone(number).Messages()) > before })
	arrived := e.Phone(number).Messages()[before]
	if len(arrived.Codes) != 1 {
		e.T.Fatalf("the phone shows %q, with the codes %q", arrived.Body, arrived.Codes)
	}
	shown := string(a.Body)
	for _, path := range []string{"data.id", "data.contact_id", "data.expired_at", "data.timestamp"} {
		shown = strings.ReplaceAll(shown, a.Text(path), "") // four digits may be in there by chance
	}
	if strings.Contains(shown, arrived.Codes[0]) {
		e.T.Errorf("the answer tells the code: %s", a.Body)
	}
	return arrived.Codes[0], a
}

// TestContractCodeRequest holds POST /otp/code/request to what is promised of it.
func TestContractCodeRequest(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	shop := e.CreateChannel("shop")
	t.Run("message", func(t *testing.T) { codeMessage(t, e) })
	t.Run("alphabets", func(t *testing.T) { codeAlphabets(t, e) })
	t.Run("fields", func(t *testing.T) { codeFields(t, e) })
	t.Run("names", func(t *testing.T) { codeNames(t, e) })
	t.Run("callers", func(t *testing.T) { codeCallers(t, e, shop) })
	t.Run("limits", func(t *testing.T) { codeLimits(t, e) })
	t.Run("limit over channels", func(t *testing.T) { codeLimitOverChannels(t, e) })
	t.Run("unsent", func(t *testing.T) { codeUnsent(t, e) })
	t.Run("hidden", func(t *testing.T) { codeHidden(t, e) })
	t.Run("overtakes", func(t *testing.T) { codeOvertakes(t, e) })
	t.Run("too late to send", func(t *testing.T) { codeTooLate(t, e) })
	t.Run("waits", func(t *testing.T) { codeWaits(t, e) })
	t.Run("idempotency", func(t *testing.T) { codeIdempotency(t, e) })
}

func codeMessage(t *testing.T, e *parleytest.Env) {
	for name, c := range map[string]struct {
		more object
		want string
		life time.Duration
	}{
		"defaults": {object{}, `^\*([0-9]{6})\* is your Demo verification code\. It expires in 5 minutes\. Do not share it with anyone\.$`,
			300 * time.Second},
		"shortest life": {object{"expires": 30}, `expires in 30 seconds\.`, 30 * time.Second},
		"seconds":       {object{"expires": 119}, `expires in 119 seconds\.`, 119 * time.Second},
		"minutes":       {object{"expires": 120}, `expires in 2 minutes\.`, 120 * time.Second},
		"no fraction":   {object{"expires": 179}, `expires in 2 minutes\.`, 179 * time.Second},
		"longest life":  {object{"expires": 3600}, `expires in 60 minutes\.`, 3600 * time.Second},
		"a name":        {object{"name": "Toko Ayu & Co."}, `^\*[0-9]{6}\* is your Toko Ayu & Co\. verification code\.`, 300 * time.Second},
		"nulls": {object{"length": nil, "useNumber": nil, "useLetter": nil, "allCapital": nil, "name": nil, "expires": nil},
			`^\*[0-9]{6}\* is your Demo `, 300 * time.Second},
	} {
		part(t, e, name, func(e *parleytest.Env) {
			number := newBuyer()
			_, a := sentCode(e, number, c.more)
			if text := e.Phone(number).Messages()[0].Body; !regexp.MustCompile(c.want).MatchString(text) {
				e.T.Errorf("the phone got %q", text)
			}
			if a.Text("data.contact_id") != number+"@c.us" || !regexp.MustCompile(`^otc_[0-9a-f]{24}$`).MatchString(a.Text("data.id")) {
				e.T.Errorf("the answer is %s", a.Body)
			}
			expectStamp(a, "data.timestamp")
			made, _ := time.Parse(time.RFC3339, a.Text("data.timestamp"))
			if ends, _ := time.Parse(time.RFC3339, a.Text("data.expired_at")); ends.Sub(made) != c.life {
				e.T.Errorf("it is good for %s: %s", ends.Sub(made), a.Body)
			}
		})
	}
	part(t, e, "the other spelling is the same person", func(e *parleytest.Env) {
		number := newBuyer()
		if a := askCode(e, object{"contact_id": number + "@s.us"}); a.Text("data.contact_id") != number+"@c.us" {
			e.T.Errorf("the answer is %s", a.Body)
		}
		e.Post(codeRequest, `{"contact_id":"`+number+`@c.us"}`).Expect(http.StatusTooManyRequests)
	})
}

func codeAlphabets(t *testing.T, e *parleytest.Env) {
	for _, c := range []struct {
		number, letter, capital any
		want                    string
	}{
		{nil, nil, nil, "[0-9]"},
		{true, false, false, "[0-9]"},
		{true, false, true, "[0-9]"},
		{true, true, false, "[2-9a-hjkmnp-z]"},
		{true, true, true, "[2-9A-HJKMNP-Z]"},
		{nil, true, nil, "[2-9a-hjkmnp-z]"},
		{false, true, false, "[a-hjkmnp-z]"},
		{false, true, true, "[A-HJKMNP-Z]"},
	} {
		for _, length := range []int{4, 5, 6} {
			part(t, e, fmt.Sprintf("%v %v %v of %d", c.number, c.letter, c.capital, length), func(e *parleytest.Env) {
				number := newBuyer()
				code, _ := sentCode(e, number, object{"useNumber": c.number, "useLetter": c.letter, "allCapital": c.capital, "length": length})
				if !regexp.MustCompile(`^` + c.want + `{` + strconv.Itoa(length) + `}$`).MatchString(code) {
					e.T.Errorf("the code is %q", code)
				}
				wantTry(e, number, strings.ToLower(code[:2])+strings.ToUpper(code[2:]), "APPROVED", 0)
			})
		}
	}
}

func codeFields(t *testing.T, e *parleytest.Env) {
	good := func() object { return object{"contact_id": newBuyer() + "@c.us"} }
	for field, values := range map[string][]any{
		"contact_id": {nil, 7, true, []any{}, object{}, "", "1234@c.us", "6281234567890", "6281234567890@lid", "+6281234567890@c.us",
			"120363020000000001@g.us", "status@broadcast", "6281234567890@s.whatsapp.net"},
		"length":     {0, 1, 3, 7, -1, 1e9, 1e300, 4.5, "4", "", true, []any{4}, object{}},
		"useNumber":  {"true", 1, 0, "", []any{}, object{}},
		"useLetter":  {"true", 1, 0, "", []any{}, object{}},
		"allCapital": {"true", 1, 0, "", []any{}, object{}},
		"expires":    {0, 29, 3601, -30, 300.5, 30.0000001, 1e300, -1e300, "300", "", true, []any{}, object{}},
		"name":       {"", 7, true, []any{}, object{}, strings.Repeat("a", 61), strings.Repeat("é", 61)},
	} {
		for _, value := range values {
			part(t, e, fmt.Sprintf("%s %v", field, value), func(e *parleytest.Env) {
				body := good()
				body[field] = value
				expectInvalid(e.Post(codeRequest, toJSON(e.T, body)), field)
			})
		}
	}
	for _, raw := range []string{`"expires":300.0`, `"expires":3e2`, `"length":6.0`, `"length":4e0`, `"expires":30`, `"expires":3600`} {
		part(t, e, raw, func(e *parleytest.Env) {
			e.Post(codeRequest, `{"contact_id":"`+newBuyer()+`@c.us",`+raw+`}`).Expect(http.StatusOK)
		})
	}
	part(t, e, "neither digits nor letters", func(e *parleytest.Env) {
		body := good()
		body["useNumber"] = false
		expectInvalid(e.Post(codeRequest, toJSON(e.T, body)), "useNumber", "useLetter")
		body["useLetter"] = false
		expectInvalid(e.Post(codeRequest, toJSON(e.T, body)), "useNumber", "useLetter")
	})
	part(t, e, "everything wrong at once", func(e *parleytest.Env) {
		expectInvalid(e.Post(codeRequest, `{"length":9,"useNumber":"x","useLetter":1,"allCapital":"","name":"","expires":1}`),
			"contact_id", "length", "useNumber", "useLetter", "allCapital", "name", "expires")
	})
	part(t, e, "unknown fields", func(e *parleytest.Env) { askCode(e, good().with("code", "000000").with("Length", "x")) })
	part(t, e, "no object", func(e *parleytest.Env) {
		for _, body := range []string{`[]`, `"x"`, `{`, ``, `{"contact_id":"6281234567890@c.us","contact_id":"6281234567891@c.us"}`} {
			e.Post(codeRequest, body).Expect(http.StatusBadRequest)
		}
	})
}

// codeNames tries what an application may be called in a message that its recipient trusts.
func codeNames(t *testing.T, e *parleytest.Env) {
	for _, name := range []string{"A", strings.Repeat("é", 60), strings.Repeat("😀", 60), "St. Mary", "A.B.", "A.B.C", "Booking.com",
		"Ayu...", "v2.0", "Studio 54", "7-Eleven", "متجر", "Café “Zur Post”"} {
		part(t, e, "good "+name, func(e *parleytest.Env) {
			number := newBuyer()
			askCode(e, object{"contact_id": number + "@c.us", "name": name})
			if text := e.Phone(number).Expect("verification code").Body; !strings.Contains(text, " is your "+name+" verification code") {
				e.T.Errorf("the phone got %q", text)
			}
		})
	}
	for _, name := range []string{"https://evil.example", "HTTP:x", "www.evil.example", "a://b", "Acme\nPay 5", "Acme\u202emca",
		"Acme\u0000", "Acme\u0007", "12345", "1 2 3 4 5", "Acme ١٢٣٤٥"} {
		part(t, e, fmt.Sprintf("bad %q", name), func(e *parleytest.Env) {
			number := newBuyer()
			a := e.Post(codeRequest, toJSON(e.T, object{"contact_id": number + "@c.us", "name": name}))
			if strings.Contains(name, "\x00") {
				a.Expect(http.StatusBadRequest) // no body may hold one
				return
			}
			expectInvalid(a, "name")
			// What was refused counts towards no limit.
			askCode(e, object{"contact_id": number + "@c.us"})
		})
	}
}

func codeCallers(t *testing.T, e *parleytest.Env, shop string) {
	body := func() string { return `{"contact_id":"` + newBuyer() + `@c.us"}` }
	part(t, e, "no token", func(e *parleytest.Env) {
		expectUnauthorized(e.Post(codeRequest, body(), parleytest.As("")))
		expectUnauthorized(e.Post(codeValidate, body(), parleytest.As("")))
	})
	part(t, e, "other kinds of tokens", func(e *parleytest.Env) {
		e.Post(codeRequest, body(), parleytest.As(e.Admin)).Expect(http.StatusForbidden)
		e.Post(codeValidate, body(), parleytest.As(e.Admin)).Expect(http.StatusForbidden)
		e.Post(codeRequest, body(), parleytest.On("shop")).Expect(http.StatusForbidden)
		e.Post(codeRequest, body(), parleytest.As(e.Global)).Expect(http.StatusBadRequest)
		e.Post(codeRequest, body(), parleytest.As(e.Global), parleytest.On("nowhere")).Expect(http.StatusBadRequest)
	})
	part(t, e, "a Global token on a channel", func(e *parleytest.Env) {
		number := newBuyer()
		askCode(e, object{"contact_id": number + "@c.us"}, parleytest.As(e.Global), parleytest.On("shop"))
		code := e.PhoneFor(shop, number).Expect("is your shop verification code").Codes[0]
		// Another channel knows nothing of it, and cannot use it up.
		wantTry(e, number, code, "INVALID", 0)
		wantTry(e, number, code, "APPROVED", 0, parleytest.As(shop))
	})
	part(t, e, "a channel that cannot send", func(e *parleytest.Env) {
		token := e.CreateChannel("closed")
		number := newBuyer()
		code, _ := requestCode(e, token, number)
		e.Post("/api/manage/channels/closed/stop", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
		e.Post(codeRequest, body(), parleytest.As(token)).ExpectError(http.StatusBadRequest, "STOPPED")
		wantTry(e, number, code, "APPROVED", 0, parleytest.As(token)) // checking needs no network
	})
	part(t, e, "a contact that is not allowed", func(e *parleytest.Env) {
		token := e.CreateChannel("picky")
		e.Call("PATCH", "/api/manage/channels/picky", `{"settings":{"allow_only":["6281200000001@c.us"]}}`, parleytest.As(e.Admin)).
			Expect(http.StatusOK)
		e.Post(codeRequest, body(), parleytest.As(token)).ExpectError(http.StatusForbidden, "allow")
		askCode(e, object{"contact_id": "6281200000001@c.us"}, parleytest.As(token))
	})
}

// requestCode asks for a code on another channel and reads it there.
func requestCode(e *parleytest.Env, token, number string) (code string, a *parleytest.Response) {
	e.T.Helper()
	a = askCode(e, object{"contact_id": number + "@c.us"}, parleytest.As(token))
	return e.PhoneFor(token, number).Expect("verification code").Codes[0], a
}

// expectLimited demands 429 with all that tells when to come back, and returns the seconds.
func expectLimited(a *parleytest.Response, policy string) int {
	a.T.Helper()
	a.ExpectError(http.StatusTooManyRequests, " ")
	after, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if err != nil || after < 1 {
		a.T.Errorf("Retry-After is %q", a.Header.Get("Retry-After"))
	}
	name, _, _ := strings.Cut(policy, ";")
	if got := a.Header.Get("RateLimit-Policy"); got != policy {
		a.T.Errorf("RateLimit-Policy is %s, want %s", got, policy)
	}
	if got, want := a.Header.Get("RateLimit"), fmt.Sprintf("%s;r=0;t=%d", name, after); got != want {
		a.T.Errorf("RateLimit is %s, want %s", got, want)
	}
	return after
}

func advance(e *parleytest.Env, seconds int, options ...parleytest.Option) {
	e.T.Helper()
	e.Post("/api/sandbox/clock", fmt.Sprintf(`{"advance":%d}`, seconds), options...).Expect(http.StatusOK)
}

func codeLimits(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("limited"))
	number := newBuyer()
	body := `{"contact_id":"` + number + `@c.us"}`
	for n := range 5 {
		a := e.Post(codeRequest, body, as).Expect(http.StatusOK)
		if policy, left := a.Header.Get("RateLimit-Policy"), a.Header.Get("RateLimit"); policy != `"otp-send";q=5;w=600` ||
			!strings.HasPrefix(left, fmt.Sprintf(`"otp-send";r=%d;t=`, 4-n)) {
			t.Errorf("after %d requests: %s and %s", n+1, policy, left)
		}
		if n == 4 {
			break
		}
		after := expectLimited(e.Post(codeRequest, body, as), `"otp-send";q=1;w=20`)
		if after > 20 || after < 15 {
			t.Errorf("Retry-After is %d", after)
		}
		// A wrong body is reported first, even if the request is too early.
		expectInvalid(e.Post(codeRequest, `{"contact_id":"`+number+`@c.us","length":9}`, as), "length")
		advance(e, after, as) // waiting as long as was said is enough
	}
	e.Restart()
	after := expectLimited(e.Post(codeRequest, body, as), `"otp-send";q=5;w=600`)
	if after > 530 || after < 500 {
		t.Errorf("Retry-After is %d", after)
	}
	askCode(e, object{"contact_id": newBuyer() + "@c.us"}, as) // others are free
	askCode(e, object{"contact_id": number + "@c.us"})         // as are other channels
	advance(e, after, as)
	e.Post(codeRequest, body, as).Expect(http.StatusOK)
}

func codeLimitOverChannels(t *testing.T, e *parleytest.Env) {
	number := newBuyer()
	body := `{"contact_id":"` + number + `@c.us"}`
	var all []parleytest.Option
	for i := range 5 {
		all = append(all, parleytest.As(e.CreateChannel(fmt.Sprintf("many%d", i))))
	}
	for range 4 {
		for _, as := range all {
			e.Post(codeRequest, body, as).Expect(http.StatusOK)
			advance(e, 20, as)
		}
	}
	after := expectLimited(e.Post(codeRequest, body), `"otp-contact";q=20;w=600`)
	if after > 540 || after < 500 { // each channel's own clock is 80 seconds on
		t.Errorf("Retry-After is %d", after)
	}
	advance(e, after, all[0])
	e.Post(codeRequest, body).Expect(http.StatusOK)
}

// codeUnsent asks for codes to numbers that do not get any: nobody can tell from the answer.
func codeUnsent(t *testing.T, e *parleytest.Env) {
	for name, number := range map[string]string{"not on the network": "99912345670", "blocked": "99912345672"} {
		part(t, e, name, func(e *parleytest.Env) {
			askCode(e, object{"contact_id": number + "@c.us"})
			wantTry(e, number, "000000", "INVALID", 4) // unless that is it, once in a million
		})
	}
}

// codeHidden looks for the code where it must not be.
func codeHidden(t *testing.T, e *parleytest.Env) {
	number := newBuyer()
	code, _ := sentCode(e, number, object{"useLetter": true, "allCapital": true, "name": "Acme"})
	history := e.Get("/api/chat/detail?contact_id=" + number + "@c.us").Expect(http.StatusOK)
	want := "*••••••* is your Acme verification code. It expires in 5 minutes. Do not share it with anyone."
	if got := history.Text("data.0.body"); got != want || history.Text("data.0.type") != "text" {
		t.Errorf("history shows %s", history.Body)
	}
	wantTry(e, number, code, "APPROVED", 0)
	if strings.Contains(e.Log.String(), code) {
		t.Error("the log holds the code")
	}
	events, _, err := openStore(e).Events(t.Context(), 0, anyEvent, 10_000)
	if err != nil || len(events) == 0 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for _, event := range events {
		if body, err := wire.EncodeEvent(&event, parley.MediaLinks{}.Plain, nil); err != nil || strings.Contains(string(body), code) {
			t.Errorf("an event holds the code: %s, %v", body, err)
		}
	}
}

// codeOvertakes has a code go ahead of what waits.
func codeOvertakes(t *testing.T, e *parleytest.Env) {
	token := paced(e, "slow")
	as, number := parleytest.As(token), newBuyer()
	for n := range 20 {
		submit(e, "text", object{"contact_id": number + "@c.us", "message": fmt.Sprint("text ", n)}, as, parleytest.With("Prefer",
			"respond-async")).Expect(http.StatusOK)
	}
	askCode(e, object{"contact_id": number + "@c.us", "expires": 3600}, as)
	setPace(e, "slow", "0s")
	phone := e.PhoneFor(token, number)
	phone.Expect("text 19")
	if first := phone.Messages()[0].Body; !strings.Contains(first, "verification code") {
		t.Errorf("the first to arrive is %q", first)
	}
}

// codeTooLate has the connection break: a code that expires meanwhile is never sent.
func codeTooLate(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("broken"))
	status := func() string { return e.Get("/api/channel/health", as).Text("data.status") }
	number := newBuyer()
	for ; ; number = newBuyer() { // again, should the connection be back too soon: it takes a second
		order(e, `{"fault":"drop_socket"}`, as)
		submit(e, "text", object{"contact_id": "6281234567890@c.us", "message": "x"}, as, parleytest.With("Prefer", "respond-async")).
			Expect(http.StatusOK)
		e.Eventually("it reconnects", func() bool { return status() == "RECONNECTING" })
		askCode(e, object{"contact_id": number + "@c.us", "expires": 30}, as)
		advance(e, 30, as)
		if status() == "RECONNECTING" {
			break
		}
	}
	wantTry(e, number, "000000", "EXPIRED", 0, as)
	e.Eventually("it works again", func() bool { return status() == "WORKING" })
	expectSent(submit(e, "text", object{"contact_id": number + "@c.us", "message": "later"}, as))
	list := e.Get("/api/sandbox/phones/"+number+"/messages", as).Expect(http.StatusOK)
	if got := column(list, "body"); !slices.Equal(got, []string{"later"}) {
		t.Errorf("the phone got %q", got)
	}
	history := e.Get("/api/chat/detail?contact_id="+number+"@c.us", as).Expect(http.StatusOK)
	wantValue(t, history, "data.1.status", "FAILED")
	wantValue(t, history, "data.1.error.code", "expired")
}

// codeWaits has codes wait to be sent over a restart. One that was replaced meanwhile is not sent.
func codeWaits(t *testing.T, e *parleytest.Env) {
	token := paced(e, "patient")
	as := parleytest.As(token)
	number := newBuyer()
	first := askCode(e, object{"contact_id": number + "@c.us", "expires": 3600}, as)
	advance(e, 20, as)
	second := askCode(e, object{"contact_id": number + "@c.us", "expires": 3600}, as)
	e.Restart()
	setPace(e, "patient", "0s")
	phone := e.PhoneFor(token, number)
	code := phone.Expect("verification code").Codes[0]
	if a := wantTry(e, number, code, "APPROVED", 0, as); a.Text("data.id") != second.Text("data.id") ||
		a.Text("data.id") == first.Text("data.id") {
		t.Errorf("got %s", a.Body)
	}
	expectSent(submit(e, "text", object{"contact_id": number + "@c.us", "message": "later"}, as))
	if got := bodiesAt(phone); len(got) != 2 || got[1] != "text later" {
		t.Errorf("the phone got %q", got)
	}
	history := e.Get("/api/chat/detail?contact_id="+number+"@c.us", as).Expect(http.StatusOK)
	wantValue(t, history, "data.2.status", "FAILED")
}

func codeIdempotency(t *testing.T, e *parleytest.Env) {
	number := newBuyer()
	body := `{"contact_id":"` + number + `@c.us"}`
	key := parleytest.With("Idempotency-Key", "code-"+number)
	first := e.Post(codeRequest, body, key).Expect(http.StatusOK)
	again := e.Post(codeRequest, body, key).Expect(http.StatusOK) // and not 429
	if string(first.Body) != string(again.Body) || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%s, then %s with %v", first.Body, again.Body, again.Header)
	}
	expectInvalid(e.Post(codeRequest, `{"contact_id":"`+newBuyer()+`@c.us"}`, key), "Idempotency-Key")
	e.Phone(number).Expect("verification code")
	if n := len(e.Phone(number).Messages()); n != 1 {
		t.Errorf("the phone got %d messages", n)
	}
	// What was refused is not kept: the same key may be tried again.
	other := parleytest.With("Idempotency-Key", "other-"+number)
	expectLimited(e.Post(codeRequest, body, other), `"otp-send";q=1;w=20`)
	advance(e, 20)
	if a := e.Post(codeRequest, body, other).Expect(http.StatusOK); a.Header.Get("Idempotent-Replayed") != "" {
		t.Errorf("headers: %v", a.Header)
	}
}
