package callback

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley"
)

// The headers of the Standard Webhooks.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// Keys are the secrets of one owner: the current one, and for a while after a rotation the old one.
type Keys struct {
	Secret   string // "whsec_" and base64
	Old      string // empty: none
	OldUntil time.Time
}

// SignRequest sets the three headers of the Standard Webhooks. The time is that of the attempt; the id is that of the
// event, the same in every attempt.
func (k Keys) SignRequest(h http.Header, id parley.EventID, at time.Time, body []byte) error {
	stamp := strconv.FormatInt(at.Unix(), 10)
	signed := make([]byte, 0, len(id)+len(stamp)+len(body)+2)
	signed = fmt.Appendf(signed, "%s.%s.", id, stamp)
	signature, err := k.sign(append(signed, body...))
	if err != nil {
		return err
	}
	h.Set(headerID, string(id))
	h.Set(headerTimestamp, stamp)
	h.Set(headerSignature, signature)
	return nil
}

// param is a query parameter, unencoded.
type param struct{ key, value string }

// signParams signs sorted query parameters as lines of key=value. A GET has no body, and parameters survive proxies that
// rewrite the address.
func (k Keys) signParams(sorted []param) (string, error) {
	lines := make([]string, len(sorted))
	for i, p := range sorted {
		lines[i] = p.key + "=" + p.value
	}
	return k.sign([]byte(strings.Join(lines, "\n")))
}

// sign returns the signature of the secret and, while it is valid, that of the old secret after it.
func (k Keys) sign(data []byte) (string, error) {
	secrets := []string{k.Secret}
	if k.Old != "" {
		secrets = append(secrets, k.Old)
	}
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		key, err := keyOf(secret)
		if err != nil {
			return "", err
		}
		mac := hmac.New(sha256.New, key)
		mac.Write(data)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " "), nil
}
