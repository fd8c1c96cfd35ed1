package otp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/otp/rule"
	"parley/internal/postgrestest"
	"parley/internal/store"
)

const (
	main  = parley.ChannelCode("main")
	other = parley.ChannelCode("other")
)

func TestCodeIsUsedOnce(t *testing.T) {
	b := newBench(t, "memory:"+t.Name())
	code := b.code(main, ayu)
	b.wants(main, ayu, wrong(code), parley.OTPStatusInvalid, 4)
	b.wants(main, ayu, "not even a code", parley.OTPStatusInvalid, 3)
	b.wants(main, ayu, "\t"+code+" ", parley.OTPStatusApproved, 0)
	for range 10 {
		if try := b.try(main, ayu, code); try != (rule.Try{Status: parley.OTPStatusInvalid}) {
			t.Errorf("used again: %+v", try)
		}
	}
	b.wantsEvents("otp.approved")
}

func TestLetterCaseIsIgnored(t *testing.T) {
	b := newBench(t, "memory:"+t.Name())
	for contact, capitals := range map[parley.ContactID]bool{ayu: true, budi: false} {
		o := order(main, contact)
		o.Digits, o.Letters, o.Uppercase = false, true, capitals
		code, _, err := b.request(o)
		b.must(err)
		if (code == strings.ToUpper(code)) != capitals {
			t.Errorf("capitals %t: %s", capitals, code)
		}
		b.wants(main, contact, strings.ToUpper(code[:3])+strings.ToLower(code[3:]), parley.OTPStatusApproved, 0)
	}
}

func TestChannelsAndContactsAreSeparate(t *testing.T) {
	b := newBench(t, "memory:"+t.Name())
	code := b.code(main, ayu)
	for range 10 {
		if try := b.try(other, ayu, code); try != (rule.Try{Status: parley.OTPStatusInvalid}) {
			t.Errorf("on another channel: %+v", try)
		}
		if try := b.try(main, budi, code); try != (rule.Try{Status: parley.OTPStatusInvalid}) {
			t.Errorf("of another contact: %+v", try)
		}
	}
	b.wants(main, ayu, code, parley.OTPStatusApproved, 0)
}

func TestHashOfAnotherRow(t *testing.T) {
	b := newBench(t, "memory:"+t.Name())
	code := b.code(main, ayu)
	b.code(main, budi)
	b.code(other, ayu)
	b.must(b.config.Store.Tx(t.Context(), func(tx *store.Tx) error {
		from, err := tx.Ledger(t.Context(), main, ayu)
		if err != nil {
			return err
		}
		for _, to := range []struct {
			channel parley.ChannelCode
			contact parley.ContactID
		}{{main, budi}, {other, ayu}} {
			l, err := tx.Ledger(t.Context(), to.channel, to.contact)
			if err != nil {
				return err
			}
			l.Code.Hash = from.Code.Hash
			if err := tx.PutLedger(t.Context(), l); err != nil {
				return err
			}
		}
		return nil
	}))
	b.wants(main, budi, code, parley.OTPStatusInvalid, 4)
	b.wants(other, ayu, code, parley.OTPStatusInvalid, 4)
	b.wants(main, ayu, code, parley.OTPStatusApproved, 0)
}

