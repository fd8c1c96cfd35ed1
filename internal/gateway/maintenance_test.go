package gateway_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/media"
	"parley/internal/network"
	"parley/internal/store"
)

// TestOrphansAreRemoved leaves files behind as a process does that dies before it stores their message.
func TestOrphansAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		in := network.Message{From: ayu, ID: "A1", Content: parley.File{Media: parley.Media{Filename: "a.txt"}}, File: []byte("hello"),
			At: time.Now()}
		if err := b.driver.session("demo").sink(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		page, _, err := b.store.History(t.Context(), "demo", ayu, parley.Page{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		named := parley.MediaIn(page[0].Content).Key
		keep := func(content string) string {
			m, err := b.media.Store(t.Context(), "demo", []byte(content), "a.txt")
			if err != nil {
				t.Fatal(err)
			}
			return m.Key
		}
		orphan, young, uploaded := keep("orphan"), keep("young"), keep("uploaded")
		now := time.Now() // of the bubble, unlike the file system's
		if err := b.store.Tx(t.Context(), func(tx *store.Tx) error {
			return tx.AddUpload(t.Context(), store.Upload{Key: media.NewKey(), File: uploaded, Channel: "demo", At: now})
		}); err != nil {
			t.Fatal(err)
		}
		ages := map[string]time.Duration{named: 30 * time.Hour, orphan: 24 * time.Hour, young: 23 * time.Hour, uploaded: 30 * time.Hour}
		for key, age := range ages {
			path := filepath.Join(b.media.String(), key[:2], key[2:4], key)
			if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
				t.Fatal(err)
			}
		}
		wants := func(when string, left map[string]bool) {
			t.Helper()
			for key, want := range left {
				f, err := b.media.Open(t.Context(), key)
				if err == nil {
					f.Close()
				}
				if (err == nil) != want || err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s: %v, want it there: %t", when, err, want)
				}
			}
		}
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		wants("after the start", map[string]bool{named: true, orphan: false, young: true, uploaded: true})
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		wants("a day later", map[string]bool{named: true, orphan: false, young: false, uploaded: false})
	})
}

// TestOldMessagesAreDeleted has a message with a file become as old as messages may be, and one that came later.
func TestOldMessagesAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.stop()
		b.messageLife = time.Hour
		b.start()
		in := network.Message{From: ayu, ID: "A1", Content: parley.File{Media: parley.Media{Filename: "a.txt"}}, File: []byte("hello"),
			At: time.Now()}
		if err := b.driver.session("demo").sink(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		history := func() []parley.Message {
			page, _, err := b.store.History(t.Context(), "demo", ayu, parley.Page{Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			return page
		}
		key := parley.MediaIn(history()[0].Content).Key
		time.Sleep(59 * time.Minute)
		b.await(ayu, "later", time.Second)
		if got := len(history()); got != 2 {
			t.Errorf("%d messages are stored after 59 minutes", got)
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if got := history(); len(got) != 1 || got[0].Content.Text() != "later" {
			t.Errorf("after 62 minutes there are %+v", got)
		}
		if f, err := b.media.Open(t.Context(), key); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the file of a deleted message: %v, %v", f, err)
		}
	})
}
