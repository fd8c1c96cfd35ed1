package parley

import (
	"errors"
	"strings"
)

// ErrNumber is what [ParseNumber] returns for a text that is no phone number.
var ErrNumber = errors.New("not a phone number")

// ParseNumber reads a phone number as people write it, or a contact id, and returns its digits: with its
// country code, without the + or 00 before it. Whether such a number can exist is another question, which
// [ContactID.CanExist] answers.
func ParseNumber(s string) (string, error) {
	s = strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(s, "tel:"), "@c.us"), "@s.us")
	digits := strings.Map(func(r rune) rune {
		if strings.ContainsRune("+-. ()/\u00a0", r) {
			return -1
		}
		return r
	}, s)
	digits = strings.TrimPrefix(digits, "00")
	if _, err := ParseContactID(digits + "@c.us"); err != nil {
		return "", ErrNumber
	}
	return digits, nil
}
