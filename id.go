package parley

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ChannelCode names a channel. It is chosen when the channel is made and never changes.
type ChannelCode string

var channelCode = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// ParseChannelCode checks a channel's code.
func ParseChannelCode(s string) (ChannelCode, error) {
	if !channelCode.MatchString(s) {
		return "", errors.New("a channel's code is 1 to 32 lower-case letters, digits, - and _, beginning with a letter or digit")
	}
	return ChannelCode(s), nil
}

// ContactID names a person on a chat network, always in the spelling "digits@c.us". As the id of a chat it may also be the
// id of a group: see [ContactID.IsGroup].
type ContactID string

// The bounds of a contact id as a caller writes it.
const (
	MinContactID = 10
	MaxContactID = 50
)

var (
	// ErrGroupID is the error of [ParseContactID] for the id of a group.
	ErrGroupID = errors.New("the id of a group, not of a contact")
	// ErrContactID is the error of [ParseContactID] for anything else that is not a contact id.
	ErrContactID = errors.New("not a contact id")
)

// ParseContactID reads a contact id. "@c.us" and "@s.us" are two spellings of the same person; the
// result has the first.
func ParseContactID(s string) (ContactID, error) {
	number, server, found := strings.Cut(s, "@")
	if found && server == "g.us" {
		return "", ErrGroupID
	}
	if !found || (server != "c.us" && server != "s.us") || len(s) < MinContactID || len(s) > MaxContactID || !isDigits(number) {
		return "", ErrContactID
	}
	if server == "s.us" {
		return ContactID(number + "@c.us"), nil
	}
	return ContactID(s), nil
}

// GroupID names a group, as the network spells it ("…@g.us").
type GroupID string

const groupServer = "@g.us"

var groupID = regexp.MustCompile(`^[0-9-]{1,64}@g\.us$`)

// ParseGroupID reads the id of a group.
func ParseGroupID(s string) (GroupID, error) {
	if !groupID.MatchString(s) {
		return "", errors.New("not the id of a group")
	}
	return GroupID(s), nil
}

// Chat is the id of the group's chat.
func (g GroupID) Chat() ContactID { return ContactID(g) }

// IsGroup reports whether a chat is that of a group.
func (c ContactID) IsGroup() bool { return strings.HasSuffix(string(c), groupServer) }

// Group returns the group of a chat; empty: it is the chat of a contact.
func (c ContactID) Group() GroupID {
	if !c.IsGroup() {
		return ""
	}
	return GroupID(c)
}

func NewContactID(number string) ContactID { return ContactID(number + "@c.us") }

func (c ContactID) Number() string {
	number, _, _ := strings.Cut(string(c), "@")
	return number
}

// CanExist reports whether the number could be a phone number with its country code: no country code begins
// with 0, and numbers have 7 to 15 digits.
func (c ContactID) CanExist() bool {
	number := c.Number()
	return len(number) >= 7 && len(number) <= 15 && number[0] != '0'
}

// A contact whose number is hidden has an id of 0 and these many digits of the network's own, which no number has.
const (
	minHidden = 15
	maxHidden = 24
)

// NewHiddenContactID returns the id of a contact whose number is hidden, by the digits with which the network names it: at most 24.
func NewHiddenContactID(digits string) ContactID {
	return NewContactID(strings.Repeat("0", 1+max(0, minHidden-len(digits))) + digits)
}

// IsHidden reports whether the id is that of a contact whose number is hidden.
func (c ContactID) IsHidden() bool {
	number := c.Number()
	return len(number) > minHidden && len(number) <= maxHidden+1 && number[0] == '0' && !c.IsGroup()
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// MessageID is the bare id of a message. It is unique in its chat and direction; those of messages that a channel sends, which
// the driver of its network chooses, are unique everywhere.
type MessageID string

// MessageRef is how a request names a message: by its full id "true_62811…@c.us_3EB0…", with the id of the group
// instead of the contact's in a group, or by the bare id alone, in which case Chat is empty and FromMe says nothing.
type MessageRef struct {
	FromMe bool
	Chat   ContactID
	ID     MessageID
}

var bareID = regexp.MustCompile(`^[A-Za-z0-9-]{1,100}$`)

// ParseMessageRef reads a full or a bare message id.
func ParseMessageRef(s string) (MessageRef, error) {
	wrong := errors.New("not a message id")
	flag, rest, full := strings.Cut(s, "_")
	if !full {
		if !bareID.MatchString(s) {
			return MessageRef{}, wrong
		}
		return MessageRef{ID: MessageID(s)}, nil
	}
	chat, id, ok := strings.Cut(rest, "_")
	if !ok || (flag != "true" && flag != "false") || !bareID.MatchString(id) {
		return MessageRef{}, wrong
	}
	contact, err := ParseContactID(chat)
	if err == ErrGroupID {
		var group GroupID
		group, err = ParseGroupID(chat)
		contact = group.Chat()
	}
	if err != nil {
		return MessageRef{}, wrong
	}
	return MessageRef{FromMe: flag == "true", Chat: contact, ID: MessageID(id)}, nil
}

func (r MessageRef) IsBare() bool { return r.Chat == "" }

// String returns the full id, or the bare one where that is all there is.
func (r MessageRef) String() string {
	if r.IsBare() {
		return string(r.ID)
	}
	return strconv.FormatBool(r.FromMe) + "_" + string(r.Chat) + "_" + string(r.ID)
}

// TokenID is the jti of a token: what it is listed and revoked by.
type TokenID string

func NewTokenID() TokenID { return TokenID("tok_" + randomHex(16)) }

// PoolID groups the messages that one request sends in order.
type PoolID string

func NewPoolID() PoolID { return PoolID("pool_" + randomHex(10)) }

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// TimedHex returns random hexadecimal digits but for the first four, which depend on the time: rows that are stored together then have
// neighbouring entries in an index of such ids, which are cheaper to write.
func TimedHex(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b)                                                           // never fails
	binary.BigEndian.PutUint16(b, uint16(time.Now().UnixMilli()>>7*40503)) // odd: all values come, in no obvious order
	return hex.EncodeToString(b)
}

// ErrNumber is what [ParseNumber] returns for a text that is no phone number.
var ErrNumber = errors.New("not a phone number")

// ParseNumber reads a phone number as people write it and returns its digits: with its country code, without the
// + or 00 before it. [ContactID.CanExist] checks whether such a number can exist.
func ParseNumber(s string) (string, error) {
	digits := strings.Map(func(r rune) rune {
		if strings.ContainsRune("+-. ()/\u00a0", r) {
			return -1
		}
		return r
	}, strings.TrimPrefix(s, "tel:"))
	digits = strings.TrimPrefix(digits, "00")
	if _, err := ParseContactID(digits + "@c.us"); err != nil {
		return "", ErrNumber
	}
	return digits, nil
}
