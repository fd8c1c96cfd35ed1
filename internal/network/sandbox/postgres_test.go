package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/network"
	"parley/internal/postgrestest"
	"parley/internal/store/sqldb"
)

// TestPostgres runs all tests of the package on PostgreSQL, those of several nodes too.
func TestPostgres(t *testing.T) { postgrestest.Again(t) }

// twoNodes opens a network twice, as two nodes do.
func twoNodes(t *testing.T) (a, b *Network) {
	t.Helper()
	if !postgrestest.Running() {
		t.Skip("several nodes need PostgreSQL: TestPostgres runs it")
	}
	path := filepath.Join(t.TempDir(), "shared")
	return openNetwork(t, path), openNetwork(t, path)
}

func TestTables(t *testing.T) {
	if !postgrestest.Running() {
		t.Skip("TestPostgres runs it")
	}
	list := func(path string) func(string) ([]string, error) {
		n, err := openWith(t.Context(), path, nil, slog.New(slog.DiscardHandler), 1)
		must(t, err)
		t.Cleanup(func() { n.Close() })
		return func(query string) ([]string, error) {
			return sqldb.Collect(n.db.Read(t.Context()), sqldb.ScanOne[string], query)
		}
	}
	postgrestest.CompareTables(t, list("memory:"+t.Name()), list(postgrestest.Path(t, "tables")), "counter")
}

// openAt opens the session of the channel "test" at a node.
func openAt(t *testing.T, n *Network, sink network.Sink) *session {
	t.Helper()
	s, err := n.Open(t.Context(), parley.Channel{Code: "test"}, sink)
	must(t, err)
	return s.(*session)
}

// notTest is what a node owns that released the channel "test".
func notTest(code parley.ChannelCode) bool { return code != "test" }

// release closes the channel "test" at a node, as for another one.
func release(t *testing.T, n *Network, s network.Session) {
	t.Helper()
	must(t, s.Close())
	must(t, n.Drop(t.Context(), notTest))
}

// TestWorldMoves moves a channel between two nodes while another one stays. Positions of its phone only grow, cursors work
// across moves, and every receipt is reported once.
func TestWorldMoves(t *testing.T) {
	a, b := twoNodes(t)
	ctx := t.Context()
	stays, err := b.Open(ctx, parley.Channel{Code: "stays"}, takeAll)
	must(t, err)
	var mu sync.Mutex
	receipts := map[parley.MessageID]int{}
	sink := func(_ context.Context, e network.Event) error {
		mu.Lock()
		defer mu.Unlock()
		if r, ok := e.(network.Receipt); ok {
			for _, id := range r.IDs {
				receipts[id]++
			}
		}
		return nil
	}
	var want []string
	var sent []parley.MessageID
	var number string
	for round := range 6 {
		n := []*Network{a, b}[round%2]
		s := openAt(t, n, sink)
		if got := readNumber(t, n, "test"); number != "" && got != number {
			t.Errorf("the number is %s, was %s", got, number)
		} else {
			number = got
		}
		for _, err := range stays.Send(ctx, texts(ayu, 3)) {
			must(t, err)
		}
		cursor, err := n.Cursor(ctx, "test")
		must(t, err)
		ms := []*parley.Message{text(ayu, fmt.Sprint(round, "a")), text(ayu, fmt.Sprint(round, "b"))}
		for i, err := range s.Send(ctx, ms) {
			must(t, err)
			sent = append(sent, ms[i].ID)
		}
		expectBodies(t, n, ayu, Query{After: cursor}, ms[0].Content.Text(), ms[1].Content.Text())
		_, err = n.SendAs(ctx, "test", ayu, Outgoing{Content: parley.Text{Body: fmt.Sprint(round, "c")}})
		must(t, err)
		want = append(want, fmt.Sprint(round, "a"), fmt.Sprint(round, "b"), fmt.Sprint(round, "c"))
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			mu.Lock()
			all := len(receipts) == len(sent)
			mu.Unlock()
			if all {
				break
			}
		}
		release(t, n, s)
	}
	page, err := a.Chat(ctx, "test", ayu, "", "", 100)
	must(t, err)
	var got []string
	for _, m := range slices.Backward(page.Messages) {
		got = append(got, m.Body)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the chat is %q, want %q", got, want)
	}
	for _, id := range sent {
		if receipts[id] != 1 {
			t.Errorf("%d receipts for a message", receipts[id])
		}
	}
	var seqs, different int
	must(t, a.db.Read(ctx).QueryRow(`SELECT count(*), count(DISTINCT seq) FROM messages`, nil, &seqs, &different))
	if seqs != different || seqs != 6*6 {
		t.Errorf("%d messages have %d positions", seqs, different)
	}
}

