package store

import (
	"context"

	"parley"
)

// keptLedger is a ledger in the writer's memory. A code is mostly tried soon after it was asked for,
// and often several times.
type keptLedger struct {
	parley.OTPLedger
	seq int64 // of its row; zero: not known, or there is none
}

// Some 500 bytes each, and only open codes are kept.
const rememberedLedgers = 20_000

// Ledger reads what is known of the codes of a contact on a channel, in memory where it was asked for
// before.
func (t *tx) Ledger(ctx context.Context, channel parley.ChannelCode, contact parley.ContactID) (parley.OTPLedger, error) {
	memory, err := t.remember()
	if err != nil {
		return parley.OTPLedger{}, err
	}
	name := chatName{channel, contact}
	if kept, ok := memory.ledgers.get(name); ok {
		return kept.OTPLedger, nil
	}
	seq, l, err := t.readLedger(channel, contact)
	if err == nil {
		t.OnCommit(func() { memory.ledgers.put(name, keptLedger{l, seq}) })
	}
	return l, err
}

// keepLedger has memory follow a change of a row. Until the change is committed memory does not know
// the ledger at all: others in the same transaction read the row, and if it is undone nothing else
// needs to be.
func (t *tx) keepLedger(l parley.OTPLedger, seq int64) {
	name, ledgers := chatName{l.Code.Channel, l.Code.Contact}, t.db.memory.ledgers
	if l.Code.Status != parley.OTPStatusPending { // what ended is hardly tried again
		t.dropLedger(name)
		return
	}
	ledgers.drop(name)
	t.OnCommit(func() { ledgers.put(name, keptLedger{l, seq}) })
}

// dropLedger has memory forget a ledger whose row is changed. It does so twice: what was done before
// in the same transaction is remembered when that is committed.
func (t *tx) dropLedger(name chatName) {
	ledgers := t.db.memory.ledgers
	ledgers.drop(name)
	t.OnCommit(func() { ledgers.drop(name) })
}

// forgetLedgers has memory forget all ledgers, where rows are removed.
func (t *tx) forgetLedgers() {
	forget := func() { t.db.memory.ledgers = newRecent[chatName, keptLedger](rememberedLedgers) }
	forget()
	t.OnCommit(forget)
}
