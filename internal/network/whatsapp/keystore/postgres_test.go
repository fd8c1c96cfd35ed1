package keystore

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mau.fi/libsignal/protocol"
	"go.mau.fi/libsignal/session"
	"go.mau.fi/whatsmeow/store"
	waLog "go.mau.fi/whatsmeow/util/log"

	"parley"
	"parley/internal/postgrestest"
	"parley/internal/store/sqldb"
)

// TestPostgres runs all tests of the package on PostgreSQL, those of several nodes too.
func TestPostgres(t *testing.T) { postgrestest.Again(t) }

// twoNodes opens a store twice, as two nodes do.
func twoNodes(t *testing.T) (a, b *Store) {
	t.Helper()
	if !postgrestest.Running() {
		t.Skip("several nodes need PostgreSQL: TestPostgres runs it")
	}
	path := filepath.Join(t.TempDir(), "shared")
	return open(t, path), open(t, path)
}

func TestTables(t *testing.T) {
	if !postgrestest.Running() {
		t.Skip("TestPostgres runs it")
	}
	list := func(path string) func(string) ([]string, error) {
		s, err := openWith(t.Context(), path, nil, waLog.Noop, 1)
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		return func(query string) ([]string, error) {
			return sqldb.Collect(s.db.Read(t.Context()), sqldb.ScanOne[string], query)
		}
	}
	postgrestest.CompareTables(t, list("memory:"+t.Name()), list(postgrestest.Path(t, "tables")))
}

// TestDeviceMoves moves a device between two nodes, by a release or by the end of the lease of the first: no key is used twice,
// none is skipped after a release, and the recipient reads all.
func TestDeviceMoves(t *testing.T) {
	a, b := twoNodes(t)
	linked(t, a, number)
	theirs := linked(t, a, friend)
	greet(t, again(t, a, number), theirs)
	next := uint32(0)
	for round := range 12 {
		at := []*Store{a, b}[round%2]
		ours := again(t, at, number)
		for i := range 3 + round {
			text := fmt.Sprint("message ", round, i)
			m := write(t.Context(), t, at, ours, theirs, text)
			if got := m.counter(t); got != next {
				t.Errorf("round %d: key %d, want %d", round, got, next)
			}
			next++
			if got, err := decrypt(t.Context(), theirs, ours, m, sha256.Sum256(m.bytes)); err != nil || got != text {
				t.Fatalf("round %d: %q, %v", round, got, err)
			}
		}
		must(t, at.Release(t.Context(), number))
	}
	for round := range 6 {
		at := []*Store{a, b}[round%2]
		ours := again(t, at, number)
		for i := range 3 + round {
			text := fmt.Sprint("message of a node that ended ", round, i)
			m := write(t.Context(), t, at, ours, theirs, text)
			if got := m.counter(t); got < next {
				t.Errorf("round %d: key %d was used or skipped before", round, got)
			} else {
				next = got + 1
			}
			if got, err := decrypt(t.Context(), theirs, ours, m, sha256.Sum256(m.bytes)); err != nil || got != text {
				t.Fatalf("round %d: %q, %v", round, got, err)
			}
		}
		endLease(at, ours)
	}
}

// endLease releases a device at a node that cannot write any more: what is only in memory is lost.
func endLease(s *Store, d *store.Device) {
	own := d.LIDs.(*device)
	s.mu.Lock()
	delete(s.devices, d.ID.String())
	s.mu.Unlock()
	own.released.Store(true)
	s.cache.removeMatching(func(k key) bool { return k.device == own.id })
}

