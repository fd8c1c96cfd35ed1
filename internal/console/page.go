package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"parley/internal/asset"
)

// policy lets pages load and call this server alone, run no inline script or style, and make code of
// no text: the one policy for Trusted Types names the shared worker. Files that are fetched for a
// message are shown as data: and blob:, which only our own scripts can make.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; " +
	"font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; " +
	"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types parley"

const loginPage = "login"

// languages are those that the pages speak; the first is for readers of others.
var languages = []string{"en", "id", "pt-BR"}

// themes are how pages can look; the first follows the system.
var themes = []string{"auto", "light", "dark"}

// view is what the frame of all pages is made of.
type view struct {
	Build, Lang, Theme string
	Band               string // sandbox or live
	Word               string // the same, for people
	Colour             string // of the band
	Start              string // JSON, for the scripts
}

// start is what the scripts know before they ask.
type start struct {
	Base    string `json:"base"`
	Version string `json:"version"`
	Mode    string `json:"mode"`
	Live    bool   `json:"live"`
	Lang    string `json:"lang"`
}

// pages are the first words of the addresses that routes.js lists, and how many words may follow each.
var pages = map[string]int{
	"": 0, "channels": 2, "messages": 0, "phone": 1, "otp": 0, "webhooks": 1, "tokens": 0, "api-recipes": 1, "settings": 0, "login": 0,
}

// isPage reports whether there is a page at an address below /console/.
func isPage(address string) bool {
	first, rest, _ := strings.Cut(strings.Trim(address, "/"), "/")
	most, known := pages[first]
	return known && len(strings.FieldsFunc(rest, func(r rune) bool { return r == '/' })) <= most
}

// servePage serves the frame; which page is in it is decided by its script. Whoever is not signed in
// is led to the page that says how: here where it is known, else by the script.
func (c *Console) servePage(w http.ResponseWriter, hr *http.Request, first string) {
	h := w.Header()
	if !isRead(hr) {
		c.API.RefuseMethod(w, hr, "GET, HEAD")
		return
	}
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	// The simulated phone records voice messages.
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(self)")
	if first == loginPage {
		setProbe(w)
	} else if cameByItself(hr) && c.check(hr.Context(), hr) != nil {
		http.Redirect(w, hr, "/console/login?next="+url.QueryEscape(hr.URL.RequestURI()), http.StatusSeeOther)
		return
	}
	v, err := c.viewFor(hr)
	if err != nil {
		c.API.Refuse(w, hr, err)
		return
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	if !isPage(strings.TrimPrefix(hr.URL.EscapedPath(), "/console/")) {
		w.WriteHeader(http.StatusNotFound)
	}
	c.page.Execute(w, v) // a reader that is gone learns nothing
}

// cameByItself reports whether a reader came by an address, a bookmark or a link of our own. Whoever
// follows a link of others comes without the cookie, and is found to be signed in by the scripts.
func cameByItself(hr *http.Request) bool {
	from := hr.Header.Get("Sec-Fetch-Site")
	return from == "none" || from == "same-origin"
}

func (c *Console) viewFor(hr *http.Request) (view, error) {
	files, err := c.files()
	if err != nil {
		return view{}, err
	}
	v := view{
		Build: files.build, Lang: languageOf(hr), Theme: chosen(hr, "theme", themes),
		Band: "sandbox", Word: "SANDBOX",
	}
	live := c.Live != nil && c.Live()
	if live {
		v.Band, v.Word = "live", "LIVE"
	}
	v.Colour = colours[v.Band]
	text, err := json.Marshal(start{Base: "/console/" + v.Build + "/", Version: c.Version, Mode: c.Mode, Live: live, Lang: v.Lang})
	if err != nil {
		return v, fmt.Errorf("what a page begins with: %w", err)
	}
	v.Start = string(text)
	return v, nil
}

// chosen returns which of several words a cookie holds; the first, if it holds none of them.
func chosen(hr *http.Request, cookie string, of []string) string {
	if c, err := hr.Cookie(cookie); err == nil && slices.Contains(of, c.Value) {
		return c.Value
	}
	return of[0]
}

// languageOf finds the language of a reader: the one chosen here, else the one that the browser asks for.
func languageOf(hr *http.Request) string {
	if c, err := hr.Cookie("lang"); err == nil && slices.Contains(languages, c.Value) {
		return c.Value
	}
	return asset.Language(hr, languages)
}
