package gateway_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/otp"
	"parley/internal/store"
)

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

// TestAReceiptConfirmsAnUnknownOutcome loses the confirmation of a send that arrived.
func TestAReceiptConfirmsAnUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.driver.answer = func(*parley.Message) error { return network.OutcomeUnknown(nil) }
		answer := b.begin(ayu, "did it?", time.Second)
		synctest.Wait()
		id := b.driver.session("demo").given[0].ID
		if err := b.driver.session("demo").sink(t.Context(), network.Receipt{From: ayu, IDs: []parley.MessageID{id},
			Status: parley.Delivered, At: time.Now()}); err != nil {
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

func TestInboundIsStoredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		s := b.driver.session("demo")
		in := network.Message{From: ayu, ID: "A1", Content: parley.File{Caption: "doc", Media: parley.Media{Filename: "a.txt"}},
			File: []byte("hello"), At: time.Now()}
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
		synctest.Wait()
		for _, chat := range []parley.ContactID{ayu, budi} {
			page, total, err := b.store.History(t.Context(), "demo", chat, parley.Page{Limit: 10})
			if err != nil || total != 1 || page[0].Status != parley.Received || page[0].FromMe {
				t.Fatalf("%s: %d, %+v, %v", chat, total, page, err)
			}
		}
		page, _, _ := b.store.History(t.Context(), "demo", ayu, parley.Page{Limit: 10})
		kept := parley.MediaIn(page[0].Content)
		if f, err := b.media.Open(t.Context(), kept.Key); err != nil {
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
		if f, err := b.media.Open(t.Context(), kept.Key); err != nil {
			t.Errorf("the file that both sent, after one was deleted: %v", err)
		} else {
			f.Close()
		}
		if err := s.sink(t.Context(), network.Deletion{From: budi, Target: "A1", At: time.Now()}); err != nil {
			t.Error(err)
		}
		if _, err := b.media.Open(t.Context(), kept.Key); err == nil {
			t.Error("the file of deleted messages is still there")
		}
	})
}

// TestHistoryHasNoOpenCode links a channel again while a login link is open. What was said before comes
// again, the link's code in it: that is masked, and logs nobody in.
func TestHistoryHasNoOpenCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		issuer := b.verify()
		link, prompt := b.link(issuer)
		before := b.lastEvent()
		in := network.Message{From: ayu, ID: "A1", Content: parley.Text{Body: prompt}, At: time.Now(), History: true}
		for range 2 {
			if err := b.driver.session("demo").sink(t.Context(), in); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		page, total, err := b.store.History(t.Context(), "demo", ayu, parley.Page{Limit: 10})
		if want := strings.ReplaceAll(prompt, link.Code, "••••••••"); err != nil || total != 1 || page[0].Content.Text() != want {
			t.Errorf("%d are kept: %+v, %v; want one that says %q", total, page, err, want)
		}
		if now, err := b.store.Link(t.Context(), link.ID); err != nil || now.Status != parley.OTPStatusPending || now.Tries != 0 {
			t.Errorf("after history the link is %+v, %v", now, err)
		}
		if n := len(b.events(before)); n != 0 {
			t.Errorf("%d events tell of history", n)
		}
		if got := b.driver.texts("demo", ayu); len(got) != 0 {
			t.Errorf("history was answered: %q", got)
		}

		in.ID, in.History = "A2", false // said now, the same counts
		if err := b.driver.session("demo").sink(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if now, err := b.store.Link(t.Context(), link.ID); err != nil || now.Status != parley.OTPStatusApproved {
			t.Errorf("the link is %+v, %v", now, err)
		}
	})
}

// verify gives inbound messages to the login links, as the server does.
func (b *bench) verify() *otp.Issuer {
	b.t.Helper()
	issuer := otp.New(otp.Config{Store: b.store, Keyring: b.keyring, Network: b.g.Network,
		Now: func(parley.ChannelCode) time.Time { return time.Now() }})
	b.stop()
	b.links = issuer
	b.start()
	return issuer
}

// link makes a login link that is open for a day, and returns what it has typed in.
func (b *bench) link(issuer *otp.Issuer) (link otp.NewLink, prompt string) {
	b.t.Helper()
	channel := parley.Channel{Code: "demo", Name: "Demo", Network: parley.WhatsApp, Number: "6281100000001"}
	link, err := issuer.NewLink(otp.LinkRequest{Channel: channel, Contact: ayu, Expires: 24 * time.Hour, Now: time.Now()})
	if err != nil {
		b.t.Fatal(err)
	}
	b.tx(func(tx *store.Tx) error { return tx.AddLink(b.t.Context(), link.OTPLink) })
	address, err := url.Parse(link.Address)
	if err != nil {
		b.t.Fatal(err)
	}
	return link, address.Query().Get("text")
}
