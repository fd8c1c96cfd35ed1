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

// Keys are the secrets of one owner: the one that counts, and after a change the old one for a while.
type Keys struct {
	Secret   string // "whsec_" and base64
	Old      string // empty: there is none
	OldUntil time.Time
}

// SignRequest puts the three headers of the Standard Webhooks onto a request that tells of an event.
// The time is the attempt's; the id is the event's, the same at every attempt.
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

// signParams signs query parameters: as key=value, sorted, a line each. A GET has no body to sign, and
// parameters survive proxies that write the address anew.
func (k Keys) signParams(sorted []param) (string, error) {
	lines := make([]string, len(sorted))
	for i, p := range sorted {
		lines[i] = p.key + "=" + p.value
	}
	return k.sign([]byte(strings.Join(lines, "\n")))
}

// sign returns the signature by the secret and, while it is valid, one by the old secret after it.
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
