package parley

import (
	"errors"
	"fmt"
	"time"
)

// Code says what kind of failure an [Error] is. It decides the HTTP status of the response and the word in its field code.
type Code int

const (
	Internal         Code = iota // anything that is not the caller's doing; its text never leaves
	BadRequest                   // the request cannot be understood or cannot be done now
	Unauthenticated              // no acceptable credentials
	TokenExpired                 // credentials that were good until they expired
	Forbidden                    // good credentials that lack the permission
	NotFound                     // no such thing
	MethodNotAllowed             // the path has other methods
	Conflict                     // it contradicts something that was done or begun before
	TooLarge                     // the body is over the limit
	Invalid                      // one or more fields are wrong; see Error.Fields
	TooMany                      // over a limit; try again after Error.RetryAfter
	QueueFull                    // too many messages of the channel wait; try again after Error.RetryAfter
	StorageLimit                 // the channel stored too many files; try again after Error.RetryAfter
	StorageFull                  // there is no room for files
	ChannelNotReady              // the channel must be started or paired first
	NotSupported                 // the network of the channel cannot do that
	Unavailable                  // a part that is needed does not work now; try again
)

// codeWords are part of the API: clients decide by them, so they never change.
var codeWords = [...]string{
	Internal: "internal", BadRequest: "bad_request", Unauthenticated: "unauthenticated", TokenExpired: "token_expired",
	Forbidden: "forbidden", NotFound: "not_found", MethodNotAllowed: "method_not_allowed", Conflict: "conflict",
	TooLarge: "too_large", Invalid: "invalid", TooMany: "rate_limited", QueueFull: "queue_full", StorageLimit: "storage_limit",
	StorageFull:     "storage_full",
	ChannelNotReady: "channel_not_ready", NotSupported: "unsupported", Unavailable: "unavailable",
}

// String is the word for the code in responses.
func (c Code) String() string { return codeWords[c] }

// Error is the only error whose text may reach a caller. Every other error is internal.
type Error struct {
	Code       Code
	Message    string        // a sentence that says what to do instead
	Fields     []FieldError  // what is wrong, field by field, in the order it was found (Invalid only)
	RetryAfter time.Duration // zero: not said (TooMany, QueueFull, StorageLimit and Unavailable only)
	Cause      error         // for the log; never shown
}

// FieldError is one thing that is wrong with one field of a request.
type FieldError struct {
	Field    string // dotted path, for example "file.url" or "pools.0.data.message"
	Sentence string
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Message + ": " + e.Cause.Error()
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Cause }

// Errorf makes an error with a code and a sentence for the caller.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// InvalidField makes an error about a single field.
func InvalidField(field, sentence string) *Error {
	return InvalidFields([]FieldError{{field, sentence}})
}

// InvalidFields makes one error of everything that is wrong with a request. It returns nil for an
// empty list.
func InvalidFields(fields []FieldError) *Error {
	if len(fields) == 0 {
		return nil
	}
	message := fields[0].Sentence
	if more := len(fields) - 1; more > 0 {
		message += fmt.Sprintf(" (and %d more errors)", more)
	}
	return &Error{Code: Invalid, Message: message, Fields: fields}
}

// ErrNotFound is the error of the store for a row that does not exist.
var ErrNotFound = errors.New("not found")

// IgnoreNotFound returns nil for [ErrNotFound]: what an error is about was deleted meanwhile.
func IgnoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// ErrAmbiguous is the error of the store for a bare message id that matches several messages of a channel.
var ErrAmbiguous = errors.New("ambiguous message id")

// ErrExists is the error of the store for a row that already exists.
var ErrExists = errors.New("already exists")

// IsUnauthenticated reports whether an error is about missing, invalid or expired credentials.
func IsUnauthenticated(err error) bool {
	code := ToCode(err)
	return code == Unauthenticated || code == TokenExpired
}

// ToCode returns the code of err: Internal unless an [Error] is in its chain.
func ToCode(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}
