package otp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"

	"parley"
)

// keyed makes a keyed hash of parts, for the purpose that it names.
func keyed(pepper []byte, purpose string, parts ...string) []byte {
	return keyedWith(hmac.New(sha256.New, pepper), purpose, parts...)
}

// keyedWith is keyed with a hash that has the key already. It may be used again.
func keyedWith(h hash.Hash, purpose string, parts ...string) []byte {
	h.Reset()
	h.Write([]byte(purpose))
	for _, part := range parts {
		var size [4]byte
		binary.BigEndian.PutUint32(size[:], uint32(len(part))) // so that no two lists of parts are written alike
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}

// linkHash makes what is kept of a link's code, which is also what the link is found by.
func linkHash(pepper []byte, channel parley.ChannelCode, code string) []byte {
	return linkHashes(pepper, channel, []string{code})[0]
}

// linkHashes does so for many codes.
func linkHashes(pepper []byte, channel parley.ChannelCode, codes []string) [][]byte {
	h := hmac.New(sha256.New, pepper)
	hashes := make([][]byte, len(codes))
	for i, code := range codes {
		hashes[i] = keyedWith(h, "link1", string(channel), code)
	}
	return hashes
}

// isCodeOf reports whether a code is that of a link.
func (i *Issuer) isCodeOf(l parley.OTPLink, code string) bool {
	for _, pepper := range i.peppers {
		if hmac.Equal(linkHash(pepper, l.Channel, code), l.Hash) {
			return true
		}
	}
	return false
}

// ticket makes what lets somebody without a token tap one link on the page of a simulated phone.
func ticket(pepper []byte, id parley.OTPID) string {
	return string(id) + "." + base64.RawURLEncoding.EncodeToString(keyed(pepper, "ticket1", string(id)))
}

// LinkOfTicket returns the link that a ticket is for, if it is one of ours. Whether the link is still
// there, and good, is another matter.
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
