package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"
	"unicode"

	"parley"
	"parley/internal/api/form"
	"parley/internal/gateway"
	"parley/internal/otp"
	"parley/internal/store"
)

const (
	minCodeLength, maxCodeLength = 4, 6
	defaultCodeLife              = 300 // seconds
	minCodeLife, maxCodeLife     = 30, 3600
	maxTriedCode                 = 64 // longer than any code, to allow blanks around it
	maxAppName                   = 60
)

// codeData never contains the code itself.
type codeData struct {
	ID        parley.OTPID     `json:"id"`
	ContactID parley.ContactID `json:"contact_id"`
	Status    parley.OTPStatus `json:"status"`
	ExpiredAt string           `json:"expired_at"`
	Timestamp string           `json:"timestamp"`

	Channel parley.ChannelCode `json:"channel,omitempty"` // if the server chose it
}

// requestGlobalCode sends a code on the channel that a pool would use. That is the one of the last message, so that a new
// code replaces the previous one.
func (s *server) requestGlobalCode(ctx context.Context, r *request) (response, error) {
	order, err := readOrder(r)
	if err != nil {
		return response{}, err
	}
	if r.channels != nil {
		if err := s.checkChannelOwner(ctx, r.channel); err != nil {
			return response{}, err
		}
		return s.sendCode(ctx, r, order, r.channel.Code)
	}
	channel, err := s.pick(ctx, r, order.Contact)
	if err != nil {
		return response{}, notFoundAs(err, parley.Errorf(parley.ChannelNotReady,
			"No channel is WORKING, so no code can be sent. Check with: parley channel list"))
	}
	if err := s.checkPoolOwner(ctx, channel); err != nil {
		return response{}, err
	}
	var there bool
	if r.channel, there = s.config.Gateway.Channel(channel); !there { // deleted just now
		return response{}, parley.Errorf(parley.BadRequest, "Channel %s was deleted.", channel)
	}
	return s.sendCode(ctx, r, order, channel)
}

// requestCode sends a code to the contact. It does not wait for the network, so that the response does not show
// whether the number exists.
func (s *server) requestCode(ctx context.Context, r *request) (response, error) {
	if err := r.channel.Usable(); err != nil && r.channels == nil {
		return response{}, err
	}
	order, err := readOrder(r)
	if err != nil {
		return response{}, err
	}
	var shown parley.ChannelCode
	if r.channels != nil {
		shown = r.channel.Code
	}
	return s.sendCode(ctx, r, order, shown)
}

const maxCodeChannels = 5

// readChannels reads the channels that may carry a code, in order.
func (s *server) readChannels(ctx context.Context, r *request) ([]parley.Channel, error) {
	channels := []parley.Channel{}
	var failed error
	r.List("channels", 1, maxCodeChannels, true, func(f form.Form, index string) {
		code := parley.ChannelCode(f.Text(index, 1, 100))
		c, err := s.channelNamed(ctx, code)
		switch {
		case code == "": // noted
		case errors.Is(err, parley.ErrNotFound):
			f.Fail(index, "names no channel of this server.")
		case err != nil:
			failed = err
		case slices.ContainsFunc(channels, func(other parley.Channel) bool { return other.Code == code }):
			f.Fail(index, "names a channel twice.")
		default:
			channels = append(channels, c)
		}
	})
	simulated := func(c parley.Channel) bool { return s.config.Gateway.Network(c.Network).Simulated }
	if slices.ContainsFunc(channels, simulated) && slices.ContainsFunc(channels, func(c parley.Channel) bool { return !simulated(c) }) {
		r.Fail("channels", "must not mix channels of the sandbox with others: a code for a real phone would show up on a simulated one.")
	}
	if failed != nil {
		return nil, failed
	}
	if r.Err() == nil {
		return channels, nil
	}
	r.channels = channels  // they were read
	_, err := readOrder(r) // the other fields may be wrong too
	return nil, err
}

// sendCode sends a code on the channel of the request, or on the first of several that can be used. The code belongs to the first one,
// whichever carries it. shown is the channel that the response names; empty: none.
func (s *server) sendCode(ctx context.Context, r *request, order otp.CodeRequest, shown parley.ChannelCode) (response, error) {
	order.Channel, order.Name, order.Channels = r.channel, cmp.Or(order.Name, r.channel.Name), r.channels
	order.Request, order.Token = r.id, r.tokenID()
	usable := func(c parley.Channel) bool { return c.Accepts(order.Contact) == nil }
	if err := r.channel.Accepts(order.Contact); err != nil {
		if order.First = slices.IndexFunc(r.channels, usable); order.First < 0 {
			return response{}, err
		}
	}
	a, err := s.issueCode(ctx, r, order, shown)
	switch parley.ToCode(err) {
	case parley.QueueFull, parley.NotSupported, parley.ChannelNotReady: // another one may do
		if next := slices.IndexFunc(r.channels[min(1, len(r.channels)):], usable); next >= 0 && order.First == 0 {
			order.First = next + 1
			return s.issueCode(ctx, r, order, shown)
		}
	}
	return a, err
}

