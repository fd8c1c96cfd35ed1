package cloud

import (
	"context"
	"errors"
	"net/http"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/store"
	"parley/internal/wait"
)

func (s *session) Send(ctx context.Context, ms []*parley.Message) []error {
	errs, failed := make([]error, len(ms)), map[parley.ContactID]bool{}
	for i, m := range ms {
		switch {
		case failed[m.Chat]:
			errs[i] = network.ErrHeldBack
		case !s.enter():
			errs[i] = network.NotConnected(nil)
		default:
			errs[i] = s.send(ctx, m)
			s.running.Done()
		}
		failed[m.Chat] = failed[m.Chat] || errs[i] != nil
	}
	return errs
}

func (s *session) send(ctx context.Context, m *parley.Message) error {
	switch c := m.Content.(type) {
	case parley.Star, parley.Archive:
		return nil // only we know of it
	case parley.Seen:
		return s.operate(ctx, m.Chat, c.Target.ID, func(target string) any { return newSeen(target) })
	case parley.Reaction:
		return s.operate(ctx, m.Chat, c.Target.ID, func(target string) any {
			return envelope{"type": "reaction", "reaction": map[string]any{"message_id": target, "emoji": c.Emoji}}
		})
	}
	return s.sendMessage(ctx, m)
}

// acceptance is Meta's response to a message.
type acceptance struct {
	Contacts []struct {
		ID string `json:"wa_id"`
	}
	Messages []struct{ ID string }
}

// sendMessage sends a message once, or as often as it must because nobody knows whether it left.
//
// The attempt is stored before the request. It is removed by the response, or by the status that Meta reports with our id. While it
// is there, the message may have left: it waits for a status. After the waiting time it is sent again, or fails, as the channel
// is set up.
func (s *session) sendMessage(ctx context.Context, m *parley.Message) error {
	var again, left bool
	var err error
	isNew := m.Attempts == 0 && m.CreatedAt.After(s.opened)
	if !isNew || parley.MediaIn(m.Content) != nil { // else begin finds out, and nothing is uploaded in vain
		if again, left, err = s.tried(ctx, m); err != nil || left {
			return err
		}
	}
	a, err := s.account(ctx)
	if err != nil {
		return network.NotConnected(err)
	}
	body, err := s.compose(ctx, a, m)
	if err != nil {
		return err
	}
	err = s.begin(ctx, m, body, again)
	if errors.Is(err, parley.ErrExists) {
		if again, left, err = s.tried(ctx, m); err != nil || left {
			return err
		}
		err = s.begin(ctx, m, body, again)
	}
	if err != nil {
		return network.NotConnected(err)
	}
	if may := s.d.config.MaySend; may != nil && !may() {
		return network.NotConnected(nil)
	}
	s.inFlight.Add(1)
	var response acceptance
	err = s.d.do(ctx, a, http.MethodPost, a.PhoneID+"/messages", proof(), body, &response)
	if err == nil && (len(response.Messages) == 0 || response.Messages[0].ID == "") {
		err = &lostError{sent: true, cause: errors.New("the response has no id")}
	}
	if err != nil {
		defer s.inFlight.Add(-1)
		return s.notAccepted(ctx, m, err)
	}
	s.accepted(m.Chat)
	s.noteAccepted()
	s.storeLater(ctx, m.ID, m.Chat, response.Messages[0].ID)
	if len(response.Contacts) > 0 {
		return s.learnSpelling(m.Chat, response.Contacts[0].ID)
	}
	return nil
}

