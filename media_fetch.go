package parley

import (
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

// MediaReferenceContext is what the encrypted reference of a file is bound to.
func MediaReferenceContext(channel ChannelCode) string { return "file of " + string(channel) }
