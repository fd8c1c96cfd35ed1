package sqldb

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// TestLogStaysSmall uses readers that overlap all the time, so SQLite itself never empties the log.
func TestLogStaysSmall(t *testing.T) {
	const limit, most = 1 << 20, 3000
	db := openWith(t, Options{Path: filepath.Join(t.TempDir(), "test.db"), Migrations: things,
		limits: limits{watchEvery: time.Millisecond, restartEvery: time.Millisecond, maxLog: limit}})
	add(t, db, "first")
	stop := make(chan struct{})
	var reading sync.WaitGroup
	handOver := make(chan *Rows, 1) // there is always one open: the next begins before the last ends
	handOver <- holdReader(t, db)
	reading.Go(func() {
		for last := range handOver {
			rows, err := db.Read(t.Context()).Query(`SELECT name FROM thing`)
			if err != nil || !rows.Next() {
				t.Error("no rows: ", err)
				last.Close()
				return
			}
			last.Close()
			select {
			case <-stop:
				rows.Close()
				return
			case handOver <- rows:
			}
		}
	})
	var largest, written int64
	data := make([]byte, 64<<10)
	for i, shrunk := 0, 0; shrunk < 3 && i < most; i++ {
		for at := 0; at < len(data); at += 1000 {
			data[at]++ // what stays the same is not written
		}
		if err := db.Write(t.Context(), func(tx *Tx) error {
			_, err := tx.Exec(`INSERT INTO thing (name, data) VALUES ($1, $2)
				ON CONFLICT (name) DO UPDATE SET data = excluded.data`, fmt.Sprint(i%10), data)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		written += int64(len(data))
		if size := logSize(t, db); size < largest && size < limit {
			shrunk, largest = shrunk+1, 0
		} else {
			largest = max(largest, size)
		}
		if i == most-1 {
			t.Errorf("after %d MB the log has %d bytes", written>>20, largest)
		}
	}
	close(stop)
	reading.Wait()
	var timeout string
	readTimeout := func(tx *Tx) error { return tx.QueryRow("PRAGMA busy_timeout", nil, &timeout) }
	if err := db.Write(t.Context(), readTimeout); err != nil || timeout != "5000" {
		t.Errorf("the writer's timeout is %s: %v", timeout, err)
	}
}

// TestLogOfALongReaderIsLeft: while a reader needs the log no restart is tried, so no writer waits for it.
func TestLogOfALongReaderIsLeft(t *testing.T) {
	db := openWith(t, Options{Path: filepath.Join(t.TempDir(), "test.db"), Migrations: things, limits: limits{watchEvery: time.Hour}})
	add(t, db, "first")
	rows := holdReader(t, db)
	for i := range 100 {
		if err := db.Write(t.Context(), func(tx *Tx) error {
			_, err := tx.Exec(`INSERT INTO thing (name, data) VALUES ($1, $2)`, fmt.Sprint(i), make([]byte, 10_000))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if db.checkpoint() {
		t.Error("the log counts as written back while a reader needs it")
	}
	rows.Close()
	if !db.checkpoint() {
		t.Error("the log is not written back")
	}
}

// TestLogAfterALongReader: what a reader held up is copied soon after it ends. A log that grew meanwhile beyond what the disk should keep
// is cut by the writer, which callers wait for.
func TestLogAfterALongReader(t *testing.T) {
	const limit = 1 << 20
	db := openWith(t, Options{Path: filepath.Join(t.TempDir(), "test.db"), Migrations: things,
		limits: limits{watchEvery: time.Millisecond, restartEvery: time.Hour, maxLog: limit}})
	data := make([]byte, 64<<10)
	write := func() {
		t.Helper()
		for at := 0; at < len(data); at += 1000 {
			data[at]++ // what stays the same is not written
		}
		if err := db.Write(t.Context(), func(tx *Tx) error {
			_, err := tx.Exec(`INSERT INTO thing (name, data) VALUES ('a', $1) ON CONFLICT (name) DO UPDATE SET data = excluded.data`, data)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for range limit / len(data) / 2 {
		write()
	}
	rows := holdReader(t, db)
	for range 4 * limit / len(data) {
		write()
	}
	for copied := int64(0); copied == 0; { // until a checkpoint has copied what the reader doesn't need
		var err error
		if _, copied, err = db.Read(t.Context()).logFrames(); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 { // takes longer than the rest of that one
		if db.checkpoint() {
			t.Fatal("the log is copied while a reader needs it")
		}
	}
	rows.Close()
	for size := logSize(t, db); size > limit; size = logSize(t, db) {
		if write(); size > 900*limit {
			t.Fatalf("the log has %d bytes", size)
		}
	}
}
