package parley

import (
	"errors"
	"strings"
)

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
