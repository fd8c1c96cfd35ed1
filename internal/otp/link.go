package otp

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"parley"
)

// Placeholders in the texts of a link.
const (
	codePlaceholder = "##code##"
	namePlaceholder = "##name##"
)

// defaultMessages are the texts of a link whose request has none. The prompt says what it does: nothing else protects
// people who are talked into sending it for the login of an attacker.
var defaultMessages = parley.LinkMessages{
	Prompt:  "Log me in to ##name##. My code is ##code##. If you did not start this, do not send.",
	Success: "You are logged in to ##name##. Go back to where you started.",
	Failed: "This did not log you in to ##name##. Send the message just as it was given to you, once, " +
		"from the phone of the number that you gave.",
	Expired: "This login link of ##name## has expired. Go back to where you started and ask for a new one.",
}

// maxFilled is the maximum length of a text with its placeholders filled in.
const maxFilled = 4096

// LinkRequest says what login link to make.
type LinkRequest struct {
	Channel   parley.Channel
	Contact   parley.ContactID
	Name      string               // of the application; empty: the channel's
	Messages  *parley.LinkMessages // nil: the default
	OnSuccess string               // callback address; empty: none
	OnFailure string
	Expires   time.Duration
	Now       time.Time // on the channel's clock
	Base      string    // the address of this server, for the page of a simulated phone
}

// NewLink is a new link, with its code.
type NewLink struct {
	parley.OTPLink
	Code    string
	Address string // opens the chat with the prompt filled in
	AppURI  string // the same, for the app
}

// NewLink makes a login link; the caller stores it. The stored link has the code only as a keyed hash: its texts have a
// placeholder for it.
func (i *Issuer) NewLink(r LinkRequest) (NewLink, error) {
	messages := *cmp.Or(r.Messages, &defaultMessages)
	if !strings.Contains(messages.Prompt, codePlaceholder) {
		messages.Prompt += " " + codePlaceholder
	}
	r.Name = cmp.Or(r.Name, r.Channel.Name)
	code := randomCode(rand.Reader, linkAlphabet, linkCodeLength)
	if wrong := checkFilled(messages, code, r.Name); wrong != nil {
		return NewLink{}, wrong
	}
	made := r.Now.UTC().Truncate(time.Millisecond) // the precision of the store
	l := NewLink{Code: code, OTPLink: parley.OTPLink{
		ID: parley.NewLinkID(), Channel: r.Channel.Code, Contact: r.Contact,
		Hash: linkHash(hmac.New(sha256.New, i.peppers[0]), r.Channel.Code, code),
		Name: r.Name, Messages: messages, OnSuccess: r.OnSuccess, OnFailure: r.OnFailure,
		CreatedAt: made, ExpiresAt: made.Add(r.Expires),
	}}
	prompt := fill(messages.Prompt, code, r.Name)
	l.Address, l.AppURI = chatLink(r.Channel.Number, prompt), appURI(r.Channel.Number, prompt)
	if i.config.Network(r.Channel.Network).Simulated {
		l.Encrypted = i.config.Keyring.Encrypt([]byte(prompt), parley.PromptContext(l.ID))
		l.Address = phoneLink(r.Base, r.Contact, r.Channel.Code, prompt, ticket(i.peppers[0], l.ID))
	}
	return l, nil
}

// fill replaces the placeholders of a text. Placeholders in the name stay.
func fill(text, code, name string) string {
	return strings.NewReplacer(codePlaceholder, code, namePlaceholder, name).Replace(text)
}

// chatLink opens a chat with a number, with a text filled in.
func chatLink(number, text string) string { return "https://wa.me/" + number + "?text=" + escape(text) }

func appURI(number, text string) string {
	return "whatsapp://send?phone=" + number + "&text=" + escape(text)
}

// phoneLink is the page of a simulated phone with a text filled in. The ticket is in the fragment, which browsers do not
// send: it is in no log of a proxy.
func phoneLink(base string, contact parley.ContactID, to parley.ChannelCode, text, ticket string) string {
	return base + "/phone/" + contact.Number() + "?to=" + escape(string(to)) + "&text=" + escape(text) + "#ticket=" + escape(ticket)
}

// escape percent-encodes a query value. A blank becomes %20, because apps show a plus sign as it is.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// checkFilled rejects texts that are too long with their placeholders filled in, and a prompt in which the code could not be
// found.
func checkFilled(m parley.LinkMessages, code, name string) *parley.Error {
	var wrong []parley.FieldError
	for _, t := range []struct{ field, text string }{
		{"message.prompt", m.Prompt}, {"message.success", m.Success}, {"message.failed", m.Failed}, {"message.expired", m.Expired},
	} {
		if n := utf8.RuneCountInString(fill(t.text, code, name)); n > maxFilled {
			wrong = append(wrong, parley.FieldError{Field: t.field,
				Sentence: fmt.Sprintf("%s must have at most %d characters once %s and %s are filled in; it has %d.",
					t.field, maxFilled, codePlaceholder, namePlaceholder, n)})
		}
	}
	if !slices.Contains(candidates(fill(m.Prompt, code, name)), code) { // never with the default prompt
		wrong = append(wrong, parley.FieldError{Field: "message.prompt",
			Sentence: "message.prompt must not have " + codePlaceholder + " deep inside more than a thousand letters and digits in a row: " +
				"the code could not be found among them. Put a blank before or after it."})
	}
	return parley.InvalidFields(wrong)
}

// IsPlain reports whether a text has neither control characters nor characters that change the direction of writing. Line
// breaks and tabs are allowed if lines is true.
func IsPlain(text string, lines bool) bool {
	for _, r := range text {
		switch {
		case lines && (r == '\n' || r == '\r' || r == '\t'):
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return false
		case '\u202a' <= r && r <= '\u202e', '\u2066' <= r && r <= '\u2069':
			return false
		}
	}
	return true
}

// Prompt returns the text that a simulated phone sends when the link is tapped. Links of real networks and finished links
// have none: [parley.ErrNotFound].
func (i *Issuer) Prompt(l parley.OTPLink) (string, error) {
	if l.Encrypted == nil {
		return "", parley.ErrNotFound
	}
	prompt, err := i.config.Keyring.Decrypt(l.Encrypted, parley.PromptContext(l.ID))
	if err != nil {
		return "", fmt.Errorf("decrypt the prompt of %s: %w", l.ID, err)
	}
	return string(prompt), nil
}
