package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// The phones of a new world, which are contacts of its channel.
var firstPhones = []Phone{
	{Number: "6281234567890", Name: "Ayu"},
	{Number: "6281234567891", Name: "Budi"},
}

const firstGroup = "Ayu & Budi"

// world is the part of the network that one channel sees. It outlives the channel's sessions.
type world struct {
	net    *Network
	id     atomic.Int64 // the row; a reset replaces it
	code   parley.ChannelCode
	number string // the channel's own

	session   atomic.Pointer[session] // the open one, or nil
	loggedOut atomic.Bool
	dropped   atomic.Bool // nothing is written any more: another node may have the channel

	soon chan struct{} // notified when receipts are pending, which are collected for a moment
	now  chan struct{} // notified when something should be reported at once

	mu     sync.Mutex
	faults []Fault // the queue in memory decides; the database follows it
	// unsure are messages that arrived and whose responses were lost. Those that a receipt confirms stay in it until the next start.
	unsure map[parley.MessageID]bool
	// By the id of a phone. Idle phones have no entry.
	typing  map[int64]time.Time       // until when the channel is typing
	waiters map[int64][]chan struct{} // closed by the next message: requests wait for it
	pending map[int64]*job            // what the session has to report
	cursors map[int64]cursors         // of phones whose row is not up to date
}

// cursors are how far a phone was delivered and read, as positions of messages.
type cursors struct{ delivered, read int64 }

func (c cursors) max(d cursors) cursors {
	return cursors{delivered: max(c.delivered, d.delivered), read: max(c.read, d.read)}
}

// world returns a channel's world, created on first use.
func (n *Network) world(ctx context.Context, code parley.ChannelCode) (*world, error) {
	w := n.inMemory(code)
	if w != nil {
		return w, nil
	}
	w = &world{net: n, code: code, soon: make(chan struct{}, 1), now: make(chan struct{}, 1)}
	w.clear()
	err := w.write(ctx, "sandbox channel "+string(code), func(tx *sqldb.Tx) error {
		if err := w.load(tx); err != nil {
			return err
		}
		tx.OnCommit(func() { // before another transaction can remove it
			n.mu.Lock()
			defer n.mu.Unlock()
			if other, ok := n.worlds[code]; ok {
				w.clear()
				w = other
			}
			n.worlds[code] = w
		})
		return nil
	})
	if err != nil {
		w.clear()
	}
	return w, err
}

func (w *world) load(tx *sqldb.Tx) error {
	var id int64
	var number string
	var loggedOut bool
	query := `SELECT id, number, logged_out FROM worlds WHERE channel = $1`
	err := tx.QueryRow(query, []any{string(w.code)}, &id, &number, &loggedOut)
	if errors.Is(err, sql.ErrNoRows) {
		if _, err = createWorld(tx, w.code, ""); err == nil {
			err = tx.QueryRow(query, []any{string(w.code)}, &id, &number, &loggedOut)
		}
	}
	if err != nil {
		return err
	}
	w.id.Store(id)
	w.loggedOut.Store(loggedOut)
	if w.number != number { // else others may be reading it
		w.number = number
	}
	return errors.Join(w.net.takeBlock(tx), w.loadFaults(tx.Conn))
}

// createWorld creates a world with its first phones and their group, unless another node did so; an empty number: one of its
// own.
func createWorld(tx *sqldb.Tx, channel parley.ChannelCode, number string) (id int64, err error) {
	id, err = tx.Insert(`INSERT INTO worlds (channel, number) VALUES ($1, $2) ON CONFLICT DO NOTHING`, string(channel), number)
	if err != nil || id == 0 {
		return 0, err
	}
	if number == "" {
		// 999 is not the code of a country, so the number does not exist.
		if err := tx.Do(`UPDATE worlds SET number = $1 WHERE id = $2`, fmt.Sprintf("999%08d", id), id); err != nil {
			return 0, err
		}
	}
	var members []parley.ContactID
	for _, first := range firstPhones {
		p, err := createPhone(tx, id, first.Number)
		if err == nil {
			err = PhonePatch{Name: &first.Name}.apply(tx, p.id)
		}
		if err != nil {
			return 0, err
		}
		members = append(members, p.contactID())
	}
	_, err = createGroup(tx, id, firstGroup, members, time.Now())
	return id, err
}

// markRemoved detaches a world from its channel. The purger deletes its rows.
func markRemoved(tx *sqldb.Tx, id int64) error {
	notACode := fmt.Sprintf("removed:%d", id)
	return tx.Do(`UPDATE worlds SET removed = 1, channel = $1 WHERE id = $2`, notACode, id)
}

// clear drops everything in memory and wakes the requests that wait for a message.
func (w *world) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setFaults(nil)
	for id := range w.waiters {
		w.endWait(id)
	}
	w.typing, w.waiters = map[int64]time.Time{}, map[int64][]chan struct{}{}
	w.pending, w.cursors = map[int64]*job{}, map[int64]cursors{}
}

func (w *world) setLoggedOut(ctx context.Context, out bool) error {
	if w.loggedOut.Load() == out {
		return nil
	}
	return w.write(ctx, "sandbox channel "+string(w.code), func(tx *sqldb.Tx) error {
		tx.OnCommit(func() { w.loggedOut.Store(out) })
		return tx.Do(`UPDATE worlds SET logged_out = $1 WHERE id = $2`, out, w.id.Load())
	})
}

