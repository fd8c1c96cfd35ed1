package main

import (
	"context"
	"errors"
	"fmt"

	"parley"
	"parley/internal/app"
)

// exitCode is what the shell learns of how a command went.
type exitCode int

const (
	exitDone        exitCode = 0
	exitNotSo       exitCode = 1   // the thing asked about is not so: a wait timed out, a check found a problem
	exitUsage       exitCode = 2   // wrong usage or configuration
	exitUnreachable exitCode = 3   // cannot reach the server
	exitNotAllowed  exitCode = 4   // no token, or one that may not do this
	exitRefused     exitCode = 5   // the server understood and refused
	exitNeedsPerson exitCode = 6   // somebody must act, at a phone or at a prompt
	exitInterrupted exitCode = 130 // by Ctrl-C
)

// failure is an error that knows its exit code.
type failure struct {
	code exitCode
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// fail makes an error with an exit code.
func fail(code exitCode, format string, args ...any) error {
	return &failure{code, fmt.Errorf(format, args...)}
}

// codes maps the kinds of our own errors to exit codes.
var codes = map[parley.Code]exitCode{
	parley.Internal:        exitNotSo,
	parley.BadRequest:      exitRefused,
	parley.Unauthenticated: exitNotAllowed,
	parley.Forbidden:       exitNotAllowed,
	parley.NotFound:        exitNotSo,
	parley.TooLarge:        exitRefused,
	parley.Invalid:         exitRefused,
	parley.TooMany:         exitRefused,
	parley.Unavailable:     exitUnreachable,
}

// exitCodeOf tells the exit code of what a command returned.
func exitCodeOf(err error) exitCode {
	if err == nil {
		return exitDone
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f.code
	}
	if _, ok := errors.AsType[*app.ConfigError](err); ok {
		return exitUsage
	}
	if errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	return codes[parley.CodeOf(err)]
}
