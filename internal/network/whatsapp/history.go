package whatsapp

import (
	"slices"

	"go.mau.fi/whatsmeow/proto/waHistorySync"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"parley/internal/network"
)

// history gives what was said in direct chats before the channel was paired, marked as past. Files are
// described and not fetched: most of them are gone from the network, and there may be years of them. What is
// not given when the connection ends is not given again: the network was told before that we have it.
func (l *line) history(e *events.HistorySync) bool {
	switch e.Data.GetSyncType() {
	case waHistorySync.HistorySync_INITIAL_BOOTSTRAP, waHistorySync.HistorySync_RECENT, waHistorySync.HistorySync_FULL, waHistorySync.HistorySync_ON_DEMAND:
	default:
		return true // names and settings, which whatsmeow keeps
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
		if err != nil || !isDirect(jid) {
			continue
		}
		if !l.past(chat, jid, numbers[jid]) {
			return false
		}
	}
	return true
}

// past gives the messages of one chat of before, the oldest first.
func (l *line) past(chat *waHistorySync.Conversation, jid, other types.JID) bool {
	from, known, err := l.person(l.ctx, jid, other)
	if err != nil || !known {
		return true
	}
	var all []network.Message
	for _, m := range chat.GetMessages() {
		e, err := l.client.ParseWebMessage(jid, m.GetMessage())
		if err != nil || e.Info.IsFromMe {
			continue
		}
		if p := parse(e.Message); p.content != nil {
			p.file = nil
			said := l.message(e, p, from)
			said.Past, said.History = true, true
			all = append(all, said)
		}
	}
	if len(all) > 1 && all[0].At.After(all[len(all)-1].At) { // phones tell the newest first
		slices.Reverse(all)
	}
	for _, m := range all {
		if !l.give(m.From, m) {
			return false
		}
	}
	return true
}
