package store_test

import (
	"time"

	"parley"
	"parley/internal/store"
)

var fileTests = map[string]func(*env){
	"a channel has one file for each content": func(e *env) {
		e.channel(main, other)
		add := func(f parley.StoredFile) (key string) {
			e.tx(func(tx *store.Tx) (err error) {
				key, err = tx.AddFile(e.Context(), f)
				return err
			})
			return key
		}
		f := parley.StoredFile{Key: "k1", Channel: main, SHA256: []byte("one"), Size: 3, At: start}
		e.same("the first", add(f), "k1")
		got, err := e.store.File(e.Context(), "k1")
		e.must(err)
		e.same("stored", got, f)
		f.Key = "k2"
		e.same("the same again", add(f), "k1")
		f.SHA256 = []byte("two")
		e.same("another", add(f), "k2")
		f.Channel, f.Key = other, "k3"
		e.same("of another channel", add(f), "k3")
		key, err := e.store.FileWith(e.Context(), main, []byte("two"))
		e.must(err)
		e.same("found", key, "k2")
		if _, err := e.store.FileWith(e.Context(), other, []byte("one")); err != parley.ErrNotFound {
			e.Errorf("the content of another channel: %v", err)
		}
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return second(tx.AddFile(e.Context(), parley.StoredFile{Channel: "none"})) })
	},

	"a file is released with the last that names it": func(e *env) {
		e.channel(main)
		first, again := outgoing("A1"), outgoing("A2")
		first.Content = parley.Image{Media: parley.Media{Key: "k1"}}
		again.Content = parley.File{Media: parley.Media{Key: "k1"}}
		e.add(&first, &again)
		e.tx(func(tx *store.Tx) error {
			if err := second(tx.AddFile(e.Context(), parley.StoredFile{Key: "k1", Channel: main, SHA256: []byte("one"), At: start})); err != nil {
				return err
			}
			return tx.AddUpload(e.Context(), parley.Upload{Key: "u1", File: "k1", Channel: main, At: start})
		})
		release := func() (free []string) {
			e.tx(func(tx *store.Tx) (err error) {
				free, err = tx.ReleaseFiles(e.Context(), []string{"k1"})
				return err
			})
			return free
		}
		e.same("with three names", release(), []string{})
		e.tx(func(tx *store.Tx) error { return tx.EraseMessage(e.Context(), main, first.Ref()) })
		e.tx(func(tx *store.Tx) error { return second(tx.PurgeUploads(e.Context(), start.Add(time.Second), 1)) })
		e.same("with one", release(), []string{})
		e.tx(func(tx *store.Tx) error { return tx.UseFile(e.Context(), "k1") })
		e.tx(func(tx *store.Tx) error { return tx.EraseMessage(e.Context(), main, again.Ref()) })
		e.same("with none", release(), []string{"k1"})
		err := e.store.Tx(e.Context(), func(tx *store.Tx) error { return tx.UseFile(e.Context(), "k1") })
		if parley.CodeOf(err) != parley.Unavailable {
			e.Errorf("naming it afterwards: %v", err)
		}
	},

	"the files of a channel go with it, also those that nothing names": func(e *env) {
		e.channel(main)
		e.tx(func(tx *store.Tx) error {
			return second(tx.AddFile(e.Context(), parley.StoredFile{Key: "k1", Channel: main, SHA256: []byte("one"), At: start}))
		})
		e.tx(func(tx *store.Tx) error { return tx.ClearChannel(e.Context(), main) })
		e.same("purged", e.purge(), []parley.Media{{Key: "k1"}})
		if _, err := e.store.File(e.Context(), "k1"); err != parley.ErrNotFound {
			e.Errorf("left: %v", err)
		}
	},
}
