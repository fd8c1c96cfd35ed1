package keystore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"parley/internal/store/sqldb"
)

// A session is read, moved and written back. Two goroutines that do so at once would start from the same state, and the
// next message would use a key twice. So a session is locked from its read to its write. Every lock has a number. A
// writer whose lock is gone or has another number is rejected.
//
// A send holds its locks under its context, from SendContext to done. A decryption holds the sender's lock until its
// transaction ends. Other work during the handling of a stanza has no known end: it holds a lock until it writes, or
// for lockTimeout.

const (
	// lockTimeout ends a lock whose holder has no known end. Between read and write there is only computation; after an
	// error nothing is written.
	lockTimeout = time.Second
	// maxLockWait bounds the wait for a lock. No holder waits for the network.
	maxLockWait = 30 * time.Second
)

var (
	errLocked = errors.New("the session is in use")
	errLost   = errors.New("the session was not written: somebody else has locked it since it was read")
)

// holder owns session locks. The mutex of sessionLocks guards its fields.
type holder struct {
	timed   bool           // no known end: its locks expire
	numbers map[key]uint64 // numbers of its locks
}

type holderKey struct{}

// SendContext marks the context of one send. The sessions that it reads are locked until they are written, or until
// done.
func (s *Store) SendContext(ctx context.Context) (marked context.Context, done func()) {
	h := &holder{}
	return context.WithValue(ctx, holderKey{}, h), func() { s.locks.releaseAll(h) }
}

// StanzaContext marks the context of the handling of one stanza, which goes on after the handler returned.
func (s *Store) StanzaContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, holderKey{}, &holder{timed: true})
}

// findHolder returns the holder of a context. All contexts without a mark share one.
func (s *Store) findHolder(ctx context.Context) *holder {
	if h, ok := ctx.Value(holderKey{}).(*holder); ok {
		return h
	}
	return &s.locks.unmarked
}

type sessionLocks struct {
	mu       sync.Mutex
	last     uint64 // number of the latest lock
	held     map[key]*sessionLock
	unmarked holder // of contexts without a mark
}

type sessionLock struct {
	number uint64
	by     *holder
	until  time.Time     // zero: until it is released
	free   chan struct{} // closed when it is released
}

// acquire locks sessions. All callers use the same order, so there is no deadlock.
func (l *sessionLocks) acquire(ctx context.Context, by *holder, keys ...key) error {
	slices.SortFunc(keys, compareKeys)
	return sqldb.Each(keys, func(k key) error { return l.acquireOne(ctx, by, k) })
}

func (l *sessionLocks) acquireOne(ctx context.Context, by *holder, k key) error {
	free, until := l.try(by, k)
	if free == nil {
		return nil
	}
	deadline := time.After(maxLockWait)
	for ; free != nil; free, until = l.try(by, k) {
		var over <-chan time.Time
		if !until.IsZero() {
			over = time.After(time.Until(until))
		}
		select {
		case <-free:
		case <-over:
		case <-deadline:
			return errLocked
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// try locks a session, or returns what to wait for. A timed holder may be several goroutines, so it waits for itself
// too.
func (l *sessionLocks) try(by *holder, k key) (free <-chan struct{}, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if is := l.held[k]; is != nil {
		switch {
		case is.by == by && !l.isTimed(by):
			return nil, time.Time{}
		case is.until.IsZero() || time.Now().Before(is.until):
			return is.free, is.until
		}
		close(is.free)
	}
	if l.held == nil {
		l.held = map[key]*sessionLock{}
	}
	l.last++
	got := &sessionLock{number: l.last, by: by, free: make(chan struct{})}
	if l.isTimed(by) {
		got.until = time.Now().Add(lockTimeout)
	}
	if by.numbers == nil {
		by.numbers = map[key]uint64{}
	}
	by.numbers[k], l.held[k] = got.number, got
	return nil, time.Time{}
}

func (l *sessionLocks) isTimed(by *holder) bool { return by.timed || by == &l.unmarked }

// owned returns the lock if the holder still has it, else nil. The caller holds the mutex.
func (l *sessionLocks) owned(by *holder, k key) *sessionLock {
	if is := l.held[k]; is != nil && is.by == by && is.number == by.numbers[k] {
		return is
	}
	return nil
}

// verify fails unless the holder still has the locks. It extends them until they are released, however long the write
// takes.
func (l *sessionLocks) verify(by *holder, keys ...key) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range keys {
		if l.owned(by, k) == nil {
			return errLost
		}
	}
	for _, k := range keys {
		l.held[k].until = time.Time{}
	}
	return nil
}

func (l *sessionLocks) release(by *holder, keys ...key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.releaseLocked(by, keys...)
}

func (l *sessionLocks) releaseLocked(by *holder, keys ...key) {
	for _, k := range keys {
		if is := l.owned(by, k); is != nil {
			delete(l.held, k)
			close(is.free)
		}
		delete(by.numbers, k)
	}
}

// sessionRemoved releases the lock of a deleted session. A timed holder does not write it any more.
func (l *sessionLocks) sessionRemoved(by *holder, k key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isTimed(by) {
		l.releaseLocked(by, k)
	}
}

// releaseAll releases the locks of a holder. Its later locks expire.
func (l *sessionLocks) releaseAll(by *holder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k := range by.numbers {
		l.releaseLocked(by, k)
	}
	by.timed = true
}
