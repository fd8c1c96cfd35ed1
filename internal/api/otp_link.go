package api

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"parley"
	"parley/internal/api/form"
	"parley/internal/otp"
	"parley/internal/store"
)

const (
	minLinkExpires = 60 // nobody reads a text and sends it faster
	maxLinkExpires = 24 * 60 * 60
	maxLinkText    = 1024
)

// linkData is a login link as it is answered when it is made: the only time that its code is told.
type linkData struct {
	ID        parley.OTPID     `json:"id"`
	Code      string           `json:"code"`
	ContactID parley.ContactID `json:"contact_id"`
	Link      string           `json:"link"`
	AppURI    string           `json:"app_uri"`
	ExpiredAt string           `json:"expired_at"`
	Timestamp string           `json:"timestamp"`
}

// linking is the work of making a login link on one of the channels that it may be made on.
func linking(s *server, on func(r *request) ([]parley.Channel, error)) work {
	return work{do: func(ctx context.Context, r *request) (answer, error) {
		channels, err := on(r)
		if err != nil {
			return answer{}, err
		}
		wanted := readLink(r.Form)
		if err := r.Err(); err != nil {
			return answer{}, err
		}
		if wanted.Channel, err = linkChannel(channels, wanted.Contact); err != nil {
			return answer{}, err
		}
		wanted.Now, wanted.Base = s.Gateway.Now(wanted.Channel.Code), s.baseURL(r.http)
		return s.makeLink(ctx, r, wanted)
	}}
}

// makeLink makes the link and keeps it, in one transaction with the answer to the request's key.
func (s *server) makeLink(ctx context.Context, r *request, wanted otp.LinkRequest) (answer, error) {
	l, err := s.OTP.NewLink(wanted)
	if err != nil {
		return answer{}, err
	}
	a, err := jsonAnswer(ok("Link created", linkData{
		ID: l.ID, Code: l.Code, ContactID: l.Contact, Link: l.Address, AppURI: l.AppURI,
		ExpiredAt: parley.Stamp(l.ExpiresAt), Timestamp: parley.Stamp(l.CreatedAt),
	}))
	if err != nil {
		return answer{}, err
	}
	r.channel = wanted.Channel // for the log, where it was not named
	err = s.tx(ctx, func(tx *store.Tx) error {
		if err := checkChannel(ctx, tx, wanted.Channel); err != nil {
			return err
		}
		if err := tx.AddLink(ctx, l.OTPLink); err != nil {
			return err
		}
		return s.storeEncrypted(ctx, tx, r, a)
	})
	return a, err
}

// readLink reads the fields of a login link.
func readLink(f form.Form) otp.LinkRequest {
	wanted := otp.LinkRequest{
		Contact: f.Contact("contact_id"),
		Expires: time.Duration(f.RequiredWhole("expires", minLinkExpires, maxLinkExpires)) * time.Second,
		Name:    appName(f, ""),
	}
	if texts, given := f.Object("message", false); given {
		wanted.Messages = &parley.LinkMessages{
			Prompt: plain(texts, "prompt", maxLinkText), Success: plain(texts, "success", maxLinkText),
			Failed: plain(texts, "failed", maxLinkText), Expired: plain(texts, "expired", maxLinkText),
		}
	}
	if addresses, given := f.Object("callback", false); given {
		wanted.OnSuccess, wanted.OnFailure = addresses.Address("success"), addresses.Address("failed")
	}
	return wanted
}

// plain returns a required text that shows what it says.
func plain(f form.Form, name string, max int) string {
	s := f.Text(name, 1, max)
	if !otp.IsPlain(s, true) {
		f.Fail(name, "must not hold control characters, nor characters that turn the direction of writing.")
	}
	return s
}

// ownChannel is where a link is made by a request that is about one channel.
func ownChannel(r *request) ([]parley.Channel, error) {
	return []parley.Channel{r.channel}, r.channel.Usable()
}

// workingChannels is where a link may be made by a Global request: on the channel that it pins, or
// else on any, as long as they work.
func (s *server) workingChannels(r *request) ([]parley.Channel, error) {
	channels := s.Gateway.Channels()
	if r.channel.Code != "" {
		channels = []parley.Channel{r.channel}
	}
	working := slices.DeleteFunc(channels, func(c parley.Channel) bool { return c.State.Status != parley.Working })
	switch {
	case len(working) > 0:
		return working, nil
	case r.channel.Code != "":
		return nil, parley.Errorf(parley.BadRequest, "Channel %s is %s, and a login link needs one that is WORKING.", r.channel.Code, r.channel.State.Status)
	}
	return nil, parley.Errorf(parley.BadRequest, "No channel is WORKING, and a login link needs one. See them with: parley channel list")
}

// linkChannel chooses one of the channels, each as likely as the others, that may write to the contact
// and know their own number, which the link opens a chat with.
func linkChannel(channels []parley.Channel, to parley.ContactID) (parley.Channel, error) {
	var able []parley.Channel
	var why error
	for _, c := range channels {
		err := c.Accepts(to)
		if err == nil && c.Number == "" {
			err = &parley.Error{Code: parley.Unavailable, RetryAfter: 2 * time.Second,
				Message: fmt.Sprintf("Channel %s does not know its number yet. Try again in a moment.", c.Code)}
		}
		if err != nil {
			why = err
			continue
		}
		able = append(able, c)
	}
	if len(able) == 0 {
		return parley.Channel{}, why
	}
	return able[rand.N(len(able))], nil
}

// linkState is how a login link stands. It has neither the code nor what holds it.
type linkState struct {
	ID            parley.OTPID       `json:"id"`
	Channel       parley.ChannelCode `json:"channel"`
	ContactID     parley.ContactID   `json:"contact_id"`
	Name          string             `json:"name"`
	Status        parley.OTPStatus   `json:"status"`
	Tries         int                `json:"tries"`
	TriesByOthers int                `json:"tries_by_others"`
	ExpiredAt     string             `json:"expired_at"`
	EndedAt       *string            `json:"ended_at"`
	Timestamp     string             `json:"timestamp"`
}

// link tells how a login link stands: to the tokens of its channel and to Global ones. To all others
// there is no such link.
func (s *server) link(ctx context.Context, r *request) (envelope[linkState], error) {
	l, err := s.Store.Link(ctx, parley.OTPID(r.http.PathValue("id")))
	if errors.Is(err, parley.ErrNotFound) || err == nil && !r.reaches(l.Channel) {
		return envelope[linkState]{}, parley.Errorf(parley.NotFound, "There is no such login link, or it is not of this token's channel.")
	}
	if err != nil {
		return envelope[linkState]{}, err
	}
	state := linkState{
		ID: l.ID, Channel: l.Channel, ContactID: l.Contact, Name: l.Name, Status: l.StatusAt(s.Gateway.Now(l.Channel)),
		Tries: l.Tries, TriesByOthers: l.Others, ExpiredAt: parley.Stamp(l.ExpiresAt), EndedAt: stampOrNil(l.EndedAt), Timestamp: parley.Stamp(l.CreatedAt),
	}
	if state.Status == parley.OTPStatusExpired && l.EndedAt.IsZero() {
		state.EndedAt = &state.ExpiredAt
	}
	return ok("OK", state), nil
}
