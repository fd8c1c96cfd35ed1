package network

import (
	"errors"
	"fmt"
	"time"

	"parley"
)

// Class says what to do after a failed send. Temporary is the default: an error is permanent only if the network said
// so.
type Class int

const (
	// Temporary: not sent, and worth trying again later.
	Temporary Class = iota
	// Permanent: not sent, and a retry would fail the same way.
	Permanent
	// Disconnected: not sent, because there is no connection; try again once there is one. It does
	// not count as an attempt.
	Disconnected
	// Unknown: the network may have it. A receipt confirms it; otherwise it is sent again with the same id, first as
	// soon as there is a connection.
	Unknown
	// NotReady: not possible yet, and nothing depends on it, such as an operation that needs keys which the account
	// does not have yet. It is repeated until it expires; later messages of its chat do not wait for it. A session
	// returns it at once.
	NotReady
)

// Error is an error of a session with its class.
type Error struct {
	Class   Class
	Failure parley.Failure // of the failed message (Permanent only)
	Cause   error
	// RetryAfter is for how long the network wants no other attempt (Temporary and Unknown only); zero: it did not say. Such a
	// wait is not counted as a failed attempt: the message is repeated until it expires.
	RetryAfter time.Duration
	// PauseChannel: meanwhile nothing else of the channel is sent either.
	PauseChannel bool
}

func (e *Error) Error() string {
	switch {
	case e.Class == Permanent:
		return fmt.Sprintf("%s: %s", e.Failure.Code, e.Failure.Message)
	case e.Cause != nil:
		return e.Cause.Error()
	case e.Class == Disconnected:
		return "not connected"
	case e.Class == NotReady:
		return "not possible yet"
	}
	return "no answer from the network"
}

func (e *Error) Unwrap() error { return e.Cause }

// Refuse makes a permanent error.
func Refuse(code parley.FailureCode, sentence string) *Error {
	return &Error{Class: Permanent, Failure: parley.Failure{Code: code, Message: sentence}}
}

// RefuseUntil makes a permanent error whose reason holds until a time.
func RefuseUntil(code parley.FailureCode, sentence string, until time.Time) *Error {
	return &Error{Class: Permanent, Failure: parley.Failure{Code: code, Message: sentence, Until: until}}
}

// NotConnected makes a Disconnected error.
func NotConnected(cause error) *Error { return &Error{Class: Disconnected, Cause: cause} }

// OutcomeUnknown makes an Unknown error.
func OutcomeUnknown(cause error) *Error { return &Error{Class: Unknown, Cause: cause} }

// NotPossibleYet makes a NotReady error.
func NotPossibleYet(cause error) *Error { return &Error{Class: NotReady, Cause: cause} }

// ErrUnsupported is returned for an operation that the network does not have.
var ErrUnsupported = Refuse(parley.Unsupported, "This network cannot do that.")

// ErrImpossibleNumber is returned for a contact whose number cannot exist: see [parley.ContactID.CanExist].
var ErrImpossibleNumber = Refuse(parley.NotOnNetwork,
	"This is not a phone number. Begin with the country code, without a leading 0, and give 7 to 15 digits: 62812…, not 0812….")

// ErrNotInGroup is returned for a message to a group that the account is not in.
var ErrNotInGroup = Refuse(parley.Refused, "This channel is not in that group.")

// ErrNoPasskey is returned for a response of a passkey that no pairing waits for.
var ErrNoPasskey = parley.Errorf(parley.BadRequest,
	"No pairing of this channel waits for a passkey. Start a pairing, and answer when it asks.")

// ErrHeldBack is returned for a message that was not sent because an earlier one of its chat, in the same call, failed.
var ErrHeldBack = &Error{Class: Disconnected, Cause: errors.New("held back behind an earlier message")}

// ToClass returns the class of a session's error.
func ToClass(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return Temporary
}

// UnknownMessages is a sink's error for a receipt with unknown ids. The sink has stored the others.
type UnknownMessages struct{ IDs []parley.MessageID }

func (e *UnknownMessages) Error() string {
	return fmt.Sprintf("%d messages of a receipt are not known", len(e.IDs))
}

// Is says that it is a kind of [parley.ErrNotFound].
func (e *UnknownMessages) Is(target error) bool { return target == parley.ErrNotFound }
