package gateway_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/feed"
	"parley/internal/gateway"
	"parley/internal/network"
)

// give passes an event of the session to the gateway.
func (b *bench) give(e network.Event) {
	b.t.Helper()
	if err := b.driver.session("demo").sink(b.t.Context(), e); err != nil {
		b.t.Fatal(err)
	}
}

// edits lists the events message.edited after a seq, by message and text.
func (b *bench) edits(after int64) (all []string) {
	for _, e := range b.events(after) {
		if e.Type == parley.MessageEdited {
			feed.New(feed.Config{Store: b.store, Keyring: b.keyring}).Decrypt(&e)
			all = append(all, fmt.Sprint(e.Message.ID, " ", e.Message.Content.Text()))
		}
	}
	return all
}

// history lists the texts of a chat, newest first.
func (b *bench) history(chat parley.ContactID) (all []string) {
	b.t.Helper()
	ms, _, err := b.g.History(b.t.Context(), "demo", chat, parley.Page{Limit: 50})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, m := range ms {
		text := fmt.Sprint(m.ID, " ", m.Content.Text())
		if !m.EditedAt.IsZero() {
			text += " (edited)"
		}
		all = append(all, text)
	}
	return all
}

func wantTexts(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestInboundEdits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		before := b.lastEvent()
		at := time.Now()
		edit := func(from parley.ContactID, id parley.MessageID, body string, after time.Duration) network.Edit {
			return network.Edit{From: from, Target: id, Content: parley.Text{Body: body}, At: at.Add(after)}
		}
		b.give(network.Message{From: ayu, ID: "A1", Content: parley.Text{Body: "one"}, At: at})
		b.give(network.Message{From: ayu, ID: "A2", Content: parley.Image{Caption: "caption", Media: parley.Media{Filename: "a.png"}}, At: at})
		b.give(network.Message{From: ayu, ID: "A3", Content: parley.Location{Title: "place", Latitude: "1", Longitude: "2"}, At: at})
		b.give(edit(ayu, "A1", "two", 0)) // within the same second
		b.give(edit(ayu, "A1", "three", time.Second))
		b.give(edit(ayu, "A1", "three", time.Second)) // the network sent it again
		b.give(edit(ayu, "A1", "two", 0))             // likewise, late
		b.give(edit(ayu, "A2", "new caption", time.Second))
		b.give(edit(ayu, "A3", "another place", time.Second)) // has no text
		b.give(edit(budi, "A1", "hacked", 2*time.Second))     // of another contact: there it is not known
		wantTexts(t, "events", b.edits(before), "A1 three", "A1 three", "A2 new caption")
		wantTexts(t, "history", b.history(ayu), "A3 place", "A2 new caption (edited)", "A1 three (edited)")
		wantTexts(t, "history of the other contact", b.history(budi), "A1 hacked")
		if m := b.load(parley.Message{Chat: ayu, ID: "A2"}); parley.MediaIn(m.Content).Filename != "a.png" {
			t.Errorf("the file of the edited caption is %+v", m.Content)
		}
		for text, found := range map[string]int{"one": 0, "THREE": 1, "new cap": 1} {
			page, err := b.g.FindMessages(t.Context(), parley.MessageQuery{Text: text, Limit: 10})
			if err != nil || len(page.Messages) != found {
				t.Errorf("%d messages have %q, want %d (%v)", len(page.Messages), text, found, err)
			}
		}
		b.give(network.Deletion{From: ayu, Target: "A1", At: at.Add(3 * time.Second)})
		b.give(edit(ayu, "A1", "back", 4*time.Second))
		wantTexts(t, "history after the deletion", b.history(ayu), "A3 place", "A2 new caption (edited)", "A1  (edited)")
	})
}

// TestHiddenAuthor has somebody edit and delete in a group what it wrote before its number was known.
func TestHiddenAuthor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		const group = parley.GroupID("120363020000000001@g.us")
		hidden := parley.NewHiddenContactID("123456789012345")
		b.give(network.Message{From: hidden, Group: group, ID: "A1", Content: parley.Text{Body: "mine"}, At: time.Now()})
		b.give(network.Message{From: hidden, ID: "A2", Content: parley.Text{Body: "in private"}, At: time.Now()})
		b.give(network.Alias{Asked: hidden, Contact: ayu})
		b.give(network.Edit{From: budi, Group: group, Target: "A1", Content: parley.Text{Body: "hacked"}, At: time.Now().Add(time.Minute)})
		b.give(network.Edit{From: ayu, Group: group, Target: "A1", Content: parley.Text{Body: "better"}, At: time.Now().Add(time.Minute)})
		wantTexts(t, "history of the group", b.history(group.Chat()), "A1 better (edited)")
		b.give(network.Deletion{From: ayu, Group: group, Target: "A1", At: time.Now().Add(2 * time.Minute)})
		wantTexts(t, "history after the deletion", b.history(group.Chat()), "A1  (edited)")
		for _, id := range []parley.ContactID{hidden, ayu} {
			wantTexts(t, "history of the contact", b.history(id), "A2 in private")
		}
	})
}

