package whatsapptest_test

import (
	"testing"
	"time"

	"go.mau.fi/whatsmeow/appstate"
	"go.mau.fi/whatsmeow/types/events"

	"parley/internal/network/whatsapp/whatsapptest"
)

// TestSettingsBothWays changes settings on the phone and on the client.
func TestSettingsBothWays(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.client, within(t)

	if err := c.SendAppState(ctx, appstate.BuildArchive(w.friend.JID(), true, time.Time{}, nil)); err != nil {
		t.Fatal(err)
	}
	m := must[appstate.Mutation](t)(w.owner.AwaitSetting(ctx,
		func(m appstate.Mutation) bool { return m.Index[0] == appstate.IndexArchive }))
	if !m.Action.GetArchiveChatAction().GetArchived() || m.Index[1] != w.friend.JID().String() {
		t.Errorf("the phone read %v", m)
	}
	if err := w.owner.Change(ctx, appstate.BuildArchive(w.friend.JID(), false, time.Time{}, nil)); err != nil {
		t.Fatal(err)
	}
	expect(c, func(e *events.Archive) bool { return !e.Action.GetArchived() })
	if err := w.owner.Change(ctx, appstate.BuildPin(w.friend.JID(), true)); err != nil {
		t.Fatal(err)
	}
	expect(c, func(e *events.Pin) bool { return e.Action.GetPinned() })
	if err := c.SendAppState(ctx, appstate.BuildPin(w.friend.JID(), false)); err != nil {
		t.Fatal(err)
	}
	must[appstate.Mutation](t)(w.owner.AwaitSetting(ctx, func(m appstate.Mutation) bool {
		return m.Index[0] == appstate.IndexPin && !m.Action.GetPinAction().GetPinned()
	}))
	if c.Store.PushName != "Owner" {
		t.Errorf("the client's name is %q", c.Store.PushName)
	}
}

// TestSettingsConflict lets the client change settings that the phone has changed meanwhile.
func TestSettingsConflict(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.client, within(t)
	if err := c.SendAppState(ctx, appstate.BuildPin(w.friend.JID(), true)); err != nil {
		t.Fatal(err)
	}
	w.link.HoldNotifications(true)
	if err := w.owner.Change(ctx, appstate.BuildArchive(w.friend.JID(), true, time.Time{}, nil)); err != nil {
		t.Fatal(err)
	}
	if err := c.SendAppState(ctx, appstate.BuildPin(w.friend.JID(), false)); err != nil {
		t.Fatal(err)
	}
	w.link.HoldNotifications(false)
	must[appstate.Mutation](t)(w.owner.AwaitSetting(ctx, func(m appstate.Mutation) bool {
		return m.Index[0] == appstate.IndexPin && !m.Action.GetPinAction().GetPinned()
	}))
	expect(c, func(e *events.Archive) bool { return e.Action.GetArchived() })
}

// TestHistory tells a new client of chats of before it was linked.
func TestHistory(t *testing.T) {
	s := whatsapptest.StartTest(t)
	friend := s.Phone("6289876543210", whatsapptest.Named("Friend"))
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	owner := s.Phone("6281234567890", whatsapptest.WithHistory(whatsapptest.Conversation{With: friend, Messages: []whatsapptest.Past{
		{ID: "OLD1", Text: "then", At: at}, {ID: "OLD2", Text: "and now", FromMe: true, At: at.Add(time.Minute)},
	}}))
	c := newClient(t, s)
	c.pair(owner)
	chats := expect[*events.HistorySync](c, nil).Data.GetConversations()
	if len(chats) != 1 || chats[0].GetID() != friend.LID().String() || len(chats[0].GetMessages()) != 2 {
		t.Fatalf("the client got %v", chats)
	}
	e := must[*events.Message](t)(c.ParseWebMessage(friend.LID(), chats[0].GetMessages()[0].GetMessage()))
	if e.Info.ID != "OLD1" || e.Message.GetConversation() != "then" || !e.Info.Timestamp.Equal(at) {
		t.Errorf("the client reads %+v", e.Info)
	}
}
