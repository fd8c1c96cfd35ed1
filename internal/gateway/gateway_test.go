package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley"
	"parley/internal/gateway"
	"parley/internal/media"
	"parley/internal/network"
	"parley/internal/safehttp"
	"parley/internal/seal"
	"parley/internal/store"
)

const ayu, budi = parley.ContactID("6281234567890@c.us"), parley.ContactID("6281234567891@c.us")

func TestAcceptedIsSentAndAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		m := b.await(ayu, "halo", time.Second)
		if m.Status != parley.Sent {
			t.Errorf("got %s", m.Status)
		}
		if stored := b.load(m); stored.Status != parley.Sent || stored.Content.Text() != "halo" {
			t.Errorf("stored: %+v", stored)
		}
		if got := b.driver.texts("demo", ayu); !slices.Equal(got, []string{"halo"}) {
			t.Errorf("the network got %v", got)
		}
	})
}

func TestWaitEndsAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.driver.session("demo").tell(network.State{Status: parley.Reconnecting, Reason: "The socket was closed."})
		begun := time.Now()
		m := b.await(ayu, "later", 10*time.Second)
		if m.Status != parley.Pending || time.Since(begun) != 10*time.Second {
			t.Errorf("%s after %s", m.Status, time.Since(begun))
		}
		b.driver.session("demo").tell(network.State{Status: parley.Working})
		synctest.Wait()
		if got := b.load(m).Status; got != parley.Sent {
			t.Errorf("after the connection came back it is %s", got)
		}
	})
}

func TestRefusalIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		until := time.Now().Add(time.Hour)
		b.driver.answer = func(*parley.Message) error {
			return network.RefuseUntil(parley.Restricted, "New contacts are restricted.", until)
		}
		m := b.await(ayu, "no", time.Second)
		if m.Status != parley.FailedForGood || m.Failure == nil || m.Failure.Code != parley.Restricted {
			t.Errorf("got %s, %+v", m.Status, m.Failure)
		}
		if got := b.g.RestrictedUntil("demo"); !got.Equal(until) {
			t.Errorf("restricted until %s, want %s", got, until)
		}
	})
}

func TestUnusableChannelsTakeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for _, s := range []parley.ChannelStatus{parley.LoggedOut, parley.ScanQRCode, parley.Failed} {
			b.driver.session("demo").tell(network.State{Status: s})
			if _, err := b.g.Send(t.Context(), "demo", text(ayu, "x"), gateway.Terms{}); parley.CodeOf(err) != parley.BadRequest {
				t.Errorf("%s: %v", s, err)
			}
		}
		if _, err := b.g.StopChannel(t.Context(), "demo"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.g.Send(t.Context(), "demo", text(ayu, "x"), gateway.Terms{}); parley.CodeOf(err) != parley.BadRequest {
			t.Errorf("stopped: %v", err)
		}
		if _, err := b.g.Send(t.Context(), "nobody", text(ayu, "x"), gateway.Terms{}); parley.CodeOf(err) != parley.NotFound {
			t.Errorf("unknown: %v", err)
		}
		if _, total, err := b.store.History(t.Context(), "demo", ayu, parley.Page{Limit: 1}); total != 0 || err != nil {
			t.Errorf("%d were stored, %v", total, err)
		}
	})
}

func TestAFullQueueTakesNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.driver.session("demo").tell(network.State{Status: parley.Reconnecting})
		for range 100 {
			drafts := make([]gateway.Draft, 100)
			for i := range drafts {
				drafts[i] = text(ayu, "x")[0]
			}
			if _, err := b.g.Send(t.Context(), "demo", drafts, gateway.Terms{}); err != nil {
				t.Fatal(err)
			}
		}
		_, err := b.g.Send(t.Context(), "demo", text(ayu, "x"), gateway.Terms{})
		var e *parley.Error
		if !errors.As(err, &e) || e.Code != parley.TooMany || e.RetryAfter <= 0 {
			t.Errorf("got %v", err)
		}
	})
}

func TestTheAllowListIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		_, err := b.g.UpdateChannel(t.Context(), "demo", func(c *parley.Channel) { c.Settings.AllowOnly = []parley.ContactID{ayu} })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.g.Send(t.Context(), "demo", text(budi, "x"), gateway.Terms{}); parley.CodeOf(err) != parley.Forbidden {
			t.Errorf("got %v", err)
		}
		b.accept(ayu, "x")
	})
}

func TestAKeyIsTakenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var taken, refused int
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				key := &parley.Answer{Scope: "demo", Key: "k", Fingerprint: []byte("f"), CreatedAt: time.Now()}
				_, err := b.g.Send(t.Context(), "demo", text(ayu, "once"), gateway.Terms{Key: key})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					taken++
				case errors.Is(err, parley.ErrExists):
					refused++
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if taken != 1 || refused != 49 {
			t.Errorf("%d taken, %d refused", taken, refused)
		}
		synctest.Wait()
		if got := b.driver.texts("demo", ayu); len(got) != 1 {
			t.Errorf("sent %d times", len(got))
		}
		answer, err := b.store.Answer(t.Context(), "demo", "k")
		if err != nil || len(answer.Messages) != 1 || answer.IsComplete() {
			t.Fatalf("the key is stored as %+v, %v", answer, err)
		}
		ms, err := b.g.Stand(t.Context(), "demo", answer.Messages)
		if err != nil || ms[0].Status != parley.Sent || ms[0].Content.Text() != "once" {
			t.Errorf("it stands as %+v, %v", ms, err)
		}
	})
}

// TestOrderOfAcceptanceIsOrderOnTheNetwork has many callers write to one chat at once.
func TestOrderOfAcceptanceIsOrderOnTheNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				for j := range 5 {
					b.accept(ayu, fmt.Sprint(i, " ", j))
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		var want []string
		for offset := int64(0); offset < 200; offset += 100 {
			page, _, err := b.store.History(t.Context(), "demo", ayu, parley.Page{Limit: 100, Offset: offset})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range page {
				want = append(want, m.Content.Text())
			}
		}
		slices.Reverse(want)
		if got := b.driver.texts("demo", ayu); !slices.Equal(got, want) {
			t.Errorf("the network has\n%v\nhistory has\n%v", got, want)
		}
	})
}

func TestWhatWasPendingIsSentByTheNextRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.driver.session("demo").tell(network.State{Status: parley.Reconnecting})
		b.accept(ayu, "one")
		b.accept(ayu, "two")
		b.restart()
		synctest.Wait()
		if got := b.driver.texts("demo", ayu); !slices.Equal(got, []string{"one", "two"}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestDeletingAMessageThatWaitsKeepsItFromBeingSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.driver.session("demo").tell(network.State{Status: parley.Reconnecting})
		m := b.accept(ayu, "oops")
		if _, err := b.g.Send(t.Context(), "demo", []gateway.Draft{{To: ayu, Content: parley.Delete{Target: m.Ref()}}}, gateway.Terms{}); err != nil {
			t.Fatal(err)
		}
		b.driver.session("demo").tell(network.State{Status: parley.Working})
		synctest.Wait()
		if got := b.driver.texts("demo", ayu); !slices.Equal(got, []string{""}) { // the deletion alone
			t.Errorf("the network got %q", got)
		}
		if got := b.load(m); got.Status != parley.Deleted || got.Content.Text() != "" {
			t.Errorf("it is %s and says %q", got.Status, got.Content.Text())
		}
	})
}

func TestReceipts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		m := b.await(ayu, "halo", time.Second)
		s := b.driver.session("demo")
		give := func(status parley.Status, ids ...parley.MessageID) error {
			return s.sink(t.Context(), network.Receipt{From: ayu, IDs: ids, Status: status, At: time.Now()})
		}
		if err := give(parley.Read, m.ID); err != nil {
			t.Fatal(err)
		}
		if err := give(parley.Delivered, m.ID); err != nil { // late: it changes nothing
			t.Fatal(err)
		}
		if got := b.load(m).Status; got != parley.Read {
			t.Errorf("got %s", got)
		}
		other := b.await(ayu, "two", time.Second)
		if err := give(parley.Delivered, "3EB0NOBODY", other.ID); err == nil {
			t.Error("a receipt for an unknown message was taken")
		}
		if got := b.load(other).Status; got != parley.Delivered {
			t.Errorf("beside an unknown one: %s", got)
		}
	})
}

