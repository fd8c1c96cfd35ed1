package parley_test

import (
	"strings"
	"testing"

	"parley"
)

func TestParseNumber(t *testing.T) {
	for text, want := range map[string]string{
		"6281234567890": "6281234567890", "+62 (812) 3456-7890": "6281234567890", "0062 812.3456/7890": "6281234567890",
		"+62\u00a0812\u00a034567890": "6281234567890", "tel:+6281234567890": "6281234567890",
		"12345":                 "12345",
		strings.Repeat("1", 45): strings.Repeat("1", 45), "0812345": "0812345",
	} {
		if got, err := parley.ParseNumber(text); got != want || err != nil {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "+", "1234", "hello", "62812345x", "6281234567890@c.us", "62812345678@g.us",
		"６２８１２３４５", strings.Repeat("1", 46), "6281234567@c.us@c.us", "62812\n345678",
	} {
		if got, err := parley.ParseNumber(text); err == nil {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestHiddenContacts(t *testing.T) {
	for digits, want := range map[string]parley.ContactID{
		"12345678901234":           "0012345678901234@c.us",
		"123456789012345":          "0123456789012345@c.us",
		"123456789012345678901234": "0123456789012345678901234@c.us",
	} {
		id := parley.NewHiddenContactID(digits)
		if parsed, err := parley.ParseContactID(string(id)); id != want || err != nil || parsed != id || !id.IsHidden() || id.CanExist() {
			t.Errorf("%s gives %s, %v", digits, id, err)
		}
	}
	for _, id := range []parley.ContactID{"6281234567890@c.us", "081234567890@c.us", "012345678901234@c.us", "120363020000000001@g.us", ""} {
		if id.IsHidden() {
			t.Errorf("%s is hidden", id)
		}
	}
}