// TestRace has many try at once: one right try counts, and five wrong ones.
func TestRace(t *testing.T) {
	const many = 200
	b := newBench(t, filepath.Join(t.TempDir(), "parley.db"))
	all := func(contact parley.ContactID, code string) map[parley.OTPStatus]int {
		var counts [5]atomic.Int64
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range many {
			wg.Go(func() {
				<-start
				try, err := b.Validate(context.Background(), main, contact, code, nil)
				if err != nil {
					t.Error(err)
				}
				counts[try.Status].Add(1)
			})
		}
		close(start)
		wg.Wait()
		found := map[parley.OTPStatus]int{}
		for status := range counts {
			if n := counts[status].Load(); n > 0 {
				found[parley.OTPStatus(status)] = int(n)
			}
		}
		return found
	}
	if got := all(ayu, b.code(main, ayu)); got[parley.OTPStatusApproved] != 1 || got[parley.OTPStatusInvalid] != many-1 {
		t.Errorf("with the right code: %v", got)
	}
	if got := all(budi, wrong(b.code(main, budi))); got[parley.OTPStatusInvalid] != 4 || got[parley.OTPStatusLocked] != many-4 {
		t.Errorf("with a wrong code: %v", got)
	}
	l, err := b.config.Store.Ledger(t.Context(), main, budi)
	b.must(err)
	if l.Code.Tries != 5 || len(l.Wrong) != 5 {
		t.Errorf("%d tries and %d wrong ones were counted", l.Code.Tries, len(l.Wrong))
	}
	b.wantsEvents("otp.approved", "otp.failed locked")
}

// TestManyRequestsAtOnce has many ask for the same contact: one code is made.
func TestManyRequestsAtOnce(t *testing.T) {
	b := newBench(t, filepath.Join(t.TempDir(), "parley.db"))
	var sent atomic.Int64
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			_, _, err := b.request(order(main, ayu))
			if err == nil {
				sent.Add(1)
			} else if _, ok := errors.AsType[*LimitError](err); !ok {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if sent.Load() != 1 {
		t.Errorf("%d codes were made", sent.Load())
	}
}

func TestExpiry(t *testing.T) {
	for name, test := range map[string]struct {
		after time.Duration
		want  parley.OTPStatus
		event string
	}{
		"a second before": {5*time.Minute - time.Second, parley.OTPStatusApproved, "otp.approved"},
		"at the time":     {5 * time.Minute, parley.OTPStatusExpired, "otp.expired"},
		"a second after":  {5*time.Minute + time.Second, parley.OTPStatusExpired, "otp.expired"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, filepath.Join(t.TempDir(), "parley.db"))
				code := b.code(main, ayu)
				b.restart()
				time.Sleep(test.after)
				b.wants(main, ayu, code, test.want, 0)
				b.wantsEvents(test.event)
				b.must(b.maintain(t.Context(), true))
				b.wantsEvents(test.event) // published once
			})
		})
	}
}

func TestMaintenance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "memory:"+t.Name())
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { b.must(b.Run(ctx)) })
		code := b.code(main, ayu)
		b.code(other, budi)
		link := parley.OTPLink{ID: parley.NewLinkID(), Channel: main, Contact: budi, Hash: []byte{1}, CreatedAt: b.now(main),
			ExpiresAt: b.now(main).Add(time.Hour)}
		b.must(b.config.Store.Tx(ctx, func(tx *store.Tx) error { return tx.AddLink(ctx, link) }))

		b.advance(main, 5*time.Minute) // of one channel only
		time.Sleep(2 * time.Second)
		b.wantsEvents("otp.expired")
		l, err := b.config.Store.Ledger(ctx, main, ayu)
		b.must(err)
		if l.Code.Status != parley.OTPStatusExpired || l.Code.Encrypted != nil {
			t.Errorf("the code is %+v", l.Code)
		}
		b.wants(main, ayu, code, parley.OTPStatusExpired, 0)
		stop()
		wg.Wait()

		ctx = t.Context()
		later := func(d time.Duration) {
			time.Sleep(d)
			b.must(b.maintain(ctx, true))
		}
		later(time.Hour)
		b.wantsEvents("otp.expired", "otp.expired", "otp.expired")
		later(22 * time.Hour)
		b.wants(main, ayu, code, parley.OTPStatusExpired, 0)
		later(2 * time.Hour)
		if l, err := b.config.Store.Ledger(ctx, main, ayu); err != nil || l.Code.ID != "" {
			t.Errorf("a day after its end there is %+v, %v", l, err)
		}
		if try := b.try(main, ayu, code); try != (rule.Try{Status: parley.OTPStatusInvalid}) {
			t.Errorf("a forgotten code: %+v", try)
		}
		later(2 * time.Hour)
		if _, err := b.config.Store.Link(ctx, link.ID); !errors.Is(err, parley.ErrNotFound) {
			t.Errorf("the link: %v", err)
		}
	})
}

