package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"rsc.io/qr"

	"parley"
	"parley/internal/api/form"
	"parley/internal/network"
	"parley/internal/store"
	"parley/internal/wire"
)

func toEvidence(e network.Evidence) *wire.Evidence {
	return &wire.Evidence{ConnectedAt: wire.At(e.Connected), HeardAt: wire.At(e.Heard), ConfirmedAt: wire.At(e.Confirmed),
		ReceivedAt: wire.At(e.Received)}
}

func toPairing(p parley.Pairing) wire.Pairing {
	return wire.Pairing{Step: p.Step, ExpiresAt: wire.At(p.ExpiresAt), Reason: p.Reason, N: p.N, Of: p.Of, At: wire.At(p.At)}
}

// pairing returns the latest step of a channel's pairing; nil: not paired lately.
func (s *server) pairing(code parley.ChannelCode) (*wire.PairingCode, error) {
	p, lately := s.config.Gateway.Pairing(code)
	if !lately {
		return nil, nil
	}
	data := &wire.PairingCode{Pairing: toPairing(p), Code: wire.Text(p.Code), Passkey: p.Passkey()}
	if p.Code == "" || p.Step != parley.QRStep { // no code, or it expired
		return data, nil
	}
	var err error
	data.QR, err = drawQR(p.Code)
	return data, err
}

// drawQR draws a QR code without its margin. The low error correction makes it small enough for terminals.
func drawQR(text string) ([]string, error) {
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		return nil, err
	}
	rows := make([]string, code.Size)
	for y := range rows {
		row := bytes.Repeat([]byte{'0'}, code.Size)
		for x := range row {
			if code.Black(x, y) {
				row[x] = '1'
			}
		}
		rows[y] = string(row)
	}
	return rows, nil
}

func (s *server) pairChannel(ctx context.Context, r *request) (any, error) {
	number := r.Number("number")
	if err := r.Err(); err != nil {
		return nil, err
	}
	c, err := s.config.Gateway.PairChannel(ctx, r.code(), number)
	return s.channelResponse(ctx, "Pairing started", c, err)
}

// answerPasskey hands in the response of a passkey, or that a person compared the codes.
func (s *server) answerPasskey(ctx context.Context, r *request) (any, error) {
	if err := s.handInPasskey(ctx, r, r.code()); err != nil {
		return nil, err
	}
	data, err := s.pairing(r.code())
	return ok("Accepted", data), err
}

func (s *server) handInPasskey(ctx context.Context, r *request, code parley.ChannelCode) error {
	assertion, given, err := readAssertion(r.Form)
	if err != nil {
		return err
	}
	if confirmed := r.Bool("confirmed", false); confirmed == given {
		r.Fail("assertion", "is required: the response of the passkey, an object. Where codes were compared, send {\"confirmed\":true} instead.")
	}
	if err := r.Err(); err != nil {
		return err
	}
	return s.config.Gateway.AnswerPasskey(ctx, code, assertion)
}

// readAssertion returns the response of a passkey as JSON.
func readAssertion(f form.Form) (assertion []byte, given bool, err error) {
	o, given := f.Object("assertion", false)
	if !given {
		return nil, false, nil
	}
	const longest = 8192
	r, _ := o.Object("response", true)
	response := map[string]string{}
	for _, name := range []string{"clientDataJSON", "authenticatorData", "signature"} {
		response[name] = r.Text(name, 1, longest)
	}
	if handle := r.OptionalText("userHandle", 1, longest); handle != "" {
		response["userHandle"] = handle
	}
	assertion, err = json.Marshal(map[string]any{"id": o.Text("id", 1, longest), "rawId": o.Text("rawId", 1, longest),
		"type": o.Choice("type", true, "public-key"), "response": response})
	return assertion, true, err
}

func (s *server) answerPasskeyByLink(ctx context.Context, r *request) (any, error) {
	_, c, err := s.pairTicket(ctx, r)
	if err == nil {
		err = s.checkChannelOwner(ctx, c)
	}
	if err == nil {
		err = s.handInPasskey(ctx, r, c.Code)
	}
	if err != nil {
		return nil, err
	}
	state, err := s.newPairState(c)
	return ok("OK", state), err
}

func (s *server) readPairing(ctx context.Context, r *request) (any, error) {
	c, err := s.channelNamed(ctx, r.code())
	if err != nil {
		return nil, notFoundAs(err, errNoChannel)
	}
	data, err := s.pairing(c.Code)
	return ok("OK", data), err
}

