package keystore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"

	"parley"
)

// TestRemoveDevice removes a device with everything of it, and nothing of another one. A new device under the same
// address has nothing of the old one.
func TestRemoveDevice(t *testing.T) {
	s, ours, _ := fresh(t)
	other := linked(t, s, friend)
	ctx := t.Context()
	for _, d := range []interface {
		PutIdentity(context.Context, string, [32]byte) error
	}{ours.Identities, other.Identities} {
		must(t, d.PutIdentity(ctx, "1:1", [32]byte{1}))
	}
	_, err := ours.PreKeys.GetOrGenPreKeys(ctx, 5)
	must(t, err)
	putSession(t, ours, "1:1", "session")
	must(t, s.RemoveDevice(ctx, number))
	must(t, s.RemoveDevice(ctx, number))
	if d, err := s.Device(ctx, number); d != nil || err != nil {
		t.Errorf("it is there: %v", err)
	}
	for _, table := range []string{"states", "prekeys", "devices"} {
		var left int
		must(t, s.db.Read(t.Context()).QueryRow(`SELECT count(*) FROM `+table, nil, &left))
		if want := map[string]int{"states": 1, "prekeys": 0, "devices": 1}[table]; left != want {
			t.Errorf("%d rows are left in %s, not %d", left, table, want)
		}
	}
	_, err = ours.Sessions.GetSession(ctx, "1:1")
	must(t, err)
	if err := ours.Sessions.PutSession(ctx, "1:1", []byte("late")); err == nil || errors.Is(err, errLost) {
		t.Error("something was kept of a device that is no more")
	}
	relinked := linked(t, s, number)
	if has, err := relinked.Sessions.HasSession(ctx, "1:1"); has || err != nil {
		t.Errorf("the new device has a session of the old one (%v)", err)
	}
	if ok, err := other.Identities.IsTrustedIdentity(ctx, "1:1", [32]byte{2}); ok || err != nil {
		t.Errorf("the other device lost what it knew (%v)", err)
	}
}

// TestSameAddress links another device that gets the address of one before it: nothing of that is left.
func TestSameAddress(t *testing.T) {
	s, old, _ := fresh(t)
	putSession(t, old, "1:1", "session")
	relinked := linked(t, s, number)
	if *relinked.NoiseKey.Priv == *old.NoiseKey.Priv {
		t.Error("it has the old device's keys")
	}
	if has, err := relinked.Sessions.HasSession(t.Context(), "1:1"); has || err != nil {
		t.Errorf("it has a session of the old device (%v)", err)
	}
	relinked.PushName = "Shop"
	putSession(t, relinked, "2:2", "session")
	must(t, relinked.Save(t.Context()))
	if has, err := again(t, s, number).Sessions.HasSession(t.Context(), "2:2"); !has || err != nil {
		t.Errorf("saving it again lost a session (%v)", err)
	}
}

// TestTwoClientsOfADevice shares what is in memory between the clients of a device: while one is being ended, the
// next has begun.
func TestTwoClientsOfADevice(t *testing.T) {
	s, first, _ := fresh(t)
	second := again(t, s, number)
	ctx := t.Context()
	if has, err := second.Sessions.HasSession(ctx, "1:1"); has || err != nil {
		t.Fatal(has, err)
	}
	putSession(t, first, "1:1", "a")
	if has, err := second.Sessions.HasSession(ctx, "1:1"); !has || err != nil {
		t.Errorf("the second does not see what the first kept (%v)", err)
	}
}

// TestChannels keeps which device a channel has.
func TestChannels(t *testing.T) {
	s, _, path := fresh(t)
	ctx := t.Context()
	if c, err := s.Channel(ctx, "shop"); c != (Channel{}) || err != nil {
		t.Errorf("of a new channel there is %+v, %v", c, err)
	}
	must(t, s.PutChannel(ctx, "shop", Channel{JID: number}))
	must(t, s.PutChannel(ctx, "gone", Channel{JID: friend}))
	must(t, s.PutChannel(ctx, "gone", Channel{Status: parley.ChannelLoggedOut, Reason: "Bye."}))
	must(t, s.Close())
	s = open(t, path)
	for code, want := range map[parley.ChannelCode]Channel{"shop": {JID: number}, "gone": {Status: parley.ChannelLoggedOut, Reason: "Bye."}} {
		if c, err := s.Channel(ctx, code); c != want || err != nil {
			t.Errorf("of %s there is %+v, %v", code, c, err)
		}
	}
	must(t, s.DeleteChannel(ctx, "gone"))
	if c, err := s.Channel(ctx, "gone"); c != (Channel{}) || err != nil {
		t.Errorf("of a forgotten channel there is %+v, %v", c, err)
	}
}

