package parley

import (
	"context"
	"time"
)

// MediaFetch is the file of a stored inbound message that is still to be fetched from the network. There is
// one row for each; a file without a row and without a key has failed.
type MediaFetch struct {
	Seq       int64 // of the message
	Channel   ChannelCode
	Chat      ContactID
	Reference []byte // what the network's session needs to fetch it, encrypted
	Attempts  int
	NextAt    time.Time // not to be tried before
	CreatedAt time.Time
	Media     Media // what the sender says of the file; filled by [MediaFetchReader.MediaFetch] only
}

// SealedMediaReference is what the encrypted reference of a file is bound to.
func SealedMediaReference(channel ChannelCode) string { return "file of " + string(channel) }

// MediaFetchReader reads which files are to be fetched.
type MediaFetchReader interface {
	// DueMediaFetches returns, for each chat, the oldest file that is due, apart from those that are being
	// fetched. One that is to be tried after latest is due too: the clock was wrong when it was delayed. The
	// references are left out.
	DueMediaFetches(ctx context.Context, now, latest time.Time, running []int64) ([]MediaFetch, error)
	// NextMediaFetch is when the next file is due that is not due now; zero: there is none.
	NextMediaFetch(ctx context.Context, now time.Time) (time.Time, error)
	MediaFetch(ctx context.Context, seq int64) (MediaFetch, error)
}

// MediaFetchWriter changes which files are to be fetched. Whatever erases a message or removes its channel
// also removes its row: then the others are [ErrNotFound].
type MediaFetchWriter interface {
	// AddMediaFetch stores that the file of a message, which must be stored, is to be fetched.
	AddMediaFetch(ctx context.Context, f MediaFetch) error
	// DelayMediaFetch stores that an attempt failed and when to try again.
	DelayMediaFetch(ctx context.Context, seq int64, attempts int, next time.Time) error
	// FinishMediaFetch stores what was fetched, or with nil that nothing will be, and returns the message.
	FinishMediaFetch(ctx context.Context, seq int64, m *Media) (Message, error)
}
