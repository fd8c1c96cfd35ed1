package store_test

import (
	"errors"
	"time"

	"parley"
	"parley/internal/store"
)

var fileTests = map[string]func(*env){
	"a channel has one file for each content": func(e *env) {
		e.channel(main, other)
		add := func(f store.StoredFile) (key string) {
			e.tx(func(tx *store.Tx) (err error) {
				key, err = tx.AddFile(e.Context(), f)
				return err
			})
			return key
		}
		f := store.StoredFile{Key: "k1", Channel: main, SHA256: []byte("one"), Size: 3, At: start}
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
		e.wants(parley.ErrNotFound, func(tx *store.Tx) error { return second(tx.AddFile(e.Context(), store.StoredFile{Channel: "none"})) })
	},

	"stored files count for a day": func(e *env) {
		e.channel(main, other)
		const mib, limit = 1 << 20, 10 << 20
		count := func(channel parley.ChannelCode, size int64, at time.Time) error {
			return e.store.Tx(e.Context(), func(tx *store.Tx) error { return tx.CountFile(e.Context(), channel, size, at, limit) })
		}
		e.must(count(main, 6*mib, start))
		var refused *parley.Error
		if err := count(main, 5*mib, start.Add(time.Hour)); !errors.As(err, &refused) || refused.Code != parley.StorageLimit {
			e.Errorf("above the limit: %v", err)
		}
		e.must(count(other, 10*mib, start))
		e.must(count(main, 4*mib, start.Add(time.Hour)))
		e.must(e.store.MayStore(e.Context(), main, 6*mib, start.Add(25*time.Hour), limit))
		e.tx(func(tx *store.Tx) error { return second(tx.PurgeStored(e.Context(), start.Add(48*time.Hour), 100)) })
		e.must(e.store.MayStore(e.Context(), main, limit, start, limit)) // nothing is left
	},

	"files of contacts who never got a message count": func(e *env) {
		const mib = 1 << 20
		limits := store.StorageLimits{PerContact: 10 * mib, PerChannel: 15 * mib}
		in, out := incoming("A1"), outgoing("A2")
		in.Chat, out.Chat, out.Status = ann, bob, parley.Sent
		other := incoming("A3")
		other.Chat = "6281100000077@c.us"
		e.add(&in, &out, &other)
		count := func(chat parley.ContactID, size int64) (reason string) {
			e.tx(func(tx *store.Tx) (err error) {
				reason, err = tx.CountInbound(e.Context(), main, chat, size, start, limits)
				return err
			})
			return reason
		}
		e.same("within the limits", count(ann, 9*mib), "")
		e.same("the contact is over its limit", count(ann, 2*mib) != "", true)
		e.same("the channel is over its limit", count(other.Chat, 7*mib) != "", true)
		e.same("the rest of the channel's", count(other.Chat, 6*mib), "")
		e.same("who got a message has no limit", count(bob, 50*mib), "")
	},

	"a file is released with the last that names it": func(e *env) {
		e.channel(main)
		first, again := outgoing("A1"), outgoing("A2")
		first.Content = parley.Image{Media: parley.Media{Key: "k1"}}
		again.Content = parley.File{Media: parley.Media{Key: "k1"}}
		e.add(&first, &again)
		e.tx(func(tx *store.Tx) error {
			if err := second(tx.AddFile(e.Context(), store.StoredFile{Key: "k1", Channel: main, SHA256: []byte("one"), At: start})); err != nil {
				return err
			}
			return tx.AddUpload(e.Context(), store.Upload{Key: "u1", File: "k1", Channel: main, At: start})
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
		if parley.ToCode(err) != parley.Unavailable {
			e.Errorf("naming it afterwards: %v", err)
		}
	},

	"the files of a channel go with it, also those that nothing names": func(e *env) {
		e.channel(main)
		e.tx(func(tx *store.Tx) error {
			return second(tx.AddFile(e.Context(), store.StoredFile{Key: "k1", Channel: main, SHA256: []byte("one"), At: start}))
		})
		e.tx(func(tx *store.Tx) error { return tx.ClearChannel(e.Context(), main) })
		e.same("purged", e.purge(), []parley.Media{{Key: "k1"}})
		if _, err := e.store.File(e.Context(), "k1"); err != parley.ErrNotFound {
			e.Errorf("left: %v", err)
		}
	},
}
