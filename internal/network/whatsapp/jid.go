package whatsapp

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.mau.fi/whatsmeow/types"

	"parley"
	"parley/internal/network"
)

// A contact has two addresses on the network: the phone number and the LID, an unrelated number. Chats, senders and
// receipts use either. Only this file maps them: the gateway uses phone numbers, the network gets LIDs. A contact whose number is
// hidden has an id that is made of the LID (hidden_number.go).

func phoneJID(c parley.ContactID) types.JID {
	return types.NewJID(c.Number(), types.DefaultUserServer)
}

// toContact returns the contact that an address by number names.
func toContact(jid types.JID) (parley.ContactID, bool) {
	if jid.Server != types.DefaultUserServer && jid.Server != types.LegacyUserServer || jid.User == "" {
		return "", false
	}
	return parley.NewContactID(jid.User), true
}

func groupJID(id parley.GroupID) (types.JID, bool) {
	user, server, ok := strings.Cut(string(id), "@")
	if !ok || server != types.GroupServer || user == "" {
		return types.EmptyJID, false
	}
	return types.NewJID(user, types.GroupServer), true
}

// groupChat is the chat of a group, as the gateway names it; empty: it is no group.
func groupChat(jid types.JID) parley.ContactID {
	if jid.Server != types.GroupServer {
		return ""
	}
	return parley.ContactID(jid.ToNonAD().String())
}

// isDirect reports whether a chat has one other member.
func isDirect(chat types.JID) bool {
	return (chat.Server == types.DefaultUserServer || chat.Server == types.HiddenUserServer) && !chat.IsBot() && chat != types.PSAJID
}

// parseNumber reads a phone number in any spelling; "" if it cannot exist.
func parseNumber(number string) string {
	digits, err := parley.ParseNumber(number)
	if err != nil || !parley.NewContactID(digits).CanExist() {
		return ""
	}
	return digits
}

// contactFor maps an address, and optionally the other address of the same contact. It returns false for what is no contact.
func (conn *connection) contactFor(ctx context.Context, jid, other types.JID) (parley.ContactID, bool, error) {
	for _, j := range []types.JID{jid, other} {
		if c, ok := toContact(j); ok {
			return c, true, nil
		}
	}
	hidden := types.EmptyJID
	for _, j := range []types.JID{jid, other} {
		if j.Server != types.HiddenUserServer || j.User == "" {
			continue
		}
		hidden = j
		number, err := conn.client.Store.LIDs.GetPNForLID(ctx, j.ToNonAD())
		if err != nil {
			return "", false, fmt.Errorf("look up a LID: %w", err)
		}
		if c, ok := toContact(number); ok {
			return c, true, nil
		}
	}
	if hidden.IsEmpty() {
		return "", false, nil
	}
	return hiddenContact(hidden), true, nil
}

const (
	// absentFor is how long a number is cached as absent. It limits repeated look-ups, and finds new accounts soon enough.
	absentFor = 10 * time.Minute
	// maxNumbers is how many absent numbers, and how many spellings, are cached.
	maxNumbers = 10_000
)

var errAbsent = network.Refuse(parley.NotOnNetwork, "This number is not on WhatsApp.")

// networkSpelling returns the network's spelling of a contact's number, as far as it is known.
func (s *session) networkSpelling(c parley.ContactID) parley.ContactID {
	if own, known := s.aliases.get(c); known {
		return own
	}
	return c
}

// storeAlias stores that the network spells a number in another way.
func (conn *connection) storeAlias(asked, own parley.ContactID) error {
	if own == asked || !own.CanExist() || conn.s.networkSpelling(asked) == own {
		return nil
	}
	if !conn.beginHandler() {
		return errConnectionEnded
	}
	defer conn.handlers.Done()
	if err := conn.s.sink(conn.handlerCtx, network.Alias{Asked: asked, Contact: own}); err != nil {
		return err
	}
	conn.s.aliases.put(asked, own, maxNumbers)
	return nil
}

// findAddress returns the LID of a contact, or the address of a group. The network is queried once per contact.
func (conn *connection) findAddress(ctx context.Context, c parley.ContactID) (types.JID, error) {
	if group, ok := groupJID(c.Group()); ok {
		return group, nil
	}
	if lid, hidden := hiddenLID(c); hidden {
		return conn.hiddenAddress(ctx, lid)
	}
	if !c.CanExist() {
		return types.EmptyJID, network.ErrImpossibleNumber
	}
	c = conn.s.networkSpelling(c)
	lid, err := conn.client.Store.LIDs.GetLIDForPN(ctx, phoneJID(c))
	if err != nil {
		return types.EmptyJID, fmt.Errorf("look up a number: %w", err)
	}
	if !lid.IsEmpty() {
		return lid, nil
	}
	if since, known := conn.s.d.absent.get(c); known && time.Since(since) < absentFor {
		return types.EmptyJID, errAbsent
	}
	found, err := conn.lookUpNumber(ctx, c)
	if err != nil {
		return types.EmptyJID, err
	}
	if !found {
		return types.EmptyJID, errAbsent
	}
	c = conn.s.networkSpelling(c)
	if lid, err = conn.client.Store.LIDs.GetLIDForPN(ctx, phoneJID(c)); err != nil || !lid.IsEmpty() {
		return lid, err
	}
	info, err := queryWithRetry(ctx, conn, func(ctx context.Context) (map[types.JID]types.UserInfo, error) {
		return conn.client.GetUserInfo(ctx, []types.JID{phoneJID(c)})
	})
	if err != nil {
		return types.EmptyJID, conn.queryError("find an address", err)
	}
	if lid = info[phoneJID(c)].LID; lid.IsEmpty() {
		return types.EmptyJID, fmt.Errorf("the network gives no LID for a number that it knows")
	}
	return lid, nil
}

// lookUpNumber queries whether a contact is on the network, and stores its LID and the network's spelling.
func (conn *connection) lookUpNumber(ctx context.Context, c parley.ContactID) (bool, error) {
	if !c.CanExist() {
		return false, nil
	}
	answers, err := queryWithRetry(ctx, conn, func(ctx context.Context) ([]types.IsOnWhatsAppResponse, error) {
		return conn.client.IsOnWhatsApp(ctx, []string{"+" + c.Number()})
	})
	if err != nil {
		return false, conn.queryError("look up a number", err)
	}
	for _, a := range answers {
		if a.IsIn {
			conn.s.d.absent.remove(c)
			return true, conn.storeAlias(c, networkNumber(a, c))
		}
	}
	if len(answers) == 0 {
		return false, fmt.Errorf("the network said nothing about a number")
	}
	conn.s.d.absent.put(c, time.Now(), maxNumbers)
	return false, nil
}

func networkNumber(a types.IsOnWhatsAppResponse, asked parley.ContactID) parley.ContactID {
	for _, jid := range []types.JID{a.PhoneNumber, a.JID} {
		if own, ok := toContact(jid); ok {
			return own
		}
	}
	return asked
}