// liveNetworkNames lists the networks that a sandbox channel can move to, the default first.
func (s *server) liveNetworkNames() (names []string) {
	for _, info := range s.config.Gateway.Networks() {
		if !info.Simulated {
			names = append(names, string(info.Name))
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { // those that are paired need nothing else
		return len(s.config.Gateway.Network(parley.NetworkName(b)).Pairing) - len(s.config.Gateway.Network(parley.NetworkName(a)).Pairing)
	})
	return names
}

// goLive moves a sandbox channel to WhatsApp. The allowed recipients are required: a missing field must not mean
// everybody.
func (s *server) goLive(ctx context.Context, r *request) (any, error) {
	everybody := r.Bool("everybody", false)
	var allow []parley.ContactID
	r.List("allow", 1, maxAllowed, false, func(f form.Form, index string) {
		text, isText := f.String(index, "a phone number or a contact id")
		if !isText {
			return
		}
		if digits := f.CheckNumber(index, text); digits != "" {
			allow = append(allow, parley.NewContactID(digits))
		}
	})
	switch {
	case everybody && r.Has("allow"):
		r.Fail("everybody", "must not be true together with allow. Send one of them.")
	case !everybody && !r.Has("allow"):
		r.Fail("allow", "is required: the numbers that the channel may write to. To allow all numbers, send {\"everybody\":true}.")
	}
	to := parley.NetworkName(r.Choice("network", false, s.liveNetworkNames()...))
	given := s.account(r, to, true)
	if err := r.Err(); err != nil {
		return nil, err
	}
	account, err := s.checkAccount(ctx, parley.Channel{Network: to}, given)
	if err != nil {
		return nil, err
	}
	c, err := s.config.Gateway.GoLive(ctx, r.code(), to, allow, r.auditChannelChange(ctx))
	if err == nil && account != nil {
		err = s.setAccount(ctx, c, account)
	}
	return s.accountResponse(ctx, "Channel is live", c, err)
}

const (
	pairLinkLife = time.Hour // long enough for mail, too short for an archive

	// purgeTickets is how long an ended link can still explain why it does not work.
	purgeTickets = 24 * time.Hour

	// How often a link may request new codes: the network refuses more.
	pairBurst = 6
	pairEvery = 20 * time.Second
)

type pairLink struct {
	URL       string   `json:"url"`
	ExpiresAt string   `json:"expires_at"`
	QR        []string `json:"qr"` // of the URL, as in [wire.PairingCode]
}

func (s *server) makePairLink(ctx context.Context, r *request) (any, error) {
	c, err := s.channelNamed(ctx, r.code())
	switch {
	case err == nil && len(s.config.Gateway.Network(c.Network).Pairing) == 0:
		err = parley.Errorf(parley.NotSupported,
			"Channel %s is on the network %s, which has no pairing. Move it to WhatsApp with: parley channel go-live %s", c.Code, c.Network, c.Code)
	case err == nil && c.State.Status == parley.ChannelWorking:
		err = parley.Errorf(parley.BadRequest, "Channel %s is already paired. Log it out first with: parley channel logout %s", c.Code, c.Code)
	}
	if err != nil {
		return nil, notFoundAs(err, errNoChannel)
	}
	now := time.Now()
	secret, ticket := parley.NewTicket(parley.PairTicket, c.Code, now, pairLinkLife)
	link := pairLink{ExpiresAt: parley.Stamp(ticket.ExpiresAt)}
	err = s.tx(ctx, func(tx *store.Tx) error {
		if err := checkChannel(ctx, tx, c); err != nil {
			return err
		}
		// The stored response must not contain the ticket.
		before := ok("The link was already created and is not shown again. Create another.", link)
		return errors.Join(tx.AddTicket(ctx, ticket), tx.PurgeTickets(ctx, now.Add(-purgeTickets)),
			r.auditTx(ctx, tx, change{object: string(c.Code)}), r.storeKey(ctx, tx, http.StatusOK, before))
	})
	if err != nil {
		return nil, err
	}
	link.URL = s.baseURL(r.http) + "/pair#ticket=" + secret
	link.QR, err = drawQR(link.URL)
	return ok("Link created. It works once, for this channel only.", link), err
}

type pairState struct {
	Name      string               `json:"name"`
	Status    parley.ChannelStatus `json:"status"`
	Reason    string               `json:"reason"`
	Pairing   *wire.PairingCode    `json:"pairing"`
	Timestamp string               `json:"timestamp"` // to compare with expires_at, because the viewer's clock may be off
}

func (s *server) pairLinkState(ctx context.Context, r *request) (any, error) {
	ticket, c, err := s.pairTicket(ctx, r)
	if err == nil {
		err = s.checkChannelOwner(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	if err := s.spendIfPaired(ctx, r, ticket, c); err != nil {
		return nil, err
	}
	state, err := s.newPairState(c)
	return ok("OK", state), err
}

func (s *server) beginPairLink(ctx context.Context, r *request) (any, error) {
	ticket, c, err := s.pairTicket(ctx, r)
	if err == nil {
		err = s.checkChannelOwner(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	words := s.words.of(r.http)
	number := r.Number("number")
	if r.Err() != nil {
		return nil, parley.InvalidField("number", words["bad_number"])
	}
	if paired(c, ticket) {
		return s.pairLinkState(ctx, r)
	}
	if !c.Enabled {
		return nil, parley.Errorf(parley.ChannelNotReady, "%s", words["stopped"])
	}
	if q := s.pairings.Spend(string(ticket.Hash), time.Now()); q.Refused {
		return nil, &parley.Error{Code: parley.TooMany, RetryAfter: q.Wait, Message: words["too_often"]}
	}
	before, _ := s.config.Gateway.Pairing(c.Code)
	c, err = s.config.Gateway.PairChannel(ctx, c.Code, number)
	switch code := parley.ToCode(err); code {
	case parley.Invalid:
		err = parley.InvalidField("number", words["bad_number"])
	case parley.BadRequest, parley.ChannelNotReady, parley.NotSupported: // its sentence is for the operator
		err = &parley.Error{Code: code, Message: words["no_pairing"], Cause: err}
	}
	if err != nil {
		return nil, err
	}
	state, err := s.newPairState(c)
	if now, _ := s.config.Gateway.Pairing(c.Code); now == before { // still the last step of the previous attempt
		state.Pairing = &wire.PairingCode{Pairing: toPairing(parley.Pairing{Step: parley.StartingStep, At: time.Now()})}
	}
	return ok("OK", state), err
}

func (s *server) newPairState(c parley.Channel) (pairState, error) {
	pairing, err := s.pairing(c.Code)
	return pairState{c.Name, c.State.Status, c.State.Reason, pairing, parley.Stamp(time.Now())}, err
}

// pairTicket returns the ticket of a request and its channel. Tickets cannot be guessed, so failures do not count.
func (s *server) pairTicket(ctx context.Context, r *request) (parley.Ticket, parley.Channel, error) {
	words := s.words.of(r.http)
	r.ticket = ForwardedTicket(ctx)
	if r.ticket == nil {
		secret, given := bearer(r.http.Header)
		if secret == "" {
			return parley.Ticket{}, parley.Channel{}, badTicket(words["link_bad"], given)
		}
		r.ticket = parley.HashTicket(secret)
	}
	ticket, err := s.config.Store.Ticket(ctx, r.ticket)
	if err != nil && !errors.Is(err, parley.ErrNotFound) {
		return ticket, parley.Channel{}, err
	}
	c, there := s.config.Gateway.Channel(ticket.Channel)
	switch {
	case err != nil || ticket.Purpose != parley.PairTicket || !there:
		err = badTicket(words["link_bad"], true)
	case !ticket.UsedAt.IsZero():
		err = badTicket(words["link_used"], true)
	case !ticket.Active(time.Now()):
		err = challenged(parley.Errorf(parley.TokenExpired, "%s", words["link_expired"]), true)
	}
	return ticket, c, err
}

func badTicket(sentence string, given bool) error {
	return challenged(parley.Errorf(parley.Unauthenticated, "%s", sentence), given)
}

func paired(c parley.Channel, t parley.Ticket) bool {
	return c.State.Status == parley.ChannelWorking || c.State.WorkingAt.After(t.CreatedAt)
}

// spendIfPaired marks a ticket as used once its channel is paired. This response still shows the result; later
// ones only say that the link was used.
func (s *server) spendIfPaired(ctx context.Context, r *request, t parley.Ticket, c parley.Channel) error {
	if !paired(c, t) {
		return nil
	}
	err := s.tx(ctx, func(tx *store.Tx) error {
		_, err := tx.UseTicket(ctx, t.Hash, time.Now())
		return err
	})
	return notFoundAs(err, badTicket(s.words.of(r.http)["link_used"], true)) // another holder of the link was faster
}
