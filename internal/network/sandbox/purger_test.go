package sandbox

import (
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// rows counts the rows of a table.
func rows(t *testing.T, n *Network, table string) (count int) {
	t.Helper()
	must(t, n.db.Read(t.Context()).QueryRow(`SELECT count(*) FROM `+table, nil, &count))
	return count
}

// texts makes messages to a number.
func texts(number string, count int) (list []*parley.Message) {
	for i := range count {
		list = append(list, text(number, fmt.Sprint(i)))
	}
	return list
}

func TestOldMessagesArePurged(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		const stranger, renamed = "6285550001", "6285550002"
		d.send(append(texts(ayu, 2*purgeBatch+1), text(stranger, "hi"), text(renamed, "hi"))...)
		d.patch(renamed, PhonePatch{Delay: new(time.Second)})
		_, err := d.network.SendAs(t.Context(), "test", ayu, Outgoing{Content: withFile(parley.File{}, "a file")})
		must(t, err)
		cursor, err := d.network.Cursor(t.Context(), "test")
		must(t, err)
		waitFor(t, time.Second)
		for _, test := range []struct {
			after    time.Duration
			messages int
		}{
			{retention - time.Minute, 2*purgeBatch + 4},
			{retention + time.Minute, 0},
		} {
			now := time.Now().Add(test.after)
			must(t, d.network.purge(t.Context(), now))
			must(t, d.network.sweepPhones(t.Context(), now))
			if messages := rows(t, d.network, "messages"); messages != test.messages {
				t.Errorf("after %s there are %d messages", test.after, messages)
			}
		}
		phones, err := d.network.Phones(t.Context(), "test")
		must(t, err)
		if len(phones) != 3 || phones[2].Number != renamed {
			t.Errorf("the phones are %+v, want all but the one that nothing distinguishes", phones)
		}
		d.send(text(ayu, "later"))
		expectBodies(t, d.network, ayu, Query{After: cursor}, "later")
	})
}

func TestLongChatsAreTrimmed(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		must(t, d.network.db.Write(t.Context(), func(tx *sqldb.Tx) error {
			_, err := tx.Exec(`WITH RECURSIVE i (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM i WHERE n < $1)
				INSERT INTO messages (seq, phone, from_phone, id, kind, body, reply_to, at)
				SELECT n + 1, (SELECT id FROM phones WHERE number = $2), 0, 'M' || n, 'text', CAST(n AS TEXT), '', CAST($3 AS BIGINT) FROM i`,
				maxMessages+purgeBatch+3, ayu, time.Now().UnixMilli())
			d.network.seq.Store(maxMessages + purgeBatch + 4)
			return err
		}))
		d.send(append(texts(budi, 5), text(ayu, "newest"))...)
		waitFor(t, 2*purgeEvery)
		if count := rows(t, d.network, "messages"); count != maxMessages+5 {
			t.Errorf("there are %d messages", count)
		}
		if got := d.messages(ayu, Query{Limit: 1}); got[0].Body != fmt.Sprint(purgeBatch+5) {
			t.Errorf("the oldest message is %+v", got)
		}
	})
}

// TestIdlePhonesAreNotInMemory sends to many numbers: nothing of them stays in memory.
func TestIdlePhonesAreNotInMemory(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		const phones = 1000
		for i := range phones {
			number := fmt.Sprintf("62855%06d", i)
			d.send(text(number, "hi"))
			must(t, d.session.Typing(t.Context(), parley.NewContactID(number), true))
		}
		go d.network.Messages(t.Context(), "test", ayu, Query{Wait: time.Second})
		waitFor(t, 2*purgeEvery)
		must(t, d.session.Typing(t.Context(), parley.NewContactID(ayu), false))
		if got := len(d.receipts(parley.Delivered)); got != phones {
			t.Errorf("%d receipts were reported", got)
		}
		w, err := d.network.world(t.Context(), "test")
		must(t, err)
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.typing)+len(w.waiters)+len(w.pending)+len(w.cursors)+len(d.network.purger.grown) != 0 {
			t.Errorf("in memory are %d, %d, %d, %d and %d",
				len(w.typing), len(w.waiters), len(w.pending), len(w.cursors), len(d.network.purger.grown))
		}
	})
}

// TestRemovedWorldsArePurged resets one channel and deletes another; their rows go, those of a third stay.
func TestRemovedWorldsArePurged(t *testing.T) {
	withDesk(t, func(t *testing.T, d *desk) {
		ctx, n := t.Context(), d.network
		for _, channel := range []parley.ChannelCode{"gone", "stays"} {
			s, err := n.Open(ctx, parley.Channel{Code: channel}, takeAll)
			must(t, err)
			for _, err := range s.Send(ctx, append(texts(ayu, 2*purgeBatch), texts(budi, 10)...)) {
				must(t, err)
			}
			must(t, s.Close())
			_, err = n.SendAs(ctx, channel, ayu, Outgoing{Content: withFile(parley.File{}, "a file")})
			must(t, err)
			must(t, n.AddFault(ctx, channel, Fault{Fault: FaultRefuse}))
		}
		for i := range purgeBatch {
			d.send(text(fmt.Sprintf("62855%06d", i), "hi"))
		}
		must(t, n.Reset(ctx, "test"))
		must(t, n.DeleteChannel(ctx, "gone"))
		synctest.Wait()
		for table, want := range map[string]int{
			"worlds": 2, "phones": 4, "messages": 2*purgeBatch + 11, "events": 1, "faults": 1, "groups": 2,
		} {
			if got := rows(t, n, table); got != want {
				t.Errorf("%s has %d rows, want %d", table, got, want)
			}
		}
		expectBodies(t, n, ayu, Query{})
	})
}

// TestPurgeGoesOnAfterARestart marks a world as removed and ends the program before its rows are deleted.
func TestPurgeGoesOnAfterARestart(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "sandbox.db")
	n := openNetwork(t, path)
	s, err := n.Open(ctx, parley.Channel{Code: "test"}, takeAll)
	must(t, err)
	must(t, s.Send(ctx, texts(ayu, 3))[2])
	w, err := n.world(ctx, "test")
	must(t, err)
	must(t, n.db.Write(ctx, func(tx *sqldb.Tx) error { return markRemoved(tx, w.id.Load()) }))
	must(t, n.Close())

	n = openNetwork(t, path)
	must(t, n.purge(ctx, time.Now()))
	for _, table := range []string{"worlds", "phones", "messages", "groups"} {
		if got := rows(t, n, table); got != 0 {
			t.Errorf("%s has %d rows", table, got)
		}
	}
}
