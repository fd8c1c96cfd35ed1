package gateway_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/gateway"
	"parley/internal/network"
	"parley/internal/store"
)

const ayu, budi = parley.ContactID("6281234567890@c.us"), parley.ContactID("6281234567891@c.us")

func TestSendIsConfirmed(t *testing.T) {
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

// The worker reads the queue from the store now and then. It may find a message before the request that sent it continues.
func TestFoundInTheStoreIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		wait := func(tx *store.Tx) error {
			tx.OnCommit(func() {
				for len(b.driver.texts("demo", ayu)) == 0 {
					time.Sleep(time.Second)
				}
			})
			return nil
		}
		var ms []parley.Message
		var err error
		var wg sync.WaitGroup
		if err := b.store.Tx(t.Context(), func(tx *store.Tx) error {
			tx.OnCommit(func() { // the next two share a commit
				wg.Go(func() { _ = b.store.Tx(t.Context(), wait) })
				synctest.Wait()
				wg.Go(func() {
					ms, err = b.g.Send(t.Context(), "demo", text(ayu, "halo"), gateway.SendOptions{Wait: time.Hour})
				})
				synctest.Wait()
			})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if ms[0].Status != parley.Sent {
			t.Errorf("got %s", ms[0].Status)
		}
		if got := b.driver.texts("demo", ayu); !slices.Equal(got, []string{"halo"}) {
			t.Errorf("the network got %v", got)
		}
	})
}

func TestWaitEndsAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.driver.session("demo").tell(network.State{Status: parley.ChannelReconnecting, Reason: "The socket was closed."})
		begun := time.Now()
		m := b.await(ayu, "later", 10*time.Second)
		if m.Status != parley.Pending || time.Since(begun) != 10*time.Second {
			t.Errorf("%s after %s", m.Status, time.Since(begun))
		}
		b.driver.session("demo").tell(network.State{Status: parley.ChannelWorking})
		synctest.Wait()
		if got := b.load(m).Status; got != parley.Sent {
			t.Errorf("after the connection came back it is %s", got)
		}
	})
}

// TestOneWaitForAllMessages sends several messages in one request: it waits once, not once for each.
func TestOneWaitForAllMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.driver.session("demo").tell(network.State{Status: parley.ChannelReconnecting, Reason: "The socket was closed."})
		begun := time.Now()
		drafts := slices.Concat(text(ayu, "one"), text(ayu, "two"), text(ayu, "three"))
		ms, err := b.g.Send(t.Context(), "demo", drafts, gateway.SendOptions{Wait: time.Second})
		if err != nil || len(ms) != 3 || time.Since(begun) != time.Second {
			t.Errorf("%d messages after %s, %v", len(ms), time.Since(begun), err)
		}
	})
}

func TestRefusalIsReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		until := time.Now().Add(time.Hour)
		b.driver.answer = func(*parley.Message) error {
			return network.RefuseUntil(parley.Restricted, "New contacts are restricted.", until)
		}
		m := b.await(ayu, "no", time.Second)
		if m.Status != parley.Failed || m.Failure == nil || m.Failure.Code != parley.Restricted {
			t.Errorf("got %s, %+v", m.Status, m.Failure)
		}
		if active, got := b.g.Restriction("demo"); !active || !got.Equal(until) {
			t.Errorf("restricted %t until %s, want %s", active, got, until)
		}
	})
}

func TestUnusableChannelsReject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for _, s := range []parley.ChannelStatus{parley.ChannelLoggedOut, parley.ChannelScanQRCode, parley.ChannelFailed} {
			b.driver.session("demo").tell(network.State{Status: s})
			if _, err := b.g.Send(t.Context(), "demo", text(ayu, "x"), gateway.SendOptions{}); parley.ToCode(err) != parley.ChannelNotReady {
				t.Errorf("%s: %v", s, err)
			}
		}
		if _, err := b.g.StopChannel(t.Context(), "demo"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.g.Send(t.Context(), "demo", text(ayu, "x"), gateway.SendOptions{}); parley.ToCode(err) != parley.ChannelNotReady {
			t.Errorf("stopped: %v", err)
		}
		if _, err := b.g.Send(t.Context(), "nobody", text(ayu, "x"), gateway.SendOptions{}); parley.ToCode(err) != parley.NotFound {
			t.Errorf("unknown: %v", err)
		}
		if _, total, err := b.store.History(t.Context(), "demo", ayu, parley.Page{Limit: 1}); total != 0 || err != nil {
			t.Errorf("%d were stored, %v", total, err)
		}
	})
}

