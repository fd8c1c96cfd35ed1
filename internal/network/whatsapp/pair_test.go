package whatsapp

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/types/events"

	"parley"
	"parley/internal/network"
	"parley/internal/network/whatsapp/whatsapptest"
	"parley/internal/safehttp"
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
	w.driver.codeTimeout = hang
	s, in := w.start()
	must(t, s.PairWithCode(t.Context(), "+62 812-3456-7890"))
	p := in.step(parley.CodeStep)
	if len(strings.ReplaceAll(p.Code, "-", "")) != 8 || !p.ExpiresAt.After(time.Now()) {
		t.Errorf("the step is %+v", p)
	}
	_, err := w.owner.EnterCode(within(t), p.Code)
	must(t, err)
	in.step(parley.PairedStep)
	in.status(parley.ChannelWorking)
	w.sent(s, w.text(friendID, "linked by code"))
	if got := in.steps(); !slices.Equal(got, []parley.PairingStep{parley.StartingStep, parley.CodeStep, parley.PairedStep}) {
		t.Errorf("the steps were %v", got)
	}
}

// TestPairingByAWrongCode types another code than the one that is shown, and then the right one.
func TestPairingByAWrongCode(t *testing.T) {
	w := newWorld(t)
	w.driver.codeTimeout = 100 * time.Millisecond
	s, in := w.start()
	must(t, s.PairWithCode(t.Context(), ownerNumber))
	shown := in.step(parley.CodeStep)
	wrong := "1" + shown.Code[1:]
	if wrong == shown.Code {
		wrong = "2" + shown.Code[1:]
	}
	if _, err := w.owner.EnterCode(within(t), wrong); err == nil {
		t.Fatal("the phone accepted another code")
	}
	got := in.step(parley.WrongCodeStep)
	if got.Code != shown.Code || !got.ExpiresAt.Equal(shown.ExpiresAt) || got.Reason == "" {
		t.Errorf("the step is %+v, want the code that was shown, %+v", got, shown)
	}
	_, err := w.owner.EnterCode(within(t), shown.Code)
	must(t, err)
	in.step(parley.PairedStep)
	in.status(parley.ChannelWorking)
}

// TestPairingSurvivesALostConnection loses the connection while a code is shown: the next one has new codes.
func TestPairingSurvivesALostConnection(t *testing.T) {
	for name, number := range map[string]string{"QR code": "", "code to type": ownerNumber} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s, in := w.start()
			step := parley.QRStep
			if number == "" {
				must(t, s.Pair(t.Context()))
			} else {
				step = parley.CodeStep
				must(t, s.PairWithCode(t.Context(), number))
			}
			first := in.step(step)
			skip := in.count()
			w.Down()
			w.Up()
			expect(in, skip, func(p network.Pairing) bool {
				return p.Step == parley.StartingStep && strings.Contains(p.Reason, "lost")
			})
			second := expect(in, skip, func(p network.Pairing) bool { return p.Step == step })
			if second.Code == first.Code {
				t.Error("the code of the connection that was lost is shown again")
			}
			if number == "" {
				w.scan(in, skip)
			} else {
				_, err := w.owner.EnterCode(within(t), second.Code)
				must(t, err)
			}
			in.status(parley.ChannelWorking)
		})
	}
}

