package rule

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"parley"
)

var otpStart = time.Date(2026, 11, 15, 8, 30, 0, 0, time.UTC)

func openLedger(life time.Duration) Ledger {
	l := Ledger{Code: parley.OTPCode{Channel: "main", Contact: "6281100000001@c.us"}}
	l.Replace(parley.OTPCode{ID: parley.NewCodeID(), Encrypted: []byte("x"), CreatedAt: otpStart, ExpiresAt: otpStart.Add(life)})
	return l
}

func TestOTPTry(t *testing.T) {
	const life = 5 * time.Minute
	for name, test := range map[string]struct {
		wrong   int           // tries before
		at      time.Duration // of the try
		matches bool
		status  parley.OTPStatus
		left    int
		ends    bool
	}{
		"right at once":             {0, 0, true, parley.OTPStatusApproved, 0, true},
		"wrong at once":             {0, 0, false, parley.OTPStatusInvalid, 4, false},
		"right after four wrong":    {4, time.Second, true, parley.OTPStatusApproved, 0, true},
		"the fourth wrong":          {3, time.Second, false, parley.OTPStatusInvalid, 1, false},
		"the fifth wrong":           {4, time.Second, false, parley.OTPStatusLocked, 0, true},
		"right in the last instant": {0, life - time.Nanosecond, true, parley.OTPStatusApproved, 0, true},
		"right when it is over":     {0, life, true, parley.OTPStatusExpired, 0, true},
		"wrong when it is over":     {0, life, false, parley.OTPStatusExpired, 0, true},
		"right long after":          {0, 24 * time.Hour, true, parley.OTPStatusExpired, 0, true},
		"right, the clock set back": {0, -time.Hour, true, parley.OTPStatusApproved, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := openLedger(life)
			id := l.Code.ID
			for range test.wrong {
				l.Try(false, otpStart)
			}
			now := otpStart.Add(test.at)
			try, changed := l.Try(test.matches, now)
			if want := (Try{id, test.status, test.left}); try != want || !changed {
				t.Errorf("got %+v, changed %t; want %+v", try, changed, want)
			}
			if ended := l.Code.Status != parley.OTPStatusPending; ended != test.ends || ended != (l.Code.Encrypted == nil) ||
				ended == l.Code.EndedAt.IsZero() {
				t.Errorf("the code is %+v", l.Code)
			}
		})
	}
}

func TestOTPTryAfterTheEnd(t *testing.T) {
	at := otpStart.Add(time.Minute)
	for name, test := range map[string]struct {
		end  func(*Ledger)
		want parley.OTPStatus
		id   bool
	}{
		"none was ever asked for": {func(l *Ledger) { *l = Ledger{} }, parley.OTPStatusInvalid, false},
		"approved":                {func(l *Ledger) { l.Try(true, otpStart) }, parley.OTPStatusInvalid, false},
		"expired": {func(l *Ledger) {
			l.Code.ExpiresAt = otpStart
			l.Try(true, otpStart)
		}, parley.OTPStatusExpired, true},
		"locked": {func(l *Ledger) {
			for range parley.MaxOTPTries {
				l.Try(false, otpStart)
			}
		}, parley.OTPStatusLocked, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := openLedger(5 * time.Minute)
			test.end(&l)
			before := l
			for _, matches := range []bool{true, false, true} {
				try, changed := l.Try(matches, at)
				if try.Status != test.want || try.Left != 0 || (try.ID != "") != test.id || changed {
					t.Errorf("got %+v, changed %t", try, changed)
				}
			}
			if l.Code.Status != before.Code.Status || len(l.Wrong) != len(before.Wrong) {
				t.Error("a try changed a code that has ended")
			}
		})
	}
}

