package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// copyRows is how many rows are read and written at once.
const copyRows = 500

// copier copies the rows of one database into another, of which one is SQLite and one is PostgreSQL.
type copier struct {
	from, to *DB
	lite, pg *Conn // of the two
}

// Copy copies all rows into a database that has only those that new ones have, in the tables named initial. It compares the
// counts and returns how many there are. finish runs at the end, in a transaction of the copy; nil: nothing. Nothing else may use
// the databases.
func Copy(ctx context.Context, from, to Options, initial []string, finish func(*Tx) error) (rows int64, err error) {
	if IsPostgres(from.Path) == IsPostgres(to.Path) {
		return 0, errors.New("one of the two databases must be PostgreSQL, the other one a file")
	}
	c := &copier{}
	if c.from, err = Open(ctx, from); err != nil {
		return 0, err
	}
	defer c.from.Close()
	if c.to, err = Open(ctx, to); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.to.Close()) }()
	c.lite, c.pg = c.from.Read(ctx), c.to.Read(ctx)
	if IsPostgres(from.Path) {
		c.lite, c.pg = c.pg, c.lite
	}
	tables, err := c.tables()
	if err != nil {
		return 0, err
	}
	if err := c.checkEmpty(ctx, tables, initial); err != nil {
		return 0, err
	}
	enable, err := c.disableTriggers(ctx)
	if err != nil {
		return 0, err
	}
	for _, table := range tables {
		n, err := c.copyTable(ctx, table)
		if err != nil {
			return rows, fmt.Errorf("copy %s: %w", table, err)
		}
		rows += n
	}
	if err := enable(); err != nil {
		return rows, err
	}
	return rows, c.to.Write(ctx, func(tx *Tx) error {
		if err := c.copyKeys(tx, tables); err != nil || finish == nil {
			return err
		}
		return finish(tx)
	})
}

const (
	liteTables = `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'schema_version'`
	pgTables   = `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()`
	liteColumn = `SELECT name FROM pragma_table_info($1) ORDER BY cid`
	pgColumn   = `SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1`
)

// tables lists the tables that both have, those that others refer to first.
func (c *copier) tables() (sorted []string, err error) {
	names, err := Collect(c.lite, ScanOne[string], liteTables)
	if err != nil {
		return nil, err
	}
	inPostgres, err := Collect(c.pg, ScanOne[string], pgTables)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(inPostgres, name) })
	slices.Sort(names)
	var add func(name string) error
	add = func(name string) error {
		if slices.Contains(sorted, name) || !slices.Contains(names, name) {
			return nil
		}
		parents, err := Collect(c.lite, ScanOne[string], `SELECT "table" FROM pragma_foreign_key_list($1)`, name)
		for _, parent := range parents {
			if err == nil && parent != name {
				err = add(parent)
			}
		}
		sorted = append(sorted, name)
		return err
	}
	for _, name := range names {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	return sorted, nil
}

// checkEmpty makes sure that the target is new, and empties the tables that new databases have rows in.
func (c *copier) checkEmpty(ctx context.Context, tables, initial []string) error {
	return c.to.Write(ctx, func(tx *Tx) error {
		for _, table := range tables {
			var n int
			if err := tx.QueryRow(`SELECT count(*) FROM `+quoted(table), nil, &n); err != nil {
				return err
			}
			if n > 0 && !slices.Contains(initial, table) {
				return fmt.Errorf("%s already has data (table %s): give an empty database", Redacted(c.to.path), table)
			}
			if err := tx.Do(`DELETE FROM ` + quoted(table)); err != nil {
				return err
			}
		}
		return nil
	})
}

