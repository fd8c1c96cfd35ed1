package whatsapp

import (
	"context"
	"errors"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/types/events"

	"parley"
	"parley/internal/network"
)

// pairOptions say how a channel is to be linked.
type pairOptions struct {
	number string // the account's, in digits, to link by a code that is typed on its phone; empty: by QR code
}

const (
	firstCode = 60 * time.Second  // how long the network takes the first QR code
	otherCode = 20 * time.Second  // and each of the others
	typedCode = 160 * time.Second // and a code to type: then it closes the connection
	// pairWait is for the first codes to come, or for the network's last word after a pairing.
	pairWait = 30 * time.Second
	// settleWait is how long the network may take to say that the new device may connect.
	settleWait = 5 * time.Second
)

const (
	passkeySentence = "WhatsApp asks this account for its passkey, which this program cannot give. " +
		"Take the passkey off on the phone (Settings, Account, Passkeys), or link from a computer that has it, and pair again."
	unreachable = "WhatsApp cannot be reached. Try again."
	unkept      = "The new device could not be kept. Remove it on the phone, under Linked devices, and pair again."
)

// Pair begins to link the account anew, by QR code.
func (s *session) Pair(ctx context.Context) error { return s.ask(ctx, request{pair: &pairOptions{}}) }

// PairWithCode begins to link the account anew, by a code that is typed on its phone.
func (s *session) PairWithCode(ctx context.Context, number string) error {
	plain := digits(number)
	if plain == "" {
		return parley.InvalidField("number", "number must be the account's phone number with its country code.")
	}
	return s.ask(ctx, request{pair: &pairOptions{number: plain}})
}

// pairing is one attempt to link the channel.
type pairing struct {
	s     *session
	l     *line
	o     pairOptions
	codes []string // QR codes that were not shown yet
	of    int      // how many the network gave
	timer *time.Timer
	taken bool // the network asked the new device to connect
}

// pair links the channel to an account, or does not. It returns the next attempt, if somebody wants one
// before this one is over.
func (s *session) pair(o pairOptions) *pairOptions {
	s.become(parley.ScanQRCode, "It waits for somebody to link it on the phone.", network.Phone{})
	s.step(network.Pairing{Step: parley.StartingStep})
	p := &pairing{s: s, l: newLine(s, s.d.db.keys.NewDevice()), o: o, timer: time.NewTimer(pairWait)}
	defer p.timer.Stop()
	defer p.l.hangUp()
	if err := p.l.connect(); err != nil {
		p.fail(unreachable)
		return nil
	}
	for {
		select {
		case <-s.ctx.Done():
			return nil
		case r := <-s.requests:
			r.answer <- nil
			return r.pair // nil: a logout, which gives this up
		case <-p.timer.C:
			if !p.showNext() {
				s.step(network.Pairing{Step: parley.TimeoutStep})
				return nil
			}
		case evt := <-p.l.news:
			if p.happened(evt) {
				return nil
			}
		}
	}
}

// step has the sink told of a step of the pairing.
func (s *session) step(p network.Pairing) {
	p.At = time.Now()
	s.queue(p)
}

func (p *pairing) fail(reason string) {
	p.s.step(network.Pairing{Step: parley.FailedStep, Reason: reason})
}

// happened takes an event. It reports whether the attempt is over.
func (p *pairing) happened(evt any) bool {
	switch e := evt.(type) {
	case *events.QR:
		if p.o.number != "" {
			return !p.showCode()
		}
		p.codes, p.of = e.Codes, len(e.Codes)
		p.showNext()
		return false
	case *events.PairSuccess:
		p.paired(e)
		return true
	case *events.PairError:
		p.s.d.Log.Warn("whatsapp: pairing failed", "channel", p.s.code, "err", e.Error)
		p.fail(pairErrorSentence(e.Error))
		return true
	case *events.QRScannedWithoutMultidevice:
		p.fail("The phone's WhatsApp is too old to link devices. Update it and pair again.")
		return true
	case *events.PairPasskeyRequest:
		p.s.step(network.Pairing{Step: parley.PasskeyStep, Reason: passkeySentence})
		p.timer.Reset(typedCode)
		p.codes = nil
		return false
	case *events.PairPasskeyConfirmation: // only after a passkey was given
		return false
	case *events.ManualLoginReconnect: // the network can be quicker than whatsmeow's own news of the pairing
		p.taken = true
		p.timer.Reset(pairWait)
		p.codes = nil
		return false
	case *events.PairPasskeyError:
		p.fail(passkeySentence)
		return true
	}
	e, ended := endOf(evt)
	if !ended {
		return false
	}
	if _, closed := evt.(*events.Disconnected); closed && len(p.codes) == 0 {
		p.s.step(network.Pairing{Step: parley.TimeoutStep}) // the network closes when its codes are used up
		return true
	}
	p.fail(e.reason)
	return true
}

// showNext shows the next QR code. It reports false when there is none.
func (p *pairing) showNext() bool {
	if len(p.codes) == 0 {
		return false
	}
	life := otherCode
	if len(p.codes) == p.of {
		life = firstCode
	}
	p.s.step(network.Pairing{Step: parley.QRStep, Code: p.codes[0], ExpiresAt: time.Now().Add(life), N: p.of - len(p.codes) + 1, Of: p.of})
	p.codes = p.codes[1:]
	p.timer.Reset(life)
	return true
}

// showCode asks the network for a code to type. It reports whether there is one.
func (p *pairing) showCode() bool {
	ctx, cancel := context.WithTimeout(p.l.ctx, askTimeout)
	defer cancel()
	unhook := context.AfterFunc(p.s.ctx, cancel)
	defer unhook()
	code, err := p.code(ctx)
	switch {
	case err == nil:
		p.s.step(network.Pairing{Step: parley.CodeStep, Code: code, ExpiresAt: time.Now().Add(typedCode)})
		p.timer.Reset(typedCode)
		return true
	case errors.Is(err, whatsmeow.ErrIQNotFound), errors.Is(err, whatsmeow.ErrPhoneNumberTooShort), errors.Is(err, whatsmeow.ErrPhoneNumberIsNotInternational):
		p.fail("This number is not on WhatsApp. Give it with its country code.")
	case errors.Is(err, whatsmeow.ErrIQRateOverLimit):
		p.fail("WhatsApp gives no more codes for this number now. Wait some minutes, or pair by QR code.")
	default:
		p.s.d.Log.Warn("whatsapp: ask for a pairing code", "channel", p.s.code, "err", redact("%v", []any{err}))
		p.fail("WhatsApp gave no code. Try again, or pair by QR code.")
	}
	return false
}

func (p *pairing) code(ctx context.Context) (_ string, err error) {
	defer p.s.contain(&err)
	return p.l.client.PairPhone(ctx, p.o.number, true, whatsmeow.PairClientChrome, "Chrome (Linux)")
}

// paired keeps which device the channel has, and waits for the network to take it.
func (p *pairing) paired(e *events.PairSuccess) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.s.ctx), keepTimeout)
	defer cancel()
	old, err := p.s.d.db.record(ctx, p.s.code)
	if err == nil {
		err = p.s.d.db.setRecord(ctx, p.s.code, record{jid: e.ID})
	}
	if err != nil {
		p.s.d.Log.Error("keep a paired device", "channel", p.s.code, "err", err)
		p.fail(unkept)
		return
	}
	if err := p.s.d.db.deleteDevice(ctx, old.jid); err != nil {
		p.s.d.Log.Error("remove the device of before", "channel", p.s.code, "err", err)
	}
	p.s.become(parley.Starting, "", network.Phone{Number: e.ID.User})
	p.s.step(network.Pairing{Step: parley.PairedStep})
	timeout := time.NewTimer(settleWait)
	defer timeout.Stop()
	for !p.taken {
		select {
		case evt := <-p.l.news:
			_, p.taken = endOf(evt)
		case <-timeout.C: // its word was lost: connecting will show
			return
		case <-p.s.ctx.Done():
			return
		}
	}
}

func pairErrorSentence(err error) string {
	switch {
	case errors.Is(err, whatsmeow.ErrPairInvalidDeviceIdentityHMAC), errors.Is(err, whatsmeow.ErrPairInvalidDeviceSignature):
		return "The phone and this program did not agree on a key. Pair again with a new code."
	case isDatabaseError(err):
		return unkept
	}
	return "WhatsApp did not link the device. Try again."
}

func isDatabaseError(err error) bool {
	_, ok := errors.AsType[*whatsmeow.PairDatabaseError](err)
	return ok
}