// TestReleasedDeviceDoesNotWrite: a client that outlived its session writes nothing, and leaves nothing in memory that another
// node may change.
func TestReleasedDeviceDoesNotWrite(t *testing.T) {
	a, b := twoNodes(t)
	ctx := t.Context()
	first := linked(t, a, number)
	theirs := linked(t, b, friend)
	greet(t, first, theirs)
	write(ctx, t, a, first, theirs, "hello") // the next keys are reserved
	must(t, first.LIDs.PutLIDMapping(ctx, real, victim))
	must(t, first.Identities.PutIdentity(ctx, "1:0", [32]byte{1}))
	sending, done := a.SendContext(ctx)
	defer done()
	held, err := first.Sessions.GetSession(sending, toAddress(theirs).String())
	must(t, err)
	must(t, a.Release(ctx, number))

	for what, err := range map[string]error{
		"a session":   first.Sessions.PutSession(sending, toAddress(theirs).String(), held),
		"an identity": first.Identities.PutIdentity(ctx, "1:0", [32]byte{3}),
		"a mapping":   first.LIDs.PutLIDMapping(ctx, attacker, victim),
		"a contact":   first.Contacts.PutContactName(ctx, victim, "A", "B"),
		"a text":      first.EventBuffer.PutBufferedEvent(ctx, [32]byte{1}, []byte("x"), time.Now()),
		"a key":       func() error { _, err := first.PreKeys.GenOnePreKey(ctx); return err }(),
	} {
		if parley.ToCode(err) != parley.Unavailable {
			t.Errorf("%s was written: %v", what, err)
		}
	}
	if got := readLID(t, first, victim); got != real {
		t.Errorf("the old client knows %s", got)
	}
	second := again(t, b, number)
	must(t, second.LIDs.PutLIDMapping(ctx, attacker, victim))
	must(t, second.Identities.PutIdentity(ctx, "1:0", [32]byte{2}))
	must(t, b.Release(ctx, number))

	third := again(t, a, number)
	if got := readLID(t, third, victim); got != attacker {
		t.Errorf("back at the first node the address is %s", got)
	}
	if trusted, err := third.Identities.IsTrustedIdentity(ctx, "1:0", [32]byte{2}); err != nil || !trusted {
		t.Errorf("back at the first node the identity is not known (%v)", err)
	}
}

// TestReleaseAmidSends releases a device while it sends: whatever was encrypted before the release, the next node uses later
// keys.
func TestReleaseAmidSends(t *testing.T) {
	a, b := twoNodes(t)
	ctx := t.Context()
	linked(t, a, number)
	theirs := linked(t, b, friend)
	greet(t, again(t, a, number), theirs)
	used := map[uint32]string{}
	var mu sync.Mutex
	encrypt := func(at *Store, ours *store.Device, when string) error {
		counter, err := tryWrite(t, at, ours, theirs)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if before, again := used[counter]; again {
			t.Errorf("%s: key %d was used %s", when, counter, before)
		}
		used[counter] = when
		return nil
	}
	for round := range 20 {
		at, next := a, b
		if round%2 == 1 {
			at, next = b, a
		}
		ours := again(t, at, number)
		var sending sync.WaitGroup
		sending.Go(func() {
			for encrypt(at, ours, fmt.Sprint("before move ", round)) == nil {
			}
		})
		time.Sleep(time.Duration(round) * time.Millisecond / 2)
		must(t, at.Release(ctx, number))
		moved := again(t, next, number)
		for range 3 {
			must(t, encrypt(next, moved, fmt.Sprint("after move ", round)))
		}
		sending.Wait()
	}
	if len(used) < 60 {
		t.Errorf("only %d keys were used", len(used))
	}
}

// tryWrite is write for a device that may be released.
func tryWrite(t *testing.T, s *Store, from, to *store.Device) (counter uint32, err error) {
	ctx, done := s.SendContext(t.Context())
	defer done()
	_, cached, err := from.WithCachedSessions(ctx, []string{toAddress(to).String()})
	if err != nil {
		return 0, err
	}
	builder := session.NewBuilderFromSignal(from, toAddress(to), store.SignalProtobufSerializer)
	message, err := session.NewCipher(builder, toAddress(to)).Encrypt(cached, []byte("hello"))
	if err != nil {
		return 0, err
	}
	if err := from.PutCachedSessions(cached); err != nil {
		return 0, err
	}
	return sealed{message.Type() == protocol.PREKEY_TYPE, message.Serialize()}.counter(t), nil
}

