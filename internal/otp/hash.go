package otp

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"hash"
	"strings"

	"parley"
)

// normalize returns what of a code counts: not the blanks around it, nor whether its letters are
// capital. Only the letters that codes are made of have two forms: others that look alike stay apart.
func normalize(code string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, strings.TrimSpace(code))
}

// hashCode makes what is kept of a code. A million codes are soon tried out, so only a key that is not
// in the database keeps them secret; and a hash holds for its own row alone.
func hashCode(pepper []byte, of parley.OTPCode, code string) []byte {
	return hashCodeWith(sha256.New, pepper, of, code)
}

func hashCodeWith(digest func() hash.Hash, pepper []byte, of parley.OTPCode, code string) []byte {
	h := hmac.New(digest, pepper)
	h.Write([]byte("otp1"))
	for _, part := range []string{string(of.ID), string(of.Channel), string(of.Contact), normalize(code)} {
		var size [4]byte
		binary.BigEndian.PutUint32(size[:], uint32(len(part))) // so that no two lists of parts are written alike
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}

// noCodeID stands in where there is no code to compare with. It is as long as the id of one, so that
// the comparison is as much work.
const noCodeID = parley.OTPID("otc_000000000000000000000000")

// matches reports whether a code is the one that was sent. It takes as long for a wrong one, and where
// there is none.
func (i *Issuer) matches(of parley.OTPCode, code string) bool {
	if of.ID == "" {
		of.ID, of.Hash = noCodeID, make([]byte, sha256.Size) // no hash is all zeros
	}
	same := 0
	for _, pepper := range i.peppers {
		same |= subtle.ConstantTimeCompare(hashCodeWith(i.digest, pepper, of, code), of.Hash)
	}
	return same == 1
}
