package sandbox

import (
	"context"
	"fmt"
	"time"

	"parley/internal/store/sqldb"
)

// The positions (seq) of messages and events. On SQLite they are counted from the last one of the database. On PostgreSQL
// every node assigns them from blocks of its own, which a sequence numbers. A node takes a new block when it loads a world, so
// its positions are higher than all that another node assigned in that world before.
//
// A block counts when the transaction that took it is committed. If PostgreSQL crashes before that, it may give the same number
// again, to another node.

const (
	blockSize = 10_000
	// blockFor is how long a block is used. The purger expects that positions grow with time, nearly.
	blockFor = time.Hour
)

// seqBlock says which positions a node may assign. Only the database's writer uses it.
type seqBlock struct {
	last   int64     // of the block
	until  time.Time // then a new one is taken
	batch  int64     // the transaction that took it
	stored bool      // that is committed
}

// nextSeq assigns the next position. Only the database's writer calls it, so positions follow the order of commits.
func (n *Network) nextSeq(tx *sqldb.Tx) (int64, error) {
	b := &n.block
	if n.shared && (n.seq.Load() >= b.last || time.Now().After(b.until) || !b.stored && b.batch != tx.Batch) {
		if err := n.takeBlock(tx); err != nil {
			return 0, err
		}
	}
	return n.seq.Add(1), nil
}

// takeBlock makes the next position higher than all that were assigned, by any node.
func (n *Network) takeBlock(tx *sqldb.Tx) error {
	if !n.shared {
		return nil
	}
	var number int64
	if err := tx.QueryRow(`SELECT nextval('seq_block')`, nil, &number); err != nil {
		return err
	}
	n.seq.Store(number * blockSize)
	n.block = seqBlock{last: (number + 1) * blockSize, until: time.Now().Add(blockFor), batch: tx.Batch}
	tx.OnCommit(func() { n.block.stored = n.block.stored || n.block.last == (number+1)*blockSize })
	return nil
}

// lastSeq returns a position that all committed messages of a world are at or before, and all later ones behind.
func (w *world) lastSeq(ctx context.Context) (seq int64, err error) {
	n := w.net
	if n.shared {
		err = w.write(ctx, "read the last position", func(*sqldb.Tx) error { // what was assigned before is committed with it
			seq = n.seq.Load()
			return nil
		})
		return seq, err
	}
	// Not the last one that was assigned: after a restart it is assigned again, unless a row has it.
	err = n.db.Read(ctx).QueryRow(`SELECT greatest(counter.seq, coalesce((SELECT max(seq) FROM messages), 0)) FROM counter`, nil, &seq)
	if err != nil {
		return 0, fmt.Errorf("read the last position: %w", err)
	}
	return seq, nil
}

// loadSeq finds the last position that was assigned, on SQLite.
func (n *Network) loadSeq(ctx context.Context) error {
	var last int64
	err := n.db.Read(ctx).QueryRow(`SELECT greatest(counter.seq, coalesce((SELECT max(seq) FROM messages), 0),
		coalesce((SELECT max(seq) FROM events), 0)) FROM counter`, nil, &last)
	if err != nil {
		return fmt.Errorf("read the last position: %w", err)
	}
	n.seq.Store(last)
	return nil
}

// CopyTo copies the tables from a file to an empty PostgreSQL database, or back, and returns the number of rows.
func CopyTo(ctx context.Context, from, to string) (rows int64, err error) {
	source := sqldb.Options{Path: from, Schema: "sandbox", Migrations: migrations}
	target := source
	target.Path = to
	return sqldb.Copy(ctx, source, target, nil, func(tx *sqldb.Tx) error {
		const last = `greatest((SELECT coalesce(max(seq), 0) FROM messages), (SELECT coalesce(max(seq), 0) FROM events))`
		if tx.IsPostgres() {
			_, err := tx.Exec(`SELECT setval('seq_block', `+last+` / $1 + 1)`, int64(blockSize))
			return err
		}
		return tx.Do(`UPDATE counter SET seq = ` + last)
	})
}
