package otp

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"parley"
)

// What stands in the texts of a link for the code and for the application's name.
const (
	codePlace = "##code##"
	namePlace = "##name##"
)

// ourMessages are the texts of a link whose caller gives none. The prompt says what sending it does:
// nothing else protects somebody who is talked into sending it for another's login.
var ourMessages = parley.LinkMessages{
	Prompt:  "Log me in to ##name##. My code is ##code##. If you did not start this, do not send.",
	Success: "You are logged in to ##name##. Go back to where you started.",
	Failed:  "This did not log you in to ##name##. Send the message just as it was given to you, once, from the phone of the number that you gave.",
	Expired: "This login link of ##name## has expired. Go back to where you started and ask for a new one.",
}

// maxFilled is how long a text may be once it is filled in: no longer text can be sent.
const maxFilled = 4096

// LinkRequest says what login link to make.
type LinkRequest struct {
	Channel   parley.Channel
	Contact   parley.ContactID
	Name      string               // of the application; empty: the channel's
	Messages  *parley.LinkMessages // nil: our own
	OnSuccess string               // address to call; empty: none
	OnFailure string
	Expires   time.Duration
	Now       time.Time // on the channel's clock
	Base      string    // the address of this server, for the page of a simulated phone
}

// NewLink is a link that was just made: the only one that still knows its code.
type NewLink struct {
	parley.OTPLink
	Code    string
	Address string // opens the chat with the prompt typed in
	AppURI  string // the same, for the app
}

// NewLink makes a login link, to be stored by whoever asked for it. What is stored holds the code only
// as a keyed hash: the texts have a placeholder where it stands.
func (i *Issuer) NewLink(r LinkRequest) (NewLink, error) {
	messages := ourMessages
	if r.Messages != nil {
		messages = *r.Messages
	}
	if !strings.Contains(messages.Prompt, codePlace) {
		messages.Prompt += " " + codePlace
	}
	if r.Name == "" {
		r.Name = r.Channel.Name
	}
	code, err := newLinkCode(i.Rand)
	if err != nil {
		return NewLink{}, err
	}
	if err := checkFilled(messages, code, r.Name); err != nil {
		return NewLink{}, err
	}
	made := r.Now.UTC().Truncate(time.Millisecond) // as it is stored
	l := NewLink{Code: code, OTPLink: parley.OTPLink{
		ID: parley.NewLinkID(), Channel: r.Channel.Code, Contact: r.Contact, Hash: linkHash(i.peppers[0], r.Channel.Code, code),
		Name: r.Name, Messages: messages, OnSuccess: r.OnSuccess, OnFailure: r.OnFailure,
		CreatedAt: made, ExpiresAt: made.Add(r.Expires),
	}}
	prompt := fill(messages.Prompt, code, r.Name)
	l.Address, l.AppURI = chatLink(r.Channel.Number, prompt), appURI(r.Channel.Number, prompt)
	if r.Channel.Network == parley.Sandbox {
		l.Encrypted = i.Keyring.Encrypt([]byte(prompt), parley.PromptContext(l.ID))
		l.Address = phoneLink(r.Base, r.Contact, r.Channel.Code, prompt, ticket(i.peppers[0], l.ID))
	}
	return l, nil
}

// newLinkCode chooses a code of which every character is equally likely: a random byte counts only if
// it lies below the largest multiple of the alphabet's length.
func newLinkCode(source io.Reader) (string, error) {
	const bound = 256 / len(linkAlphabet) * len(linkAlphabet)
	code := make([]byte, 0, linkCodeLength)
	random := make([]byte, 2*linkCodeLength)
	for {
		if _, err := io.ReadFull(source, random); err != nil {
			return "", fmt.Errorf("choose a code: %w", err)
		}
		for _, b := range random {
			if int(b) >= bound {
				continue
			}
			if code = append(code, linkAlphabet[int(b)%len(linkAlphabet)]); len(code) == linkCodeLength {
				return string(code), nil
			}
		}
	}
}

// fill puts the code and the name into a text. What they bring is not filled in once more.
func fill(text, code, name string) string {
	return strings.NewReplacer(codePlace, code, namePlace, name).Replace(text)
}

// checkFilled refuses texts that cannot be sent once they are filled in, and a prompt in which the
// code could not be found again.
func checkFilled(m parley.LinkMessages, code, name string) error {
	var wrong []parley.FieldError
	for _, t := range []struct{ field, text string }{
		{"message.prompt", m.Prompt}, {"message.success", m.Success}, {"message.failed", m.Failed}, {"message.expired", m.Expired},
	} {
		if n := utf8.RuneCountInString(fill(t.text, code, name)); n > maxFilled {
			wrong = append(wrong, parley.FieldError{Field: t.field,
				Sentence: fmt.Sprintf("%s must have at most %d characters once %s and %s are filled in; it has %d.", t.field, maxFilled, codePlace, namePlace, n)})
		}
	}
	if !slices.Contains(candidates(fill(m.Prompt, code, name)), code) { // never so in our own prompt
		wrong = append(wrong, parley.FieldError{Field: "message.prompt",
			Sentence: "message.prompt must not have " + codePlace + " deep inside more than a thousand letters and digits in a row: the code could not be told from them. Put a blank before or after it."})
	}
	if err := parley.InvalidFields(wrong); err != nil {
		return err
	}
	return nil
}

// IsPlain reports whether a text shows what it says: it has no control characters, but line breaks
// and tabs where lines are allowed, and none that turn the direction of writing around.
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

// Prompt returns what a simulated phone sends when the link is tapped; not found: the link is not on
// the sandbox network, or has ended.
func (i *Issuer) Prompt(l parley.OTPLink) (string, error) {
	if l.Encrypted == nil {
		return "", parley.ErrNotFound
	}
	prompt, err := i.Keyring.Decrypt(l.Encrypted, parley.PromptContext(l.ID))
	if err != nil {
		return "", fmt.Errorf("open the prompt of %s: %w", l.ID, err)
	}
	return string(prompt), nil
}
