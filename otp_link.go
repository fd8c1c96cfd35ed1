package parley

import "time"

// LinkTry is a message that carries the code of a login link.
type LinkTry struct {
	From   ContactID
	Alias  ContactID // another spelling of the sender's number, under which the link was asked for; empty: none
	Edited bool      // the prompt was changed
	At     time.Time
}

// LinkOutcome is what follows from a try.
type LinkOutcome struct {
	Reply    LinkReply
	Event    EventType // to publish; empty: none
	Reason   string    // why it failed, for the event
	Callback string    // the address to call; empty: none
}

// LinkReply says which of a link's messages is the reply to a try.
type LinkReply int

const (
	ReplySuccess LinkReply = iota
	ReplyFailed
	ReplyExpired
)

// Why a try to use a login link failed.
const (
	WrongSender  = "wrong_sender"  // somebody else sent it
	EditedPrompt = "edited_prompt" // the right contact sent something else with it
)

// maxReportedOthers is how many tries by others are reported for a link. Later ones are only counted: who
// has a link's code and another phone could cause any number of events and callbacks.
const maxReportedOthers = 5

// StatusAt is the status of the link at a time, whether or not its expiry is stored yet.
func (l OTPLink) StatusAt(now time.Time) OTPStatus {
	if l.Status == OTPStatusPending && !now.Before(l.ExpiresAt) {
		return OTPStatusExpired
	}
	return l.Status
}

// Try returns the link as it is after somebody tried to use it, and what follows. A link is approved
// once: by the right contact, with the unchanged prompt, in time. A failed try does not use it up, but the right contact has
// only so many. A try on a link that has ended gets a reply and publishes no event: its caller knows how it ended.
func (l OTPLink) Try(t LinkTry) (OTPLink, LinkOutcome) {
	if was := l.Status; l.StatusAt(t.At) != OTPStatusPending {
		l.Status = l.StatusAt(t.At)
		if l.EndedAt.IsZero() {
			l.EndedAt = l.ExpiresAt
		}
		switch {
		case l.Status != OTPStatusExpired:
			return l, LinkOutcome{Reply: ReplyFailed}
		case was == OTPStatusPending:
			return l, LinkOutcome{Reply: ReplyExpired, Event: OTPExpired}
		}
		return l, LinkOutcome{Reply: ReplyExpired}
	}
	failed := LinkOutcome{Reply: ReplyFailed, Event: OTPFailed, Callback: l.OnFailure}
	switch {
	case t.From != l.Contact && t.Alias != l.Contact:
		if l.Others++; l.Others > maxReportedOthers {
			return l, LinkOutcome{Reply: ReplyFailed}
		}
		failed.Reason = WrongSender
		return l, failed
	case t.Edited:
		if l.Tries++; l.Tries >= MaxOTPTries {
			l.Status, l.EndedAt = OTPStatusLocked, t.At
		}
		failed.Reason = EditedPrompt
		return l, failed
	}
	l.Status, l.EndedAt = OTPStatusApproved, t.At
	return l, LinkOutcome{Reply: ReplySuccess, Event: OTPApproved, Callback: l.OnSuccess}
}

// Text returns the reply to a try, with the code and the name yet to be filled in.
func (m LinkMessages) Text(a LinkReply) string {
	switch a {
	case ReplySuccess:
		return m.Success
	case ReplyExpired:
		return m.Expired
	}
	return m.Failed
}
