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
	newestTime time.Time // newest time in a confirmation; zero: none yet
}

// measureClock compares this machine's clock with the time in the login response. The response was in transit for at
// most the whole login, so up to that much of a positive offset is ignored.
func (conn *connection) measureClock(took time.Duration) {
	offset, known := conn.networkClockOffset()
	ahead := -offset
	if ahead > 0 {
		ahead = max(0, ahead-took)
	}
	c := &conn.s.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ahead, c.seen = ahead, time.Now(); !known {
		c.seen = time.Time{}
	}
}

// improve uses the time of a confirmation if it shows a smaller offset. It never enlarges the offset: a message that
// the network already had may be confirmed with its original time.
func (c *clock) improve(confirmed time.Time) {
	if confirmed.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if confirmed.After(c.newestTime) {
		c.newestTime = confirmed
	}
	if ahead := time.Since(confirmed); !c.seen.IsZero() && ahead.Abs() < c.ahead.Abs() {
		c.ahead, c.seen = ahead, time.Now()
	}
}

// clockJump is the difference between wall clock and elapsed time that shows that the clock was set.
const clockJump = time.Second

// aheadBy returns how far the clock is ahead and when that was measured; a zero time means unknown. It stays unknown
// until the next connection after the clock was set or the machine slept.
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

func (c *clock) newest() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newestTime
}

const (
	week = 7 * 24 * time.Hour
	// sessionStart is the offset at which whatsmeow starts its week.
	sessionStart = 3 * 24 * time.Hour
)

// networkClockOffset returns how far the network's clock was ahead at login, in whole seconds. whatsmeow exposes it
// only as milliseconds of the week on the network's clock, so offsets beyond half a week wrap.
func (conn *connection) networkClockOffset() (time.Duration, bool) {
	now := time.Now()
	theirs, err := strconv.ParseInt(conn.inner().GetUnifiedSessionID(), 10, 64)
	if err != nil || theirs < 0 {
		return 0, false
	}
	ours := now.Add(sessionStart).UnixMilli() % week.Milliseconds()
	offset := (time.Duration(theirs-ours)*time.Millisecond + week + week/2) % week
	return (offset - week/2).Round(time.Second), true
}
