package store_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/internal/store"
)

// parallel sets the number of callers that a parallel benchmark has in all.
func parallel(b *testing.B, callers int) {
	b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
}

func benchStore(b *testing.B) *store.DB {
	db, err := store.Open(b.Context(), filepath.Join(b.TempDir(), "parley.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	if err := db.Tx(b.Context(), func(tx *store.Tx) error {
		return tx.AddChannel(b.Context(), parley.Channel{Code: "main", Network: parley.Sandbox})
	}); err != nil {
		b.Fatal(err)
	}
	return db
}

// benchText makes a plain text on its way to one of a thousand chats.
func benchText(n int64) parley.Message {
	now := time.Now()
	return parley.Message{
		Channel: "main", Chat: parley.NewContactID(strconv.FormatInt(6281100000000+n%1000, 10)), ID: parley.MessageID(rand.Text()), FromMe: true,
		Content: parley.Text{Body: "Your parcel is on its way and will reach you tomorrow."}, Status: parley.Pending,
		CreatedAt: now, ExpiresAt: now.Add(parley.DefaultTTL),
	}
}

// BenchmarkAccept measures a send up to its response, with 64 callers.
func BenchmarkAccept(b *testing.B) {
	db := benchStore(b)
	var n atomic.Int64
	b.ReportAllocs()
	parallel(b, 64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m := benchText(n.Add(1))
			if err := db.Tx(context.Background(), func(tx *store.Tx) error { return tx.AddMessage(context.Background(), &m) }); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkAcceptAndAdvance is what a send costs until the network confirmed it, at 64 callers.
func BenchmarkAcceptAndAdvance(b *testing.B) {
	db := benchStore(b)
	var n atomic.Int64
	b.ReportAllocs()
	parallel(b, 64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m := benchText(n.Add(1))
			if err := db.Tx(context.Background(), func(tx *store.Tx) error { return tx.AddMessage(context.Background(), &m) }); err != nil {
				b.Error(err)
			}
			if err := db.Tx(context.Background(), func(tx *store.Tx) error {
				_, err := tx.AdvanceMessage(context.Background(), m.Channel, m.Ref(), parley.Sent, nil, time.Now())
				return err
			}); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkHistory reads the first and the last page of chats of two sizes: all four cost the same.
func BenchmarkHistory(b *testing.B) {
	const chat = parley.ContactID("628110000@c.us")
	for _, size := range []int64{1_000, 1_000_000} {
		if size > 1_000 && testing.Short() {
			continue // the seed needs half a minute
		}
		db := benchStore(b)
		if err := db.Tx(b.Context(), func(tx *store.Tx) error {
			for n := range size {
				m := benchText(n)
				m.Chat, m.Status = chat, parley.Sent
				if err := tx.AddMessage(b.Context(), &m); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			b.Fatal(err)
		}
		for name, offset := range map[string]int64{"first": 0, "last": size - 50} {
			b.Run(fmt.Sprintf("%d/%s", size, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					page, total, err := db.History(b.Context(), "main", chat, parley.Page{Limit: 50, Offset: offset})
					if err != nil || len(page) != 50 || total != size {
						b.Fatal(len(page), total, err)
					}
				}
			})
		}
	}
}
