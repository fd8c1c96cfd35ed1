package callback_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/internal/callback"
	"parley/internal/store"
)

// outcome stores an event that is about no message, so that a reset leaves it.
func (e *env) outcome(n int) parley.Event {
	e.Helper()
	event := parley.NewOTPEvent(parley.OTPApproved, parley.OTPID(fmt.Sprintf("otc_%d", n)), shop, ann, "", time.Now())
	e.tx(func(tx *store.Tx) error { return tx.AddEvent(context.Background(), event) })
	return *event
}

// The channel gets another number during an attempt, and the waiting deliveries of its chat get theirs later.
func TestWebhooksContinueAfterAResetDuringAnAttempt(t *testing.T) {
	inBubble(t, func(e *env) {
		e.webhook("https://crm.example/hook")
		respond := make(chan struct{})
		e.servers.on("crm.example", func(*http.Request) (*http.Response, error) {
			<-respond
			return answer(200), nil
		})
		e.start()
		var want []string
		for n := range 6 {
			want = append(want, string(e.outcome(n).ID))
		}
		pass(time.Second)
		e.tx(func(tx *store.Tx) error { return tx.ClearChannel(context.Background(), shop) })
		close(respond)
		pass(time.Second)
		for more := true; more; {
			e.tx(func(tx *store.Tx) (err error) {
				_, more, err = tx.PurgeChannels(context.Background())
				return err
			})
		}
		pass(time.Minute)
		var got []string
		for _, h := range e.servers.at("crm.example") {
			got = append(got, h.id())
		}
		if !slices.Equal(got, want) {
			e.Errorf("delivered %v, want %v", got, want)
		}
	})
}

// A node hands a webhook over while it waits for a response. The next owner attempts the delivery again; what the first one
// stores later must not undo that.
func TestLateResultAfterAHandOver(t *testing.T) {
	inBubble(t, func(e *env) {
		w := e.webhook("https://crm.example/hook")
		var second atomic.Bool // the second node is the owner
		respond := make(chan struct{})
		e.engine = callback.New(callback.Config{Store: e.store, Secrets: e.secrets, Render: encodeEvent, Links: testLinks,
			Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Owns: func(string) bool { return !second.Load() },
			Client: do(func(*http.Request) (*http.Response, error) {
				<-respond
				return answer(500), nil
			})})
		first := e.engine
		e.start()
		stopFirst := e.stop
		e.outcome(1)
		pass(time.Second)

		second.Store(true)
		first.Reload()
		e.renew(e.servers)
		e.start()
		pass(time.Second)
		want := e.only()
		if want.State != parley.DeliveryDone {
			e.Fatalf("the new owner did not deliver: %+v", want)
		}
		close(respond)
		pass(time.Minute)
		if got := e.only(); got.State != want.State || got.Attempts != want.Attempts || len(got.Earlier) != 0 {
			e.Errorf("after the late result: %+v, want %+v", got, want)
		}
		if n := e.readWebhook(w.ID).Failures; n != 0 {
			e.Errorf("the webhook has %d failures of a node that does not own it", n)
		}
		if n := len(e.servers.at("crm.example")); n != 1 {
			e.Errorf("the new owner sent %d requests", n)
		}
		stopFirst()
	})
}

type do func(*http.Request) (*http.Response, error)

func (f do) Do(r *http.Request) (*http.Response, error) { return f(r) }

// counted counts what the engine asks the store about single endpoints.
type counted struct {
	*store.DB
	asked atomic.Int64
}

func (c *counted) DueDeliveries(ctx context.Context, to parley.Endpoint, now time.Time, limit int) ([]parley.Delivery, error) {
	c.asked.Add(1)
	return c.DB.DueDeliveries(ctx, to, now, limit)
}

func (c *counted) NextDelivery(ctx context.Context, to parley.Endpoint, after time.Time) (time.Time, error) {
	c.asked.Add(1)
	return c.DB.NextDelivery(ctx, to, after)
}

// Callbacks that wait for their time cost nothing when something else happens, also for a new process.
func TestWaitingCallbacksAreNotAskedForAtEveryEvent(t *testing.T) {
	inBubble(t, func(e *env) {
		const hosts = 50
		db := &counted{DB: e.store}
		for n := range hosts {
			host := fmt.Sprintf("app%d.example", n)
			e.servers.on(host, always(500))
			e.calls("https://"+host+"/ok", parley.OTPApproved, "")
		}
		e.renewOn(db, e.servers)
		e.start()
		pass(4 * time.Minute) // four attempts each; the next one is due after ten minutes
		e.stop()
		e.renewOn(db, e.servers)
		e.start()
		pass(time.Second)
		db.asked.Store(0)
		for n := range 20 {
			e.outcome(n)
			pass(time.Second)
		}
		if n := db.asked.Load(); n != 0 {
			e.Errorf("%d events made the engine ask %d times for callbacks that are not due", 20, n)
		}
		e.calls("https://app7.example/new", parley.OTPApproved, "")
		pass(time.Second)
		if hits := e.servers.at("app7.example"); !strings.HasPrefix(hits[len(hits)-1].url, "https://app7.example/new?") {
			e.Errorf("a new callback was not attempted: the last is %s", hits[len(hits)-1].url)
		}
		pass(20 * time.Minute)
		for n := range hosts {
			if got := len(e.servers.at(fmt.Sprintf("app%d.example", n))); got < 5 {
				e.Errorf("app%d got %d attempts, want the one of a later time too", n, got)
			}
		}
	})
}
