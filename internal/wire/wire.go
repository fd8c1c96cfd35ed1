// Package wire has the JSON of the API: what the server writes, and the commands, the tools for language models and tests read.
//
// Invariants: a message looks the same wherever it is shown. The types have no rules; those are in the root package.
package wire

import (
	"bytes"
	"time"

	"parley"
)

// Time is a time in UTC with milliseconds; zero is null.
type Time struct{ time.Time }

func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return append(parley.AppendStamp(append(make([]byte, 0, 26), '"'), t.Time), '"'), nil
}

func (t *Time) UnmarshalJSON(text []byte) error {
	if bytes.Equal(text, []byte(`""`)) {
		return nil
	}
	return t.Time.UnmarshalJSON(text)
}

// Names finds the name of a contact or a group on a channel; "" if it is not known.
type Names func(parley.ChannelCode, parley.ContactID) string

func (n Names) find(channel parley.ChannelCode, id parley.ContactID) string {
	if n == nil || id == "" {
		return ""
	}
	return n(channel, id)
}
