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
	minLinkExpires = 60 // less time is not enough to read and send a text
	maxLinkExpires = 24 * 60 * 60
	maxLinkText    = 1024
)

// linkData is the only response that contains the code.
type linkData struct {
	ID        parley.OTPID     `json:"id"`
	Code      string           `json:"code"`
	ContactID parley.ContactID `json:"contact_id"`
	Link      string           `json:"link"`
	AppURI    string           `json:"app_uri"`
	ExpiredAt string           `json:"expired_at"`
	Timestamp string           `json:"timestamp"`
}

// linking is the work of creating a login link on one of the allowed channels.
func linking(s *server, on func(ctx context.Context, r *request) ([]parley.Channel, error)) work {
	return work{do: func(ctx context.Context, r *request) (response, error) {
		channels, err := on(ctx, r)
		if err != nil {
			return response{}, err
		}
		wanted := readLink(r.Form)
		if err := r.Err(); err != nil {
			return response{}, err
		}
		if wanted.Channel, err = linkChannel(channels, wanted.Contact); err != nil {
			return response{}, err
		}
		wanted.Now, wanted.Base = s.config.Gateway.Now(wanted.Channel.Code), s.baseURL(r.http)
		return s.makeLink(ctx, r, wanted)
	}}
}

func (s *server) makeLink(ctx context.Context, r *request, wanted otp.LinkRequest) (response, error) {
	l, err := s.config.OTP.NewLink(wanted)
	if err != nil {
		return response{}, err
	}
	a, err := jsonResponse(ok("Link created", linkData{
		ID: l.ID, Code: l.Code, ContactID: l.Contact, Link: l.Address, AppURI: l.AppURI,
		ExpiredAt: parley.Stamp(l.ExpiresAt), Timestamp: parley.Stamp(l.CreatedAt),
	}))
	if err != nil {
		return response{}, err
	}
	r.channel = wanted.Channel // for the log
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

func readLink(f form.Form) otp.LinkRequest {
	wanted := otp.LinkRequest{
		Contact: f.Contact("contact_id"),
		Expires: time.Duration(f.RequiredWhole("expires", minLinkExpires, maxLinkExpires)) * time.Second,
		Name:    appName(f, ""),
	}
	if texts, given := f.Object("message", false); given && !isAllNull(texts) {
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

// isAllNull reports whether an object has only nulls, which are the same as no object at all.
func isAllNull(f form.Form) bool {
	names := f.Names()
	return len(names) > 0 && !slices.ContainsFunc(names, f.Has)
}

func plain(f form.Form, name string, max int) string {
	s := f.Text(name, 1, max)
	if !otp.IsPlain(s, true) {
		f.Fail(name, "must not contain control characters or characters that change the writing direction.")
	}
	return s
}

func ownChannel(_ context.Context, r *request) ([]parley.Channel, error) {
	return []parley.Channel{r.channel}, r.channel.Usable()
}

// workingChannels returns the WORKING channels for a Global request: that of X-Channel, else all that may be chosen.
func (s *server) workingChannels(ctx context.Context, r *request) ([]parley.Channel, error) {
	channels := []parley.Channel{r.channel}
	if r.channel.Code == "" {
		var err error
		if channels, err = s.config.Gateway.Choices(ctx); err != nil {
			return nil, err
		}
	}
	working := slices.DeleteFunc(channels, func(c parley.Channel) bool { return c.State.Status != parley.ChannelWorking })
	switch {
	case len(working) > 0:
		return working, nil
	case r.channel.Code != "":
		return nil, parley.Errorf(parley.ChannelNotReady,
			"Channel %s is %s. A login link needs a WORKING channel.", r.channel.Code, r.channel.State.Status)
	}
	return nil, parley.Errorf(parley.ChannelNotReady,
		"No channel is WORKING, so no login link can be created. Check with: parley channel list")
}

// linkChannel picks a random channel that may write to the contact and knows its own number.
func linkChannel(channels []parley.Channel, to parley.ContactID) (parley.Channel, error) {
	var able []parley.Channel
	var why error
	for _, c := range channels {
		err := c.Accepts(to)
		if err == nil && c.Number == "" {
			err = &parley.Error{Code: parley.Unavailable, RetryAfter: 2 * time.Second,
				Message: fmt.Sprintf("The number of channel %s is not known yet. Try again in a moment.", c.Code)}
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

// linkState contains neither the code nor the link.
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

// link returns the state of a login link. For a token of another channel it does not exist.
func (s *server) link(ctx context.Context, r *request) (any, error) {
	l, err := s.config.Store.Link(ctx, parley.OTPID(r.http.PathValue("id")))
	if errors.Is(err, parley.ErrNotFound) || err == nil && !r.mayAccess(l.Channel) {
		return nil, parley.Errorf(parley.NotFound, "This login link does not exist, or belongs to another channel.")
	}
	if err != nil {
		return nil, err
	}
	state := linkState{
		ID: l.ID, Channel: l.Channel, ContactID: l.Contact, Name: l.Name, Status: l.StatusAt(s.config.Gateway.Now(l.Channel)),
		Tries: l.Tries, TriesByOthers: l.Others,
		ExpiredAt: parley.Stamp(l.ExpiresAt), EndedAt: stampOrNil(l.EndedAt), Timestamp: parley.Stamp(l.CreatedAt),
	}
	if state.Status == parley.OTPStatusExpired && l.EndedAt.IsZero() {
		state.EndedAt = &state.ExpiredAt
	}
	return ok("OK", state), nil
}
