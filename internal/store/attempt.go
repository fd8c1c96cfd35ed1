package store

import (
	"encoding/json"
	"fmt"
	"time"

	"parley"
)

// storedAttempt is an attempt as it is written with its delivery. The names are stored and must not change.
type storedAttempt struct {
	Number  int    `json:"n"`
	At      int64  `json:"at"`   // milliseconds since 1970
	Took    int64  `json:"took"` // microseconds
	Code    int    `json:"code,omitempty"`
	Problem string `json:"problem,omitempty"`
	Answer  string `json:"answer,omitempty"`
}

// encodeAttempts writes the earlier attempts of a delivery as they are stored. Most have none, and cost
// nothing.
func encodeAttempts(all []parley.DeliveryAttempt) (string, error) {
	if len(all) == 0 {
		return "", nil
	}
	stored := make([]storedAttempt, len(all))
	for i, a := range all {
		stored[i] = storedAttempt{a.Number, millis(a.At), a.Took.Microseconds(), a.Code, a.Problem, a.Answer}
	}
	encoded, err := json.Marshal(stored)
	return string(encoded), err
}

func decodeAttempts(encoded []byte) ([]parley.DeliveryAttempt, error) {
	if len(encoded) == 0 {
		return nil, nil
	}
	var stored []storedAttempt
	if err := json.Unmarshal(encoded, &stored); err != nil {
		return nil, fmt.Errorf("attempts of a delivery: %w", err)
	}
	all := make([]parley.DeliveryAttempt, len(stored))
	for i, a := range stored {
		all[i] = parley.DeliveryAttempt{Number: a.Number, At: moment(a.At), Took: time.Duration(a.Took) * time.Microsecond,
			Code: a.Code, Problem: a.Problem, Answer: a.Answer}
	}
	return all, nil
}
