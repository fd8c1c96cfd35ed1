package contract_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/app"
	"parley/internal/diagnostics"
	"parley/internal/parleytest"
	"parley/internal/store"
)

// unpacked reads the files of a bundle, and their names in order.
func unpacked(t *testing.T, a *parleytest.Response) (files map[string]string, names []string) {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(a.Body), int64(len(a.Body)))
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name], names = string(text), append(names, f.Name)
	}
	return files, names
}

// TestDiagnosticsKeepSecrets has everything happen that leaves something private behind, and looks for it in
// the diagnostics: in the file, and in what is shown of it before.
func TestDiagnosticsKeepSecrets(t *testing.T) {
	t.Parallel()
	e, phone := startWhatsApp(t, "toko")
	admin := parleytest.As(e.Admin)
	secrets := map[string]string{
		"the channel token": e.Token, "the global token": e.Global, "the admin token": e.Admin,
		"a text": "canary-text-7f3a", "an answer": "canary-answer-c01d", "a contact's name": "canary-contact-91bc",
		"a channel's name":   "canary-channel-55de",
		"a contact's number": "6281377001144", "a number that is a code": "6281377009988", "a path": "canary-path-08aa",
		"a query":            "canary-query-ee17",
		"a webhook's answer": "canary-webhook-3d3d", "a token's name": "canary-token-4b4b", "a contact who may be written to": "6281377005566",
		"a setting": "canary-setting-a0a0",
	}
	refusal := secrets["a webhook's answer"]
	var down http.HandlerFunc = func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, refusal, http.StatusTeapot)
	}
	server := httptest.NewServer(down)
	t.Cleanup(server.Close)
	hook := e.Post("/api/manage/webhooks", `{"url":"`+server.URL+`/canary-path-08aa?k=canary-query-ee17"}`, admin).Expect(http.StatusCreated)
	secrets["a webhook's secret"] = hook.Text("data.secret")
	secrets["a new token"] = e.Post("/api/manage/tokens", `{"kind":"admin","name":"canary-token-4b4b"}`, admin).Expect(http.StatusCreated).
		Text("data.token")
	secrets["a channel's secret"] = e.Get(channels+"/demo/secret", admin).Expect(http.StatusOK).Text("data.secret")
	e.Call("PATCH", channels+"/demo", `{"name":"canary-channel-55de"}`, admin).Expect(http.StatusOK)
	e.Post(channels, `{"code":"6281377009988","settings":{"allow_only":["6281377005566@c.us"]}}`, admin).Expect(http.StatusCreated)
	secrets["a channel's number"] = e.Get(channels+"/demo", admin).Text("data.number")

	e.Post("/api/sandbox/phones", `{"number":"6281377001144","name":"canary-contact-91bc"}`).Expect(http.StatusOK)
	e.Post("/api/send-message/text", `{"contact_id":"6281377001144@c.us","message":"canary-text-7f3a"}`).Expect(http.StatusOK)
	e.Phone("6281377001144").Types("canary-answer-c01d")
	e.Post("/api/otp/code/request", `{"contact_id":"6281377001144@c.us","length":6,"useNumber":false,"useLetter":true,"allCapital":true}`).
		Expect(http.StatusOK)
	secrets["a one-time code"] = e.Phone("6281377001144").Expect("code").Codes[0]
	link := e.Post("/api/otp/link/request",
		fmt.Sprintf(`{"contact_id":"6281377001144@c.us","expires":300,"callback":{"success":"%[1]s/canary-path-08aa",`+
			`"failed":"%[1]s/canary-path-08aa"}}`, server.URL)).Expect(http.StatusOK)
	secrets["the code of a login link"] = link.Text("data.code")
	_, secrets["the ticket of a login link"], _ = strings.Cut(link.Text("data.link"), "ticket=")
	e.Post("/api/sandbox/phones/6281377001144/open", `{"id":"`+link.Text("data.id")+`"}`).Expect(http.StatusOK)
	_, secrets["the ticket of a pairing link"], _ = strings.Cut(e.Post(channels+"/toko/pair-link", "", admin).Expect(http.StatusOK).
		Text("data.url"), "ticket=")
	e.Post(channels+"/toko/pair", "", admin).Expect(http.StatusOK)
	secrets["a pairing code"] = awaitStep(e, "toko", "qr").Text("data.code")
	signIn, ticket := parley.NewTicket(parley.SignInTicket, "", time.Now(), time.Hour)
	ticket.Role = parley.Owner
	if err := besides(t, e).Store.Tx(t.Context(), func(tx *store.Tx) error { return tx.AddTicket(t.Context(), ticket) }); err != nil {
		t.Fatal(err)
	}
	secrets["a link that signs in"] = signIn
	e.Eventually("a callback and an event fail", func() bool {
		a := e.Get("/api/manage/deliveries?limit=100", admin)
		return strings.Contains(string(a.Body), "418") && strings.Contains(string(a.Body), `"webhook":null`)
	})

	look := func(when string) {
		t.Helper()
		files, names := unpacked(t, e.Get("/api/manage/diagnostics", admin).Expect(http.StatusOK))
		shown := e.Get("/api/manage/diagnostics/contents", admin).Expect(http.StatusOK)
		if listed := column(shown, "name"); !slices.Equal(listed, names) {
			t.Errorf("there are %q, and shown are %q", names, listed)
		}
		files["what is shown"] = string(shown.Body)
		for what, secret := range secrets {
			if secret == "" {
				t.Fatalf("%s is not known", what)
			}
			for name, text := range files {
				if at := strings.Index(text, secret); at >= 0 {
					t.Errorf("%s: %s is in %s: …%.200s…", when, what, name, text[max(0, at-100):])
				}
			}
		}
		for name, part := range map[string]string{ // so that it was not looked for in nothing
			"channels.json": `"code": "demo"`, "channel-changes.json": `"status": "SCAN_QR_CODE"`, "webhooks.json": `"host": "127.0.0.1:`,
			"deliveries.json": `"problem": "http_status"`, "metrics.txt": "parley_http_request_duration_seconds", "log.txt": "level=WARN msg=",
			"goroutines.txt": "app.(*server).run",
			"doctor.txt":     "webhook: http://127.0.0.1:", "version.txt": "test",
		} {
			if !strings.Contains(files[name], part) {
				t.Errorf("%s: %s has no %q: %.2000s", when, name, part, files[name])
			}
		}
	}
	look("while a channel waits to be paired")
	if _, err := phone.Scan(t.Context(), awaitStep(e, "toko", "qr").Text("data.code")); err != nil {
		t.Fatal(err)
	}
	awaitStatus(e, "toko", "WORKING")
	secrets["the number of a real account"], secrets["its name"] = ownNumber, "Toko Ayu"
	look("when it is paired")
	if number := e.Get(channels+"/demo", admin).Text("data.number"); !strings.Contains(string(e.Get("/api/manage/diagnostics/contents",
		admin).Body), `…`+number[len(number)-3:]) {
		t.Error("the end of a number is not there")
	}
}

