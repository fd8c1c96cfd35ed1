package store

import (
	"context"

	"parley"
)

// memory is what the writer remembers of the rows that it wrote, so that it need not look for them.
// Only the writer uses it, and only for what is committed.
type memory struct {
	chats *recent[chatName, int64]
	own   *recent[ownMessage, int64] // messages that channels sent, by seq

	ledgers *recent[chatName, keptLedger]

	channels map[parley.ChannelCode]int64 // the ids of channels

	batch    int64 // the last transaction in which it was seen to be true
	revision int64 // of the store at that time
}

// chatName is how callers name a chat.
type chatName struct {
	channel parley.ChannelCode
	contact parley.ContactID
}

// ownMessage is how receipts name a message.
type ownMessage struct {
	chat int64
	id   parley.MessageID
}

// A receipt mostly comes soon after its message.
const remembered = 20_000

func newMemory() memory {
	return memory{
		chats: newRecent[chatName, int64](remembered), own: newRecent[ownMessage, int64](remembered),
		ledgers: newRecent[chatName, keptLedger](rememberedLedgers), channels: map[parley.ChannelCode]int64{},
	}
}

// forget drops everything, when rows were removed.
func (m *memory) forget() {
	empty := newMemory()
	m.chats, m.own, m.ledgers, m.channels = empty.chats, empty.own, empty.ledgers, empty.channels
}

// remember returns what is remembered. Another process may have removed channels, with their chats,
// which is a revision: so that is looked at once in every transaction.
func (t *tx) remember() (*memory, error) {
	m := &t.db.memory
	if m.batch == t.Batch {
		return m, nil
	}
	revision, err := t.Revision(context.Background())
	if err != nil {
		return nil, err
	}
	if revision != m.revision {
		m.forget()
	}
	m.batch, m.revision = t.Batch, revision
	return m, nil
}

// recent is a map that keeps the newest entries: at least half of size, at most size.
type recent[K comparable, V any] struct {
	size     int
	new, old map[K]V
}

func newRecent[K comparable, V any](size int) *recent[K, V] {
	return &recent[K, V]{size: size, new: map[K]V{}}
}

func (r *recent[K, V]) get(key K) (V, bool) {
	if v, ok := r.new[key]; ok {
		return v, true
	}
	v, ok := r.old[key]
	return v, ok
}

func (r *recent[K, V]) put(key K, value V) {
	if len(r.new) >= r.size/2 {
		r.old, r.new = r.new, make(map[K]V, r.size/2)
	}
	r.new[key] = value
}

func (r *recent[K, V]) drop(key K) {
	delete(r.new, key)
	delete(r.old, key)
}
