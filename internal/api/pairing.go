package api

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"strings"
	"time"

	"rsc.io/qr"

	"parley"
	"parley/internal/api/form"
	"parley/internal/asset"
	"parley/internal/network"
	"parley/internal/store"
)

// evidenceRow is when a channel last showed that it works; null: never since it was started.
type evidenceRow struct {
	ConnectedAt *string `json:"connected_at"`
	HeardAt     *string `json:"heard_at"`
	ConfirmedAt *string `json:"confirmed_at"`
	ReceivedAt  *string `json:"received_at"`
}

func evidenceOf(e network.Evidence) *evidenceRow {
	return &evidenceRow{stampOrNil(e.Connected), stampOrNil(e.Heard), stampOrNil(e.Confirmed), stampOrNil(e.Received)}
}

// pairingRow is the latest step of a channel's pairing, without its code: who may have that asks for it.
type pairingRow struct {
	Step      parley.PairingStep `json:"step"`
	ExpiresAt *string            `json:"expires_at"`
	Reason    string             `json:"reason"`
	N         int                `json:"n"`
	Of        int                `json:"of"`
	At        string             `json:"at"`
}

func pairingOf(p parley.Pairing) *pairingRow {
	return &pairingRow{p.Step, stampOrNil(p.ExpiresAt), p.Reason, p.N, p.Of, parley.Stamp(p.At)}
}

// pairingData is a step with its code, to be shown to the account's owner and to nobody else.
type pairingData struct {
	*pairingRow `json:",inline"`
	Code        *string  `json:"code"`
	QR          []string `json:"qr"` // rows of 0 and 1, which is black; null: there is nothing to scan
}

// pairing returns the latest step of a channel's pairing; nil: it was not paired lately.
func (s *server) pairing(code parley.ChannelCode) (*pairingData, error) {
	p, lately := s.Gateway.Pairing(code)
	if !lately {
		return nil, nil
	}
	data := &pairingData{pairingRow: pairingOf(p)}
	if p.Code == "" { // there is none, or it has expired
		return data, nil
	}
	data.Code = &p.Code
	if p.Step != parley.QRStep {
		return data, nil
	}
	var err error
	data.QR, err = drawQR(p.Code)
	return data, err
}

// drawQR makes the squares of a QR code, row by row, without the white around them. It corrects the
// fewest errors: the code is shown on a clean screen, and a small one fits into more terminals.
func drawQR(text string) ([]string, error) {
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		return nil, err
	}
	rows := make([]string, code.Size)
	var b strings.Builder
	for y := range rows {
		b.Reset()
		for x := range code.Size {
			if code.Black(x, y) {
				b.WriteByte('1')
			} else {
				b.WriteByte('0')
			}
		}
		rows[y] = b.String()
	}
	return rows, nil
}

func (s *server) pairChannel(ctx context.Context, r *request) (envelope[channelRow], error) {
	number := r.Number("number")
	if err := r.Err(); err != nil {
		return envelope[channelRow]{}, err
	}
	c, err := s.Gateway.PairChannel(ctx, r.code(), number)
	return s.channelAnswer(ctx, "Pairing begun", c, err)
}

func (s *server) readPairing(ctx context.Context, r *request) (envelope[*pairingData], error) {
	c, err := s.channelNamed(ctx, r.code())
	if errors.Is(err, parley.ErrNotFound) {
		err = parley.Errorf(parley.NotFound, "There is no such channel.")
	}
	if err != nil {
		return envelope[*pairingData]{}, err
	}
	data, err := s.pairing(c.Code)
	return ok("OK", data), err
}

// goLive moves a sandbox channel to WhatsApp. Whom it may write to must be said: that everybody is meant
// must not follow from something that was left out.
func (s *server) goLive(ctx context.Context, r *request) (envelope[channelRow], error) {
	everybody := r.Bool("everybody", false)
	var allow []parley.ContactID
	r.List("allow", 1, maxAllowed, false, func(f form.Form, index string) {
		text, isText := f.String(index, "a phone number or a contact id")
		if !isText {
			return
		}
		if digits := f.CheckNumber(index, text); digits != "" {
			allow = append(allow, parley.ContactOf(digits))
		}
	})
	switch {
	case everybody && r.Has("allow"):
		r.Fail("everybody", "must not be true where allow lists numbers: it is one or the other.")
	case !everybody && !r.Has("allow"):
		r.Fail("allow", "is required: the numbers that the channel may write to. If it may write to everybody, say {\"everybody\":true}.")
	}
	if err := r.Err(); err != nil {
		return envelope[channelRow]{}, err
	}
	c, err := s.Gateway.GoLive(ctx, r.code(), allow)
	return s.channelAnswer(ctx, "Channel is live", c, err)
}

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

// The page at /pair, by which the owner of a number links it to one channel. It is the same for
// everybody; the ticket in the fragment of its address, which browsers keep to themselves, lets its script
// ask for codes and see how that goes.
//
//go:embed pair/page.html pair/pair.js pair/pair.css pair/words.json
var pairFiles embed.FS

// servePairPage serves the page in the language that the viewer likes best.
func servePairPage() http.Handler {
	words := readPairWords()
	page := template.Must(template.ParseFS(pairFiles, "pair/page.html"))
	pages := map[string][]byte{}
	for language, of := range words {
		text, err := json.Marshal(of)
		var b bytes.Buffer
		if err == nil {
			err = page.Execute(&b, map[string]any{"Language": language, "Words": of, "JSON": string(text)})
		}
		if err != nil {
			panic(err) // cannot happen in a binary that was built
		}
		pages[language] = b.Bytes()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", phonePolicy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Vary", "Accept-Language")
		w.Write(pages[words.language(hr)]) // a reader that is gone learns nothing
	})
}

// servePairFile serves a file that the page loads.
func servePairFile(name, contentType string) http.Handler {
	body, err := pairFiles.ReadFile("pair/" + name)
	if err != nil {
		panic(err) // cannot happen in a binary that was built
	}
	return newAsset(contentType, body)
}

// pairWords are the sentences of the page by language, then by their names.
type pairWords map[string]map[string]string

func readPairWords() pairWords {
	var words pairWords
	text, err := pairFiles.ReadFile("pair/words.json")
	if err == nil {
		err = json.Unmarshal(text, &words)
	}
	if err != nil {
		panic(err) // cannot happen in a binary that was built
	}
	return words
}

// of returns the sentences in the caller's language.
func (w pairWords) of(hr *http.Request) map[string]string { return w[w.language(hr)] }

// pairLanguages are those of the page; the first is for readers of others.
var pairLanguages = []string{"en", "id", "pt-BR"}

func (w pairWords) language(hr *http.Request) string { return asset.Language(hr, pairLanguages) }
