package sandbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/internal/store/sqldb"
	"parley/internal/wait"
)

const (
	maxMessages = 10_000              // per phone
	retention   = 30 * 24 * time.Hour // of messages, unreported events, and phones without messages

	purgeEvery = 5 * time.Minute
	sweepEvery = 24 * time.Hour // how often all phones are checked, not only those with new messages
	purgeBatch = 100            // rows in one transaction, so sends do not wait long
	purgeShare = 4              // a purge uses this fraction (1/n) of the writer's time
	purgeLock  = 1              // makes one node purge at a time
)

type purger struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	now    chan struct{} // holds one notification

	mu    sync.Mutex
	grown map[int64]bool // phones with new messages since the last purge
}

func (n *Network) startPurger() {
	ctx, cancel := context.WithCancel(context.Background())
	n.purger.cancel, n.purger.now = cancel, make(chan struct{}, 1)
	n.purger.grown = map[int64]bool{}
	n.purger.done.Go(func() { n.runPurger(ctx) })
}

func (p *purger) grew(list []delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range list {
		p.grown[d.phone.id] = true
	}
}

func (n *Network) runPurger(ctx context.Context) {
	tick := time.NewTicker(purgeEvery)
	defer tick.Stop()
	var sweepAt time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.purger.now:
			n.logPurge(ctx, n.purgeRemovedWorlds(ctx))
			continue
		case <-tick.C:
		}
		n.logPurge(ctx, n.purge(ctx, time.Now()))
		if !time.Now().Before(sweepAt) {
			err := n.sweepPhones(ctx, time.Now())
			n.logPurge(ctx, err)
			if !errors.Is(err, errPurging) {
				sweepAt = time.Now().Add(sweepEvery)
			}
		}
	}
}

func (n *Network) logPurge(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil && !errors.Is(err, errPurging) {
		n.log.Error("sandbox: purge", "error", err)
	}
}

// purge deletes what is older than the retention, except what only a sweep finds.
func (n *Network) purge(ctx context.Context, now time.Time) error {
	before := now.Add(-retention).UnixMilli()
	errs := []error{
		n.purgeRemovedWorlds(ctx),
		// Positions grow with time: the oldest rows are the first ones of their table.
		n.deleteBatches(ctx, `DELETE FROM messages WHERE seq IN
				(SELECT seq FROM (SELECT seq, at FROM messages ORDER BY seq LIMIT $1) AS oldest WHERE at < $2)`, before),
		n.deleteBatches(ctx, `DELETE FROM events WHERE seq IN
				(SELECT seq FROM (SELECT seq, at FROM events ORDER BY seq LIMIT $1) AS oldest WHERE at < $2)`, before),
	}
	n.purger.mu.Lock()
	grown := n.purger.grown
	n.purger.grown = map[int64]bool{}
	n.purger.mu.Unlock()
	for id := range grown {
		err := n.trimChat(ctx, id)
		if errors.Is(err, errPurging) {
			n.purger.grew([]delivery{{phone: &phone{id: id}}}) // next time
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// writeBatch runs one transaction of a purge. Then it pauses, so that others can write. If another node runs one, do is not
// called and the error is errPurging: two that delete the same rows in another order would wait for each other.
func (n *Network) writeBatch(ctx context.Context, do func(*sqldb.Tx) error) error {
	began := time.Now()
	var alone bool
	err := n.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
		if alone, err = tx.Alone(purgeLock); err == nil && alone {
			err = do(tx)
		}
		return err
	})
	if err == nil && !alone {
		err = errPurging
	}
	if err != nil {
		return err
	}
	wait.Sleep(ctx, (purgeShare-1)*time.Since(began))
	return ctx.Err()
}

var errPurging = errors.New("another node purges now")

// deleteBatches runs a statement that deletes up to $1 rows until it finds fewer.
func (n *Network) deleteBatches(ctx context.Context, query string, args ...any) error {
	args = append([]any{purgeBatch}, args...)
	for deleted := int64(purgeBatch); deleted == purgeBatch; {
		err := n.writeBatch(ctx, func(tx *sqldb.Tx) (err error) {
			deleted, err = n.deleteRows(tx, query, args...)
			return err
		})
		if err != nil {
			return fmt.Errorf("purge: %w", err)
		}
	}
	return nil
}

// deleteRows runs a DELETE and returns the number of rows. Their positions are not assigned again after a restart.
func (n *Network) deleteRows(tx *sqldb.Tx, query string, args ...any) (deleted int64, err error) {
	deleted, err = tx.Exec(query, args...)
	if err == nil && deleted > 0 && !n.shared {
		err = tx.Do(`UPDATE counter SET seq = $1`, n.seq.Load())
	}
	return deleted, err
}

func (n *Network) trimChat(ctx context.Context, phone int64) error {
	var last int64
	err := n.db.Read(ctx).QueryRow(`SELECT seq FROM messages WHERE phone = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2`,
		[]any{phone, maxMessages}, &last)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	return n.deleteBatches(ctx,
		`DELETE FROM messages WHERE seq IN (SELECT seq FROM messages WHERE phone = $2 AND seq <= $3 ORDER BY seq LIMIT $1)`, phone, last)
}

// sweepPhones trims the chats of all phones. It deletes phones that are like one that does not exist: without messages,
// name, settings and group, and older than the retention. If other nodes use the database, it visits only the worlds in
// memory: nobody else may add a message to a phone that is being deleted.
func (n *Network) sweepPhones(ctx context.Context, now time.Time) error {
	if n.shared {
		for _, w := range n.loaded() {
			if err := n.sweepWorld(ctx, w.id.Load(), w.dropped.Load, now); err != nil {
				return err
			}
		}
		return nil
	}
	worlds, err := sqldb.Collect(n.db.Read(ctx), sqldb.ScanOne[int64], `SELECT id FROM worlds WHERE removed = 0`)
	for _, id := range worlds {
		if err == nil {
			err = n.sweepWorld(ctx, id, func() bool { return false }, now)
		}
	}
	return err
}

// loaded returns the worlds in memory.
func (n *Network) loaded() []*world {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Values(n.worlds))
}