// TestDiagnostics holds the diagnostics to what is said of them.
func TestDiagnostics(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t, func(c *app.Config) {
		c.Settings = []diagnostics.Setting{{Key: "listen", Value: "127.0.0.1:0", Origin: "--listen"},
			{Key: "url", Value: "https://ayu:canary@example.com/p?canary=1", Origin: "PARLEY_URL"}}
	})
	admin := parleytest.As(e.Admin)
	a := e.Get("/api/manage/diagnostics", admin).Expect(http.StatusOK)
	wantHeader(t, a, "Content-Type", "application/zip")
	wantHeader(t, a, "Cache-Control", "no-store")
	if got := a.Header.Get("Content-Disposition"); !strings.HasPrefix(got, `attachment; filename="parley-diagnostics-2`) {
		t.Errorf("it is called %q", got)
	}
	files, names := unpacked(t, a)
	if want := []string{"README.txt", "version.txt", "config.txt", "doctor.txt", "channels.json", "channel-changes.json", "webhooks.json",
		"deliveries.json", "metrics.txt", "log.txt", "goroutines.txt"}; !slices.Equal(names, want) {
		t.Errorf("it has %q", names)
	}
	for _, name := range names[1:] {
		if !strings.Contains(files["README.txt"], "  "+name+" ") {
			t.Errorf("README.txt does not say what %s is", name)
		}
	}
	if got := files["config.txt"]; !strings.Contains(got, "listen   127.0.0.1:0") || !strings.Contains(got, "https://example.com ") ||
		strings.Contains(got, "canary") {
		t.Errorf("the settings: %s", got)
	}
	if got := files["goroutines.txt"]; !strings.Contains(got, "diagnostics.writeGoroutines") || strings.Contains(got, "(0x") ||
		strings.Contains(got, "{0x") {
		t.Errorf("the goroutines: %.3000s", got)
	}
	one := e.Get("/api/manage/diagnostics/contents", admin).Expect(http.StatusOK)
	wantKeys(t, one, "data.0", "name", "bytes", "text")
	if got := one.Number("data.0.bytes"); int(got) != len(one.Text("data.0.text")) {
		t.Errorf("README.txt has %d bytes and is said to have %v", len(one.Text("data.0.text")), got)
	}
}
