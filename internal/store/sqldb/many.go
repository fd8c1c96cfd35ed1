package sqldb

import (
	"math/bits"
	"regexp"
	"strconv"
	"strings"
)

// Many is a statement that adds a row and may wait for more of them: several rows share a round trip to PostgreSQL, and a statement of
// SQLite, whose beginning and end cost as much as a row.
type Many struct {
	// Postgres gets an array for each argument and returns a row for each element, in their order.
	Postgres string
	// SQLite runs Insert with Row for each row, whose parameters are the arguments, and then Then. Without RETURNING in it, the only
	// result is the key of the row. A function in it, also in an index of the table, or an update of a column that must not be NULL
	// makes SQLite copy every page that it changes: see storetest.CopiesPages.
	Insert, Row, Then string
	// One is what SQLite runs for each row at once; empty: rows wait. The only result is the key of an inserted row.
	One string
}

// maxMany is how many rows one statement adds. More gained nothing on SQLite. PostgreSQL expects ten rows of an array, and may plan to
// compare each of them with each.
const maxMany = 64

// waitingRows are the rows of a [Many] that wait on SQLite.
type waitingRows struct {
	of     *Many
	args   []any   // of all rows
	into   [][]any // by row
	number int64   // changes whenever rows were written or dropped
	beside bool    // statements do not write them; see [Conn.Beside]

	refused error // a row of this transaction was refused, and those before it in its statement were written: it must be rolled back
}

// manyKey is a Many with a number of rows.
type manyKey struct {
	*Many
	rows int
}

func (c *connection) manyThen(m *Many, args, into []any) error {
	if m.One != "" {
		key, err := c.insert(m.One, args)
		if len(into) > 0 {
			*into[0].(*int64) = key
		}
		return err
	}
	w := &c.waiting
	if w.of != m || len(w.into) == maxMany {
		if err := c.flush(); err != nil {
			return err
		}
	}
	w.of, w.args, w.into = m, append(w.args, args...), append(w.into, into)
	return nil
}

// flush writes the rows that wait, in few statements: their numbers of rows are powers of two, so that few are prepared.
func (c *connection) flush() error {
	w := &c.waiting
	if len(w.into) == 0 || w.refused != nil {
		return w.refused
	}
	m, args, into := w.of, w.args, w.into
	defer func() { // for the next ones
		clear(args)
		clear(into)
		w.args, w.into = args[:0], into[:0]
	}()
	c.drop()
	each := len(args) / len(into)
	for done := 0; done < len(into); {
		rows := 1 << (bits.Len(uint(len(into)-done)) - 1)
		if w.refused = c.addRows(m, args[done*each:(done+rows)*each], into[done:done+rows]); w.refused != nil {
			return w.refused
		}
		done += rows
	}
	return nil
}

// drop forgets the rows that wait.
func (c *connection) drop() {
	if w := &c.waiting; len(w.into) > 0 {
		*w = waitingRows{number: w.number + 1, beside: w.beside, refused: w.refused}
	}
}

func (c *connection) addRows(m *Many, args []any, into [][]any) error {
	query, ok := c.many[manyKey{m, len(into)}]
	if !ok {
		query = m.Text(len(into))
		c.many[manyKey{m, len(into)}] = query
	}
	stmt, err := c.bound(query, args)
	if err != nil {
		return err
	}
	defer stmt.Reset()
	row := 0
	for {
		more, err := stmt.Step()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if err := scan(stmt.Stmt, into[row]); err != nil {
			return err
		}
		row++
	}
	if row > 0 {
		return nil
	}
	last := c.conn.LastInsertRowID() // keys of one statement follow on each other: nobody else writes
	for i, variables := range into {
		if len(variables) > 0 {
			*variables[0].(*int64) = last - int64(len(into)-1-i)
		}
	}
	return nil
}

// OrFail keeps SQLite from copying every page that a statement of several rows changes, so that it could undo those before a refused one.
// The caller must fail with it: then the transaction, or the caller's part of it, is rolled back.
func OrFail(statement string) string {
	verb, rest, _ := strings.Cut(statement, " ")
	return verb + " OR FAIL " + rest
}

// Text is what SQLite runs for a number of rows.
func (m *Many) Text(rows int) string {
	var b strings.Builder
	b.WriteString(OrFail(m.Insert))
	params := 0 // of a row
	for _, p := range parameter.FindAllString(m.Row, -1) {
		n, _ := strconv.Atoi(p[1:])
		params = max(params, n)
	}
	for row := range rows {
		if row > 0 {
			b.WriteString(", ")
		}
		b.WriteString(parameter.ReplaceAllStringFunc(m.Row, func(p string) string {
			n, _ := strconv.Atoi(p[1:])
			return "?" + strconv.Itoa(row*params+n)
		}))
	}
	return b.String() + m.Then
}

var parameter = regexp.MustCompile(`\$\d+`)