// disableTriggers switches the triggers of the target off: what they would change is copied.
func (c *copier) disableTriggers(ctx context.Context) (enable func() error, err error) {
	var off, on []string
	if c.to.writer.IsPostgres() {
		names, err := Collect(c.pg, ScanOne[string],
			`SELECT DISTINCT event_object_table FROM information_schema.triggers WHERE trigger_schema = current_schema()`)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			off = append(off, `ALTER TABLE `+quoted(name)+` DISABLE TRIGGER USER`)
			on = append(on, `ALTER TABLE `+quoted(name)+` ENABLE TRIGGER USER`)
		}
	} else {
		names, err := Collect(c.lite, ScanOne[string], `SELECT name FROM sqlite_master WHERE type = 'trigger' ORDER BY name`)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			off = append(off, `DROP TRIGGER `+quoted(name))
		}
		if on, err = Collect(c.lite, ScanOne[string], `SELECT sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name`); err != nil {
			return nil, err
		}
	}
	run := func(statements []string) error {
		return c.to.Write(ctx, func(tx *Tx) error {
			for _, statement := range statements {
				if _, err := tx.Exec(statement); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return func() error { return run(on) }, run(off)
}

// copyTable copies the rows of a table, in the order of its key, and compares the counts.
func (c *copier) copyTable(ctx context.Context, table string) (rows int64, err error) {
	columns, err := Collect(c.lite, ScanOne[string], liteColumn, table)
	if err != nil {
		return 0, err
	}
	inPostgres, err := Collect(c.pg, ScanOne[string], pgColumn, table)
	if err != nil {
		return 0, err
	}
	columns = slices.DeleteFunc(columns, func(name string) bool { return !slices.Contains(inPostgres, name) })
	binary, err := Collect(c.pg, ScanOne[string], pgColumn+` AND data_type = 'bytea'`, table)
	if err != nil {
		return 0, err
	}
	key, err := Collect(c.lite, ScanOne[string], `SELECT name FROM pragma_table_info($1) WHERE pk > 0 ORDER BY pk`, table)
	if err != nil {
		return 0, err
	}
	reader := c.from.Read(ctx)
	for last := []any(nil); ; {
		list, err := readRows(reader, table, columns, key, last)
		if err != nil || len(list) == 0 {
			return rows, errors.Join(err, c.compare(ctx, table, rows))
		}
		if err := c.to.Write(ctx, func(tx *Tx) error { return insertRows(tx, table, columns, binary, list) }); err != nil {
			return rows, err
		}
		rows += int64(len(list))
		if len(key) == 0 {
			return rows, c.compare(ctx, table, rows)
		}
		last = last[:0]
		for _, name := range key {
			last = append(last, list[len(list)-1][slices.Index(columns, name)])
		}
	}
}

// readRows reads the next rows after those with a key. Without a key it reads all.
func readRows(reader *Conn, table string, columns, key []string, last []any) ([][]any, error) {
	query := `SELECT ` + quotedList(columns) + ` FROM ` + quoted(table)
	if len(key) > 0 {
		if len(last) > 0 {
			query += ` WHERE (` + quotedList(key) + `) > (` + params(len(last)) + `)`
		}
		query += fmt.Sprintf(` ORDER BY %s LIMIT %d`, quotedList(key), copyRows)
	}
	return Collect(reader, func(row Scanner) ([]any, error) {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		return values, row.Scan(into...)
	}, query, last...)
}

// insertRows adds rows. SQLite does not mind whether a value is text or bytes, PostgreSQL does.
func insertRows(tx *Tx, table string, columns, binary []string, rows [][]any) error {
	statement := `INSERT INTO ` + quoted(table) + ` (` + quotedList(columns) + `) VALUES (` + params(len(columns)) + `)`
	for _, row := range rows {
		for i, value := range row {
			isBinary := slices.Contains(binary, columns[i])
			switch v := value.(type) {
			case string:
				if isBinary {
					row[i] = []byte(v)
				}
			case []byte:
				if !isBinary {
					row[i] = string(v)
				}
			}
		}
		if err := tx.Do(statement, row...); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) compare(ctx context.Context, table string, want int64) error {
	for _, db := range []*DB{c.from, c.to} {
		var n int64
		if err := db.Read(ctx).QueryRow(`SELECT count(*) FROM `+quoted(table), nil, &n); err != nil {
			return err
		}
		if n != want {
			return fmt.Errorf("%d rows were copied, and %s has %d", want, Redacted(db.path), n)
		}
	}
	return nil
}

// copyKeys makes the target choose keys after the last one of the source, also of rows that were removed.
func (c *copier) copyKeys(tx *Tx, tables []string) error {
	for _, table := range tables {
		var column string
		err := c.pg.QueryRow(`SELECT column_name FROM information_schema.columns
			WHERE table_schema = current_schema() AND table_name = $1 AND is_identity = 'YES'`, []any{table}, &column)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		var last int64
		if err == nil && tx.IsPostgres() {
			err = c.lite.QueryRow(`SELECT seq FROM sqlite_sequence WHERE name = $1`, []any{table}, &last)
			if err == nil || errors.Is(err, sql.ErrNoRows) {
				_, err = tx.Exec(`SELECT setval(pg_get_serial_sequence($1, $2), greatest($3, (SELECT max(`+quoted(column)+`) FROM `+
					quoted(table)+`), 1))`, table, column, last)
			}
		} else if err == nil {
			err = c.pg.QueryRow(`SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence($1, $2)), 0)`, []any{table, column}, &last)
			if err == nil {
				_, err = tx.Exec(`UPDATE sqlite_sequence SET seq = max(seq, $1) WHERE name = $2`, last, table)
			}
		}
		if err != nil {
			return fmt.Errorf("keys of %s: %w", table, err)
		}
	}
	return nil
}

func quotedList(names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = quoted(name)
	}
	return strings.Join(list, ", ")
}

// params is the list of the first n parameters.
func params(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("$%d", i+1)
	}
	return strings.Join(list, ", ")
}
