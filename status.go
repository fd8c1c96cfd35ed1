package parley

// Status is the status of a message. It only moves forward; [Status.CanFollow] has the rule. The
// numbers are stored and must not change.
type Status int

const (
	Pending   Status = 0 // durably accepted, not yet confirmed by the network
	Sent      Status = 1 // the network has it
	Delivered Status = 2 // it reached the recipient's phone
	Read      Status = 3 // the recipient saw it; of an inbound message: it was marked as seen
	Played    Status = 4 // the recipient played it (voice)
	Failed    Status = 5 // it will not be sent, or the network reported later that it failed; the message's Failure says why
	Deleted   Status = 6 // it was deleted for everyone
	Received  Status = 7 // inbound, not yet marked as seen
)

var statusNames = []string{"PENDING", "SENT", "DELIVERED", "READ", "PLAYED", "FAILED", "DELETED", "RECEIVED"}

// Statuses lists every status in the order of their numbers.
var Statuses = []Status{Pending, Sent, Delivered, Read, Played, Failed, Deleted, Received}

func (s Status) String() string { return statusNames[s] }

func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// CanFollow reports whether a message in status from may go on to s.
//
// A receipt can overtake the confirmation of the send that it belongs to, so every receipt confirms
// a pending message. What the network has can fail until it is delivered. What failed may still turn out to have arrived. Deleted is
// the end.
func (s Status) CanFollow(from Status) bool {
	switch s {
	case Sent:
		return from == Pending
	case Delivered:
		return from == Pending || from == Sent || from == Failed
	case Read:
		return from == Pending || from == Sent || from == Delivered || from == Failed || from == Received
	case Played:
		return from == Pending || from == Sent || from == Delivered || from == Read || from == Failed
	case Failed:
		return from == Pending || from == Sent
	case Deleted:
		return from != Deleted
	}
	return false
}

// Before lists the statuses that s can follow.
func (s Status) Before() []Status {
	var before []Status
	for _, from := range Statuses {
		if s.CanFollow(from) {
			before = append(before, from)
		}
	}
	return before
}

// IsFinal reports whether the outbox is done with a message in this status.
func (s Status) IsFinal() bool { return s != Pending }
