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
	// lockFor is how long a lock lasts whose holder gives no sign of an end. Between reading and writing there
	// is nothing but computing; only after an error nothing is written.
	lockFor = time.Second
	// longestWait is after which somebody gives up waiting for a lock. Nobody holds one while waiting for the
	// network.
	longestWait = 30 * time.Second
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

// Sending marks the context of one send. What it reads of sessions is its own until it wrote them, or
// until done.
func (s *Store) Sending(ctx context.Context) (marked context.Context, done func()) {
	h := &holder{}
	return context.WithValue(ctx, holderKey{}, h), func() { s.locks.end(h) }
}

// Handling marks the context of the handling of one stanza, which goes on after the handler returned.
func (s *Store) Handling(ctx context.Context) context.Context {
	return context.WithValue(ctx, holderKey{}, &holder{timed: true})
}

// holderOf is who uses a context. Those without a mark of their own are not told apart.
func (s *Store) holderOf(ctx context.Context) *holder {
	if h, ok := ctx.Value(holderKey{}).(*holder); ok {
		return h
	}
	return &s.locks.unmarked
}

// locks are the locks of all sessions.
type locks struct {
	mu       sync.Mutex
	last     uint64 // number of the latest lock
	held     map[key]*lock
	unmarked holder // of contexts without a mark
}

type lock struct {
	number uint64
	by     *holder
	until  time.Time     // zero: until it is released
	free   chan struct{} // closed when it is released
}

// take locks sessions, waiting for others. Taken in one order by all, they cannot be waited for in a circle.
func (l *locks) take(ctx context.Context, by *holder, keys ...key) error {
	if len(keys) > 1 {
		slices.SortFunc(keys, compareKeys)
	}
	for _, k := range keys {
		if err := l.takeOne(ctx, by, k); err != nil {
			return err
		}
	}
	return nil
}

func (l *locks) takeOne(ctx context.Context, by *holder, k key) error {
	var deadline <-chan time.Time
	for {
		wait, until := l.try(by, k)
		if wait == nil {
			return nil
		}
		if deadline == nil {
			timer := time.NewTimer(longestWait)
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
func (l *locks) try(by *holder, k key) (free <-chan struct{}, until time.Time) {
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
		l.held = map[key]*lock{}
	}
	l.last++
	got := &lock{number: l.last, by: by, free: make(chan struct{})}
	if l.isTimed(by) {
		got.until = time.Now().Add(lockFor)
	}
	if by.numbers == nil {
		by.numbers = map[key]uint64{}
	}
	by.numbers[k], l.held[k] = got.number, got
	return nil, time.Time{}
}

func (l *locks) isTimed(by *holder) bool { return by.timed || by == &l.unmarked }

// owned returns the lock of a session if the holder still has it, else nil. The caller holds the mutex.
func (l *locks) owned(by *holder, k key) *lock {
	if is := l.held[k]; is != nil && is.by == by && is.number == by.numbers[k] {
		return is
	}
	return nil
}

// prove reports whether the holder still has the locks of sessions that it is about to write, and keeps them
// for it until they are released, however long the writing takes.
func (l *locks) prove(by *holder, keys ...key) error {
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
func (l *locks) release(by *holder, keys ...key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.releaseLocked(by, keys...)
}

func (l *locks) releaseLocked(by *holder, keys ...key) {
	for _, k := range keys {
		if is := l.owned(by, k); is != nil {
			delete(l.held, k)
			close(is.free)
		}
		delete(by.numbers, k)
	}
}

// removed takes note that a session was removed. A timed holder does not write it then.
func (l *locks) removed(by *holder, k key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isTimed(by) {
		l.releaseLocked(by, k)
	}
}

// end gives back everything that a holder has. What it locks after that lasts for a while only.
func (l *locks) end(by *holder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k := range by.numbers {
		l.releaseLocked(by, k)
	}
	by.timed = true
}
