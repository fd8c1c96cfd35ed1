package gateway_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/gateway"
	"parley/internal/network"
	"parley/internal/store"
)

func TestGoLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.await(ayu, "in the sandbox", time.Second)
		_, err := b.g.UpdateChannel(t.Context(), "demo", func(c *parley.Channel) {
			c.Settings = parley.ChannelSettings{TTL: parley.Duration(time.Hour), Pace: new(parley.Duration), ClockAhead: parley.Duration(time.Hour)}
		})
		if err != nil {
			t.Fatal(err)
		}
		c, err := b.g.GoLive(t.Context(), "demo", parley.WhatsApp, []parley.ContactID{ayu})
		if err != nil {
			t.Fatal(err)
		}
		if c.Network != parley.WhatsApp || c.Name != "Demo" || c.Settings.TTL != parley.Duration(time.Hour) ||
			c.Settings.ClockAhead != 0 || c.Settings.Pace != nil || !slices.Equal(c.Settings.AllowOnly, []parley.ContactID{ayu}) {
			t.Errorf("the channel is %+v", c)
		}
		if !slices.Equal(b.driver.forgotten, []parley.ChannelCode{"demo"}) {
			t.Errorf("the sandbox forgot %v", b.driver.forgotten)
		}
		if _, err := b.g.Send(t.Context(), "demo", text(budi, "no"), gateway.SendOptions{}); parley.ToCode(err) != parley.Forbidden {
			t.Errorf("a message to somebody who is not on the list: %v", err)
		}
		_, total, err := b.g.History(t.Context(), "demo", ayu, parley.Page{Limit: 10})
		if err != nil || total != 0 {
			t.Errorf("the live chat has %d records, %v", total, err)
		}
		page, _, err := b.g.History(t.Context(), "demo-sandbox", ayu, parley.Page{Limit: 10})
		if err != nil || len(page) != 1 || page[0].Content.Text() != "in the sandbox" || page[0].Status != parley.Sent {
			t.Errorf("the archive has %+v, %v", page, err)
		}
		archive, ok := b.g.Channel("demo-sandbox")
		if !ok || archive.State.Status != parley.ChannelStopped ||
			!strings.Contains(archive.State.Reason, "channel demo from before it went live") {
			t.Errorf("the archive is %+v", archive)
		}
		if _, err := b.g.StartChannel(t.Context(), "demo-sandbox"); parley.ToCode(err) != parley.BadRequest {
			t.Errorf("the archive was started: %v", err)
		}
		for _, code := range []parley.ChannelCode{"demo", "demo-sandbox"} {
			if _, err := b.g.GoLive(t.Context(), code, parley.WhatsApp, nil); parley.ToCode(err) != parley.BadRequest {
				t.Errorf("%s went live again: %v", code, err)
			}
		}
		b.restart()
		if c, _ := b.g.Channel("demo-sandbox"); c.State.Status != parley.ChannelStopped {
			t.Errorf("after a restart the archive is %s", c.State.Status)
		}
	})
}

// TestGoLiveWithoutHistory leaves no archive where there is nothing to keep, and finds a name for each.
func TestGoLiveWithoutHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		long := parley.ChannelCode(strings.Repeat("x", 32))
		for _, code := range []parley.ChannelCode{long, "demo-sandbox"} {
			if _, err := b.g.CreateChannel(t.Context(), parley.Channel{Code: code, Network: parley.Sandbox}); err != nil {
				t.Fatal(err)
			}
			_, err := b.g.Send(t.Context(), code, text(ayu, "halo"), gateway.SendOptions{Wait: time.Second})
			if err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.g.GoLive(t.Context(), "demo", parley.WhatsApp, nil); err != nil {
			t.Fatal(err)
		}
		for _, code := range []parley.ChannelCode{long, "demo-sandbox"} {
			if _, err := b.g.GoLive(t.Context(), code, parley.WhatsApp, nil); err != nil {
				t.Fatal(err)
			}
		}
		var codes []parley.ChannelCode
		for _, c := range b.g.Channels() {
			codes = append(codes, c.Code)
		}
		want := []parley.ChannelCode{"demo", "demo-sandbox", "demo-sandbox-sandbox", long[:24] + "-sandbox", long}
		slices.Sort(want)
		if !slices.Equal(codes, want) {
			t.Errorf("the channels are %v, want %v", codes, want)
		}
	})
}

