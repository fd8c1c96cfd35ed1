package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

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
	n.mu.Lock()
	w := n.worlds[code]
	n.mu.Unlock()
	if !n.shared || w == nil || w.session.Load() != nil {
		return nil
	}
	var replaced bool
	err := w.write(ctx, "sandbox channel "+string(code), func(tx *sqldb.Tx) error {
		var id int64
		err := tx.QueryRow(`SELECT id FROM worlds WHERE channel = $1`, []any{string(code)}, &id)
		replaced = errors.Is(err, sql.ErrNoRows) || id != w.id.Load()
		if err != nil || replaced {
			return ignoreMissing(err)
		}
		return w.load(tx)
	})
	if replaced {
		n.unload(w)
	}
	return err
}

func ignoreMissing(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
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