// TestMemoryIsBounded remembers what is used and forgets the rest, and reads from the database what it forgot.
func TestMemoryIsBounded(t *testing.T) {
	var c cache
	large := make([]byte, 100_000)
	of := func(i int) key { return key{1, sessionKind, fmt.Sprint(i)} }
	const many = 500 // several times what there is room for
	for i := range many {
		c.set(of(i), entry{value: large})
		c.get(of(0))
	}
	held := 0
	c.each(func(_ key, e entry) { held += len(e.value) })
	if held > cacheBytes {
		t.Errorf("%d bytes are held", held)
	}
	if _, known := c.get(of(0)); !known {
		t.Error("what was used all the time is forgotten")
	}
	if _, known := c.get(of(1)); known {
		t.Error("what was not used is remembered")
	}
}

// TestFillDoesNotUndo leaves what was written while something older was being read.
func TestFillDoesNotUndo(t *testing.T) {
	var c cache
	k := key{1, sessionKind, "a"}
	mark := c.version(k)
	c.set(k, entry{value: []byte("new")})
	c.fill(k, []byte("old"), mark)
	if e, _ := c.get(k); string(e.value) != "new" {
		t.Errorf("it is %q", e.value)
	}
	mark = c.version(k)
	c.removeMatching(func(key) bool { return true })
	c.fill(k, []byte("old"), mark)
	if _, known := c.get(k); known {
		t.Error("what was removed is back")
	}
}

// TestLocksEnd gives a session on when nobody says that it is not needed any more, but not before.
func TestLocksEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l sessionLocks
		k := key{1, sessionKind, "a"}
		first, second := &holder{timed: true}, &holder{timed: true}
		must(t, l.acquire(t.Context(), first, k))
		began := time.Now()
		must(t, l.acquire(t.Context(), second, k))
		if waited := time.Since(began); waited != lockTimeout {
			t.Errorf("it took %v", waited)
		}
		if err := l.verify(first, k); !errors.Is(err, errLost) {
			t.Errorf("the first one may write: %v", err)
		}
		l.release(first, k)
		must(t, l.verify(second, k)) // what the first one gives back is not the second one's
		l.release(second, k)
		by := &holder{}
		must(t, l.acquire(t.Context(), by, k))
		must(t, l.acquire(t.Context(), by, k)) // again by the same
		began = time.Now()
		if err := l.acquire(t.Context(), first, k); !errors.Is(err, errLocked) {
			t.Errorf("what a send holds was given away: %v", err)
		}
		if waited := time.Since(began); waited != maxLockWait {
			t.Errorf("it took %v", waited)
		}
		l.releaseAll(by)
		must(t, l.acquire(t.Context(), &holder{}, k))
	})
}

// TestWriteUnderALostLock refuses what was computed from a session that somebody else has moved on since.
func TestWriteUnderALostLock(t *testing.T) {
	s, ours, _ := fresh(t)
	const address = "1_1:0"
	slow, quick := s.StanzaContext(t.Context()), s.StanzaContext(t.Context())
	_, err := ours.Sessions.GetSession(slow, address)
	must(t, err)
	s.locks.mu.Lock()
	for _, is := range s.locks.held {
		is.until = time.Now() // it stalled for longer than its lock lasts
	}
	s.locks.mu.Unlock()
	_, err = ours.Sessions.GetSession(quick, address)
	must(t, err)
	if err := ours.Sessions.PutSession(slow, address, []byte("slow")); !errors.Is(err, errLost) {
		t.Errorf("a write while another one has the lock: %v", err)
	}
	must(t, ours.Sessions.PutSession(quick, address, []byte("quick")))
	if err := ours.Sessions.PutSession(slow, address, []byte("slow")); !errors.Is(err, errLost) {
		t.Errorf("a write after another one: %v", err)
	}
	if value, err := ours.Sessions.GetSession(quick, address); err != nil || string(value) != "quick" {
		t.Errorf("the session is %q, %v", value, err)
	}
}

