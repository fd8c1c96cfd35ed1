package whatsapp

import (
	"context"
	"errors"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"parley"
	"parley/internal/network"
)

// A message that cannot be read is requested again from its sender, and from the account's phone. whatsmeow waits for the phone's
// confirmation while it handles the stanza, and all others would wait with it. Therefore it is kept from asking, and we ask in the
// background, without waiting.

const (
	maxAsked      = 20   // messages of one sender in an hour that the phone is asked for: anybody can send nonsense
	maxUnreadable = 1024 // messages that are known to be unreadable
)

// errAskedLater keeps whatsmeow from asking the phone.
var errAskedLater = errors.New("the phone is asked later")

type messageKey struct{}

// messageContext marks the context in which a message is handled. Messages of our own phone by its number are left out: whatsmeow looks up
// its LID to decrypt them.
func (conn *connection) messageContext(ctx context.Context, from types.JID) context.Context {
	if from.Server == types.DefaultUserServer && conn.isOwn(from) {
		return ctx
	}
	return context.WithValue(ctx, messageKey{}, true)
}

// GetLIDForPN fails where whatsmeow is about to ask the phone: that is the only reason to look up our own LID while a message is
// handled. What goes on after that, which has a context without an end, may ask.
func (p lidObserver) GetLIDForPN(ctx context.Context, number types.JID) (types.JID, error) {
	if ctx.Value(messageKey{}) != nil && ctx.Done() != nil && number == p.conn.jid.ToNonAD() {
		return types.EmptyJID, errAskedLater
	}
	return p.LIDStore.GetLIDForPN(ctx, number)
}

// handleUnreadable asks the phone for a message, and reports it unless it is one that nobody would see. It comes again if the sender's
// second copy cannot be read either.
func (conn *connection) handleUnreadable(e *events.UndecryptableMessage) bool {
	info := &e.Info
	if _, known := conn.s.unreadable.get(info.ID); known {
		return true
	}
	conn.s.unreadable.put(info.ID, struct{}{}, maxUnreadable)
	if conn.s.asked.allows(info.Sender.ToNonAD(), maxAsked) {
		conn.goBackground(func() { conn.askPhone(info) })
	}
	group := groupChat(info.Chat).Group()
	if info.IsFromMe || e.DecryptFailMode == events.DecryptFailHide || !isDirect(info.Chat) && group == "" {
		return true
	}
	from, known, err := conn.contactFor(conn.ctx, info.Sender, info.SenderAlt)
	if err == nil {
		err = conn.storeMet(conn.ctx, from)
	}
	if err != nil || !known {
		conn.log.Warnf("find out who sent %s: %v", info.ID, err)
		return true
	}
	reason := parley.Undecryptable
	if e.UnavailableType == events.UnavailableTypeViewOnce {
		reason = parley.ViewOnce
	}
	return conn.deliver(network.ToChat(from, group), network.Unreadable{From: from, Group: group, ID: parley.MessageID(info.ID),
		Reason: reason, At: info.Timestamp})
}

// askPhone asks the account's phone for a message. The phone sends it, if it has it, as a message of its own.
func (conn *connection) askPhone(info *types.MessageInfo) {
	var err error
	defer conn.s.recoverPanic(&err)
	ctx, done := conn.s.d.keys.SendContext(conn.ctx)
	defer done()
	conn.sending.Lock()
	defer conn.sending.Unlock()
	request := conn.client.BuildUnavailableMessageRequest(info.Chat, info.Sender, info.ID)
	node, err := conn.inner().PreparePeerMessageNode(ctx, conn.jid.ToNonAD(), conn.client.GenerateMessageID(), request,
		&whatsmeow.MessageDebugTimings{})
	if err == nil {
		err = conn.inner().SendNode(ctx, *node)
	}
	if err != nil {
		conn.log.Warnf("ask the phone for %s: %v", info.ID, err)
	}
}
