package keystore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"

	"go.mau.fi/libsignal/session"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"

	"parley/internal/store/sqldb"
)

var friend = types.JID{User: "6289876543210", Server: types.DefaultUserServer}

// TestNoKeyIsUsedTwice ends the process after any number of messages, between keeping the session and sending:
// the next one never encrypts with a key that was used, and the recipient reads all.
func TestNoKeyIsUsedTwice(t *testing.T) {
	s, ours, path := fresh(t)
	theirs := linked(t, s, friend)
	greet(t, ours, theirs)
	used := map[uint32]bool{}
	for run := range reservedKeys + 3 {
		for i := range run + 1 {
			text := fmt.Sprint("message ", run, i)
			m := write(t.Context(), t, s, ours, theirs, text)
			if n := m.counter(t); used[n] {
				t.Fatalf("run %d, message %d: key %d was used before", run, i, n)
			} else {
				used[n] = true
			}
			if got, err := decrypt(t.Context(), theirs, ours, m, sha256.Sum256(m.bytes)); err != nil || got != text {
				t.Fatalf("run %d, message %d: %q, %v", run, i, got, err)
			}
		}
		crash(t, s)
		s = open(t, path)
		ours, theirs = again(t, s, number), again(t, s, friend)
	}
}

// TestKeysAreReserved commits once for many messages, and skips no key where the store was closed properly.
func TestKeysAreReserved(t *testing.T) {
	s, ours, path := fresh(t)
	theirs := linked(t, s, friend)
	greet(t, ours, theirs)
	write(t.Context(), t, s, ours, theirs, "the first is kept")
	was := batches(t, s)
	for range 4 * reservedKeys {
		write(t.Context(), t, s, ours, theirs, "hello")
	}
	if commits := batches(t, s) - was - 1; commits > 6 {
		t.Errorf("%d commits for %d messages", commits, 4*reservedKeys)
	}
	before := write(t.Context(), t, s, ours, theirs, "before").counter(t)
	must(t, s.Close())
	s = open(t, path)
	after := write(t.Context(), t, s, again(t, s, number), again(t, s, friend), "after").counter(t)
	if after != before+1 {
		t.Errorf("key %d, then key %d", before, after)
	}
}

// batches is how many transactions there were, this one included.
func batches(t *testing.T, s *Store) (n int64) {
	t.Helper()
	must(t, s.db.Write(t.Context(), func(tx *sqldb.Tx) error {
		n = tx.Batch
		return nil
	}))
	return n
}

// TestEncryptingAndDecryptingAtOnce has a session used both ways at the same time: neither undoes what the
// other did.
func TestEncryptingAndDecryptingAtOnce(t *testing.T) {
	const messages = 150
	s, ours, _ := fresh(t)
	theirs := linked(t, s, friend)
	greet(t, ours, theirs)
	hello := write(t.Context(), t, s, ours, theirs, "hello")
	_, err := decrypt(t.Context(), theirs, ours, hello, sha256.Sum256(hello.bytes))
	must(t, err)
	var incoming []sealed
	for i := range messages {
		incoming = append(incoming, write(t.Context(), t, s, theirs, ours, fmt.Sprint("in ", i)))
	}
	var outgoing []sealed
	var both sync.WaitGroup
	both.Go(func() {
		for i := range messages {
			outgoing = append(outgoing, write(context.Background(), t, s, ours, theirs, fmt.Sprint("out ", i)))
		}
	})
	both.Go(func() {
		for i, m := range incoming {
			if text, err := decrypt(context.Background(), ours, theirs, m, sha256.Sum256(m.bytes)); err != nil ||
				text != fmt.Sprint("in ", i) {
				t.Errorf("message %d: %q, %v", i, text, err)
			}
		}
	})
	both.Wait()
	for i, m := range outgoing {
		if text, err := decrypt(t.Context(), theirs, ours, m, sha256.Sum256(m.bytes)); err != nil || text != fmt.Sprint("out ", i) {
			t.Fatalf("message %d: %q, %v", i, text, err)
		}
	}
}

