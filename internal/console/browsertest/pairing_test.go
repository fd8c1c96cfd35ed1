package browsertest

import (
	"context"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp/kb"

	"parley"
	"parley/internal/app"
	"parley/internal/network/whatsapp/whatsapptest"
	"parley/internal/parleytest"
)

// pairer is a console whose channel toko is on a network of this machine that speaks WhatsApp's protocol.
type pairer struct {
	*console
	net   *whatsapptest.Server
	owner *whatsapptest.Phone
}

func startPairer(t *testing.T, change ...func(*app.Config)) *pairer {
	t.Helper()
	w := parleytest.StartOnLoopback(t, change...)
	w.WhatsAppChannel("toko")
	return &pairer{&console{Env: w.Env, t: t}, w.Net, w.Net.Phone(ayu, whatsapptest.Named("Toko Ayu"))}
}

// shown is what the panel shows to scan or to type, as the server has it.
func (c *pairer) shown() string {
	c.t.Helper()
	return c.Get("/api/manage/channels/toko/pairing", parleytest.As(c.Admin)).Expect(http.StatusOK).Text("data.code")
}

// state waits until the panel is in a state.
func (p *tab) state(name string) {
	p.t.Helper()
	p.until("pairing is "+name, `document.querySelector('.pair')?.dataset.state === `+quote(name))
}

func TestPairByQR(t *testing.T) {
	t.Parallel()
	c := startPairer(t)
	p := c.open("/channels/toko/pair")
	p.state("ready")
	p.click("button", "Show QR code")
	p.state("qr")
	p.find("image", "QR code to scan with WhatsApp")
	p.see("Code 1 of 6,")
	p.see("Linked devices")
	colours := eval[[]string](p, `[...document.querySelectorAll('.qr > *')].map((part) => getComputedStyle(part).fill)`)
	if len(colours) != 2 || colours[0] != "rgb(255, 255, 255)" || colours[1] != "rgb(0, 0, 0)" {
		t.Errorf("the QR code is drawn in %v", colours)
	}
	p.accessible()

	link, err := c.owner.Scan(t.Context(), c.shown())
	if err != nil {
		t.Fatal(err)
	}
	p.state("working")
	p.see("Paired as +62 812-3456-7890.")
	p.see("Working since")
	p.accessible()
	friend := c.net.Phone(budi)
	p.fill("Send a test message to", "+62 812-9000-4711")
	p.click("button", "Send")
	p.see("Sent")
	friend.Expect(t, whatsapptest.Text("Hello from Parley. This channel works."))

	link.Remove()
	p.state("loggedOut")
	p.see("WhatsApp logged this channel out.")
	p.find("button", "Show QR code")
}

func TestPairByCode(t *testing.T) {
	t.Parallel()
	c := startPairer(t)
	p := c.open("/channels/toko/pair")
	p.allow("422")
	p.fill("Phone number of the account", "ayu")
	p.click("button", "Get a code")
	p.see("number must be a phone number with its country code")
	c.net.Down()
	p.fill("Phone number of the account", "+62 812-3456-7890")
	p.press(kb.Enter)
	p.state("refused")
	p.see("WhatsApp cannot be reached:")
	p.gone("Too many devices") // hints for other causes
	p.accessible()
	c.net.Up()
	p.click("button", "Try again") // with the number of before
	p.state("code")
	code := eval[string](p, `document.querySelector('[data-t=pairing-code]').innerText`)
	if len(code) != 9 || code[4] != '-' || code != c.shown() {
		t.Errorf("the code is shown as %q", code)
	}
	p.see("2 min 40 s left")
	p.accessible()

	// A connection that is lost comes back by itself, with another code.
	c.net.Down()
	p.state("lost")
	p.see("The connection to WhatsApp was lost.")
	p.accessible()
	c.net.Up()
	p.state("code")
	if c.shown() == code {
		t.Error("the code is the old one")
	}
	if _, err := c.owner.EnterCode(t.Context(), c.shown()); err != nil {
		t.Fatal(err)
	}
	p.state("working")
}

