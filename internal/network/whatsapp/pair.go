package whatsapp

import (
	"context"
	"errors"
	"time"

	"go.mau.fi/whatsmeow"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types/events"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/keystore"
)

// pairOptions say how a channel is to be linked.
type pairOptions struct {
	number string // the account's number in digits, for pairing by code; empty: by QR code
}

const (
	firstCode = 60 * time.Second  // how long the first QR code is valid
	otherCode = 20 * time.Second  // and each of the others
	typedCode = 160 * time.Second // and a code to type: then it closes the connection
	// pairWait is for the first codes to come, or for the network's last word after a pairing.
	pairWait = 30 * time.Second
	// readyTimeout is how long the network may take to allow the new device to connect.
	readyTimeout = 5 * time.Second
	// codeTimeout is how long the phone may take to link the device after a code was typed. After a wrong code it never
	// does.
	codeTimeout = 10 * time.Second
	// pairLosses is how often the connection of a pairing is made again.
	pairLosses = 5
	// codesEnd is how much earlier than the last code the network may close the connection.
	codesEnd = 5 * time.Second
)

const (
	noCode       = "WhatsApp gave no code. Try again, or pair by QR code."
	wrongCode    = "The phone did not accept the code that was typed. Type this one."
	lostSentence = "The connection to WhatsApp was lost. It is being made again, with a new code."
	lostForGood  = "The connection to WhatsApp was lost and could not be made again. Pair again."
	notStored    = "The new device could not be stored. Remove it on the phone, under Linked devices, and pair again."
)

func (s *session) Pair(ctx context.Context) error {
	return s.submit(ctx, request{pair: &pairOptions{}})
}

func (s *session) PairWithCode(ctx context.Context, number string) error {
	plain := parseNumber(number)
	if plain == "" {
		return parley.InvalidField("number", "number must be the account's phone number with its country code.")
	}
	return s.submit(ctx, request{pair: &pairOptions{number: plain}})
}

// pairing is one attempt to link the channel.
type pairing struct {
	s        *session
	l        *connection
	o        pairOptions
	codes    []string        // QR codes that were not shown yet
	of       int             // how many codes the network sent
	shown    network.Pairing // the code to type
	until    time.Time       // when the network's codes expire; zero: no code yet
	timer    *time.Timer     // of the shown code
	typed    *time.Timer     // since a code was typed on the phone
	accepted bool            // the network asked the device to reconnect

	wantsPasskey, wantsConfirmation bool // the network waits for what a person hands in
}

type pairingOutcome int

const (
	pairingGoesOn pairingOutcome = iota
	pairingOver                  // the last published step is final
	pairingLost                  // the connection is gone, and the attempt needs another one
)

// pair links the channel to an account. It returns the next attempt if one is requested before this one ends. A lost
// connection is dialled again, with new codes.
func (s *session) pair(o pairOptions) *pairOptions {
	s.setState(parley.ChannelScanQRCode, "It is waiting for someone to link it on the phone.", network.Phone{})
	s.publishStep(network.Pairing{Step: parley.StartingStep})
	for losses := 0; ; {
		end, next := s.tryPairing(o, losses > 0)
		if end == pairingOver || s.ctx.Err() != nil {
			return next
		}
		if losses++; losses > pairLosses {
			s.publishStep(network.Pairing{Step: parley.FailedStep, Reason: lostForGood})
			return nil
		}
		s.publishStep(network.Pairing{Step: parley.StartingStep, Reason: lostSentence})
		if !s.pause(min(time.Second<<(losses-1), s.d.maxBackoff)) {
			return nil
		}
	}
}

// tryPairing links the channel on one connection.
func (s *session) tryPairing(o pairOptions, again bool) (pairingOutcome, *pairOptions) {
	p := &pairing{s: s, l: newConnection(s, s.d.keys.NewDevice()), o: o, timer: time.NewTimer(pairWait), typed: time.NewTimer(time.Hour)}
	p.typed.Stop()
	defer p.timer.Stop()
	defer p.typed.Stop()
	defer p.l.close()
	if err := p.l.connect(); err != nil {
		if again {
			return pairingLost, nil
		}
		p.fail(dialProblem(err) + " Then pair again.")
		return pairingOver, nil
	}
	for {
		end := pairingGoesOn
		select {
		case <-s.ctx.Done():
			return pairingOver, nil
		case r := <-s.requests:
			r.result <- nil
			return pairingOver, r.pair // nil: a logout, which cancels the pairing
		case a := <-s.passkeys:
			a.result <- p.answerPasskey(a)
		case <-p.timer.C:
			end = p.expired()
		case <-p.typed.C:
			p.shown.Step, p.shown.Reason = parley.WrongCodeStep, wrongCode
			s.publishStep(p.shown)
		case evt := <-p.l.updates:
			end = p.handleEvent(evt)
		}
		if end != pairingGoesOn {
			return end, nil
		}
	}
}

// expired shows the next code, if any.
func (p *pairing) expired() pairingOutcome {
	if p.showNext() {
		return pairingGoesOn
	}
	if p.until.IsZero() {
		p.fail(noCode)
	} else {
		p.s.publishStep(network.Pairing{Step: parley.TimeoutStep})
	}
	return pairingOver
}

// codeTyped is posted when a code was typed on the phone. The phone checks the code and does not report the result.
type codeTyped struct{}

func (conn *connection) onCodeNotification(node *waBinary.Node) {
	if conn.jid.IsEmpty() && node.Attrs["type"] == "link_code_companion_reg" {
		conn.post(codeTyped{})
	}
}

func (s *session) publishStep(p network.Pairing) {
	p.At = time.Now()
	s.enqueue(p)
}

func (p *pairing) fail(reason string) {
	p.s.publishStep(network.Pairing{Step: parley.FailedStep, Reason: reason})
}

