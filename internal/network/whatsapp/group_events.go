package whatsapp

import (
	"time"

	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"parley"
	"parley/internal/network"
)

// handleJoinedGroup reports a new group of the account, which may have created it itself.
func (conn *connection) handleJoinedGroup(e *events.JoinedGroup) bool {
	members := make([]types.JID, len(e.Participants))
	for i, p := range e.Participants {
		members[i] = p.JID
	}
	at := e.GroupCreated
	if e.Type != "new" || at.IsZero() { // it existed before
		at = time.Now()
	}
	return conn.deliverGroupChange(e.JID, e.Sender, e.SenderPN, members, nil, e.Name, at)
}

// handleGroupInfo reports changes of members and of the name. Other changes are read on request.
func (conn *connection) handleGroupInfo(e *events.GroupInfo) bool {
	name := ""
	if e.Name != nil {
		name = e.Name.Name
	}
	if len(e.Join) == 0 && len(e.Leave) == 0 && name == "" {
		conn.s.groups.invalidate(e.JID) // its timer may have changed, or who may write
		return true
	}
	return conn.deliverGroupChange(e.JID, e.Sender, e.SenderPN, e.Join, e.Leave, name, e.Timestamp)
}

func (conn *connection) deliverGroupChange(
	group types.JID, by, byNumber *types.JID, added, removed []types.JID, name string, at time.Time,
) bool {
	conn.s.groups.invalidate(group)
	chat := groupChat(group)
	if chat == "" {
		return true
	}
	change := parley.GroupChange{GroupID: chat.Group(), Name: stripNUL(name)}
	var err error
	if change.Added, err = conn.contactsFor(added); err == nil {
		change.Removed, err = conn.contactsFor(removed)
	}
	if err == nil && by != nil {
		other := types.EmptyJID
		if byNumber != nil {
			other = *byNumber
		}
		if change.FromMe = conn.isOwn(*by) || conn.isOwn(other); !change.FromMe {
			change.By, _, err = conn.contactFor(conn.ctx, *by, other)
		}
	}
	if err != nil {
		conn.log.Warnf("who changed a group: %v", err)
		return false
	}
	return conn.deliver(chat, network.GroupChange{GroupChange: change, At: at})
}

// contactsFor maps addresses of members.
func (conn *connection) contactsFor(jids []types.JID) (contacts []parley.ContactID, err error) {
	for _, jid := range jids {
		c, known, err := conn.contactFor(conn.ctx, jid, types.EmptyJID)
		if err != nil {
			return nil, err
		}
		if known {
			contacts = append(contacts, c)
		}
	}
	return contacts, conn.storeMet(conn.ctx, contacts...)
}
