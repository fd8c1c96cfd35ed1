package cloud

import (
	"encoding/json"
	"errors"
	"hash/maphash"
	"net/http"
	"sync"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store"
	"parley/internal/wait"
)

var chatSeed = maphash.MakeSeed()

// chat is the lock of a chat.
func (s *session) chat(c parley.ContactID) *sync.Mutex {
	return &s.chats[maphash.String(chatSeed, string(c))%uint64(len(s.chats))]
}

func (s *session) receiveMessages(v messagesValue) error {
	for i := range v.Messages {
		if err := s.receiveMessage(&v.Messages[i], v.Contacts); err != nil {
			return err
		}
	}
	for i := range v.Statuses {
		if err := s.receiveStatus(&v.Statuses[i]); err != nil {
			return err
		}
	}
	for range v.Errors {
		s.ignore("errors")
	}
	return nil
}

// sender is who a message is from. Meta names a number, the id of somebody who may hide it, or both.
type sender struct {
	store.RemoteContact
	hidden parley.ContactID // under which the contact was known before the number came; empty: it was not
}

func (s *session) sender(m *reportedMessage, contacts []reportedContact) (from sender, err error) {
	number := m.From
	from.UserID = m.FromUserID
	for _, c := range contacts {
		if len(contacts) == 1 || c.Number != "" && c.Number == number || c.UserID != "" && c.UserID == from.UserID {
			from.Name, from.Username = c.Profile.Name, c.Profile.Username
			if from.UserID == "" {
				from.UserID = c.UserID
			}
			if number == "" {
				number = c.Number
			}
		}
	}
	if from.UserID != "" {
		known, err := s.d.config.Store.RemoteUser(s.ctx, s.channel.Code, from.UserID)
		if err != nil && !errors.Is(err, parley.ErrNotFound) {
			return from, err
		}
		from.Contact = known.Contact
	}
	switch contact := parley.NewContactID(number); {
	case number != "" && contact.CanExist():
		if from.Contact.IsHidden() {
			from.hidden = from.Contact
		}
		from.Contact = contact
	case from.Contact == "" && from.UserID != "":
		from.Contact = hiddenContact(from.UserID)
	}
	return from, nil
}

func (s *session) receiveMessage(m *reportedMessage, contacts []reportedContact) error {
	if m.Type == "system" {
		return s.numberChanged(m)
	}
	if m.Group != "" || m.ID == "" {
		s.ignore("message_" + m.Type)
		return nil
	}
	from, err := s.sender(m, contacts)
	if err != nil {
		return err
	}
	if from.Contact == "" {
		s.ignore("no_sender")
		return nil
	}
	s.reserve() // what comes in counts against the rate too
	lock := s.chat(from.Contact)
	lock.Lock()
	defer lock.Unlock()
	id := inboundID(m.ID)
	from.Inbound, from.InboundAt = m.ID, m.Timestamp.at(time.Now())
	err = s.d.config.Store.Tx(s.ctx, func(tx *store.Tx) error { return tx.AddRemoteInbound(s.ctx, s.channel.Code, id, from.RemoteContact) })
	if err == nil && from.hidden != "" {
		err = s.sink(s.ctx, network.Alias{Asked: from.hidden, Contact: from.Contact})
	}
	if err != nil {
		return err
	}
	return s.deliver(m, from.Contact, id, from.InboundAt)
}

// deliver gives a message or an operation on one to the sink.
func (s *session) deliver(m *reportedMessage, from parley.ContactID, id parley.MessageID, at time.Time) error {
	switch m.Type {
	case "reaction":
		target, ok, err := s.target(m.Reaction.MessageID)
		if err != nil || !ok {
			return err
		}
		ref := parley.MessageRef{FromMe: target.FromMe, Chat: from, ID: target.ID}
		return s.sink(s.ctx, network.Reaction{From: from, Target: ref, Emoji: m.Reaction.Emoji, At: at})
	case "revoke":
		return s.sink(s.ctx, network.Deletion{From: from, Target: inboundID(m.Revoke.Original), At: at})
	case "edit":
		if m.Edit.Message == nil {
			return nil
		}
		content, _ := m.Edit.Message.content()
		return s.sink(s.ctx, network.Edit{From: from, Target: inboundID(m.Edit.Original), Content: content, At: at})
	}
	content, file := m.content()
	e := network.Message{From: from, ID: id, Content: content, At: at}
	if m.Context.ID != "" {
		target, _, err := s.target(m.Context.ID)
		if err != nil {
			return err
		}
		e.ReplyTo = target.ID
	}
	if file != nil && isDigits(file.ID) {
		e.File, _ = json.Marshal(fileReference{ID: file.ID, SHA256: readSum(file.SHA256)}) // it cannot fail
	}
	if err := s.sink(s.ctx, e); err != nil || !s.settings().MarkRead {
		return err
	}
	s.running.Go(func() { s.markRead(m.ID) }) // the caller has entered
	return nil
}

