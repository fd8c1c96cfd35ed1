package doctor

import (
	"fmt"
	"slices"

	"parley"
)

// Channels checks the status of channels. Without a running server, a stopped channel is fine.
func Channels(channels []parley.Channel, running bool) []Finding {
	findings := make([]Finding, len(channels))
	for i, c := range channels {
		findings[i] = checkChannel(c, running)
	}
	return findings
}

// Simulated warns that a production server has only sandbox channels.
func Simulated(channels []parley.Channel, dev bool) []Finding {
	real := func(c parley.Channel) bool { return c.Network != parley.Sandbox }
	if dev || len(channels) == 0 || slices.ContainsFunc(channels, real) {
		return nil
	}
	return []Finding{{Check: "network", Level: Warning, Found: "every channel is on the sandbox: no message reaches a real phone",
		Remedy: "parley channel create CODE --network whatsapp"}}
}

func checkChannel(c parley.Channel, running bool) Finding {
	if !running {
		c = c.Offline()
	}
	f := Finding{Check: "channel " + string(c.Code), Level: Fine, Found: fmt.Sprintf("%s since %s", c.State.Status, When(c.State.Since))}
	if c.State.Since.IsZero() {
		f.Found = fmt.Sprintf("%s: %s", c.State.Status, c.State.Reason)
	}
	switch {
	case c.State.Status == parley.ChannelWorking || !c.Enabled || !running:
		return f // disabled, or without a server: as expected
	case c.State.Status.CanSend():
		f.Level = Warning // it recovers by itself
	default:
		f.Level = Problem
		f.Remedy = "parley channel show " + string(c.Code)
	}
	if c.State.Reason != "" {
		f.Found += ": " + c.State.Reason
	}
	if c.State.Status == parley.ChannelLoggedOut || c.State.Status == parley.ChannelScanQRCode {
		f.Remedy = "parley channel pair " + string(c.Code)
	}
	return f
}
