package doctor

import (
	"fmt"
	"time"
)

const (
	// clockOff is how far a clock may be off before anybody is told: people do not notice so much, and it is
	// well above what is uncertain about the time that a network tells.
	clockOff = 5 * time.Second
	// clockWrong is from when on things break: receivers refuse webhooks that are signed so long ago, or so
	// far ahead.
	clockWrong = 5 * time.Minute
)

// Clock tells how far the clock of this machine is ahead of WhatsApp's; behind it, where that is negative.
func Clock(ahead time.Duration) Finding {
	f := Finding{Check: "clock", Level: Fine, Found: "agrees with WhatsApp's"}
	off := ahead.Abs()
	if off <= clockOff {
		return f
	}
	word := "ahead of"
	if ahead < 0 {
		word = "behind"
	}
	f.Level, f.Remedy = Warning, "set it by network time (NTP)"
	f.Found = fmt.Sprintf("The clock of this machine is %s %s WhatsApp's.", Lasted(off), word)
	if off > clockWrong {
		f.Level = Problem
	}
	return f
}
