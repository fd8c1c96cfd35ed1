package sqldb

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"parley"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
	"zombiezen.com/go/sqlite"
)

// Dialect is what differs between the databases that we run on.
type Dialect struct {
	Name string // the folder of its migrations
	// The statements that bracket a transaction and one caller's part in it.
	begin, commit, rollback           string
	savepoint, release, rollbackPoint string
	// rewrite gives a statement the spelling that the driver likes best.
	rewrite func(string) string
	// isUnique and isUnavailable class the errors of the driver.
	isUnique, isUnavailable func(error) bool
}

var sqliteDialect = Dialect{
	Name:  "sqlite",
	begin: "BEGIN IMMEDIATE", commit: "COMMIT", rollback: "ROLLBACK",
	savepoint: "SAVEPOINT one", release: "RELEASE one", rollbackPoint: "ROLLBACK TO one",
	rewrite: questionMarks,
	isUnique: func(err error) bool {
		code := resultCode(err)
		return code == sqlite3.SQLITE_CONSTRAINT_UNIQUE || code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
	},
	isUnavailable: func(err error) bool {
		switch resultCode(err) & 0xff { // the low byte is the class, the rest says more
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR,
			sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOTADB:
			return true
		}
		return false
	},
}

// classed gives an error that means "the database does not work now" the code parley.Unavailable.
func (d *Dialect) classed(err error) error {
	if err == nil || parley.CodeOf(err) == parley.Unavailable || !d.isUnavailable(err) {
		return err
	}
	return unavailable(err)
}

// unavailable is the error of a database that does not work now, with a sentence that says why where that is known.
func unavailable(cause error) *parley.Error {
	e := &parley.Error{Code: parley.Unavailable, Message: "The database does not work now. Try again soon.", RetryAfter: retryAfter, Cause: cause}
	switch resultCode(cause) & 0xff {
	case sqlite3.SQLITE_FULL:
		e.Message = "The server cannot write to its database: the disk is full. Try again later."
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
		e.Message = "The server cannot use its database files (disk full?). Try again later."
	case sqlite3.SQLITE_READONLY:
		e.Message = "The server cannot write to its database: it is read-only. Try again later."
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		e.Message = "Another program has locked the database. Try again soon."
	}
	if isDamage(cause) {
		e.Message = "The database is damaged. The server accepts nothing until a backup is restored."
	}
	return e
}

// retryAfter is when a caller may try again. How long the trouble lasts is not known.
const retryAfter = 5 * time.Second

// resultCode is what SQLite says went wrong, be it to the readers' driver or to the writer's.
func resultCode(err error) int {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return e.Code()
	}
	return int(sqlite.ErrCode(err))
}

// questionMarks turns placeholders $1, $2 … into ?. To the readers' driver the former are names, which it
// compares with every argument. A statement whose placeholders are not in order keeps them, as does
// one with a literal, in which a $ might stand.
func questionMarks(query string) string {
	if strings.Contains(query, "'") {
		return query
	}
	var b strings.Builder
	parts := strings.Split(query, "$")
	b.WriteString(parts[0])
	for i, part := range parts[1:] {
		rest, ok := strings.CutPrefix(part, strconv.Itoa(i+1))
		if !ok || rest != "" && rest[0] >= '0' && rest[0] <= '9' {
			return query
		}
		b.WriteByte('?')
		b.WriteString(rest)
	}
	return b.String()
}

// numbered turns placeholders $1, $2 … into ?1, ?2 …, which are SQLite's for the first argument, the second,
// in whatever order they stand. What stands in a literal stays.
func numbered(query string) string {
	parts := strings.Split(query, "'")
	for i := 0; i < len(parts); i += 2 { // the others are literals
		parts[i] = strings.ReplaceAll(parts[i], "$", "?")
	}
	return strings.Join(parts, "'")
}
