package keystore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// A session is read, moved on and written back. Two who do so at once would start from the same state, and
// what one wrote would be lost: the next message would be encrypted with a key that was used before. So a
// session is locked from its reading to its writing. Every lock has a number. A writer whose lock is gone, or
// has another number by now, is refused: it read the session before somebody else moved it on.
//
// A send holds its locks under its context, from Sending to done; decrypting a message holds the sender's until
// its transaction ends. What whatsmeow does while it handles a stanza, such as encrypting again for a device
// that could not read, does not say when it ends: it holds a lock until it writes, or for a while.

const (
	// lockTimeout is how long a lock lasts whose holder gives no sign of an end. Between reading and writing there
	// is nothing but computing; only after an error nothing is written.
	lockTimeout = time.Second
	// maxLockWait is after which somebody gives up waiting for a lock. Nobody holds one while waiting for the
	// network.
	maxLockWait = 30 * time.Second
)

var (
	errLocked = errors.New("the session is in use")
	errLost   = errors.New("the session was not written: somebody else has locked it since it was read")
)

// holder is somebody who locks sessions. Its fields are guarded by the mutex of the locks.
type holder struct {
	timed   bool           // nobody says when it ends: its locks last for a while
	numbers map[key]uint64 // of the locks that it was given
}

type holderKey struct{}

// SendContext marks the context of one send. What it reads of sessions is its own until it wrote them, or
// until done.
func (s *Store) SendContext(ctx context.Context) (marked context.Context, done func()) {
	h := &holder{}
	return context.WithValue(ctx, holderKey{}, h), func() { s.locks.releaseAll(h) }
}

// StanzaContext marks the context of the handling of one stanza, which goes on after the handler returned.
func (s *Store) StanzaContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, holderKey{}, &holder{timed: true})
}

// holderOf is who uses a context. Those without a mark of their own are not told apart.
func (s *Store) holderOf(ctx context.Context) *holder {
	if h, ok := ctx.Value(holderKey{}).(*holder); ok {
		return h
	}
	return &s.locks.unmarked
}

// sessionLocks are the locks of all sessions.
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

// acquire locks sessions, waiting for others. Taken in one order by all, they cannot be waited for in a circle.
func (l *sessionLocks) acquire(ctx context.Context, by *holder, keys ...key) error {
	if len(keys) > 1 {
		slices.SortFunc(keys, compareKeys)
	}
	for _, k := range keys {
		if err := l.acquireOne(ctx, by, k); err != nil {
			return err
		}
	}
	return nil
}

func (l *sessionLocks) acquireOne(ctx context.Context, by *holder, k key) error {
	var deadline <-chan time.Time
	for {
		wait, until := l.try(by, k)
		if wait == nil {
			return nil
		}
		if deadline == nil {
			timer := time.NewTimer(maxLockWait)
			defer timer.Stop()
			deadline = timer.C
		}
		if err := await(ctx, wait, until, deadline); err != nil {
			return err
		}
	}
}

// await waits until a lock is released or over.
func await(ctx context.Context, free <-chan struct{}, until time.Time, deadline <-chan time.Time) error {
	var over <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-free:
	case <-over:
	case <-deadline:
		return errLocked
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// try locks a session, or returns what to wait for. A timed holder may be several goroutines: it waits for
// itself too.
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

// owned returns the lock of a session if the holder still has it, else nil. The caller holds the mutex.
func (l *sessionLocks) owned(by *holder, k key) *sessionLock {
	if is := l.held[k]; is != nil && is.by == by && is.number == by.numbers[k] {
		return is
	}
	return nil
}

// verify reports whether the holder still has the locks of sessions that it is about to write, and keeps them
// for it until they are released, however long the writing takes.
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

// release gives locks back that the holder has.
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

// sessionRemoved takes note that a session was removed. A timed holder does not write it then.
func (l *sessionLocks) sessionRemoved(by *holder, k key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isTimed(by) {
		l.releaseLocked(by, k)
	}
}

// releaseAll gives back everything that a holder has. What it locks after that lasts for a while only.
func (l *sessionLocks) releaseAll(by *holder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k := range by.numbers {
		l.releaseLocked(by, k)
	}
	by.timed = true
}
