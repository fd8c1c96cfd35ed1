package parley

import (
	"encoding/json"
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
	WhatsApp NetworkName = "whatsapp" // the real one, as a linked device
	Cloud    NetworkName = "cloud"    // the real one, by Meta's official API
)

// Channel is an account on a chat network.
type Channel struct {
	Code      ChannelCode
	ID        int64  // chosen by the store and never used again, even for a later channel with the same code
	Name      string // shown to people
	Network   NetworkName
	Number    string   // the account's own phone number in digits; empty before it is known
	PhoneName string   // what the account calls itself; empty before it is known
	Enabled   bool     // false after "stop"
	Labels    []string // sorted
	Settings  ChannelSettings
	CreatedAt time.Time

	// What was last seen of it, stored by the gateway.
	State ChannelState
	// LastingStatus is the last status that a restart does not pass through by itself. LastingSince is when it began: a
	// channel that returns to it has had it all along.
	LastingStatus ChannelStatus
	LastingSince  time.Time
	// AccountFrom is the Seq of the last message that was accepted before the account changed. Messages up to it belong
	// to an earlier account and are never sent. The store sets it when Number changes.
	AccountFrom int64
	// Restricted: the network does not let the account write to new contacts, until RestrictedUntil; zero: that is unknown.
	Restricted      bool
	RestrictedUntil time.Time
	BannedUntil     time.Time // when its last ban ended, or will; zero: there was none
	PairedAt        time.Time // when the account was first seen on the channel; zero: long ago
	Use             DailyUse  // what left on the last day on which something did, while it was careful
}

// RestrictedAt reports whether the network does not let the account write to new contacts at a time, and until when; zero: that is
// unknown.
func (c Channel) RestrictedAt(now time.Time) (active bool, until time.Time) {
	if !c.Restricted || !c.RestrictedUntil.IsZero() && !now.Before(c.RestrictedUntil) {
		return false, time.Time{}
	}
	return true, c.RestrictedUntil
}

// Begin sets the fields of a new channel. It is enabled, and its name is its code unless it has one.
func (c *Channel) Begin(now time.Time) {
	c.Enabled, c.CreatedAt = true, now
	c.State = ChannelState{Status: ChannelStarting, Since: now}
	if c.Name == "" {
		c.Name = string(c.Code)
	}
}

// Offline returns the channel as it is while no server runs. Its stored state is from an earlier time; only LOGGED_OUT
// and FAILED still hold.
func (c Channel) Offline() Channel {
	if c.Runs() && c.State.Status != ChannelLoggedOut && c.State.Status != ChannelFailed {
		c.State = ChannelState{Status: ChannelStopped, Reason: ServerStopped, WorkingAt: c.State.WorkingAt}
	}
	return c
}

// ServerStopped is the reason of an enabled channel while no server runs.
const ServerStopped = "The server is not running."

func (c Channel) Runs() bool { return c.Enabled && c.Settings.ArchiveOf == "" }

// ChannelState is what is known of a channel's connection at one moment.
type ChannelState struct {
	Status    ChannelStatus
	Reason    string    // why, in a sentence; empty while all is well
	Since     time.Time // when Status last changed
	WorkingAt time.Time // when it last became Working; zero: never
}

type ChannelStatus string

const (
	ChannelStopped      ChannelStatus = "STOPPED"      // a user stopped it
	ChannelStarting     ChannelStatus = "STARTING"     // connecting for the first time since it was started
	ChannelScanQRCode   ChannelStatus = "SCAN_QR_CODE" // waits for a person to pair it
	ChannelWorking      ChannelStatus = "WORKING"      // connected, with recent evidence
	ChannelReconnecting ChannelStatus = "RECONNECTING" // was connected, is trying again by itself
	ChannelLoggedOut    ChannelStatus = "LOGGED_OUT"   // the account removed this device; a person must pair it again
	ChannelFailed       ChannelStatus = "FAILED"       // needs attention; the reason says why
)

// ChannelStatuses lists every status.
var ChannelStatuses = []ChannelStatus{ChannelStopped, ChannelStarting, ChannelScanQRCode, ChannelWorking, ChannelReconnecting,
	ChannelLoggedOut, ChannelFailed}

// CanSend reports whether a channel in this status accepts new messages. Those that reconnect by themselves do: the messages
// wait in the outbox.
func (s ChannelStatus) CanSend() bool {
	return s == ChannelWorking || s == ChannelStarting || s == ChannelReconnecting
}

