package otp

import (
	"bytes"
	crand "crypto/rand"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/otp/rule"
)

func TestAlphabets(t *testing.T) {
	for _, test := range []struct {
		digits, letters, capitals bool
		want                      string
	}{
		{true, false, false, "0123456789"},
		{true, false, true, "0123456789"},
		{false, true, false, "abcdefghjkmnpqrstuvwxyz"},
		{false, true, true, "ABCDEFGHJKMNPQRSTUVWXYZ"},
		{true, true, false, "23456789abcdefghjkmnpqrstuvwxyz"},
		{true, true, true, "23456789ABCDEFGHJKMNPQRSTUVWXYZ"},
	} {
		got := CodeRequest{Digits: test.digits, Letters: test.letters, Uppercase: test.capitals}.alphabet()
		if got != test.want {
			t.Errorf("%+v: got %s", test, got)
		}
		for length := 4; length <= 6; length++ {
			if code := randomCode(crand.Reader, got, length); len(code) != length || strings.Trim(code, got) != "" {
				t.Errorf("%+v: %q", test, code)
			}
		}
	}
}

// Every character must be equally likely at every place. The bounds are the values that chi-square
// exceeds once in ten million runs, for one less than the characters there are.
func TestCodesAreUniform(t *testing.T) {
	const codes, length = 200_000, 6
	for alphabet, bound := range map[string]float64{digits: 52, letters: 77, clearDigits + letters: 90} {
		counts := make([]map[byte]int, length)
		for i := range counts {
			counts[i] = map[byte]int{}
		}
		for range codes {
			code := randomCode(crand.Reader, alphabet, length)
			for i := range length {
				counts[i][code[i]]++
			}
		}
		expected := float64(codes) / float64(len(alphabet))
		for place, count := range counts {
			var chi float64
			for i := range len(alphabet) {
				off := float64(count[alphabet[i]]) - expected
				chi += off * off / expected
			}
			if chi > bound {
				t.Errorf("%s, place %d: chi-square is %.1f, above %.1f", alphabet, place, chi, bound)
			}
		}
	}
}

// A byte that would favour some characters is not used, however many of them come.
func TestRandomCodeRejects(t *testing.T) {
	random := bytes.NewReader(append(bytes.Repeat([]byte{250, 255, 253, 251}, 8), 0, 1, 9, 10, 249, 255, 42, 7, 7, 7, 7, 7, 7, 7, 7, 7))
	if code := randomCode(random, digits, 6); code != "019092" {
		t.Errorf("got %q", code)
	}
}

func TestMessage(t *testing.T) {
	for life, want := range map[time.Duration]string{
		30 * time.Second:  "30 seconds",
		60 * time.Second:  "60 seconds",
		119 * time.Second: "119 seconds",
		2 * time.Minute:   "2 minutes",
		179 * time.Second: "2 minutes",
		5 * time.Minute:   "5 minutes",
		time.Hour:         "60 minutes",
	} {
		got := codeText("483920", "Acme", life)
		if want := fmt.Sprintf("*483920* is your Acme verification code. It expires in %s. Do not share it with anyone.", want); got != want {
			t.Errorf("%s: %q", life, got)
		}
	}
}

// TestBlockedUntil makes twenty wrong tries: from then on it is said until when no new code helps.
func TestBlockedUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "memory:"+t.Name())
		tried := func(code string) TryResult {
			t.Helper()
			got, err := b.Validate(t.Context(), main, ayu, code, nil)
			b.must(err)
			return got
		}
		var first time.Time
		for n := range rule.Guesses.Quota {
			if n%parley.MaxOTPTries == 0 {
				time.Sleep(5 * time.Minute)
				b.code(main, ayu)
			}
			if n == 0 {
				first = b.now(main)
			}
			got := tried("x")
			if last := n == rule.Guesses.Quota-1; got.BlockedUntil.IsZero() == last {
				t.Errorf("after %d wrong tries: %s, barred until %s", n+1, got.Status, got.BlockedUntil)
			}
		}
		time.Sleep(time.Hour)
		if got := tried("x"); got.Status != parley.OTPStatusLocked || !got.BlockedUntil.Equal(first.Add(24*time.Hour)) {
			t.Errorf("an hour later: %s, barred until %s, want %s", got.Status, got.BlockedUntil, first.Add(24*time.Hour))
		}
		time.Sleep(time.Until(first.Add(24 * time.Hour)))
		if got := tried("x"); !got.BlockedUntil.IsZero() {
			t.Errorf("after a day: %s, barred until %s", got.Status, got.BlockedUntil)
		}
		b.code(main, ayu)
	})
}
