package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/feed"
	"parley/internal/gateway"
	"parley/internal/network"
	"parley/internal/otp"
	"parley/internal/store"
)

// TestAllEventsAreInTheLog walks through a message's life.
func TestAllEventsAreInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		before := b.lastEvent()
		own := b.await(ayu, "halo", time.Second)
		give := func(e network.Event) {
			t.Helper()
			if err := b.driver.session("demo").sink(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		give(network.Receipt{From: ayu, IDs: []parley.MessageID{own.ID}, Status: parley.Read, At: time.Now()})
		give(network.Reaction{From: ayu, Target: own.Ref(), Emoji: "🎉", At: time.Now()})
		for range 2 { // received twice, published once
			give(network.Message{From: ayu, ID: "A1", Content: parley.Text{Body: "hi"}, At: time.Now()})
		}
		give(network.Deletion{From: ayu, Target: "A1", At: time.Now()})
		poll := b.send(parley.Poll{Title: "Lunch?", Options: []string{"yes", "no"}})
		give(network.Vote{From: ayu, Poll: poll.ID, Options: []string{"yes"}, At: time.Now()})
		b.send(parley.Reaction{Emoji: "👍", Target: own.Ref()})
		b.send(parley.Delete{Target: own.Ref()})
		give(network.State{Status: parley.ChannelReconnecting, Reason: "The socket was dropped."})
		b.send(parley.Location{Title: "waits", Latitude: "1", Longitude: "2"}) // nothing to tell yet

		var timeline []string
		for _, e := range b.events(before) {
			line := fmt.Sprint(e.Type, " ", e.Chat)
			if e.Message != nil {
				line += fmt.Sprint(" ", e.Message.Status, " ", e.Message.Content.Kind())
			}
			timeline = append(timeline, line+" "+string(e.Data))
		}
		want := []string{
			"message.status 6281234567890@c.us SENT text ",
			"message.status 6281234567890@c.us READ text ",
			`message.reaction 6281234567890@c.us READ text {"reaction":{"emoji":"🎉","from_me":"false","outgoing":false,` +
				`"contact_id":"6281234567890@c.us"}}`,
			"message.received 6281234567890@c.us RECEIVED text ",
			"message.deleted 6281234567890@c.us DELETED text ",
			"message.status 6281234567890@c.us SENT poll ",
			`poll.vote 6281234567890@c.us SENT poll {"vote":{"contact_id":"6281234567890@c.us","options":["yes"]}}`,
			`message.reaction 6281234567890@c.us READ text {"reaction":{"emoji":"👍","from_me":"true","outgoing":true}}`,
			"message.deleted 6281234567890@c.us DELETED text ",
		}
		if len(timeline) != len(want)+1 || !slices.Equal(timeline[:len(want)], want) ||
			!strings.HasPrefix(timeline[len(want)], `channel.status  {"status":"RECONNECTING","was":"WORKING"`) {
			t.Errorf("got\n%s", strings.Join(timeline, "\n"))
		}
	})
}

