package whatsapp

import (
	"strconv"
	"sync"
	"time"
)

// clock knows how far the clock of this machine is ahead of the network's.
type clock struct {
	mu         sync.Mutex
	ahead      time.Duration
	seen       time.Time // zero: it is not known
	newestTime time.Time // the newest time of a confirmation; zero: none
}

// measureClock takes note of the time that the network told when it let us in. That was on its way for no
// longer than all of the login took, by which we may only seem to be ahead.
func (conn *connection) measureClock(took time.Duration) {
	offset, told := conn.networkClockOffset()
	ahead := -offset
	if ahead > 0 {
		ahead = max(0, ahead-took)
	}
	c := &conn.s.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ahead, c.seen = ahead, time.Now(); !told {
		c.seen = time.Time{}
	}
}

// improve takes note of the time of a confirmation, where it shows that the clock is better than was thought. It
// never makes it worse: a message that the network had before may be confirmed with the time of then.
func (c *clock) improve(told time.Time) {
	if told.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if told.After(c.newestTime) {
		c.newestTime = told
	}
	if ahead := time.Since(told); !c.seen.IsZero() && ahead.Abs() < c.ahead.Abs() {
		c.ahead, c.seen = ahead, time.Now()
	}
}

// clockJump is how far the clock must have moved beside the time that passed for it to have been set meanwhile.
const clockJump = time.Second

// aheadBy tells how far the clock is ahead and when that was seen; a zero time: it is not known. After it was
// set, or the machine slept, that is so until the next connection.
func (c *clock) aheadBy() (ahead time.Duration, seen time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	onClock, passed := now.Round(0).Sub(c.seen.Round(0)), now.Sub(c.seen)
	if c.seen.IsZero() || (onClock-passed).Abs() > clockJump {
		return 0, time.Time{}
	}
	return c.ahead, c.seen
}

// newest is the newest time that the network told; zero: none.
func (c *clock) newest() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newestTime
}

const (
	week = 7 * 24 * time.Hour
	// sessionStart is where whatsmeow begins to count the time of a week.
	sessionStart = 3 * 24 * time.Hour
)

// networkClockOffset is how far the network's clock was ahead of ours when it let us in, in whole seconds; false: it did
// not tell. whatsmeow keeps that to itself, but for a number that it gives the network: the milliseconds of
// the week on the network's clock. So more than half a week is not told apart from less.
func (conn *connection) networkClockOffset() (time.Duration, bool) {
	now := time.Now()
	told, err := strconv.ParseInt(conn.inner().GetUnifiedSessionID(), 10, 64)
	if err != nil || told < 0 {
		return 0, false
	}
	ours := now.Add(sessionStart).UnixMilli() % week.Milliseconds()
	offset := (time.Duration(told-ours)*time.Millisecond + week + week/2) % week
	return (offset - week/2).Round(time.Second), true
}