// inMemory returns the world of a channel if it is in memory, else nil.
func (n *Network) inMemory(code parley.ChannelCode) *world {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.worlds[code]
}

// sweepWorld sweeps the phones of one world until it is dropped.
func (n *Network) sweepWorld(ctx context.Context, world int64, dropped func() bool, now time.Time) error {
	for after := ""; !dropped(); {
		var ids []int64
		last := after
		_, err := sqldb.Collect(n.db.Read(ctx), func(row scanner) (id int64, err error) {
			err = row.Scan(&id, &last)
			ids = append(ids, id)
			return id, err
		}, `SELECT id, number FROM phones WHERE world = $1 AND number > $2 ORDER BY number LIMIT $3`, world, after, purgeBatch)
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			if err := n.trimChat(ctx, id); err != nil {
				return err
			}
		}
		err = n.writeBatch(ctx, func(tx *sqldb.Tx) error {
			if dropped() {
				return nil
			}
			clearCaches := func() {
				for _, w := range n.loaded() {
					w.clearPhones()
				}
			}
			tx.OnUnknown(clearCaches)
			tx.OnCommit(clearCaches)
			return tx.Do(`DELETE FROM phones WHERE world = $1 AND number > $2 AND number <= $3 AND created_at < $4 AND changed = 0 AND
				NOT EXISTS (SELECT 1 FROM messages WHERE phone = phones.id) AND NOT EXISTS (SELECT 1 FROM events WHERE phone = phones.id) AND
				number NOT IN (SELECT m.number FROM groups g JOIN members m ON m.grp = g.id WHERE g.world = phones.world)`,
				world, after, last, now.Add(-retention).UnixMilli())
		})
		if err != nil {
			return fmt.Errorf("purge phones: %w", err)
		}
		after = last
	}
	return nil
}

func (n *Network) purgeRemovedWorlds(ctx context.Context) error {
	for {
		var world int64
		err := n.db.Read(ctx).QueryRow(`SELECT id FROM worlds WHERE removed = 1 LIMIT 1`, nil, &world)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			err = n.purgeWorld(ctx, world)
		}
		if err != nil {
			return fmt.Errorf("purge a removed channel: %w", err)
		}
	}
}

func (n *Network) purgeWorld(ctx context.Context, world int64) error {
	for more := true; more; {
		ids, err := sqldb.Collect(n.db.Read(ctx), sqldb.ScanOne[int64], `SELECT id FROM phones WHERE world = $1 LIMIT $2`, world, purgeBatch)
		if err != nil {
			return err
		}
		if err := sqldb.Each(ids, func(id int64) error { return n.purgePhone(ctx, id) }); err != nil {
			return err
		}
		more = len(ids) > 0
	}
	err := sqldb.Each([]string{
		`DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE phone IN (SELECT -id FROM groups WHERE world = $2) LIMIT $1)`,
		`DELETE FROM groups WHERE id IN (SELECT id FROM groups WHERE world = $2 LIMIT $1)`,
	}, func(query string) error { return n.deleteBatches(ctx, query, world) })
	if err != nil {
		return err
	}
	return n.db.Write(ctx, func(tx *sqldb.Tx) error {
		return errors.Join(tx.Do(`DELETE FROM faults WHERE world = $1`, world), tx.Do(`DELETE FROM worlds WHERE id = $1`, world))
	})
}

// purgePhone deletes a phone with its rows, some of each table in one transaction.
func (n *Network) purgePhone(ctx context.Context, id int64) error {
	for more := true; more; {
		err := n.writeBatch(ctx, func(tx *sqldb.Tx) error {
			more = false
			for _, table := range []string{"messages", "events"} {
				query := `DELETE FROM ` + table + ` WHERE seq IN (SELECT seq FROM ` + table + ` WHERE phone = $2 LIMIT $1)`
				deleted, err := n.deleteRows(tx, query, purgeBatch, id)
				if err != nil {
					return err
				}
				more = more || deleted == purgeBatch
			}
			if more {
				return nil
			}
			return tx.Do(`DELETE FROM phones WHERE id = $1`, id)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
