package hostile_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

// TestViewersSeeNoAddressInFull puts a secret into every kind of address, and reads everything that a viewer may read.
func TestViewersSeeNoAddressInFull(t *testing.T) {
	const secret, shown = "hunter2", "/team/"
	e := parleytest.Start(t)
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	t.Cleanup(broken.Close)
	address := broken.URL + shown + secret + "?token=" + secret
	admin := parleytest.As(e.Admin)
	hook := e.Post("/api/manage/webhooks", `{"url":"`+address+`"}`, admin).Expect(http.StatusCreated).Text("data.id")
	e.Post("/api/manage/webhooks", `{"url":"http://203.0.113.9`+shown+secret+`","events":["channel.status"]}`, admin).
		Expect(http.StatusCreated)
	rule := e.Post("/api/manage/alerts", `{"kind":"failing_webhook","url":"`+address+`"}`, admin).Expect(http.StatusCreated).Text("data.id")
	e.Post("/api/manage/alerts/"+rule+"/test", "", admin)
	link := e.Post("/api/otp/link/request", `{"contact_id":"6281234567890@c.us","expires":300,"name":"Shop","callback":{"success":"`+
		address+`","failed":"`+address+`"}}`).Expect(http.StatusOK)
	app, err := url.Parse(link.Text("data.app_uri"))
	if err != nil {
		t.Fatal(err)
	}
	phone := e.Phone("6281234567890")
	phone.Types(app.Query().Get("text"))
	var failed *parleytest.Response
	e.Eventually("the callback and the webhook were tried", func() bool {
		failed = e.Get("/api/manage/deliveries?state=retrying&limit=100", admin)
		return strings.Contains(string(failed.Body), `"webhook":null`) && strings.Contains(string(failed.Body), hook)
	})
	message := e.Post("/api/send-message/text", `{"contact_id":"6281234567890@c.us","message":"Hi"}`).Expect(http.StatusOK).Text("data.id")

	paths := []string{"/api/manage/events/recent?limit=100"}
	fill := strings.NewReplacer("{code}", "demo", "{chat}", phone.Contact(), "{contact}", phone.Contact(), "{message_id}", message)
	for _, op := range parleytest.Operations(t) {
		switch {
		case op.Method != http.MethodGet || !strings.HasPrefix(op.Path, "/api/manage/"):
		case op.Path == "/api/manage/events": // the same as events/recent, but it does not end
		case strings.Contains(op.Path, "/deliveries/{id}"):
			for i := range failed.Count("data") {
				paths = append(paths, strings.ReplaceAll(op.Path, "{id}", failed.Text(fmt.Sprintf("data.%d.id", i))))
			}
		case strings.HasSuffix(op.Path, "/find"):
			paths = append(paths, op.Path+"?id="+failed.Text("data.0.id"))
		default:
			paths = append(paths, strings.ReplaceAll(fill.Replace(op.Path), "{id}", hook))
		}
	}
	read := func(role string) (bodies map[string]string) {
		token := e.Post("/api/manage/tokens", `{"kind":"admin","role":"`+role+`"}`, admin).Expect(http.StatusCreated).Text("data.token")
		bodies = map[string]string{}
		for _, path := range paths {
			if a := e.Get(path, parleytest.As(token)); a.Status == http.StatusOK {
				bodies[path] = string(a.Body)
			}
		}
		return bodies
	}
	for _, role := range []string{"viewer", "support"} {
		bodies := read(role)
		for path, body := range bodies {
			if strings.Contains(body, secret) || strings.Contains(body, "webhook-signature") {
				t.Errorf("a %s reads in %s: %s", role, path, body)
			}
		}
		for _, path := range []string{"webhooks", "webhooks/" + hook, "alerts", "deliveries", "deliveries/export", "audit", "doctor", "overview",
			"deliveries/" + failed.Text("data.0.id")} {
			if !strings.Contains(bodies["/api/manage/"+path], shown) {
				t.Errorf("a %s does not see which address it is in %s: %s", role, path, bodies["/api/manage/"+path])
			}
		}
	}
	operator := read("operator")
	for _, path := range []string{"webhooks", "alerts", "deliveries", "deliveries/export", "deliveries/" + failed.Text("data.0.id")} {
		if !strings.Contains(operator["/api/manage/"+path], secret) {
			t.Errorf("an operator does not see the address in %s", path)
		}
	}
	if !strings.Contains(operator["/api/manage/deliveries/"+failed.Text("data.0.id")], "webhook-signature") {
		t.Error("an operator does not see the signature")
	}
}