// arrived ends "typing…", wakes waiting requests and schedules receipts. The database's writer calls it after it committed
// messages to phones.
func (w *world) arrived(list []delivery) {
	w.mu.Lock()
	for _, d := range list {
		delete(w.typing, d.phone.id)
		w.endWait(d.phone.id)
		if d.phone.Online { // else it receives the message when it is online again
			w.job(d.phone.id).add(d)
		}
	}
	w.mu.Unlock()
	w.net.purger.grew(list)
	w.wake(w.soon)
}

// schedule makes the session read from the database what to report about a phone, at once.
func (w *world) schedule(phone int64, what work) {
	if w.session.Load() == nil {
		return // the next session finds it in the database
	}
	w.mu.Lock()
	w.job(phone).require(what)
	w.mu.Unlock()
	w.wake(w.now)
}

// job returns what is pending for a phone. The caller holds the lock.
func (w *world) job(phone int64) *job {
	j := w.pending[phone]
	if j == nil {
		j = &job{}
		w.pending[phone] = j
	}
	return j
}

func (w *world) drainPending() map[int64]*job {
	w.mu.Lock()
	defer w.mu.Unlock()
	scheduled := w.pending
	w.pending = map[int64]*job{}
	return scheduled
}

// awaitMessage returns a channel that is closed when the next message to a phone is committed or the world is reset. The
// caller releases it.
func (w *world) awaitMessage(phone int64) (arrived <-chan struct{}, release func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	own := make(chan struct{})
	w.waiters[phone] = append(w.waiters[phone], own)
	return own, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.waiters[phone] = slices.DeleteFunc(w.waiters[phone], func(c chan struct{}) bool { return c == own })
		if len(w.waiters[phone]) == 0 {
			delete(w.waiters, phone)
		}
	}
}

// endWait wakes the requests that wait for a message to a phone. The caller holds the lock.
func (w *world) endWait(phone int64) {
	for _, c := range w.waiters[phone] {
		close(c)
	}
	delete(w.waiters, phone)
}

// setTyping stores until when a phone shows that the channel is typing. A time in the past ends it.
func (w *world) setTyping(phone int64, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.typing[phone] = until
	now := time.Now()
	maps.DeleteFunc(w.typing, func(_ int64, until time.Time) bool { return !until.After(now) })
}

// movedRetry is when a request for a channel that moves to another node may come again.
const movedRetry = time.Second

// errMoved is the error of a request that waited or wrote while its channel moved to another node.
func errMoved() error {
	return &parley.Error{Code: parley.Unavailable, Message: "The channel moves to another node. Try again soon.", RetryAfter: movedRetry}
}

// Drop drops what memory holds of channels that this node does not own, because other nodes may open them. Their sessions are
// closed. When it returns nil, nothing that began before is written any more. Later calls load a world again.
func (n *Network) Drop(ctx context.Context, owns func(parley.ChannelCode) bool) error {
	var dropped int
	for _, w := range n.loaded() {
		if owns(w.code) {
			continue
		}
		if w.session.Load() != nil {
			return fmt.Errorf("drop sandbox channel %s: its session is open", w.code)
		}
		n.unload(w)
		dropped++
	}
	if dropped == 0 {
		return nil
	}
	written := make(chan struct{})
	go func() {
		n.db.Write(context.Background(), func(*sqldb.Tx) error { return nil }) // even if it fails, all earlier ones have ended
		close(written)
	}()
	select {
	case <-written:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("drop sandbox channels: %w", ctx.Err())
	}
}

// unload removes a world from memory. What still uses it cannot write any more.
func (n *Network) unload(w *world) {
	n.mu.Lock()
	if n.worlds[w.code] == w {
		delete(n.worlds, w.code)
	}
	n.mu.Unlock()
	w.dropped.Store(true)
	w.clear()
}

// refresh reads a world again that is in memory without a session, unless only this node uses the database. Another node may
// have had the channel meanwhile.
func (n *Network) refresh(ctx context.Context, code parley.ChannelCode) error {
	w := n.inMemory(code)
	if !n.shared || w == nil || w.session.Load() != nil {
		return nil
	}
	var replaced bool
	err := w.write(ctx, "sandbox channel "+string(code), func(tx *sqldb.Tx) error {
		var id int64
		err := tx.QueryRow(`SELECT id FROM worlds WHERE channel = $1`, []any{string(code)}, &id)
		if replaced = errors.Is(err, sql.ErrNoRows) || err == nil && id != w.id.Load(); replaced {
			return nil
		}
		if err == nil {
			err = w.load(tx)
		}
		return err
	})
	if replaced {
		n.unload(w)
	}
	return err
}

// tx runs do in a transaction, unless the world was dropped.
func (w *world) tx(ctx context.Context, do func(*sqldb.Tx) error) error {
	return w.net.db.Write(ctx, func(tx *sqldb.Tx) error {
		if w.dropped.Load() {
			return errMoved()
		}
		return do(tx)
	})
}

// write is tx for a caller whose error begins with what.
func (w *world) write(ctx context.Context, what string, do func(*sqldb.Tx) error) error {
	if err := w.tx(ctx, do); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
