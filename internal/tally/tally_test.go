package tally_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/store"
	"parley/internal/tally"
)

// world is a store in which things happen.
type world struct {
	*testing.T
	store *store.DB
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db, err := store.Open(context.Background(), "memory:"+t.Name())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	w := &world{t, db}
	w.tx(func(tx parley.Tx) error {
		return tx.AddChannel(context.Background(), parley.Channel{Code: "demo", Network: parley.Sandbox, CreatedAt: time.Now()})
	})
	return w
}

func (w *world) tx(do func(parley.Tx) error) {
	w.Helper()
	if err := w.store.Tx(context.Background(), do); err != nil {
		w.Fatal(err)
	}
}

const ayu = parley.ContactID("6281234567890@c.us")

// sends has the channel take a message.
func (w *world) sends(content parley.Content, at time.Time) *parley.Message {
	w.Helper()
	m := &parley.Message{Channel: "demo", Chat: ayu, FromMe: true, Content: content, CreatedAt: at, UpdatedAt: at}
	w.tx(func(tx parley.Tx) error { m.ID = ""; return tx.AddMessage(context.Background(), m) })
	return m
}

func (w *world) becomes(m *parley.Message, to parley.Status, at time.Time) {
	w.Helper()
	w.tx(func(tx parley.Tx) error {
		_, err := tx.AdvanceMessage(context.Background(), "demo", m.Ref(), to, nil, at)
		return err
	})
}

// receives has a message come.
func (w *world) receives(id string, at time.Time) *parley.Message {
	w.Helper()
	m := &parley.Message{Channel: "demo", Chat: ayu, ID: parley.MessageID(id), Content: parley.Text{Body: "hi"}, Status: parley.Received, CreatedAt: at, UpdatedAt: at}
	w.tx(func(tx parley.Tx) error {
		if err := tx.AddMessage(context.Background(), m); err != nil {
			return err
		}
		return tx.AddEvent(context.Background(), &parley.Event{Type: parley.MessageReceived, Channel: "demo", At: at, Message: m})
	})
	return m
}

func (w *world) report(t *tally.Tally) tally.Report {
	w.Helper()
	r, err := t.Report(context.Background())
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func (w *world) same(what string, got, want any) {
	w.Helper()
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		w.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// TestCounts makes sure that what happens is counted where and as what it is, live and after a restart.
func TestCounts(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	live := tally.New(tally.Config{Store: w.store})
	w.same("nothing", w.report(live).Counts, tally.Counts{})

	long := w.sends(parley.Text{Body: "long ago"}, now.Add(-25*time.Hour))
	w.becomes(long, parley.Sent, now.Add(-25*time.Hour))
	w.becomes(long, parley.Read, now.Add(-time.Hour)) // only this is of the last day
	m := w.sends(parley.Text{Body: "hello"}, now.Add(-10*time.Minute))
	w.becomes(m, parley.Delivered, now.Add(-10*time.Minute).Add(1500*time.Millisecond)) // which tells that it was sent, too
	w.becomes(w.sends(parley.Text{Body: "no"}, now), parley.FailedForGood, now)
	in := w.receives("IN", now.Add(-time.Minute))
	w.becomes(in, parley.Read, now) // seen by us: nobody read what we sent
	ahead := w.sends(parley.Text{Body: "on a clock that was moved"}, now.Add(time.Hour))
	w.becomes(ahead, parley.Sent, now.Add(time.Hour))
	code := w.sends(parley.Secret{Shown: "••••••", OTP: "otc_1"}, now)
	live.Code(code.Seq)
	w.becomes(code, parley.Sent, now)
	w.becomes(code, parley.Delivered, now.Add(100*time.Millisecond))
	w.tx(func(tx parley.Tx) error {
		ctx := context.Background()
		if err := tx.AddLink(ctx, parley.OTPLink{ID: "otl_1", Channel: "demo", Contact: ayu, Hash: []byte{1}, CreatedAt: now.Add(-time.Minute), ExpiresAt: now.Add(time.Minute)}); err != nil {
			return err
		}
		return tx.AddEvent(ctx, parley.NewOTPEvent(parley.OTPApproved, "otc_1", "demo", ayu, "", now))
	})
	live.Link()

	for name, one := range map[string]*tally.Tally{"live": live, "after a restart": tally.New(tally.Config{Store: w.store})} {
		r := w.report(one)
		w.same(name+": counts", r.Counts, tally.Counts{Sent: 3, Delivered: 2, Read: 1, Failed: 1, Received: 1})
		w.same(name+": codes", r.Codes, tally.Codes{Requested: 2, Links: 1, Delivered: 1, Approved: 1})
		w.same(name+": counting", r.Counting, false)
		w.same(name+": minutes", len(r.Minutes), 60)
		hour := tally.Counts{}
		for i, m := range r.Minutes {
			hour.Sent += m.Sent
			hour.Delivered += m.Delivered
			hour.Received += m.Received
			if i > 0 && !m.At.Equal(r.Minutes[i-1].At.Add(time.Minute)) {
				t.Errorf("%s: minute %d is %s after %s", name, i, m.At, r.Minutes[i-1].At)
			}
		}
		w.same(name+": the last hour", hour, tally.Counts{Sent: 3, Delivered: 2, Received: 1})
		w.same(name+": time to the phone", *r.ToDelivered, tally.Times{P50: 1500, P95: 1500})
		c := one.Channel("demo")
		w.same(name+": channel", []int64{c.Sent, c.Failed}, []int64{3, 1})
		w.same(name+": last inbound", c.Inbound.UnixMilli(), now.Add(-time.Minute).UnixMilli())
		w.same(name+": another channel", one.Channel("other"), tally.Channel{})
		one.Forget("demo")
		w.same(name+": a channel that is gone", one.Channel("demo"), tally.Channel{})
	}
}

// TestCountsPass makes sure that what is longer ago than a day is counted no more.
func TestCountsPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		one := tally.New(tally.Config{Store: w.store})
		w.becomes(w.sends(parley.Text{}, time.Now()), parley.Sent, time.Now())
		time.Sleep(23 * time.Hour)
		w.same("in a day", w.report(one).Counts.Sent, 1)
		w.same("of the channel", one.Channel("demo").Sent, 1)
		w.same("in an hour", w.report(one).Minutes[0].Sent, 0)
		time.Sleep(2 * time.Hour)
		w.same("after a day", w.report(one).Counts.Sent, 0)
		w.same("of the channel", one.Channel("demo").Sent, 0)
	})
}

