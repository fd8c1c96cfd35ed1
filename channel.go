package parley

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// NetworkName names a chat network that channels can be on.
type NetworkName string

const (
	Sandbox  NetworkName = "sandbox"  // built in, with simulated phones
	WhatsApp NetworkName = "whatsapp" // the real one
)

// Channel is an account on a chat network.
type Channel struct {
	Code      ChannelCode
	ID        int64  // given by the store, and to no other channel: not to a later one with the same code
	Name      string // shown to people
	Network   NetworkName
	Number    string // the account's own phone number in digits; empty before it is known
	PhoneName string // what the account calls itself; empty before it is known
	Enabled   bool   // wanted running; false after "stop"
	Settings  ChannelSettings
	CreatedAt time.Time

	// What was last seen of it, stored by the gateway.
	State ChannelState
	// LastingStatus is the last status that a restart of the server does not pass through by itself, and
	// LastingSince when it began: a channel that comes back to it has had it all along.
	LastingStatus ChannelStatus
	LastingSince  time.Time
	// AccountFrom is the Seq of the last message that was accepted before the account changed: those up to
	// it belong to another account than the one that is paired now, and are not sent any more. The store
	// sets it when Number changes.
	AccountFrom int64
}

// Begin fills in what every new channel has: it is to run, and is called by its code unless it has a
// name.
func (c *Channel) Begin(now time.Time) {
	c.Enabled, c.CreatedAt = true, now
	c.State = ChannelState{Status: Starting, Since: now}
	if c.Name == "" {
		c.Name = string(c.Code)
	}
}

// Offline returns the channel as it is while no server runs. What is stored of its connection is of an earlier
// time; that it was logged out or failed is still so.
func (c Channel) Offline() Channel {
	if c.Runs() && c.State.Status != LoggedOut && c.State.Status != Failed {
		c.State = ChannelState{Status: Stopped, Reason: ServerStopped, WorkingAt: c.State.WorkingAt}
	}
	return c
}

// ServerStopped is why a channel is stopped that should run.
const ServerStopped = "The server is not running."

// Runs reports whether the channel is to be connected to its network.
func (c Channel) Runs() bool { return c.Enabled && c.Settings.ArchiveOf == "" }

// ChannelState is what is known of a channel's connection at one moment.
type ChannelState struct {
	Status    ChannelStatus
	Reason    string    // why, in a sentence; empty while all is well
	Since     time.Time // when Status last changed
	WorkingAt time.Time // when it last became Working; zero: never
}

// ChannelStatus is where a channel stands.
type ChannelStatus string

const (
	Stopped      ChannelStatus = "STOPPED"      // somebody stopped it
	Starting     ChannelStatus = "STARTING"     // connecting for the first time since it was started
	ScanQRCode   ChannelStatus = "SCAN_QR_CODE" // waits for a person to pair it
	Working      ChannelStatus = "WORKING"      // connected, with recent evidence
	Reconnecting ChannelStatus = "RECONNECTING" // was connected, is trying again by itself
	LoggedOut    ChannelStatus = "LOGGED_OUT"   // the account removed this device; a person must pair it again
	Failed       ChannelStatus = "FAILED"       // cannot work until somebody acts; the reason says on what
)

// ChannelStatuses lists every status.
var ChannelStatuses = []ChannelStatus{Stopped, Starting, ScanQRCode, Working, Reconnecting, LoggedOut, Failed}

// CanSend reports whether a channel in this status takes new messages: those that recover by
// themselves do, and keep what they take until then.
func (s ChannelStatus) CanSend() bool {
	return s == Working || s == Starting || s == Reconnecting
}