// TestTextOfAChannelWithoutRetentionIsEncrypted looks at the event of a message whose text is not kept.
func TestTextOfAChannelWithoutRetentionIsEncrypted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		none := parley.Duration(0)
		if _, err := b.g.UpdateChannel(t.Context(), "demo", func(c *parley.Channel) { c.Settings.Retention = &none }); err != nil {
			t.Fatal(err)
		}
		before := b.lastEvent()
		in := network.Message{From: ayu, ID: "A1", Content: parley.Text{Body: "our secret"}, At: time.Now()}
		if err := b.driver.session("demo").sink(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		e := b.events(before)[0]
		if e.Message.Content.Text() != "" {
			t.Errorf("the record says %q", e.Message.Content.Text())
		}
		text, err := b.keyring.Decrypt(e.Encrypted, parley.EventTextContext("demo"))
		if err != nil || string(text) != "our secret" {
			t.Errorf("encrypted: %q, %v", text, err)
		}
		place := parley.Location{Title: "home", Latitude: "1", Longitude: "2", Address: "Jalan 1"}
		cards := parley.Contacts{Title: "Budi", Cards: []parley.ContactCard{{Name: "Budi", VCard: "BEGIN:VCARD"}}}
		for i, content := range []parley.Content{place, cards} {
			before := b.lastEvent()
			in := network.Message{From: ayu, ID: parley.MessageID(fmt.Sprint("B", i)), Content: content, At: time.Now()}
			if err := b.driver.session("demo").sink(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			e := b.events(before)[0]
			if stored, err := parley.EncodeContent(e.Message.Content); err != nil || strings.Contains(string(stored), "Jalan") {
				t.Errorf("stored: %s, %v", stored, err)
			}
			feed.New(feed.Config{Store: b.store, Keyring: b.keyring}).Decrypt(&e)
			if !reflect.DeepEqual(e.Message.Content, content) {
				t.Errorf("receivers get %+v, want %+v", e.Message.Content, content)
			}
		}
		poll := b.send(parley.Poll{Title: "Lunch?", Options: []string{"yes", "no"}})
		before = b.lastEvent()
		if err := b.driver.session("demo").sink(t.Context(), network.Vote{From: ayu, Poll: poll.ID, Options: []string{"yes"},
			At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		vote := b.events(before)[0]
		if whole, err := b.keyring.Decrypt(vote.Encrypted, parley.EventTextContext("demo")); err != nil ||
			strings.Contains(string(vote.Data), "yes") || !strings.Contains(string(whole), `"options":["yes"]`) {
			t.Errorf("a vote is kept as %s, encrypted as %s, %v", vote.Data, whole, err)
		}
		b.stop() // so that maintenance does not run for days
		time.Sleep(4*24*time.Hour - time.Minute)
		b.restart()
		if e := b.events(before)[0]; e.Encrypted == nil {
			t.Error("it went while webhooks may still be tried")
		}
		time.Sleep(time.Hour + 3*time.Minute) // an hour of running confirms the clock after those days
		if e := b.events(before)[0]; e.Encrypted != nil {
			t.Error("after four days it is still there")
		}
	})
}

// fakeLinks is in the place of login links. All messages hit, and are redeemed with an error or a reply.
type fakeLinks struct {
	calls  int
	hit    parley.Message // the last one
	refuse error
}

func (f *fakeLinks) MatchMessage(_ context.Context, _ parley.Channel, m *parley.Message) (*otp.Hit, error) {
	f.calls++
	m.Content = parley.Text{Body: "•••"}
	f.hit = *m
	return &otp.Hit{}, nil
}

func (f *fakeLinks) Redeem(ctx context.Context, tx *store.Tx, c parley.Channel, _ *otp.Hit) (*otp.Reply, error) {
	err := tx.AddEvent(ctx, parley.NewOTPEvent(parley.OTPApproved, "otl_1", c.Code, f.hit.Chat, "", f.hit.CreatedAt))
	return &otp.Reply{To: f.hit.Chat, Content: parley.Text{Body: "welcome"}}, errors.Join(err, f.refuse)
}

// TestInboundLoginLinks has login links change what is stored, reply, and fail.
func TestInboundLoginLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.stop()
		links := &fakeLinks{}
		b.links = links
		b.start()
		before := b.lastEvent()
		in := network.Message{From: ayu, ID: "A1", Content: parley.Text{Body: "code"}, At: time.Now()}
		sink := b.driver.session("demo").sink
		links.refuse = errors.New("not now")
		if err := sink(t.Context(), in); err == nil {
			t.Fatal("what could not be kept was taken")
		}
		if n := len(b.events(before)); n != 0 {
			t.Errorf("%d events of what was not kept", n)
		}
		links.refuse = nil
		for range 3 {
			if err := sink(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if got := b.driver.texts("demo", ayu); !slices.Equal(got, []string{"welcome"}) {
			t.Errorf("answered %q", got)
		}
		var types []parley.EventType
		for _, e := range b.events(before) {
			types = append(types, e.Type)
			if e.Type == parley.MessageReceived && e.Message.Content.Text() != "•••" {
				t.Errorf("kept %q", e.Message.Content.Text())
			}
		}
		if want := []parley.EventType{parley.MessageReceived, parley.OTPApproved}; len(types) < 2 || !slices.Equal(types[:2], want) {
			t.Errorf("events %v", types)
		}
		old := network.Message{From: budi, ID: "A2", Content: parley.Text{Body: "code"}, At: time.Now(), Past: true}
		if err := sink(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := b.driver.texts("demo", budi); len(got) != 0 {
			t.Errorf("a message of the past was answered: %q", got)
		}
		if links.calls < 5 {
			t.Errorf("the hook saw %d messages", links.calls)
		}
	})
}

func TestOldEventsArePurged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.stop()
		b.eventLife = 2 * time.Hour
		b.start()
		before := b.lastEvent()
		b.await(ayu, "old", time.Second)
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(b.events(before)) != 1 {
			t.Error("the event went early")
		}
		time.Sleep(time.Hour + 2*time.Minute)
		synctest.Wait()
		if n := len(b.events(before)); n != 0 {
			t.Errorf("%d events are left after their time", n)
		}
	})
}

// TestASecretIsSentDecryptedAndStoredEncrypted sends a message whose text only the recipient may read.
func TestASecretIsSentDecryptedAndStoredEncrypted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		secret := parley.Secret{Shown: "•••• is your code", OTP: "otc_1",
			Encrypted: b.keyring.Encrypt([]byte("1234 is your code"), "otc_1")}
		m := b.send(secret)
		if got := b.driver.texts("demo", ayu); !slices.Equal(got, []string{"1234 is your code"}) {
			t.Errorf("the network got %q", got)
		}
		if got := b.load(m).Content.Text(); got != secret.Shown {
			t.Errorf("kept %q", got)
		}
		before := b.lastEvent()
		b.driver.answer = func(*parley.Message) error { return network.Refuse(parley.NotOnNetwork, "no") }
		b.send(secret)
		events := b.events(before)
		if len(events) != 2 || events[0].Message.Status != parley.Failed || events[1].Type != parley.OTPFailed ||
			string(events[1].Data) != `{"id":"otc_1","contact_id":"6281234567890@c.us","reason":"not_on_network"}` {
			t.Errorf("events %+v", events)
		}
	})
}

func (b *bench) lastEvent() int64 {
	b.t.Helper()
	last, err := b.store.LastEvent(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return last
}

// events reads what happened after a place in the log, once everything that was sent is recorded.
func (b *bench) events(after int64) []parley.Event {
	b.t.Helper()
	synctest.Wait()
	b.g.CurrentMessages(b.t.Context(), "demo", nil)
	events, _, err := b.store.Events(b.t.Context(), after, parley.EventFilter{}, 100)
	if err != nil {
		b.t.Fatal(err)
	}
	return events
}

// send sends something to Ayu and waits for what becomes of it.
func (b *bench) send(content parley.Content) parley.Message {
	b.t.Helper()
	ms, err := b.g.Send(b.t.Context(), "demo", []gateway.Draft{{To: ayu, Content: content}}, gateway.SendOptions{Wait: time.Second})
	if err != nil {
		b.t.Fatal(err)
	}
	return ms[0]
}
