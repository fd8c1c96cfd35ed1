package whatsapp

import (
	"fmt"

	"parley"
	"parley/internal/network"
)

// refusal is the network's answer to a message that it does not take now. Later it may.
type refusal struct{ code int }

func (r *refusal) Error() string { return fmt.Sprintf("WhatsApp answered with error %d", r.code) }

// The codes that are known to mean more than "no". docs/whatsapp.md lists them all.
const (
	codeBadRequest     = 400
	codeForbidden      = 403
	codeNotFound       = 404
	codeTimeout        = 408
	codeCalmDown       = 420
	codeStale          = 421 // it knows other addresses of the recipient than we do
	codeTooMany        = 429
	codeReachoutLimit  = 463 // the account may not write to people who never wrote to it, for a time
	codeStrangersLimit = 475 // the same, for another reason
	codeInvalidStanza  = 479
	codeUnavailable    = 480
	firstServerError   = 500
)

// refused says what follows from the network's answer to a message. What is not known to pass is permanent:
// else the messages behind it would wait for nothing.
func (l *line) refused(code int) error {
	switch {
	case code == codeReachoutLimit, code == codeStrangersLimit:
		l.s.mu.Lock()
		until := l.s.restricted
		l.s.mu.Unlock()
		return network.RefuseUntil(parley.Restricted,
			fmt.Sprintf("WhatsApp does not let this account write to people who never wrote to it now (error %d).", code), until)
	case code == codeNotFound:
		return errAbsent
	case code == codeTimeout, code == codeCalmDown, code == codeStale, code == codeTooMany, code == codeUnavailable, code >= firstServerError:
		return &refusal{code}
	case code == codeBadRequest, code == codeInvalidStanza:
		return network.Refuse(parley.Refused, fmt.Sprintf("WhatsApp did not understand this message (error %d).", code))
	case code == codeForbidden:
		return network.Refuse(parley.Refused, fmt.Sprintf("WhatsApp does not let this account write to this contact (error %d).", code))
	}
	return network.Refuse(parley.Refused, fmt.Sprintf("WhatsApp does not accept this message (error %d).", code))
}
