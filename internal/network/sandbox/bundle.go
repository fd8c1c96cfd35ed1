package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"parley"
	"parley/internal/store/sqldb"
)

// A bundle is the plain messages of one burst, packed into one value. A row for each, with its places in
// the indexes, would cost several times as much as everything else that the network does with a message.
// So they are one row at the end of one table, written before the send is confirmed. Unpacking it
// (unpack.go) is left for when somebody looks or nothing else is to do.
type bundle struct {
	count int64
	body  []byte
}

// add packs a message to a phone.
func (b *bundle) add(p *phone, m *parley.Message) error {
	data, err := parley.EncodeContent(m.Content)
	if err != nil {
		return fmt.Errorf("pack message: %w", err)
	}
	b.body = binary.AppendUvarint(b.body, uint64(p.id))
	b.body = appendPart(b.body, m.ID)
	b.body = appendPart(b.body, m.Content.Kind())
	b.body = appendPart(b.body, m.Content.Text())
	b.body = appendPart(b.body, data)
	b.body = appendPart(b.body, m.ReplyTo)
	b.count++
	return nil
}

// appendPart appends a value with its length before it.
func appendPart[S ~string | ~[]byte](body []byte, part S) []byte {
	return append(binary.AppendUvarint(body, uint64(len(part))), part...)
}

// pack records a bundle and returns the place of its first message; the others follow without a gap.
func (n *Network) pack(tx *sqldb.Tx, b *bundle, at time.Time) (first int64, err error) {
	last := n.seq.Add(b.count)
	_, err = tx.Exec(`INSERT INTO bundles (seq, at, body) VALUES ($1, $2, $3)`, last, at.UnixMilli(), b.body)
	tx.OnCommit(func() { n.packing.add(last, at) })
	return last - b.count + 1, err
}

// packed is a message as it comes out of a bundle.
type packed struct {
	seq, at, phone                int64
	id, kind, text, data, replyTo string
}

var errBundle = errors.New("a bundle is damaged")

// appendPacked takes the messages out of a bundle whose last one has the place last.
func appendPacked(list []packed, last, at int64, body []byte) ([]packed, error) {
	before := len(list)
	rest := string(body) // whose parts need no copies of their own
	for rest != "" {
		m := packed{at: at}
		phone, ok := cutNumber(&rest)
		m.phone = int64(phone)
		for _, part := range []*string{&m.id, &m.kind, &m.text, &m.data, &m.replyTo} {
			size, found := cutNumber(&rest)
			if !ok || !found || size > uint64(len(rest)) {
				return nil, errBundle
			}
			*part, rest = rest[:size], rest[size:]
		}
		list = append(list, m)
	}
	for i := range list[before:] {
		list[before+i].seq = last - int64(len(list)-before-1-i)
	}
	return list, nil
}

// cutNumber takes a number from the beginning of a text.
func cutNumber(rest *string) (uint64, bool) {
	var number uint64
	for i := range min(len(*rest), binary.MaxVarintLen64) {
		b := (*rest)[i]
		number |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			*rest = (*rest)[i+1:]
			return number, true
		}
	}
	return 0, false
}
