package contract_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/internal/parleytest"
)

var anyEvent = parley.EventFilter{}

// tryCode tries a code and demands the form of the answer.
func tryCode(e *parleytest.Env, number, code string, options ...parleytest.Option) *parleytest.Response {
	e.T.Helper()
	a := e.Post(codeValidate, toJSON(e.T, object{"contact_id": number + "@c.us", "code": code}), options...).Expect(http.StatusOK)
	if got := jsonKeys(a, ""); !slices.Equal(got, []string{"data", "message", "success"}) || !isSentence(a.Text("message")) {
		e.T.Errorf("the envelope is %s", a.Body)
	}
	if got := jsonKeys(a, "data"); !slices.Equal(got, []string{"attempts_left", "id", "status", "timestamp"}) {
		e.T.Errorf("the data is %s", a.Body)
	}
	if approved := a.Text("data.status") == "APPROVED"; a.Bool("success") != approved {
		e.T.Errorf("success and status do not agree: %s", a.Body)
	}
	return a
}

// wantTry tries a code and demands how that ends.
func wantTry(e *parleytest.Env, number, code, status string, left int, options ...parleytest.Option) *parleytest.Response {
	e.T.Helper()
	a := tryCode(e, number, code, options...)
	if a.Text("data.status") != status || a.Number("data.attempts_left") != left {
		e.T.Errorf("got %s, want %s and %d", a.Body, status, left)
	}
	return a
}

// wrongCode is a code of digits that is not the one given.
func wrongCode(code string) string {
	if code == "000000" {
		return "000001"
	}
	return "000000"
}

// TestContractCodeValidate holds POST /otp/code/validate to what is promised of it.
func TestContractCodeValidate(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	t.Run("right", func(t *testing.T) { tryRight(t, e) })
	t.Run("after a restart", func(t *testing.T) { tryAfterRestart(t, e) })
	t.Run("wrong", func(t *testing.T) { tryWrong(t, e) })
	t.Run("fields", func(t *testing.T) { tryFields(t, e) })
	t.Run("replaced", func(t *testing.T) { tryReplaced(t, e) })
	t.Run("expired", func(t *testing.T) { tryExpired(t, e) })
	t.Run("budget", func(t *testing.T) { tryBudget(t, e) })
	t.Run("at once", func(t *testing.T) { tryAtOnce(t, e) })
	t.Run("idempotency", func(t *testing.T) { tryIdempotency(t, e) })
	t.Run("reset", func(t *testing.T) { tryAfterReset(t, e) })
}

func tryRight(t *testing.T, e *parleytest.Env) {
	part(t, e, "once", func(e *parleytest.Env) {
		number := newBuyer()
		code, asked := sentCode(e, number, nil)
		a := wantTry(e, number, code, "APPROVED", 0)
		if a.Text("data.id") != asked.Text("data.id") {
			e.T.Errorf("got %s, want id %s", a.Body, asked.Text("data.id"))
		}
		expectStamp(a, "data.timestamp")
		for range 3 {
			if a := wantTry(e, number, code, "INVALID", 0); a.Value("data.id") != nil {
				e.T.Errorf("got %s, want no id", a.Body)
			}
		}
	})
	for name, spell := range map[string]func(code string) string{
		"blanks around it":     func(code string) string { return " \t" + code + "\n " },
		"as long as it may be": func(code string) string { return strings.Repeat(" ", 58) + code },
	} {
		part(t, e, name, func(e *parleytest.Env) {
			number := newBuyer()
			code, _ := sentCode(e, number, nil)
			wantTry(e, number, spell(code), "APPROVED", 0)
		})
	}
	part(t, e, "the other spelling of the contact", func(e *parleytest.Env) {
		number := newBuyer()
		code, _ := sentCode(e, number, nil)
		a := e.Post(codeValidate, `{"contact_id":"`+number+`@s.us","code":"`+code+`"}`).Expect(http.StatusOK)
		if a.Text("data.status") != "APPROVED" {
			e.T.Errorf("got %s", a.Body)
		}
	})
}

