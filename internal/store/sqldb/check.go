package sqldb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A reader that goes on for long keeps the log from being written back, so that it grows with every commit. So a
// database is checked in slices, each of which is a short read of its own: as a whole if that is quick, else table
// by table, else a range of rows after the other.
const (
	sliceLimit = 2 * time.Second        // for one of SQLite's own checks
	rangeLimit = 100 * time.Millisecond // for one range of rows
)

// CheckStart looks for damage where it would be worst: in the schema and at the beginning of every table. It takes some
// milliseconds, however large the database is.
func (db *DB) CheckStart(ctx context.Context) error {
	return db.checkWith(ctx, func(k *checker) error {
		if err := k.quickCheck("sqlite_schema"); err != nil {
			return err
		}
		var names []string
		err := k.conn.each(`SELECT name FROM sqlite_schema WHERE type = 'table'`, nil, func(scan func(...any) error) error {
			names = append(names, "")
			return scan(&names[len(names)-1])
		})
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := k.conn.each(`SELECT 1 FROM `+quoted(name)+` NOT INDEXED LIMIT 1`, nil, func(func(...any) error) error { return nil }); err != nil {
				return fmt.Errorf("check %s: %w", name, err)
			}
		}
		return nil
	})
}

// Check looks for damage everywhere and returns the first that it finds.
func (db *DB) Check(ctx context.Context) error {
	return db.checkWith(ctx, func(k *checker) error { return k.all(ctx) })
}

// CheckSlowly is Check for the background: after each slice it pauses for as long as that took.
func (db *DB) CheckSlowly(ctx context.Context) error {
	return db.checkWith(ctx, func(k *checker) error {
		k.pauses = true
		return k.all(ctx)
	})
}

func (db *DB) checkWith(ctx context.Context, do func(*checker) error) error {
	c, err := db.ownConnection(ctx)
	if err != nil {
		return db.checked(err)
	}
	defer c.close()
	return db.checked(do(&checker{conn: c, limit: db.sliceLimit, rangeLimit: db.rangeLimit}))
}

// checked notes damage.
func (db *DB) checked(err error) error {
	err = classed(err)
	db.health.observe(err)
	return err
}

// checker looks for damage on a connection of its own.
type checker struct {
	conn       *connection
	limit      time.Duration
	rangeLimit time.Duration
	pauses     bool
}

// all checks everything.
func (k *checker) all(ctx context.Context) error {
	done, err := k.slice(ctx, func() error { return k.quickCheck("1") })
	if done || err != nil {
		return err
	}
	tables, err := tablesOf(k.conn)
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

// slice runs one of SQLite's checks, and reports whether it was done within the limit.
func (k *checker) slice(ctx context.Context, check func() error) (done bool, err error) {
	defer k.pause(ctx, time.Now())
	limited, cancel := context.WithTimeout(ctx, k.limit)
	defer cancel()
	k.conn.interruptWith(limited)
	defer k.conn.interruptWith(ctx)
	err = check()
	if err != nil && limited.Err() != nil && ctx.Err() == nil && !IsDamage(err) {
		return false, nil
	}
	return true, err
}

// pause waits for as long as passed since a time.
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
	return check(k.conn, "quick_check("+what+")")
}

// check runs one of SQLite's checks, which answer "ok" or what is wrong.
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
	key      []string // what its rows are ordered by: the rowid, or the primary key
	columns  []string
	indexes  []tree
	byNumber bool // the key is a rowid
}

// tree is a table or an index that can be walked through in order.
type tree struct {
	from     string // with INDEXED BY for an index
	key      []string
	columns  []string // of a table: what else is read
	byNumber bool
}

func (t *table) rows() tree {
	return tree{quoted(t.name) + " NOT INDEXED", t.key, t.columns, t.byNumber}
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// weight is an expression for which the database must read all of a row.
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

// readRange reads rows after a key for as long as a range may take. It returns the last key; nil: there are no more.
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
	err = k.conn.each(`SELECT `+keys+`, `+t.weight()+` FROM `+t.from+where+` ORDER BY `+keys, after, func(scan func(...any) error) error {
		if err := scan(into...); err != nil {
			return err
		}
		if t.byNumber && last != nil && last[0].(int64) >= row[0].(int64) {
			return &DamageError{fmt.Sprintf("rows of %s are out of order", t.from)}
		}
		if last = slices.Clone(row[:len(t.key)]); time.Since(began) > k.rangeLimit && !slices.Contains(last, nil) {
			return errRangeEnds // a range cannot begin after NULL, which is neither less nor more than anything
		}
		return nil
	})
	switch {
	case err == errRangeEnds:
		return last, nil
	case err != nil:
		return nil, fmt.Errorf("check %s: %w", t.from, err)
	}
	return nil, nil
}

var errRangeEnds = errors.New("the range ends here")

// tablesOf lists the tables and those of their indexes that can be walked through: with all rows, by plain columns.
func tablesOf(c *connection) ([]table, error) {
	var tables []table
	err := c.each(`SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite\_schema' ESCAPE '\' ORDER BY name`,
		nil, func(scan func(...any) error) error {
			var t table
			var withoutRowid bool
			err := scan(&t.name, &withoutRowid)
			t.byNumber = !withoutRowid
			tables = append(tables, t)
			return err
		})
	if err != nil {
		return nil, err
	}
	for i := range tables {
		if err := tables[i].read(c); err != nil {
			return nil, err
		}
	}
	return tables, nil
}

// read finds out the columns and indexes of a table.
func (t *table) read(c *connection) error {
	if t.byNumber {
		t.key = []string{"rowid"}
	}
	err := c.each(`SELECT name, pk FROM pragma_table_info(?) ORDER BY pk, cid`, []any{t.name}, func(scan func(...any) error) error {
		var name string
		var place int
		err := scan(&name, &place)
		if place > 0 && !t.byNumber {
			t.key = append(t.key, quoted(name))
		} else {
			t.columns = append(t.columns, quoted(name))
		}
		return err
	})
	if err != nil {
		return err
	}
	var names []string
	err = c.each(`SELECT name FROM pragma_index_list(?) AS list WHERE partial = 0 AND NOT (origin = 'pk' AND ?) AND NOT EXISTS
		(SELECT 1 FROM pragma_index_xinfo(list.name) WHERE cid = -2 OR "desc" = 1 OR coll <> 'BINARY')`, []any{t.name, !t.byNumber},
		func(scan func(...any) error) error {
			var name string
			err := scan(&name)
			names = append(names, name)
			return err
		})
	if err != nil {
		return err
	}
	for _, name := range names {
		index := tree{from: quoted(t.name) + " INDEXED BY " + quoted(name)}
		err := c.each(`SELECT coalesce(name, '') FROM pragma_index_xinfo(?) ORDER BY seqno`, []any{name}, func(scan func(...any) error) error {
			var column string
			err := scan(&column)
			if column = quoted(column); column == `""` {
				column = "rowid"
			}
			index.key = append(index.key, column)
			return err
		})
		if err != nil {
			return err
		}
		t.indexes = append(t.indexes, index)
	}
	return nil
}