// ChannelSettings are what an operator can set on a channel. Zero values are the defaults.
type ChannelSettings struct {
	// Pace is the least time between two sends; nil: as the network's default, zero: none.
	Pace *Duration `json:"pace,omitempty"`
	// TTL is how long a message may wait to be sent before it fails; zero: [DefaultTTL].
	TTL Duration `json:"ttl,omitzero"`
	// Retention is how long message text is stored; nil: for ever, zero: not at all.
	Retention *Duration `json:"retention,omitempty"`
	// AllowOnly lists the contacts and groups that the channel may write to; empty: everybody.
	AllowOnly []ContactID `json:"allow_only,omitempty"`
	// ClockAhead is how far the clock of a sandbox channel was moved, to test expiry without waiting.
	ClockAhead Duration `json:"clock_ahead,omitzero"`
	// Window is how long after a contact wrote a sandbox channel may send it more than templates; zero: for ever.
	Window Duration `json:"window,omitzero"`
	// Cloud are settings of a channel on the official network; nil: the defaults.
	Cloud *CloudSettings `json:"cloud,omitempty"`
	// Careful bounds what leaves in a day; nil: nothing does.
	Careful *Careful `json:"careful,omitempty"`
	// Calls is what happens to calls; nil: they ring.
	Calls *CallSettings `json:"calls,omitempty"`
	// OptOut is how contacts ask the channel not to write to them; nil: they cannot.
	OptOut *OptOut `json:"opt_out,omitempty"`
	// Proxy is the address of the channel's proxy, without its credentials; empty: it has none. The whole address is stored encrypted,
	// with ProxyKey, which changes with it.
	Proxy    string `json:"proxy,omitempty"`
	ProxyKey string `json:"proxy_key,omitempty"`
	// ArchiveOf is the channel whose sandbox history this one holds since that channel went live. An archive never runs.
	// Empty: it is not an archive.
	ArchiveOf ChannelCode `json:"archive_of,omitempty"`
}

// OptOut is how contacts ask a channel not to write to them any more.
type OptOut struct {
	Words []string `json:"words"`           // each is a whole text, in upper or lower case
	Reply string   `json:"reply,omitempty"` // to such a text; empty: none
}

// CallSettings are what a channel does with calls.
type CallSettings struct {
	Reject bool   `json:"reject"`
	Text   string `json:"text,omitempty"` // that the caller is sent, at most once an hour; empty: none
}

// OptInWord is the text with which a contact asks for messages again.
const OptInWord = "START"

// Asked reports whether a contact asks for no more messages (out), or for messages again.
func (o *OptOut) Asked(c Content) (out, asked bool) {
	text, isText := c.(Text)
	if o == nil || !isText {
		return false, false
	}
	body := strings.TrimSpace(text.Body)
	out = slices.ContainsFunc(o.Words, func(word string) bool { return strings.EqualFold(word, body) })
	return out, out || strings.EqualFold(body, OptInWord)
}

// CloudSettings are those of a channel on the official network. Zero values are the defaults.
type CloudSettings struct {
	// OutsideWindow is the template that carries a text to a contact who did not write for a day; nil: the text fails.
	OutsideWindow *TemplateName `json:"outside_window,omitempty"`
	// OnUnknown is what happens to a message that may have left, when no status came for UnknownWait (zero: 2 minutes).
	OnUnknown   UnknownAction `json:"on_unknown,omitempty"`
	UnknownWait Duration      `json:"unknown_wait,omitzero"`
	// Codes is the template of one-time codes; nil: the one that Parley creates.
	Codes *TemplateName `json:"codes,omitempty"`
	// MarkRead marks what comes in as read at once.
	MarkRead bool `json:"mark_read,omitempty"`
}

// TemplateName names a template that the network has approved.
type TemplateName struct {
	Name     string `json:"template"`
	Language string `json:"language"`
}

type UnknownAction string

const (
	ResendUnknown UnknownAction = "resend" // the default: it may arrive twice
	FailUnknown   UnknownAction = "fail"   // it may have arrived nevertheless
)

// DefaultTTL is how long a message may wait to be sent.
const DefaultTTL = 24 * time.Hour

func (s ChannelSettings) MessageTTL() time.Duration {
	if s.TTL > 0 {
		return time.Duration(s.TTL)
	}
	return DefaultTTL
}

// StoresText reports whether the text of messages stays stored after they are sent.
func (s ChannelSettings) StoresText() bool { return s.Retention == nil || *s.Retention > 0 }

// Accepts returns nil if the channel accepts a message to the contact now, else an error that says what to do.
func (c Channel) Accepts(to ContactID) error {
	if err := c.Usable(); err != nil {
		return err
	}
	if allow := c.Settings.AllowOnly; len(allow) > 0 && !slices.Contains(allow, to) {
		if to.IsGroup() {
			return Errorf(Forbidden, "Channel %s may write only to groups on its allow-list. Allow this one with: parley channel allow %s %s",
				c.Code, c.Code, to)
		}
		return Errorf(Forbidden, "Channel %s may write only to numbers on its allow-list. Allow this one with: parley channel allow %s %s",
			c.Code, c.Code, to.Number())
	}
	return nil
}