func tryAfterRestart(t *testing.T, e *parleytest.Env) {
	number := newBuyer()
	code, _ := sentCode(e, number, nil)
	wantTry(e, number, wrongCode(code), "INVALID", 4)
	e.Restart()
	wantTry(e, number, wrongCode(code), "INVALID", 3)
	wantTry(e, number, code, "APPROVED", 0)
}

func tryWrong(t *testing.T, e *parleytest.Env) {
	part(t, e, "five times", func(e *parleytest.Env) {
		number := newBuyer()
		code, asked := sentCode(e, number, nil)
		for left, wrong := range []string{"x", strings.Repeat("9", 64), code + "0", code[:5]} {
			wantTry(e, number, wrong, "INVALID", 4-left)
		}
		wantTry(e, number, wrongCode(code), "LOCKED", 0)
		a := wantTry(e, number, code, "LOCKED", 0) // the right one comes too late
		if a.Text("data.id") != asked.Text("data.id") || !strings.HasSuffix(a.Text("message"), "Request a new code.") {
			e.T.Errorf("got %s", a.Body)
		}
		advance(e, 3600)
		wantTry(e, number, code, "LOCKED", 0)
		code, _ = sentCode(e, number, nil)
		wantTry(e, number, code, "APPROVED", 0)
	})
	part(t, e, "nobody asked for a code", func(e *parleytest.Env) {
		number := newBuyer()
		for range 25 {
			if a := wantTry(e, number, "123456", "INVALID", 0); a.Value("data.id") != nil {
				e.T.Errorf("got %s, want no id", a.Body)
			}
		}
		sentCode(e, number, nil) // nothing was counted
	})
}

func tryFields(t *testing.T, e *parleytest.Env) {
	number := newBuyer()
	code, _ := sentCode(e, number, nil)
	good := object{"contact_id": number + "@c.us", "code": wrongCode(code)}
	for field, values := range map[string][]any{
		"contact_id": {nil, 7, true, []any{}, object{}, "", "1234@c.us", "6281234567890", "120363020000000001@g.us"},
		"code":       {nil, 123456, true, []any{}, object{}, "", strings.Repeat("1", 65), strings.Repeat("é", 65)},
	} {
		for _, value := range values {
			part(t, e, fmt.Sprintf("%s %v", field, value), func(e *parleytest.Env) {
				expectInvalid(e.Post(codeValidate, toJSON(e.T, good.with(field, value))), field)
			})
		}
	}
	part(t, e, "nothing", func(e *parleytest.Env) { expectInvalid(e.Post(codeValidate, `{}`), "contact_id", "code") })
	part(t, e, "a refused body is no try", func(e *parleytest.Env) { wantTry(e, number, "é", "INVALID", 4) })
	part(t, e, "any text is a try", func(e *parleytest.Env) {
		wantTry(e, number, strings.Repeat("😀", 64), "INVALID", 3)
		wantTry(e, number, " ", "INVALID", 2)
		wantTry(e, number, "'; DROP TABLE otp_code; --", "INVALID", 1)
		wantTry(e, number, code, "APPROVED", 0)
	})
}

func tryReplaced(t *testing.T, e *parleytest.Env) {
	number := newBuyer()
	first, _ := sentCode(e, number, nil)
	advance(e, 20)
	second, asked := sentCode(e, number, nil)
	for second == first { // once in a million
		advance(e, 120)
		second, asked = sentCode(e, number, nil)
	}
	a := wantTry(e, number, first, "INVALID", 4)
	if a.Text("data.id") != asked.Text("data.id") {
		t.Errorf("got %s, want the id of the second", a.Body)
	}
	wantTry(e, number, second, "APPROVED", 0)
}

func tryExpired(t *testing.T, e *parleytest.Env) {
	late, early := newBuyer(), newBuyer()
	code, asked := sentCode(e, late, object{"expires": 600})
	other, _ := sentCode(e, early, object{"expires": 600})
	advance(e, 590)
	wantTry(e, early, other, "APPROVED", 0)
	advance(e, 10)
	a := wantTry(e, late, code, "EXPIRED", 0)
	if a.Text("data.id") != asked.Text("data.id") {
		t.Errorf("got %s", a.Body)
	}
	wantTry(e, late, wrongCode(code), "EXPIRED", 0)
	wantTry(e, early, other, "INVALID", 0)
	code, _ = sentCode(e, late, nil)
	wantTry(e, late, code, "APPROVED", 0)
}

