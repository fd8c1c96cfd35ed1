package otp

import (
	"crypto/rand"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/store"
)

// strangerLimits sets the limits; below zero: none.
func strangerLimits(contacts, prefix int) func(*Config) {
	return func(c *Config) { c.ContactsPerHour, c.PrefixPerHour = contacts, prefix }
}

// person is somebody whose number is not like anybody else's.
func person(i int) parley.ContactID { return parley.ContactID(fmt.Sprintf("628%05d0000@c.us", i)) }

// TestStrangersAreLimited asks for codes to many people, waits as long as Retry-After says and asks again, a
// hundred times. What is counted survives the process.
func TestStrangersAreLimited(t *testing.T) {
	const contacts, alike = 7, 3
	neighbour := func(i int) parley.ContactID { return parley.ContactID(fmt.Sprintf("62811000%04d@c.us", i)) }
	for name, c := range map[string]struct {
		most   int
		policy string
		limits func(*Config)
		who    func(i int) parley.ContactID
	}{
		"new people":    {contacts, "otp-contacts", strangerLimits(contacts, -1), person},
		"numbers alike": {alike, "otp-prefix", strangerLimits(-1, alike), neighbour},
		"both at once":  {alike, "otp-prefix", strangerLimits(contacts, alike), neighbour},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "parley.db")
			b := newBench(t, path, c.limits)
			next := 0
			ask := func(who parley.ContactID) error {
				_, _, err := b.request(order(main, who))
				return err
			}
			for range c.most {
				b.must(ask(c.who(next)))
				b.advance(main, time.Minute)
				next++
			}
			q := b.limitOf(ask(c.who(next)))
			want := time.Hour - time.Duration(c.most)*time.Minute
			if q.Name != c.policy || q.Quota != c.most || q.Left != 0 || q.Wait > want || q.Wait < want-time.Minute {
				t.Errorf("the limit is %+v, want it for about %s", q, want)
			}
			b.must(ask(c.who(c.most - 1))) // who is counted already may ask again
			_, _, err := b.request(order(other, c.who(next)))
			b.must(err) // as may the other channel
			b.must(b.config.Store.Close())
			b.open(b.config.Keyring, c.limits)
			for range 100 {
				b.advance(main, b.limitOf(ask(c.who(next))).Wait)
				b.must(ask(c.who(next)))
				next++
			}
		})
	}
}

// TestKnownContactsAreNotLimited has people write first.
func TestKnownContactsAreNotLimited(t *testing.T) {
	b := newBench(t, filepath.Join(t.TempDir(), "parley.db"), strangerLimits(2, -1))
	for i := range 10 {
		b.must(b.config.Store.Tx(t.Context(), func(tx *store.Tx) error {
			return tx.AddMessage(t.Context(), &parley.Message{
				ID: parley.MessageID(fmt.Sprintf("3EB0%04d", i)), Channel: main, Chat: person(i), Content: parley.Text{Body: "Hi"},
				Status: parley.Received, CreatedAt: time.Now(), UpdatedAt: time.Now(),
			})
		}))
		b.code(main, person(i))
	}
	b.code(main, person(100))
	b.code(main, person(101))
	_, _, err := b.request(order(main, person(102)))
	if q := b.limitOf(err); q.Name != "otp-contacts" {
		t.Errorf("the limit is %+v", q)
	}
	b.advance(main, 20*time.Second)
	b.code(main, person(0))
}

// TestTheSandboxLimitsNoStrangers asks for codes to more people than any limit would let.
func TestTheSandboxLimitsNoStrangers(t *testing.T) {
	b := newBench(t, "memory:"+t.Name())
	for i := range 400 {
		if _, _, err := b.request(order(main, parley.ContactID(fmt.Sprintf("62811000%04d@c.us", i)))); err != nil {
			t.Fatalf("person %d: %v", i, err)
		}
	}
	if s, err := b.config.Store.Strangers(t.Context(), main, person(1), time.Now(), 10); err != nil || s.Codes != 0 {
		t.Errorf("somebody is counted: %+v, %v", s, err)
	}
}

// real is an order on the real network.
func real(contact parley.ContactID) CodeRequest {
	o := order(main, contact)
	o.Channel.Network = parley.WhatsApp
	return o
}