func (p *pairing) handleEvent(evt any) pairingOutcome {
	switch e := evt.(type) {
	case *events.QR:
		return p.showFirst(e.Codes)
	case codeTyped:
		p.typed.Reset(p.s.d.codeTimeout)
		return pairingGoesOn
	case *events.PairSuccess:
		p.paired(e)
		return pairingOver
	case *events.PairError:
		p.s.d.config.Log.Warn("whatsapp: pairing failed", "channel", p.s.code, "error", e.Error)
		p.fail(pairErrorSentence(e.Error))
		return pairingOver
	case *events.QRScannedWithoutMultidevice:
		p.fail("The phone's WhatsApp is too old to link devices. Update it and pair again.")
		return pairingOver
	case *events.PairPasskeyRequest:
		return p.askPasskey(e)
	case *events.PairPasskeyConfirmation:
		return p.compareCode(e)
	case *events.ManualLoginReconnect: // the network can be quicker than whatsmeow's event
		p.accepted = true
		p.timer.Reset(pairWait)
		p.typed.Stop()
		p.codes = nil
		return pairingGoesOn
	case *events.PairPasskeyError:
		p.s.d.config.Log.Warn("whatsapp: a passkey failed", "channel", p.s.code, "error", redact("%v", []any{e.Error}))
		p.fail(passkeyFailed)
		return pairingOver
	}
	if _, outdated := evt.(*events.ClientOutdated); outdated && p.s.anotherVersion(p.l.version) {
		return pairingLost
	}
	e, ended := toDisconnection(evt)
	switch {
	case !ended, p.accepted: // the new device connects next
		return pairingGoesOn
	case e.status != parley.ChannelReconnecting:
		p.fail(e.reason)
		return pairingOver
	case !p.until.IsZero() && time.Now().After(p.until.Add(-codesEnd)): // the network closes when its codes are used up
		p.s.publishStep(network.Pairing{Step: parley.TimeoutStep})
		return pairingOver
	}
	return pairingLost
}

func (p *pairing) showFirst(codes []string) pairingOutcome {
	if p.o.number != "" {
		if !p.showCode() {
			return pairingOver
		}
		return pairingGoesOn
	}
	p.codes, p.of = codes, len(codes)
	p.until = time.Now().Add(firstCode + time.Duration(p.of-1)*otherCode)
	p.showNext()
	return pairingGoesOn
}

func (p *pairing) showNext() bool {
	if len(p.codes) == 0 {
		return false
	}
	life := otherCode
	if len(p.codes) == p.of {
		life = firstCode
	}
	p.s.publishStep(network.Pairing{Step: parley.QRStep, Code: p.codes[0], ExpiresAt: time.Now().Add(life), N: p.of - len(p.codes) + 1,
		Of: p.of})
	p.codes = p.codes[1:]
	p.timer.Reset(life)
	return true
}

func (p *pairing) showCode() bool {
	ctx, cancel := context.WithTimeout(p.l.ctx, requestTimeout)
	defer cancel()
	unhook := context.AfterFunc(p.s.ctx, cancel)
	defer unhook()
	code, err := p.code(ctx)
	switch {
	case err == nil:
		p.until = time.Now().Add(typedCode)
		p.shown = network.Pairing{Step: parley.CodeStep, Code: code, ExpiresAt: p.until}
		p.s.publishStep(p.shown)
		p.timer.Reset(typedCode)
		return true
	case errors.Is(err, whatsmeow.ErrIQNotFound), errors.Is(err, whatsmeow.ErrPhoneNumberTooShort),
		errors.Is(err, whatsmeow.ErrPhoneNumberIsNotInternational):
		p.fail("This number is not on WhatsApp. Give it with its country code.")
	case errors.Is(err, whatsmeow.ErrIQRateOverLimit):
		p.fail("WhatsApp gives no more codes for this number now. Wait some minutes, or pair by QR code.")
	default:
		p.s.d.config.Log.Warn("whatsapp: ask for a pairing code", "channel", p.s.code, "error", redact("%v", []any{err}))
		p.fail(noCode)
	}
	return false
}

func (p *pairing) code(ctx context.Context) (_ string, err error) {
	defer p.s.recoverPanic(&err)
	return p.l.client.PairPhone(ctx, p.o.number, true, whatsmeow.PairClientChrome, "Chrome (Linux)")
}

// paired stores the channel's device and waits until the network accepts it.
func (p *pairing) paired(e *events.PairSuccess) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.s.ctx), persistTimeout)
	defer cancel()
	p.s.device = e.ID
	old, err := p.s.d.keys.Channel(ctx, p.s.code)
	if err == nil {
		err = p.s.d.keys.PutChannel(ctx, p.s.code, keystore.Channel{JID: e.ID})
	}
	if err != nil {
		p.s.d.config.Log.Error("store a paired device", "channel", p.s.code, "error", err)
		p.fail(notStored)
		return
	}
	if err := p.s.d.keys.RemoveDevice(ctx, old.JID); err != nil {
		p.s.d.config.Log.Error("remove the device of before", "channel", p.s.code, "error", err)
	}
	p.s.setState(parley.ChannelStarting, "", network.Phone{Number: e.ID.User})
	p.s.publishStep(network.Pairing{Step: parley.PairedStep})
	timeout := time.NewTimer(readyTimeout)
	defer timeout.Stop()
	for !p.accepted {
		select {
		case evt := <-p.l.updates:
			_, p.accepted = toDisconnection(evt)
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
		return notStored
	}
	return "WhatsApp did not link the device. Try again."
}

func isDatabaseError(err error) bool {
	_, ok := errors.AsType[*whatsmeow.PairDatabaseError](err)
	return ok
}
