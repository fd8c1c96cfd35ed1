package otp

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley"
)

func crowdLimits(contacts, alike int) func(*Config) {
	return func(c *Config) { c.ContactsPerHour, c.AlikePerHour = contacts, alike }
}

// person is somebody whose number is not like anybody else's.
func person(i int) parley.ContactID { return parley.ContactID(fmt.Sprintf("628%05d0000@c.us", i)) }

// TestCrowdsAreLimited asks for codes to many people, waits as long as it is told and asks again, a
// hundred times. What is counted survives the process.
func TestCrowdsAreLimited(t *testing.T) {
	const contacts, alike = 7, 3
	neighbour := func(i int) parley.ContactID { return parley.ContactID(fmt.Sprintf("62811000%04d@c.us", i)) }
	for name, c := range map[string]struct {
		most   int
		policy string
		limits func(*Config)
		who    func(i int) parley.ContactID
	}{
		"new people":    {contacts, "otp-contacts", crowdLimits(contacts, 0), person},
		"numbers alike": {alike, "otp-prefix", crowdLimits(0, alike), neighbour},
		"both at once":  {alike, "otp-prefix", crowdLimits(contacts, alike), neighbour},
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
			if want := time.Hour - time.Duration(c.most)*time.Minute; q.Name != c.policy || q.Quota != c.most || q.Left != 0 || q.Wait > want || q.Wait < want-time.Minute {
				t.Errorf("the limit is %+v, want it for about %s", q, want)
			}
			b.must(ask(c.who(c.most - 1))) // who is counted already may ask again
			_, _, err := b.request(order(other, c.who(next)))
			b.must(err) // as may the other channel
			b.must(b.Store.Close())
			b.open(b.Sealer, c.limits)
			for range 100 {
				b.advance(main, b.limitOf(ask(c.who(next))).Wait)
				b.must(ask(c.who(next)))
				next++
			}
		})
	}
}

// TestKnownPeopleAreNoCrowd has people write first.
func TestKnownPeopleAreNoCrowd(t *testing.T) {
	b := newBench(t, filepath.Join(t.TempDir(), "parley.db"), crowdLimits(2, 0))
	for i := range 10 {
		b.must(b.Store.Tx(t.Context(), func(tx parley.Tx) error {
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

// TestCrowdsAreOffByDefault asks for codes to more people than any limit would let.
func TestCrowdsAreOffByDefault(t *testing.T) {
	b := newBench(t, filepath.Join(t.TempDir(), "parley.db"))
	for i := range 400 {
		if _, _, err := b.request(order(main, parley.ContactID(fmt.Sprintf("62811000%04d@c.us", i)))); err != nil {
			t.Fatalf("person %d: %v", i, err)
		}
	}
	if crowd, err := b.Store.Crowd(t.Context(), main, person(1), time.Time{}, 10); err != nil || len(crowd.Fresh) != 0 {
		t.Errorf("somebody is counted: %+v, %v", crowd, err)
	}
}

// TestCrowdUnderConcurrency has many ask at once: no more get through than may, and those that are
// refused count for nothing.
func TestCrowdUnderConcurrency(t *testing.T) {
	b := newBench(t, filepath.Join(t.TempDir(), "parley.db"), crowdLimits(10, 0))
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
		if l, err := b.Store.Ledger(t.Context(), main, person(i)); err != nil || l.Code.ID != "" {
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
		b := newBench(t, "memory:"+t.Name(), crowdLimits(50, 0))
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
		if sent != 49 { // and one before
			t.Errorf("codes were sent to %d contacts in 100 seconds, want 49", sent)
		}
	})
}