// tryBudget guesses at one code after the other.
func tryBudget(t *testing.T, e *parleytest.Env) {
	as := parleytest.As(e.CreateChannel("guessed"))
	number := newBuyer()
	body := `{"contact_id":"` + number + `@c.us"}`
	for n := range 20 {
		if n%4 == 0 {
			advance(e, 150, as)
			e.Post(codeRequest, body, as).Expect(http.StatusOK)
		}
		status, left := "INVALID", min(4-n%4, 19-n)
		if n == 19 {
			status = "LOCKED"
		}
		a := wantTry(e, number, "x", status, left, as)
		if n == 19 {
			wantBarred(a)
		}
	}
	advance(e, 600, as)
	after := expectLimited(e.Post(codeRequest, body, as), `"otp-check";q=20;w=86400`)
	if after > 86400-4*150-600 || after < 86400-4*150-600-30 {
		t.Errorf("Retry-After is %d", after)
	}
	e.Restart()
	wantBarred(wantTry(e, number, "x", "LOCKED", 0, as))
	askCode(e, object{"contact_id": number + "@c.us"}) // other channels have their own count
	advance(e, after, as)
	e.Post(codeRequest, body, as).Expect(http.StatusOK)
}

// wantBarred demands that an answer says when a new code helps, if none does now.
func wantBarred(a *parleytest.Response) {
	a.T.Helper()
	_, until, _ := strings.Cut(strings.TrimSuffix(a.Text("message"), "."), "after ")
	end, err := time.Parse(time.RFC3339, until)
	now, _ := time.Parse(time.RFC3339, a.Text("data.timestamp"))
	if wait := end.Sub(now); err != nil || wait <= 23*time.Hour || wait >= 24*time.Hour {
		a.T.Errorf("got %s, want the time a day after the first wrong try", a.Body)
	}
}

// tryAtOnce has many try over HTTP: exactly one is let in.
func tryAtOnce(t *testing.T, e *parleytest.Env) {
	number := newBuyer()
	code, _ := sentCode(e, number, nil)
	var approved, invalid atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			a, err := e.TryCall("POST", codeValidate, `{"contact_id":"`+number+`@c.us","code":"`+code+`"}`)
			switch {
			case err != nil:
				t.Error(err)
			case a.Text("data.status") == "APPROVED":
				approved.Add(1)
			case a.Text("data.status") == "INVALID":
				invalid.Add(1)
			}
		})
	}
	wg.Wait()
	if approved.Load() != 1 || invalid.Load() != 49 {
		t.Errorf("%d were approved and %d invalid", approved.Load(), invalid.Load())
	}
}

func tryIdempotency(t *testing.T, e *parleytest.Env) {
	number := newBuyer()
	code, _ := sentCode(e, number, nil)
	wrong := parleytest.With("Idempotency-Key", "wrong-"+number)
	for range 3 { // counts once
		wantTry(e, number, wrongCode(code), "INVALID", 4, wrong)
	}
	right := parleytest.With("Idempotency-Key", "right-"+number)
	first := wantTry(e, number, code, "APPROVED", 0, right)
	e.Restart()
	again := wantTry(e, number, code, "APPROVED", 0, right)
	if string(first.Body) != string(again.Body) || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%s, then %s with %v", first.Body, again.Body, again.Header)
	}
	wantTry(e, number, code, "INVALID", 0)
}

// tryAfterReset resets the sandbox, its clock included.
func tryAfterReset(t *testing.T, e *parleytest.Env) {
	token := e.CreateChannel("forgetful")
	as := parleytest.As(token)
	advance(e, 86400, as)
	number := newBuyer()
	code, _ := requestCode(e, token, number)
	e.Delete("/api/sandbox", as).Expect(http.StatusOK)
	if a := wantTry(e, number, code, "INVALID", 0, as); a.Value("data.id") != nil {
		t.Errorf("got %s", a.Body)
	}
	requestCode(e, token, number) // at once: what was asked for before is forgotten too
}