// TestMemoryIsDropped changes a world at one node while another one still has it in memory.
func TestMemoryIsDropped(t *testing.T) {
	a, b := twoNodes(t)
	ctx := t.Context()
	s := openAt(t, a, takeAll)
	must(t, s.Send(ctx, []*parley.Message{text(ayu, "old")})[0])
	must(t, s.Close()) // and nobody calls Drop

	s = openAt(t, b, takeAll)
	must(t, b.AddFault(ctx, "test", Fault{Fault: FaultRefuse, Times: 3}))
	must(t, s.Logout(ctx))
	release(t, b, s)

	s = openAt(t, a, takeAll)
	if faults, err := a.Faults(ctx, "test"); err != nil || len(faults) != 1 || faults[0].Times != 3 {
		t.Errorf("the faults are %+v (%v)", faults, err)
	}
	if err := s.Send(ctx, []*parley.Message{text(ayu, "no")})[0]; err == nil {
		t.Error("the account is not logged out")
	}
	release(t, a, s)
	expectBodies(t, a, ayu, Query{}, "old")

	s = openAt(t, b, takeAll)
	must(t, b.Reset(ctx, "test"))
	release(t, b, s)
	s = openAt(t, a, takeAll)
	expectBodies(t, a, ayu, Query{})
	must(t, s.Send(ctx, []*parley.Message{text(ayu, "new")})[0])
	expectBodies(t, a, ayu, Query{}, "new")
	if faults, err := a.Faults(ctx, "test"); err != nil || len(faults) != 0 {
		t.Errorf("the faults of the old world are there: %v (%v)", faults, err)
	}
	release(t, a, s)
}

// TestDropEndsWrites: what used the world before cannot write any more, and requests that wait end.
func TestDropEndsWrites(t *testing.T) {
	a, _ := twoNodes(t)
	ctx := t.Context()
	s := openAt(t, a, takeAll)
	must(t, s.Send(ctx, []*parley.Message{text(ayu, "hi")})[0])
	if err := a.Drop(ctx, notTest); err == nil {
		t.Error("a world with an open session was dropped")
	}
	w, err := a.world(ctx, "test")
	must(t, err)
	p, err := w.find(ctx, ayu)
	must(t, err)
	must(t, s.Close())
	waited := make(chan error)
	cursor, err := a.Cursor(ctx, "test")
	must(t, err)
	go func() {
		_, err := a.Messages(ctx, "test", ayu, Query{After: cursor, Wait: time.Minute})
		waited <- err
	}()
	for waiting := 0; waiting == 0; time.Sleep(time.Millisecond) {
		w.mu.Lock()
		waiting = len(w.waiters)
		w.mu.Unlock()
	}
	must(t, a.Drop(ctx, notTest))
	if err := <-waited; parley.ToCode(err) != parley.Unavailable {
		t.Errorf("a waiting request got %v", err)
	}
	err = w.write(ctx, "late", func(tx *sqldb.Tx) error { return w.addEvent(tx, p, event{Type: messageEvent}) })
	if parley.ToCode(err) != parley.Unavailable {
		t.Errorf("a late write got %v", err)
	}
	if again, err := a.world(ctx, "test"); err != nil || again == w {
		t.Errorf("the world was not loaded again (%v)", err)
	}
}

// TestNodesCreateAtOnce: two nodes that create the same world or phone get the same one, and other worlds other numbers.
func TestNodesCreateAtOnce(t *testing.T) {
	a, b := twoNodes(t)
	const worlds = 10
	numbers := map[*Network][]string{a: make([]string, worlds), b: make([]string, worlds)}
	var all sync.WaitGroup
	for n, list := range numbers {
		all.Go(func() {
			for i := range list {
				code := parley.ChannelCode(fmt.Sprint("w", i))
				for phone := range 5 {
					if _, err := n.Phone(t.Context(), code, fmt.Sprint("628555000", phone)); err != nil {
						t.Error(err)
					}
				}
				list[i] = readNumber(t, n, code)
			}
		})
	}
	all.Wait()
	if !slices.Equal(numbers[a], numbers[b]) {
		t.Errorf("the numbers are %q and %q", numbers[a], numbers[b])
	}
	slices.Sort(numbers[a])
	if different := slices.Compact(numbers[a]); len(different) != worlds {
		t.Errorf("the numbers are %q", different)
	}
	if got := rows(t, a, "worlds"); got != worlds {
		t.Errorf("there are %d worlds", got)
	}
	if got := rows(t, a, "phones"); got != worlds*(2+5) {
		t.Errorf("there are %d phones", got)
	}
}

