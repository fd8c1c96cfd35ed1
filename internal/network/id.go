package network

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"

	"parley"
)

// RandomID returns a prefix and 18 hexadecimal digits, of which 14 are random and the first four depend on the time: messages
// that are stored together then have neighbouring entries in the index of ids, which are cheaper to write.
func RandomID(prefix string) parley.MessageID {
	var number [9]byte
	rand.Read(number[:])                                                           // never fails
	binary.BigEndian.PutUint16(number[:], uint16(time.Now().UnixMilli()>>7*40503)) // odd: all values come, in no obvious order
	return parley.MessageID(prefix + strings.ToUpper(hex.EncodeToString(number[:])))
}
