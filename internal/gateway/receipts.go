package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"parley"
	"parley/internal/network"
	"parley/internal/outbox"
	"parley/internal/store"
)

// maxReceipts is how many messages of receipts one transaction advances: requests wait behind it.
const maxReceipts = 200

// receiptWriter stores receipts of all channels. Every message causes several, so those that arrive during a transaction are
// stored together in the next one.
type receiptWriter struct {
	store *store.DB
	turn  chan struct{} // full while somebody writes

	mu      sync.Mutex
	waiting []*receiptWrite
}

// receiptWrite is a receipt that waits to be stored, and then what came of it.
type receiptWrite struct {
	store.Receipt
	account *account
	result  store.Advanced
	err     error
	done    chan struct{}
}

func newReceiptWriter(s *store.DB) *receiptWriter {
	return &receiptWriter{store: s, turn: make(chan struct{}, 1)}
}

// write returns when a receipt is stored, alone or with others.
func (w *receiptWriter) write(ctx context.Context, r *receiptWrite) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // others wait for the same transaction
	r.done = make(chan struct{})
	w.mu.Lock()
	w.waiting = append(w.waiting, r)
	w.mu.Unlock()
	for {
		select {
		case <-r.done:
			return r.err
		case w.turn <- struct{}{}:
			w.writeBatch(ctx, w.next())
			<-w.turn
		}
	}
}

// next takes waiting receipts, at least one if there is one.
func (w *receiptWriter) next() []*receiptWrite {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, messages := 0, 0
	for n < len(w.waiting) && (n == 0 || messages+len(w.waiting[n].IDs) <= maxReceipts) {
		messages += len(w.waiting[n].IDs)
		n++
	}
	batch := w.waiting[:n:n]
	w.waiting = w.waiting[n:]
	return batch
}

// writeBatch stores receipts in one transaction. If that fails because of one of them, it stores each alone.
func (w *receiptWriter) writeBatch(ctx context.Context, batch []*receiptWrite) {
	err := w.store.Tx(ctx, func(tx *store.Tx) error { return advance(ctx, tx, batch) })
	if err != nil && len(batch) > 1 && parley.ToCode(err) != parley.Unavailable {
		for _, r := range batch {
			w.writeBatch(ctx, []*receiptWrite{r})
		}
		return
	}
	for _, r := range batch {
		if err != nil {
			r.err = err
		}
		close(r.done)
	}
}

// advance applies receipts. It sets the error of those whose channel may store nothing more.
func advance(ctx context.Context, tx *store.Tx, batch []*receiptWrite) error {
	var some []*receiptWrite
	var receipts []store.Receipt
	for _, r := range batch {
		refusal, err := r.account.check(ctx, tx)
		if err != nil {
			return err
		}
		if r.err = nil; refusal != nil {
			r.err = refusal
			continue
		}
		some, receipts = append(some, r), append(receipts, r.Receipt)
	}
	results, err := tx.AdvanceMessages(ctx, receipts...)
	if err != nil {
		return err
	}
	for i, r := range some {
		r.result = results[i]
	}
	return nil
}

// applyReceipt advances messages. It returns an error for unknown ones, so that the network repeats the receipt: it can
// overtake its own send.
func (a *account) applyReceipt(ctx context.Context, e network.Receipt) error {
	if e.Failure != nil {
		return a.applyFailure(ctx, e)
	}
	chat := network.ToChat(e.From, e.Group)
	r := &receiptWrite{account: a, Receipt: store.Receipt{Channel: a.code, Chat: chat, IDs: e.IDs, Status: e.Status, At: e.At}}
	if err := a.g.receipts.write(ctx, r); err != nil {
		return fmt.Errorf("store a receipt: %w", err)
	}
	a.worker.ConfirmByReceipt(r.result.Seqs)
	for _, id := range r.result.IDs {
		a.g.statusChanged(&parley.Message{Channel: a.code, Chat: chat, ID: id, FromMe: true, Status: e.Status, UpdatedAt: e.At})
	}
	if len(r.result.Unknown) > 0 {
		return &network.UnknownMessages{IDs: r.result.Unknown}
	}
	return nil
}

// applyFailure fails messages that the network had confirmed, or is about to. An operation took effect with its confirmation, so it
// does not change. The rest of a pool has left, as a rule, so it does not fail either.
func (a *account) applyFailure(ctx context.Context, e network.Receipt) error {
	a.g.flush(ctx, a.code) // the event that it was sent comes first
	var failed []parley.Message
	var unknown []parley.MessageID
	err := a.tx(ctx, func(tx *store.Tx) error {
		failed, unknown = nil, nil // an earlier run of the transaction may have set them
		var found []parley.Message
		for _, id := range e.IDs {
			m, err := tx.Message(ctx, a.code, parley.MessageRef{FromMe: true, Chat: network.ToChat(e.From, e.Group), ID: id})
			if errors.Is(err, parley.ErrNotFound) {
				unknown = append(unknown, id)
				continue
			}
			if err != nil {
				return err
			}
			if m.Content.Kind().InHistory() {
				found = append(found, m)
			}
		}
		var err error
		failed, err = outbox.Fail(ctx, tx, found, e.Failure, e.At)
		return err
	})
	if err != nil {
		return fmt.Errorf("store a failure: %w", err)
	}
	for i := range failed {
		a.messageDone(&failed[i])
		a.worker.ConfirmByReceipt([]int64{failed[i].Seq})
	}
	if len(unknown) > 0 {
		return &network.UnknownMessages{IDs: unknown}
	}
	return nil
}
