package sqldb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A long read prevents checkpoints, and the log grows with every commit. So a database is checked in slices, each of them
// a short read: as a whole if that is quick, else table by table, else in ranges of rows.
const (
	sliceLimit = 2 * time.Second        // for one of SQLite's own checks
	rangeLimit = 100 * time.Millisecond // for one range of rows
)

// CheckStart looks for damage in the schema and at the beginning of every table. It needs some milliseconds, however large
// the database is.
func (db *DB) CheckStart(ctx context.Context) error {
	return db.checkWith(ctx, func(k *checker) error {
		if err := k.quickCheck("sqlite_schema"); err != nil {
			return err
		}
		names, err := Collect(k.conn, ScanOne[string], `SELECT name FROM sqlite_schema WHERE type = 'table'`)
		for _, name := range names {
			if _, err := k.conn.Exec(`SELECT 1 FROM ` + quoted(name) + ` NOT INDEXED LIMIT 1`); err != nil {
				return fmt.Errorf("check %s: %w", name, err)
			}
		}
		return err
	})
}

// Check looks for damage everywhere and returns the first it finds.
func (db *DB) Check(ctx context.Context) error {
	return db.checkWith(ctx, func(k *checker) error { return k.all(ctx) })
}

// CheckSlowly is Check for the background. After each slice it pauses for as long as the slice ran.
func (db *DB) CheckSlowly(ctx context.Context) error {
	return db.checkWith(ctx, func(k *checker) error {
		k.pauses = true
		return k.all(ctx)
	})
}

func (db *DB) checkWith(ctx context.Context, do func(*checker) error) error {
	if db.writer.IsPostgres() {
		return nil // PostgreSQL checks its own files
	}
	c, err := db.ownConnection(ctx)
	if err != nil {
		return db.checked(err)
	}
	defer c.close()
	return db.checked(do(&checker{own: c, conn: c.asConn(), limits: db.limits}))
}

// checked stores damage, after which nothing is written.
func (db *DB) checked(err error) error {
	err = classed(err)
	db.health.observe(err)
	return err
}

// checker looks for damage on a connection of its own.
type checker struct {
	own    *connection
	conn   *Conn // on the same one
	limits limits
	pauses bool
}

func (k *checker) all(ctx context.Context) error {
	done, err := k.slice(ctx, func() error { return k.quickCheck("1") })
	if done || err != nil {
		return err
	}
	tables, err := listTables(k.conn)
	if err != nil {
		return err
	}
	for _, t := range tables {
		done, err := k.slice(ctx, func() error { return k.quickCheck(quoted(t.name)) })
		if err != nil {
			return err
		}
		if done {
			continue
		}
		for _, tree := range append([]tree{t.rows()}, t.indexes...) {
			if err := k.walk(ctx, tree); err != nil {
				return err
			}
		}
	}
	return nil
}

// slice runs one of SQLite's checks and reports whether it ended within the limit.
func (k *checker) slice(ctx context.Context, check func() error) (done bool, err error) {
	defer k.pause(ctx, time.Now())
	limited, cancel := context.WithTimeout(ctx, k.limits.sliceLimit)
	defer cancel()
	k.own.interruptWith(limited)
	defer k.own.interruptWith(ctx)
	err = check()
	if err != nil && limited.Err() != nil && ctx.Err() == nil && !IsDamage(err) {
		return false, nil
	}
	return true, err
}

