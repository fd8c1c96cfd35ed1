package keystore

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"

	"parley/internal/store/sqldb"
	"parley/internal/wait"
)

// hashRetention is how long the network may deliver a message again.
const hashRetention = 14 * 24 * time.Hour

// GetBufferedEvent returns a message that was decrypted before, or nil. Without a text it was already processed.
func (d *device) GetBufferedEvent(ctx context.Context, hash [32]byte) (*store.BufferedEvent, error) {
	var e store.BufferedEvent
	isTaken := d.s.pruner.has(decryptedID{d.id, hash}) // before the query: pruned texts are gone from the database
	var serverAt, at int64
	found, err := readRow(d.s.db.Read(ctx), "read a decrypted message",
		`SELECT plaintext, server_at, at FROM decrypted WHERE device = $1 AND hash = $2`, []any{d.id, hash[:]}, &e.Plaintext, &serverAt, &at)
	if err != nil || !found {
		return nil, err
	}
	e.ServerTime, e.InsertTime = time.Unix(serverAt, 0), time.UnixMilli(at)
	if isTaken {
		e.Plaintext = nil
	}
	return &e, nil
}

func (d *device) PutBufferedEvent(ctx context.Context, hash [32]byte, plaintext []byte, serverAt time.Time) error {
	at := time.Now().UnixMilli()
	return d.exec(ctx, "store a decrypted message",
		`INSERT INTO decrypted (device, hash, plaintext, server_at, at) VALUES ($1, $2, $3, $4, $5)`,
		d.id, hash[:], nonNil(plaintext), serverAt.Unix(), at)
}

// ClearBufferedEventPlaintext schedules the removal of a processed text. If that is lost in a crash, the sink gets the
// message again and stores it once.
func (d *device) ClearBufferedEventPlaintext(_ context.Context, hash [32]byte) error {
	d.s.pruner.schedule(decryptedID{d.id, hash})
	return nil
}

// DeleteOldBufferedHashes purges old hashes and old message secrets. whatsmeow calls it twice a day.
func (d *device) DeleteOldBufferedHashes(ctx context.Context) error {
	now := time.Now()
	return errors.Join(
		d.s.purgeHashes(ctx, now.Add(-hashRetention)),
		d.s.purgeSecrets(ctx, toDay(now.Add(-secretRetention))),
	)
}

// purgeLock makes one node purge at a time.
const purgeLock = 1

func (s *Store) purgeHashes(ctx context.Context, before time.Time) error {
	return s.write(ctx, "purge decrypted messages", func(tx *sqldb.Tx) error {
		alone, err := tx.Alone(purgeLock)
		if err != nil || !alone {
			return err
		}
		return tx.Do(`DELETE FROM decrypted WHERE at < $1`, before.UnixMilli())
	})
}

// errUnused is returned by methods that whatsmeow does not call for the gateway.
var errUnused = errors.New("the key store does not have this")

// AddOutgoingEvent is not used: retries are composed from the gateway's messages.
func (d *device) AddOutgoingEvent(context.Context, types.JID, types.MessageID, string, []byte) error {
	return errUnused
}

// GetOutgoingEvent is not used either.
func (d *device) GetOutgoingEvent(context.Context, types.JID, types.JID, types.MessageID) (string, []byte, error) {
	return "", nil, errUnused
}

// DeleteOldOutgoingEvents has nothing to delete.
func (d *device) DeleteOldOutgoingEvents(context.Context) error { return nil }

// decryptedID names a decrypted message whose text is of no use any more.
type decryptedID struct {
	device int64
	hash   [32]byte
}

const (
	// pruneDelay gathers texts to remove, so that they cost no commit each.
	pruneDelay = 50 * time.Millisecond
	// pruneBatch bounds one transaction, and so the delay of other writers.
	pruneBatch = 1000
)

// pruner removes processed texts in batches.
type pruner struct {
	db   *sqldb.DB
	wake chan struct{} // holds one: there is something to remove
	stop chan struct{}
	done sync.WaitGroup

	mu      sync.Mutex
	pending map[decryptedID]struct{}
}

func startPruner(db *sqldb.DB) *pruner {
	p := &pruner{db: db, wake: make(chan struct{}, 1), stop: make(chan struct{}), pending: map[decryptedID]struct{}{}}
	p.done.Go(p.run)
	return p
}

// close prunes what is pending and stops the pruner.
func (p *pruner) close() {
	close(p.stop)
	p.done.Wait()
}

func (p *pruner) schedule(t decryptedID) {
	p.mu.Lock()
	p.pending[t] = struct{}{}
	p.mu.Unlock()
	wait.Notify(p.wake)
}

func (p *pruner) has(t decryptedID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, waits := p.pending[t]
	return waits
}

func (p *pruner) run() {
	pause := time.NewTimer(pruneDelay)
	defer pause.Stop()
	for {
		select {
		case <-p.stop:
			p.prune()
			return
		case <-p.wake:
		}
		pause.Reset(pruneDelay)
		select {
		case <-p.stop:
		case <-pause.C:
		}
		p.prune()
	}
}

// prune removes pending texts. After an error they stay pending.
func (p *pruner) prune() {
	for {
		some := p.batch()
		if len(some) == 0 {
			return
		}
		err := p.db.Write(context.Background(), func(tx *sqldb.Tx) error {
			for _, t := range some {
				if err := tx.Do(`UPDATE decrypted SET plaintext = NULL WHERE device = $1 AND hash = $2`, t.device, t.hash[:]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return
		}
		p.mu.Lock()
		for _, t := range some {
			delete(p.pending, t)
		}
		p.mu.Unlock()
	}
}

// batch returns pending texts, which stay pending until they are removed.
func (p *pruner) batch() []decryptedID {
	p.mu.Lock()
	defer p.mu.Unlock()
	some := make([]decryptedID, 0, min(len(p.pending), pruneBatch))
	for t := range p.pending {
		if len(some) == pruneBatch {
			break
		}
		some = append(some, t)
	}
	return some
}