// TestSeqBlocks assigns more positions than a block has, at two nodes at once.
func TestSeqBlocks(t *testing.T) {
	a, b := twoNodes(t)
	var mu sync.Mutex
	used := map[int64]bool{}
	var both sync.WaitGroup
	for _, n := range []*Network{a, b} {
		both.Go(func() {
			for range 5 {
				err := n.db.Write(t.Context(), func(tx *sqldb.Tx) error {
					for last := int64(0); last < blockSize/2; last++ {
						seq, err := n.nextSeq(tx)
						if err != nil {
							return err
						}
						mu.Lock()
						if used[seq] {
							t.Errorf("position %d was used twice", seq)
						}
						used[seq] = true
						mu.Unlock()
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
	before := a.seq.Load()
	a.block.until = time.Now().Add(-time.Second)
	must(t, a.db.Write(t.Context(), func(tx *sqldb.Tx) error {
		seq, err := a.nextSeq(tx)
		if seq < before+blockSize/2 {
			t.Errorf("an old block was used: %d after %d", seq, before)
		}
		return err
	}))
}

// TestSeqBlockOfLostTransaction has a transaction fail that took a block. PostgreSQL may give such a block again after a crash.
func TestSeqBlockOfLostTransaction(t *testing.T) {
	n, _ := twoNodes(t)
	lost := errors.New("lost")
	var taken int64
	err := n.db.Write(t.Context(), func(tx *sqldb.Tx) error {
		if err := n.takeBlock(tx); err != nil {
			return err
		}
		taken = n.block.last
		return lost
	})
	if !errors.Is(err, lost) {
		t.Fatal(err)
	}
	for range 2 {
		var seq int64
		must(t, n.db.Write(t.Context(), func(tx *sqldb.Tx) (err error) {
			seq, err = n.nextSeq(tx)
			return err
		}))
		if seq <= taken || seq > taken+blockSize { // the next block, and the same one both times
			t.Errorf("position %d after a lost block that ends at %d", seq, taken)
		}
	}
}

// TestNodesPurgeAtOnce runs every purge at both nodes. A sweep at a node leaves the worlds of others alone.
func TestNodesPurgeAtOnce(t *testing.T) {
	a, b := twoNodes(t)
	ctx := t.Context()
	s := openAt(t, a, takeAll)
	for i := range 3 {
		for _, err := range s.Send(ctx, texts(fmt.Sprint("628555000", i), purgeBatch)) {
			must(t, err)
		}
	}
	_, err := b.Phone(ctx, "other", "6285550009")
	must(t, err)
	later := time.Now().Add(retention + time.Minute)
	var both sync.WaitGroup
	for _, n := range []*Network{a, b} {
		both.Go(func() {
			for range 10 {
				if err := n.purge(ctx, later); err != nil && !errors.Is(err, errPurging) {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
	must(t, a.purge(ctx, later))
	if got := rows(t, a, "messages"); got != 0 {
		t.Errorf("there are %d messages", got)
	}
	must(t, b.sweepPhones(ctx, later))
	if got := rows(t, a, "phones"); got != 2+3+2 {
		t.Errorf("after a sweep at the other node there are %d phones", got)
	}
	must(t, a.sweepPhones(ctx, later))
	if got := rows(t, a, "phones"); got != 2+2 {
		t.Errorf("after a sweep there are %d phones", got)
	}
}

// TestPlans checks that PostgreSQL reads a large table by an index, wherever a statement is for one world, phone or page.
func TestPlans(t *testing.T) {
	n, _ := twoNodes(t)
	ctx := t.Context()
	must(t, n.db.Write(ctx, func(tx *sqldb.Tx) error {
		for _, statement := range []string{
			`SET LOCAL session_replication_role = replica`, // no triggers: they make it slow
			`INSERT INTO worlds (id, channel, number) SELECT i, 'c' || i, i FROM generate_series(1000, 1500) i`,
			`INSERT INTO phones (id, world, number, name) SELECT i, 1000 + i % 500, 6280000000 + i, 'N' || i FROM generate_series(1000, 12000) i`,
			`INSERT INTO messages (seq, phone, from_phone, id, kind, body, reply_to, at)
				SELECT i, 1000 + i % 10000, i % 2, 'M' || i, 'text', '', '', i FROM generate_series(1000000, 1020000) i`,
			`INSERT INTO events (seq, phone, sender, body, at) SELECT i, 1000 + i % 10000, '', '{}', i FROM generate_series(1000000, 1010000) i`,
			`INSERT INTO groups (world, name, created_at) SELECT 1000 + i % 500, 'G' || i, i FROM generate_series(1, 5000) i`,
			`INSERT INTO members (grp, number) SELECT id, 6280000000 + id FROM groups`,
			`INSERT INTO faults (world, fault, times, contact, kind, reason)
				SELECT 1000 + i % 500, 'refuse', 1, '', '', '' FROM generate_series(1, 5000) i`,
			`ANALYZE`,
		} {
			if err := tx.Do(statement); err != nil {
				return err
			}
		}
		return nil
	}))
	for _, query := range []string{
		`SELECT id, number, logged_out FROM worlds WHERE channel = 'c1001'`,
		`SELECT id FROM worlds WHERE removed = 1 LIMIT 1`,
		fill(contactTotal, 1000), fill(groupTotal, 1000), fill(contactPage, 1000, 50, 10), fill(groupPage, 1000, 50, 10),
		`SELECT ` + phoneColumns + ` FROM phones WHERE world = 1000 AND number = '6280001500'`,
		`SELECT id, number FROM phones WHERE world = 1000 AND number > '' ORDER BY number LIMIT 100`,
		`SELECT ` + messageColumns + ` FROM messages WHERE phone = 1500 AND seq > 0 AND from_phone <= 1 ORDER BY seq LIMIT 200`,
		`SELECT ` + messageColumns + ` FROM messages
			WHERE phone = 1500 AND seq < 9000000 AND (from_phone = 1 OR seq <= 9000000) ORDER BY seq DESC LIMIT 50`,
		`SELECT ` + messageColumns + ` FROM messages` + fill(oneMessage, 1500, "'M1'", 0),
		`SELECT seq FROM messages WHERE phone = 1500 ORDER BY seq DESC LIMIT 1 OFFSET 10000`,
		`SELECT seq, sender, body, at FROM events WHERE phone = 1500 ORDER BY seq LIMIT 16`,
		`SELECT id FROM phones p WHERE world = 1000 AND online = 1 AND ((SELECT min(e.seq) FROM events e WHERE e.phone = p.id) IS NOT NULL OR
			EXISTS (SELECT 1 FROM messages m WHERE m.phone = p.id AND m.seq > p.delivered AND m.from_phone = 0))`,
		`DELETE FROM messages WHERE seq IN (SELECT seq FROM (SELECT seq, at FROM messages ORDER BY seq LIMIT 100) AS oldest WHERE at < 5)`,
		`DELETE FROM messages WHERE seq IN (SELECT seq FROM messages WHERE phone = 1500 AND seq <= 9000000 ORDER BY seq LIMIT 100)`,
		`DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE phone = 1500 LIMIT 100)`,
		`DELETE FROM phones WHERE world = 1000 AND number > '' AND number <= '7' AND created_at < 5 AND changed = 0 AND
			NOT EXISTS (SELECT 1 FROM messages WHERE phone = phones.id) AND NOT EXISTS (SELECT 1 FROM events WHERE phone = phones.id) AND
			number NOT IN (SELECT m.number FROM groups g JOIN members m ON m.grp = g.id WHERE g.world = phones.world)`,
		`SELECT id, fault, times, contact, kind, reason FROM faults WHERE world = 1000 ORDER BY id`,
		`DELETE FROM worlds WHERE id = 1000`,
	} {
		for _, scan := range seqScans(t, n, query) {
			t.Errorf("%s reads all of %s", query, scan)
		}
	}
}

// fill puts values into a statement.
func fill(query string, values ...any) string {
	for i, value := range values {
		query = strings.ReplaceAll(query, fmt.Sprint("$", i+1), fmt.Sprint(value))
	}
	return query
}

// seqScans returns the tables that a statement reads as a whole.
func seqScans(t *testing.T, n *Network, query string) (tables []string) {
	t.Helper()
	var text []byte
	must(t, n.db.Write(t.Context(), func(tx *sqldb.Tx) error {
		var plan any
		if err := tx.QueryRow(`EXPLAIN (FORMAT JSON) `+query, nil, &plan); err != nil {
			return err
		}
		var err error
		text, err = json.Marshal(plan)
		return err
	}))
	var plan any
	must(t, json.Unmarshal(text, &plan))
	var visit func(node any)
	visit = func(node any) {
		switch node := node.(type) {
		case []any:
			for _, child := range node {
				visit(child)
			}
		case map[string]any:
			if node["Node Type"] == "Seq Scan" {
				tables = append(tables, fmt.Sprint(node["Relation Name"]))
			}
			for _, child := range node {
				visit(child)
			}
		}
	}
	visit(plan)
	return tables
}
