package parley

import (
	"time"
)

// StoredResponse is the stored response to a request with an idempotency key.
type StoredResponse struct {
	Scope       string // the channel's code, or the kind of the token where no channel is meant
	Key         string
	Fingerprint []byte // of method, path, query and body
	Channel     ChannelCode
	Messages    []MessageRef // what the request made, in order
	CreatedAt   time.Time

	// The response; zero and nil while it is not stored yet.
	StatusCode  int
	ContentType string
	Body        []byte
}

// IsComplete reports whether the response is stored, not only that the request was accepted.
func (a StoredResponse) IsComplete() bool { return a.StatusCode != 0 }
