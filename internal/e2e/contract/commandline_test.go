package contract_test

import (
	"net/http"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

// TestCommandLine holds what the command line alone needs of the management API.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	admin := parleytest.As(e.Admin)

	first := e.Get("/api/manage/listen-secret", admin).Expect(http.StatusOK).Text("data.secret")
	if !strings.HasPrefix(first, "whsec_") || e.Get("/api/manage/listen-secret", admin).Text("data.secret") != first {
		t.Errorf("the secret of parley listen is %q and does not stay the same", first)
	}

	const link = "/api/manage/sign-in-link"
	key := parleytest.With("Idempotency-Key", "link")
	made := e.Post(link, "", admin, key).Expect(http.StatusOK)
	base, ticket, found := strings.Cut(made.Text("data.url"), "/console/login#")
	if !found || base != e.URL || len(ticket) != 43 {
		t.Errorf("the link is %q", made.Text("data.url"))
	}
	again := e.Post(link, "", admin, key).Expect(http.StatusOK) // a secret is not stored with the key
	wantValue(t, again, "data.url", "")
	if other := e.Post(link, "", admin).Text("data.url"); other == made.Text("data.url") {
		t.Error("two links are the same")
	}
	for _, path := range []string{"listen-secret", "sign-in-link", "signing-key/rotate"} {
		method := http.MethodPost
		if path == "listen-secret" {
			method = http.MethodGet
		}
		e.Call(method, "/api/manage/"+path, "", parleytest.As(e.Global)).Expect(http.StatusForbidden)
	}
}