// TestPairInHand holds that on a phone, which cannot scan itself, the code comes first.
func TestPairInHand(t *testing.T) {
	t.Parallel()
	c := startPairer(t)
	p := c.open("/channels/toko/pair")
	first := `document.querySelector('.pair-way h3')?.innerText`
	p.until("on a desk the QR code comes first", first+` === 'With a QR code'`)
	p.must(do(p.ctx, func(ctx context.Context) error { return emulation.SetDeviceMetricsOverride(360, 740, 2, true).Do(ctx) }))
	p.visit("/channels/toko/pair")
	p.until("in a hand the code comes first", first+` === 'With a code'`)
	p.click("button", "Show QR code")
	p.state("qr")
	p.until("the picture fits",
		`document.querySelector('.qr').getBoundingClientRect().width >= 264 && document.documentElement.scrollWidth <= innerWidth`)
}

// TestPairSteps shows the steps that need an account, or a network, that is not on this machine.
func TestPairSteps(t *testing.T) {
	t.Parallel()
	c := startPairer(t)
	p := c.open("/channels/toko/pair")
	p.state("ready")
	eval[any](p, `(() => {
		const real = fetch;
		window.pairing = null;
		window.fetch = (url, options) => (String(url).endsWith('/pairing')
			? Promise.resolve(Response.json({ success: true, data: window.pairing })) : real(url, options));
		return null;
	})()`)
	shows := func(fields, state string) {
		t.Helper()
		eval[any](p, `window.pairing = { expires_at: null, reason: '', n: 0, of: 0, code: null, qr: [], at: new Date().toISOString(), `+
			``+fields+` }, null`)
		p.click("link", "Status")
		p.click("link", "Pair")
		p.state(state)
	}
	shows(`step: 'passkey', reason: 'x', passkey: { request: { challenge: 'c2lnbg' }, expires_at: '2099-01-01T00:00:00.000Z' }`, "passkey")
	p.see("WhatsApp asks this account for a passkey.")
	p.see("navigator.credentials.get")
	p.find("button", "Hand in")
	p.find("button", "New codes")
	p.find("button", "Get a code")
	p.lost("link", "Templates") // the network has none
	p.accessible()

	shows(`step: 'starting'`, "starting")
	p.see("Requesting a code from WhatsApp…")
	shows(`step: 'starting', at: new Date(Date.now() - 6000).toISOString()`, "starting")
	p.see("This usually takes 2 s")
	shows(`step: 'starting', at: new Date(Date.now() - 16000).toISOString()`, "starting")
	p.see("The checks found:")
	p.accessible()
	shows(`step: 'qr', expires_at: new Date(Date.now() - 100).toISOString()`, "starting") // it has just expired
	shows(`step: 'failed', reason: '<b>Client outdated</b>'`, "refused")
	p.see("<b>Client outdated</b>")
}

// TestPairLink hands the pairing to somebody else, by a page that knows nothing of the console.
func TestPairLink(t *testing.T) {
	t.Parallel()
	c := startPairer(t)
	p := c.open("/channels/toko/pair")
	p.click("button", "Create a link")
	p.see("Valid for")
	p.find("image", "QR code of the link")
	p.see("please link your WhatsApp number")
	p.choose("Text to send, in", "id")
	p.see("mohon tautkan nomor WhatsApp Anda")
	p.choose("Text to send, in", "pt-BR")
	p.see("por favor, conecte seu número")
	p.accessible()

	url := eval[string](p, `document.querySelector('.pair .code code').innerText`)
	if !strings.HasPrefix(url, c.URL+"/pair#ticket=") {
		t.Fatalf("the link is %s", url)
	}
	other := newPage(t, c.URL, newTab(t, nil)) // somebody who is not signed in
	other.visit(url)
	other.see("toko")
	other.click("button", "Show a QR code")
	other.see("Code 1 of 6")
	p.state("qr")
	if _, err := c.owner.Scan(t.Context(), c.shown()); err != nil {
		t.Fatal(err)
	}
	other.see("The phone is linked.")
	p.state("working")
}

