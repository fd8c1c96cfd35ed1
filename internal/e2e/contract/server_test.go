package contract_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/internal/app"
	"parley/internal/parleytest"
	"parley/internal/postgrestest"
)

// TestBackupFile fetches the newest backup, as it is on disk.
func TestBackupFile(t *testing.T) {
	postgrestest.Skip(t, "the database is not a file")
	t.Parallel()
	e := parleytest.Start(t)
	admin := parleytest.As(e.Admin)
	const file = "/api/manage/backup/file"
	e.Get(file, admin).ExpectError(http.StatusNotFound, "There is no backup on this server yet.")
	e.Post("/api/manage/backup", "", admin).Expect(http.StatusOK)
	made := e.Post("/api/manage/backup", "", admin).Expect(http.StatusOK).Text("data.path")

	a := e.Get(file, admin).Expect(http.StatusOK)
	wantHeader(t, a, "Content-Type", "application/x-tar")
	wantHeader(t, a, "Cache-Control", "no-store")
	wantHeader(t, a, "Content-Disposition", `attachment; filename="`+filepath.Base(made)+`"`)
	stored, err := os.ReadFile(made)
	if err != nil || !bytes.Equal(stored, a.Body) {
		t.Errorf("fetched were %d bytes, on disk are %d (%v)", len(a.Body), len(stored), err)
	}
	expectBackup(t, a.Body)
	head := e.Call(http.MethodHead, file, "", admin).Expect(http.StatusOK)
	if head.Header.Get("Content-Length") != a.Header.Get("Content-Length") || len(head.Body) > 0 {
		t.Errorf("HEAD answers %v with %d bytes", head.Header, len(head.Body))
	}
	e.Get(file, parleytest.As(e.Global)).Expect(http.StatusForbidden)

	if err := os.RemoveAll(filepath.Dir(made)); err != nil {
		t.Fatal(err)
	}
	e.Get(file, admin).ExpectError(http.StatusNotFound, "Create one first.")
}

func expectBackup(t *testing.T, body []byte) {
	t.Helper()
	var names []string
	for files := tar.NewReader(bytes.NewReader(body)); ; {
		head, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, head.Name)
	}
	if !slices.Contains(names, "parley.db") || !slices.Contains(names, "secret.key") {
		t.Errorf("it has %q", names)
	}
}

// TestBackupOfThisMoment fetches a backup that is kept nowhere.
func TestBackupOfThisMoment(t *testing.T) {
	postgrestest.Skip(t, "the database is not a file")
	t.Parallel()
	e := parleytest.Start(t)
	admin := parleytest.As(e.Admin)
	const now = "/api/manage/backup/now"
	a := e.Get(now, admin).Expect(http.StatusOK)
	wantHeader(t, a, "Content-Type", "application/x-tar")
	wantHeader(t, a, "Content-Length", "")
	expectBackup(t, a.Body)
	e.Get("/api/manage/backup/file", admin).Expect(http.StatusNotFound)
	e.Get(now, admin).Expect(http.StatusOK) // the one before has ended
	e.Get(now, parleytest.As(e.Global)).Expect(http.StatusForbidden)
}

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

// TestPublicURL makes links on the server itself: they lead to where everybody reaches it.
func TestPublicURL(t *testing.T) {
	t.Parallel()
	const public = "https://chat.example.com"
	e := parleytest.Start(t, func(c *app.Config) { c.PublicURL, c.BehindProxy = public+"/", true })
	admin := parleytest.As(e.Admin)
	server := e.Get("/api/manage/server", admin).Expect(http.StatusOK)
	wantValue(t, server, "data.url", public)
	wantValue(t, server, "data.local_url", e.URL)

	for from, with := range map[string]parleytest.Option{
		"this machine":   func(*http.Request) {},
		"a proxy":        parleytest.With("X-Forwarded-Proto", "http"),
		"another header": func(r *http.Request) { r.Host = "evil.example" },
	} {
		link := e.Post("/api/otp/link/request", `{"contact_id":"6281234567890@c.us","expires":60}`, with).Expect(http.StatusOK).Text("data.link")
		if !strings.HasPrefix(link, public+"/phone/6281234567890?") {
			t.Errorf("asked for from %s, the login link is %s", from, link)
		}
	}
	e.Post(channels, `{"code":"toko","network":"whatsapp"}`, admin).Expect(http.StatusCreated)
	if link := e.Post(channels+"/toko/pair-link", "", admin).Expect(http.StatusOK).Text("data.url"); !strings.HasPrefix(link,
		public+"/pair#ticket=") {
		t.Errorf("the pairing link is %s", link)
	}
	if found := string(e.Get("/api/manage/doctor", admin).Body); !strings.Contains(found, "they lead to "+public) {
		t.Errorf("the doctor says %s", found)
	}
}

// TestContractMetricsAreSmall: a scrape is small before any request, and a route's histogram comes with its first request.
func TestContractMetricsAreSmall(t *testing.T) {
	t.Parallel()
	e := parleytest.Start(t)
	const histogram = `parley_http_request_duration_seconds_count{route="GET /api/chat",status="200"} 1`
	before := e.Get("/metrics", parleytest.As("")).Expect(http.StatusOK)
	if size := len(before.Body); size > 60_000 {
		t.Errorf("%d bytes before any request", size)
	}
	if strings.Contains(string(before.Body), "route=\"GET /api/chat\"") {
		t.Error("there is a histogram of a route without requests")
	}
	e.Get("/api/chat").Expect(http.StatusOK)
	if after := e.Get("/metrics", parleytest.As("")).Expect(http.StatusOK); !strings.Contains(string(after.Body), histogram) {
		t.Errorf("the request is not counted:\n%.3000s", after.Body)
	}
}
