package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"parley"
	"parley/internal/network"
)

const (
	maxCall = 4 << 20
	// Calls above smallCall are large. Only so many of them are in memory at a time, so that strangers cannot fill it; the others are
	// refused, and a network sends them again.
	smallCall     = 64 << 10
	maxLargeCalls = 16
	callTimeout   = 20 * time.Second // to store everything
)

var (
	errNoCall       = parley.Errorf(parley.NotFound, "No network calls this address.")
	errCallTooLarge = parley.Errorf(parley.TooLarge, "The body is larger than 4 MiB, which is the limit here.")
	errManyCalls    = &parley.Error{Code: parley.Unavailable, RetryAfter: time.Second,
		Message: "Too many large requests come at a time. Try again in a moment."}
)

func errNotStored(cause error) error {
	return &parley.Error{Code: parley.Unavailable, RetryAfter: time.Second, Cause: cause,
		Message: "Not everything in this request could be stored. Send it again."}
}

// networkRoutes lists the routes on which networks call us. There are none if no network does.
func networkRoutes(s *server) []row {
	for name := range s.config.Gateway.Drivers {
		if _, ok := s.receiver(name); ok {
			return []row{
				{"GET /network/{network}/{channel}", public, "", "", nothing, work{do: s.challengeCall}},
				{"POST /network/{network}/{channel}", public, "", "", nothing, handleText(s.receiveCall)},
			}
		}
	}
	return nil
}

func (s *server) receiver(name parley.NetworkName) (network.Receiver, bool) {
	receiver, ok := s.config.Gateway.Drivers[name].(network.Receiver)
	return receiver, ok
}

// calledChannel returns the channel of an address, and the driver of its network.
func (s *server) calledChannel(ctx context.Context, hr *http.Request) (network.Receiver, parley.Channel, error) {
	name := parley.NetworkName(hr.PathValue("network"))
	receiver, ok := s.receiver(name)
	if !ok {
		return nil, parley.Channel{}, errNoCall
	}
	c, err := s.channelNamed(ctx, parley.ChannelCode(hr.PathValue("channel")))
	if errors.Is(err, parley.ErrNotFound) || err == nil && c.Network != name {
		err = errNoCall
	}
	return receiver, c, err
}

func (s *server) challengeCall(ctx context.Context, r *request) (response, error) {
	receiver, channel, err := s.calledChannel(ctx, r.http)
	var text string
	if err == nil {
		text, err = receiver.Challenge(ctx, channel, r.http.URL.Query())
	}
	return response{status: http.StatusOK, contentType: typePlain, body: []byte(text)}, s.refuseCall(r.http, err)
}

// receiveCall stores what a network reports. It responds 200 only when everything is stored: else the network sends it again.
func (s *server) receiveCall(ctx context.Context, r *request) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	receiver, channel, err := s.calledChannel(ctx, r.http)
	if err != nil {
		return s.refuseCall(r.http, err)
	}
	body, large, err := s.readCall(r.http)
	if large {
		defer func() { <-s.largeCalls }()
	}
	if err != nil {
		return err
	}
	calls := []network.Call{{Channel: channel.Code, Body: body}}
	if !IsForwarded(ctx) { // else the node that forwarded it has verified it
		if calls, err = receiver.Verify(ctx, channel, r.http.Header, body); err != nil {
			return s.refuseCall(r.http, err)
		}
		s.noteAuthenticated(r.http)
	}
	var errs []error
	for _, call := range calls {
		errs = append(errs, s.storeCall(ctx, r, channel.Network, receiver, call))
	}
	if err := errors.Join(errs...); err != nil {
		return errNotStored(err)
	}
	return nil
}

// readCall reads the body. large: it takes one of the places for large calls.
func (s *server) readCall(hr *http.Request) (body []byte, large bool, err error) {
	if hr.ContentLength > maxCall {
		return nil, false, errCallTooLarge
	}
	body, err = io.ReadAll(io.LimitReader(hr.Body, smallCall+1))
	if err == nil && len(body) > smallCall {
		select {
		case s.largeCalls <- struct{}{}:
			large = true
		default:
			return nil, false, errManyCalls
		}
		var rest []byte
		rest, err = io.ReadAll(io.LimitReader(hr.Body, maxCall+1-int64(len(body))))
		body = append(body, rest...)
	}
	switch {
	case err != nil:
		err = &parley.Error{Code: parley.BadRequest, Message: "The request body is incomplete.", Cause: err}
	case len(body) > maxCall:
		err = errCallTooLarge
	}
	return body, large, err
}

// refuseCall returns the error of a request that was not accepted. One of a stranger counts as a failed authentication.
func (s *server) refuseCall(hr *http.Request, err error) error {
	if err == nil {
		return nil
	}
	switch parley.ToCode(err) {
	case parley.Forbidden, parley.Unauthenticated, parley.NotFound:
		if tooMany := s.CountFailure(hr); tooMany != nil {
			return tooMany
		}
		return err
	case parley.BadRequest:
		return err
	}
	return errNotStored(err)
}

// storeCall stores what a call reports, here or on the node that serves its channel.
func (s *server) storeCall(ctx context.Context, r *request, on parley.NetworkName, receiver network.Receiver, call network.Call) error {
	c, err := s.channelNamed(ctx, call.Channel)
	if err != nil {
		return err
	}
	err = s.checkChannelOwner(ctx, c)
	to, elsewhere := errors.AsType[*otherNode](err)
	if err == nil {
		return receiver.Receive(ctx, call)
	}
	if !elsewhere {
		return err
	}
	hr := r.http.WithContext(ctx)
	hr.RequestURI = "/network/" + url.PathEscape(string(on)) + "/" + url.PathEscape(string(call.Channel))
	part := &request{http: hr, id: r.id, body: *bytes.NewBuffer(call.Body)}
	status, err := s.forwardTo(&discarded{http.Header{}}, part, to)
	if err == nil && status != http.StatusOK {
		err = errNoAnswer
	}
	return err
}

// discarded is a response that nobody reads.
type discarded struct{ header http.Header }

func (d *discarded) Header() http.Header            { return d.header }
func (d *discarded) WriteHeader(int)                {}
func (d *discarded) Write(text []byte) (int, error) { return len(text), nil }
