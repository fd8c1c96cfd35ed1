package parley

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // quiet hours have a time zone, and a container may know none
)

// AlertKind says what an alert rule watches.
type AlertKind string

const (
	AlertLoggedOut      AlertKind = "channel_logged_out"
	AlertRestricted     AlertKind = "channel_restricted"
	AlertFailingSends   AlertKind = "failing_sends"
	AlertFailingWebhook AlertKind = "failing_webhook"
	AlertDisk           AlertKind = "disk"
	AlertOldClient      AlertKind = "client_old"
	AlertAccount        AlertKind = "account_problem" // that its network reports
)

// AlertKinds lists all kinds.
var AlertKinds = []AlertKind{AlertLoggedOut, AlertRestricted, AlertFailingSends, AlertFailingWebhook, AlertDisk, AlertOldClient,
	AlertAccount}

// AlertRetention is how long resolved alerts are stored.
const AlertRetention = 30 * 24 * time.Hour

// AlertRuleID names an alert rule.
type AlertRuleID string

// NewAlertRuleID makes an id.
func NewAlertRuleID() AlertRuleID { return AlertRuleID("alr_" + randomHex(10)) }

// AlertSecret owns the secret that signs the notices of a rule.
func AlertSecret(id AlertRuleID) SecretOwner { return SecretOwner("alert:" + id) }

// AlertRule says what to watch and whom to notify: an address, or a contact through a channel.
type AlertRule struct {
	ID      AlertRuleID
	Name    string
	Kind    AlertKind
	Channel ChannelCode // what to watch; empty: every channel
	Share   int         // of failing sends: in percent
	Window  time.Duration
	URL     string      // empty: a message is sent instead
	Via     ChannelCode // the channel that sends the message
	Contact ContactID   // who gets it
	Quiet   QuietHours
	Enabled bool

	CreatedAt time.Time
}

// Watches reports whether the rule is about a channel.
func (r AlertRule) Watches(code ChannelCode) bool { return r.Channel == "" || r.Channel == code }

// QuietHours are a time of day in which nobody is notified. The zero value is never.
type QuietHours struct {
	From, To string // such as 22:00; To may be on the next day
	Zone     string // such as Asia/Jakarta
}

// ParseClock reads a time of day such as 07:30, as minutes after midnight.
func ParseClock(text string) (int, error) {
	t, err := time.Parse("15:04", text)
	if err != nil || len(text) != 5 {
		return 0, fmt.Errorf("%q is no time of day", text)
	}
	return t.Hour()*60 + t.Minute(), nil
}

// LoadZone loads a time zone by its name. Local and names of files are refused: they mean another thing on every machine.
func LoadZone(name string) (*time.Location, error) {
	if name == "" || strings.EqualFold(name, "local") {
		return nil, fmt.Errorf("%q is no time zone", name)
	}
	return time.LoadLocation(name)
}

// Contain reports whether a time is in the quiet hours.
func (q QuietHours) Contain(at time.Time) bool {
	from, err1 := ParseClock(q.From)
	to, err2 := ParseClock(q.To)
	zone, err3 := LoadZone(q.Zone)
	if err1 != nil || err2 != nil || err3 != nil {
		return false
	}
	local := at.In(zone)
	now := local.Hour()*60 + local.Minute()
	if from <= to {
		return from <= now && now < to
	}
	return now >= from || now < to
}

// Alert is one cause that a rule found. While it is open, the same cause raises no other.
type Alert struct {
	Seq      int64
	Rule     AlertRuleID
	Cause    string      // what it is about; unique among the open alerts of a rule
	Channel  ChannelCode // empty: about no channel
	Sentence string
	RaisedAt time.Time
	// HoldsUntil is before when it is not resolved; zero: at any time.
	HoldsUntil time.Time
	ResolvedAt time.Time // zero: it is open
	NotifiedAt time.Time // when the notice was sent; zero: not yet
	ClosedAt   time.Time // nothing is left to send; zero: something is
	Attempts   int       // of the current notice
	NextAt     time.Time // of the next attempt
	Problem    string    // of the last attempt; empty: none
	Failed     int       // messages of its notices that failed for good
}

// ID names the alert in notices.
func (a Alert) ID() string { return fmt.Sprintf("alt_%016x", a.Seq) }
