package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"parley"
	"parley/internal/store"
)

const (
	pairLinkLife = time.Hour // long enough to reach somebody by mail, short enough to be of no use in an archive

	// ticketsKept is for how long after its end a link can still say that it ended.
	ticketsKept = 24 * time.Hour

	// A holder of a link may ask for new codes this often: the network itself refuses who asks for more.
	pairBurst = 6
	pairEvery = 20 * time.Second
)

// pairLink is what lets somebody else pair a channel.
type pairLink struct {
	URL       string   `json:"url"`
	ExpiresAt string   `json:"expires_at"`
	QR        []string `json:"qr"` // the address to scan, as in pairingData
}

func (s *server) makePairLink(ctx context.Context, r *request) (envelope[pairLink], error) {
	c, err := s.channelNamed(ctx, r.code())
	switch {
	case errors.Is(err, parley.ErrNotFound):
		err = parley.Errorf(parley.NotFound, "There is no such channel.")
	case err == nil && c.Network != parley.WhatsApp:
		err = parley.Errorf(parley.BadRequest, "Channel %s is on the network %s, where nothing is paired. Take it to WhatsApp with: parley channel go-live %s", c.Code, c.Network, c.Code)
	case err == nil && c.State.Status == parley.Working:
		err = parley.Errorf(parley.BadRequest, "Channel %s is paired. Log it out first with: parley channel logout %s", c.Code, c.Code)
	}
	if err != nil {
		return envelope[pairLink]{}, err
	}
	now := time.Now()
	secret, ticket := parley.NewTicket(parley.PairTicket, c.Code, now, pairLinkLife)
	err = s.tx(ctx, func(tx *store.Tx) error {
		// Only the ticket's hash is kept, so a retry with the same idempotency key does not learn it.
		before := ok("The link was made before and is not shown again. Make another.",
			pairLink{ExpiresAt: parley.Stamp(ticket.ExpiresAt), QR: []string{}})
		if err := checkChannel(ctx, tx, c); err != nil {
			return err
		}
		return errors.Join(tx.AddTicket(ctx, ticket), tx.PurgeTickets(ctx, now.Add(-ticketsKept)),
			r.storeKey(ctx, tx, http.StatusOK, before))
	})
	if err != nil {
		return envelope[pairLink]{}, err
	}
	link := pairLink{URL: s.baseURL(r.http) + "/pair#ticket=" + secret, ExpiresAt: parley.Stamp(ticket.ExpiresAt)}
	link.QR, err = drawQR(link.URL)
	return ok("Link made. It works once, for this channel alone.", link), err
}

// pairState is all that the holder of a link learns of a channel.
type pairState struct {
	Name      string               `json:"name"`
	Status    parley.ChannelStatus `json:"status"`
	Reason    string               `json:"reason"`
	Pairing   *pairingData         `json:"pairing"`
	Timestamp string               `json:"timestamp"` // by which to read expires_at, whatever the viewer's clock says
}

func (s *server) pairLinkState(ctx context.Context, r *request) (envelope[pairState], error) {
	ticket, c, err := s.pairTicket(ctx, r)
	if err != nil {
		return envelope[pairState]{}, err
	}
	if err := s.spendIfPaired(ctx, r, ticket, c); err != nil {
		return envelope[pairState]{}, err
	}
	return s.pairStateOf(c)
}

func (s *server) beginPairLink(ctx context.Context, r *request) (envelope[pairState], error) {
	ticket, c, err := s.pairTicket(ctx, r)
	if err != nil {
		return envelope[pairState]{}, err
	}
	words := s.words.of(r.http)
	number := r.Number("number")
	if r.Err() != nil {
		return envelope[pairState]{}, parley.InvalidField("number", words["bad_number"])
	}
	if paired(c, ticket) {
		if err := s.spendIfPaired(ctx, r, ticket, c); err != nil {
			return envelope[pairState]{}, err
		}
		return s.pairStateOf(c)
	}
	if !c.Enabled {
		return envelope[pairState]{}, parley.Errorf(parley.BadRequest, "%s", words["stopped"])
	}
	if left, wait := s.pairings.Take(string(ticket.Hash), time.Now()); !left {
		return envelope[pairState]{}, &parley.Error{Code: parley.TooMany, RetryAfter: wait, Message: words["too_often"]}
	}
	before, _ := s.Gateway.Pairing(c.Code)
	c, err = s.Gateway.PairChannel(ctx, c.Code, number)
	switch parley.CodeOf(err) {
	case parley.Invalid:
		err = parley.InvalidField("number", words["bad_number"])
	case parley.BadRequest: // its sentence is for whoever runs the server
		err = &parley.Error{Code: parley.BadRequest, Message: words["no_pairing"], Cause: err}
	}
	if err != nil {
		return envelope[pairState]{}, err
	}
	answer, err := s.pairStateOf(c)
	if now, _ := s.Gateway.Pairing(c.Code); now == before { // the last step of an attempt that is over
		answer.Data.Pairing = &pairingData{pairingRow: pairingOf(parley.Pairing{Step: parley.StartingStep, At: time.Now()})}
	}
	return answer, err
}

func (s *server) pairStateOf(c parley.Channel) (envelope[pairState], error) {
	pairing, err := s.pairing(c.Code)
	return ok("OK", pairState{c.Name, c.State.Status, c.State.Reason, pairing, parley.Stamp(time.Now())}), err
}

// pairTicket finds the ticket that a request carries, and its channel. Tickets are too long to be guessed,
// so nobody counts who tries.
func (s *server) pairTicket(ctx context.Context, r *request) (parley.Ticket, parley.Channel, error) {
	words := s.words.of(r.http)
	secret, given := bearer(r.http.Header)
	if secret == "" {
		return parley.Ticket{}, parley.Channel{}, badTicket(words["link_bad"], given)
	}
	ticket, err := s.Store.Ticket(ctx, parley.HashTicket(secret))
	if err != nil && !errors.Is(err, parley.ErrNotFound) {
		return ticket, parley.Channel{}, err
	}
	c, there := s.Gateway.Channel(ticket.Channel)
	switch {
	case err != nil || ticket.Purpose != parley.PairTicket || !there:
		err = badTicket(words["link_bad"], true)
	case !ticket.UsedAt.IsZero():
		err = badTicket(words["link_used"], true)
	case !ticket.Active(time.Now()):
		err = badTicket(words["link_expired"], true)
	}
	return ticket, c, err
}

func badTicket(sentence string, given bool) error {
	value := challenge
	if given {
		value += `, error="invalid_token"`
	}
	return &withHeader{parley.Errorf(parley.Unauthenticated, "%s", sentence), field{"WWW-Authenticate", value}}
}

// paired reports whether a channel was paired since a ticket for that was made.
func paired(c parley.Channel, t parley.Ticket) bool {
	return c.State.Status == parley.Working || c.State.WorkingAt.After(t.CreatedAt)
}

// spendIfPaired uses a ticket up once its channel was paired. The answer to this request still shows that;
// later ones only say that the link was used.
func (s *server) spendIfPaired(ctx context.Context, r *request, t parley.Ticket, c parley.Channel) error {
	if !paired(c, t) {
		return nil
	}
	err := s.tx(ctx, func(tx *store.Tx) error {
		_, err := tx.UseTicket(ctx, t.Hash, time.Now())
		return err
	})
	if errors.Is(err, parley.ErrNotFound) { // somebody else who has the link was quicker
		return badTicket(s.words.of(r.http)["link_used"], true)
	}
	return err
}