// markRead shows the contact that a message was read. It is not tried again: the next one shows it too.
func (s *session) markRead(remote string) {
	a, err := s.account(s.ctx)
	if err == nil {
		var ignored any
		err = s.d.do(s.ctx, a, http.MethodPost, a.PhoneID+"/messages", proof(), newSeen(remote), &ignored)
	}
	if err != nil && s.ctx.Err() == nil {
		s.d.config.Log.Warn("mark a message as read", "channel", s.channel.Code, "error", err)
	}
}

// target finds a message by Meta's id; false: we do not know it.
func (s *session) target(remote string) (store.RemoteMessage, bool, error) {
	m, err := s.d.config.Store.RemoteMessage(s.ctx, s.channel.Code, remote)
	if errors.Is(err, parley.ErrNotFound) {
		s.awaitStored()
		m, err = s.d.config.Store.RemoteMessage(s.ctx, s.channel.Code, remote)
	}
	if errors.Is(err, parley.ErrNotFound) {
		s.ignore("unknown_target")
		return m, false, nil
	}
	return m, err == nil, err
}

// receiveStatus applies a status. One of a message whose response was lost also tells Meta's id.
func (s *session) receiveStatus(r *reportedStatus) error {
	s.noteStatus()
	status, known := statuses[r.Status]
	if !known {
		s.ignore("status")
		return nil
	}
	m, learned, err := s.statusMessage(r)
	if err != nil || status == parley.Sent && !learned { // the response said so already
		return err
	}
	if m.ID == "" || !m.FromMe { // another program sent it
		s.ignore("unknown_message")
		return nil
	}
	lock := s.chat(m.Contact)
	lock.Lock()
	defer lock.Unlock()
	e := network.Receipt{From: m.Contact, IDs: []parley.MessageID{m.ID}, Status: status, At: r.Timestamp.at(time.Now())}
	if status == parley.Failed {
		cause := graphError{Message: "no reason"}
		if len(r.Errors) > 0 {
			cause = r.Errors[0]
		}
		e.Failure = toFailure(&cause, e.At)
		if cause.Code == notReachable {
			err := s.d.config.Store.Tx(s.ctx, func(tx *store.Tx) error { return tx.SetRemoteAbsent(s.ctx, s.channel.Code, m.Contact, e.At) })
			if err != nil {
				return err
			}
		}
	}
	err = s.sink(s.ctx, e)
	if _, unknown := errors.AsType[*network.UnknownMessages](err); unknown { // it was deleted, or is of a time after a backup
		s.ignore("unknown_message")
		return nil
	}
	return err
}

// awaitResponse finds a message of which only Meta's id is known. The response with that id may still be on its way.
func (s *session) awaitResponse(remote string) (store.RemoteMessage, error) {
	for range 10 {
		m, err := s.d.config.Store.RemoteMessage(s.ctx, s.channel.Code, remote)
		if !errors.Is(err, parley.ErrNotFound) {
			return m, err
		}
		if s.inFlight.Load() == 0 || !wait.Sleep(s.ctx, 100*time.Millisecond) {
			break
		}
	}
	m, err := s.d.config.Store.RemoteMessage(s.ctx, s.channel.Code, remote)
	return m, parley.IgnoreNotFound(err)
}

// statusMessage finds the message of a status by Meta's id, or by ours in its opaque data. It stores what it learns.
func (s *session) statusMessage(r *reportedStatus) (m store.RemoteMessage, learned bool, err error) {
	db := s.d.config.Store
	m, err = db.RemoteMessage(s.ctx, s.channel.Code, r.ID)
	if !errors.Is(err, parley.ErrNotFound) {
		return m, false, err
	}
	id := readOpaque(s.channel.ID, r.Opaque)
	if id == "" && r.Opaque == "" && r.Status == "failed" {
		m, err = s.awaitResponse(r.ID)
		return m, false, err
	}
	if id == "" || r.ID == "" {
		return store.RemoteMessage{}, false, nil
	}
	to, err := db.RemoteAttempt(s.ctx, s.channel.Code, id)
	if errors.Is(err, parley.ErrNotFound) { // a second copy of one that is known, or nothing of ours
		var first store.RemoteSend
		if first, err = db.RemoteSend(s.ctx, s.channel.Code, id); err == nil {
			m, err = db.RemoteMessage(s.ctx, s.channel.Code, first.Remote)
			to = m.Contact
		}
	}
	if err == nil {
		_, err = s.storeSent(s.ctx, id, to, r.ID)
	}
	if err != nil {
		return store.RemoteMessage{}, false, parley.IgnoreNotFound(err)
	}
	return store.RemoteMessage{ID: id, Contact: to, FromMe: true}, true, nil
}
