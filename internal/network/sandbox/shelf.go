package sandbox

import (
	"context"
	"fmt"

	"parley/internal/store/sqldb"
)

// A phone's messages are found on its shelf. A send does not put them there: with many phones that
// would touch another page for each message. They are shelved many at a time: every second, and always
// before anybody looks.
const shelveAtOnce = 1000 // so that no send waits long

// shelve puts all messages of the record on the shelves of their phones.
func (n *Network) shelve(ctx context.Context) error {
	for n.shelved.Load() < n.seq.Load() {
		err := n.db.Write(ctx, func(tx *sqldb.Tx) error {
			upTo, err := n.shelveSome(tx)
			if err == nil {
				tx.OnCommit(func() { n.shelved.Store(upTo) })
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("sort messages by phone: %w", err)
		}
	}
	return nil
}

// shelveAll is shelve inside a transaction.
func (n *Network) shelveAll(tx *sqldb.Tx) error {
	for {
		if upTo, err := n.shelveSome(tx); err != nil || upTo >= n.seq.Load() {
			return err
		}
	}
}

// shelveSome shelves the next messages and returns up to which position all are.
func (n *Network) shelveSome(tx *sqldb.Tx) (upTo int64, err error) {
	given := n.seq.Load() // only the writer gives out more
	var mark, last, count int64
	if err := tx.QueryRow(`SELECT seq FROM shelved`, nil, &mark); err != nil {
		return 0, err
	}
	err = tx.QueryRow(`SELECT coalesce(max(seq), 0), count(*) FROM (SELECT seq FROM messages WHERE seq > $1 ORDER BY seq LIMIT $2) AS next`,
		[]any{mark, int64(shelveAtOnce)}, &last, &count)
	if err != nil || count == 0 {
		return given, err
	}
	if _, err := tx.Exec(`INSERT INTO shelf (phone, from_phone, seq) SELECT phone, from_phone, seq FROM messages WHERE seq > $1 AND seq <= $2`, mark, last); err != nil {
		return 0, err
	}
	if _, err := tx.Exec(`UPDATE shelved SET seq = $1`, last); err != nil {
		return 0, err
	}
	if count < shelveAtOnce {
		return given, nil
	}
	return last, nil
}
