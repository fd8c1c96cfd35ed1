package sqldb

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

// later is things with one more migration.
var later = func() fstest.MapFS {
	all := maps.Clone(things)
	all["sqlite/0002_more.sql"] = &fstest.MapFile{Data: []byte(
		`ALTER TABLE thing ADD COLUMN more TEXT; INSERT INTO thing (name) VALUES ('two');`)}
	return all
}()

func versions(t *testing.T, path string, migrations fstest.MapFS) error {
	t.Helper()
	db, err := Open(t.Context(), Options{Path: path, Migrations: migrations})
	if err != nil {
		return err
	}
	return db.Close()
}

func TestMigrationsAreAppliedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	for _, migrations := range []fstest.MapFS{things, things, later, later} {
		if err := versions(t, path, migrations); err != nil {
			t.Fatal(err)
		}
	}
	db, err := Open(t.Context(), Options{Path: path, Migrations: later})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if got := names(t, db); len(got) != 1 {
		t.Errorf("the second migration left %v", got)
	}
}

func TestNewerDatabaseIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	if err := versions(t, path, later); err != nil {
		t.Fatal(err)
	}
	err := versions(t, path, things)
	if err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("got %v", err)
	}
}

// TestEarlyDatabaseIsRefused opens a database whose tables are older than the first ones that the program knows.
func TestEarlyDatabaseIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	if err := versions(t, path, things); err != nil {
		t.Fatal(err)
	}
	err := versions(t, path, fstest.MapFS{"sqlite/0002_tables.sql": {Data: []byte(`CREATE TABLE other (a TEXT)`)}})
	if early, is := errors.AsType[*EarlyError](err); !is || early.Path != path || !strings.Contains(err.Error(), "start with an empty") {
		t.Errorf("got %v", err)
	}
	if err := versions(t, path, things); err != nil {
		t.Errorf("it was changed: %v", err)
	}
}

func TestFailedMigrationLeavesTheVersionBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	broken := maps.Clone(things)
	broken["sqlite/0002_broken.sql"] = &fstest.MapFile{Data: []byte(`CREATE TABLE half (a TEXT); nonsense;`)}
	if err := versions(t, path, broken); err == nil || !strings.Contains(err.Error(), "0002_broken.sql") {
		t.Errorf("got %v", err)
	}
	db, err := Open(t.Context(), Options{Path: path, Migrations: things})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var half int
	if err := db.Read(t.Context()).QueryRow(`SELECT count(*) FROM sqlite_schema WHERE name = 'half'`, nil, &half); err != nil || half != 0 {
		t.Errorf("there are %d halves: %v", half, err)
	}
}

func TestMigrationWithoutNumberIsRefused(t *testing.T) {
	err := versions(t, filepath.Join(t.TempDir(), "test.db"), fstest.MapFS{"sqlite/first.sql": {}})
	if err == nil || !strings.Contains(err.Error(), "first.sql") {
		t.Errorf("got %v", err)
	}
}

// openAsProcess in the environment makes this test binary open a database and exit. With hangInMigration it says when it did all of
// the last migration but the commit, and waits.
const (
	openAsProcess   = "SQLDB_TEST_OPEN"
	hangInMigration = "SQLDB_TEST_HANG"
)

func TestMain(m *testing.M) {
	path, ok := os.LookupEnv(openAsProcess)
	if !ok {
		os.Exit(m.Run())
	}
	o := Options{Path: path, Durable: true, Migrations: later}
	if os.Getenv(hangInMigration) != "" {
		applied := false
		o.Trace = func(query string, args []any) {
			applied = applied || strings.HasPrefix(query, "INSERT INTO schema_version") && args[0] == 2
			if applied && query == "COMMIT" {
				fmt.Println("applied")
				select {}
			}
		}
	}
	db, err := Open(context.Background(), o)
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestProcessesMayMigrateAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			process := exec.CommandContext(t.Context(), os.Args[0])
			process.Env = append(os.Environ(), openAsProcess+"="+path)
			if out, err := process.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	db, err := Open(t.Context(), Options{Path: path, Migrations: later})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if got := names(t, db); len(got) != 1 {
		t.Errorf("the second migration left %v", got)
	}
}

// TestKilledDuringAMigration leaves the version before, from which the next process migrates.
func TestKilledDuringAMigration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	if err := versions(t, path, things); err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(t.Context(), os.Args[0])
	process.Env = append(os.Environ(), openAsProcess+"="+path, hangInMigration+"=1")
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	process.Process.Kill()
	process.Wait()
	if err != nil || line != "applied\n" {
		t.Fatalf("it said %q: %v", line, err)
	}
	if at, last, err := FileVersion(t.Context(), path, later); err != nil || at != 1 || last != 2 {
		t.Errorf("it is at version %d of %d: %v", at, last, err)
	}
	if err := versions(t, path, later); err != nil {
		t.Error(err)
	}
	if at, _, err := FileVersion(t.Context(), path, later); err != nil || at != 2 {
		t.Errorf("after the next start it is at version %d: %v", at, err)
	}
}
