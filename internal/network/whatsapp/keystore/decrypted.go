package keystore

import (
	"context"
	"errors"
	"maps"
	"slices"
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
	for {
		select {
		case <-p.stop:
			p.prune()
			return
		case <-p.wake:
		}
		select {
		case <-p.stop:
		case <-time.After(pruneDelay):
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
			return sqldb.Each(some, func(t decryptedID) error {
				return tx.Do(`UPDATE decrypted SET plaintext = NULL WHERE device = $1 AND hash = $2`, t.device, t.hash[:])
			})
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
	all := slices.Collect(maps.Keys(p.pending))
	return all[:min(len(all), pruneBatch)]
}

// decryptTx collects the writes of one decryption: the moved session, a used key, and the text, which cannot be
// decrypted twice. All of them are committed, or none.
type decryptTx struct {
	holder
	staged map[key][]byte // states as they are to be; nil: removed
	writes []func(*sqldb.Tx) error
}

type decryptTxKey struct{}

func decryptTxFrom(ctx context.Context) *decryptTx {
	dtx, _ := ctx.Value(decryptTxKey{}).(*decryptTx)
	return dtx
}

func (dtx *decryptTx) put(changes []change) {
	for _, c := range changes {
		dtx.staged[c.key] = c.value
	}
}

// DoDecryptionTxn commits what do changed, unless it fails.
func (d *device) DoDecryptionTxn(ctx context.Context, do func(context.Context) error) error {
	dtx := &decryptTx{staged: map[key][]byte{}}
	defer d.s.locks.releaseAll(&dtx.holder)
	inside := context.WithValue(context.WithValue(ctx, decryptTxKey{}, dtx), holderKey{}, &dtx.holder)
	if err := do(inside); err != nil {
		return err
	}
	var sessions, states []change
	for k, value := range dtx.staged {
		if k.kind == sessionKind && value != nil {
			sessions = append(sessions, change{k, value})
		} else {
			states = append(states, change{k, value})
		}
	}
	sessions, after, err := d.s.reserveKeysFor(sessions, true)
	if err != nil {
		return err
	}
	return d.commit(ctx, "store a decrypted message", func(tx *sqldb.Tx) error {
		tx.OnCommit(func() { d.s.cacheAll(after) })
		return errors.Join(sqldb.Each(dtx.writes, func(other func(*sqldb.Tx) error) error { return other(tx) }),
			writeStates(tx, sessions), d.s.apply(tx, states))
	})
}

// write runs do in the transaction of the decryption if there is one, else in its own.
func (d *device) write(ctx context.Context, what string, do func(*sqldb.Tx) error) error {
	if dtx := decryptTxFrom(ctx); dtx != nil {
		dtx.writes = append(dtx.writes, func(tx *sqldb.Tx) error { return wrapError(what, do(tx)) })
		return nil
	}
	return d.commit(ctx, what, do)
}

func (d *device) exec(ctx context.Context, what, query string, args ...any) error {
	return d.write(ctx, what, func(tx *sqldb.Tx) error { return tx.Do(query, args...) })
}