// TestWebhooks makes sure that deliveries are counted by what became of them.
func TestWebhooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		one := tally.New(tally.Config{Store: w.store})
		deliver := func(n int, state parley.DeliveryState) {
			w.tx(func(tx parley.Tx) error {
				for range n {
					d := parley.NewDelivery(&parley.Event{Seq: 1, ID: "evt_1", Type: parley.MessageStatus, Channel: "demo"}, "whk_1")
					if err := tx.AddDeliveries(context.Background(), []parley.Delivery{d}); err != nil {
						return err
					}
					d.State = state
					if err := tx.UpdateDeliveries(context.Background(), []parley.Delivery{d}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		deliver(3, parley.DeliveryDone)
		deliver(2, parley.DeliveryFailed)
		deliver(1, parley.DeliveryWaiting)
		w.same("at once", w.report(one).Webhooks, tally.Webhooks{Delivered: 3, Failed: 2, Waiting: 1})
		time.Sleep(10 * time.Minute)
		w.report(one) // counts them for good
		deliver(4, parley.DeliveryDone)
		w.same("later", w.report(one).Webhooks, tally.Webhooks{Delivered: 7, Failed: 2, Waiting: 1})
		time.Sleep(24*time.Hour - 5*time.Minute)
		w.same("when the first are a day old", w.report(one).Webhooks, tally.Webhooks{Delivered: 4, Failed: 0, Waiting: 1})
	})
}

// TestTimesToSent makes sure that those of the last day are told from the metric, which counts for ever.
func TestTimesToSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		metrics := prometheus.NewRegistry()
		took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "parley_message_sent_seconds", Buckets: []float64{.01, .1, 1}})
		metrics.MustRegister(took)
		one := tally.New(tally.Config{Store: w.store, Metrics: metrics})
		if got := w.report(one).ToSent; got != nil {
			t.Errorf("nothing took %v", got)
		}
		for range 100 {
			took.Observe(0.05)
		}
		w.same("evenly within its bucket", *w.report(one).ToSent, tally.Times{P50: 55, P95: 95})
		w.same("at first since the start", w.report(one).SentFrom, time.Now())
		for range 26 * 4 {
			time.Sleep(15 * time.Minute)
			w.report(one)
		}
		if got := w.report(one).ToSent; got != nil {
			t.Errorf("what is over a day ago took %v", got)
		}
		w.same("later since a day ago", w.report(one).SentFrom, time.Now().Add(-tally.Day))
		took.Observe(5)
		w.same("beyond all buckets", *w.report(one).ToSent, tally.Times{P50: 1000, P95: 1000})
	})
}

// TestManyMessages makes sure that whoever asks does not wait for a long log to be read, and is told that
// the figures still grow.
func TestManyMessages(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	const many = 20_000
	w.tx(func(tx parley.Tx) error {
		ctx := context.Background()
		if err := tx.AddChannel(ctx, parley.Channel{Code: "other", CreatedAt: now}); err != nil {
			return err
		}
		for i := range many { // of two channels in turn, so that no row of the log has many
			code := parley.ChannelCode([]string{"demo", "other"}[i/50%2])
			if err := tx.AddEvent(ctx, parley.NewOTPEvent(parley.OTPApproved, "otc_1", code, ayu, "", now)); err != nil {
				return err
			}
		}
		return nil
	})
	one := tally.New(tally.Config{Store: w.store})
	r := w.report(one)
	if !r.Counting || r.Codes.Approved == 0 || r.Codes.Approved >= many {
		t.Errorf("counting: %v, %d of %d", r.Counting, r.Codes.Approved, many)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- one.Run(ctx) }()
	for r.Counting {
		r = w.report(one)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	w.same("in the end", r.Codes.Approved, many)
}
