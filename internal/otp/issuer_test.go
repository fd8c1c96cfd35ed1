package otp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/seal"
	"parley/internal/store"
)

const (
	main  = parley.ChannelCode("main")
	other = parley.ChannelCode("other")
)

// bench is an issuer with a store, and channels whose clocks can be moved.
type bench struct {
	*Issuer
	t     testing.TB
	path  string // of the store
	ahead sync.Map
}

func newBench(t testing.TB, path string, change ...func(*Config)) *bench {
	t.Helper()
	b := &bench{t: t, path: path}
	sealer, err := seal.Open(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	b.open(sealer, change...)
	t.Cleanup(func() { b.Store.Close() })
	b.must(b.Store.Tx(t.Context(), func(tx parley.Tx) error {
		for _, code := range []parley.ChannelCode{main, other} {
			if err := tx.AddChannel(t.Context(), parley.Channel{Code: code, Name: "Acme", Network: parley.Sandbox}); err != nil {
				return err
			}
		}
		return nil
	}))
	return b
}

// open opens the store and begins anew, as a process does.
func (b *bench) open(sealer *seal.Sealer, change ...func(*Config)) {
	b.t.Helper()
	db, err := store.Open(b.t.Context(), b.path)
	b.must(err)
	config := Config{Store: db, Sealer: sealer, Now: b.clock, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()}
	for _, f := range change {
		f(&config)
	}
	b.Issuer = New(config)
}

func (b *bench) restart() {
	b.t.Helper()
	b.must(b.Store.Close())
	b.open(b.Sealer)
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) clock(channel parley.ChannelCode) time.Time {
	ahead, _ := b.ahead.Load(channel)
	d, _ := ahead.(time.Duration)
	return time.Now().Add(d)
}

func (b *bench) advance(channel parley.ChannelCode, d time.Duration) {
	ahead, _ := b.ahead.Load(channel)
	before, _ := ahead.(time.Duration)
	b.ahead.Store(channel, before+d)
}

func order(channel parley.ChannelCode, contact parley.ContactID) Order {
	return Order{Channel: channel, Contact: contact, Name: "Acme", Length: 6, Digits: true, Life: 5 * time.Minute}
}

// request asks for a code and stores it, and returns it as its recipient reads it.
func (b *bench) request(o Order) (string, *Issue, error) {
	issue, err := b.NewCode(context.Background(), o)
	if err != nil {
		return "", nil, err
	}
	err = b.Store.Tx(context.Background(), func(tx parley.Tx) error { return issue.Store(context.Background(), tx) })
	if err != nil {
		return "", nil, err
	}
	text, err := b.Sealer.Open(issue.Code.Sealed, string(issue.Code.ID))
	if err != nil {
		return "", nil, err
	}
	_, code, _ := strings.Cut(string(text), "*")
	code, _, _ = strings.Cut(code, "*")
	return code, issue, nil
}

func (b *bench) code(channel parley.ChannelCode, contact parley.ContactID) string {
	b.t.Helper()
	code, _, err := b.request(order(channel, contact))
	b.must(err)
	return code
}

// try tries a code.
func (b *bench) try(channel parley.ChannelCode, contact parley.ContactID, code string) parley.OTPTry {
	b.t.Helper()
	try, _, err := b.Validate(b.t.Context(), channel, contact, code, nil)
	b.must(err)
	return try
}

func (b *bench) wants(channel parley.ChannelCode, contact parley.ContactID, code string, status parley.OTPStatus, left int) {
	b.t.Helper()
	if try := b.try(channel, contact, code); try.Status != status || try.Left != left {
		b.t.Errorf("got %s with %d left, want %s with %d", try.Status, try.Left, status, left)
	}
}

// wrong is a code that is not the one given.
func wrong(code string) string {
	if code == "000000" {
		return "000001"
	}
	return "000000"
}

// events lists what was told, as "type reason".
func (b *bench) events() []string {
	b.t.Helper()
	events, _, err := b.Store.Events(b.t.Context(), 0, parley.EventFilter{}, 1000)
	b.must(err)
	var told []string
	for _, e := range events {
		told = append(told, string(e.Type)+" "+string(e.Data))
	}
	return told
}

func (b *bench) wantsEvents(want ...string) {
	b.t.Helper()
	got := b.events()
	if len(got) != len(want) {
		b.t.Errorf("told %q, want %q", got, want)
		return
	}
	for i := range want {
		kind, reason, _ := strings.Cut(want[i], " ")
		if !strings.HasPrefix(got[i], kind+" ") || strings.Contains(got[i], `"reason"`) != (reason != "") || !strings.Contains(got[i], reason) {
			b.t.Errorf("told %q, want %q", got[i], want[i])
		}
	}
}

func (b *bench) limitOf(err error) parley.OTPQuota {
	b.t.Helper()
	limited, ok := errors.AsType[*Limited](err)
	if !ok || parley.CodeOf(err) != parley.TooMany {
		b.t.Fatalf("not limited: %v", err)
	}
	return limited.Quota
}

func TestCodeIsUsedOnce(t *testing.T) {
	b := newBench(t, "memory:"+t.Name())
	code := b.code(main, ayu)
	b.wants(main, ayu, wrong(code), parley.OTPStatusInvalid, 4)
	b.wants(main, ayu, "not even a code", parley.OTPStatusInvalid, 3)
	b.wants(main, ayu, "\t"+code+" ", parley.OTPStatusApproved, 0)
	for range 10 {
		if try := b.try(main, ayu, code); try != (parley.OTPTry{Status: parley.OTPStatusInvalid}) {
			t.Errorf("used again: %+v", try)
		}
	}
	b.wantsEvents("otp.approved")
}

func TestLetterCaseDoesNotCount(t *testing.T) {
	b := newBench(t, "memory:"+t.Name())
	for contact, capitals := range map[parley.ContactID]bool{ayu: true, budi: false} {
		o := order(main, contact)
		o.Digits, o.Letters, o.Capitals = false, true, capitals
		code, _, err := b.request(o)
		b.must(err)
		if (code == strings.ToUpper(code)) != capitals {
			t.Errorf("capitals %t: %s", capitals, code)
		}
		b.wants(main, contact, strings.ToUpper(code[:3])+strings.ToLower(code[3:]), parley.OTPStatusApproved, 0)
	}
}

func TestChannelsAndContactsAreApart(t *testing.T) {
	b := newBench(t, "memory:"+t.Name())
	code := b.code(main, ayu)
	for range 10 {
		if try := b.try(other, ayu, code); try != (parley.OTPTry{Status: parley.OTPStatusInvalid}) {
			t.Errorf("on another channel: %+v", try)
		}
		if try := b.try(main, budi, code); try != (parley.OTPTry{Status: parley.OTPStatusInvalid}) {
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
	b.must(b.Store.Tx(t.Context(), func(tx parley.Tx) error {
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
				try, _, err := b.Validate(context.Background(), main, contact, code, nil)
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
	l, err := b.Store.Ledger(t.Context(), main, budi)
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
			} else if _, ok := errors.AsType[*Limited](err); !ok {
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
				b.must(b.keepHouse(t.Context(), map[parley.ChannelCode]time.Time{}, true))
				b.wantsEvents(test.event) // told once
			})
		})
	}
}

func TestHouse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "memory:"+t.Name())
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { b.must(b.Run(ctx)) })
		code := b.code(main, ayu)
		b.code(other, budi)
		link := parley.OTPLink{ID: parley.NewLinkID(), Channel: main, Contact: budi, Hash: []byte{1}, CreatedAt: b.now(main), ExpiresAt: b.now(main).Add(time.Hour)}
		b.must(b.Store.Tx(ctx, func(tx parley.Tx) error { return tx.AddLink(ctx, link) }))

		b.advance(main, 5*time.Minute) // of one channel only
		time.Sleep(2 * time.Second)
		b.wantsEvents("otp.expired")
		l, err := b.Store.Ledger(ctx, main, ayu)
		b.must(err)
		if l.Code.Status != parley.OTPStatusExpired || l.Code.Sealed != nil {
			t.Errorf("the code is %+v", l.Code)
		}
		b.wants(main, ayu, code, parley.OTPStatusExpired, 0)
		stop()
		wg.Wait()

		ctx = t.Context()
		expired := map[parley.ChannelCode]time.Time{}
		later := func(d time.Duration) {
			time.Sleep(d)
			b.must(b.keepHouse(ctx, expired, true))
		}
		later(time.Hour)
		b.wantsEvents("otp.expired", "otp.expired", "otp.expired")
		later(22 * time.Hour)
		b.wants(main, ayu, code, parley.OTPStatusExpired, 0)
		later(2 * time.Hour)
		if l, err := b.Store.Ledger(ctx, main, ayu); err != nil || l.Code.ID != "" {
			t.Errorf("a day after its end there is %+v, %v", l, err)
		}
		if try := b.try(main, ayu, code); try != (parley.OTPTry{Status: parley.OTPStatusInvalid}) {
			t.Errorf("a forgotten code: %+v", try)
		}
		later(2 * time.Hour)
		if _, err := b.Store.Link(ctx, link.ID); !errors.Is(err, parley.ErrNotFound) {
			t.Errorf("the link: %v", err)
		}
	})
}

