package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"reflect"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// direct runs the writer's statements on a connection to SQLite of its own. The writer is one goroutine and
// needs neither a pool nor locks nor package sql's conversions: measured, a statement costs a quarter less
// so.
type direct struct {
	conn  *sqlite.Conn
	stmts map[string]*prepared
}

// prepared is a statement, which may be in use: its rows are being read.
type prepared struct {
	*sqlite.Stmt
	inUse bool
}

// openDirect opens a connection with the settings of the pools.
func openDirect(address string, pragmas []string) (*direct, error) {
	conn, err := sqlite.OpenConn(address, sqlite.OpenReadWrite, sqlite.OpenURI)
	if err != nil {
		return nil, err
	}
	d := &direct{conn: conn, stmts: map[string]*prepared{}}
	for _, pragma := range pragmas {
		if err := d.set(pragma); err != nil {
			conn.Close()
			return nil, fmt.Errorf("set %s: %w", pragma, err)
		}
	}
	return d, nil
}

// set runs a pragma. SQLite ignores its busy timeout when two processes change a new file to WAL at once: one of
// them gets SQLITE_BUSY immediately, so the pragma is retried here.
func (d *direct) set(pragma string) error {
	const retries, pause = 500, 10 * time.Millisecond
	for i := 0; ; i++ {
		_, err := d.exec(context.Background(), "PRAGMA "+pragma, nil)
		if sqlite.ErrCode(err).ToPrimary() != sqlite.ResultBusy || i == retries {
			return err
		}
		time.Sleep(pause)
	}
}

func (d *direct) exec(_ context.Context, query string, args []any) (sql.Result, error) {
	stmt, err := d.bound(query, args)
	if err != nil {
		return nil, err
	}
	for more := true; more; {
		if more, err = stmt.Step(); err != nil {
			return nil, err
		}
	}
	if err := stmt.Reset(); err != nil {
		return nil, err
	}
	return outcome{rows: int64(d.conn.Changes()), key: d.conn.LastInsertRowID()}, nil
}

func (d *direct) queryRow(_ context.Context, query string, args, into []any) error {
	stmt, err := d.bound(query, args)
	if err != nil {
		return err
	}
	there, err := stmt.Step()
	if err != nil {
		return err
	}
	defer stmt.Reset()
	if !there {
		return sql.ErrNoRows
	}
	return scan(stmt.Stmt, into)
}

func (d *direct) query(_ context.Context, query string, args []any) (Rows, error) {
	stmt, err := d.bound(query, args)
	if err != nil {
		return nil, err
	}
	stmt.inUse = true
	return &directRows{stmt: stmt}, nil
}

// bound finds a statement and gives it its arguments.
func (d *direct) bound(query string, args []any) (*prepared, error) {
	stmt, ok := d.stmts[query]
	if !ok {
		compiled, err := d.conn.Prepare(numbered(query))
		if err != nil {
			return nil, err
		}
		stmt = &prepared{Stmt: compiled}
		d.stmts[query] = stmt
	}
	if stmt.inUse {
		return nil, fmt.Errorf("the rows of this statement are still being read: %s", query)
	}
	if want := stmt.BindParamCount(); want != len(args) {
		return nil, fmt.Errorf("%d arguments for %d places: %s", len(args), want, query)
	}
	for i, arg := range args {
		if err := bind(stmt.Stmt, i+1, arg); err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
	}
	return stmt, nil
}

func bind(stmt *sqlite.Stmt, place int, arg any) error {
	switch arg := arg.(type) {
	case int64:
		stmt.BindInt64(place, arg)
	case string:
		stmt.BindText(place, arg)
	case []byte:
		if arg == nil {
			stmt.BindNull(place)
		} else {
			stmt.BindBytes(place, arg)
		}
	case nil:
		stmt.BindNull(place)
	case bool:
		stmt.BindBool(place, arg)
	case float64:
		stmt.BindFloat(place, arg)
	case time.Time:
		return fmt.Errorf("a time is stored as a number")
	default: // a type of its own
		value, err := driver.DefaultParameterConverter.ConvertValue(arg)
		if err != nil {
			return err
		}
		return bind(stmt, place, value)
	}
	return nil
}

// script runs statements that are not run again.
func (d *direct) script(text string) error { return sqlitex.ExecuteScript(d.conn, text, nil) }

func (d *direct) close() error { return d.conn.Close() } // with its statements

// outcome is what a statement did.
type outcome struct{ rows, key int64 }

func (o outcome) RowsAffected() (int64, error) { return o.rows, nil }
func (o outcome) LastInsertId() (int64, error) { return o.key, nil }

// directRows are the rows of a statement of the writer.
type directRows struct {
	stmt   *prepared
	err    error
	closed bool
}

func (r *directRows) Next() bool {
	if r.closed || r.err != nil {
		return false
	}
	more, err := r.stmt.Step()
	r.err = err
	if !more {
		r.Close()
	}
	return more
}

func (r *directRows) Scan(into ...any) error {
	if r.closed {
		return fmt.Errorf("there is no row")
	}
	return scan(r.stmt.Stmt, into)
}

func (r *directRows) Err() error { return r.err }

func (r *directRows) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	r.stmt.inUse = false
	return r.stmt.Reset()
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

// read reads one column. What is not there is nil to a []byte and an error to everything else.
func read(stmt *sqlite.Stmt, column int, into any) error {
	kind := stmt.ColumnType(column)
	if into, ok := into.(*[]byte); ok {
		*into = nil
		if kind != sqlite.TypeNull {
			*into = make([]byte, stmt.ColumnLen(column))
			stmt.ColumnBytes(column, *into)
		}
		return nil
	}
	if kind == sqlite.TypeNull {
		return fmt.Errorf("nothing is there for a %T", into)
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
	default: // a type of its own
		switch v := reflect.ValueOf(into).Elem(); v.Kind() {
		case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
			v.SetInt(stmt.ColumnInt64(column))
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
