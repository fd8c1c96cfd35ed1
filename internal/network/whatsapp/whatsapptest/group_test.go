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

// TestGroupMessages writes in groups of both ways of addressing, both ways.
func TestGroupMessages(t *testing.T) {
	w := newWorld(t)
	eve := w.Phone("6285555555555", whatsapptest.Named("Eve"))
	for _, mode := range []types.AddressingMode{types.AddressingModeLID, types.AddressingModePN} {
		t.Run(string(mode), func(t *testing.T) {
			g := w.friend.CreateGroup("Team "+string(mode), mode, w.owner, eve)
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
				t.Errorf("the ledger says %+v", e)
			}
			for _, text := range []string{"first " + string(mode), "second " + string(mode)} {
				id := must[string](t)(eve.Send(within(t), g, text))
				m := w.client.message(text)
				if m.Info.Chat != g.JID() || !m.Info.IsGroup || m.Info.AddressingMode != mode {
					t.Errorf("the client got %+v", m.Info)
				}
				eve.ExpectReceipt(t, id, types.ReceiptTypeInactive)
				w.friend.Expect(t, whatsapptest.ID(id))
			}
		})
	}
}

// TestGroupRequests does to groups what a client can do.
func TestGroupRequests(t *testing.T) {
	w := newWorld(t)
	c, ctx := w.client, within(t)
	eve := w.Phone("6285555555555")
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
	changed := must[[]types.GroupParticipant](t)(c.UpdateGroupParticipants(ctx, made.JID, []types.JID{eve.LID(), types.NewJID("15550000000", types.DefaultUserServer)}, whatsmeow.ParticipantChangeAdd))
	if len(changed) != 2 || changed[0].Error != 0 || changed[1].Error != 404 {
		t.Errorf("adding answered %+v", changed)
	}
	must[[]types.GroupParticipant](t)(c.UpdateGroupParticipants(ctx, made.JID, []types.JID{eve.LID()}, whatsmeow.ParticipantChangePromote))
	if want := []string{w.owner.Number(), w.friend.Number(), eve.Number()}; !slices.Equal(g.Members(), want) {
		t.Errorf("the group has %v", g.Members())
	}
	if err := c.SetGroupName(ctx, made.JID, "Renamed"); err != nil || g.Subject() != "Renamed" {
		t.Errorf("renaming: %v, now %q", err, g.Subject())
	}
	if link := must[string](t)(c.GetGroupInviteLink(ctx, made.JID, false)); link == "" {
		t.Error("no invitation")
	}
	must[[]types.GroupParticipant](t)(c.UpdateGroupParticipants(ctx, made.JID, []types.JID{eve.LID()}, whatsmeow.ParticipantChangeRemove))
	g.Rename(w.friend, "By a friend")
	expect(c, func(e *events.GroupInfo) bool { return e.Name != nil && e.Name.Name == "By a friend" })
	g.Add(w.friend, eve)
	expect(c, func(e *events.GroupInfo) bool { return slices.Contains(e.Join, eve.LID()) })
	g.Remove(w.friend, eve)
	expect(c, func(e *events.GroupInfo) bool { return slices.Contains(e.Leave, eve.LID()) })
	if err := c.LeaveGroup(ctx, made.JID); err != nil {
		t.Fatal(err)
	}
	if _, err := c.GetGroupInfo(ctx, made.JID); !errors.Is(err, whatsmeow.ErrNotInGroup) {
		t.Errorf("asking for a group that was left: %v", err)
	}
	if _, err := c.GetGroupInfo(ctx, types.NewJID("1203630000", types.GroupServer)); !errors.Is(err, whatsmeow.ErrGroupNotFound) {
		t.Errorf("asking for no group: %v", err)
	}
}