// A new code gives five tries again, but not of the twenty of a day.
func TestOTPGuessesOfADay(t *testing.T) {
	l := openLedger(time.Hour)
	guess := func(at time.Duration) Try {
		try, _ := l.Try(false, otpStart.Add(at))
		return try
	}
	for n := range 20 {
		at := time.Duration(n) * time.Minute
		if n > 0 && n%4 == 0 { // before the fifth try of each code
			l.Replace(parley.OTPCode{ID: parley.NewCodeID(), CreatedAt: otpStart.Add(at), ExpiresAt: otpStart.Add(at + time.Hour)})
		}
		want := Try{l.Code.ID, parley.OTPStatusInvalid, min(4-n%4, 19-n)}
		if n == 19 {
			want.Status = parley.OTPStatusLocked
		}
		if got := guess(at); got != want {
			t.Fatalf("wrong try %d: %+v, want %+v", n+1, got, want)
		}
	}
	day := 24 * time.Hour
	for at, left := range map[time.Duration]int{19 * time.Minute: 0, day - time.Millisecond: 0, day: 1, day + 5*time.Minute: 1} {
		if q := l.Request(otpStart.Add(at), nil); (q.Left > 0) != (left > 0) || left == 0 && (q.Limit != Guesses || q.Wait != day-at) {
			t.Errorf("a request after %s: %+v", at, q)
		}
	}
	// A day after the first of them there is one more try, and the next a minute later.
	l.Replace(parley.OTPCode{ID: parley.NewCodeID(), CreatedAt: otpStart.Add(day), ExpiresAt: otpStart.Add(day + time.Hour)})
	if got := guess(day); got.Status != parley.OTPStatusLocked {
		t.Errorf("the twentieth within a day: %+v", got)
	}
	if q := l.Request(otpStart.Add(day+20*time.Second), nil); q.Limit != Guesses || q.Wait != 40*time.Second {
		t.Errorf("a request: %+v", q)
	}
	// An approval clears the count.
	l.Replace(parley.OTPCode{ID: parley.NewCodeID(), CreatedAt: otpStart.Add(day + time.Minute), ExpiresAt: otpStart.Add(day + time.Hour)})
	if try, _ := l.Try(true, otpStart.Add(day+time.Minute)); try.Status != parley.OTPStatusApproved || len(l.Wrong) != 0 {
		t.Errorf("%+v, with %d wrong ones left", try, len(l.Wrong))
	}
}

