package form

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/safehttp"
)

// ExampleContact is for sentences, if the request has no digits for an example.
const ExampleContact = "6281234567890@c.us"

func (f Form) Contact(name string) parley.ContactID {
	s, given := f.text(name, "is required: digits followed by @c.us, for example "+ExampleContact+".",
		`must be a string, for example "`+ExampleContact+`".`)
	if !given {
		return ""
	}
	id, err := parley.ParseContactID(s)
	switch {
	case err == nil:
		return id
	case err == parley.ErrGroupID:
		f.Fail(name, "names a group. Where groups are allowed, send its id as group_id. A contact is digits followed by @c.us, for example %s.",
			ExampleContact)
	case contactPattern.MatchString(s):
		f.Fail(name, "must be %d to %d characters long.", parley.MinContactID, parley.MaxContactID)
	default:
		f.Fail(name, "must be digits followed by @c.us, for example %s.", toExample(s))
	}
	return ""
}

// ExampleGroup is for sentences.
const ExampleGroup = "120363020000000001@g.us"

// Group returns a required id of a group.
func (f Form) Group(name string) parley.GroupID {
	const what = "the id of a group, for example " + ExampleGroup
	s, given := f.text(name, "is required: "+what+".", "must be "+what+".")
	if !given {
		return ""
	}
	id, err := parley.ParseGroupID(s)
	if err != nil {
		f.Fail(name, "must be %s.", what)
	}
	return id
}

// Chat returns the chat that a request is for: contact_id, or group_id in its place.
func (f Form) Chat() parley.ContactID {
	if !f.Has("group_id") {
		return f.Contact("contact_id")
	}
	id := f.Group("group_id").Chat()
	if f.Has("contact_id") {
		f.Fail("group_id", "must not be sent together with contact_id. Send one of them.")
		return ""
	}
	return id
}

// ChatID returns a required id of a contact or of a group.
func (f Form) ChatID(name string) parley.ContactID {
	if v := f.find(name); v != nil && v.isText() {
		if id, err := parley.ParseGroupID(v.text()); err == nil {
			return id.Chat()
		}
	}
	return f.Contact(name)
}

// Member returns a required member of a group: a contact id, also with the server's name that WhatsApp uses itself.
func (f Form) Member(name string) parley.ContactID {
	if v := f.find(name); v != nil && v.isText() {
		if number, ok := strings.CutSuffix(v.text(), "@s.whatsapp.net"); ok {
			if id, err := parley.ParseContactID(number + "@c.us"); err == nil {
				return id
			}
		}
	}
	return f.Contact(name)
}

var contactPattern = regexp.MustCompile(`^[0-9]+@[cs]\.us$`)

// toExample returns a contact id with the digits of the request, if possible.
func toExample(sent string) string {
	digits := strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return r
		}
		return -1
	}, sent)
	number, err := parley.ParseNumber(digits)
	if err != nil {
		return ExampleContact
	}
	return number + "@c.us"
}

// Number returns the digits of an optional phone number in any format, or of a contact id.
func (f Form) Number(name string) string {
	text := f.OptionalText(name, 1, 60)
	if text == "" {
		return ""
	}
	return f.CheckNumber(name, text)
}

func (f Form) CheckNumber(name, text string) string {
	digits := f.CheckSpelling(name, text)
	if len(digits) > MaxNumber {
		f.Fail(name, "%s", noNumber)
		return ""
	}
	return digits
}

// CheckSpelling is CheckNumber for numbers of any length, even if they cannot exist.
func (f Form) CheckSpelling(name, text string) string {
	digits, err := parley.ParseNumber(strings.TrimSuffix(strings.TrimSuffix(text, "@c.us"), "@s.us"))
	if err != nil {
		f.Fail(name, "%s", noNumber)
	}
	return digits
}

const noNumber = "must be a phone number with its country code, for example +6281234567890."

// MaxNumber is how many digits a phone number has at most (E.164).
const MaxNumber = 15

