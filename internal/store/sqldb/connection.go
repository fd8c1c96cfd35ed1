package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

var _ writeEngine = (*connection)(nil)

// connection is one connection to SQLite with its prepared statements. One goroutine at a time uses it.
type connection struct {
	conn    *sqlite.Conn
	stmts   map[string]*statement
	waiting waitingRows
	many    map[manyKey]string // the statements for several rows
}

// statement is a prepared statement.
type statement struct {
	*sqlite.Stmt
	inUse bool // its rows are being read
}

// openConnection opens a connection and runs the pragmas.
func openConnection(address string, flags sqlite.OpenFlags, pragmas ...string) (*connection, error) {
	conn, err := sqlite.OpenConn(address, flags, sqlite.OpenURI)
	if err != nil {
		return nil, err
	}
	c := &connection{conn: conn, stmts: map[string]*statement{}, many: map[manyKey]string{}}
	for _, pragma := range pragmas {
		if err := c.set(pragma); err != nil {
			conn.Close()
			return nil, fmt.Errorf("set %s: %w", pragma, err)
		}
	}
	return c, nil
}

// set runs a pragma. SQLite ignores its busy timeout when two processes change a new file to WAL at once. One of them
// gets SQLITE_BUSY immediately, so the pragma is retried here.
func (c *connection) set(pragma string) error {
	const retries, pause = 500, 10 * time.Millisecond
	for i := 0; ; i++ {
		_, err := c.exec("PRAGMA "+pragma, nil)
		if resultCode(err) != sqlite.ResultBusy || i == retries {
			return err
		}
		time.Sleep(pause)
	}
}

// interruptWith makes statements end with an error once ctx is done.
func (c *connection) interruptWith(ctx context.Context) { c.conn.SetInterrupt(ctx.Done()) }

// script runs several statements that are not prepared.
func (c *connection) script(text string) error { return sqlitex.ExecuteScript(c.conn, text, nil) }

func (c *connection) close() error { return c.conn.Close() } // with its statements

// exec runs a statement to its end and returns how many rows it changed.
func (c *connection) exec(query string, args []any) (changed int64, err error) {
	stmt, err := c.next(query, args)
	if err != nil {
		return 0, err
	}
	for more := true; more; {
		if more, err = stmt.Step(); err != nil {
			return 0, err
		}
	}
	if err := stmt.Reset(); err != nil {
		return 0, err
	}
	return int64(c.conn.Changes()), nil
}

// queryRow reads one row. No row is sql.ErrNoRows.
func (c *connection) queryRow(query string, args, into []any) error {
	stmt, err := c.next(query, args)
	if err != nil {
		return err
	}
	found, err := stmt.Step()
	if err != nil {
		return err
	}
	defer stmt.Reset()
	if !found {
		return sql.ErrNoRows
	}
	return scan(stmt.Stmt, into)
}

// query reads rows. Until they are closed the statement cannot run again.
func (c *connection) query(query string, args []any) (rows, error) {
	stmt, err := c.next(query, args)
	if err != nil {
		return nil, err
	}
	stmt.inUse = true
	return stmt, nil
}

func (s *statement) next() (bool, error)   { return s.Step() }
func (s *statement) scan(into []any) error { return scan(s.Stmt, into) }

func (s *statement) close() error {
	s.inUse = false
	return s.Reset()
}

func (c *connection) insert(query string, args []any) (key int64, err error) {
	changed, err := c.exec(query, args)
	if changed > 0 {
		key = c.conn.LastInsertRowID()
	}
	return key, err
}

func (c *connection) do(query string, args []any) error {
	_, err := c.exec(query, args)
	return err
}

func (c *connection) doOr(otherwise error, query string, args []any) error {
	changed, err := c.exec(query, args)
	if err == nil && changed == 0 {
		err = otherwise
	}
	return err
}

func (c *connection) begin() error { return c.control("BEGIN IMMEDIATE") }

func (c *connection) control(statement string) error {
	if strings.HasPrefix(statement, "ROLLBACK") || strings.HasPrefix(statement, "BEGIN") {
		c.drop()
		c.waiting.refused = nil
	}
	return c.do(statement, nil)
}

func (c *connection) beside(yes bool)      { c.waiting.beside = yes }
func (c *connection) waitingNumber() int64 { return c.waiting.number }

// There is no cluster, and SQLite locks its file.
func (c *connection) serve(int)                                      {}
func (c *connection) failed() *blame                                 { return nil }
func (c *connection) committed(int, time.Duration)                   {}
func (c *connection) lockMigrations(context.Context) (func(), error) { return func() {}, nil }
func (c *connection) makeIndexes(context.Context, []string) error    { return errors.ErrUnsupported }
func (c *connection) ready(Options) error                            { return nil }
func (c *connection) with(context.Context) engine                    { return c }
func (c *connection) classed(err error) error                        { return classed(err) }
func (c *connection) isPostgres() bool                               { return false }

func (c *connection) dialect() dialect {
	return dialect{
		migrations: "sqlite",
		// SQLite does not write a row that is updated to its old values, but it writes the first page of the file with the same content.
		touch: "PRAGMA user_version = 0", takeSpace: "PRAGMA user_version = 0",
		size: "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
	}
}