// TestAReceiptSettlesAnUnknownOutcome loses the confirmation of a send that arrived.
func TestAReceiptSettlesAnUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.driver.answer = func(*parley.Message) error { return network.OutcomeUnknown(nil) }
		answer := b.begin(ayu, "did it?", time.Second)
		synctest.Wait()
		id := b.driver.session("demo").given[0].ID
		if err := b.driver.session("demo").sink(t.Context(), network.Receipt{From: ayu, IDs: []parley.MessageID{id}, Status: parley.Delivered, At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		m := answer()
		if m.Status != parley.Sent {
			t.Errorf("answered %s", m.Status)
		}
		if got := b.load(m).Status; got != parley.Delivered {
			t.Errorf("stored as %s", got)
		}
	})
}

func TestInboundIsKeptOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		s := b.driver.session("demo")
		in := network.Message{From: ayu, ID: "A1", Content: parley.File{Caption: "doc", Media: parley.Media{Filename: "a.txt"}}, Media: []byte("hello"), At: time.Now()}
		for range 3 {
			if err := s.sink(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
		fromBudi := in
		fromBudi.From = budi // the same id by another sender is another message
		if err := s.sink(t.Context(), fromBudi); err != nil {
			t.Fatal(err)
		}
		for _, chat := range []parley.ContactID{ayu, budi} {
			page, total, err := b.store.History(t.Context(), "demo", chat, parley.Page{Limit: 10})
			if err != nil || total != 1 || page[0].Status != parley.Received || page[0].FromMe {
				t.Fatalf("%s: %d, %+v, %v", chat, total, page, err)
			}
		}
		page, _, _ := b.store.History(t.Context(), "demo", ayu, parley.Page{Limit: 10})
		kept := parley.MediaOf(page[0].Content)
		if f, err := b.media.Open(kept.Key); err != nil {
			t.Errorf("its file: %v", err)
		} else {
			f.Close()
		}
		if err := s.sink(t.Context(), network.Reaction{From: ayu, Target: page[0].Ref(), Emoji: "🎉", At: time.Now()}); err != nil {
			t.Error(err)
		}
		if page, _, _ := b.store.History(t.Context(), "demo", ayu, parley.Page{Limit: 10}); !slices.Equal(page[0].Reactions, []string{"🎉"}) {
			t.Errorf("reactions %v", page[0].Reactions)
		}
		if err := s.sink(t.Context(), network.Deletion{From: ayu, Target: "A1", At: time.Now()}); err != nil {
			t.Error(err)
		}
		page, _, _ = b.store.History(t.Context(), "demo", ayu, parley.Page{Limit: 10})
		if page[0].Status != parley.Deleted || page[0].Content.Text() != "" {
			t.Errorf("after its deletion: %+v", page[0])
		}
		if _, err := b.media.Open(kept.Key); err == nil {
			t.Error("the file of a deleted message is still there")
		}
	})
}

func TestRefreshFollowsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.tx(func(tx parley.Tx) error {
			return tx.AddChannel(t.Context(), parley.Channel{Code: "toko", Name: "Toko", Network: parley.Sandbox, Enabled: true})
		})
		b.refresh()
		if c, ok := b.g.Channel("toko"); !ok || c.State.Status != parley.Working || c.Number != "99900000001" {
			t.Errorf("a new channel: %+v", c)
		}
		b.tx(func(tx parley.Tx) error {
			c, err := tx.Channel(t.Context(), "toko")
			if err != nil {
				return err
			}
			c.Enabled = false
			return tx.UpdateChannel(t.Context(), c)
		})
		b.refresh()
		if c, _ := b.g.Channel("toko"); c.State.Status != parley.Stopped || !b.driver.session("toko").closed {
			t.Errorf("a stopped channel: %+v", c.State)
		}
		b.tx(func(tx parley.Tx) error {
			_, err := tx.DeleteChannel(t.Context(), "toko")
			return err
		})
		b.refresh()
		if _, ok := b.g.Channel("toko"); ok || !slices.Contains(b.driver.forgotten, "toko") {
			t.Error("a deleted channel is still there")
		}
	})
}

