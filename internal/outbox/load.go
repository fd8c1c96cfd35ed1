package outbox

import (
	"context"

	"parley"
	"parley/internal/network"
)

// give calls the sender, unless the connection that the burst was meant for is gone: the next one may be
// another account's.
func (w *Worker) give(s Sender, b *burst, ms []*parley.Message) []error {
	w.mu.Lock()
	connected := w.sender != nil && w.online == b.connection
	w.mu.Unlock()
	if connected {
		return s.Send(b.ctx, ms)
	}
	errs := make([]error, len(ms))
	for i := range errs {
		errs[i] = network.NotConnected(nil)
	}
	return errs
}

// load reads what the messages of a burst say, unless that is in memory. Those that need not be sent are marked
// in errs: what is not in memory is read as it is now, and one that was tried before may have arrived after all.
func (w *Worker) load(ctx context.Context, b *burst, errs []error) error {
	b.messages = make([]*parley.Message, len(b.entries))
	var seqs []int64
	for i, e := range b.entries {
		if b.messages[i] = e.message; e.message == nil {
			seqs = append(seqs, e.Seq)
		}
	}
	w.markSettled(ctx, b, errs, func(i int) bool { return b.messages[i] != nil && b.entries[i].Attempts > 0 })
	if len(seqs) == 0 {
		return nil
	}
	found, err := w.Store.Messages(ctx, w.Channel, seqs)
	if err != nil {
		return err
	}
	bySeq := make(map[int64]*parley.Message, len(found))
	for i := range found {
		bySeq[found[i].Seq] = &found[i]
	}
	for i, e := range b.entries {
		if b.messages[i] != nil {
			continue
		}
		m := bySeq[e.Seq]
		if m == nil { // its channel was deleted
			m = &parley.Message{Seq: e.Seq, Channel: w.Channel, Chat: e.Chat, ID: e.ID, FromMe: true, Status: parley.Deleted}
		}
		if m.Status.IsSettled() {
			errs[i] = errSettled
		}
		b.messages[i] = m
	}
	return nil
}

// sizeOf is about how much memory a content takes.
func sizeOf(c parley.Content) int {
	size := 256 + len(c.Text())
	switch c := c.(type) {
	case parley.Text:
		if c.Preview != nil {
			size += len(c.Preview.Title) + len(c.Preview.Description) + len(c.Preview.Thumbnail)
		}
	case parley.Secret:
		size += len(c.Encrypted)
	case parley.Poll:
		for _, option := range c.Options {
			size += len(option)
		}
	}
	if media := parley.MediaOf(c); media != nil {
		size += len(media.Thumbnail) + len(media.Waveform) + len(media.Source)
	}
	return size
}