// TestStrangersAreLimitedByDefault asks for codes on the real network with no limit set. A tenth of the codes
// is approved, so that nothing pauses.
func TestStrangersAreLimitedByDefault(t *testing.T) {
	b := newBench(t, "memory:"+t.Name())
	sent := 0
	for i := range 100 {
		code, _, err := b.request(real(person(i)))
		if err != nil {
			if q := b.limitOf(err); q.Name != "otp-contacts" || q.Quota != 60 {
				t.Fatalf("the limit is %+v", q)
			}
			continue
		}
		if sent++; i < 10 {
			b.wants(main, person(i), code, parley.OTPStatusApproved, 0)
		}
	}
	if sent != 60 {
		t.Errorf("codes went to %d strangers, want 60", sent)
	}
	b.advance(main, 20*time.Second)
	_, issue, err := b.request(real(person(0))) // approved a code, and is known
	b.must(err)
	if issue.Priority != parley.PriorityKnown {
		t.Errorf("the code of a known contact has priority %d", issue.Priority)
	}
	b.advance(main, time.Hour)
	for i := range 11 {
		_, issue, err := b.request(real(parley.ContactID(fmt.Sprintf("62811000%04d@c.us", i))))
		if i == 10 {
			if q := b.limitOf(err); q.Name != "otp-prefix" || q.Quota != 10 {
				t.Errorf("the limit is %+v", q)
			}
		} else if b.must(err); issue.Priority != parley.PriorityStranger {
			t.Errorf("the code of a stranger has priority %d", issue.Priority)
		}
	}
}

// TestCodesToStrangersPause has nobody approve a code.
func TestCodesToStrangersPause(t *testing.T) {
	b := newBench(t, filepath.Join(t.TempDir(), "parley.db"), strangerLimits(1000, -1))
	ask := func(i int) error {
		_, _, err := b.request(order(main, person(i)))
		return err
	}
	next := 0
	for ; next < 50; next++ {
		b.must(ask(next))
	}
	b.wantsEvents()
	q := b.limitOf(ask(next))
	if q.Name != "otp-paused" || q.Left != 0 || q.Wait != 15*time.Minute {
		t.Errorf("the limit is %+v", q)
	}
	events := b.events()
	if len(events) != 1 || !strings.HasPrefix(events[0], `otp.paused {"codes":50,"approved":0,"until":"`) {
		t.Fatalf("events %v", events)
	}
	code, err := b.config.Store.Ledger(t.Context(), main, person(0))
	b.must(err)
	b.advance(main, 20*time.Second)
	if q := b.limitOf(ask(0)); q.Name != "otp-paused" { // who was sent a code is a stranger too
		t.Errorf("the limit is %+v", q)
	}
	b.must(b.config.Store.Tx(t.Context(), func(tx *store.Tx) error { return tx.ApproveContact(t.Context(), code.Code) }))
	b.must(ask(0)) // is known by now
	b.restart(strangerLimits(1000, -1))
	b.advance(main, b.limitOf(ask(next)).Wait)
	for range 50 { // then all begins again
		b.must(ask(next))
		next++
	}
	if q := b.limitOf(ask(next)); q.Name != "otp-paused" {
		t.Errorf("the limit is %+v", q)
	}
	if got := len(b.events()); got != 2 {
		t.Errorf("%d events", got)
	}
	if got := b.alarms("otp.paused"); got != 1 { // since the restart
		t.Errorf("the metric says %v", got)
	}
}

// TestApprovedCodesDoNotPause has a tenth of the codes approved, and half an hour pass.
func TestApprovedCodesDoNotPause(t *testing.T) {
	b := newBench(t, "memory:"+t.Name(), strangerLimits(1000, -1))
	for i := range 200 {
		code := b.code(main, person(i))
		if i%10 == 0 {
			b.wants(main, person(i), code, parley.OTPStatusApproved, 0)
		}
	}
	b.advance(main, 30*time.Minute)
	for i := range 49 {
		b.code(main, person(1000+i))
	}
	b.advance(main, 30*time.Minute)
	b.code(main, person(2000))
	b.wantsEvents(slices.Repeat([]string{"otp.approved"}, 20)...)
}

// TestPauseUnderConcurrency has many ask at once. They cause one pause.
func TestPauseUnderConcurrency(t *testing.T) {
	b := newBench(t, "memory:"+t.Name(), strangerLimits(1000, -1))
	var sent atomic.Int64
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			if _, _, err := b.request(order(main, person(i))); err == nil {
				sent.Add(1)
			}
		})
	}
	wg.Wait()
	if sent.Load() != 50 {
		t.Errorf("%d codes were sent, want 50", sent.Load())
	}
	if events := b.events(); len(events) != 1 || !strings.HasPrefix(events[0], "otp.paused ") {
		t.Errorf("events %v", events)
	}
}

