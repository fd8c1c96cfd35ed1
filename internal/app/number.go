package app

import "strings"

// ShowNumber writes a phone number, given in digits, the way people read them: country code, then
// groups.
func ShowNumber(digits string) string {
	if len(digits) < 8 {
		return "+" + digits
	}
	code := 2 // most of those that people write to
	switch {
	case strings.HasPrefix(digits, "999"): // no country has it: numbers of the sandbox
		code = 3
	case digits[0] == '1' || digits[0] == '7':
		code = 1
	}
	groups := []string{digits[code : code+3]}
	rest := digits[code+3:]
	for len(rest) > 4 {
		groups = append(groups, rest[:4])
		rest = rest[4:]
	}
	return "+" + digits[:code] + " " + strings.Join(append(groups, rest), "-")
}
