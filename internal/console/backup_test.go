package console_test

import (
	"net/http"
	"strings"
	"testing"

	"parley/internal/app"
)

// TestBackupIsNotForOthers follows the link to the backup as browsers do: from the console's own page it is
// fetched, from pages of others it is not, whatever cookie comes with the request.
func TestBackupIsNotForOthers(t *testing.T) {
	t.Parallel()
	e := start(t)
	cookie := e.session()
	const file = "/console/api/manage/backup/file"
	e.ask(http.MethodGet, file, "", "Cookie", cookie, "Sec-Fetch-Site", "same-origin").ExpectError(http.StatusNotFound, "Create one first.")
	e.ask(http.MethodPost, "/console/api/manage/backup", "", "Cookie", cookie, "Sec-Fetch-Site", "same-origin").Expect(http.StatusOK)
	for from, status := range map[string]int{
		"same-origin": http.StatusOK, "none": http.StatusOK, "": http.StatusOK, // typed, and from what is no browser
		"same-site": http.StatusForbidden, "cross-site": http.StatusForbidden,
	} {
		a := e.ask(http.MethodGet, file, "", "Cookie", cookie, "Sec-Fetch-Site", from, "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest",
			"document").Expect(status)
		if attached := strings.HasPrefix(a.Header.Get("Content-Disposition"),
			`attachment; filename="parley-`); attached != (status == http.StatusOK) || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("from %q: %v", from, a.Header)
		}
	}
	e.ask(http.MethodGet, file, "", "Sec-Fetch-Site", "same-origin").Expect(http.StatusUnauthorized)
}

// TestPublicOrigin lets the pages of the public address ask, also behind a proxy that does not pass on its
// name, and nobody else's.
func TestPublicOrigin(t *testing.T) {
	t.Parallel()
	e := start(t, func(c *app.Config) { c.PublicURL = "https://chat.example.com" })
	cookie := e.session()
	for origin, status := range map[string]int{
		"https://chat.example.com": http.StatusOK, e.URL: http.StatusOK, "": http.StatusOK,
		"http://chat.example.com": http.StatusForbidden, "https://chat.example.com.evil.example": http.StatusForbidden,
		"https://evil.example": http.StatusForbidden, "null": http.StatusForbidden,
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			path := map[string]string{http.MethodGet: "/console/api/manage/channels",
				http.MethodPost: "/console/api/manage/channels/demo/start"}[method]
			e.ask(method, path, "", "Cookie", cookie, "Origin", origin).Expect(status)
			if origin == "https://chat.example.com" {
				e.ask(method, path, "", "Cookie", cookie, "Origin", origin, "Sec-Fetch-Site", "same-origin").Expect(http.StatusOK)
				e.ask(method, path, "", "Cookie", cookie, "Origin", origin, "Sec-Fetch-Site", "cross-site").Expect(http.StatusForbidden)
			}
		}
	}
}