// ChannelSettings are what an operator can set on a channel. Zero values are the defaults.
type ChannelSettings struct {
	// Pace is the least time between two sends; nil: as the network's default, zero: none.
	Pace *Duration `json:"pace,omitempty"`
	// TTL is how long a message may wait to be sent before it fails; zero: [DefaultTTL].
	TTL Duration `json:"ttl,omitempty"`
	// Retention is how long message text is kept; nil: for ever, zero: not at all.
	Retention *Duration `json:"retention,omitempty"`
	// AllowOnly lists the contacts that the channel may write to; empty: everybody.
	AllowOnly []ContactID `json:"allow_only,omitempty"`
	// ClockAhead is how far the clock of a sandbox channel was moved, to test expiry without waiting.
	ClockAhead Duration `json:"clock_ahead,omitempty"`
	// ArchiveOf is the channel whose sandbox history this one keeps since that went live. It is read and
	// never runs. Empty: it is no archive.
	ArchiveOf ChannelCode `json:"archive_of,omitempty"`
}

// An account that sends like a machine is taken for one and banned. Between two sends of a WhatsApp channel
// that has no pace of its own there is a time between these, drawn by chance: about 40 messages a minute.
const (
	leastPace = 1 * time.Second
	mostPace  = 2 * time.Second
)

// Pace returns the least and the most time that a channel leaves between two sends; zeros: none.
func (c Channel) Pace() (least, most time.Duration) {
	switch {
	case c.Settings.Pace != nil:
		return time.Duration(*c.Settings.Pace), time.Duration(*c.Settings.Pace)
	case c.Network == WhatsApp:
		return leastPace, mostPace
	}
	return 0, 0
}

// DefaultTTL is how long a message may wait to be sent.
const DefaultTTL = 24 * time.Hour

// MessageTTL returns how long a message of this channel may wait to be sent.
func (s ChannelSettings) MessageTTL() time.Duration {
	if s.TTL > 0 {
		return time.Duration(s.TTL)
	}
	return DefaultTTL
}

// KeepsText reports whether the text of messages is kept once they are sent.
func (s ChannelSettings) KeepsText() bool { return s.Retention == nil || *s.Retention > 0 }

// Accepts says whether the channel takes a message to the contact now, and if not, what to do.
func (c Channel) Accepts(to ContactID) error {
	if err := c.Usable(); err != nil {
		return err
	}
	if allow := c.Settings.AllowOnly; len(allow) > 0 && !slices.Contains(allow, to) {
		return Errorf(Forbidden, "Channel %s may write only to numbers on its allow-list. Allow this one with: parley channel allow %s %s",
			c.Code, c.Code, to.Number())
	}
	return nil
}

// Usable says whether the channel can be used now, and if not, what to do about it.
func (c Channel) Usable() error {
	if c.State.Status.CanSend() {
		return nil
	}
	if of := c.Settings.ArchiveOf; of != "" {
		return Errorf(BadRequest, "Channel %s only keeps what was said in the sandbox before channel %s went live. Use channel %s.", c.Code, of, of)
	}
	remedy := fmt.Sprintf("Start it with: parley channel start %s", c.Code)
	switch c.State.Status {
	case ScanQRCode, LoggedOut:
		remedy = fmt.Sprintf("Pair it with: parley channel pair %s", c.Code)
	case Failed:
		remedy = fmt.Sprintf("See what is wrong with: parley channel show %s", c.Code)
	}
	return Errorf(BadRequest, "Channel %s is %s and cannot be used. %s", c.Code, c.State.Status, remedy)
}

// Duration is a time.Duration that is written as text ("30s", "24h") in JSON.
type Duration time.Duration

// ParseDuration reads a length of time as people write it: Go's units, or whole or broken days ("30d").
func ParseDuration(text string) (Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || !(math.Abs(n) <= maxDays) {
			return 0, fmt.Errorf("%q is not a number of days", text)
		}
		return Duration(n * 24 * float64(time.Hour)), nil
	}
	d, err := time.ParseDuration(text)
	return Duration(d), err
}

const maxDays = 100_000 // a Duration holds a few more

// String writes the duration as Go does, without units that are zero: 720h, 1h30m, 0s.
func (d Duration) String() string {
	text := time.Duration(d).String()
	if trimmed, ok := strings.CutSuffix(text, "m0s"); ok {
		text = trimmed + "m"
	}
	if trimmed, ok := strings.CutSuffix(text, "h0m"); ok {
		text = trimmed + "h"
	}
	return text
}

func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (d *Duration) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDuration(string(text))
	return err
}
