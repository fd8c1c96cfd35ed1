package contract_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/app"
	"parley/internal/network/whatsapp"
	"parley/internal/network/whatsapp/whatsapptest"
	"parley/internal/parleytest"
	"parley/internal/store"
)

const ownNumber = "6281211112222" // of the phone that is linked

// prepared has the driver set what its libraries keep in variables of the whole process, before the first
// network of a test uses them.
var prepared = sync.OnceFunc(func() {
	dir, err := os.MkdirTemp("", "parley")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	driver, err := whatsapp.Open(context.Background(), whatsapp.Config{Path: filepath.Join(dir, "whatsapp.db"),
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	driver.Close()
})

// startWhatsApp starts a gateway whose WhatsApp is a server on this machine, with a channel that nobody
// paired yet.
func startWhatsApp(t *testing.T, code string) (*parleytest.Env, *whatsapptest.Phone) {
	t.Helper()
	prepared()
	network := whatsapptest.StartTest(t)
	trust, err := json.Marshal(network.Trust())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "trust.json")
	if err := os.WriteFile(file, trust, 0o600); err != nil {
		t.Fatal(err)
	}
	e := parleytest.Start(t, func(c *app.Config) { c.WhatsAppEndpoint, c.WhatsAppTrust = network.Endpoint(), file })
	made := e.Post(channels, `{"code":"`+code+`","name":"<b>Toko</b> Ayu","network":"whatsapp"}`, parleytest.As(e.Admin)).
		Expect(http.StatusCreated)
	wantValue(t, made, "data.network", "whatsapp")
	awaitStatus(e, code, "SCAN_QR_CODE")
	return e, network.Phone(ownNumber, whatsapptest.Named("Toko Ayu"))
}

// awaitStep waits until a pairing is at a step.
func awaitStep(e *parleytest.Env, code, step string) *parleytest.Response {
	e.T.Helper()
	var a *parleytest.Response
	e.Eventually(code+" is at "+step, func() bool {
		a = e.Get(channels+"/"+code+"/pairing", parleytest.As(e.Admin)).Expect(http.StatusOK)
		return a.Text("data.step") == step
	})
	return a
}

var (
	stepKeys    = []string{"step", "expires_at", "reason", "n", "of", "at"}
	pairingKeys = append(slices.Clone(stepKeys), "code", "qr", "passkey")
)

func TestContractPairing(t *testing.T) {
	t.Parallel()
	e, phone := startWhatsApp(t, "toko")
	admin := parleytest.As(e.Admin)
	toko := channels + "/toko"
	none := e.Get(toko+"/pairing", admin).Expect(http.StatusOK)
	wantKeys(t, none, "", "success", "message", "data")
	wantValue(t, none, "data", nil)
	wantHeader(t, none, "Cache-Control", "no-store")
	row := e.Get(toko, admin).Expect(http.StatusOK)
	wantValue(t, row, "data.pairing", nil)
	wantKeys(t, row, "data.evidence", "connected_at", "heard_at", "confirmed_at", "received_at")
	wantValue(t, row, "data.evidence.connected_at", nil)

	wantKeys(t, e.Post(toko+"/pair", "", admin).Expect(http.StatusOK), "data", channelKeys...)
	qr := awaitStep(e, "toko", "qr")
	wantKeys(t, qr, "data", pairingKeys...)
	wantRecent(t, qr, "data.at")
	wantValue(t, qr, "data.n", 1.0)
	wantValue(t, qr, "data.of", 6.0)
	if ends := wantRecent(t, qr, "data.expires_at"); time.Until(ends) < 30*time.Second || time.Until(ends) > time.Minute {
		t.Errorf("the first code lasts %s, want about a minute", time.Until(ends))
	}
	wantQR(t, qr)
	for path, a := range map[string]*parleytest.Response{"data": e.Get(toko, admin), "data.1": e.Get(channels, admin)} {
		wantKeys(t, a, path+".pairing", stepKeys...)
		wantValue(t, a, path+".pairing.step", "qr")
		if strings.Contains(string(a.Body), qr.Text("data.code")[:40]) {
			t.Errorf("%s shows the code", a.Request)
		}
	}
	if _, err := phone.Scan(t.Context(), qr.Text("data.code")); err != nil {
		t.Fatal(err)
	}
	works := awaitStatus(e, "toko", "WORKING")
	wantValue(t, works, "data.number", ownNumber)
	wantRecent(t, works, "data.evidence.connected_at")
	wantRecent(t, works, "data.evidence.heard_at")
	wantValue(t, works, "data.pairing.step", "paired")
	paired := e.Get(toko+"/pairing", admin).Expect(http.StatusOK)
	wantValue(t, paired, "data.code", nil)
	wantValue(t, paired, "data.expires_at", nil)
	e.Post(toko+"/pair", "", admin).ExpectError(http.StatusBadRequest, "parley channel logout toko")
	e.Post(toko+"/pair-link", "", admin).ExpectError(http.StatusBadRequest, "parley channel logout toko")
	if e.Log.Contains(qr.Text("data.code")[:60]) || e.Log.Contains(ownNumber) {
		t.Error("the log holds a code or a number")
	}
}

// wantQR checks the picture of a code: square, with the three marks by which it is found.
func wantQR(t *testing.T, a *parleytest.Response) {
	t.Helper()
	size := a.Count("data.qr")
	row := func(y int) string { return a.Text(fmt.Sprintf("data.qr.%d", y)) }
	if size < 41 || size%4 != 1 {
		t.Fatalf("the code has %d rows", size)
	}
	const top, side = "1111111", "1000001"
	for y, want := range map[int]string{0: top, 1: side, 5: side, 6: top} {
		if r := row(y); len(r) != size || !strings.HasPrefix(r, want+"0") || !strings.HasSuffix(r, "0"+want) ||
			!strings.HasPrefix(row(size-1-y), want+"0") {
			t.Errorf("row %d is %s", y, r)
		}
	}
}

func TestContractPairingByCode(t *testing.T) {
	t.Parallel()
	e, phone := startWhatsApp(t, "toko")
	admin := parleytest.As(e.Admin)
	toko := channels + "/toko"
	for _, number := range []string{`""`, `1`, `[]`, `"abc"`, `"+62x812"`, `"1234"`, `"` + strings.Repeat("6", 16) + `"`, `"` +
		strings.Repeat("6", 61) + `"`, `"6281211112222@g.us"`} {
		e.Post(toko+"/pair", `{"number":`+number+`}`, admin).ExpectFields("number")
	}
	e.Post(toko+"/pair", `[]`, admin).Expect(http.StatusBadRequest)
	e.Post(channels+"/demo/pair", `{"number":"`+ownNumber+`"}`, admin).ExpectError(http.StatusBadRequest, "without a number")
	wantValue(t, e.Get(toko+"/pairing", admin), "data", nil)

	e.Post(toko+"/pair", `{"number":"6289999999999"}`, admin).Expect(http.StatusOK) // not on the network
	if failed := awaitStep(e, "toko", "failed"); failed.Text("data.reason") == "" {
		t.Errorf("it does not say why: %s", failed.Body)
	}
	e.Post(toko+"/pair", `{"number":"+62 (812) 1111-2222"}`, admin).Expect(http.StatusOK)
	code := awaitStep(e, "toko", "code")
	wantValue(t, code, "data.n", 0.0)
	if got := code.Text("data.code"); len(got) != 9 || got[4] != '-' || code.Count("data.qr") != 0 {
		t.Errorf("the step is %s", code.Body)
	}
	if _, err := phone.EnterCode(t.Context(), code.Text("data.code")); err != nil {
		t.Fatal(err)
	}
	awaitStatus(e, "toko", "WORKING")
	if e.Log.Contains(code.Text("data.code")) || e.Log.Contains(ownNumber) {
		t.Error("the log holds the code or the number")
	}
}

func TestContractGoLive(t *testing.T) {
	t.Parallel()
	e, phone := startWhatsApp(t, "toko")
	admin := parleytest.As(e.Admin)
	live := channels + "/shop/go-live"
	shop := parleytest.As(e.CreateChannel("shop"))
	e.Call("PATCH", channels+"/shop", `{"name":"Shop","settings":{"ttl":"2h","pace":"1ms"}}`, admin).Expect(http.StatusOK)
	secret := e.Get(channels+"/shop/secret", admin).Text("data.secret")
	for _, c := range []struct {
		body   string
		fields []string
	}{
		{`{}`, []string{"allow"}},
		{`{"everybody":false}`, []string{"allow"}},
		{`{"allow":null,"everybody":null}`, []string{"allow"}},
		{`{"allow":[]}`, []string{"allow"}},
		{`{"allow":"6281298765432"}`, []string{"allow"}},
		{`{"allow":["6281298765432"],"everybody":true}`, []string{"everybody"}},
		{`{"everybody":"yes"}`, []string{"everybody", "allow"}},
		{`{"allow":["6281298765432",1,"x","6281298765432@g.us"]}`, []string{"allow.1", "allow.2", "allow.3"}},
	} {
		e.Post(live, c.body, admin).ExpectFields(c.fields...)
	}
	e.Post(live, `{}`, admin).ExpectError(http.StatusUnprocessableEntity, `{"everybody":true}`)
	e.Post(live, "", admin).Expect(http.StatusBadRequest)
	e.Post(channels+"/nobody/go-live", `{"everybody":true}`, admin).Expect(http.StatusNotFound)
	wantValue(t, e.Get(channels+"/shop", admin), "data.network", "sandbox")

	a := e.Post(live, `{"allow":["+62 812-9876-5432","6281200000001@s.us"]}`, admin).Expect(http.StatusOK)
	wantKeys(t, a, "data", channelKeys...)
	wantValue(t, a, "data.network", "whatsapp")
	wantValue(t, a, "data.name", "Shop")
	wantTexts(t, a, "data.settings.allow_only", "6281298765432@c.us", "6281200000001@c.us")
	wantValue(t, a, "data.settings.ttl", "2h")
	wantValue(t, e.Get(channels+"/shop/secret", admin), "data.secret", secret)
	e.Post(live, `{"everybody":true}`, admin).ExpectError(http.StatusBadRequest, "already live")
	e.Becomes("shop", parley.ChannelScanQRCode) // until it has started, messages are accepted
	e.Post(sendText, textTo("6281298765432"), shop).ExpectError(http.StatusBadRequest, "parley channel pair shop")

	e.Post(channels+"/shop/pair", "", admin).Expect(http.StatusOK)
	if _, err := phone.Scan(t.Context(), awaitStep(e, "shop", "qr").Text("data.code")); err != nil {
		t.Fatal(err)
	}
	awaitStatus(e, "shop", "WORKING")
	e.Post(sendText, textTo("6281298765433"), shop).ExpectError(http.StatusForbidden, "parley channel allow shop")
	// by its own token
	wantValue(t, e.Post(sendText, textTo("6281298765432"), shop).Expect(http.StatusOK), "data.error.code", "not_on_network")
}

// pairTicketFor makes a ticket as a link carries it, for any channel and time.
func pairTicketFor(t *testing.T, e *parleytest.Env, channel parley.ChannelCode, life time.Duration) string {
	return addTicket(t, besides(t, e).Store, parley.PairTicket, channel, life)
}

func addTicket(t *testing.T, db *store.DB, purpose parley.TicketPurpose, channel parley.ChannelCode, life time.Duration) string {
	t.Helper()
	secret, ticket := parley.NewTicket(purpose, channel, time.Now(), life)
	if err := db.Tx(t.Context(), func(tx *store.Tx) error { return tx.AddTicket(t.Context(), ticket) }); err != nil {
		t.Fatal(err)
	}
	return secret
}

// linkTo makes a link that lets somebody pair a channel, and returns its ticket.
func linkTo(e *parleytest.Env, code string) string {
	e.T.Helper()
	a := e.Post(channels+"/"+code+"/pair-link", "", parleytest.As(e.Admin)).Expect(http.StatusOK)
	ticket, found := strings.CutPrefix(a.Text("data.url"), e.URL+"/pair#ticket=")
	if !found || len(ticket) != 43 {
		e.T.Fatalf("the link is %s", a.Body)
	}
	return ticket
}

func TestContractPairLink(t *testing.T) {
	t.Parallel()
	e, phone := startWhatsApp(t, "toko")
	admin := parleytest.As(e.Admin)
	made := e.Post(channels+"/toko/pair-link", "", admin, parleytest.With("Idempotency-Key", "one-link")).Expect(http.StatusOK)
	wantKeys(t, made, "data", "url", "expires_at", "qr")
	if rows := made.Value("data.qr").([]any); len(rows) < 21 || len(rows[0].(string)) != len(rows) {
		t.Errorf("the link's QR code is %v", rows)
	}
	if ends, err := time.Parse(time.RFC3339, made.Text("data.expires_at")); err != nil || time.Until(ends).Round(time.Minute) != time.Hour {
		t.Errorf("it lasts until %s: %v", made.Text("data.expires_at"), err)
	}
	again := e.Post(channels+"/toko/pair-link", "", admin, parleytest.With("Idempotency-Key", "one-link")).Expect(http.StatusOK)
	wantValue(t, again, "data.url", "") // it is shown once
	e.Post(channels+"/demo/pair-link", "", admin).ExpectError(http.StatusBadRequest, "go-live demo")
	e.Post(channels+"/nobody/pair-link", "", admin).Expect(http.StatusNotFound)

	_, ticket, _ := strings.Cut(made.Text("data.url"), "#ticket=")
	holder := parleytest.As(ticket)
	ready := e.Get("/pair/state", holder).Expect(http.StatusOK)
	wantKeys(t, ready, "data", "name", "status", "reason", "pairing", "timestamp")
	wantValue(t, ready, "data.name", "<b>Toko</b> Ayu") // as data: the page shows it as text
	wantValue(t, ready, "data.status", "SCAN_QR_CODE")
	wantValue(t, ready, "data.pairing", nil)
	wantRecent(t, ready, "data.timestamp")
	e.Post("/pair/begin", `{"number":"my phone"}`, holder).ExpectFields("number")
	e.Post("/pair/begin", `[]`, holder).Expect(http.StatusBadRequest)
	e.Post("/pair/begin", `{"number":"`+strings.Repeat("1", 1<<20)+`"}`, holder).Expect(http.StatusRequestEntityTooLarge)

	wantKeys(t, e.Post("/pair/begin", "", holder).Expect(http.StatusOK), "data", "name", "status", "reason", "pairing", "timestamp")
	var qr *parleytest.Response
	e.Eventually("there is a code", func() bool {
		qr = e.Get("/pair/state", holder).Expect(http.StatusOK)
		return qr.Text("data.pairing.step") == "qr"
	})
	wantKeys(t, qr, "data.pairing", pairingKeys...)
	wantHeader(t, qr, "Cache-Control", "no-store")
	if _, err := phone.Scan(t.Context(), qr.Text("data.pairing.code")); err != nil {
		t.Fatal(err)
	}
	e.Eventually("it works", func() bool {
		return e.Get("/pair/state", holder).Expect(http.StatusOK).Text("data.status") == "WORKING"
	})
	for _, a := range []*parleytest.Response{e.Get("/pair/state", holder), e.Post("/pair/begin", "", holder)} {
		a.ExpectError(http.StatusUnauthorized, "already used")
		wantHeader(t, a, "WWW-Authenticate", badToken)
	}
	// It opens nothing else.
	for _, path := range []string{channels, channels + "/toko", channels + "/toko/pairing", "/api/chat", "/api/events"} {
		e.Get(path, holder).Expect(http.StatusUnauthorized)
	}
	if e.Log.Contains(ticket) || e.Log.Contains(qr.Text("data.pairing.code")[:60]) {
		t.Error("the log holds the ticket or a code")
	}
	wantNowhere(t, e, ticket)
}

func TestContractPairLinkThatIsNotGood(t *testing.T) {
	t.Parallel()
	e, _ := startWhatsApp(t, "toko")
	admin := parleytest.As(e.Admin)
	store := besides(t, e).Store
	add := func(purpose parley.TicketPurpose, channel parley.ChannelCode, life time.Duration) string {
		return addTicket(t, store, purpose, channel, life)
	}
	good := linkTo(e, "toko")
	for _, c := range []struct{ ticket, says string }{
		{add(parley.PairTicket, "toko", -time.Second), "expired"},
		{add(parley.SessionTicket, "", time.Hour), "invalid"},
		{add(parley.SignInTicket, "", time.Hour), "invalid"},
		{add(parley.PairTicket, "nobody", time.Hour), "invalid"},
		{good[1:], "invalid"}, {strings.ToUpper(good), "invalid"}, {e.Admin, "invalid"},
	} {
		e.Get("/pair/state", parleytest.As(c.ticket)).ExpectError(http.StatusUnauthorized, c.says)
		e.Post("/pair/begin", "", parleytest.As(c.ticket)).ExpectError(http.StatusUnauthorized, c.says)
	}
	e.Get("/pair/state?ticket="+good, parleytest.As("")).Expect(http.StatusUnauthorized) // not in the address
	wantHeader(t, e.Get("/pair/state", parleytest.As("")), "WWW-Authenticate", noToken)
	expired := add(parley.PairTicket, "toko", -time.Second)
	for language, says := range map[string]string{"id": "kedaluwarsa", "pt-BR,pt;q=0.9": "expirou", "de": "expired",
		"de,in;q=0.3,en;q=0.2": "kedaluwarsa", "pt;q=0, en": "expired"} {
		e.Get("/pair/state", parleytest.As(expired), parleytest.With("Accept-Language", language)).ExpectError(http.StatusUnauthorized, says)
	}

	holder := parleytest.As(good)
	e.Post(channels+"/toko/stop", "", admin).Expect(http.StatusOK)
	e.Post("/pair/begin", "", holder).ExpectError(http.StatusBadRequest, "channel is off")
	e.Post(channels+"/toko/start", "", admin).Expect(http.StatusOK)
	awaitStatus(e, "toko", "SCAN_QR_CODE")
	for range 6 {
		e.Post("/pair/begin", "", holder).Expect(http.StatusOK)
	}
	over := e.Post("/pair/begin", "", holder).ExpectError(http.StatusTooManyRequests, "Too many")
	if over.Header.Get("Retry-After") == "" {
		t.Error("it does not say when to try again")
	}
	e.Post("/pair/begin", "", parleytest.As(linkTo(e, "toko"))).Expect(http.StatusOK) // each link for itself
	e.Delete(channels+"/toko", admin).Expect(http.StatusAccepted)
	e.Get("/pair/state", holder).ExpectError(http.StatusUnauthorized, "invalid")
}

func TestContractPairPage(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	a := e.Get("/pair", parleytest.As("")).Expect(http.StatusOK)
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
		"X-Content-Type-Options": "nosniff", "Cross-Origin-Opener-Policy": "same-origin", "Vary": "Accept-Language",
	} {
		wantHeader(t, a, name, want)
	}
	policy := a.Header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'; script-src 'self';") || !strings.Contains(policy,
		"require-trusted-types-for 'script'") ||
		!strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "data:") {
		t.Errorf("the policy is %q", policy)
	}
	page := string(a.Body)
	if strings.Contains(page, "://") || strings.Count(page, "<script") != 1 || strings.Contains(page, " style=") || strings.Contains(page,
		" on") && strings.Contains(page, "onclick=") {
		t.Errorf("the page loads from elsewhere or has something inline: %s", page)
	}
	for file, kind := range map[string]string{"/pair.js": "text/javascript; charset=utf-8", "/pair.css": "text/css; charset=utf-8"} {
		f := e.Get(file, parleytest.As("")).Expect(http.StatusOK)
		wantHeader(t, f, "Content-Type", kind)
		text := strings.ReplaceAll(string(f.Body), "http://www.w3.org/2000/svg", "")
		for _, bad := range []string{"://", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("} {
			if strings.Contains(text, bad) {
				t.Errorf("%s has %s", file, bad)
			}
		}
		if !strings.Contains(page, `"`+file+`"`) {
			t.Errorf("the page does not load %s", file)
		}
	}
	for language, title := range map[string]string{"en-GB": "Link a phone", "id-ID,en;q=0.5": "Tautkan ponsel", "pt": "Conectar um celular",
		"": "Link a phone"} {
		in := string(e.Get("/pair", parleytest.As(""), parleytest.With("Accept-Language", language)).Expect(http.StatusOK).Body)
		if !strings.Contains(in, "<title>"+title+"</title>") {
			t.Errorf("in %q: %s", language, in)
		}
	}
	e.Call("PUT", "/pair", "", parleytest.As("")).Expect(http.StatusMethodNotAllowed)
	e.Get("/pair/else", parleytest.As("")).Expect(http.StatusNotFound)
}