// next is bound for a statement that what waits comes before.
func (c *connection) next(query string, args []any) (*statement, error) {
	if len(c.waiting.into) > 0 && !c.waiting.beside {
		if err := c.flush(); err != nil {
			return nil, err
		}
	}
	return c.bound(query, args)
}

// bound finds or prepares a statement and binds its arguments.
func (c *connection) bound(query string, args []any) (*statement, error) {
	stmt, ok := c.stmts[query]
	if !ok {
		compiled, err := c.conn.Prepare(numbered(query))
		if err != nil {
			return nil, err
		}
		stmt = &statement{Stmt: compiled}
		c.stmts[query] = stmt
	}
	if stmt.inUse {
		return nil, fmt.Errorf("the rows of this statement are still being read: %s", query)
	}
	if want := stmt.BindParamCount(); want != len(args) {
		return nil, fmt.Errorf("%d arguments for %d parameters: %s", len(args), want, query)
	}
	for i, arg := range args {
		if err := bind(stmt.Stmt, i+1, arg); err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
	}
	return stmt, nil
}

// sqliteNames turns parameters $1, $2 … into SQLite's ?1, ?2 …, and what SQLite calls differently into its names.
var sqliteNames = strings.NewReplacer("$", "?", "greatest(", "max(", "least(", "min(")

// limitParameter is a limit that SQLite would plan a statement for. It would prepare that again whenever the limit is bound, which takes
// longer than most statements run.
var limitParameter = regexp.MustCompile(`(?i)\bLIMIT \?\d+`)

// numbered is a statement as SQLite reads it. Text in quotes stays as it is.
func numbered(query string) string {
	parts := strings.Split(query, "'")
	for i := 0; i < len(parts); i += 2 { // odd parts are in quotes
		parts[i] = limitParameter.ReplaceAllString(sqliteNames.Replace(parts[i]), "$0 + 0")
	}
	return strings.Join(parts, "'")
}

func bind(stmt *sqlite.Stmt, n int, arg any) error {
	switch arg := arg.(type) {
	case int64:
		stmt.BindInt64(n, arg)
	case string:
		stmt.BindText(n, arg)
	case []byte:
		if arg == nil {
			stmt.BindNull(n)
		} else {
			stmt.BindBytes(n, arg)
		}
	case nil:
		stmt.BindNull(n)
	case bool:
		stmt.BindBool(n, arg)
	case float64:
		stmt.BindFloat(n, arg)
	case time.Time:
		return errors.New("a time is stored as a number")
	default: // a named type
		value, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return err
		}
		return bind(stmt, n, value)
	}
	return nil
}

// scan reads the columns of a row.
func scan(stmt *sqlite.Stmt, into []any) error {
	if have := stmt.ColumnCount(); have != len(into) {
		return fmt.Errorf("%d variables for %d columns", len(into), have)
	}
	for column, variable := range into {
		if err := read(stmt, column, variable); err != nil {
			return fmt.Errorf("column %d: %w", column+1, err)
		}
	}
	return nil
}

// read reads one column. NULL is nil for a []byte or an any and an error for everything else.
func read(stmt *sqlite.Stmt, column int, into any) error {
	kind := stmt.ColumnType(column)
	switch into := into.(type) {
	case *[]byte:
		*into = columnBytes(stmt, column)
		return nil
	case *any:
		*into = columnValue(stmt, column)
		return nil
	}
	if kind == sqlite.TypeNull {
		return fmt.Errorf("NULL for a %T", into)
	}
	switch into := into.(type) {
	case *int64:
		*into = stmt.ColumnInt64(column)
	case *int:
		*into = stmt.ColumnInt(column)
	case *string:
		*into = stmt.ColumnText(column)
	case *bool:
		*into = stmt.ColumnBool(column)
	default: // a named type
		switch v := reflect.ValueOf(into).Elem(); v.Kind() {
		case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
			v.SetInt(stmt.ColumnInt64(column))
		case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			v.SetUint(uint64(stmt.ColumnInt64(column)))
		case reflect.String:
			v.SetString(stmt.ColumnText(column))
		case reflect.Bool:
			v.SetBool(stmt.ColumnBool(column))
		default:
			return fmt.Errorf("a %T cannot be read", into)
		}
	}
	return nil
}

func columnBytes(stmt *sqlite.Stmt, column int) []byte {
	if stmt.ColumnType(column) == sqlite.TypeNull {
		return nil
	}
	b := make([]byte, stmt.ColumnLen(column))
	stmt.ColumnBytes(column, b)
	return b
}

func columnValue(stmt *sqlite.Stmt, column int) any {
	switch stmt.ColumnType(column) {
	case sqlite.TypeInteger:
		return stmt.ColumnInt64(column)
	case sqlite.TypeFloat:
		return stmt.ColumnFloat(column)
	case sqlite.TypeText:
		return stmt.ColumnText(column)
	case sqlite.TypeBlob:
		return columnBytes(stmt, column)
	}
	return nil
}
