package network

import (
	"errors"
	"fmt"
	"time"

	"parley"
)

// Class says what may be done after a send failed. Temporary is the default: an error is permanent
// only where the network said so.
type Class int

const (
	// Temporary: not sent, and worth trying again later.
	Temporary Class = iota
	// Permanent: not sent, and trying again would give the same answer.
	Permanent
	// Disconnected: not sent, because there is no connection; try again once there is one. It does
	// not count as an attempt.
	Disconnected
	// Unknown: the network may have it. A receipt confirms it; else it is sent again with the same id, the
	// first time as soon as there is a connection.
	Unknown
	// NotReady: it cannot be done yet, and nothing else depends on it: an operation that needs something
	// which the account does not have so far. It is tried again until it expires, beside the later
	// messages of its chat, which do not wait for it. A session answers it at once, without waiting for
	// what is missing.
	NotReady
)

// Error is an error of a session with what follows from it.
type Error struct {
	Class   Class
	Failure parley.Failure // what a message that fails with it carries (Permanent only)
	Cause   error
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

// ErrUnsupported is the answer of a session whose network has no such thing.
var ErrUnsupported = Refuse(parley.Unsupported, "This network cannot do that.")

// ErrImpossibleNumber is the answer of every network for a contact whose number cannot exist: see
// [parley.ContactID.CanExist].
var ErrImpossibleNumber = Refuse(parley.NotOnNetwork,
	"This is no phone number. Begin with the country code, without a leading 0, and give 7 to 15 digits: 62812… and not 0812….")

// ErrHeldBack is the answer for a message that was not sent because an earlier one of its chat, in
// the same call, was not.
var ErrHeldBack = &Error{Class: Disconnected, Cause: errors.New("held back behind an earlier message")}

// ClassOf returns the class of an error that a session answered.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return Temporary
}

// UnknownMessages is the answer of a sink to a receipt for messages that it does not know. It has taken the
// rest of the receipt.
type UnknownMessages struct{ IDs []parley.MessageID }

func (e *UnknownMessages) Error() string {
	return fmt.Sprintf("%d messages of a receipt are not known", len(e.IDs))
}

// Is says that it is a kind of [parley.ErrNotFound].
func (e *UnknownMessages) Is(target error) bool { return target == parley.ErrNotFound }