// TestGoLiveUnderLoad has many callers send all the time while the channel goes live. What was accepted
// before fails or was sent in the sandbox; nothing of it reaches the live network.
func TestGoLiveUnderLoad(t *testing.T) {
	b := newBench(t)
	sandbox := b.driver.session("demo")
	refused, done := make(chan error, 8), make(chan []parley.MessageRef, 8)
	for i := range 8 {
		go func() {
			var refs []parley.MessageRef
			for n := 0; ; n++ {
				sent, err := b.g.Send(t.Context(), "demo", text(parley.NewContactID(fmt.Sprintf("62812345678%02d", i)), "fire"),
					gateway.SendOptions{Wait: 10 * time.Second})
				if err != nil {
					refused <- err
					done <- refs
					return
				}
				m := sent[0]
				refs = append(refs, m.Ref())
			}
		}()
	}
	if _, err := b.g.GoLive(t.Context(), "demo", parley.WhatsApp, []parley.ContactID{budi}); err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for range 8 {
		if err := <-refused; parley.ToCode(err) != parley.Unavailable && parley.ToCode(err) != parley.Forbidden {
			t.Errorf("refused with %v", err)
		}
		for _, ref := range <-done {
			accepted++
			m, err := b.store.Message(t.Context(), "demo-sandbox", ref)
			if err != nil || !m.Status.IsFinal() {
				t.Errorf("%s is %s, %v", ref.ID, m.Status, err)
			}
		}
	}
	if live := b.driver.session("demo"); live == sandbox {
		t.Error("it is the same session")
	}
	pending, err := b.store.Queue(t.Context(), "demo")
	if err != nil || len(pending) != 0 {
		t.Errorf("%d messages wait to be sent live, %v", len(pending), err)
	}
	_, _, chats, err := b.store.Chats(t.Context(), "demo", parley.Page{Limit: 1}, parley.ChatCursor{})
	if err != nil || chats != 0 {
		t.Errorf("the live channel has %d chats, %v", chats, err)
	}
	t.Logf("%d messages were accepted before", accepted)
}

// TestMessageForRetry finds messages as their recipients saw them, in both directions, and nothing that is
// gone.
func TestMessageForRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		if _, err := b.g.UpdateChannel(t.Context(), "demo",
			func(c *parley.Channel) { c.Network = parley.WhatsApp; c.Settings.Pace = new(parley.Duration) }); err != nil {
			t.Fatal(err)
		}
		find := func(id parley.MessageID) string {
			m, err := b.g.MessageForRetry(t.Context(), "demo", ayu, id)
			if errors.Is(err, parley.ErrNotFound) {
				return "not found"
			}
			if err != nil {
				return err.Error()
			}
			return fmt.Sprintf("%T %s", m.Content, m.Content.Text())
		}
		same := func(what, got, want string) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
		}
		sent := b.send(parley.Text{Body: "halo"})
		same("a text", find(sent.ID), "parley.Text halo")
		secret := parley.Secret{Shown: "•••• is your code", OTP: "otc_1",
			Encrypted: b.keyring.Encrypt([]byte("1234 is your code"), "otc_1")}
		same("a secret", find(b.send(secret).ID), "parley.Text 1234 is your code")
		if err := b.driver.session("demo").sink(t.Context(), network.Message{From: ayu, ID: "IN1",
			Content: parley.Text{Body: "theirs"}, At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		same("theirs", find("IN1"), "parley.Text theirs")
		same("nothing", find("NONE"), "not found")

		if _, err := b.g.UpdateChannel(t.Context(), "demo", func(c *parley.Channel) { c.Settings.Retention = new(parley.Duration) }); err != nil {
			t.Fatal(err)
		}
		kept, code := b.send(parley.Text{Body: "kept for a while"}), b.send(secret)
		poll := b.send(parley.Poll{Title: "Which?", Options: []string{"a", "b"}})
		if got := b.load(kept).Content.Text(); got != "" {
			t.Errorf("the store has %q", got)
		}
		same("without texts", find(kept.ID), "parley.Text kept for a while")
		same("a secret without texts", find(code.ID), "parley.Text 1234 is your code")
		same("a poll without texts", find(poll.ID), "parley.Poll Which?")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		same("when the store was cleaned", find(kept.ID), "parley.Text kept for a while")
		same("and the one of before, which retention took", find(sent.ID), "not found")
		b.tx(func(tx *store.Tx) error {
			_, err := tx.PurgeResends(t.Context(), time.Now(), 100)
			return err
		})
		same("after its time", find(kept.ID), "not found")
	})
}
