package sqldb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"parley"
)

// holdWriter blocks the writer until the test releases it.
func holdWriter(t *testing.T, db *DB) (release func()) {
	t.Helper()
	began, end, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	db.Begin(context.Background(), func(*Tx) error {
		close(began)
		<-end
		return nil
	}, func(error) { close(done) })
	<-began
	return func() {
		close(end)
		<-done
	}
}

// expire makes the outcome of the last write too old for Writable.
func expire(db *DB) { db.health.fresh = -1 }

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("it never came that %s", what)
		}
	}
}

func logSize(t *testing.T, db *DB) int64 {
	t.Helper()
	frames, _, err := db.Read(t.Context()).logFrames()
	if err != nil {
		t.Fatal(err)
	}
	return frames * frameSize
}

func TestWritableTriesAWrite(t *testing.T) {
	db := open(t)
	add(t, db, "a")
	expire(db)
	before := logSize(t, db)
	if err := db.Writable(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := logSize(t, db); after <= before {
		t.Errorf("the log has %d bytes as before: nothing was written", after)
	}
	before, db.health.fresh = logSize(t, db), probeEvery
	for range 100 { // the outcome is known for a moment
		if err := db.Writable(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if after := logSize(t, db); after > before+20*4096 {
		t.Errorf("every call writes: the log grew from %d to %d bytes", before, after)
	}
}

// TestWritableReportsAFullDisk makes every write to a file fail, as on a full disk.
func TestWritableReportsAFullDisk(t *testing.T) {
	db := open(t)
	add(t, db, "a")
	expire(db)
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	room := func(bytes uint64) {
		t.Helper()
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: was.Max}); err != nil {
			t.Fatal(err)
		}
	}
	room(1)
	defer room(was.Cur)
	probed := db.Writable(t.Context())
	written := db.Write(t.Context(), adds("b"))
	again := db.Writable(t.Context())
	room(was.Cur)
	for what, err := range map[string]error{"the probe": probed, "a write": written, "the state after it": again} {
		if parley.ToCode(err) != parley.Unavailable || !strings.Contains(err.Error(), "disk full?") {
			t.Errorf("%s: %v", what, err)
		}
	}
	eventually(t, "it can be written to again", func() bool { return db.Writable(t.Context()) == nil })
	add(t, db, "b")
}

func TestWritableEndsWithTheContext(t *testing.T) {
	db := open(t)
	release := holdWriter(t, db)
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := db.Writable(ctx); parley.ToCode(err) != parley.Unavailable {
		t.Errorf("behind a stuck writer: %v", err)
	}
}

// TestWritableReportsALock lets another process hold the lock.
func TestWritableReportsALock(t *testing.T) {
	db := open(t)
	add(t, db, "a")
	expire(db)
	if _, err := db.writer.Exec("PRAGMA busy_timeout = 1"); err != nil {
		t.Fatal(err)
	}
	release := holdWriter(t, openAt(t, db.path))
	if err := db.Writable(t.Context()); parley.ToCode(err) != parley.Unavailable || !strings.Contains(err.Error(), "locked") {
		t.Errorf("with the database locked: %v", err)
	}
	release()
	eventually(t, "it can be written to again", func() bool { return db.Writable(t.Context()) == nil })
}

// TestWritesBehindAStuckWriterAreRefused: they get an error instead of waiting forever, and do not run
// when the writer continues.
func TestWritesBehindAStuckWriterAreRefused(t *testing.T) {
	db := openWith(t, Options{Path: filepath.Join(t.TempDir(), "test.db"), Migrations: things,
		limits: limits{stuckAfter: time.Millisecond, watchEvery: time.Millisecond}})
	release := holdWriter(t, db)
	results := make(chan error, 2*maxBatch)
	for i := range 2 * maxBatch { // more than fit into the queue
		go func() { results <- db.Write(context.Background(), adds(fmt.Sprint(i))) }()
	}
	for range 2 * maxBatch {
		if err := <-results; parley.ToCode(err) != parley.Unavailable {
			t.Fatalf("got %v", err)
		}
	}
	release()
	if got := names(t, db); len(got) != 0 {
		t.Errorf("%d writes that were refused were carried out", len(got))
	}
	eventually(t, "it writes again", func() bool { return db.Write(t.Context(), adds("after")) == nil })
}

// broken makes a database with many rows and overwrites a page in its middle.
func broken(t *testing.T) *DB {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	db := openAt(t, path)
	for i := range 64 {
		if err := db.Write(t.Context(), func(tx *Tx) error {
			_, err := tx.Exec(`INSERT INTO thing (name, data) VALUES ($1, $2)`, fmt.Sprint(i), bytes.Repeat([]byte("A"), 2000))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	middle := len(content) / 2
	at := (middle + bytes.Index(content[middle:], bytes.Repeat([]byte("A"), 1000))) / page * page
	copy(content[at:], make([]byte, page))
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return openAt(t, path)
}

// TestDamageStopsWrites: after a check or any statement found damage, nothing is written.
func TestDamageStopsWrites(t *testing.T) {
	read := func(db *DB) error {
		rows, err := db.Read(context.Background()).Query(`SELECT data FROM thing`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
		}
		return rows.Err()
	}
	for name, meet := range map[string]func(*DB) error{
		"by a check":  func(db *DB) error { return db.Check(context.Background()) },
		"by a reader": read,
		"by the writer": func(db *DB) error {
			return db.Write(context.Background(), func(tx *Tx) error {
				_, err := tx.Exec(`UPDATE thing SET data = NULL`)
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := broken(t)
			if err := db.Write(t.Context(), adds("before")); err != nil {
				t.Fatal(err)
			}
			if err := meet(db); err == nil || !IsDamage(err) {
				t.Fatalf("the damage is not found: %v", err)
			}
			<-db.Damaged()
			runs := 0
			err := db.Write(t.Context(), func(*Tx) error { runs++; return nil })
			e, ok := errors.AsType[*parley.Error](err)
			if !ok || e.Code != parley.Unavailable || !strings.Contains(e.Message, "damaged") || runs != 0 {
				t.Errorf("a write after that: %v after %d runs", err, runs)
			}
			if err := db.Writable(t.Context()); !IsDamage(err) {
				t.Errorf("it counts as writable: %v", err)
			}
		})
	}
}

// TestEverySliceFindsDamage checks a database that is too large for any of SQLite's own checks to end in time.
func TestEverySliceFindsDamage(t *testing.T) {
	for _, limit := range []time.Duration{sliceLimit, time.Nanosecond} {
		db := broken(t)
		db.limits.sliceLimit, db.limits.rangeLimit = limit, time.Nanosecond // one row in a range
		if err := db.CheckStart(t.Context()); err != nil {
			t.Errorf("the start of it is damaged: %v", err)
		}
		if err := db.CheckSlowly(t.Context()); !IsDamage(err) {
			t.Errorf("with %s for a slice: %v", limit, err)
		}
		whole := openAt(t, filepath.Join(t.TempDir(), "test.db"))
		whole.limits.sliceLimit, whole.limits.rangeLimit = limit, time.Nanosecond
		for i := range 20 {
			add(t, whole, fmt.Sprint(i))
		}
		if err := errors.Join(whole.CheckStart(t.Context()), whole.CheckSlowly(t.Context())); err != nil {
			t.Errorf("with %s for a slice, of a database without damage: %v", limit, err)
		}
	}
}

// TestCheckWalksThroughEverything reads tables and indexes of all kinds in ranges of one row.
func TestCheckWalksThroughEverything(t *testing.T) {
	all := fstest.MapFS{"sqlite/0001_all.sql": {Data: []byte(`
		CREATE TABLE plain (seq INTEGER PRIMARY KEY AUTOINCREMENT, a TEXT, "b c" BLOB);
		CREATE INDEX plain_a ON plain (a);
		CREATE INDEX plain_some ON plain (a) WHERE a <> '';
		CREATE INDEX plain_lower ON plain (lower(a));
		CREATE UNIQUE INDEX plain_bc ON plain ("b c", a DESC);
		CREATE TABLE keyed (a TEXT, b INTEGER, c TEXT NOT NULL, PRIMARY KEY (a, b)) WITHOUT ROWID;
		CREATE INDEX keyed_c ON keyed (c);
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
			INSERT INTO plain (a, "b c") SELECT iif(i % 3 = 0, NULL, 'a' || i), zeroblob(i * 1000) FROM n;
		INSERT INTO keyed SELECT coalesce(a, ''), seq, 'c' FROM plain;`)}}
	db := openWith(t, Options{Path: filepath.Join(t.TempDir(), "test.db"), Migrations: all})
	c, err := db.ownConnection(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	tables, err := listTables(c.asConn())
	if err != nil {
		t.Fatal(err)
	}
	k := &checker{own: c, conn: c.asConn()}
	var walked []string
	for _, table := range tables {
		for _, tree := range append([]tree{table.rows()}, table.indexes...) {
			var last []any
			ranges := 0
			for {
				next, err := k.readRange(t.Context(), tree, last)
				if err != nil {
					t.Fatalf("%s: %v", tree.from, err)
				}
				if next == nil {
					break
				}
				last = next
				ranges++
			}
			walked = append(walked, fmt.Sprintf("%s by %s: %d", tree.from, strings.Join(tree.key, " "), ranges))
		}
	}
	want := []string{
		`"keyed" NOT INDEXED by "a" "b": 20`, `"keyed" INDEXED BY "keyed_c" by "c" "a" "b": 20`,
		`"plain" NOT INDEXED by rowid: 20`, `"plain" INDEXED BY "plain_a" by "a" rowid: 14`, // the first has all 6 without a value
		`"schema_version" NOT INDEXED by rowid: 1`, `"sqlite_sequence" NOT INDEXED by rowid: 1`,
	}
	if !slices.Equal(walked, want) {
		t.Errorf("walked through:\n%s", strings.Join(walked, "\n"))
	}
}
