package sqldb

import (
	"context"
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

// openAsProcess in the environment makes this test binary open a database and exit.
const openAsProcess = "SQLDB_TEST_OPEN"

func TestMain(m *testing.M) {
	path, ok := os.LookupEnv(openAsProcess)
	if !ok {
		os.Exit(m.Run())
	}
	db, err := Open(context.Background(), Options{Path: path, Durable: true, Migrations: later})
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
