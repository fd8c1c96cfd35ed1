package keystore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// A session is read, moved on and written back. Two who do so at once would start from the same state, and
// what one wrote would be lost: the next message would be encrypted with a key that was used before. So
// whoever reads a session holds it until it is written.
//
// A send holds its sessions under its context, from Sending to done; decrypting a message holds the sender's
// until its transaction ends. What whatsmeow does on its own, such as encrypting again for a device that
// could not read, has no context that we know: it holds a session until it writes it, or for a while.

const (
	// ownHold is how long a session is held for somebody who gives no sign of an end. Between reading and
	// writing lies nothing but computing; only after an error nothing is written.
	ownHold = time.Second
	// longestWait is after which somebody gives up waiting. Fetching the keys of a new device, which a send
	// does while it holds its sessions, takes a round trip.
	longestWait = 30 * time.Second
)

var errHeld = errors.New("the session is in use")

// holder is somebody who holds sessions.
type holder struct{ held []key }

type holderKey struct{}

// Sending marks the context of one send. What it reads of sessions is its own until it wrote them, or
// until done.
func (s *Store) Sending(ctx context.Context) (marked context.Context, done func()) {
	h := &holder{}
	return context.WithValue(ctx, holderKey{}, h), func() { s.leases.releaseAll(h) }
}

func holderOf(ctx context.Context) *holder {
	h, _ := ctx.Value(holderKey{}).(*holder)
	return h
}

// leases are the sessions that are held.
type leases struct {
	mu   sync.Mutex
	held map[key]*lease
}

type lease struct {
	by    *holder       // nil: somebody without a context
	until time.Time     // for the latter
	free  chan struct{} // closed when it is released
}

// hold takes sessions, waiting for others. Taken in one order by all, they cannot be waited for in a circle.
func (l *leases) hold(ctx context.Context, by *holder, keys ...key) error {
	if len(keys) > 1 {
		slices.SortFunc(keys, compareKeys)
	}
	for _, k := range keys {
		if err := l.holdOne(ctx, by, k); err != nil {
			return err
		}
	}
	return nil
}

func (l *leases) holdOne(ctx context.Context, by *holder, k key) error {
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

// await waits until a lease is free or over.
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
		return errHeld
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// try takes a session, or returns what to wait for.
func (l *leases) try(by *holder, k key) (free <-chan struct{}, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if is := l.held[k]; is != nil {
		switch {
		case by != nil && is.by == by:
			return nil, time.Time{}
		case is.by != nil || time.Now().Before(is.until):
			return is.free, is.until
		}
		close(is.free)
	}
	if l.held == nil {
		l.held = map[key]*lease{}
	}
	got := &lease{by: by, free: make(chan struct{})}
	if by == nil {
		got.until = time.Now().Add(ownHold)
	} else {
		by.held = append(by.held, k)
	}
	l.held[k] = got
	return nil, time.Time{}
}

// release gives sessions back that the holder, or nobody in particular, has.
func (l *leases) release(by *holder, keys ...key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range keys {
		if is := l.held[k]; is != nil && is.by == by {
			delete(l.held, k)
			close(is.free)
		}
	}
}

func (l *leases) releaseAll(by *holder) {
	l.release(by, by.held...)
	by.held = nil
}
