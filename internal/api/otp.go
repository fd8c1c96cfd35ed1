package api

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"
	"unicode"

	"parley"
	"parley/internal/api/form"
	"parley/internal/gateway"
	"parley/internal/otp"
	"parley/internal/store"
)

// What a code is like, unless the caller says otherwise, and within which bounds.
const (
	minCodeLength, maxCodeLength = 4, 6
	defaultCodeLife              = 300 // seconds
	minCodeLife, maxCodeLife     = 30, 3600
	maxTriedCode                 = 64 // longer than any code, so that blanks around it do no harm
	maxAppName                   = 60
)

// codeData is what is answered to a request for a code. The code itself never is.
type codeData struct {
	ID        parley.OTPID     `json:"id"`
	ContactID parley.ContactID `json:"contact_id"`
	Status    parley.OTPStatus `json:"status"`
	ExpiredAt string           `json:"expired_at"`
	Timestamp string           `json:"timestamp"`
}

// requestCode makes a code and sends it to the contact. The answer is the same whether or not the
// network has such a number, so it does not wait for it.
func (s *server) requestCode(ctx context.Context, r *request) (answer, error) {
	order, err := readOrder(r)
	if err != nil {
		return answer{}, err
	}
	if err := r.channel.Accepts(order.Contact); err != nil {
		return answer{}, err
	}
	asked := order.Contact
	if order.Contact, err = s.ownSpelling(ctx, r.channel.Code, asked); err != nil {
		return answer{}, err
	}
	issue, err := s.OTP.NewCode(ctx, order)
	if err != nil {
		return answer{}, err
	}
	defer issue.Close(ctx)
	code := issue.Code
	a, err := jsonAnswer(ok("Code accepted; it will be sent", codeData{
		ID: code.ID, ContactID: asked, Status: code.Status, ExpiredAt: parley.Stamp(code.ExpiresAt), Timestamp: parley.Stamp(code.CreatedAt),
	}))
	if err != nil {
		return answer{}, err
	}
	if r.key != nil { // the answer is known by now, so it can be kept with what it says
		r.key.StatusCode, r.key.ContentType, r.key.Body = a.status, a.contentType[0], a.body
	}
	draft := gateway.Draft{To: asked, Content: issue.Content, Request: r.id, Priority: issue.Priority, ExpiresAt: code.ExpiresAt}
	terms := gateway.SendOptions{Key: r.key, InTx: func(tx *store.Tx) error { return issue.Store(ctx, tx) }}
	if _, err := s.Gateway.Send(ctx, code.Channel, []gateway.Draft{draft}, terms); err != nil {
		return answer{}, fullQueue(wasDeleted(code.Channel, err))
	}
	r.accepted = true
	r.within(codeQuota(issue.Quota))
	return a, nil
}

// readOrder reads the fields of a request for a code.
func readOrder(r *request) (otp.CodeRequest, error) {
	if err := r.channel.Usable(); err != nil {
		return otp.CodeRequest{}, err
	}
	o := otp.CodeRequest{
		Channel:   r.channel,
		Contact:   r.Contact("contact_id"),
		Name:      appName(r.Form, r.channel.Name),
		Length:    int(r.Whole("length", maxCodeLength, minCodeLength, maxCodeLength)),
		Digits:    r.Bool("useNumber", true),
		Letters:   r.Bool("useLetter", false),
		Uppercase: r.Bool("allCapital", false),
		TTL:       time.Duration(r.Whole("expires", defaultCodeLife, minCodeLife, maxCodeLife)) * time.Second,
	}
	if !o.Digits && !o.Letters {
		r.Fail("useNumber", "must not be false where useLetter is too: a code needs digits or letters.")
		r.Fail("useLetter", "must not be false where useNumber is too: a code needs digits or letters.")
	}
	return o, r.Err()
}

// maxNameDigits is how many digits an application's name may have: with more it could be taken for
// the code.
const maxNameDigits = 4

var namesAddress = regexp.MustCompile(`(?i)https?:|://|www\.`)

// appName returns the optional name of the application that a code or a link is for. It is shown to
// people in a message that they trust, so it must be what it seems.
func appName(f form.Form, byDefault string) string {
	name := f.OptionalText("name", 1, maxAppName)
	if name == "" {
		return byDefault
	}
	digits := 0
	for _, r := range name {
		if unicode.IsDigit(r) {
			digits++
		}
	}
	switch {
	case !otp.IsPlain(name, false):
		f.Fail("name", "must not hold line breaks, other control characters or characters that turn the direction of writing.")
	case namesAddress.MatchString(name):
		f.Fail("name", "must be the name of an application, not a web address.")
	case digits > maxNameDigits:
		f.Fail("name", "must not have more than %d digits, which could be taken for the code.", maxNameDigits)
	}
	return name
}

// validateCode lets a caller try a code. What is answered under an idempotency key is kept in the
// transaction that counts the try, so that asking again never counts twice.
func (s *server) validateCode(ctx context.Context, r *request) (answer, error) {
	contact, code := r.Contact("contact_id"), r.Text("code", 1, maxTriedCode)
	if err := r.Err(); err != nil {
		return answer{}, err
	}
	var keep func(*store.Tx, otp.TryResult) error
	if r.key != nil {
		keep = func(tx *store.Tx, try otp.TryResult) error {
			a := tried(try)
			r.key.StatusCode, r.key.ContentType, r.key.Body = a.status, a.contentType[0], a.body
			return r.addKey(ctx, tx, *r.key)
		}
	}
	try, err := s.OTP.Validate(ctx, r.channel.Code, contact, code, keep)
	if err != nil {
		return answer{}, err
	}
	r.accepted = true
	return tried(try), nil
}

var triedSentences = map[parley.OTPStatus]string{
	parley.OTPStatusApproved: "The code is right.",
	parley.OTPStatusInvalid:  "The code is wrong.",
	parley.OTPStatusExpired:  "The code has expired. Ask for a new one.",
	parley.OTPStatusLocked:   "There were too many wrong tries. Ask for a new code.",
}

// noCode is said where no code is open. The answer's id is null then.
const noCode = "No code is open for this contact, or it was used already. Ask for a new one."

// barredSentence is said where not even a new code helps yet.
const barredSentence = "There were 20 wrong tries in 24 hours. Ask for a new code, but not before %s."

// triedSentence says how a try ended.
func triedSentence(try otp.TryResult) string {
	switch {
	case try.ID == "":
		return noCode
	case !try.BlockedUntil.IsZero():
		return fmt.Sprintf(barredSentence, parley.Stamp(try.BlockedUntil))
	}
	return triedSentences[try.Status]
}

// tried writes the answer to a try: by hand, because everybody who logs in waits for it.
func tried(try otp.TryResult) answer {
	b := make([]byte, 0, roomForSent)
	b = append(b, `{"success":`...)
	b = strconv.AppendBool(b, try.Status == parley.OTPStatusApproved)
	b = append(b, `,"message":`...)
	b = appendString(b, triedSentence(try))
	if try.ID == "" {
		b = append(b, `,"data":{"id":null`...)
	} else {
		b = append(b, `,"data":{"id":`...)
		b = appendString(b, string(try.ID))
	}
	b = append(b, `,"status":`...)
	b = appendString(b, try.Status.String())
	b = append(b, `,"attempts_left":`...)
	b = strconv.AppendInt(b, int64(try.Left), 10)
	b = append(b, `,"timestamp":"`...)
	b = parley.AppendStamp(b, try.At)
	b = append(b, `"}}`...)
	return answer{status: http.StatusOK, contentType: typeJSON, body: b}
}