func TestAChannelThatCannotOpenIsFailedAndTouchesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.driver.refuse = "broken"
		c, err := b.g.CreateChannel(t.Context(), parley.Channel{Code: "broken", Network: parley.Sandbox})
		if err != nil || c.State.Status != parley.Failed || c.State.Reason == "" {
			t.Errorf("got %+v, %v", c.State, err)
		}
		b.accept(ayu, "still here")
		b.driver.refuse = ""
		if c, err := b.g.StartChannel(t.Context(), "broken"); err != nil || c.State.Status != parley.Working {
			t.Errorf("started again: %+v, %v", c.State, err)
		}
		if _, err := b.g.CreateChannel(t.Context(), parley.Channel{Code: "broken", Network: parley.Sandbox}); parley.CodeOf(err) != parley.Invalid {
			t.Errorf("a second one with the same code: %v", err)
		}
		if _, err := b.g.CreateChannel(t.Context(), parley.Channel{Code: "x", Network: "pigeon"}); parley.CodeOf(err) != parley.Invalid {
			t.Errorf("an unknown network: %v", err)
		}
	})
}

func TestAMovedClockExpiresWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.driver.session("demo").tell(network.State{Status: parley.Reconnecting})
		answer := b.begin(ayu, "old", time.Second)
		synctest.Wait()
		if err := b.g.AdvanceClock(t.Context(), "demo", 25*time.Hour); err != nil {
			t.Fatal(err)
		}
		m := answer()
		if m.Status != parley.FailedForGood || m.Failure.Code != parley.Expired {
			t.Errorf("got %s, %+v", m.Status, m.Failure)
		}
	})
}

func TestDeletingAChannelRemovesItsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		in := network.Message{From: ayu, ID: "A1", Content: parley.File{Media: parley.Media{Filename: "a.txt"}}, Media: []byte("hello"), At: time.Now()}
		if err := b.driver.session("demo").sink(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		page, _, err := b.store.History(t.Context(), "demo", ayu, parley.Page{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.g.DeleteChannel(t.Context(), "demo"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.media.Open(parley.MediaOf(page[0].Content).Key); err == nil {
			t.Error("the file of a deleted channel is still there")
		}
		if err := b.g.DeleteChannel(t.Context(), "demo"); parley.CodeOf(err) != parley.NotFound {
			t.Errorf("deleted twice: %v", err)
		}
	})
}

func TestPickForPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		if _, err := b.g.CreateChannel(t.Context(), parley.Channel{Code: "toko", Network: parley.Sandbox}); err != nil {
			t.Fatal(err)
		}
		seen := map[parley.ChannelCode]bool{}
		for range 100 {
			code, err := b.g.PickForPool(t.Context(), ayu)
			if err != nil {
				t.Fatal(err)
			}
			seen[code] = true
		}
		if len(seen) != 2 {
			t.Errorf("of two channels only %v are chosen", seen)
		}
		b.accept(ayu, "we have talked")
		for range 20 {
			if code, err := b.g.PickForPool(t.Context(), ayu); code != "demo" || err != nil {
				t.Fatalf("got %s, %v", code, err)
			}
		}
		b.driver.session("demo").tell(network.State{Status: parley.LoggedOut})
		if code, err := b.g.PickForPool(t.Context(), ayu); code != "toko" || err != nil {
			t.Errorf("with demo logged out: %s, %v", code, err)
		}
		b.driver.session("toko").tell(network.State{Status: parley.Reconnecting})
		if _, err := b.g.PickForPool(t.Context(), ayu); !errors.Is(err, parley.ErrNotFound) {
			t.Errorf("with none working: %v", err)
		}
	})
}

func TestOldTextAndAnswersGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		key := &parley.Answer{Scope: "demo", Key: "k", Fingerprint: []byte("f"), CreatedAt: time.Now()}
		sent, err := b.g.Send(t.Context(), "demo", text(ayu, "old"), gateway.Terms{Key: key, Wait: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		day := parley.Duration(24 * time.Hour)
		if _, err := b.g.UpdateChannel(t.Context(), "demo", func(c *parley.Channel) { c.Settings.Retention = &day }); err != nil {
			t.Fatal(err)
		}
		m := sent[0]
		time.Sleep(23 * time.Hour)
		synctest.Wait()
		if b.load(m).Content.Text() != "old" {
			t.Error("the text went an hour early")
		}
		if _, err := b.store.Answer(t.Context(), "demo", "k"); err != nil {
			t.Errorf("the answer went an hour early: %v", err)
		}
		time.Sleep(time.Hour + 2*time.Minute)
		synctest.Wait()
		if got := b.load(m); got.Content.Text() != "" || got.Status != parley.Sent {
			t.Errorf("after a day: %s %q", got.Status, got.Content.Text())
		}
		if _, err := b.store.Answer(t.Context(), "demo", "k"); !errors.Is(err, parley.ErrNotFound) {
			t.Errorf("the answer after a day: %v", err)
		}
	})
}

func TestAfterTheDrainNothingIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.stop()
		if _, err := b.g.Send(t.Context(), "demo", text(ayu, "x"), gateway.Terms{}); parley.CodeOf(err) != parley.Unavailable {
			t.Errorf("got %v", err)
		}
		if c, err := b.store.Channel(t.Context(), "demo"); err != nil || c.State.Status != parley.Stopped {
			t.Errorf("stored: %+v, %v", c.State, err)
		}
	})
}

func TestActivityTellsTheStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		happens, cancel := b.g.Activity()
		defer cancel()
		m := b.await(ayu, "halo", time.Second)
		if a := <-happens; a.ID != m.ID || a.Status != parley.Sent || a.Text != "halo" || !a.FromMe {
			t.Errorf("got %+v", a)
		}
		b.driver.session("demo").sink(t.Context(), network.Message{From: ayu, ID: "A1", Content: parley.Text{Body: "makasih"}, At: time.Now()})
		if a := <-happens; a.Text != "makasih" || a.FromMe || a.Status != parley.Received {
			t.Errorf("got %+v", a)
		}
		b.driver.session("demo").tell(network.State{Status: parley.LoggedOut})
		if a := <-happens; a.State != parley.LoggedOut {
			t.Errorf("got %+v", a)
		}
	})
}

// bench is a gateway on a store in memory and a network that does as it is told.
type bench struct {
	t      *testing.T
	store  *store.DB
	media  *media.Library
	driver *driver
	sealer *seal.Sealer
	g      *gateway.Gateway

	eventLife time.Duration
	inbound   func(context.Context, parley.Tx, parley.Channel, *parley.Message) (func() ([]gateway.Draft, error), error)
	cancel    context.CancelFunc
	done      chan struct{}
}

