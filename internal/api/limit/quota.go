package limit

import (
	"fmt"
	"time"

	"parley"
)

// What is counted, where it is not requests.
const (
	UnitBytes  = "content-bytes"
	UnitAtOnce = "concurrent-requests"
)

// Quota is what is left of a limit.
type Quota struct {
	Name    string // empty: there is no limit
	Unit    string // empty: requests
	Most    int64
	Window  time.Duration // zero: it does not go by time
	Left    int64
	Wait    time.Duration // until there is more; where the quota refuses, until it would not
	Refused bool          // the request that it was asked for
}

// Header returns the values of the header fields RateLimit-Policy and RateLimit, in the syntax of structured fields
// (RFC 9651). Times are rounded up: nobody comes back too early.
func (q Quota) Header() (policy, limit string) {
	policy = fmt.Sprintf("%q;q=%d", q.Name, q.Most)
	if q.Window > 0 {
		policy += fmt.Sprintf(";w=%d", WholeSeconds(q.Window))
	}
	if q.Unit != "" {
		policy += fmt.Sprintf(";qu=%q", q.Unit)
	}
	return policy, fmt.Sprintf("%q;r=%d;t=%d", q.Name, q.Left, WholeSeconds(q.Wait))
}

// TighterThan reports whether less is left of the quota than of another.
func (q Quota) TighterThan(other Quota) bool {
	switch {
	case other.Name == "":
		return true
	case q.Left == 0 && other.Left == 0:
		return q.Wait > other.Wait
	}
	return float64(q.Left)/float64(q.Most) < float64(other.Left)/float64(other.Most)
}

// WholeSeconds returns a time in seconds, rounded up.
func WholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// Error is the error of a request that is over a limit, which its response names.
type Error struct {
	Quota
	Err *parley.Error
}

// Exceeded returns the error of a request that a quota refuses, with a sentence for its caller.
func Exceeded(q Quota, sentence string) error {
	return &Error{q, &parley.Error{Code: parley.TooMany, RetryAfter: q.Wait, Message: sentence}}
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }
