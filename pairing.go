package parley

import (
	"encoding/json"
	"time"
)

// Pairing is a step of linking a channel to an account: what is asked of a person now, or how it ended.
// Each is worth knowing only until the next one.
type Pairing struct {
	Step PairingStep
	// Code is what to show (QRStep) or to type on the phone (CodeStep). Anybody who has it can link the
	// account: it belongs before the eyes of its owner and nowhere else.
	Code      string
	ExpiresAt time.Time // until when Code can be used; zero: no code
	// Reason is a sentence on WrongCodeStep, PasskeyStep and FailedStep, and on StartingStep where the
	// connection was lost before; empty on the others.
	Reason string
	N, Of  int // the QR code's number among those of the network; zero: it is not a QR code
	At     time.Time
}

// PairingStep says what a [Pairing] asks for or how it ended.
type PairingStep string

const (
	StartingStep PairingStep = "starting" // the network is being asked for a code
	QRStep       PairingStep = "qr"       // show Code as a QR code
	CodeStep     PairingStep = "code"     // type Code on the phone
	PasskeyStep  PairingStep = "passkey"  // the account asks for its passkey; Reason says what to do
	PairedStep   PairingStep = "paired"   // done
	TimeoutStep  PairingStep = "timeout"  // nobody linked it in time
	FailedStep   PairingStep = "failed"   // Reason says why

	WrongCodeStep PairingStep = "wrong_code" // the phone did not accept what was typed; Code can still be typed
)

// IsOver reports whether the pairing has ended. A new one must be started.
func (s PairingStep) IsOver() bool { return s == PairedStep || s == TimeoutStep || s == FailedStep }

// pairingData is the data of the event of a step.
type pairingData struct {
	Step      PairingStep `json:"step"`
	Code      string      `json:"code,omitempty"`
	ExpiresAt string      `json:"expires_at,omitempty"`
	Reason    string      `json:"reason,omitempty"`
	N         int         `json:"n,omitempty"`
	Of        int         `json:"of,omitempty"`
}

func NewPairingEvent(code ChannelCode, p Pairing) *Event {
	d := pairingData{Step: p.Step, Code: p.Code, Reason: p.Reason, N: p.N, Of: p.Of}
	if !p.ExpiresAt.IsZero() {
		d.ExpiresAt = Stamp(p.ExpiresAt)
	}
	return &Event{Type: ChannelPairing, Channel: code, At: p.At, Data: eventData(d)}
}

// PairingEnded reports whether the code that the data of a pairing event is about cannot be used any more.
func PairingEnded(data json.RawMessage, now time.Time) bool {
	var d pairingData
	if err := json.Unmarshal(data, &d); err != nil {
		return true
	}
	until, err := time.Parse(time.RFC3339, d.ExpiresAt)
	return err != nil || now.After(until)
}
