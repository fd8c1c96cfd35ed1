package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"parley"
	"parley/internal/app"
	"parley/internal/client"
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

// exitCodeOf returns the exit code of what a command returned.
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
	if _, ok := errors.AsType[*client.UnreachableError](err); ok {
		return exitUnreachable
	}
	if refused, ok := errors.AsType[*client.Error](err); ok {
		return exitOfStatus(refused.Status)
	}
	return codes[parley.CodeOf(err)]
}

// exitOfStatus is the exit code of a request that the API refused.
func exitOfStatus(status int) exitCode {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return exitNotAllowed
	case http.StatusNotFound:
		return exitNotSo
	case http.StatusServiceUnavailable:
		return exitUnreachable
	}
	return exitRefused
}

// words are the codes of errors that are not of the API, for programs.
var words = map[exitCode]string{
	exitNotSo: "not_so", exitUsage: "usage", exitUnreachable: "unreachable", exitNotAllowed: "unauthenticated",
	exitRefused: "refused", exitNeedsPerson: "needs_person", exitInterrupted: "interrupted",
}

// errorDocument is an error as --json shows it, in the form of the API's.
type errorDocument struct {
	Success bool                `json:"success"`
	Code    string              `json:"code"`
	Message string              `json:"message"`
	Errors  map[string][]string `json:"errors,omitempty"`
}

func documentOf(err error) errorDocument {
	d := errorDocument{Code: words[exitCodeOf(err)], Message: sentence(err)}
	if refused, ok := errors.AsType[*client.Error](err); ok {
		d.Code, d.Message, d.Errors = refused.Code, refused.Message, refused.Errors
	}
	return d
}
