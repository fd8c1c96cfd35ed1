package parley

import (
	"encoding/json"
	"time"
)

// Careful is how a channel avoids looking like a sender of spam: by caps on what leaves in a day, a night and typing. Groups, replies and
// one-time codes are exempt.
type Careful struct {
	// NewNumber means caps that grow with the age of the number; the other fields are then zero.
	NewNumber bool `json:"-"`

	FirstContacts int    `json:"first_contacts_per_day,omitzero"` // messages to contacts who never wrote and never got one; zero: no cap
	Messages      int    `json:"messages_per_day,omitzero"`       // zero: no cap
	Night         *Night `json:"night,omitempty"`                 // nothing leaves then
	Zone          string `json:"zone,omitempty"`                  // of the day and the night, such as Asia/Jakarta; empty: UTC
	Typing        bool   `json:"typing,omitzero"`                 // show typing before a text, for a time that fits its length
}

// Night is a time of day, such as from 22:00 to 07:00.
type Night struct {
	From string `json:"from"`
	To   string `json:"to"`
}

const (
	// ReplyWindow is how long after a contact's last message what it is sent is a reply.
	ReplyWindow = 24 * time.Hour
	// NewNumberAge is how long a number counts as new: it must not send more than the caps of a new one.
	NewNumberAge = 14 * 24 * time.Hour

	newNumberMessages = 1000
	newNumberName     = "new_number"
)

// newNumberFirsts are the first messages a day in each week after the pairing; the last one is for all later weeks.
var newNumberFirsts = []int{20, 50, 100, 250}

// NewNumberCaps are the caps of a number of an age.
func NewNumberCaps(age time.Duration) (firsts, messages int) {
	week := max(0, int(age/(7*24*time.Hour)))
	return newNumberFirsts[min(week, len(newNumberFirsts)-1)], newNumberMessages
}

// Caps are how many first messages, and messages in all, may leave in a day; zero: any number.
func (c *Careful) Caps(age time.Duration) (firsts, messages int) {
	if c.NewNumber {
		return NewNumberCaps(age)
	}
	return c.FirstContacts, c.Messages
}

func (c *Careful) zone() *time.Location {
	if zone, err := LoadZone(c.Zone); err == nil {
		return zone
	}
	return time.UTC
}

// Day names the day of a time, and returns when the next one begins.
func (c *Careful) Day(at time.Time) (day string, next time.Time) {
	local := at.In(c.zone())
	year, month, date := local.Date()
	return local.Format(time.DateOnly), time.Date(year, month, date+1, 0, 0, 0, 0, c.zone())
}

// NightEnd returns when the night of a time ends; zero: it is not at night.
func (c *Careful) NightEnd(at time.Time) time.Time {
	local := at.In(c.zone())
	if c.Night == nil || !(QuietHours{c.Night.From, c.Night.To, c.zone().String()}).Contain(at) {
		return time.Time{}
	}
	minutes, _ := ParseClock(c.Night.To) // the settings were checked
	year, month, date := local.Date()
	end := time.Date(year, month, date, 0, minutes, 0, 0, c.zone())
	if !end.After(at) {
		end = time.Date(year, month, date+1, 0, minutes, 0, 0, c.zone())
	}
	return end
}

type plainCareful Careful

func (c Careful) MarshalJSON() ([]byte, error) {
	if c.NewNumber {
		return json.Marshal(newNumberName)
	}
	return json.Marshal(plainCareful(c))
}

func (c *Careful) UnmarshalJSON(data []byte) error {
	var name string
	if json.Unmarshal(data, &name) == nil && name == newNumberName {
		*c = Careful{NewNumber: true}
		return nil
	}
	return json.Unmarshal(data, (*plainCareful)(c))
}

// DailyUse is what left a careful channel on a day: messages in all, and first ones.
type DailyUse struct {
	Day              string
	Messages, Firsts int
}

// UseAt returns what left a careful channel on the day of a time, and when the next day begins.
func (c Channel) UseAt(at time.Time) (use DailyUse, next time.Time) {
	day, next := c.Settings.Careful.Day(at)
	if use = c.Use; use.Day != day {
		use = DailyUse{Day: day}
	}
	return use, next
}
