package parley

import (
	"slices"
	"strings"
	"time"
)

const (
	// maxEarlier is how many attempts of a delivery are stored besides the last: a whole schedule and a replay.
	// A webhook that is down for days is tried more often, each minute, with the same delivery.
	maxEarlier = 20
	// maxExcerpt is how many bytes of the response are stored for an attempt that is not the last.
	maxExcerpt = 512
)

// DeliveryAttempt is how one attempt to make a delivery ended.
type DeliveryAttempt struct {
	Number   int // from 1 on; a replay counts on
	At       time.Time
	Took     time.Duration
	Code     int    // the HTTP status; zero: no response
	Problem  string // why it failed, in a few words; empty: it did not
	Response string // the beginning of the response, if it failed
}

// History lists the attempts that are known, oldest first.
func (d *Delivery) History() []DeliveryAttempt {
	if d.TriedAt.IsZero() {
		return d.Earlier
	}
	number := d.Attempts // more than are known, where a delivery is older than its history
	if n := len(d.Earlier); n > 0 {
		number = d.Earlier[n-1].Number + 1
	}
	last := DeliveryAttempt{max(number, 1), d.TriedAt, d.Took, d.Code, d.Problem, d.Response}
	return slices.Concat(d.Earlier, []DeliveryAttempt{last})
}

// SaveAttempt moves the last attempt to the earlier ones before another attempt. If there are too many, those after the
// first are dropped: the first and the newest say the most.
func (d *Delivery) SaveAttempt() {
	d.Earlier = d.History()
	if n := len(d.Earlier); n > 0 {
		last := &d.Earlier[n-1]
		if len(last.Response) > maxExcerpt {
			last.Response = strings.ToValidUTF8(last.Response[:maxExcerpt], "")
		}
	}
	if over := len(d.Earlier) - maxEarlier; over > 0 {
		d.Earlier = slices.Delete(d.Earlier, 1, 1+over)
	}
	d.TriedAt, d.Took, d.Code, d.Problem, d.Response = time.Time{}, 0, 0, "", ""
}
