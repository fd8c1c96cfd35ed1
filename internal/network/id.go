package network

import (
	"strings"

	"parley"
)

// RandomID returns a prefix and 18 hexadecimal digits; see [parley.TimedHex].
func RandomID(prefix string) parley.MessageID {
	return parley.MessageID(prefix + strings.ToUpper(parley.TimedHex(9)))
}
