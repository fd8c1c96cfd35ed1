package whatsapp

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/types/events"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/loopback"
)

// steps lists the steps of pairing so far.
func (in *inbox) steps() []parley.PairingStep {
	var all []parley.PairingStep
	for _, e := range in.all() {
		if p, ok := e.(network.Pairing); ok {
			all = append(all, p.Step)
		}
	}
	return all
}

func (in *inbox) step(s parley.PairingStep) network.Pairing {
	in.t.Helper()
	return expect(in, 0, func(p network.Pairing) bool { return p.Step == s })
}

func TestPairingByCode(t *testing.T) {
	w := newWorld(t)
	s, in := w.start()
	must(t, s.(network.PairByCode).PairWithCode(t.Context(), "+62 812-3456-7890"))
	p := in.step(parley.CodeStep)
	if len(strings.ReplaceAll(p.Code, "-", "")) != 8 || !p.ExpiresAt.After(time.Now()) {
		t.Errorf("the step is %+v", p)
	}
	_, err := w.owner.EnterCode(within(t), p.Code)
	must(t, err)
	in.step(parley.PairedStep)
	in.status(parley.Working)
	w.sent(s, w.text(friendID, "linked by code"))
	if got := in.steps(); !slices.Equal(got, []parley.PairingStep{parley.StartingStep, parley.CodeStep, parley.PairedStep}) {
		t.Errorf("the steps were %v", got)
	}
}

func TestPairingRefusals(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	for _, number := range []string{"", "0", "abc", "+62x"} {
		if err := s.(network.PairByCode).PairWithCode(t.Context(), number); parley.CodeOf(err) != parley.Invalid {
			t.Errorf("number %q: %v", number, err)
		}
	}
	if err := s.Pair(t.Context()); parley.CodeOf(err) != parley.BadRequest {
		t.Errorf("a channel that is paired: %v", err)
	}
	w.Down()
	in.statusAfter(in.count()-1, parley.Reconnecting)
	if err := s.Pair(t.Context()); parley.CodeOf(err) != parley.BadRequest {
		t.Errorf("a channel that is reconnecting: %v", err)
	}
	w.Up()
}

func TestPairingFails(t *testing.T) {
	w := newWorld(t)
	s, in := w.start()
	fails := func(words string) {
		t.Helper()
		expect(in, 0, func(p network.Pairing) bool { return p.Step == parley.FailedStep && strings.Contains(p.Reason, words) })
	}
	must(t, s.(network.PairByCode).PairWithCode(t.Context(), absentNumber))
	fails("not on WhatsApp")

	w.owner.RefuseNextPairing()
	must(t, s.Pair(t.Context()))
	qr := in.step(parley.QRStep)
	if _, err := w.owner.Scan(t.Context(), qr.Code); err == nil {
		t.Error("a phone that signs wrongly was accepted")
	}
	fails("did not agree")

	skip := in.count()
	must(t, s.Pair(t.Context()))
	expect(in, skip, func(p network.Pairing) bool { return p.Step == parley.QRStep })
	w.Down()
	fails("lost")
	must(t, s.Pair(t.Context()))
	fails("cannot be reached")
	w.Up()

	skip = in.count()
	must(t, s.Pair(t.Context()))
	w.scan(in, skip)
	in.status(parley.Working)
}

