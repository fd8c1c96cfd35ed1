package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"parley/internal/store/sqldb"
)

// unpackFirstVersion converts the first version's table bundles to rows of messages, and drops it. Each transaction moves
// some bundles. After an interruption it continues at the next start.
func (n *Network) unpackFirstVersion(ctx context.Context) error {
	for more := true; more; {
		err := n.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
			more, err = unpackBundles(tx)
			return err
		})
		if err != nil {
			return fmt.Errorf("unpack the messages of the first version: %w", err)
		}
	}
	return nil
}

// unpackBundles moves some bundles and reports whether there may be more.
func unpackBundles(tx *sqldb.Tx) (more bool, err error) {
	const atOnce = 100 // bundles, of up to 256 messages each
	var tables int
	err = tx.QueryRow(`SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'bundles'`, nil, &tables)
	if err != nil || tables == 0 {
		return false, err
	}
	list, err := readBundles(tx, atOnce)
	if err != nil {
		return false, err
	}
	if len(list) == 0 {
		_, err := tx.Exec(`DROP TABLE bundles`)
		return false, err
	}
	for _, m := range list {
		_, err := tx.Exec(insertMessage+` ON CONFLICT (phone, id, from_phone) DO UPDATE SET copies = copies + 1`,
			m.seq, m.phone, fromChannel, m.id, m.kind, m.text, m.data, m.replyTo, m.at)
		if err != nil {
			return false, err
		}
	}
	last := list[len(list)-1].seq
	if _, err := tx.Exec(`DELETE FROM bundles WHERE seq <= $1`, last); err != nil {
		return false, err
	}
	_, err = tx.Exec(`UPDATE counter SET seq = $1 WHERE seq < $1`, last) // the last one may have been a copy
	return true, err
}

// bundledMessage is a message of a bundle.
type bundledMessage struct {
	seq, at, phone          int64
	id, kind, text, replyTo string
	data                    []byte
}

// readBundles reads the messages of the oldest bundles.
func readBundles(tx *sqldb.Tx, limit int) (list []bundledMessage, err error) {
	rows, err := tx.Query(`SELECT seq, at, body FROM bundles ORDER BY seq LIMIT $1`, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var last, at int64
		var body []byte
		if err := rows.Scan(&last, &at, &body); err != nil {
			return nil, err
		}
		if list, err = appendBundle(list, last, at, body); err != nil {
			return nil, err
		}
	}
	return list, rows.Err()
}

// appendBundle appends the messages of a bundle whose last one has the position last. A message is its phone and five
// parts, each with its length before it.
func appendBundle(list []bundledMessage, last, at int64, body []byte) ([]bundledMessage, error) {
	before := len(list)
	for len(body) > 0 {
		phone, size := binary.Uvarint(body)
		if size <= 0 {
			return nil, errors.New("a bundle is damaged")
		}
		body = body[size:]
		var parts [5]string
		for i := range parts {
			length, size := binary.Uvarint(body)
			if size <= 0 || length > uint64(len(body)-size) {
				return nil, errors.New("a bundle is damaged")
			}
			end := size + int(length)
			parts[i], body = string(body[size:end]), body[end:]
		}
		m := bundledMessage{at: at, phone: int64(phone), id: parts[0], kind: parts[1], text: parts[2], replyTo: parts[4]}
		if parts[3] != "" {
			m.data = []byte(parts[3])
		}
		list = append(list, m)
	}
	for i := range list[before:] {
		list[before+i].seq = last - int64(len(list)-before-1-i)
	}
	return list, nil
}