// A new code takes the place of one that expired before anybody noticed: that is told all the same.
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
		refused := func(limit parley.OTPLimit, wait time.Duration) {
			t.Helper()
			_, _, err := b.request(order(main, ayu))
			if q := b.limitOf(err); q.OTPLimit != limit || q.Wait != wait || q.Left != 0 {
				t.Errorf("got %+v, want %+v and %s", q, limit, wait)
			}
		}
		began := time.Now()
		for n := range 5 {
			_, issue, err := b.request(order(main, ayu))
			b.must(err)
			if issue.Quota.OTPLimit != parley.OTPRequests || issue.Quota.Left != 4-n {
				t.Errorf("after %d: %+v", n+1, issue.Quota)
			}
			if n < 4 {
				refused(parley.OTPPause, 20*time.Second)
				time.Sleep(19*time.Second + 999*time.Millisecond)
				refused(parley.OTPPause, time.Millisecond)
				time.Sleep(time.Millisecond)
			}
			b.restart() // which forgets nothing
		}
		refused(parley.OTPRequests, 10*time.Minute-80*time.Second)
		time.Sleep(time.Until(began.Add(10*time.Minute - time.Millisecond)))
		refused(parley.OTPRequests, time.Millisecond)
		b.code(main, budi) // others are free
		b.code(other, ayu)
		time.Sleep(time.Millisecond)
		b.code(main, ayu)
		refused(parley.OTPRequests, 20*time.Second) // until the second of the five is ten minutes ago
	})
}

func TestLimitOverAllChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "memory:"+t.Name())
		var channels []parley.ChannelCode
		for i := range 5 {
			channels = append(channels, parley.ChannelCode(fmt.Sprintf("c%d", i)))
		}
		for range 4 {
			for _, c := range channels {
				b.code(c, ayu)
			}
			time.Sleep(time.Minute)
		}
		_, _, err := b.request(order(main, ayu))
		if q := b.limitOf(err); q.OTPLimit != parley.OTPContact || q.Wait != 6*time.Minute {
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
		b.must(b.keepHouse(t.Context(), map[parley.ChannelCode]time.Time{}, true))
		b.wants(main, ayu, "x", parley.OTPStatusLocked, 0)
		_, _, err := b.request(order(main, ayu))
		if q := b.limitOf(err); q.OTPLimit != parley.OTPGuesses || !time.Now().Add(q.Wait).Equal(first.Add(24*time.Hour)) {
			t.Errorf("got %+v", q)
		}
		time.Sleep(time.Until(first.Add(24*time.Hour - time.Millisecond)))
		b.must(b.keepHouse(t.Context(), map[parley.ChannelCode]time.Time{}, true))
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
	dir := t.TempDir()
	b := newBench(t, filepath.Join(dir, "parley.db"))
	var codes []string
	for n := range 1000 {
		o := order(main, parley.ContactID(fmt.Sprintf("999%07d@c.us", n*7919%1e7)))
		o.Digits, o.Letters, o.Capitals = true, true, true // less likely to stand somewhere by chance
		code, issue, err := b.request(o)
		b.must(err)
		if strings.Contains(issue.Content.Shown, code) || issue.Content.Sealed != nil || !strings.Contains(issue.Content.Shown, "*••••••*") {
			t.Fatalf("history would show %q", issue.Content.Shown)
		}
		codes = append(codes, code)
		if n%10 == 0 {
			b.wants(main, o.Contact, code, parley.OTPStatusApproved, 0)
		}
	}
	b.must(b.Store.Close())
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

func TestNoCodeWithoutRandomness(t *testing.T) {
	b := newBench(t, "memory:"+t.Name(), func(c *Config) { c.Rand = iotest.ErrReader(errors.New("no entropy")) })
	_, _, err := b.request(order(main, ayu))
	if err == nil || parley.CodeOf(err) != parley.Internal {
		t.Fatalf("got %v", err)
	}
	l, err := b.Store.Ledger(t.Context(), main, ayu)
	b.must(err)
	if l.Code.ID != "" || len(l.Requests) != 0 {
		t.Errorf("there is %+v", l)
	}
}

// What the caller keeps is kept with the try, or neither is.
func TestValidateWith(t *testing.T) {
	b := newBench(t, "memory:"+t.Name())
	code := b.code(main, ayu)
	broken := errors.New("broken")
	_, _, err := b.Validate(t.Context(), main, ayu, code, func(parley.Tx, parley.OTPTry, time.Time) error { return broken })
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
			if try, _, err := bench.Validate(b.Context(), main, contact(n), codes[n], nil); err != nil || try.Status != parley.OTPStatusApproved {
				b.Errorf("%+v, %v", try, err)
			}
		}
	})
}
