package doctor

import (
	"fmt"
	"time"
)

const (
	// clockOff is the smallest deviation to report. It is above the uncertainty of the network's time.
	clockOff = 5 * time.Second
	// clockWrong is the deviation at which receivers reject the signatures of webhooks.
	clockWrong = 5 * time.Minute
)

// Clock reports how far this machine's clock is ahead of WhatsApp's. Negative is behind.
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