// tried reports whether a message left, or may have left and is to be sent again. The error says that it has to wait, or that it failed.
func (s *session) tried(ctx context.Context, m *parley.Message) (again, left bool, err error) {
	known, err := s.known(ctx, m.ID)
	if err != nil || known.Remote != "" { // it left, and the process died before that was stored with the message
		return false, true, err
	}
	if known.AttemptAt.IsZero() {
		return false, false, nil
	}
	since := known.AttemptAt
	if s.opened.After(since) { // statuses could not come before
		since = s.opened
	}
	text, _ := m.Content.(parley.Text)
	if rest := s.unknownWait(text.Code != "") - time.Since(since); rest > 0 {
		return true, false, &network.Error{Class: network.Unknown, Cause: errors.New("no status came yet"), RetryAfter: rest}
	}
	s.noteUnknown()
	if s.settings().OnUnknown == parley.FailUnknown {
		return true, false, errors.Join(s.endAttempt(ctx, m), errUnknownOutcome)
	}
	return true, false, nil
}

// storeLater stores Meta's id of a message while the message is reported as SENT. Until then the attempt is open, and a status ends it
// too: nobody waits for the disk.
func (s *session) storeLater(ctx context.Context, id parley.MessageID, to parley.ContactID, remote string) {
	s.ending.RLock()
	s.running.Go(func() {
		defer s.inFlight.Add(-1)
		defer s.ending.RUnlock()
		wait.Sleep(s.ctx, storePause)
		if _, err := s.storeSent(context.WithoutCancel(ctx), id, to, remote); err != nil {
			s.d.config.Log.Warn("store Meta's id of a message", "channel", s.channel.Code, "error", err)
		}
	})
}

// storePause lets the caller have its response first.
const storePause = 2 * time.Millisecond

// awaitStored waits for what storeLater is storing.
func (s *session) awaitStored() {
	s.ending.Lock()
	defer s.ending.Unlock()
}

// known reads what is known of a message.
func (s *session) known(ctx context.Context, id parley.MessageID) (store.RemoteSend, error) {
	known, err := s.d.config.Store.RemoteSend(ctx, s.channel.Code, id)
	if err == nil && known.Remote == "" && !known.AttemptAt.IsZero() {
		s.awaitStored()
		known, err = s.d.config.Store.RemoteSend(ctx, s.channel.Code, id)
	}
	return known, err
}

var errUnknownOutcome = network.Refuse(parley.UnknownOutcome,
	"Meta may have accepted it, but did not say so. Look whether it arrived before you send it again.")

// begin waits for the number's rate and stores the attempt. [parley.ErrExists]: there was one before that is not known.
func (s *session) begin(ctx context.Context, m *parley.Message, body envelope, again bool) error {
	if !wait.Sleep(ctx, s.reserve()) {
		return ctx.Err()
	}
	err := s.d.config.Store.Tx(ctx, func(tx *store.Tx) error {
		if again {
			if err := parley.IgnoreNotFound(tx.SetCopies(ctx, s.channel.Code, m.Ref(), 1, time.Now())); err != nil {
				return err
			}
		}
		if text, ok := m.Content.(parley.Text); ok && text.Code == "" && body["type"] == "template" {
			if err := parley.IgnoreNotFound(tx.SetSentAs(ctx, s.channel.Code, m.Ref(), parley.KindTemplate)); err != nil {
				return err
			}
		}
		return tx.BeginRemoteSend(ctx, s.channel.Code, m.ID, m.Chat, time.Now(), again)
	})
	if err == nil && again {
		s.d.metrics.resends.Inc()
	}
	return err
}

// notAccepted handles the error of a request. Unless its outcome is unknown, the attempt ends.
func (s *session) notAccepted(ctx context.Context, m *parley.Message, cause error) error {
	result := s.toSendError(m.Chat, cause, time.Now())
	if network.ToClass(result) == network.Unknown {
		if text, ok := m.Content.(parley.Text); ok && text.Code != "" {
			result.(*network.Error).RetryAfter = s.unknownWait(true)
		}
		return result
	}
	ctx = context.WithoutCancel(ctx)
	if err := s.endAttempt(ctx, m); err != nil {
		return err
	}
	if e, ok := asGraphError(cause); ok && e.Code == notReachable {
		err := s.d.config.Store.Tx(ctx, func(tx *store.Tx) error {
			return tx.SetRemoteAbsent(ctx, s.channel.Code, m.Chat, time.Now())
		})
		if err != nil {
			s.d.config.Log.Warn("store that a contact cannot be reached", "channel", s.channel.Code, "error", err)
		}
	}
	return result
}