// TestCodesThatWouldExpireAreRejected has codes leave one a second. A request is refused where those before it
// take longer than its code lives, and its wait is exact. Known contacts do not wait for strangers.
func TestCodesThatWouldExpireAreRejected(t *testing.T) {
	var waiting [parley.Priorities]atomic.Int64
	b := newBench(t, "memory:"+t.Name(), func(c *Config) {
		c.QueuedAhead = func(_ parley.ChannelCode, priority parley.Priority) int {
			n := int64(0)
			for p := priority; p < parley.Priorities; p++ {
				n += waiting[p].Load()
			}
			return int(n)
		}
	})
	ask := func(contact parley.ContactID, life time.Duration) error {
		o := order(main, contact)
		o.TTL, o.Channel.Settings.Pace = life, new(parley.Duration(time.Second))
		issue, err := b.NewCode(t.Context(), o)
		if err != nil {
			return err
		}
		defer issue.Close(t.Context())
		return b.config.Store.Tx(t.Context(), func(tx *store.Tx) error {
			tx.OnCommit(func() { waiting[issue.Priority].Add(1) })
			return issue.Store(t.Context(), tx)
		})
	}
	var sent atomic.Int64
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			if err := ask(person(i), 30*time.Second); err == nil {
				sent.Add(1)
			}
		})
	}
	wg.Wait()
	if sent.Load() > 31 { // thirty may be before it
		t.Errorf("%d codes were sent, want 31", sent.Load())
	}
	for i := sent.Load(); i < 31; i++ { // a code counts twice for a moment: as reserved, and as queued
		b.must(ask(person(int(200+i)), 30*time.Second))
	}
	if q := b.limitOf(ask(person(100), 30*time.Second)); q.Name != "otp-queue" || q.Quota != 30 || q.Wait != time.Second {
		t.Errorf("the limit is %+v", q)
	}
	b.must(ask(person(101), 31*time.Second))
	if q := b.limitOf(ask(person(100), 30*time.Second)); q.Wait != 2*time.Second {
		t.Errorf("the limit is %+v", q)
	}
	waiting[parley.PriorityStranger].Add(-2)
	b.must(ask(person(100), 30*time.Second))
	b.writes(ayu)
	b.must(ask(ayu, 30*time.Second))
	waiting[parley.PriorityKnown].Add(30)
	b.writes(budi)
	if q := b.limitOf(ask(budi, 30*time.Second)); q.Name != "otp-queue" || q.Wait != time.Second {
		t.Errorf("the limit is %+v", q)
	}
	if len(b.reserved) != 0 {
		t.Errorf("reserved for ever: %v", b.reserved)
	}
}

// alarms is how many alarms the metric counts.
func (b *bench) alarms(event string) float64 {
	b.t.Helper()
	families, err := b.config.Metrics.(*prometheus.Registry).Gather()
	b.must(err)
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == "parley_otp_alarms_total" && m.Label[0].GetValue() == event {
				return m.Counter.GetValue()
			}
		}
	}
	return 0
}

// writes has a contact write to the main channel.
func (b *bench) writes(contact parley.ContactID) {
	b.t.Helper()
	b.must(b.config.Store.Tx(b.t.Context(), func(tx *store.Tx) error {
		return tx.AddMessage(b.t.Context(), &parley.Message{
			ID: parley.MessageID(rand.Text()), Channel: main, Chat: contact, Content: parley.Text{Body: "Hi"},
			Status: parley.Received, CreatedAt: time.Now(), UpdatedAt: time.Now(),
		})
	}))
}

