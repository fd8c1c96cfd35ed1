package keystore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"

	"parley/internal/store/sqldb"
	"parley/internal/wait"
)

// keepHashes is how long the network may give a message again.
const keepHashes = 14 * 24 * time.Hour

// GetBufferedEvent finds a message that was decrypted before; nil: it was not. Without a text it was taken.
func (d *device) GetBufferedEvent(ctx context.Context, hash [32]byte) (*store.BufferedEvent, error) {
	var e store.BufferedEvent
	isTaken := d.s.broom.has(taken{d.id, hash}) // asked first: what the broom has let go of is gone from the database
	var serverAt, at int64
	err := d.s.db.Read(ctx).QueryRow(`SELECT plaintext, server_at, at FROM decrypted WHERE device = $1 AND hash = $2`, []any{d.id, hash[:]}, &e.Plaintext, &serverAt, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read a decrypted message: %w", err)
	}
	e.ServerTime, e.InsertTime = time.Unix(serverAt, 0), time.UnixMilli(at)
	if isTaken {
		e.Plaintext = nil
	}
	return &e, nil
}

// PutBufferedEvent keeps a decrypted message.
func (d *device) PutBufferedEvent(ctx context.Context, hash [32]byte, plaintext []byte, serverAt time.Time) error {
	at := time.Now().UnixMilli()
	return d.exec(ctx, "keep a decrypted message", `INSERT INTO decrypted (device, hash, plaintext, server_at, at) VALUES ($1, $2, $3, $4, $5)`,
		d.id, hash[:], filled(plaintext), serverAt.Unix(), at)
}

// ClearBufferedEventPlaintext removes the text of a message that was taken, soon. Should that be lost, the
// message is given to the sink once more at worst, which keeps it once.
func (d *device) ClearBufferedEventPlaintext(_ context.Context, hash [32]byte) error {
	d.s.broom.add(taken{d.id, hash})
	return nil
}

// DeleteOldBufferedHashes forgets messages that the network does not give again, and secrets of messages that
// nobody answers any more. whatsmeow asks for it twice a day where messages come in, which is what makes them.
func (d *device) DeleteOldBufferedHashes(ctx context.Context) error {
	now := time.Now()
	return errors.Join(
		d.s.exec(ctx, "forget decrypted messages", `DELETE FROM decrypted WHERE at < $1`, now.Add(-keepHashes).UnixMilli()),
		d.s.forgetSecrets(ctx, dayOf(now.Add(-keepSecrets))),
	)
}

var errNotKept = errors.New("what was sent is kept by the gateway, not here")

// AddOutgoingEvent is not used: what a device could not read is made again of what the gateway keeps.
func (d *device) AddOutgoingEvent(context.Context, types.JID, types.MessageID, string, []byte) error {
	return errNotKept
}

// GetOutgoingEvent is not used either.
func (d *device) GetOutgoingEvent(context.Context, types.JID, types.JID, types.MessageID) (string, []byte, error) {
	return "", nil, errNotKept
}

// DeleteOldOutgoingEvents has nothing to delete.
func (d *device) DeleteOldOutgoingEvents(context.Context) error { return nil }

// taken names a decrypted message whose text is of no use any more.
type taken struct {
	device int64
	hash   [32]byte
}

const (
	// sweepPause gathers texts to remove, so that they cost no commit each.
	sweepPause = 50 * time.Millisecond
	// sweepMost is how many go at a time; others who write wait no longer.
	sweepMost = 1000
)

// broom removes texts that were taken, many at a time.
type broom struct {
	db   *sqldb.DB
	dirt chan struct{} // holds one: there is something to remove
	stop chan struct{}
	done sync.WaitGroup

	mu    sync.Mutex
	waits map[taken]struct{}
}

func startBroom(db *sqldb.DB) *broom {
	b := &broom{db: db, dirt: make(chan struct{}, 1), stop: make(chan struct{}), waits: map[taken]struct{}{}}
	b.done.Go(b.run)
	return b
}

// end removes what waits and ends the broom.
func (b *broom) end() {
	close(b.stop)
	b.done.Wait()
}

func (b *broom) add(t taken) {
	b.mu.Lock()
	b.waits[t] = struct{}{}
	b.mu.Unlock()
	wait.Notify(b.dirt)
}

// has reports whether a text waits to be removed.
func (b *broom) has(t taken) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, waits := b.waits[t]
	return waits
}

func (b *broom) run() {
	pause := time.NewTimer(sweepPause)
	defer pause.Stop()
	for {
		select {
		case <-b.stop:
			b.sweep()
			return
		case <-b.dirt:
		}
		pause.Reset(sweepPause)
		select {
		case <-b.stop:
		case <-pause.C:
		}
		b.sweep()
	}
}

// sweep removes what waits. What fails waits on: a database that does not work now may do so later.
func (b *broom) sweep() {
	for {
		some := b.some()
		if len(some) == 0 {
			return
		}
		err := b.db.Write(context.Background(), func(tx *sqldb.Tx) error {
			for _, t := range some {
				if _, err := tx.Exec(`UPDATE decrypted SET plaintext = NULL WHERE device = $1 AND hash = $2`, t.device, t.hash[:]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return
		}
		b.mu.Lock()
		for _, t := range some {
			delete(b.waits, t)
		}
		b.mu.Unlock()
	}
}

// some returns some of what waits, which waits on until it is removed.
func (b *broom) some() []taken {
	b.mu.Lock()
	defer b.mu.Unlock()
	some := make([]taken, 0, min(len(b.waits), sweepMost))
	for t := range b.waits {
		if len(some) == sweepMost {
			break
		}
		some = append(some, t)
	}
	return some
}