func newBench(t *testing.T) *bench {
	t.Helper()
	db, err := store.Open(t.Context(), "memory:"+t.Name())
	if err != nil {
		t.Fatal(err)
	}
	files, err := media.Open(t.TempDir(), safehttp.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := seal.Open(filepath.Join(t.TempDir(), "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, store: db, media: files, sealer: sealer, driver: &driver{sessions: map[parley.ChannelCode]*session{}}}
	b.tx(func(tx parley.Tx) error {
		return tx.AddChannel(t.Context(), parley.Channel{Code: "demo", Name: "Demo", Network: parley.Sandbox, Enabled: true})
	})
	b.start()
	t.Cleanup(func() {
		b.stop()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) start() {
	b.g = gateway.New(gateway.Config{
		Store: b.store, Media: b.media, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
		Drivers: map[parley.NetworkName]network.Driver{parley.Sandbox: b.driver, parley.WhatsApp: b.driver},
		Sealer:  b.sealer, Inbound: b.inbound, EventLife: b.eventLife,
	})
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel, b.done = cancel, make(chan struct{})
	g, done := b.g, b.done
	go func() {
		defer close(done)
		if err := g.Run(ctx); err != nil {
			b.t.Error(err)
		}
	}()
	<-b.g.Ready()
}

func (b *bench) stop() {
	b.cancel()
	<-b.done
}

func (b *bench) restart() {
	b.stop()
	b.start()
}

func (b *bench) refresh() {
	b.t.Helper()
	if err := b.g.Refresh(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) tx(do func(parley.Tx) error) {
	b.t.Helper()
	if err := b.store.Tx(b.t.Context(), do); err != nil {
		b.t.Fatal(err)
	}
}

func text(to parley.ContactID, body string) []gateway.Draft {
	return []gateway.Draft{{To: to, Content: parley.Text{Body: body}}}
}

// accept sends a text without waiting for the network.
func (b *bench) accept(to parley.ContactID, body string) parley.Message {
	b.t.Helper()
	return b.await(to, body, 0)
}

// await sends a text and waits for what becomes of it.
func (b *bench) await(to parley.ContactID, body string, wait time.Duration) parley.Message {
	b.t.Helper()
	ms, err := b.g.Send(b.t.Context(), "demo", text(to, body), gateway.Terms{Wait: wait})
	if err != nil {
		b.t.Error(err)
		return parley.Message{}
	}
	return ms[0]
}

// begin is await for a test that has something to do meanwhile.
func (b *bench) begin(to parley.ContactID, body string, wait time.Duration) (answer func() parley.Message) {
	answered := make(chan parley.Message, 1)
	go func() { answered <- b.await(to, body, wait) }()
	return func() parley.Message { return <-answered }
}

func (b *bench) load(m parley.Message) parley.Message {
	b.t.Helper()
	now, err := b.g.Stand(b.t.Context(), "demo", []parley.MessageRef{m.Ref()})
	if err != nil {
		b.t.Fatal(err)
	}
	return now[0]
}

// driver opens sessions that keep what they are given.
type driver struct {
	answer func(*parley.Message) error // nil: everything is confirmed
	refuse parley.ChannelCode          // the channel whose session cannot be opened
	hang   parley.ChannelCode          // the channel whose session does not open until hold is closed
	hold   chan struct{}

	mu        sync.Mutex
	sessions  map[parley.ChannelCode]*session
	forgotten []parley.ChannelCode
}

func (d *driver) Open(ctx context.Context, c parley.Channel, sink network.Sink) (network.Session, error) {
	if c.Code == d.refuse {
		return nil, errors.New("no")
	}
	if c.Code == d.hang && d.hold != nil {
		<-d.hold
	}
	d.mu.Lock()
	s := d.sessions[c.Code]
	if s == nil || s.closed {
		s = &session{driver: d, given: given(s)}
		d.sessions[c.Code] = s
	}
	s.sink = sink
	d.mu.Unlock()
	s.tell(network.State{Status: parley.Working, Phone: network.Phone{Name: "Toko", Number: "99900000001"}})
	return s, nil
}

func given(s *session) []parley.Message {
	if s == nil {
		return nil
	}
	return s.given
}

func (d *driver) Forget(ctx context.Context, code parley.ChannelCode) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgotten = append(d.forgotten, code)
	return nil
}

func (d *driver) session(code parley.ChannelCode) *session {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sessions[code]
}

func (d *driver) texts(code parley.ChannelCode, chat parley.ContactID) (texts []string) {
	s := d.session(code)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.given {
		if m.Chat == chat {
			texts = append(texts, m.Content.Text())
		}
	}
	return texts
}

type session struct {
	network.Session // what these tests do not call
	driver          *driver
	sink            network.Sink
	closed          bool

	mu    sync.Mutex
	given []parley.Message
}

func (s *session) tell(state network.State) { s.sink(context.Background(), state) }

func (s *session) Limits() (burst, calls int) { return 16, 2 }

func (s *session) Send(ctx context.Context, ms []*parley.Message) []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := make([]error, len(ms))
	for i, m := range ms {
		s.given = append(s.given, *m)
		if s.driver.answer != nil {
			errs[i] = s.driver.answer(m)
		}
	}
	return errs
}

func (s *session) Close() error {
	s.closed = true
	return nil
}