func TestOTPLimits(t *testing.T) {
	ages := func(seconds ...int) (all []time.Duration) {
		for _, s := range seconds {
			all = append(all, time.Duration(s)*time.Second)
		}
		return all
	}
	for name, test := range map[string]struct {
		limit Limit
		ages  []time.Duration
		left  int
		wait  time.Duration
	}{
		"nothing":                {Requests, nil, 5, 0},
		"one":                    {Requests, ages(10), 4, 590 * time.Second},
		"all of it":              {Requests, ages(500, 400, 300, 200, 100), 0, 100 * time.Second},
		"in any order":           {Requests, ages(100, 500, 300, 200, 400), 0, 100 * time.Second},
		"more than all":          {Requests, ages(500, 400, 300, 200, 100, 50, 10), 0, 300 * time.Second},
		"just over":              {Requests, ages(600, 400, 300, 200, 100), 1, 200 * time.Second},
		"just not":               {Requests, []time.Duration{10*time.Minute - 1, 0, 0, 0, 0}, 0, 1},
		"the pause":              {Pause, ages(19), 0, time.Second},
		"after the pause":        {Pause, ages(20), 1, 0},
		"a time that is to come": {Pause, ages(-3600), 0, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := test.limit.Of(test.ages), (Quota{test.limit, test.left, test.wait}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestOTPRequestTakesTheTightestLimit(t *testing.T) {
	ago := func(d time.Duration) time.Time { return otpStart.Add(-d) }
	many := make([]time.Duration, 20)
	for i := range many {
		many[i] = time.Duration(30*i) * time.Second
	}
	five := []time.Time{ago(9 * time.Minute), ago(4 * time.Minute), ago(3 * time.Minute), ago(2 * time.Minute), ago(time.Second)}
	guesses := make([]time.Time, 20)
	for i := range guesses {
		guesses[i] = ago(time.Hour)
	}
	for name, test := range map[string]struct {
		ledger    Ledger
		elsewhere []time.Duration
		limit     Limit
		left      int
		wait      time.Duration
	}{
		"free":                 {Ledger{}, nil, Requests, 5, 0},
		"the pause":            {Ledger{Requests: []time.Time{ago(5 * time.Second)}}, nil, Pause, 0, 15 * time.Second},
		"the pause is shorter": {Ledger{Requests: five}, nil, Requests, 0, time.Minute},
		"the pause is longer": {Ledger{Requests: append([]time.Time{ago(10*time.Minute - time.Second)}, five[1:]...)}, nil,
			Pause, 0, 19 * time.Second},
		"over all channels":         {Ledger{}, many, PerContact, 0, 30 * time.Second},
		"all channels and this one": {Ledger{Requests: []time.Time{ago(30 * time.Second)}}, many[1:], PerContact, 0, 30 * time.Second},
		"guessed too often":         {Ledger{Requests: five, Wrong: guesses}, many, Guesses, 0, 23 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := test.ledger.Request(otpStart, test.elsewhere), (Quota{test.limit, test.left, test.wait}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// otpModel is the rules in the plainest words: it keeps everything that ever happened.
type otpModel struct {
	requests []time.Time
	wrong    []time.Time // since the last approval
	tries    int         // wrong ones of the newest code
	expires  time.Time
	ended    parley.OTPStatus // of the newest code; pending: not yet
	exists   bool
}

func (m *otpModel) count(times []time.Time, now time.Time, while time.Duration) (n int) {
	for _, at := range times {
		if now.Sub(at) < while {
			n++
		}
	}
	return n
}

func (m *otpModel) mayRequest(now time.Time) bool {
	return m.count(m.requests, now, 20*time.Second) < 1 && m.count(m.requests, now, 10*time.Minute) < 5 &&
		m.count(m.wrong, now, 24*time.Hour) < 20
}

func (m *otpModel) try(right bool, now time.Time) (status parley.OTPStatus, left int) {
	switch {
	case !m.exists:
		return parley.OTPStatusInvalid, 0
	case m.count(m.wrong, now, 24*time.Hour) >= 20:
		return parley.OTPStatusLocked, 0
	case m.ended == parley.OTPStatusApproved:
		return parley.OTPStatusInvalid, 0
	case m.ended != parley.OTPStatusPending:
		return m.ended, 0
	case !now.Before(m.expires):
		m.ended = parley.OTPStatusExpired
		return parley.OTPStatusExpired, 0
	case right:
		m.ended, m.wrong = parley.OTPStatusApproved, nil
		return parley.OTPStatusApproved, 0
	}
	m.tries++
	m.wrong = append(m.wrong, now)
	left = min(5-m.tries, 20-m.count(m.wrong, now, 24*time.Hour))
	if left <= 0 {
		m.ended = parley.OTPStatusLocked
		return parley.OTPStatusLocked, 0
	}
	return parley.OTPStatusInvalid, left
}

// TestOTPLedgerIsTheModel runs long random lives of a contact against the model.
func TestOTPLedgerIsTheModel(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	pauses := []time.Duration{0, time.Millisecond, time.Second, 19 * time.Second, 20 * time.Second, 2 * time.Minute, 5 * time.Minute,
		10 * time.Minute, time.Hour, 23 * time.Hour, 24 * time.Hour}
	seen := map[parley.OTPStatus]int{}
	for range 300 {
		var l Ledger
		var m otpModel
		now := otpStart
		approved := map[parley.OTPID]int{}
		for step := range 300 {
			if random.IntN(3) == 0 {
				now = now.Add(pauses[random.IntN(len(pauses))])
			}
			if random.IntN(3) == 0 {
				free := l.Request(now, nil).Left > 0
				if free != m.mayRequest(now) {
					t.Fatalf("seed %d, step %d: a request may be made: %t, the model says otherwise", seed, step, free)
				}
				if free {
					life := time.Duration(30+random.IntN(3571)) * time.Second
					l.Replace(parley.OTPCode{ID: parley.NewCodeID(), CreatedAt: now, ExpiresAt: now.Add(life)})
					m.requests, m.tries, m.expires, m.ended, m.exists = append(m.requests, now), 0, now.Add(life), parley.OTPStatusPending, true
				}
				continue
			}
			right := random.IntN(12) == 0
			was := l.Code
			try, changed := l.Try(right, now)
			status, left := m.try(right, now)
			if try.Status != status || try.Left != left {
				t.Fatalf("seed %d, step %d: got %+v, the model says %s and %d", seed, step, try, status, left)
			}
			if was.Status != parley.OTPStatusPending && (changed || l.Code.Status != was.Status) {
				t.Fatalf("seed %d, step %d: a code that was %s moved", seed, step, was.Status)
			}
			if status == parley.OTPStatusApproved {
				if approved[l.Code.ID]++; approved[l.Code.ID] > 1 {
					t.Fatalf("seed %d, step %d: a code was approved twice", seed, step)
				}
			}
			if l.Code.Tries > parley.MaxOTPTries || len(l.Wrong) > Guesses.Quota || len(l.Requests) > Requests.Quota {
				t.Fatalf("seed %d, step %d: %d tries, %d wrong ones, %d requests", seed, step, l.Code.Tries, len(l.Wrong), len(l.Requests))
			}
			if !slices.IsSortedFunc(l.Wrong, time.Time.Compare) || !slices.IsSortedFunc(l.Requests, time.Time.Compare) {
				t.Fatalf("seed %d, step %d: times are out of order", seed, step)
			}
			seen[status]++
		}
	}
	for _, status := range []parley.OTPStatus{parley.OTPStatusApproved, parley.OTPStatusInvalid, parley.OTPStatusExpired,
		parley.OTPStatusLocked} {
		if seen[status] < 100 {
			t.Errorf("%s was seen %d times: too few to tell", status, seen[status])
		}
	}
}

// TestLedgerOfAClockThatWasAhead has times in the future become now, once.
func TestLedgerOfAClockThatWasAhead(t *testing.T) {
	now := time.Date(2026, 11, 15, 8, 30, 0, 0, time.UTC)
	ahead, before := now.Add(24*time.Hour), now.Add(-time.Minute)
	old := Ledger{Code: parley.OTPCode{ID: "otc_1", CreatedAt: before, ExpiresAt: now},
		Wrong: []time.Time{before, now}, Requests: []time.Time{before}}
	if was := old; old.Correct(now) || !reflect.DeepEqual(old, was) {
		t.Errorf("nothing lies in the future, and yet: %+v", old)
	}
	shared := []time.Time{before, ahead, ahead.Add(time.Second)}
	l := Ledger{Code: parley.OTPCode{ID: "otc_2", CreatedAt: ahead, ExpiresAt: ahead.Add(5 * time.Minute)}, Wrong: shared, Requests: shared}
	if !l.Correct(now) || l.Correct(now) {
		t.Error("not corrected once")
	}
	want := Ledger{Code: parley.OTPCode{ID: "otc_2", CreatedAt: now, ExpiresAt: now.Add(5 * time.Minute)},
		Wrong: []time.Time{before, now, now}, Requests: []time.Time{before, now, now}}
	if !reflect.DeepEqual(l, want) || !shared[1].Equal(ahead) {
		t.Errorf("corrected to %+v, and what others hold to %v", l, shared)
	}
	if q := l.Request(now.Add(20*time.Second), nil); q.Left == 0 {
		t.Errorf("after the pause: %+v", q)
	}
}
