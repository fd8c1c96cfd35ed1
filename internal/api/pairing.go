package api

import (
	"context"
	"errors"
	"strings"

	"rsc.io/qr"

	"parley"
	"parley/internal/api/form"
	"parley/internal/network"
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