func TestAFullQueueRejects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.driver.session("demo").tell(network.State{Status: parley.ChannelReconnecting})
		for range 100 {
			drafts := make([]gateway.Draft, 100)
			for i := range drafts {
				drafts[i] = text(ayu, "x")[0]
			}
			if _, err := b.g.Send(t.Context(), "demo", drafts, gateway.SendOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		_, err := b.g.Send(t.Context(), "demo", text(ayu, "x"), gateway.SendOptions{})
		var e *parley.Error
		if !errors.As(err, &e) || e.Code != parley.QueueFull || e.RetryAfter <= 0 {
			t.Errorf("got %v", err)
		}
	})
}

func TestAllowList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		_, err := b.g.UpdateChannel(t.Context(), "demo", func(c *parley.Channel) { c.Settings.AllowOnly = []parley.ContactID{ayu} })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.g.Send(t.Context(), "demo", text(budi, "x"), gateway.SendOptions{}); parley.ToCode(err) != parley.Forbidden {
			t.Errorf("got %v", err)
		}
		b.accept(ayu, "x")
	})
}

func TestAKeyIsAcceptedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var taken, refused int
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				key := &store.StoredResponse{Scope: "demo", Key: "k", Fingerprint: []byte("f"), CreatedAt: time.Now()}
				_, err := b.g.Send(t.Context(), "demo", text(ayu, "once"), gateway.SendOptions{Key: key})
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
		answer, err := b.store.StoredResponse(t.Context(), "demo", "k")
		if err != nil || len(answer.Messages) != 1 || answer.IsComplete() {
			t.Fatalf("the key is stored as %+v, %v", answer, err)
		}
		ms, err := b.g.CurrentMessages(t.Context(), "demo", answer.Messages)
		if err != nil || ms[0].Status != parley.Sent || ms[0].Content.Text() != "once" {
			t.Errorf("the current messages are %+v, %v", ms, err)
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

func TestPendingIsSentByTheNextRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.driver.session("demo").tell(network.State{Status: parley.ChannelReconnecting})
		b.accept(ayu, "one")
		b.accept(ayu, "two")
		b.restart()
		synctest.Wait()
		if got := b.driver.texts("demo", ayu); !slices.Equal(got, []string{"one", "two"}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestADeletedPendingMessageIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.driver.session("demo").tell(network.State{Status: parley.ChannelReconnecting})
		m := b.accept(ayu, "oops")
		if _, err := b.g.Send(t.Context(), "demo", []gateway.Draft{{To: ayu, Content: parley.Delete{Target: m.Ref()}}},
			gateway.SendOptions{}); err != nil {
			t.Fatal(err)
		}
		b.driver.session("demo").tell(network.State{Status: parley.ChannelWorking})
		synctest.Wait()
		if got := b.driver.texts("demo", ayu); !slices.Equal(got, []string{""}) { // the deletion alone
			t.Errorf("the network got %q", got)
		}
		if got := b.load(m); got.Status != parley.Deleted || got.Content.Text() != "" {
			t.Errorf("it is %s and says %q", got.Status, got.Content.Text())
		}
	})
}

func TestRefreshFollowsTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.tx(func(tx *store.Tx) error {
			return tx.AddChannel(t.Context(), parley.Channel{Code: "toko", Name: "Toko", Network: parley.Sandbox, Enabled: true})
		})
		b.refresh()
		if c, ok := b.g.Channel("toko"); !ok || c.State.Status != parley.ChannelWorking || c.Number != "99900000001" {
			t.Errorf("a new channel: %+v", c)
		}
		b.tx(func(tx *store.Tx) error {
			c, err := tx.Channel(t.Context(), "toko")
			if err != nil {
				return err
			}
			c.Enabled = false
			return tx.UpdateChannel(t.Context(), c)
		})
		b.refresh()
		if c, _ := b.g.Channel("toko"); c.State.Status != parley.ChannelStopped || !b.driver.session("toko").closed {
			t.Errorf("a stopped channel: %+v", c.State)
		}
		b.tx(func(tx *store.Tx) error {
			return tx.DeleteChannel(t.Context(), "toko")
		})
		b.refresh()
		if _, ok := b.g.Channel("toko"); ok || !slices.Contains(b.driver.forgotten, "toko") {
			t.Error("a deleted channel is still there")
		}
	})
}

func TestAChannelThatCannotOpenFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.driver.refuse = "broken"
		c, err := b.g.CreateChannel(t.Context(), parley.Channel{Code: "broken", Network: parley.Sandbox})
		if err != nil || c.State.Status != parley.ChannelFailed || c.State.Reason == "" {
			t.Errorf("got %+v, %v", c.State, err)
		}
		b.accept(ayu, "still here")
		b.driver.refuse = ""
		if c, err := b.g.StartChannel(t.Context(), "broken"); err != nil || c.State.Status != parley.ChannelWorking {
			t.Errorf("started again: %+v, %v", c.State, err)
		}
		if _, err := b.g.CreateChannel(t.Context(), parley.Channel{Code: "broken",
			Network: parley.Sandbox}); parley.ToCode(err) != parley.Invalid {
			t.Errorf("a second one with the same code: %v", err)
		}
		if _, err := b.g.CreateChannel(t.Context(), parley.Channel{Code: "x", Network: "pigeon"}); parley.ToCode(err) != parley.Invalid {
			t.Errorf("an unknown network: %v", err)
		}
	})
}

func TestAnAdvancedClockExpiresTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.driver.session("demo").tell(network.State{Status: parley.ChannelReconnecting})
		answer := b.begin(ayu, "old", time.Second)
		synctest.Wait()
		if err := b.g.AdvanceClock(t.Context(), "demo", 25*time.Hour); err != nil {
			t.Fatal(err)
		}
		m := answer()
		if m.Status != parley.Failed || m.Failure.Code != parley.Expired {
			t.Errorf("got %s, %+v", m.Status, m.Failure)
		}
	})
}

func TestDeletingAChannelRemovesItsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		in := network.Message{From: ayu, ID: "A1", Content: parley.File{Media: parley.Media{Filename: "a.txt"}}, File: []byte("hello"),
			At: time.Now()}
		if err := b.driver.session("demo").sink(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		page, _, err := b.store.History(t.Context(), "demo", ayu, parley.Page{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if f, err := b.media.Open(t.Context(), parley.MediaIn(page[0].Content).Key); err != nil {
			t.Error(err)
		} else {
			f.Close()
		}
		if _, err := b.g.DeleteChannel(t.Context(), "demo"); err != nil {
			t.Fatal(err)
		}
		b.awaitDeletions()
		if _, err := b.media.Open(t.Context(), parley.MediaIn(page[0].Content).Key); err == nil {
			t.Error("the file of a deleted channel is still there")
		}
		if _, err := b.g.DeleteChannel(t.Context(), "demo"); parley.ToCode(err) != parley.NotFound {
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
		b.driver.session("demo").tell(network.State{Status: parley.ChannelLoggedOut})
		if code, err := b.g.PickForPool(t.Context(), ayu); code != "toko" || err != nil {
			t.Errorf("with demo logged out: %s, %v", code, err)
		}
		b.driver.session("toko").tell(network.State{Status: parley.ChannelReconnecting})
		if _, err := b.g.PickForPool(t.Context(), ayu); !errors.Is(err, parley.ErrNotFound) {
			t.Errorf("with none working: %v", err)
		}
	})
}

func TestOldTextAndStoredResponsesArePurged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		key := &store.StoredResponse{Scope: "demo", Key: "k", Fingerprint: []byte("f"), CreatedAt: time.Now()}
		sent, err := b.g.Send(t.Context(), "demo", text(ayu, "old"), gateway.SendOptions{Key: key, Wait: time.Second})
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
		if _, err := b.store.StoredResponse(t.Context(), "demo", "k"); err != nil {
			t.Errorf("the answer went an hour early: %v", err)
		}
		time.Sleep(time.Hour + 2*time.Minute)
		synctest.Wait()
		if got := b.load(m); got.Content.Text() != "" || got.Status != parley.Sent {
			t.Errorf("after a day: %s %q", got.Status, got.Content.Text())
		}
		if _, err := b.store.StoredResponse(t.Context(), "demo", "k"); !errors.Is(err, parley.ErrNotFound) {
			t.Errorf("the answer after a day: %v", err)
		}
	})
}

func TestNothingIsAcceptedAfterTheDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.stop()
		if _, err := b.g.Send(t.Context(), "demo", text(ayu, "x"), gateway.SendOptions{}); parley.ToCode(err) != parley.Unavailable {
			t.Errorf("got %v", err)
		}
		if c, err := b.store.Channel(t.Context(), "demo"); err != nil || c.State.Status != parley.ChannelStopped {
			t.Errorf("stored: %+v, %v", c.State, err)
		}
	})
}

func TestActivity(t *testing.T) {
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
		b.driver.session("demo").tell(network.State{Status: parley.ChannelLoggedOut})
		if a := <-happens; a.State != parley.ChannelLoggedOut {
			t.Errorf("got %+v", a)
		}
	})
}
