package keystore

import (
	"context"

	"parley/internal/store/sqldb"
)

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
		for _, other := range dtx.writes {
			if err := other(tx); err != nil {
				return err
			}
		}
		tx.OnCommit(func() { d.s.cacheAll(after) })
		if err := writeStates(tx, sessions); err != nil {
			return err
		}
		return d.s.apply(tx, states)
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