// pause waits for as long as the slice that began at a time ran.
func (k *checker) pause(ctx context.Context, since time.Time) {
	if !k.pauses {
		return
	}
	timer := time.NewTimer(time.Since(since))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// quickCheck runs SQLite's own check, of a table or of everything.
func (k *checker) quickCheck(what string) error {
	return check(k.own, "quick_check("+what+")")
}

// check runs one of SQLite's checks, which return "ok" or the damage.
func check(c *connection, pragma string) error {
	var found string
	if err := c.queryRow("PRAGMA "+pragma, nil, []any{&found}); err != nil {
		return fmt.Errorf("check the database: %w", err)
	}
	if found != "ok" {
		return &DamageError{strings.Join(strings.Fields(found), " ")}
	}
	return nil
}

// table is a table with its indexes.
type table struct {
	name     string
	key      []string // the order of its rows: the rowid, or the primary key
	columns  []string
	indexes  []tree
	byNumber bool // the key is a rowid
}

// tree is a table or an index that is read in order.
type tree struct {
	from     string // with INDEXED BY for an index
	key      []string
	columns  []string // the others of a table
	byNumber bool
}

func (t *table) rows() tree {
	return tree{quoted(t.name) + " NOT INDEXED", t.key, t.columns, t.byNumber}
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// weight is an expression that makes the database read a whole row.
func (t tree) weight() string {
	parts := []string{"0"}
	for _, c := range t.columns {
		parts = append(parts, "coalesce(length(CAST("+c+" AS BLOB)), 0)")
	}
	return strings.Join(parts, " + ")
}

// walk reads all rows of a tree in ranges.
func (k *checker) walk(ctx context.Context, t tree) error {
	var last []any
	for {
		next, err := k.readRange(ctx, t, last)
		if err != nil || next == nil {
			return err
		}
		last = next
	}
}

// readRange reads rows after a key until the limit of a range. It returns the last key; nil: there are no more rows.
func (k *checker) readRange(ctx context.Context, t tree, after []any) (last []any, err error) {
	began := time.Now()
	defer k.pause(ctx, began)
	keys, where := strings.Join(t.key, ", "), ""
	if after != nil {
		where = ` WHERE (` + keys + `) > (` + strings.Repeat("?, ", len(t.key)-1) + `?)`
	}
	row := make([]any, len(t.key)+1)
	into := make([]any, len(row))
	for i := range row {
		into[i] = &row[i]
	}
	rows, err := k.conn.Query(`SELECT `+keys+`, `+t.weight()+` FROM `+t.from+where+` ORDER BY `+keys, after...)
	if err != nil {
		return nil, fmt.Errorf("check %s: %w", t.from, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		if t.byNumber && last != nil && last[0].(int64) >= row[0].(int64) {
			return nil, &DamageError{fmt.Sprintf("rows of %s are out of order", t.from)}
		}
		last = slices.Clone(row[:len(t.key)])
		// A range cannot begin after NULL, which is neither less nor greater than anything.
		if time.Since(began) > k.limits.rangeLimit && !slices.Contains(last, nil) {
			return last, nil
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("check %s: %w", t.from, err)
	}
	return nil, nil
}

// listTables lists the tables and those of their indexes that can be read in order: with all rows, by plain columns.
func listTables(c *Conn) ([]table, error) {
	tables, err := Collect(c, func(row Scanner) (t table, err error) {
		var withoutRowid bool
		err = row.Scan(&t.name, &withoutRowid)
		t.byNumber = !withoutRowid
		return t, err
	}, `SELECT name, wr FROM pragma_table_list
		WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\_schema' ESCAPE '\' ORDER BY name`)
	for i := range tables {
		err = errors.Join(err, tables[i].read(c))
	}
	return tables, err
}

// read reads the columns and indexes of a table.
func (t *table) read(c *Conn) error {
	if t.byNumber {
		t.key = []string{"rowid"}
	}
	_, err := Collect(c, func(row Scanner) (name string, err error) {
		var keyPosition int
		err = row.Scan(&name, &keyPosition)
		if keyPosition > 0 && !t.byNumber {
			t.key = append(t.key, quoted(name))
		} else {
			t.columns = append(t.columns, quoted(name))
		}
		return name, err
	}, `SELECT name, pk FROM pragma_table_info($1) ORDER BY pk, cid`, t.name)
	if err != nil {
		return err
	}
	names, err := Collect(c, ScanOne[string], `SELECT name FROM pragma_index_list($1) AS list
		WHERE partial = 0 AND NOT (origin = 'pk' AND $2) AND NOT EXISTS
		(SELECT 1 FROM pragma_index_xinfo(list.name) WHERE cid = -2 OR "desc" = 1 OR coll <> 'BINARY')`, t.name, !t.byNumber)
	for _, name := range names {
		index := tree{from: quoted(t.name) + " INDEXED BY " + quoted(name)}
		index.key, err = Collect(c, func(row Scanner) (string, error) {
			column, err := ScanOne[string](row)
			if column == "" {
				return "rowid", err
			}
			return quoted(column), err
		}, `SELECT coalesce(name, '') FROM pragma_index_xinfo($1) ORDER BY seqno`, name)
		if err != nil {
			return err
		}
		t.indexes = append(t.indexes, index)
	}
	return err
}