// TestEditsOfOthers has members of a group edit what somebody else wrote, and what the channel wrote.
func TestEditsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		const group = parley.GroupID("120363020000000001@g.us")
		before := b.lastEvent()
		b.give(network.Message{From: ayu, Group: group, ID: "A1", Content: parley.Text{Body: "mine"}, At: time.Now()})
		own := b.await(ayu, "from the channel", time.Second)
		edit := func(from parley.ContactID, group parley.GroupID, id parley.MessageID) {
			b.give(network.Edit{From: from, Group: group, Target: id, Content: parley.Text{Body: "hacked"}, At: time.Now().Add(time.Minute)})
		}
		edit(budi, group, "A1")
		edit(ayu, "", own.ID)
		wantTexts(t, "events", b.edits(before))
		wantTexts(t, "history of the group", b.history(group.Chat()), "A1 mine")
		if got := b.load(own).Content.Text(); got != "from the channel" {
			t.Errorf("the channel's message says %q", got)
		}
		edit(ayu, group, "A1")
		wantTexts(t, "history of the group", b.history(group.Chat()), "A1 hacked (edited)")
	})
}

// TestEditOfUnknownMessage stores the text under the id of the message. The message may come later.
func TestEditOfUnknownMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		e := network.Edit{From: ayu, Target: "A1", Content: parley.Text{Body: "new"}, At: time.Now()}
		b.give(e)
		b.give(e)
		b.give(network.Message{From: ayu, ID: "A1", Content: parley.Text{Body: "old"}, At: time.Now().Add(-time.Second)})
		b.give(network.Edit{From: ayu, Target: "A2", Content: parley.Image{Caption: "caption"}, At: time.Now()})
		wantTexts(t, "history", b.history(ayu), "A1 new")
	})
}

func TestEditsWithoutRetention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		none := parley.Duration(0)
		if _, err := b.g.UpdateChannel(t.Context(), "demo", func(c *parley.Channel) { c.Settings.Retention = &none }); err != nil {
			t.Fatal(err)
		}
		before := b.lastEvent()
		b.give(network.Message{From: ayu, ID: "A1", Content: parley.Text{Body: "one"}, At: time.Now()})
		b.give(network.Edit{From: ayu, Target: "A1", Content: parley.Text{Body: "two"}, At: time.Now().Add(time.Second)})
		wantTexts(t, "events", b.edits(before), "A1 two")
		wantTexts(t, "history", b.history(ayu), "A1  (edited)")
		own := b.await(budi, "hello", time.Second)
		op := b.send(parley.Edit{Body: "hello!", Target: own.Ref()})
		wantTexts(t, "own history", b.history(budi), string(own.ID)+"  (edited)")
		if got := b.load(op).Content.Text(); got != "" {
			t.Errorf("the edit still says %q", got)
		}
	})
}

// TestEditsWait has edits of a message that still waits, then is deleted or fails.
func TestEditsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		s := b.driver.session("demo")
		b.give(network.State{Status: parley.ChannelReconnecting, Reason: "The socket was dropped."})
		kept, gone := b.accept(ayu, "kept"), b.accept(budi, "gone")
		accept := func(to parley.ContactID, c parley.Content) parley.Message {
			ms, err := b.g.Send(t.Context(), "demo", []gateway.Draft{{To: to, Content: c}}, gateway.SendOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return ms[0]
		}
		edit, vain := accept(ayu, parley.Edit{Body: "kept!", Target: kept.Ref()}), accept(budi, parley.Edit{Body: "x", Target: gone.Ref()})
		accept(budi, parley.Delete{Target: gone.Ref()})
		wantTexts(t, "history before they are sent", b.history(ayu), string(kept.ID)+" kept")
		b.give(network.State{Status: parley.ChannelWorking})
		synctest.Wait()
		if got := b.load(edit); got.Status != parley.Sent || got.Content.Text() != "" {
			t.Errorf("the edit is %s and says %q", got.Status, got.Content.Text())
		}
		if got := b.load(vain); got.Status != parley.Failed || got.Failure.Code != parley.Refused || got.Content.Text() != "" {
			t.Errorf("the edit of a deleted message is %s, %+v, and says %q", got.Status, got.Failure, got.Content.Text())
		}
		wantTexts(t, "history", b.history(ayu), string(kept.ID)+" kept! (edited)")
		var kinds []string
		for _, m := range s.given {
			if m.Chat == ayu {
				kinds = append(kinds, fmt.Sprint(m.Content.Kind(), " ", m.Content.Text()))
			}
		}
		wantTexts(t, "given to the network", kinds, "text kept", "edit kept!")

		b.driver.answer = func(m *parley.Message) error {
			if m.Content.Kind() == parley.KindText {
				return network.Refuse(parley.Blocked, "no")
			}
			return nil
		}
		failed := b.await(budi, "fails", time.Second)
		if got := b.load(b.send(parley.Edit{Body: "y", Target: failed.Ref()})); got.Status != parley.Failed {
			t.Errorf("the edit of a failed message is %s", got.Status)
		}
	})
}

// TestReceiptsDoNotConfirmOperations loses the confirmation of an edit that arrived. It is sent again and takes effect.
func TestReceiptsDoNotConfirmOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		own := b.await(ayu, "one", time.Second)
		tries := 0
		b.driver.answer = func(m *parley.Message) error {
			if tries++; tries > 1 {
				return nil
			}
			b.give(network.Receipt{From: ayu, IDs: []parley.MessageID{m.ID}, Status: parley.Delivered, At: time.Now()})
			return network.OutcomeUnknown(nil)
		}
		before := b.lastEvent()
		op := b.send(parley.Edit{Body: "two", Target: own.Ref()})
		time.Sleep(time.Minute)
		if got := b.load(op); tries != 2 || got.Status != parley.Sent {
			t.Errorf("after %d tries it is %s", tries, got.Status)
		}
		wantTexts(t, "events", b.edits(before), string(own.ID)+" two")
	})
}
