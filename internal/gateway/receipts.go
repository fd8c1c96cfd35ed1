package gateway

import (
	"context"
	"fmt"
	"sync"

	"parley"
	"parley/internal/network"
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
	if err != nil && len(batch) > 1 && parley.CodeOf(err) != parley.Unavailable {
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
	chat := network.ChatOf(e.From, e.Group)
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
