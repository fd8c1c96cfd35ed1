package api

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/api/limit"
	"parley/internal/media"
	"parley/internal/otp/rule"
)

// retryAfter is the wait that the response to an error tells.
func retryAfter(t *testing.T, err error) time.Duration {
	t.Helper()
	for _, f := range refusal(err).header {
		if f.key == "Retry-After" {
			seconds, err := strconv.Atoi(f.value)
			if err != nil || seconds < 1 {
				t.Fatalf("Retry-After is %q", f.value)
			}
			return time.Duration(seconds) * time.Second
		}
	}
	t.Fatalf("no Retry-After for %v", err)
	return 0
}

// TestWaitingAsToldIsEnough spends each kind of limit a hundred times, at odd moments, waits exactly as
// long as the response says, and is allowed. Every limit that goes by time is among them.
func TestWaitingAsToldIsEnough(t *testing.T) {
	s := &server{}
	const token = parley.TokenID("tok")
	address := netip.MustParseAddr("192.0.2.1")
	for name, c := range map[string]struct {
		limited func()
		use     func() error
	}{
		"failed authentications": {
			func() { s.failures = limit.NewBuckets[netip.Addr](authForgiven, authFailures) },
			func() error {
				if q := s.failures.Spend(address, time.Now()); q.Refused {
					return limit.Exceeded(q, "No.")
				}
				return nil
			}},
		"three requests a second": {
			func() { s.perToken = limit.NewBuckets[parley.TokenID](time.Second/3, 6) },
			func() error {
				return (&route{router: &router{server: s}}).withinLimit(&request{token: parley.Token{ID: token}})
			}},
		"one request in a while": {
			func() { s.perToken = limit.NewBuckets[parley.TokenID](14_285_714_285, 1) },
			func() error {
				return (&route{router: &router{server: s}}).withinLimit(&request{token: parley.Token{ID: token}})
			}},
		"bytes fetched": {
			func() {
				s.fetched = limit.NewWindow[parley.TokenID](1000, time.Minute)
			},
			func() error {
				err := s.mayFetch(token, []outgoing{{source: new(media.Source)}})
				if err == nil {
					s.fetched.Add(token, rand.Int64N(400), time.Now())
				}
				return err
			}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.limited()
				for range 100 {
					var err error
					for tries := 0; err == nil; tries++ {
						if tries > 10_000 {
							t.Fatal("nothing is ever refused")
						}
						err = c.use()
						time.Sleep(time.Duration(rand.Int64N(50_000)) + 1) // far less than comes back
					}
					time.Sleep(retryAfter(t, err))
					if err := c.use(); err != nil {
						t.Fatalf("after the time in Retry-After: %v, again in %s", err, retryAfter(t, err))
					}
				}
			})
		})
	}
}

// TestBucketsAreIndependent has one address fail with many tokens and many addresses fail with one.
func TestBucketsAreIndependent(t *testing.T) {
	e := newEnv(t, func(c *Config) { c.AuthFailures = 0 })
	ask := func(from int, token string) *httptest.ResponseRecorder {
		hr := httptest.NewRequest("GET", "/api/channel/health", nil)
		hr.RemoteAddr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, byte(from >> 8), byte(from)}), 1000).String()
		hr.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		e.handler.ServeHTTP(w, hr)
		return w
	}
	for i := range 100 { // one address guesses
		if w := ask(1, fmt.Sprintf("guess%d", i)); (w.Code == 429) != (i >= authFailures) {
			t.Fatalf("guess %d: %d", i+1, w.Code)
		}
	}
	for i := range 100 { // many addresses guess the same, once each: nobody else pays for it
		if w := ask(100+i, "guess"); w.Code != 401 {
			t.Fatalf("address %d: %d", i, w.Code)
		}
	}
	if w := ask(2, e.main); w.Code != 200 {
		t.Errorf("a good token from an address that did nothing: %d", w.Code)
	}
	if w := ask(1, e.main); w.Code != 200 {
		t.Errorf("a good token from the guesser's address: %d", w.Code)
	}
	refused := ask(1, "guess")
	if refused.Code != 429 || refused.Header().Get("Retry-After") == "" {
		t.Errorf("a further guess: %d %v", refused.Code, refused.Header())
	}
	for _, name := range []string{"RateLimit", "RateLimit-Policy"} {
		if value := refused.Header().Get(name); value != "" {
			t.Errorf("a caller who is not known learns %s: %s", name, value)
		}
	}
}

// TestTokenLimitIsTold reads the header fields of a token's general limit, down to nothing.
func TestTokenLimitIsTold(t *testing.T) {
	e := newEnv(t, func(c *Config) { c.RequestsPerSecond = 2 })
	for _, left := range []string{"3", "2", "1", "0"} {
		r := e.call("GET", "/api/channel/health", e.main, nil)
		r.want(t, 200)
		policy, limit := toList(t, r.Header.Get("RateLimit-Policy")), toList(t, r.Header.Get("RateLimit"))
		if len(policy) != 1 || policy[0].name != "api" || policy[0].params["q"] != "4" || policy[0].params["w"] != "2" {
			t.Errorf("policy %s", r.Header.Get("RateLimit-Policy"))
		}
		if len(limit) != 1 || limit[0].name != "api" || limit[0].params["r"] != left || limit[0].params["t"] != "1" {
			t.Errorf("limit %s, want %s left", r.Header.Get("RateLimit"), left)
		}
	}
	r := e.call("POST", "/api/send-message/text", e.main, m{})
	if r.StatusCode != 429 || r.Header.Get("RateLimit") != `"api";r=0;t=1` || r.Header.Get("Retry-After") != "1" || len(r.json) != 2 {
		t.Errorf("%d %v %s", r.StatusCode, r.Header, r.text)
	}
	for _, name := range []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
		if r.Header.Get(name) != "" {
			t.Errorf("%s is there", name)
		}
	}
	if r := e.call("GET", "/api/channel/health", e.second, nil); r.Header.Get("RateLimit") != `"api";r=3;t=1` {
		t.Errorf("another token: %s", r.Header.Get("RateLimit"))
	}
}