// TestPlans checks that PostgreSQL reads large tables by an index.
func TestPlans(t *testing.T) {
	s, _ := twoNodes(t)
	ctx := t.Context()
	must(t, s.db.Write(ctx, func(tx *sqldb.Tx) error {
		for _, statement := range []string{
			`SET LOCAL session_replication_role = replica`, // no triggers: they make it slow
			`INSERT INTO devices (id, jid, lid, registration, noise_key, identity_key, signed_key, signed_key_id, signature, adv_secret, account,
				platform, business_name, push_name, lid_migration_at, companion_nonce)
				SELECT i, i, '', 1, '', '', '', 1, '', '', '', '', '', '', 0, '' FROM generate_series(1, 1000) i`,
			`INSERT INTO states SELECT 1 + i % 1000, 1 + i % 3, 'n' || i, '' FROM generate_series(1, 20000) i`,
			`INSERT INTO prekeys SELECT 1 + i % 1000, i, '', i % 2 FROM generate_series(1, 20000) i`,
			`INSERT INTO people SELECT 1 + i % 1000, i, i FROM generate_series(1, 20000) i`,
			`INSERT INTO contacts (device, jid) SELECT 1 + i % 1000, i || '@s.whatsapp.net' FROM generate_series(1, 20000) i`,
			`INSERT INTO listed SELECT 1 + i % 1000, i, 'N' || i, 0 FROM generate_series(1, 20000) i`,
			`INSERT INTO message_secrets SELECT 1 + i % 1000, i, i, i, '', i FROM generate_series(1, 20000) i`,
			`INSERT INTO decrypted SELECT 1 + i % 1000, int8send(i), '', i, i FROM generate_series(1, 20000) i`,
			`ANALYZE`,
		} {
			if err := tx.Do(statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	}))
	for _, query := range []string{
		`SELECT value FROM states WHERE device = 1 AND kind = 1 AND name = 'n1'`,
		`SELECT count(*) FROM states WHERE device = 1 AND kind IN (1, 2, 3) AND name >= 'n1:' AND name < 'n1;'`,
		`DELETE FROM states WHERE device = 1 AND kind = 1 AND name >= 'a' AND name < 'b'`,
		`SELECT id, key FROM prekeys WHERE device = 1 AND uploaded = 0 ORDER BY id LIMIT 50`,
		`SELECT coalesce(max(id), 0) FROM prekeys WHERE device = 1`,
		`SELECT lid FROM people WHERE device = 1 AND number = '5'`,
		`SELECT secret, sender FROM message_secrets WHERE device = 1 AND id = '5' AND chat IN ('5', '6') AND sender IN ('5', '6')`,
		`DELETE FROM message_secrets WHERE (device, id, chat, sender) IN
			(SELECT device, id, chat, sender FROM message_secrets WHERE day < 10 LIMIT 1000)`,
		`DELETE FROM decrypted WHERE at < 10`,
		`UPDATE decrypted SET plaintext = NULL WHERE device = 1 AND hash = ''`,
		`SELECT number, name, business FROM listed WHERE device = 1 ORDER BY name, number LIMIT 50 OFFSET 10`,
		`DELETE FROM devices WHERE jid = '5'`,
		strings.NewReplacer("$1", "1", "$2", "'5'", "$3", "'5@s.whatsapp.net'").Replace(relist),
	} {
		plan, err := explain(t, s, query)
		must(t, err)
		if strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s:\n%s", query, plan)
		}
	}
}

func explain(t *testing.T, s *Store, query string) (string, error) {
	var lines []string
	err := s.db.Write(t.Context(), func(tx *sqldb.Tx) (err error) {
		lines, err = sqldb.Collect(tx.Conn, sqldb.ScanOne[string], `EXPLAIN `+query)
		return err
	})
	return strings.Join(lines, "\n"), err
}