// TestPairWithPasskey hands in what a passkey signed, on the page of the link, while the console shows the same.
func TestPairWithPasskey(t *testing.T) {
	t.Parallel()
	c := startPairer(t)
	url := c.Post("/api/manage/channels/toko/pair-link", "", parleytest.As(c.Admin)).Expect(http.StatusOK).Text("data.url")
	p, owner := c.open("/channels/toko/pair"), newPage(t, c.URL, newTab(t, nil))
	owner.visit(url)
	owner.click("button", "Show a QR code")
	owner.see("Code 1 of 6")
	linked := make(chan error, 1)
	go func() {
		_, err := c.owner.LinkWithPasskey(t.Context(), c.shown(), func(string) {})
		linked <- err
	}()
	p.state("passkey")
	p.see(whatsapptest.PasskeyChallenge)
	p.see("s left")
	p.fill("What the browser printed", "undefined")
	p.click("button", "Hand in")
	p.see("This is not what the browser printed.")
	p.accessible()

	owner.see(whatsapptest.PasskeyChallenge)
	owner.see("s left")
	owner.accessible()
	owner.allow("400")
	const polls = `performance.getEntriesByName(location.origin + "/pair/state").length`
	for printed, says := range map[string]string{"undefined": "This is not what the browser printed.", passkeySigned("forged"): "WhatsApp"} {
		owner.fill("What the browser printed", printed)
		owner.click("button", "Hand in")
		said := `document.querySelector('#unread').innerText.includes(` + quote(says) + `)`
		owner.until("the page says what is wrong", said)
		before := eval[int](owner, polls)
		owner.until("it was asked again twice", polls+` > `+strconv.Itoa(before+1))
		if !eval[bool](owner, said) {
			t.Error("the sentence vanished")
		}
	}
	owner.fill("What the browser printed", passkeySigned("signed"))
	owner.click("button", "Hand in")
	owner.see("The phone is linked.")
	p.state("working")
	if err := <-linked; err != nil {
		t.Error(err)
	}
}

// passkeySigned is what a browser prints for a passkey.
func passkeySigned(signature string) string {
	return `{"id":"a2V5","rawId":"a2V5","type":"public-key","response":{"clientDataJSON":"e30","authenticatorData":"AA","signature":"` +
		base64.RawURLEncoding.EncodeToString([]byte(signature)) + `"}}`
}

func TestGoLive(t *testing.T) {
	t.Parallel()
	c := startPairer(t)
	c.say("text", ayu, `"message":"before"`)
	p := c.open("/channels/demo/pair")
	p.state("sandbox")
	p.click("button", "Go live")
	p.find("dialog", "Move demo to WhatsApp")
	p.see("What changes")
	p.see("What stays the same")
	p.accessible()
	send := func() {
		t.Helper()
		on[bool](p, "dialog", "Move demo to WhatsApp", `function() { return !this.querySelector('[type=submit]').click(); }`)
	}
	send()
	p.see("Enter at least one number, or choose everybody.")
	p.fill("Numbers", "+62 812-9000-4711")
	send()
	p.state("ready")
	p.until("the band says so", `document.querySelector('.band').innerText.includes('LIVE')`)
	got := c.Get("/api/manage/channels/demo", parleytest.As(c.Admin)).Expect(http.StatusOK)
	if got.Text("data.network") != string(parley.WhatsApp) || got.Text("data.settings.allow_only.0") != budi+"@c.us" {
		t.Errorf("it went live as %s", got.Body)
	}
	p.visit("/channels")
	p.find("link", "stopped demo-sandbox") // what was said in the sandbox is kept apart
}
