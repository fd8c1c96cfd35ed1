package whatsapptest_test

import (
	"errors"
	"slices"
	"testing"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"parley/internal/network/whatsapp/whatsapptest"
)

// TestGroupMessages sends group messages in both directions.
func TestGroupMessages(t *testing.T) {
	w := newWorld(t)
	eve := w.Phone("6285555555555", whatsapptest.Named("Eve"))
	g := w.friend.CreateGroup("Team", w.owner, eve)
	e := expect(w.client, func(e *events.JoinedGroup) bool { return e.JID == g.JID() })
	if e.Name != g.Subject() || len(e.Participants) != 3 {
		t.Errorf("the client joined %+v", e.GroupInfo)
	}
	sent := w.client.text(g.JID(), "to all")
	for _, p := range []*whatsapptest.Phone{w.friend, eve, w.owner} {
		if m := p.Expect(t, whatsapptest.ID(sent.ID)); m.Text != "to all" || m.Chat != g.JID() {
			t.Errorf("phone %s shows %+v", p.Number(), m)
		}
	}
	w.client.receipt(sent.ID, types.ReceiptTypeDelivered)
	if e, _ := w.Entry(sent.ID); e.ForThem != 2 || e.Sealed != 4 {
		t.Errorf("the entry is %+v", e)
	}
	for _, text := range []string{"first", "second"} {
		id := must[string](t)(eve.Send(within(t), g, text))
		m := w.client.message(text)
		if m.Info.Chat != g.JID() || !m.Info.IsGroup {
			t.Errorf("the client got %+v", m.Info)
		}
		eve.ExpectReceipt(t, id, types.ReceiptTypeInactive)
		w.friend.Expect(t, whatsapptest.ID(id))
	}
}

// TestGroupRequests does to groups what the gateway does.
func TestGroupRequests(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.client, within(t)
	made := must[*types.GroupInfo](t)(c.CreateGroup(ctx, whatsmeow.ReqCreateGroup{Name: "Fresh", Participants: []types.JID{w.friend.LID()}}))
	g := w.Group(made.JID)
	if g == nil || g.Subject() != "Fresh" {
		t.Fatalf("no group was made")
	}
	info := must[*types.GroupInfo](t)(c.GetGroupInfo(ctx, made.JID))
	if info.Name != "Fresh" || len(info.Participants) != 2 || info.OwnerJID != w.owner.LID() {
		t.Errorf("the group is %+v", info)
	}
	if all := must[[]*types.GroupInfo](t)(c.GetJoinedGroups(ctx)); len(all) != 1 || all[0].JID != made.JID {
		t.Errorf("the client is in %v", all)
	}
	if want := []string{w.owner.Number(), w.friend.Number()}; !slices.Equal(g.Members(), want) {
		t.Errorf("the group has %v", g.Members())
	}
	other := w.friend.CreateGroup("Others")
	if _, err := c.GetGroupInfo(ctx, other.JID()); !errors.Is(err, whatsmeow.ErrNotInGroup) {
		t.Errorf("asking for a group of others: %v", err)
	}
	if _, err := c.GetGroupInfo(ctx, types.NewJID("1203630000", types.GroupServer)); !errors.Is(err, whatsmeow.ErrGroupNotFound) {
		t.Errorf("asking for no group: %v", err)
	}
}
