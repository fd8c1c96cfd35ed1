package store_test

import (
	"errors"
	"time"

	"parley"
	"parley/internal/store"
)

var uploadTests = map[string]func(*env){
	"an upload comes back as it was stored, for its channel": func(e *env) {
		e.channel(main)
		e.channel(other)
		want := store.Upload{Key: "a1", Channel: main, File: "f1", MIME: "image/png", Filename: "dot.png", Size: 5, At: start}
		e.tx(func(tx *store.Tx) error { return tx.AddUpload(e.Context(), want) })
		got, err := e.store.Upload(e.Context(), main, "a1")
		e.must(err)
		e.same("upload", got, want)
		if _, err := e.store.Upload(e.Context(), other, "a1"); err != parley.ErrNotFound {
			e.Errorf("of another channel: %v", err)
		}
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return tx.AddUpload(e.Context(), store.Upload{Key: "a2", Channel: "none"}) })
	},

	"uploads count until they are used, and are purged by age": func(e *env) {
		e.channel(main)
		e.channel(other)
		e.tx(func(tx *store.Tx) error {
			return errors.Join(
				tx.AddUpload(e.Context(), store.Upload{Key: "b1", File: "fb1", Channel: main, Size: 5, At: start.Add(time.Minute)}),
				tx.AddUpload(e.Context(), store.Upload{Key: "b2", File: "fb2", Channel: main, Size: 7, At: start}),
				tx.AddUpload(e.Context(), store.Upload{Key: "b3", File: "fb3", Channel: other, Size: 9, At: start}))
		})
		unused := func() []int64 {
			files, bytes, oldest, err := e.store.UnusedUploads(e.Context(), main)
			e.must(err)
			return []int64{files, bytes, oldest.UnixMilli()}
		}
		e.same("unused", unused(), []int64{2, 12, start.UnixMilli()})
		e.tx(func(tx *store.Tx) error { return tx.UseUpload(e.Context(), "b2", start.Add(time.Hour)) })
		e.same("after one was used", unused(), []int64{1, 5, start.Add(time.Minute).UnixMilli()})
		purge := func(before time.Time, limit int) (keys []string) {
			e.tx(func(tx *store.Tx) error {
				keys = nil
				files, err := tx.PurgeUploads(e.Context(), before, limit)
				for _, f := range files {
					keys = append(keys, f.Key)
				}
				return err
			})
			return keys
		}
		e.same("purged", purge(start.Add(30*time.Minute), 1), []string{"fb3"})
		e.same("purged next", purge(start.Add(30*time.Minute), 10), []string{"fb1"})
		left, err := e.store.NamedFiles(e.Context(), []string{"fb1", "fb2", "fb3"})
		e.must(err)
		e.same("left", left, []string{"fb2"})
		files, bytes, oldest, err := e.store.UnusedUploads(e.Context(), other)
		if files != 0 || bytes != 0 || !oldest.IsZero() || err != nil {
			e.Errorf("without uploads: %d, %d, %s, %v", files, bytes, oldest, err)
		}
	},

	"uploads go with their channel": func(e *env) {
		e.channel(main)
		e.tx(func(tx *store.Tx) error {
			return tx.AddUpload(e.Context(), store.Upload{Key: "c1", File: "fc1", Channel: main, At: start})
		})
		e.tx(func(tx *store.Tx) error { return tx.DeleteChannel(e.Context(), main) })
		for more := true; more; {
			e.tx(func(tx *store.Tx) (err error) {
				_, more, err = tx.PurgeChannels(e.Context())
				return err
			})
		}
		if left, err := e.store.NamedFiles(e.Context(), []string{"fc1"}); len(left) > 0 || err != nil {
			e.Errorf("left: %v, %v", left, err)
		}
	},
}