func TestPairingRefusals(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	for _, number := range []string{"", "0", "abc", "+62x"} {
		if err := s.PairWithCode(t.Context(), number); parley.ToCode(err) != parley.Invalid {
			t.Errorf("number %q: %v", number, err)
		}
	}
	if err := s.Pair(t.Context()); parley.ToCode(err) != parley.BadRequest {
		t.Errorf("a channel that is paired: %v", err)
	}
	w.Down()
	in.statusAfter(in.count()-1, parley.ChannelReconnecting)
	if err := s.Pair(t.Context()); parley.ToCode(err) != parley.BadRequest {
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
	must(t, s.PairWithCode(t.Context(), absentNumber))
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
	in.status(parley.ChannelWorking)
}

// TestPairingSteps walks through what has no phone on this network: codes that run out.
func TestPairingSteps(t *testing.T) {
	w := newWorld(t)
	s, in := w.start()
	p := &pairing{s: s, l: &connection{version: w.driver.versions.get().number}, timer: time.NewTimer(time.Hour),
		typed: time.NewTimer(time.Hour)}
	defer p.timer.Stop()
	defer p.typed.Stop()
	codes := []string{"1", "2", "3", "4", "5", "6"}
	if p.handleEvent(&events.QR{Codes: codes}) != pairingGoesOn {
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
	if p.handleEvent(&events.Disconnected{}) != pairingLost {
		t.Error("a connection that ends before its codes is not lost")
	}
	p.until = time.Now() // the last code ends
	if p.handleEvent(&events.Disconnected{}) != pairingOver {
		t.Error("the end of the codes did not end the pairing")
	}
	in.step(parley.TimeoutStep)
	for _, failure := range []any{&events.QRScannedWithoutMultidevice{}, &events.PairPasskeyError{Error: errors.New("no")},
		&events.PairPasskeyRequest{}, &events.ClientOutdated{}} {
		if p.handleEvent(failure) != pairingOver {
			t.Errorf("%T did not end the pairing", failure)
		}
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
	in.statusAfter(in.count()-1, parley.ChannelScanQRCode)
}

func TestEndpointMustBeLocal(t *testing.T) {
	w := newWorld(t)
	trust := w.Trust()
	for _, endpoint := range []string{"web.whatsapp.com:443", "192.0.2.1:443", "localhost:443", "127.0.0.1", "[2001:db8::1]:1"} {
		if _, err := newDialer(endpoint, &Trust{Root: trust.Root, CA: trust.CA}, safehttp.Policy{}); err == nil {
			t.Errorf("%s may replace WhatsApp", endpoint)
		}
	}
	if _, err := newDialer("127.0.0.1:1", nil, safehttp.Policy{}); err == nil {
		t.Error("an endpoint needs no trust")
	}
	if _, err := newDialer("[::1]:1", &Trust{Root: trust.Root, CA: []byte("x")}, safehttp.Policy{}); err == nil {
		t.Error("nonsense is an authority")
	}
	if _, err := newDialer("127.0.0.1:1", &Trust{Root: [32]byte{1}}, safehttp.Policy{}); err == nil {
		t.Error("a process trusts two roots")
	}
	if _, err := newDialer("127.0.0.1:1", &Trust{Root: trust.Root}, safehttp.Policy{}); err != nil {
		t.Error(err)
	}
}

// TestPairingAFailedChannel pairs a channel again whose device cannot be used. The old device is removed.
func TestPairingAFailedChannel(t *testing.T) {
	w := newWorld(t)
	s, in := w.paired()
	skip := in.count()
	w.link.End(whatsapptest.Replaced)
	in.statusAfter(skip, parley.ChannelFailed)
	must(t, s.Pair(t.Context()))
	w.scan(in, skip)
	in.statusAfter(skip, parley.ChannelWorking)
	w.sent(s, w.text(friendID, "again"))
	if devices := w.devices(); len(devices) != 1 || devices[0].Device != w.link.Device() {
		t.Errorf("the devices are %+v", devices)
	}
}

// TestPasskey pairs an account that must confirm with its passkey. A wrong response is refused, and the right one can follow.
func TestPasskey(t *testing.T) {
	w := newWorld(t)
	s, in := w.start()
	must(t, s.Pair(t.Context()))
	qr := in.step(parley.QRStep)
	type result struct {
		link *whatsapptest.Link
		err  error
	}
	linked := make(chan result, 1)
	go func() {
		link, err := w.owner.LinkWithPasskey(within(t), qr.Code, func(string) {})
		linked <- result{link, err}
	}()
	asked := in.step(parley.PasskeyStep)
	var request struct {
		Challenge string `json:"challenge"`
	}
	must(t, json.Unmarshal(parley.Pairing(asked).Passkey().Request, &request))
	if request.Challenge != whatsapptest.PasskeyChallenge || asked.ExpiresAt.IsZero() {
		t.Errorf("the request is %s until %s", asked.Request, asked.ExpiresAt)
	}
	assertion := func(signature string) []byte {
		return []byte(`{"id":"a2V5","rawId":"a2V5","type":"public-key",` +
			`"response":{"clientDataJSON":"e30","authenticatorData":"AA","signature":"` +
			base64.RawURLEncoding.EncodeToString([]byte(signature)) + `"}}`)
	}
	if err := s.Passkey(t.Context(), []byte(`{"id":"a2V5"}`)); parley.ToCode(err) != parley.Invalid {
		t.Errorf("what is no response: %v", err)
	}
	if err := s.Passkey(t.Context(), nil); parley.ToCode(err) != parley.BadRequest {
		t.Errorf("a confirmation that nobody asked for: %v", err)
	}
	if err := s.Passkey(t.Context(), assertion("forged")); parley.ToCode(err) != parley.BadRequest {
		t.Errorf("a wrong response: %v", err)
	}
	must(t, s.Passkey(t.Context(), assertion("signed")))
	r := <-linked
	must(t, r.err)
	w.link = r.link
	in.status(parley.ChannelWorking)
	w.sent(s, w.text(friendID, "hello"))
}

// TestPasskeyCode shows the code to compare where the network wants it, and goes on when a person confirmed it.
func TestPasskeyCode(t *testing.T) {
	w := newWorld(t)
	s, in := w.start()
	p := &pairing{s: s, l: newConnection(s, s.d.keys.NewDevice()), timer: time.NewTimer(time.Hour), typed: time.NewTimer(time.Hour)}
	defer p.l.close()
	if p.handleEvent(&events.PairPasskeyConfirmation{Code: "ABCD-EFGH"}) != pairingGoesOn {
		t.Error("the code ended the pairing")
	}
	if got := in.step(parley.ConfirmStep); got.Code != "ABCD-EFGH" || got.Reason == "" {
		t.Errorf("the step is %+v", got)
	}
	if err := p.answerPasskey(passkeyAnswer{}); parley.ToCode(err) != parley.BadRequest { // nothing to confirm: there was no response
		t.Errorf("without a response: %v", err)
	}
}
