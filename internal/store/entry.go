package store

import (
	"encoding/binary"
	"errors"
	"slices"

	"parley"
)

// entry is an event as it lies in a row of the log.
type entry struct {
	kind    parley.EventType
	at      int64         // milliseconds
	message int64         // its seq; zero: the event is not about a message
	status  parley.Status // that the message got or had
	chat    parley.ContactID
	data    []byte
}

// appendEntry writes an entry at the end of a row's entries. Times are written as what passed since
// the row's own.
func appendEntry(b []byte, e entry, since int64) []byte {
	b = append(b, byte(slices.Index(parley.EventTypes, e.kind)), byte(e.status))
	b = binary.AppendVarint(b, e.at-since)
	b = binary.AppendVarint(b, e.message)
	b = binary.AppendUvarint(b, uint64(len(e.chat)))
	b = append(b, e.chat...)
	b = binary.AppendUvarint(b, uint64(len(e.data)))
	return append(b, e.data...)
}

var errEntries = errors.New("the event log is damaged")

// nextEntry reads the first entry and returns what follows it.
func nextEntry(b []byte, since int64) (e entry, rest []byte, err error) {
	if len(b) < 2 || int(b[0]) >= len(parley.EventTypes) {
		return entry{}, nil, errEntries
	}
	e.kind, e.status = parley.EventTypes[b[0]], parley.Status(b[1])
	r := entryReader{rest: b[2:]}
	e.at = since + r.varint()
	e.message = r.varint()
	e.chat = parley.ContactID(r.bytes())
	e.data = r.bytes()
	if r.broken {
		return entry{}, nil, errEntries
	}
	return e, r.rest, nil
}

// entryReader takes numbers and bytes off the front.
type entryReader struct {
	rest   []byte
	broken bool
}

func (r *entryReader) varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.broken = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *entryReader) bytes() []byte {
	size, n := binary.Uvarint(r.rest)
	if n <= 0 || size > uint64(len(r.rest)-n) {
		r.broken = true
		return nil
	}
	b := r.rest[n : n+int(size)]
	r.rest = r.rest[n+int(size):]
	if size == 0 {
		return nil
	}
	return b
}