// TestManyDevicesShareCommits writes for many devices at once in few transactions.
func TestManyDevicesShareCommits(t *testing.T) {
	const devices, messages = 20, 20
	s := open(t, filepath.Join(t.TempDir(), "keys.db"))
	var all []*store.Device
	for i := range devices {
		all = append(all, linked(t, s, types.JID{User: fmt.Sprint(62811, i), Server: types.DefaultUserServer, Device: 1}))
	}
	began := batches(t, s)
	done := make(chan error)
	for _, d := range all {
		go func() {
			var err error
			for n := range messages {
				if err == nil {
					err = d.SenderKeys.PutSenderKey(context.Background(), "group", fmt.Sprint(n), []byte("key"))
				}
			}
			done <- err
		}()
	}
	for range devices {
		must(t, <-done)
	}
	if commits := batches(t, s) - began; commits > devices*messages*3/4 {
		t.Errorf("%d commits for %d writes", commits, devices*messages)
	}
}

// TestSecretsAreForgotten removes the secrets of messages after their time, however many, and no others.
func TestSecretsAreForgotten(t *testing.T) {
	s, ours, _ := fresh(t)
	ctx := t.Context()
	chat := types.NewJID("6281234567890", types.DefaultUserServer)
	put := func(prefix string, n int, age time.Duration) {
		secrets := make([]store.MessageSecretInsert, n)
		for i := range secrets {
			secrets[i] = store.MessageSecretInsert{Chat: chat, Sender: chat, ID: fmt.Sprint(prefix, i), Secret: []byte("secret")}
		}
		must(t, ours.MsgSecrets.PutMessageSecrets(ctx, secrets))
		must(t, s.exec(ctx, "age", `UPDATE message_secrets SET day = $1 WHERE id LIKE $2`, toDay(time.Now().Add(-age)), prefix+"%"))
	}
	put("old", 2*pruneBatch+5, secretRetention+48*time.Hour)
	put("young", 3, secretRetention-48*time.Hour)
	must(t, ours.EventBuffer.DeleteOldBufferedHashes(ctx))
	for id, kept := range map[string]bool{"old0": false, fmt.Sprint("old", 2*pruneBatch): false, "young0": true, "young2": true} {
		if secret, _, err := ours.MsgSecrets.GetMessageSecret(ctx, chat, chat, id); err != nil || (secret != nil) != kept {
			t.Errorf("%s is kept: %v, %v", id, secret != nil, err)
		}
	}
}

// TestVersionComesWithItsSums looks at the settings at the moment when whatsmeow has given a version and not yet
// its sums: it must be the version before, of which the sums are there.
func TestVersionComesWithItsSums(t *testing.T) {
	_, ours, _ := fresh(t)
	ctx, settings := t.Context(), ours.AppState
	index := make([]byte, 32)
	sums := func(value byte) []store.AppStateMutationMAC {
		return []store.AppStateMutationMAC{{IndexMAC: index, ValueMAC: append(make([]byte, 31), value)}}
	}
	wants := func(when string, version uint64, value byte) {
		t.Helper()
		got, hash, err := settings.GetAppStateVersion(ctx, "regular")
		must(t, err)
		sum, err := settings.GetAppStateMutationMAC(ctx, "regular", index)
		must(t, err)
		if got != version || hash[0] != value || (version > 0) != (sum != nil) || sum != nil && sum[31] != value {
			t.Errorf("%s there is version %d with the hash %d and the sum %v", when, got, hash[0], sum)
		}
	}
	must(t, settings.PutAppStateVersion(ctx, "regular", 1, [128]byte{7}))
	wants("before the first sums", 0, 0)
	must(t, settings.DeleteAppStateMutationMACs(ctx, "regular", nil))
	must(t, settings.PutAppStateMutationMACs(ctx, "regular", 1, sums(7)))
	wants("with the first sums", 1, 7)
	must(t, settings.PutAppStateVersion(ctx, "regular", 2, [128]byte{8}))
	wants("before the second sums", 1, 7)
	must(t, settings.PutAppStateMutationMACs(ctx, "regular", 2, sums(8)))
	wants("with the second sums", 2, 8)
	must(t, settings.PutAppStateVersion(ctx, "regular", 3, [128]byte{8})) // which takes nothing back and adds nothing
	must(t, settings.PutAppStateMutationMACs(ctx, "regular", 3, nil))
	wants("without new sums", 3, 8)
}
