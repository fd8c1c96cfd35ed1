package api

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"parley"
	"parley/internal/safehttp"
)

// exampleContact stands in a sentence where what was sent has no digits to make an example of.
const exampleContact = "6281234567890@c.us"

// contact returns a required contact id.
func (f form) contact(name string) parley.ContactID {
	v := f.find(name)
	switch {
	case v == nil:
		f.fail(name, "is required: digits followed by @c.us, for example %s.", exampleContact)
		return ""
	case v.kind != '"' && v.kind != parameter:
		f.fail(name, "must be a string, for example \"%s\".", exampleContact)
		return ""
	}
	return f.checkContact(v, name)
}

func (f form) checkContact(v *value, name string) parley.ContactID {
	s := v.text()
	id, err := parley.ParseContactID(s)
	switch {
	case err == nil:
		return id
	case err == parley.ErrGroupID:
		f.fail(name, "names a group, and groups can be read, not written to. Send a person's id: digits followed by @c.us, for example %s.", exampleContact)
	case contactPattern.MatchString(s):
		f.fail(name, "must be %d to %d characters long.", parley.MinContactID, parley.MaxContactID)
	default:
		f.fail(name, "must be digits followed by @c.us, for example %s.", exampleOf(s))
	}
	return ""
}

var contactPattern = regexp.MustCompile(`^[0-9]+@[cs]\.us$`)

// exampleOf makes a contact id of the digits in what was sent, where they can be one.
func exampleOf(sent string) string {
	id := digitsOf(sent) + "@c.us"
	if _, err := parley.ParseContactID(id); err != nil {
		return exampleContact
	}
	return id
}

// digitsOf returns the digits of a phone number in whatever spelling, without the 00 that some
// write for the plus sign.
func digitsOf(spelling string) string {
	var b strings.Builder
	for _, c := range spelling {
		if '0' <= c && c <= '9' {
			b.WriteRune(c)
		}
	}
	return strings.TrimPrefix(b.String(), "00")
}

// message returns a required reference to a message: a full or a bare id.
func (f form) message(name string) parley.MessageRef {
	v := f.find(name)
	switch {
	case v == nil:
		f.fail(name, "is required: the id of a message, for example true_%s_3EB0C4312F6A1D2E9B8870.", exampleContact)
		return parley.MessageRef{}
	case v.kind != '"' && v.kind != parameter:
		f.fail(name, "must be a string.")
		return parley.MessageRef{}
	}
	ref, err := parley.ParseMessageRef(v.text())
	if err != nil {
		f.fail(name, "must be the id of a message as an answer gave it, for example true_%s_3EB0C4312F6A1D2E9B8870.", exampleContact)
	}
	return ref
}

var replyPattern = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// replyTo returns the optional bare id of the message that is replied to.
func (f form) replyTo() parley.MessageID {
	s := f.optionalText("reply_to", 1, 100)
	if s == "" || replyPattern.MatchString(s) {
		return parley.MessageID(s)
	}
	if ref, err := parley.ParseMessageRef(s); err == nil && !ref.IsBare() {
		f.fail("reply_to", "takes the bare id of a message: send %s.", ref.ID)
	} else {
		f.fail("reply_to", "must be letters, digits, - and _ only: the bare id of a message.")
	}
	return ""
}

// maxURL is how long an address may be.
const maxURL = 2048

// address returns a required http or https address. Whether it may be reached is decided when it is
// dialled.
func (f form) address(name string) string {
	v := f.find(name)
	switch {
	case v == nil:
		f.fail(name, "is required: an http or https address.")
		return ""
	case v.kind != '"':
		f.fail(name, "must be a string: an http or https address.")
		return ""
	}
	return f.checkAddress(v.text(), name)
}

func (f form) checkAddress(s, name string) string {
	if _, err := safehttp.CheckURL(s); err != nil {
		f.note(f.path+name, err.Error()) // a sentence for the caller
		return ""
	}
	return s
}

// page returns limit and offset of a list.
func (f form) page() parley.Page {
	return parley.Page{
		Limit:  int(f.whole("limit", 50, 1, 100)),
		Offset: f.whole("offset", 0, 0, math.MaxInt64),
	}
}

// meta is what a list says of its pages.
type meta struct {
	CurrentPage int64 `json:"current_page"`
	PerPage     int64 `json:"per_page"`
	Total       int64 `json:"total"`
	TotalPages  int64 `json:"total_pages"`
	HasNextPage bool  `json:"has_next_page"`
	HasPrevPage bool  `json:"has_prev_page"`
}

func metaOf(page parley.Page, total int64) *meta {
	limit := int64(page.Limit)
	return &meta{
		CurrentPage: page.Offset/limit + 1,
		PerPage:     limit,
		Total:       total,
		TotalPages:  max(1, (total+limit-1)/limit),
		HasNextPage: total-limit > page.Offset,
		HasPrevPage: page.Offset > 0,
	}
}

var (
	latitudePattern  = regexp.MustCompile(`^-?([0-8]?[0-9]|90)(\.[0-9]{1,10})?$`)
	longitudePattern = regexp.MustCompile(`^-?(1[0-7][0-9]|[0-9]?[0-9]|180)(\.[0-9]{1,10})?$`)
)

// degrees returns a coordinate in the caller's own words.
func (f form) degrees(name string, pattern *regexp.Regexp, bound float64, what string) string {
	s := f.matching(name, pattern, what)
	if s == "" {
		return ""
	}
	if x, err := strconv.ParseFloat(s, 64); err != nil || math.Abs(x) > bound {
		f.fail(name, "must lie between -%v and %v.", bound, bound)
		return ""
	}
	return s
}