// Message returns a required reference to a message: a full or a bare id.
func (f Form) Message(name string) parley.MessageRef {
	const example = "for example true_" + ExampleContact + "_3EB0C4312F6A1D2E9B8870."
	s, given := f.text(name, "is required: the id of a message, "+example, "must be a string.")
	if !given {
		return parley.MessageRef{}
	}
	ref, err := parley.ParseMessageRef(s)
	if err != nil {
		f.Fail(name, "must be the id of a message from an earlier response, "+example)
		return parley.MessageRef{}
	}
	return ref
}

var replyPattern = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// ReplyTo returns the optional bare id of the message to reply to.
func (f Form) ReplyTo() parley.MessageID {
	s := f.OptionalText("reply_to", 1, 100)
	if s == "" || replyPattern.MatchString(s) {
		return parley.MessageID(s)
	}
	if ref, err := parley.ParseMessageRef(s); err == nil && !ref.IsBare() {
		f.Fail("reply_to", "must be the bare id of a message: send %s.", ref.ID)
	} else {
		f.Fail("reply_to", "must be letters, digits, - and _ only: the bare id of a message.")
	}
	return ""
}

const MaxURL = 2048

// Address returns a required http or https address. Forbidden hosts are refused when dialling.
func (f Form) Address(name string) string {
	s, given := f.String(name, "an http or https address")
	if !given {
		return ""
	}
	return f.CheckAddress(name, s)
}

func (f Form) CheckAddress(name, s string) string {
	if _, err := safehttp.CheckURL(s); err != nil {
		f.Note(f.path+name, err.Error()) // a sentence for the caller
		return ""
	}
	return s
}

func (f Form) Page() parley.Page {
	return parley.Page{
		Limit:  int(f.Whole("limit", 50, 1, 100)),
		Offset: f.Whole("offset", 0, 0, math.MaxInt64),
	}
}

var (
	latitudePattern  = regexp.MustCompile(`^-?([0-8]?[0-9]|90)(\.[0-9]{1,10})?$`)
	longitudePattern = regexp.MustCompile(`^-?(1[0-7][0-9]|[0-9]?[0-9]|180)(\.[0-9]{1,10})?$`)
)

// Latitude returns a required latitude as the caller wrote it.
func (f Form) Latitude(name string) string {
	const what = `a string of degrees from "-90" to "90", for example "-6.2088"`
	return f.degrees(name, latitudePattern, 90, what)
}

// Longitude returns a required longitude as the caller wrote it.
func (f Form) Longitude(name string) string {
	const what = `a string of degrees from "-180" to "180", for example "106.8456"`
	return f.degrees(name, longitudePattern, 180, what)
}

func (f Form) degrees(name string, pattern *regexp.Regexp, bound float64, what string) string {
	s := f.Matching(name, pattern, what)
	if s == "" {
		return ""
	}
	if x, err := strconv.ParseFloat(s, 64); err != nil || math.Abs(x) > bound {
		f.Fail(name, "must be between -%v and %v.", bound, bound)
		return ""
	}
	return s
}

func (f Form) Time(name string) time.Time {
	parse := func(text string) (time.Time, error) { return time.Parse(time.RFC3339, text) }
	t, _ := Parse(f, name, parse, "a time, for example "+time.Now().UTC().Format(time.RFC3339))
	return t
}

// Duration returns an optional duration from min to max, such as "90s", "720h" or "30d"; nil: not given.
func (f Form) Duration(name string, min, max time.Duration) *parley.Duration {
	d, ok := Parse(f, name, func(text string) (parley.Duration, error) {
		d, err := parley.ParseDuration(text)
		if time.Duration(d) < min || time.Duration(d) > max {
			err = errors.New("out of bounds")
		}
		return d, err
	}, fmt.Sprintf("a duration from %s to %s, such as 90s, 1h30m, 720h or 30d", parley.Duration(min), parley.Duration(max)))
	if !ok {
		return nil
	}
	return &d
}
