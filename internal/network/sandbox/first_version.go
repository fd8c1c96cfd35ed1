package sandbox

import (
	"context"
	"encoding/binary"
	"errors"

	"parley/internal/store/sqldb"
)

// unpackFirstVersion converts the first version's table bundles to rows of messages, and drops it. Each transaction moves
// some bundles. After an interruption it continues at the next start.
func (n *Network) unpackFirstVersion(ctx context.Context) error {
	for more := true; more; {
		err := n.write(ctx, "unpack the messages of the first version", func(tx *sqldb.Tx) (err error) {
			more, err = unpackBundles(tx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// bundle is up to 256 messages of the first version, the last of which has the position seq.
type bundle struct {
	seq, at int64
	body    []byte
}

func unpackBundles(tx *sqldb.Tx) (more bool, err error) {
	var tables int
	err = tx.QueryRow(`SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'bundles'`, nil, &tables)
	if err != nil || tables == 0 {
		return false, err
	}
	bundles, err := sqldb.Collect(tx.Conn, func(row scanner) (b bundle, err error) {
		err = row.Scan(&b.seq, &b.at, &b.body)
		return b, err
	}, `SELECT seq, at, body FROM bundles ORDER BY seq LIMIT 100`)
	if err != nil {
		return false, err
	}
	if len(bundles) == 0 {
		_, err := tx.Exec(`DROP TABLE bundles`)
		return false, err
	}
	for _, b := range bundles {
		if err := b.unpack(tx); err != nil {
			return false, err
		}
	}
	last := bundles[len(bundles)-1].seq
	if _, err := tx.Exec(`DELETE FROM bundles WHERE seq <= $1`, last); err != nil {
		return false, err
	}
	_, err = tx.Exec(`UPDATE counter SET seq = $1 WHERE seq < $1`, last) // the last one may have been a copy
	return true, err
}

// bundledMessage is a message of a bundle: its phone, id, kind, text, data and replied message.
type bundledMessage struct {
	phone uint64
	parts [5]string
}

func (b bundle) unpack(tx *sqldb.Tx) error {
	list, err := b.messages()
	for i, m := range list {
		var data []byte // nil: none
		if m.parts[3] != "" {
			data = []byte(m.parts[3])
		}
		_, err := tx.Exec(insertMessage+` ON CONFLICT (phone, id, from_phone) DO UPDATE SET copies = copies + 1`,
			b.seq-int64(len(list)-1-i), int64(m.phone), fromChannel, m.parts[0], m.parts[1], m.parts[2], data, m.parts[4], b.at, 0, "")
		if err != nil {
			return err
		}
	}
	return err
}

// messages decodes a bundle. Each part has its length before it.
func (b bundle) messages() (list []bundledMessage, err error) {
	for body := b.body; len(body) > 0; {
		var m bundledMessage
		var size int
		if m.phone, size = binary.Uvarint(body); size <= 0 {
			return nil, errors.New("a bundle is damaged")
		}
		body = body[size:]
		for i := range m.parts {
			length, size := binary.Uvarint(body)
			if size <= 0 || length > uint64(len(body)-size) {
				return nil, errors.New("a bundle is damaged")
			}
			end := size + int(length)
			m.parts[i], body = string(body[size:end]), body[end:]
		}
		list = append(list, m)
	}
	return list, nil
}
