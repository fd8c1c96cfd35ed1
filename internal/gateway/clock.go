package gateway

import "time"

// ClockAhead tells how far the clock of this machine is ahead of the networks', behind where that is
// negative, by what a channel saw last; false: none did.
func (g *Gateway) ClockAhead() (ahead time.Duration, known bool) {
	var last time.Time
	for _, c := range g.Channels() {
		if e, ok := g.Evidence(c.Code); ok && e.ClockSeen.After(last) {
			last, ahead = e.ClockSeen, e.ClockAhead
		}
	}
	return ahead, !last.IsZero()
}
