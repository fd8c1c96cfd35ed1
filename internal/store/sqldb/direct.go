package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
)

// direct gives the writer's statements to the driver itself. What package sql adds on the way (its
// locks, its pool, its conversions) the writer does not need: it is one goroutine with one connection
// of its own. Measured, a send costs a tenth less so.
type direct struct {
	rewrite func(string) string
	conn    driver.Conn
	stmts   map[string]statement
	args    []driver.NamedValue // used again for every statement
	row     []driver.Value
}

// statement is what the drivers' prepared statements are.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

func newDirect(c *sql.Conn, d *Dialect) (*direct, error) {
	var own driver.Conn
	err := c.Raw(func(conn any) error {
		own = conn.(driver.Conn)
		return nil
	})
	return &direct{rewrite: d.rewrite, conn: own, stmts: map[string]statement{}}, err
}

func (d *direct) exec(query string, args []any) (sql.Result, error) {
	stmt, err := d.prepare(query, args)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(context.Background(), d.args)
}

// queryRow reads the first row into variables of the types that canAssign allows.
func (d *direct) queryRow(query string, args, into []any) (err error) {
	stmt, err := d.prepare(query, args)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(context.Background(), d.args)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	d.row = append(d.row[:0], make([]driver.Value, len(into))...)
	if err := rows.Next(d.row); err == io.EOF {
		return sql.ErrNoRows
	} else if err != nil {
		return err
	}
	for i, value := range d.row {
		if !assign(into[i], value) {
			return fmt.Errorf("column %d is a %T, not what is wanted: %T", i, value, into[i])
		}
	}
	return nil
}

// prepare finds a statement and converts its arguments.
func (d *direct) prepare(query string, args []any) (statement, error) {
	d.args = d.args[:0]
	for i, arg := range args {
		switch arg.(type) {
		case int64, string, []byte, nil: // as the driver wants them
		default:
			var err error
			if arg, err = driver.DefaultParameterConverter.ConvertValue(arg); err != nil {
				return nil, fmt.Errorf("argument %d: %w", i+1, err)
			}
		}
		d.args = append(d.args, driver.NamedValue{Ordinal: i + 1, Value: arg})
	}
	if stmt, ok := d.stmts[query]; ok {
		return stmt, nil
	}
	prepared, err := d.conn.Prepare(d.rewrite(query))
	if err != nil {
		return nil, err
	}
	stmt, ok := prepared.(statement)
	if !ok {
		return nil, fmt.Errorf("the driver's %T is too old", prepared)
	}
	d.stmts[query] = stmt
	return stmt, nil
}

func (d *direct) close() error {
	var errs []error
	for _, stmt := range d.stmts {
		errs = append(errs, stmt.Close())
	}
	clear(d.stmts)
	return errors.Join(errs...)
}

// canAssign reports whether assign knows all these variables.
func canAssign(into []any) bool {
	for _, v := range into {
		switch v.(type) {
		case *int64, *int, *string, *[]byte:
		default:
			return false
		}
	}
	return true
}

// assign sets a variable to a value of the driver, if that is of its type.
func assign(into any, value driver.Value) (ok bool) {
	switch into := into.(type) {
	case *int64:
		*into, ok = value.(int64)
	case *int:
		var n int64
		n, ok = value.(int64)
		*into = int(n)
	case *string:
		*into, ok = value.(string)
	case *[]byte:
		switch value := value.(type) {
		case []byte:
			*into, ok = value, true
		case string:
			*into, ok = []byte(value), true
		case nil:
			*into, ok = nil, true
		}
	}
	return ok
}