// Usable returns nil if the channel can be used now, else an error that says what to do.
func (c Channel) Usable() error {
	if c.State.Status.CanSend() {
		return nil
	}
	if of := c.Settings.ArchiveOf; of != "" {
		return Errorf(BadRequest, "Channel %s is the sandbox archive of channel %s. Use channel %s.", c.Code, of, of)
	}
	remedy := fmt.Sprintf("Start it with: parley channel start %s", c.Code)
	switch c.State.Status {
	case ChannelScanQRCode, ChannelLoggedOut:
		remedy = fmt.Sprintf("Pair it with: parley channel pair %s", c.Code)
	case ChannelFailed:
		remedy = fmt.Sprintf("See what is wrong with: parley channel show %s", c.Code)
	}
	return Errorf(ChannelNotReady, "Channel %s is %s and cannot be used. %s", c.Code, c.State.Status, remedy)
}

// Duration is a time.Duration that is written as text ("30s", "24h") in JSON.
type Duration time.Duration

// ParseDuration reads a length of time as people write it: Go's units, or days ("30d", "1.5d").
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

func (d *Duration) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDuration(string(text))
	return err
}

// Stamp writes a time as callers see it: in UTC, with milliseconds.
func Stamp(t time.Time) string {
	var b [len("2026-11-15T08:30:00.000Z")]byte
	return string(AppendStamp(b[:0], t))
}

// AppendStamp appends what [Stamp] writes. The library is fast at its own layouts only, so the
// milliseconds are put into one of those.
func AppendStamp(b []byte, t time.Time) []byte {
	b = t.UTC().AppendFormat(b, time.RFC3339)
	ms := t.Nanosecond() / int(time.Millisecond)
	return append(b[:len(b)-len("Z")], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z')
}

// Pairing is a step of linking a channel to an account: what is asked of a person now, or how it ended.
// Each is worth knowing only until the next one.
type Pairing struct {
	Step PairingStep
	// Code is what to show (QRStep) or to type on the phone (CodeStep). Anybody who has it can link the
	// account: it belongs before the eyes of its owner and nowhere else.
	Code      string
	ExpiresAt time.Time // until when Code can be used; zero: no code
	// Request is what the passkey of the account must sign, as JSON of WebAuthn (PasskeyStep); empty on the others.
	Request string
	// Reason is a sentence on WrongCodeStep, PasskeyStep, ConfirmStep and FailedStep, and on StartingStep where the
	// connection was lost before; empty on the others.
	Reason string
	N, Of  int // the QR code's number among those of the network; zero: it is not a QR code
	At     time.Time
}

// PairingStep says what a [Pairing] asks for or how it ended.
type PairingStep string

const (
	StartingStep PairingStep = "starting" // the network is being asked for a code
	QRStep       PairingStep = "qr"       // show Code as a QR code
	CodeStep     PairingStep = "code"     // type Code on the phone
	PasskeyStep  PairingStep = "passkey"  // the account asks for its passkey: Request must be answered
	ConfirmStep  PairingStep = "confirm"  // compare Code with the one on the phone, and confirm that they are the same
	PairedStep   PairingStep = "paired"   // done
	TimeoutStep  PairingStep = "timeout"  // nobody linked it in time
	FailedStep   PairingStep = "failed"   // Reason says why

	WrongCodeStep PairingStep = "wrong_code" // the phone did not accept what was typed; Code can still be typed
)

// IsOver reports whether the pairing has ended. A new one must be started.
func (s PairingStep) IsOver() bool { return s == PairedStep || s == TimeoutStep || s == FailedStep }

// pairingData is the data of the event of a step.
type pairingData struct {
	Step      PairingStep     `json:"step"`
	Code      string          `json:"code,omitempty"`
	ExpiresAt string          `json:"expires_at,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	N         int             `json:"n,omitempty"`
	Of        int             `json:"of,omitempty"`
	Passkey   *PasskeyRequest `json:"passkey,omitempty"`
}

// PasskeyRequest is what the passkey of an account must sign, and until when it is accepted.
type PasskeyRequest struct {
	Request   json.RawMessage `json:"request"`
	ExpiresAt string          `json:"expires_at"`
}

// Passkey returns the request of a step; nil: it has none.
func (p Pairing) Passkey() *PasskeyRequest {
	if p.Request == "" {
		return nil
	}
	return &PasskeyRequest{json.RawMessage(p.Request), Stamp(p.ExpiresAt)}
}

func NewPairingEvent(code ChannelCode, p Pairing) *Event {
	d := pairingData{Step: p.Step, Code: p.Code, Reason: p.Reason, N: p.N, Of: p.Of, Passkey: p.Passkey()}
	if !p.ExpiresAt.IsZero() {
		d.ExpiresAt = Stamp(p.ExpiresAt)
	}
	return &Event{Type: ChannelPairing, Channel: code, At: p.At, Data: eventData(d)}
}

// PairingEnded reports whether the code that the data of a pairing event is about cannot be used any more.
func PairingEnded(data json.RawMessage, now time.Time) bool {
	var d pairingData
	if err := json.Unmarshal(data, &d); err != nil {
		return true
	}
	until, err := time.Parse(time.RFC3339, d.ExpiresAt)
	return err != nil || now.After(until)
}

// AccountProblem is something about the account of a channel that needs attention.
type AccountProblem struct {
	Code    string // a stable word
	Serious bool   // messages do not get through
	Text    string // a sentence
	Remedy  string
}