const notReachable = 131026

// endAttempt stores that a message did not leave. If that fails, the attempt stays open and a status ends it.
func (s *session) endAttempt(ctx context.Context, m *parley.Message) error {
	if _, err := s.storeSent(context.WithoutCancel(ctx), m.ID, m.Chat, ""); err != nil {
		return &network.Error{Class: network.Unknown, Cause: err, RetryAfter: s.unknownWait(false)}
	}
	return nil
}

// storeSent stores Meta's id of a message and returns how many of its copies are known.
func (s *session) storeSent(ctx context.Context, id parley.MessageID, to parley.ContactID, remote string) (copies int, err error) {
	err = s.d.config.Store.Tx(ctx, func(tx *store.Tx) (err error) {
		if copies, err = tx.EndRemoteSend(ctx, s.channel.Code, id, to, remote); copies > 1 {
			ref := parley.MessageRef{FromMe: true, Chat: to, ID: id}
			err = parley.IgnoreNotFound(tx.SetCopies(ctx, s.channel.Code, ref, copies, time.Now()))
		}
		return err
	})
	if err == nil && copies > 1 {
		s.d.metrics.doubles.Inc()
	}
	return copies, err
}

// learnSpelling reports that Meta spells the number of a contact in another way.
func (s *session) learnSpelling(asked parley.ContactID, number string) error {
	contact := parley.NewContactID(number)
	if number == "" || contact == asked || !asked.CanExist() || !contact.CanExist() {
		return nil
	}
	return s.sink(s.ctx, network.Alias{Asked: asked, Contact: contact})
}

// operate sends an operation on a message, which is harmless to repeat.
func (s *session) operate(ctx context.Context, chat parley.ContactID, id parley.MessageID, body func(target string) any) error {
	target, err := s.known(ctx, id)
	if err != nil {
		return err
	}
	if target.Remote == "" {
		return network.Refuse(parley.Refused, "Meta does not know that message.")
	}
	a, err := s.account(ctx)
	if err != nil {
		return network.NotConnected(err)
	}
	request := body(target.Remote)
	if e, ok := request.(envelope); ok {
		if err := s.address(ctx, e, chat); err != nil {
			return err
		}
	}
	var ignored any
	if err := s.d.do(ctx, a, http.MethodPost, a.PhoneID+"/messages", proof(), request, &ignored); err != nil {
		if lost, ok := errors.AsType[*lostError](err); ok && lost.sent {
			return err // repeated like any temporary error
		}
		return s.toSendError(chat, err, time.Now())
	}
	return nil
}

func newSeen(target string) map[string]any {
	return map[string]any{"messaging_product": "whatsapp", "status": "read", "message_id": target}
}

// Typing shows "typing…" to a contact for up to 25 seconds, as a reply to its newest message.
func (s *session) Typing(ctx context.Context, to parley.ContactID, on bool) error {
	if !on {
		return parley.Errorf(parley.NotSupported, "%s cannot stop showing that you type: it ends with your next message or after 25 seconds.",
			Info.Title)
	}
	c, err := s.d.config.Store.RemoteContact(ctx, s.channel.Code, to)
	if err != nil && !errors.Is(err, parley.ErrNotFound) {
		return err
	}
	if time.Since(c.InboundAt) > Info.ReplyWindow {
		return parley.Errorf(parley.NotSupported, "%s shows that you are typing only to someone who wrote in the last 24 hours.", Info.Title)
	}
	a, err := s.account(ctx)
	if err != nil {
		return network.NotConnected(err)
	}
	body := newSeen(c.Inbound)
	body["typing_indicator"] = map[string]string{"type": "text"}
	var ignored any
	if err := s.d.do(ctx, a, http.MethodPost, a.PhoneID+"/messages", proof(), body, &ignored); err != nil {
		return s.toSendError(to, err, time.Now())
	}
	return nil
}
