package whatsapp

import (
	"cmp"
	"slices"
	"time"

	"go.mau.fi/whatsmeow/proto/waCommon"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/proto/waHistorySync"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/keystore"
	"parley/internal/wait"
)

const (
	firstRetry = 10 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// retryDelay is how long to wait after a sink refused a number of times.
func retryDelay(tries int) time.Duration { return min(firstRetry<<min(tries-1, 10), lastRetry) }

// deliver passes an event to the sink after earlier events of its chat. It returns false if the connection ended first;
// the network then delivers it again.
func (conn *connection) deliver(chat parley.ContactID, e network.Event) bool {
	conn.s.sinkMu.Lock()
	defer conn.s.sinkMu.Unlock()
	return conn.receipts.awaitChat(chat, conn.handlerCtx.Done()) && conn.offer(e)
}

// offer repeats until the sink accepts the event.
func (conn *connection) offer(e network.Event) bool {
	for tries := 1; conn.s.ctx.Err() == nil; tries++ {
		if err := conn.s.sink(conn.s.ctx, e); err == nil {
			return true
		}
		if !conn.pause(retryDelay(tries)) {
			return false
		}
	}
	return false
}

func (conn *connection) pause(d time.Duration) bool { return wait.Sleep(conn.handlerCtx, d) }

func (conn *connection) handleMessage(e *events.Message) bool {
	if err := conn.learnTimer(e.Info.Chat, e.Message, e.Info.Timestamp); err != nil {
		conn.log.Warnf("learn the timer of a chat: %v", err)
		return false
	}
	if e.Info.IsFromMe {
		return conn.handleOwn(e)
	}
	if !isDirect(e.Info.Chat) && groupChat(e.Info.Chat) == "" {
		return true
	}
	from, known, err := conn.contactFor(conn.ctx, e.Info.Sender, e.Info.SenderAlt)
	if err == nil {
		err = conn.storeMet(conn.ctx, from)
	}
	if err != nil {
		conn.log.Warnf("find out who sent %s: %v", e.Info.ID, err)
		return false
	}
	if !known {
		return true
	}
	event, ok := conn.toEvent(e, from)
	return ok && (event == nil || conn.deliver(conn.toChat(e, from), event))
}

// handleOwn publishes what the owner of the account wrote on another device. Its receipts come here too.
func (conn *connection) handleOwn(e *events.Message) bool {
	p := parse(e.Message)
	to, known, err := conn.recipient(&e.Info)
	if err != nil {
		conn.log.Warnf("find out to whom %s went: %v", e.Info.ID, err)
		return false
	}
	if p.content == nil || !known {
		conn.s.otherDeviceSends.put(e.Info.ID, struct{}{}, maxOtherDeviceSends)
		return true
	}
	said := conn.messageEvent(e, p, to)
	said.Own = true
	return conn.deliver(conn.toChat(e, to), said)
}

// recipient returns the contact that a message of the account went to, which is empty for a group; false: it is in neither.
func (conn *connection) recipient(info *types.MessageInfo) (parley.ContactID, bool, error) {
	if groupChat(info.Chat) != "" {
		return "", true, nil
	}
	if !isDirect(info.Chat) || conn.isOwn(info.Chat) {
		return "", false, nil
	}
	to, known, err := conn.contactFor(conn.ctx, info.Chat, info.RecipientAlt)
	if err == nil {
		err = conn.storeMet(conn.ctx, to)
	}
	return to, known, err
}

// toChat returns the chat of a message.
func (conn *connection) toChat(e *events.Message, from parley.ContactID) parley.ContactID {
	return cmp.Or(groupChat(e.Info.Chat), from)
}

// isFromUs reports whether a message that a contact names is one of this account. The key is from the contact's view.
func (conn *connection) isFromUs(e *events.Message, key *waCommon.MessageKey) bool {
	if !e.Info.IsGroup {
		return !key.GetFromMe() // their own messages are not from us
	}
	author, err := types.ParseJID(key.GetParticipant())
	return !key.GetFromMe() && err == nil && conn.isOwn(author)
}

// toEvent converts a message; nil: nothing for the gateway. It returns false if the connection ended first.
func (conn *connection) toEvent(e *events.Message, from parley.ContactID) (network.Event, bool) {
	m := e.Message
	if sealed := m.GetSecretEncryptedMessage(); sealed != nil {
		opened, err := conn.client.DecryptSecretEncryptedMessage(conn.ctx, e)
		if err != nil {
			conn.log.Warnf("open a change of a message: %v", err)
			return nil, conn.handlerCtx.Err() == nil
		}
		m = openedChange(sealed, opened)
	}
	at := e.Info.Timestamp
	switch {
	case m.GetReactionMessage() != nil:
		r := m.GetReactionMessage()
		target := parley.MessageRef{FromMe: conn.isFromUs(e, r.GetKey()), Chat: conn.toChat(e, from), ID: parley.MessageID(r.GetKey().GetID())}
		return network.Reaction{From: from, Target: target, Emoji: r.GetText(), At: at}, true
	case m.GetPollUpdateMessage() != nil:
		return conn.voteEvent(e, from)
	case m.GetProtocolMessage() != nil:
		return conn.changeEvent(m.GetProtocolMessage(), e, from)
	}
	p := parse(m)
	if p.content == nil {
		return nil, true
	}
	return conn.messageEvent(e, p, from), true
}

// openedChange returns a change that was encrypted with the secret of its message. An edit may come without its envelope.
func openedChange(sealed *waE2E.SecretEncryptedMessage, m *waE2E.Message) *waE2E.Message {
	if inner := m.GetEditedMessage().GetMessage(); inner != nil {
		m = inner
	}
	if m.GetProtocolMessage() != nil || sealed.GetSecretEncType() != waE2E.SecretEncryptedMessage_MESSAGE_EDIT {
		return m
	}
	return &waE2E.Message{ProtocolMessage: &waE2E.ProtocolMessage{Type: waE2E.ProtocolMessage_MESSAGE_EDIT.Enum(),
		Key: sealed.GetTargetMessageKey(), EditedMessage: m}}
}

func (conn *connection) changeEvent(m *waE2E.ProtocolMessage, e *events.Message, from parley.ContactID) (network.Event, bool) {
	target := parley.MessageID(m.GetKey().GetID())
	switch m.GetType() {
	case waE2E.ProtocolMessage_REVOKE:
		return network.Deletion{From: from, Group: groupChat(e.Info.Chat).Group(), Target: target, At: e.Info.Timestamp,
			ByAdmin: e.Info.IsGroup && e.Info.Edit == types.EditAttributeAdminRevoke}, true
	case waE2E.ProtocolMessage_MESSAGE_EDIT:
		p := parse(m.GetEditedMessage())
		if p.content == nil {
			return nil, true
		}
		return network.Edit{From: from, Group: groupChat(e.Info.Chat).Group(), Target: target, Content: conn.withMentions(p),
			At: e.Info.Timestamp}, true
	}
	return nil, true // timers and keys between devices
}

// messageEvent makes the event of something that was said. Its file is not here yet: the gateway fetches it after
// it stored the message.
func (conn *connection) messageEvent(e *events.Message, p parsed, from parley.ContactID) network.Message {
	return network.Message{From: from, Group: groupChat(e.Info.Chat).Group(), ID: parley.MessageID(e.Info.ID),
		Content: conn.withMentions(p), ReplyTo: p.replyTo, At: e.Info.Timestamp, File: conn.reference(&e.Info, p)}
}

// withMentions names the contacts that a text mentions by their ids.
func (conn *connection) withMentions(p parsed) parley.Content {
	text, ok := p.content.(parley.Text)
	if !ok {
		return p.content
	}
	for _, name := range p.mentioned {
		jid, err := types.ParseJID(name)
		if err != nil {
			continue
		}
		id, known, err := conn.contactFor(conn.ctx, jid, types.EmptyJID)
		if err != nil || !known || len(text.Mentions) >= maxMentions || slices.Contains(text.Mentions, id) {
			continue
		}
		text.Mentions = append(text.Mentions, id)
		text.Body = replaceMention(text.Body, jid.User, id.Number())
	}
	return text
}

// maxMentions is more than a group has members.
const maxMentions = 1024

func (conn *connection) voteEvent(e *events.Message, from parley.ContactID) (network.Event, bool) {
	poll := parley.MessageID(e.Message.GetPollUpdateMessage().GetPollCreationMessageKey().GetID())
	choice, err := conn.client.DecryptPollVote(conn.ctx, e)
	if err != nil {
		conn.log.Warnf("open a vote: %v", err)
		return nil, conn.handlerCtx.Err() == nil
	}
	options, ok := conn.pollOptions(conn.toChat(e, from), poll)
	if !ok {
		conn.log.Warnf("a vote in poll %s, whose options are not kept", poll)
		return nil, true
	}
	return network.Vote{From: from, Group: groupChat(e.Info.Chat).Group(), Poll: poll, At: e.Info.Timestamp,
		Options: chosenOptions(options, choice.GetSelectedOptions())}, true
}

var receiptStatus = map[types.ReceiptType]parley.Status{
	types.ReceiptTypeDelivered: parley.Delivered,
	types.ReceiptTypeInactive:  parley.Delivered, // on an inactive device
	types.ReceiptTypeRead:      parley.Read,
	types.ReceiptTypePlayed:    parley.Played,
}

// handleReceipt ignores receipts between the account's devices, and for messages of other devices.
func (conn *connection) handleReceipt(e *events.Receipt) bool {
	status, ok := receiptStatus[e.Type]
	group := groupChat(e.Chat).Group()
	if !ok || e.IsFromMe || group == "" && !isDirect(e.Chat) {
		return true
	}
	from, known, err := conn.contactFor(conn.ctx, e.Sender, e.SenderAlt)
	if err != nil {
		return false
	}
	var ids []parley.MessageID
	for _, id := range e.MessageIDs {
		if _, other := conn.s.otherDeviceSends.get(id); !other {
			ids = append(ids, parley.MessageID(id))
		}
	}
	if !known || len(ids) == 0 {
		return true
	}
	r := network.Receipt{From: from, Group: group, IDs: ids, Status: status, At: e.Timestamp}
	if e.Sender.Device == hostedDevice || conn.groupedReceipt.Load() {
		return conn.deliverReceipt(r)
	}
	conn.queueReceipt(queuedReceipt{Receipt: r, ack: newAck(e)})
	return false // we acknowledge it
}

const maxOtherDeviceSends = 2048

// handleHistory delivers the chats from before pairing, with both directions. Files are not fetched: most are gone, and there may be
// years of them. After a disconnect the rest is lost, because the network already has our acknowledgement.
func (conn *connection) handleHistory(e *events.HistorySync) bool {
	switch e.Data.GetSyncType() {
	case waHistorySync.HistorySync_INITIAL_BOOTSTRAP, waHistorySync.HistorySync_RECENT, waHistorySync.HistorySync_FULL,
		waHistorySync.HistorySync_ON_DEMAND:
	default:
		return true // names and settings, which whatsmeow stores
	}
	numbers := map[types.JID]types.JID{} // said with the history; whatsmeow stores them at the same time
	for _, m := range e.Data.GetPhoneNumberToLidMappings() {
		number, err1 := types.ParseJID(m.GetPnJID())
		lid, err2 := types.ParseJID(m.GetLidJID())
		if err1 == nil && err2 == nil {
			numbers[lid] = number
		}
	}
	for _, chat := range e.Data.GetConversations() {
		jid, err := types.ParseJID(chat.GetID())
		if err != nil || !isDirect(jid) && groupChat(jid) == "" {
			continue
		}
		if !conn.deliverHistory(chat, jid, numbers[jid]) {
			return false
		}
	}
	return true
}

// deliverHistory delivers one chat, oldest message first.
func (conn *connection) deliverHistory(chat *waHistorySync.Conversation, jid, other types.JID) bool {
	isGroup := groupChat(jid) != ""
	with, known, err := conn.contactFor(conn.ctx, jid, other)
	if !isGroup && (err != nil || !known || conn.storeMet(conn.ctx, with) != nil) {
		return true
	}
	if seconds := chat.GetEphemeralExpiration(); seconds != 0 && !isGroup {
		t := keystore.Timer{Seconds: seconds, SetAt: chat.GetEphemeralSettingTimestamp()}
		if err := conn.timers.PutTimer(conn.ctx, conn.timerKey(conn.ctx, jid), t); err != nil {
			conn.log.Warnf("store a timer: %v", err)
		}
	}
	var all []network.Message
	for _, m := range chat.GetMessages() {
		e, err := conn.client.ParseWebMessage(jid, m.GetMessage())
		if err != nil {
			continue
		}
		from := with
		if isGroup && !e.Info.IsFromMe {
			if from, known, err = conn.contactFor(conn.ctx, e.Info.Sender, e.Info.SenderAlt); err != nil || !known {
				continue
			}
		}
		if p := parse(e.Message); p.content != nil {
			p.file = nil
			said := conn.messageEvent(e, p, from)
			said.Past, said.History, said.Own = true, true, e.Info.IsFromMe
			all = append(all, said)
		}
	}
	if len(all) > 1 && all[0].At.After(all[len(all)-1].At) { // phones send the newest first
		slices.Reverse(all)
	}
	for _, m := range all {
		if !conn.deliver(network.ToChat(m.From, m.Group), m) {
			return false
		}
	}
	return true
}