// TestPairingSteps walks through what has no phone on this network: codes that run out, and passkeys.
func TestPairingSteps(t *testing.T) {
	w := newWorld(t)
	s, in := w.start()
	p := &pairing{s: s.(*session), timer: time.NewTimer(time.Hour)}
	defer p.timer.Stop()
	codes := []string{"1", "2", "3", "4", "5", "6"}
	if p.happened(&events.QR{Codes: codes}) {
		t.Error("the codes ended the pairing")
	}
	for p.showNext() {
	}
	var shown []string
	var lives []time.Duration
	expect(in, 0, func(p network.Pairing) bool { return p.Code == "6" })
	for _, e := range in.all() {
		if p, ok := e.(network.Pairing); ok {
			shown = append(shown, p.Code)
			if p.N != len(shown) || p.Of != len(codes) {
				t.Errorf("code %s is the %d. of %d", p.Code, p.N, p.Of)
			}
			lives = append(lives, time.Until(p.ExpiresAt).Round(10*time.Second))
		}
	}
	if !slices.Equal(shown, codes) || lives[0] != time.Minute || lives[1] != 20*time.Second {
		t.Errorf("%v were shown for %v", shown, lives)
	}
	if !p.happened(&events.Disconnected{}) {
		t.Error("the end of the codes did not end the pairing")
	}
	in.step(parley.TimeoutStep)
	if p.happened(&events.PairPasskeyRequest{}) || p.happened(&events.PairPasskeyConfirmation{}) {
		t.Error("a passkey ended the pairing")
	}
	if got := in.step(parley.PasskeyStep); !strings.Contains(got.Reason, "passkey") {
		t.Errorf("the step is %+v", got)
	}
	if !p.happened(&events.QRScannedWithoutMultidevice{}) || !p.happened(&events.PairPasskeyError{}) || !p.happened(&events.ClientOutdated{}) {
		t.Error("a failure did not end the pairing")
	}
	expect(in, 0, func(p network.Pairing) bool { return strings.Contains(p.Reason, "too old to link") })
	expect(in, 0, func(p network.Pairing) bool { return strings.Contains(p.Reason, "Upgrade") })
}

// TestPairingAgain gives an attempt up for another one, and for a logout.
func TestPairingAgain(t *testing.T) {
	w := newWorld(t)
	s, in := w.start()
	must(t, s.Pair(t.Context()))
	first := in.step(parley.QRStep)
	skip := in.count()
	must(t, s.Pair(t.Context()))
	second := expect(in, skip, func(p network.Pairing) bool { return p.Step == parley.QRStep })
	if _, err := w.owner.Scan(t.Context(), first.Code); err == nil {
		t.Error("a code that was given up linked a device")
	}
	if second.Code == first.Code {
		t.Error("the second attempt shows the first code")
	}
	must(t, s.Logout(t.Context()))
	in.statusAfter(in.count()-1, parley.ScanQRCode)
}

func TestEndpointMustBeLocal(t *testing.T) {
	w := newWorld(t)
	trust := w.Trust()
	for _, endpoint := range []string{"web.whatsapp.com:443", "192.0.2.1:443", "localhost:443", "127.0.0.1", "[2001:db8::1]:1"} {
		if _, err := newDialer(endpoint, &Trust{Root: trust.Root, CA: trust.CA}); err == nil {
			t.Errorf("%s may stand in for WhatsApp", endpoint)
		}
	}
	if _, err := newDialer("127.0.0.1:1", nil); err == nil {
		t.Error("an endpoint needs no trust")
	}
	if _, err := newDialer("[::1]:1", &Trust{Root: trust.Root, CA: []byte("x")}); err == nil {
		t.Error("nonsense is an authority")
	}
	if _, err := newDialer("127.0.0.1:1", &Trust{Root: [32]byte{1}}); err == nil {
		t.Error("a process trusts two roots")
	}
	if _, err := newDialer("127.0.0.1:1", &Trust{Root: trust.Root}); err != nil {
		t.Error(err)
	}
}

// TestPairingAFailedChannel links a channel anew whose device cannot be used: the old one is forgotten.
func TestPairingAFailedChannel(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	skip := in.count()
	w.link.End(loopback.Replaced)
	in.statusAfter(skip, parley.Failed)
	must(t, s.Pair(t.Context()))
	w.scan(in, skip)
	in.statusAfter(skip, parley.Working)
	w.sent(s, w.text(friendID, "anew"))
	devices, err := w.driver.db.keys.Devices(t.Context())
	if err != nil || len(devices) != 1 || devices[0].Device != w.link.Device() {
		t.Errorf("the devices are %+v (%v)", devices, err)
	}
}