// TestGuessingIsDetected has somebody try codes of many contacts. Nobody is locked out.
func TestGuessingIsDetected(t *testing.T) {
	b := newBench(t, "memory:"+t.Name())
	guess := func(contact int) {
		code := b.code(main, person(contact))
		for range 4 {
			b.try(main, person(contact), wrong(code))
		}
		if contact%25 == 0 {
			b.wants(main, person(contact), code, parley.OTPStatusApproved, 0)
		}
	}
	alarms := func() (n int) {
		for _, e := range b.events() {
			if strings.HasPrefix(e, "otp.guessing ") {
				n++
			}
		}
		return n
	}
	next := 0
	for ; next < 125; next++ {
		guess(next)
	}
	if got := alarms(); got != 0 {
		t.Errorf("%d alarms after 500 wrong tries", got)
	}
	for ; next < 150; next++ {
		guess(next)
	}
	events := b.events()
	if got := alarms(); got != 1 || !slices.Contains(events, `otp.guessing {"tries":501}`) {
		t.Errorf("%d alarms after more than 500 wrong tries: %v", got, events)
	}
	if got := b.alarms("otp.guessing"); got != 1 {
		t.Errorf("the metric says %v", got)
	}
	held, err := b.config.Store.OTPAlarms(t.Context())
	b.must(err)
	if len(held) != 1 || held[0].Type != parley.OTPGuessing || held[0].Count != 501 || held[0].Until.Sub(held[0].At) != time.Hour {
		t.Errorf("alarms %+v", held)
	}
	b.advance(main, time.Hour)
	guess(next)
	if got := alarms(); got != 1 {
		t.Errorf("%d alarms an hour later", got)
	}
}

// TestClockThatWasAhead asks for a code, fails to use it, and makes a link, on a clock that is a day ahead for
// a moment. The waits end when they are said to.
func TestClockThatWasAhead(t *testing.T) {
	limits := strangerLimits(2, -1)
	b := newBench(t, filepath.Join(t.TempDir(), "parley.db"), limits)
	correct := func() { b.must(b.maintain(t.Context(), true)) }
	b.advance(main, 24*time.Hour)
	code := b.code(main, ayu)
	for range 5 {
		b.try(main, ayu, wrong(code))
	}
	b.code(main, budi)
	b.advance(main, -24*time.Hour)
	for _, restart := range []bool{false, true} {
		_, _, err := b.request(order(main, ayu))
		if q := b.limitOf(err); q.Wait > 20*time.Second {
			t.Fatalf("the limit is %+v", q)
		} else {
			b.advance(main, q.Wait)
		}
		if restart {
			b.restart(limits)
		}
		b.code(main, ayu)
	}
	ledger, err := b.config.Store.Ledger(t.Context(), main, ayu)
	b.must(err)
	for _, at := range append(ledger.Wrong, ledger.Requests...) {
		if at.After(b.clock(main)) {
			t.Errorf("a time is still in the future: %s", at)
		}
	}
	correct()
	got, err := b.config.Store.Ledger(t.Context(), main, budi) // nobody asked for it again
	if b.must(err); got.Code.ExpiresAt.After(b.clock(main).Add(5 * time.Minute)) {
		t.Errorf("the code is valid until %s", got.Code.ExpiresAt)
	}
	_, _, err = b.request(order(main, person(1)))
	b.advance(main, b.limitOf(err).Wait)
	b.code(main, person(1))
}

// TestStrangersUnderConcurrency has many ask at once: no more get through than may, and those that are
// refused count for nothing.
func TestStrangersUnderConcurrency(t *testing.T) {
	b := newBench(t, filepath.Join(t.TempDir(), "parley.db"), strangerLimits(10, -1))
	var sent atomic.Int64
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			if _, _, err := b.request(order(main, person(i))); err == nil {
				sent.Add(1)
			}
		})
	}
	wg.Wait()
	if sent.Load() != 10 {
		t.Errorf("%d codes were sent, want 10", sent.Load())
	}
	ledgers := 0
	for i := range 100 {
		if l, err := b.config.Store.Ledger(t.Context(), main, person(i)); err != nil || l.Code.ID != "" {
			ledgers++
		}
	}
	if ledgers != 10 {
		t.Errorf("%d codes are stored", ledgers)
	}
}

// TestOneContactOrMany has one contact asked for by many, and many by one: both come to an end.
func TestOneContactOrMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "memory:"+t.Name(), strangerLimits(30, -1))
		sent := 0
		for range 1000 {
			if _, _, err := b.request(order(main, person(0))); err == nil {
				sent++
			}
			time.Sleep(100 * time.Millisecond)
		}
		if sent != 5 {
			t.Errorf("%d codes were sent to one contact in 100 seconds, want 5", sent)
		}
		sent = 0
		for i := range 1000 {
			if _, _, err := b.request(order(main, person(1+i))); err == nil {
				sent++
			}
			time.Sleep(100 * time.Millisecond)
		}
		if sent != 29 { // and one before
			t.Errorf("codes were sent to %d contacts in 100 seconds, want 29", sent)
		}
	})
}
