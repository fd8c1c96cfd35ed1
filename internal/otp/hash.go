package otp

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"strings"

	"parley"
)

// keyedHash hashes parts for a purpose. h is an HMAC and may be used again.
func keyedHash(h hash.Hash, purpose string, parts ...string) []byte {
	h.Reset()
	h.Write([]byte(purpose))
	for _, part := range parts {
		var size [4]byte
		binary.BigEndian.PutUint32(size[:], uint32(len(part))) // so that different parts never give the same bytes
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}

// normalize removes blanks around a code and makes its letters uppercase. Only a to z have two forms: other letters that
// look alike stay different.
func normalize(code string) string { return uppercase(strings.TrimSpace(code)) }

// hashCode hashes a code for its row. A million codes are tried quickly, so the key must not be in the database.
func hashCode(digest func() hash.Hash, pepper []byte, of parley.OTPCode, code string) []byte {
	return keyedHash(hmac.New(digest, pepper), "otp1", string(of.ID), string(of.Channel), string(of.Contact), normalize(code))
}

// noCodeID replaces the id if there is no code to compare with. It has the same length, so the comparison is the same work.
const noCodeID = parley.OTPID("otc_000000000000000000000000")

// matches reports whether a code is the one that was sent. It takes the same time in all cases.
func (i *Issuer) matches(of parley.OTPCode, code string) bool {
	if of.ID == "" {
		of.ID, of.Hash = noCodeID, make([]byte, sha256.Size) // no hash is all zeros
	}
	same := 0
	for _, pepper := range i.peppers {
		same |= subtle.ConstantTimeCompare(hashCode(i.digest, pepper, of, code), of.Hash)
	}
	return same == 1
}

// linkHash hashes the code of a login link. The link is found by it. h is an HMAC with the pepper.
func linkHash(h hash.Hash, channel parley.ChannelCode, code string) []byte {
	return keyedHash(h, "link1", string(channel), code)
}

// ticket lets a browser without a token tap one link on the page of a simulated phone.
func ticket(pepper []byte, id parley.OTPID) string {
	hash := keyedHash(hmac.New(sha256.New, pepper), "ticket1", string(id))
	return string(id) + "." + base64.RawURLEncoding.EncodeToString(hash)
}

// LinkOfTicket returns the link of a valid ticket. The link may be expired or purged.
func (i *Issuer) LinkOfTicket(given string) (parley.OTPID, bool) {
	const idLength = len("otl_") + 24
	if len(given) < idLength {
		return "", false
	}
	id := parley.OTPID(given[:idLength])
	for _, pepper := range i.peppers {
		if hmac.Equal([]byte(ticket(pepper, id)), []byte(given)) {
			return id, true
		}
	}
	return "", false
}
