package gateway_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/network"
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
