package sandbox

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"parley/internal/store/sqldb"
)

// Bundles are unpacked always before anybody looks for a message; otherwise when nothing was sent for
// a while, and in the midst of sends only if so many wait that the first look would take long.
const (
	unpackIdle   = 5 * time.Second
	unpackBeyond = 300_000 // messages: two or three seconds' work
	unpackAtOnce = 500     // messages in one transaction, or one bundle more, so that no send waits long
)

// packing knows what is packed. Only the writer of the database changes it, after commits.
type packing struct {
	packed   atomic.Int64  // the place of the last message that was packed
	unpacked atomic.Int64  // no message up to this place is still packed
	at       atomic.Int64  // milliseconds; when messages were last packed
	wake     chan struct{} // holds one: something waits, or too much
}

// waiting is how many messages wait to be unpacked, or more than that.
func (k *packing) waiting() int64 { return k.packed.Load() - k.unpacked.Load() }

// add takes note of a bundle that was recorded.
func (k *packing) add(last int64, at time.Time) {
	first := k.waiting() <= 0
	k.packed.Store(last)
	k.at.Store(at.UnixMilli())
	if first || k.waiting() > unpackBeyond {
		signal(k.wake)
	}
}

// remove takes note that everything up to a place is unpacked.
func (k *packing) remove(upTo int64) { k.unpacked.Store(max(k.unpacked.Load(), upTo)) }

// load finds what was left packed before.
func (k *packing) load(c *sqldb.Conn) error {
	var oldest, newest int64
	if err := c.QueryRow(`SELECT coalesce(min(seq), 1), coalesce(max(seq), 0) FROM bundles`, nil, &oldest, &newest); err != nil {
		return err
	}
	k.packed.Store(newest)
	k.unpacked.Store(oldest - 1)
	k.at.Store(time.Now().UnixMilli())
	k.wake = make(chan struct{}, 1)
	return nil
}

// unpackInTime unpacks when the network rests or too much waits, until the network is closed.
func (n *Network) unpackInTime() {
	for n.closing.Err() == nil {
		var due <-chan time.Time // nil: nothing waits
		if in, waiting := n.packing.dueIn(); waiting && in > 0 {
			due = time.After(in)
		} else if waiting {
			err := n.unpackStep(n.closing)
			if err == nil {
				continue
			}
			if n.closing.Err() == nil {
				n.log.LogAttrs(n.closing, slog.LevelError, "sandbox: unpack messages", slog.Any("error", err))
			}
			n.pause(unpackIdle)
			continue
		}
		select {
		case <-due:
		case <-n.packing.wake:
		case <-n.closing.Done():
		}
	}
}

// dueIn says in how long something is to be unpacked although nobody looks, if something waits at all.
func (k *packing) dueIn() (in time.Duration, waiting bool) {
	switch count := k.waiting(); {
	case count <= 0:
		return 0, false
	case count > unpackBeyond:
		return 0, true
	}
	rested := time.Since(time.UnixMilli(k.at.Load()))
	return min(unpackIdle-rested, unpackIdle), true // the clock may have been set back
}

// pause waits for a while, or until the network is closed.
func (n *Network) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-n.closing.Done():
	}
}

// unpack unpacks everything that was sent so far, in steps.
func (n *Network) unpack(ctx context.Context) error {
	for upTo := n.packing.packed.Load(); n.packing.unpacked.Load() < upTo; {
		if err := n.unpackStep(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (n *Network) unpackStep(ctx context.Context) error {
	err := n.db.Write(ctx, func(tx *sqldb.Tx) error {
		_, err := n.unpackSome(tx)
		return err
	})
	if err != nil {
		return fmt.Errorf("unpack messages: %w", err)
	}
	return nil
}

// writeUnpacked is Write when nothing is packed. Most is unpacked before, so that others wait less.
func (n *Network) writeUnpacked(ctx context.Context, do func(tx *sqldb.Tx) error) error {
	if err := n.unpack(ctx); err != nil {
		return err
	}
	return n.db.Write(ctx, func(tx *sqldb.Tx) error {
		if err := n.unpackAll(tx); err != nil {
			return err
		}
		return do(tx)
	})
}

// unpackAll is unpack inside a transaction.
func (n *Network) unpackAll(tx *sqldb.Tx) error {
	for {
		if more, err := n.unpackSome(tx); err != nil || !more {
			return err
		}
	}
}

// unpackSome unpacks the next bundles and reports whether there may be more.
func (n *Network) unpackSome(tx *sqldb.Tx) (more bool, err error) {
	list, err := nextPacked(tx)
	if err != nil {
		return false, err
	}
	if len(list) == 0 {
		upTo := n.seq.Load() // only the writer gives out more
		tx.OnCommit(func() { n.packing.remove(upTo) })
		return false, nil
	}
	last := list[len(list)-1].seq
	if err := insertPacked(tx, list); err != nil {
		return false, err
	}
	if _, err := tx.Exec(`DELETE FROM bundles WHERE seq <= $1`, last); err != nil {
		return false, err
	}
	// The place of a copy is remembered by no message, but may be by a cursor or a phone's marks.
	if _, err := tx.Exec(`UPDATE counter SET seq = max(seq, $1)`, last); err != nil {
		return false, err
	}
	tx.OnCommit(func() { n.packing.remove(last) })
	return true, nil
}

// nextPacked reads the messages of the oldest bundles.
func nextPacked(tx *sqldb.Tx) ([]packed, error) {
	rows, err := tx.Query(`SELECT seq, at, body FROM bundles ORDER BY seq LIMIT $1`, unpackAtOnce)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []packed
	for len(list) < unpackAtOnce && rows.Next() {
		var last, at int64
		var body []byte
		if err := rows.Scan(&last, &at, &body); err != nil {
			return nil, err
		}
		if list, err = appendPacked(list, last, at, body); err != nil {
			return nil, err
		}
	}
	return list, rows.Err()
}

// insertPacked puts messages that were packed into the record. Several in one statement would cost
// twice as much: the database then prepares to undo a part of it.
func insertPacked(tx *sqldb.Tx, list []packed) error {
	for _, m := range list {
		var data any
		if m.data != "" {
			data = []byte(m.data)
		}
		if _, err := tx.Exec(insertCopy, m.seq, m.phone, fromChannel, m.id, m.kind, m.text, data, m.replyTo, m.at); err != nil {
			return err
		}
	}
	return nil
}