// TestOnlyTheTightestIsTold compares limits.
func TestOnlyTheTightestIsTold(t *testing.T) {
	general := limit.Quota{Name: "general", Most: 100, Left: 50, Wait: time.Second}
	for _, c := range []struct {
		other limit.Quota
		want  string
	}{
		{limit.Quota{Name: "other", Most: 5, Left: 4}, "general"},
		{limit.Quota{Name: "other", Most: 5, Left: 2}, "other"},
		{limit.Quota{Name: "other", Most: 5}, "other"},
		{limit.Quota{Name: "other", Most: 200 << 20, Left: 199 << 20}, "general"},
	} {
		for _, order := range [][]limit.Quota{{general, c.other}, {c.other, general}} {
			r := &request{}
			r.noteQuota(order[0])
			r.noteQuota(order[1])
			if r.quota.Name != c.want {
				t.Errorf("%+v: %s is shown", order, r.quota.Name)
			}
		}
	}
	r := &request{}
	r.noteQuota(limit.Quota{Name: "short", Most: 1, Wait: time.Second})
	r.noteQuota(limit.Quota{Name: "long", Most: 1, Wait: time.Minute})
	r.noteQuota(limit.Quota{Name: "middle", Most: 1, Wait: time.Second})
	if r.quota.Name != "long" {
		t.Errorf("%s is shown, though another forbids for longer", r.quota.Name)
	}
	// The limit that refused is shown, however little is left of others.
	err := fmt.Errorf("wrapped: %w", limit.Exceeded(limit.Quota{Name: "refused", Most: 5, Wait: 90 * time.Second}, "No."))
	if a := refusal(err); fmt.Sprint(a.header) != `[{Retry-After 90} {RateLimit-Policy "refused";q=5} {RateLimit "refused";r=0;t=90}]` {
		t.Errorf("the header is %v", a.header)
	}
	if _, ok := toQuota(errors.New("something else")); ok {
		t.Error("any error is a limit")
	}
}

// item is one member of a list of structured fields.
type item struct {
	name   string
	params map[string]string
}

// toList reads a header field as RFC 9651 has lists of strings with parameters, and takes nothing else.
func toList(t testing.TB, text string) (items []item) {
	t.Helper()
	rest := text
	eat := func(form string) string {
		t.Helper()
		found := regexp.MustCompile(`^(?:` + form + `)`).FindString(rest)
		if found == "" {
			t.Fatalf("%q is no structured field: %q should begin with %s", text, rest, form)
		}
		rest = rest[len(found):]
		return found
	}
	const str, integer = `"(?:[ !#-\[\]-~]|\\["\\])*"`, `-?[0-9]{1,15}`
	for {
		one := item{name: strings.Trim(eat(str), `"`), params: map[string]string{}}
		for strings.HasPrefix(rest, ";") {
			eat(`; *`)
			key := eat(`[a-z*][a-z0-9_.*-]*`)
			eat(`=`)
			if _, twice := one.params[key]; twice {
				t.Fatalf("%q has %s twice", text, key)
			}
			one.params[key] = strings.Trim(eat(str+"|"+integer), `"`)
		}
		items = append(items, one)
		if rest == "" {
			return items
		}
		eat(`[ \t]*,[ \t]*`)
	}
}

// TestFieldsAreStructured holds the fields of all kinds of limits to RFC 9651.
func TestFieldsAreStructured(t *testing.T) {
	for _, q := range []limit.Quota{
		{Name: limitRequests, Most: 100, Window: 2 * time.Second, Left: 3, Wait: 10 * time.Millisecond},
		{Name: limitFetches, Unit: limit.UnitBytes, Most: 200 << 20, Window: time.Minute, Left: 12, Wait: 59*time.Second + 1},
		{Name: limitFetches, Unit: limit.UnitAtOnce, Most: 4, Wait: fetchWait},
		{Name: limitQueue, Most: 10_000, Wait: 10 * time.Second},
		codeQuota(rule.Requests.Of([]time.Duration{time.Second})),
		codeQuota(rule.Guesses.Of(nil)),
	} {
		fields := quotaFields(q)
		policy, limit := toList(t, fields[0].value), toList(t, fields[1].value)
		if len(policy) != 1 || len(limit) != 1 || policy[0].name != q.Name || limit[0].name != q.Name {
			t.Fatalf("%v", fields)
		}
		if policy[0].params["q"] != fmt.Sprint(q.Most) || policy[0].params["qu"] != q.Unit || limit[0].params["r"] != fmt.Sprint(q.Left) {
			t.Errorf("%+v became %v", q, fields)
		}
		if seconds, _ := strconv.ParseFloat(limit[0].params["t"], 64); seconds < q.Wait.Seconds() || seconds >= q.Wait.Seconds()+1 {
			t.Errorf("%s became %v seconds", q.Wait, seconds)
		}
		if _, timed := policy[0].params["w"]; timed != (q.Window > 0) {
			t.Errorf("%+v became %v", q, fields)
		}
	}
}