// TestRetriesAtOnce encrypts for one device from several places that hold nothing, as whatsmeow does when a
// device asks for several messages again: no key is used twice.
func TestRetriesAtOnce(t *testing.T) {
	s, ours, _ := fresh(t)
	theirs := linked(t, s, friend)
	greet(t, ours, theirs)
	var mu sync.Mutex
	used := map[uint32]bool{}
	var retries sync.WaitGroup
	for range 4 {
		retries.Go(func() {
			for range 25 {
				builder := session.NewBuilderFromSignal(ours, toAddress(theirs), store.SignalProtobufSerializer)
				m, err := session.NewCipher(builder, toAddress(theirs)).Encrypt(context.Background(), []byte("again"))
				if err != nil {
					t.Error(err)
					return
				}
				n := sealed{true, m.Serialize()}.counter(t)
				mu.Lock()
				if used[n] {
					t.Errorf("key %d was used twice", n)
				}
				used[n] = true
				mu.Unlock()
			}
		})
	}
	retries.Wait()
}

// TestDecryptingIsAllOrNothing leaves everything as it was where the text cannot be kept: the message can be
// decrypted when it comes again. After it was kept, it is found though it cannot be decrypted a second time.
func TestDecryptingIsAllOrNothing(t *testing.T) {
	s, ours, path := fresh(t)
	theirs := linked(t, s, friend)
	greet(t, theirs, ours)
	m := write(t.Context(), t, s, theirs, ours, "hello")
	hash := sha256.Sum256(m.bytes)
	keysBefore, err := ours.PreKeys.UploadedPreKeyCount(t.Context())
	must(t, err)

	must(t, s.exec(t.Context(), "break", `ALTER TABLE decrypted RENAME TO broken`))
	if _, err := decrypt(t.Context(), ours, theirs, m, hash); err == nil {
		t.Fatal("it was kept")
	}
	if has, err := ours.ContainsSession(t.Context(), toAddress(theirs)); has || err != nil {
		t.Errorf("a session is left (%v)", err)
	}
	must(t, s.exec(t.Context(), "fix", `ALTER TABLE broken RENAME TO decrypted`))
	if text, err := decrypt(t.Context(), ours, theirs, m, hash); err != nil || text != "hello" {
		t.Fatalf("the second time it is %q, %v", text, err)
	}
	if keys, err := ours.PreKeys.UploadedPreKeyCount(t.Context()); err != nil || keys != keysBefore-1 {
		t.Errorf("of %d keys %d are left (%v)", keysBefore, keys, err)
	}

	second := write(t.Context(), t, s, theirs, ours, "second")
	_, err = decrypt(t.Context(), ours, theirs, second, sha256.Sum256(second.bytes))
	must(t, err)
	crash(t, s)
	s = open(t, path)
	ours, theirs = again(t, s, number), again(t, s, friend)
	if e, err := ours.EventBuffer.GetBufferedEvent(t.Context(), hash); err != nil || e == nil || string(e.Plaintext) != "hello" {
		t.Errorf("what is kept is %+v, %v", e, err)
	}
	for _, m := range []sealed{m, second} {
		if _, err := decrypt(t.Context(), ours, theirs, m, sha256.Sum256([]byte("other"))); err == nil {
			t.Error("it can be decrypted twice")
		}
	}
	must(t, ours.EventBuffer.ClearBufferedEventPlaintext(t.Context(), hash))
	must(t, s.Close())
	s = open(t, path)
	if e, err := again(t, s, number).EventBuffer.GetBufferedEvent(t.Context(), hash); err != nil || e == nil || e.Plaintext != nil {
		t.Errorf("when it was taken there is %+v, %v", e, err)
	}
}

// TestASendThatFailedGivesBack lets others have sessions that a send read and did not write.
func TestASendThatFailedGivesBack(t *testing.T) {
	s, ours, _ := fresh(t)
	ctx, done := s.SendContext(t.Context())
	_, err := ours.Sessions.GetManySessions(ctx, []string{"1_1:0", "2_1:0"})
	must(t, err)
	short, cancel := context.WithCancel(t.Context())
	other, otherDone := s.SendContext(short)
	defer otherDone()
	waits := make(chan error)
	go func() {
		_, err := ours.Sessions.GetSession(other, "2_1:0")
		waits <- err
	}()
	cancel()
	if err := <-waits; !errors.Is(err, context.Canceled) {
		t.Errorf("a session that is held: %v", err)
	}
	done()
	last, lastDone := s.SendContext(t.Context())
	defer lastDone()
	_, err = ours.Sessions.GetSession(last, "2_1:0")
	must(t, err)
}
