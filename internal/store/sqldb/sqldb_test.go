package sqldb

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"zombiezen.com/go/sqlite"

	"parley"
)

// things is a database with one table.
var things = fstest.MapFS{
	"sqlite/0001_things.sql": {Data: []byte(`CREATE TABLE thing (seq INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, data BLOB);`)},
}

const insert = `INSERT INTO thing (name) VALUES ($1)`

func open(t *testing.T) *DB {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "test.db"))
}

func openAt(t *testing.T, path string) *DB {
	t.Helper()
	return openWith(t, Options{Path: path, Durable: true, Migrations: things})
}

func openWith(t *testing.T, o Options) *DB {
	t.Helper()
	db, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// add stores a thing.
func add(t *testing.T, db *DB, name string) {
	t.Helper()
	if err := db.Write(t.Context(), func(tx *Tx) error {
		_, err := tx.Exec(insert, name)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// names lists the things that are committed, in order.
func names(t *testing.T, db *DB) []string {
	t.Helper()
	rows, err := db.Read(t.Context()).Query(`SELECT name FROM thing ORDER BY seq`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		all = append(all, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFilesAreTheirOwnersOnly(t *testing.T) {
	db := open(t)
	add(t, db, "a")
	var path string
	if err := db.Read(t.Context()).QueryRow(`SELECT file FROM pragma_database_list WHERE name = 'main'`, nil, &path); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o600 {
			t.Errorf("%s has mode %v", filepath.Base(name), info.Mode())
		}
	}
}

func TestPathMayHoldAnything(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b?c#d%20e&f")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "x?y.db")
	add(t, openAt(t, path), "a")
	if _, err := os.Stat(path + "-wal"); err != nil {
		t.Error(err)
	}
}

func TestSettingsAreInForce(t *testing.T) {
	want := map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "5000"}
	db := open(t)
	for pragma, want := range want {
		var written, read string
		if err := db.writer.QueryRow("PRAGMA "+pragma, nil, &written); err != nil {
			t.Fatal(err)
		}
		if err := db.Read(t.Context()).QueryRow("PRAGMA "+pragma, nil, &read); err != nil {
			t.Fatal(err)
		}
		matters := pragma == "journal_mode" || pragma == "busy_timeout" // a reader cannot write: the others do not
		if written != want || matters && read != want {
			t.Errorf("%s is %s for writing and %s for reading, want %s", pragma, written, read, want)
		}
	}
	if _, err := db.Read(t.Context()).Exec(insert, "a"); err == nil {
		t.Error("a reader can write")
	}
}

func TestWrongSettingsAreRefused(t *testing.T) {
	for pragma, says := range map[string]string{
		"PRAGMA synchronous = NORMAL":  "power cut",
		"PRAGMA foreign_keys = OFF":    "foreign keys",
		"PRAGMA journal_mode = DELETE": "journal mode",
	} {
		o := Options{Path: filepath.Join(t.TempDir(), "test.db"), Durable: true, Migrations: things}
		db, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.writer.write.check(o); err != nil {
			t.Errorf("before %s: %v", pragma, err)
		}
		if _, err := db.writer.Exec(pragma); err != nil {
			t.Fatal(err)
		}
		if err := db.writer.write.check(o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("after %s: got %v", pragma, err)
		}
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	garbage := filepath.Join(t.TempDir(), "garbage.db")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{garbage, filepath.Join(t.TempDir(), "no", "such", "folder.db"), t.TempDir()} {
		if db, err := Open(t.Context(), Options{Path: path, Migrations: things}); err == nil {
			db.Close()
			t.Errorf("opened %s", path)
		} else if !strings.Contains(err.Error(), path) {
			t.Errorf("the error does not name the file: %v", err)
		}
	}
}

func TestClosedDatabaseIsUnavailable(t *testing.T) {
	db := open(t)
	add(t, db, "a")
	reader := db.Read(t.Context())
	for range 2 {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Write(t.Context(), func(*Tx) error { return nil }); parley.ToCode(err) != parley.Unavailable {
		t.Errorf("write: got %v", err)
	}
	if _, err := reader.Query(`SELECT name FROM thing`); parley.ToCode(err) != parley.Unavailable {
		t.Errorf("query: got %v", err)
	}
	if err := reader.QueryRow(`SELECT 1`, nil, new(int)); parley.ToCode(err) != parley.Unavailable {
		t.Errorf("query row: got %v", err)
	}
}

func TestCloseWaitsForWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	db := openAt(t, path)
	began, end := make(chan struct{}), make(chan struct{})
	result := make(chan error, 1)
	go func() {
		result <- db.Write(context.Background(), func(tx *Tx) error {
			close(began)
			<-end
			_, err := tx.Exec(insert, "a")
			return err
		})
	}()
	<-began
	closed := make(chan error, 1)
	go func() { closed <- db.Close() }()
	close(end)
	if err := errors.Join(<-result, <-closed); err != nil {
		t.Fatal(err)
	}
	if got := names(t, openAt(t, path)); len(got) != 1 {
		t.Errorf("after closing there is %v", got)
	}
}

func isUnique(err error) bool { return sqlite.ErrCode(err) == sqlite.ResultConstraintUnique }

func TestNumbered(t *testing.T) {
	for query, want := range map[string]string{
		`SELECT 1`:                         `SELECT 1`,
		`a = $2 AND b = $1 AND c = $1`:     `a = ?2 AND b = ?1 AND c = ?1`,
		`a = $1 AND b = '$2' AND c = $2`:   `a = ?1 AND b = '$2' AND c = ?2`,
		`a = 'it''s $1' AND b = $1 || '$'`: `a = 'it''s $1' AND b = ?1 || '$'`,
	} {
		if got := numbered(query); got != want {
			t.Errorf("%s became %s", query, got)
		}
	}
}