// A new code takes the place of one that expired before anybody noticed: its expiry is published all the same.
// TestPurgeWaitsForATrustedClock keeps what is counted while the clock is doubted.
func TestPurgeWaitsForATrustedClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trusted := false
		b := newBench(t, "memory:"+t.Name(), func(c *Config) { c.ClockTrusted = func() bool { return trusted } })
		b.code(main, ayu)
		time.Sleep(48 * time.Hour)
		for _, trusted = range []bool{false, true} {
			b.must(b.maintain(t.Context(), true))
			if l, err := b.config.Store.Ledger(t.Context(), main, ayu); err != nil || (l.Code.ID == "") != trusted {
				t.Errorf("with a clock that is trusted (%t): %+v, %v", trusted, l.Code, err)
			}
		}
	})
}

func TestReplacedAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "memory:"+t.Name())
		first := b.code(main, ayu)
		time.Sleep(20 * time.Second)
		second := b.code(main, ayu) // the first was open: nothing to tell
		b.wantsEvents()
		if first != second {
			b.wants(main, ayu, first, parley.OTPStatusInvalid, 4)
		}
		time.Sleep(5 * time.Minute)
		third := b.code(main, ayu)
		b.wantsEvents("otp.expired")
		b.wants(main, ayu, third, parley.OTPStatusApproved, 0)
		b.wantsEvents("otp.expired", "otp.approved")
	})
}

func TestRequestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, filepath.Join(t.TempDir(), "parley.db"))
		refused := func(limit rule.Limit, wait time.Duration) {
			t.Helper()
			_, _, err := b.request(order(main, ayu))
			if q := b.limitOf(err); q.Limit != limit || q.Wait != wait || q.Left != 0 {
				t.Errorf("got %+v, want %+v and %s", q, limit, wait)
			}
		}
		began := time.Now()
		for n := range 5 {
			_, issue, err := b.request(order(main, ayu))
			b.must(err)
			if issue.Quota.Limit != rule.Requests || issue.Quota.Left != 4-n {
				t.Errorf("after %d: %+v", n+1, issue.Quota)
			}
			if n < 4 {
				refused(rule.Pause, 20*time.Second)
				time.Sleep(19*time.Second + 999*time.Millisecond)
				refused(rule.Pause, time.Millisecond)
				time.Sleep(time.Millisecond)
			}
			b.restart() // which loses nothing
		}
		refused(rule.Requests, 10*time.Minute-80*time.Second)
		time.Sleep(time.Until(began.Add(10*time.Minute - time.Millisecond)))
		refused(rule.Requests, time.Millisecond)
		b.code(main, budi) // others are free
		b.code(other, ayu)
		time.Sleep(time.Millisecond)
		b.code(main, ayu)
		refused(rule.Requests, 20*time.Second) // until the second of the five is ten minutes ago
	})
}

func TestLimitOverAllChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "memory:"+t.Name())
		var channels []parley.ChannelCode
		for i := range 5 {
			channels = append(channels, parley.ChannelCode(fmt.Sprintf("c%d", i)))
			b.must(b.config.Store.Tx(t.Context(), func(tx *store.Tx) error {
				return tx.AddChannel(t.Context(), parley.Channel{Code: channels[i], Name: "Acme", Network: parley.Sandbox})
			}))
		}
		for range 4 {
			for _, c := range channels {
				b.code(c, ayu)
			}
			time.Sleep(time.Minute)
		}
		_, _, err := b.request(order(main, ayu))
		if q := b.limitOf(err); q.Limit != rule.PerContact || q.Wait != 6*time.Minute {
			t.Errorf("got %+v", q)
		}
		b.code(main, budi)
		// A channel counts by its own clock: what was asked for on this one is long ago there.
		b.advance(channels[0], 10*time.Minute)
		b.code(main, ayu)
		b.advance(main, time.Hour)
		b.code(main, ayu)
	})
}

func TestGuessBudgetStopsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, filepath.Join(t.TempDir(), "parley.db"))
		first := time.Now()
		for n := range 20 {
			if n%4 == 0 {
				time.Sleep(3 * time.Minute)
				b.code(main, ayu)
				if n == 0 {
					first = time.Now()
				}
			}
			b.try(main, ayu, "x")
		}
		b.restart()
		time.Sleep(time.Hour)
		b.must(b.maintain(t.Context(), true))
		b.wants(main, ayu, "x", parley.OTPStatusLocked, 0)
		_, _, err := b.request(order(main, ayu))
		if q := b.limitOf(err); q.Limit != rule.Guesses || !time.Now().Add(q.Wait).Equal(first.Add(24*time.Hour)) {
			t.Errorf("got %+v", q)
		}
		time.Sleep(time.Until(first.Add(24*time.Hour - time.Millisecond)))
		b.must(b.maintain(t.Context(), true))
		if _, _, err = b.request(order(main, ayu)); b.limitOf(err).Wait != time.Millisecond {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Millisecond)
		code := b.code(main, ayu)
		b.wants(main, ayu, code, parley.OTPStatusApproved, 0)
		time.Sleep(20 * time.Second)
		b.code(main, ayu)
	})
}

// TestNothingIsLeftOfACode asks for many codes and searches everything that is on disk for them.
func TestNothingIsLeftOfACode(t *testing.T) {
	postgrestest.Skip(t, "the database is not a file")
	dir := t.TempDir()
	b := newBench(t, filepath.Join(dir, "parley.db"))
	var codes []string
	for n := range 1000 {
		o := order(main, parley.ContactID(fmt.Sprintf("999%07d@c.us", n*7919%1e7)))
		o.Digits, o.Letters, o.Uppercase = true, true, true // less likely to occur by chance
		code, issue, err := b.request(o)
		b.must(err)
		if strings.Contains(issue.Content.Shown, code) || issue.Content.Encrypted != nil ||
			!strings.Contains(issue.Content.Shown, "*••••••*") {
			t.Fatalf("history would show %q", issue.Content.Shown)
		}
		codes = append(codes, code)
		if n%10 == 0 {
			b.wants(main, o.Contact, code, parley.OTPStatusApproved, 0)
		}
	}
	b.must(b.config.Store.Close())
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	b.must(err)
	size := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		b.must(err)
		size += len(data)
		for _, code := range codes {
			if bytes.Contains(data, []byte(code)) {
				t.Errorf("%s holds a code", filepath.Base(file))
			}
		}
	}
	if size < 100_000 {
		t.Errorf("only %d bytes were searched", size)
	}
}

// The data of the caller is stored with the try, or neither is.
func TestValidateWith(t *testing.T) {
	b := newBench(t, "memory:"+t.Name())
	code := b.code(main, ayu)
	broken := errors.New("broken")
	_, err := b.Validate(t.Context(), main, ayu, code, func(*store.Tx, TryResult) error { return broken })
	if !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	b.wantsEvents()
	b.wants(main, ayu, code, parley.OTPStatusApproved, 0)
}

func BenchmarkValidate(b *testing.B) {
	bench := newBench(b, filepath.Join(b.TempDir(), "parley.db"))
	contact := func(n int64) parley.ContactID { return parley.ContactID(fmt.Sprintf("999%09d@c.us", n)) }
	codes := make([]string, b.N)
	for n := range codes {
		codes[n] = bench.code(main, contact(int64(n)))
	}
	var next atomic.Int64
	b.SetParallelism(64)
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			n := next.Add(1) - 1
			if try, err := bench.Validate(b.Context(), main, contact(n), codes[n], nil); err != nil || try.Status != parley.OTPStatusApproved {
				b.Errorf("%+v, %v", try, err)
			}
		}
	})
}