func (s *server) issueCode(ctx context.Context, r *request, order otp.CodeRequest, shown parley.ChannelCode) (_ response, err error) {
	asked := order.Contact
	if order.Contact, err = s.ownSpelling(ctx, r.channel.Code, asked); err != nil {
		return response{}, err
	}
	issue, err := s.config.OTP.NewCode(ctx, order)
	if err != nil {
		return response{}, err
	}
	defer issue.Close(ctx)
	code := issue.Code
	a, err := jsonResponse(ok("Code accepted; it will be sent", codeData{
		ID: code.ID, ContactID: asked, Status: code.Status,
		ExpiredAt: parley.Stamp(code.ExpiresAt), Timestamp: parley.Stamp(code.CreatedAt), Channel: shown,
	}))
	if err != nil {
		return response{}, err
	}
	if r.key != nil { // the response is complete, so it is stored with the code
		r.key.StatusCode, r.key.ContentType, r.key.Body = a.status, a.contentType[0], a.body
	}
	var drafts []gateway.Draft
	if order.First == 0 {
		drafts = []gateway.Draft{{To: asked, Content: issue.Content, Request: r.id, Token: r.tokenID(), Priority: issue.Priority,
			ExpiresAt: code.ExpiresAt}}
	}
	options := gateway.SendOptions{Key: r.key, Accepted: func(tx *store.Tx, ms []parley.Message) error {
		return issue.Store(ctx, tx, ms...)
	}}
	if _, err := s.config.Gateway.Send(ctx, code.Channel, drafts, options); err != nil {
		return response{}, fullQueue(wasDeleted(code.Channel, err))
	}
	if len(order.Channels) > 0 {
		s.config.Gateway.ContinueCodes()
	}
	r.accepted = true
	r.noteQuota(codeQuota(issue.Quota))
	return a, nil
}

// readOrder reads the fields of a request for a code. The name is empty if none was sent.
func readOrder(r *request) (otp.CodeRequest, error) {
	o := otp.CodeRequest{
		Contact:   r.Contact("contact_id"),
		Name:      appName(r.Form, ""),
		Length:    int(r.Whole("length", maxCodeLength, minCodeLength, maxCodeLength)),
		Digits:    r.Bool("useNumber", true),
		Letters:   r.Bool("useLetter", false),
		Uppercase: r.Bool("allCapital", false),
		TTL:       time.Duration(r.Whole("expires", defaultCodeLife, minCodeLife, maxCodeLife)) * time.Second,
	}
	if !o.Digits && !o.Letters {
		r.Fail("useNumber", "must not be false if useLetter is false: a code needs digits or letters.")
		r.Fail("useLetter", "must not be false if useNumber is false: a code needs digits or letters.")
	}
	if r.Has("channels") && r.channels == nil {
		r.Fail("channels", "needs a Global token and no header X-Channel: both name the channel already.")
	}
	return o, r.Err()
}

const maxNameDigits = 4 // a longer number could look like the code

var namesAddress = regexp.MustCompile(`(?i)https?:|://|www\.`)

// appName reads the optional name of the caller's application. People trust the message that shows it, so the name
// must not mislead.
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
		f.Fail("name", "must not contain line breaks, control characters or characters that change the writing direction.")
	case namesAddress.MatchString(name):
		f.Fail("name", "must be the name of an application, not a web address.")
	case digits > maxNameDigits:
		f.Fail("name", "must not have more than %d digits: they could look like the code.", maxNameDigits)
	}
	return name
}

// validateCode stores the response of an idempotency key in the transaction that counts the try, so that a retry
// never counts twice.
func (s *server) validateCode(ctx context.Context, r *request) (any, error) {
	contact, code := r.Contact("contact_id"), r.Text("code", 1, maxTriedCode)
	if err := r.Err(); err != nil {
		return nil, err
	}
	var inTx func(*store.Tx, otp.TryResult) error
	if r.key != nil {
		inTx = func(tx *store.Tx, try otp.TryResult) error { return r.storeKey(ctx, tx, http.StatusOK, tried(try)) }
	}
	try, err := s.config.OTP.Validate(ctx, r.channel.Code, contact, code, inTx)
	r.accepted = err == nil
	return tried(try), err
}

type triedData struct {
	ID           *string          `json:"id"` // null: no code is open
	Status       parley.OTPStatus `json:"status"`
	AttemptsLeft int              `json:"attempts_left"`
	Timestamp    string           `json:"timestamp"`

	ChannelsTried []parley.ChannelCode `json:"channels_tried,omitempty"`
}

func tried(try otp.TryResult) envelope {
	data := triedData{textOrNil(try.ID), try.Status, try.Left, parley.Stamp(try.At), try.Tried}
	return envelope{Success: try.Status == parley.OTPStatusApproved, Message: triedSentence(try), Data: data}
}

var triedSentences = map[parley.OTPStatus]string{
	parley.OTPStatusApproved: "The code is correct.",
	parley.OTPStatusInvalid:  "The code is wrong.",
	parley.OTPStatusExpired:  "The code has expired. Request a new one.",
	parley.OTPStatusLocked:   "Too many wrong tries. Request a new code.",
}

// noCode is for a contact without an open code. The id in the response is null.
const noCode = "No code is open for this contact, or it was already used. Request a new one."

const barredSentence = "There were 20 wrong tries in 24 hours. Request a new code after %s."

func triedSentence(try otp.TryResult) string {
	switch {
	case try.ID == "":
		return noCode
	case !try.BlockedUntil.IsZero():
		return fmt.Sprintf(barredSentence, parley.Stamp(try.BlockedUntil))
	}
	return triedSentences[try.Status]
}
