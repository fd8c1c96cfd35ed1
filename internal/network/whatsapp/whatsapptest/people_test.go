package whatsapptest_test

import (
	"errors"
	"strings"
	"testing"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"

	"parley/internal/network/whatsapp/whatsapptest"
)

// TestAddressing writes to and from people who are shown in every way.
func TestAddressing(t *testing.T) {
	tests := []struct {
		shown       whatsapptest.Addressing
		from, other func(*whatsapptest.Phone) types.JID
		in          bool
	}{
		{whatsapptest.Both, (*whatsapptest.Phone).LID, (*whatsapptest.Phone).JID, true},
		{whatsapptest.ByNumber, (*whatsapptest.Phone).JID, (*whatsapptest.Phone).LID, true},
		{whatsapptest.OnlyLID, (*whatsapptest.Phone).LID, func(*whatsapptest.Phone) types.JID { return types.EmptyJID }, false},
	}
	for _, test := range tests {
		w := newWorld(t, whatsapptest.Shown(test.shown))
		must[string](t)(w.friend.Send(within(t), w.owner, "hello"))
		e := w.client.message("hello")
		if e.Info.Sender != test.from(w.friend) || e.Info.SenderAlt != test.other(w.friend) {
			t.Errorf("shown as %d: the client got it from %v, also %v", test.shown, e.Info.Sender, e.Info.SenderAlt)
		}
		sent := w.client.text(e.Info.Chat, "answer")
		w.friend.Expect(t, whatsapptest.ID(sent.ID))
		w.client.receipt(sent.ID, types.ReceiptTypeDelivered)
		answer := must[[]types.IsOnWhatsAppResponse](t)(w.client.IsOnWhatsApp(within(t), []string{"+" + w.friend.Number()}))
		if len(answer) != 1 || answer[0].IsIn != test.in {
			t.Errorf("shown as %d: looking the number up says %+v", test.shown, answer)
		}
	}
}

// TestNoLID has people to whom today's clients cannot write: the client says so before it sends anything.
func TestNoLID(t *testing.T) {
	w := newWorld(t, whatsapptest.Shown(whatsapptest.OnlyNumber))
	for _, to := range []types.JID{w.friend.JID(), types.NewJID("15550001111", types.DefaultUserServer)} {
		_, err := w.client.SendMessage(within(t), to, &waE2E.Message{Conversation: proto.String("x")})
		if err == nil || !strings.Contains(err.Error(), "no LID found") {
			t.Errorf("writing to %v: %v", to, err)
		}
	}
	if all := w.Unencrypted(); len(all) != 0 {
		t.Errorf("something was sent: %+v", all)
	}
}

// TestLookingPeopleUp asks what a gateway asks about its contacts.
func TestLookingPeopleUp(t *testing.T) {
	w := newWorld(t, whatsapptest.About("busy"), whatsapptest.Picture("https://example.test/p.jpg"))
	c, ctx := w.client, within(t)
	found := must[[]types.IsOnWhatsAppResponse](t)(c.IsOnWhatsApp(ctx, []string{"+" + w.friend.Number(), "+15550001111"}))
	if len(found) != 2 || !found[0].IsIn || found[0].JID != w.friend.LID() || found[0].PhoneNumber != w.friend.JID() || found[1].IsIn {
		t.Errorf("on the network are %+v", found)
	}
	info := must[map[types.JID]types.UserInfo](t)(c.GetUserInfo(ctx, []types.JID{w.friend.JID()}))[w.friend.JID()]
	if info.Status != "busy" || info.LID != w.friend.LID() || len(info.Devices) != 1 {
		t.Errorf("the friend is %+v", info)
	}
	if pic := must[*types.ProfilePictureInfo](t)(c.GetProfilePictureInfo(ctx, w.friend.JID(),
		nil)); pic.URL != "https://example.test/p.jpg" {
		t.Errorf("the friend looks like %+v", pic)
	}
	if _, err := c.GetProfilePictureInfo(ctx, w.owner.JID(), nil); !errors.Is(err, whatsmeow.ErrProfilePictureNotSet) {
		t.Errorf("a picture that nobody set: %v", err)
	}
	w.owner.Block(w.friend)
	if list := must[*types.Blocklist](t)(c.GetBlocklist(ctx)); len(list.JIDs) != 1 {
		t.Errorf("blocked are %v", list.JIDs)
	}
	if s := c.GetPrivacySettings(ctx); s.ReadReceipts != types.PrivacySettingAll {
		t.Errorf("privacy is %+v", s)
	}
}

// TestUnknownRequest gets an error at once and is a violation.
func TestUnknownRequest(t *testing.T) {
	s := must[*whatsapptest.Server](t)(whatsapptest.Start())
	t.Cleanup(s.Close)
	c := newClient(t, s)
	c.pair(s.Phone("6281234567890"))
	if _, err := c.GetBotListV2(within(t)); err == nil {
		t.Error("a request that nobody knows was answered")
	}
	if v := s.Violations(); len(v) != 1 || !strings.Contains(v[0], "bot") {
		t.Errorf("violations are %q", v)
	}
}

// TestGroupMessages receives messages in a group.
func TestGroupMessages(t *testing.T) {
	w := newWorld(t)
	eve := w.Phone("6285555555555", whatsapptest.Named("Eve"))
	g := w.friend.CreateGroup("Team", w.owner, eve)
	e := expect(w.client, func(e *events.JoinedGroup) bool { return e.JID == g.JID() })
	if e.Name != "Team" || len(e.Participants) != 3 {
		t.Errorf("the client joined %+v", e.GroupInfo)
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
	made := must[*types.GroupInfo](t)(c.CreateGroup(ctx,
		whatsmeow.ReqCreateGroup{Name: "Fresh", Participants: []types.JID{w.friend.LID()}}))
	info := must[*types.GroupInfo](t)(c.GetGroupInfo(ctx, made.JID))
	if info.Name != "Fresh" || len(info.Participants) != 2 || info.OwnerJID != w.owner.LID() {
		t.Errorf("the group is %+v", info)
	}
	if all := must[[]*types.GroupInfo](t)(c.GetJoinedGroups(ctx)); len(all) != 1 || all[0].JID != made.JID {
		t.Errorf("the client is in %v", all)
	}
	other := w.friend.CreateGroup("Others")
	if _, err := c.GetGroupInfo(ctx, other.JID()); !errors.Is(err, whatsmeow.ErrNotInGroup) {
		t.Errorf("asking for a group of others: %v", err)
	}
	if _, err := c.GetGroupInfo(ctx, types.NewJID("1203630000", types.GroupServer)); !errors.Is(err, whatsmeow.ErrGroupNotFound) {
		t.Errorf("asking for no group: %v", err)
	}
}
