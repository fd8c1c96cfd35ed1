package parley

import (
	"time"
)

// Answer is what is kept of a request that carried an idempotency key.
type Answer struct {
	Scope       string // the channel's code, or the kind of the token where no channel is meant
	Key         string
	Fingerprint []byte // of method, path, query and body
	Channel     ChannelCode
	Messages    []MessageRef // what the request made, in order
	CreatedAt   time.Time

	// What was answered; zero and nil while the answer is not stored.
	StatusCode  int
	ContentType string
	Body        []byte
}

// IsComplete reports whether the answer itself is stored, not only that the request was taken.
func (a Answer) IsComplete() bool { return a.StatusCode != 0 }
