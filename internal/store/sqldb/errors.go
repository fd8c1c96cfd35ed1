package sqldb

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"zombiezen.com/go/sqlite"

	"parley"
)

var errClosed = errors.New("database is closed")

// retryAfter is when a caller may try again. The length of an outage is not known.
const retryAfter = 5 * time.Second

// classed gives errors that mean that the database is unavailable the code parley.Unavailable.
func classed(err error) error {
	if err == nil || parley.ToCode(err) == parley.Unavailable {
		return err
	}
	if isPostgresUnavailable(err) {
		return unavailable(err)
	}
	switch resultCode(err) {
	case sqlite.ResultBusy, sqlite.ResultLocked, sqlite.ResultReadOnly, sqlite.ResultIOErr,
		sqlite.ResultCorrupt, sqlite.ResultFull, sqlite.ResultCantOpen, sqlite.ResultNotADB:
		return unavailable(err)
	}
	return err
}

// unavailable is the error of a database that is unavailable. Its message says why, where that is known.
func unavailable(cause error) *parley.Error {
	e := &parley.Error{Code: parley.Unavailable, RetryAfter: retryAfter, Cause: cause}
	e.Message = "The database does not work now. Try again soon."
	switch resultCode(cause) {
	case sqlite.ResultFull:
		e.Message = "The server cannot write to its database: the disk is full. Try again later."
	case sqlite.ResultIOErr, sqlite.ResultCantOpen:
		e.Message = "The server cannot use its database files (disk full?). Try again later."
	case sqlite.ResultReadOnly:
		e.Message = "The server cannot write to its database: it is read-only. Try again later."
	case sqlite.ResultBusy, sqlite.ResultLocked:
		e.Message = "Another program has locked the database. Try again soon."
	}
	if isPostgresFull(cause) {
		e.Message = "The server cannot write to its database: the disk of PostgreSQL is full. Try again later."
	}
	if IsDamage(cause) {
		e.Message = "The database is damaged. The server accepts nothing until a backup is restored."
	}
	return e
}

// DamageError is what a check for damage found.
type DamageError struct{ Found string }

func (e *DamageError) Error() string { return "the database is damaged: " + e.Found }

// IsDamage reports whether an error says that a file is damaged or not a database.
func IsDamage(err error) bool {
	if err == nil {
		return false
	}
	if _, ok := errors.AsType[*DamageError](err); ok {
		return true
	}
	code := resultCode(err)
	return code == sqlite.ResultCorrupt || code == sqlite.ResultNotADB
}

// IsFull reports whether an error says that the disk of a database is full.
func IsFull(err error) bool {
	return err != nil && (resultCode(err) == sqlite.ResultFull || isPostgresFull(err))
}

// IsDiskError reports whether an error says that the files of a database cannot be read or written.
func IsDiskError(err error) bool {
	if err == nil {
		return false
	}
	switch resultCode(err) {
	case sqlite.ResultFull, sqlite.ResultIOErr, sqlite.ResultCantOpen, sqlite.ResultReadOnly:
		return true
	}
	return false
}

// isPostgresUnavailable reports whether an error of PostgreSQL means that it does not work now.
func isPostgresUnavailable(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch e.Code[:2] {
		case "08", "40", "53", "57", "58", "XX": // connection, rollback, resources, operator, system, internal
			return true
		case "PF":
			return e.Code == notMember
		case "25": // a transaction that a time-out or an earlier error ended
			return e.Code == "25P03" || e.Code == "25006"
		}
		return false
	}
	_, connecting := errors.AsType[*pgconn.ConnectError](err)
	_, lost := errors.AsType[net.Error](err)
	return connecting || lost || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// resultCode returns SQLite's primary result code.
func resultCode(err error) sqlite.ResultCode { return sqlite.ErrCode(err).ToPrimary() }
