package parley

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
)

// MediaID is the public id of a file: "med_", 32 hexadecimal digits and, for the file of a message, the message's seq in
// base 36. With the seq the message is found without an index of files.
type MediaID string

const (
	mediaPrefix    = "med_"
	mediaKeyLength = 32
)

// NewMediaID is the id of the file that a message carries.
func NewMediaID(m *Message) MediaID {
	f := MediaIn(m.Content)
	return MediaID(mediaPrefix + cmp.Or(f.ID, f.Key) + strconv.FormatInt(m.Seq, 36))
}

// Parse returns the digits of the id and the seq of the message. ok is false if it is not the id of a message's file.
func (id MediaID) Parse() (key string, seq int64, ok bool) {
	digits, found := strings.CutPrefix(string(id), mediaPrefix)
	if !found || len(digits) <= mediaKeyLength {
		return "", 0, false
	}
	seq, err := strconv.ParseInt(digits[mediaKeyLength:], 36, 64)
	if err != nil || seq < 1 || strconv.FormatInt(seq, 36) != digits[mediaKeyLength:] {
		return "", 0, false
	}
	return digits[:mediaKeyLength], seq, true
}

// UploadID is the id of an upload by its key.
func UploadID(key string) MediaID { return MediaID(mediaPrefix + key) }

// UploadKey returns the digits of the id of an upload. ok is false if it is not one.
func (id MediaID) UploadKey() (key string, ok bool) {
	key, ok = strings.CutPrefix(string(id), mediaPrefix)
	return key, ok && len(key) == mediaKeyLength
}

// MediaLink returns where a file is fetched.
type MediaLink func(MediaID) string

// MediaLinks makes the links to files. Most need a token of the channel. A signed one is for one file and a day.
type MediaLinks struct {
	Base string   // the address of the server
	Keys [][]byte // the first signs, all verify
}

// MediaLinkKeys is the purpose that the keys of signed links are derived for.
const MediaLinkKeys = "media links"

// SignedMediaLife is how long a signed link is valid.
const SignedMediaLife = 24 * time.Hour

// Plain is the link for callers with a token.
func (l MediaLinks) Plain(id MediaID) string { return l.Base + "/api/media/" + string(id) }

// Signed makes links that need no token, from a time on.
func (l MediaLinks) Signed(at time.Time) MediaLink {
	expires := strconv.FormatInt(at.Add(SignedMediaLife).Unix(), 10)
	return func(id MediaID) string {
		return l.Plain(id) + "?expires=" + expires + "&signature=" + signMediaLink(l.Keys[0], id, expires)
	}
}

var (
	ErrLinkExpired = errors.New("the link has expired")
	ErrLinkInvalid = errors.New("the link is not valid")
)

// Verify checks a signed link by its parameters.
func (l MediaLinks) Verify(id MediaID, expires, signature string, now time.Time) error {
	for _, key := range l.Keys {
		if !hmac.Equal([]byte(signature), []byte(signMediaLink(key, id, expires))) {
			continue
		}
		if until, err := strconv.ParseInt(expires, 10, 64); err != nil || now.Unix() >= until {
			return ErrLinkExpired
		}
		return nil
	}
	return ErrLinkInvalid
}

func signMediaLink(key []byte, id MediaID, expires string) string {
	mac := hmac.New(sha256.New, key)
	io.WriteString(mac, string(id)+"\n"+expires)
	return hex.EncodeToString(mac.Sum(nil))
}
