package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"parley"
	"parley/internal/asset"
)

// policy lets pages load from and call this server only, without inline scripts or styles. The one Trusted
// Types policy creates the shared worker. Media of messages are shown as data: and blob:.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; " +
	"font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; " +
	"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types parley"

const loginPage = "login"

var (
	languages = []string{"en", "id", "pt-BR"}     // the first is the default
	themes    = []string{"auto", "light", "dark"} // the first follows the system
	colours   = map[string]string{                // of the bands in style.css, for the window frame of an installed app
		"sandbox": "#f5b83d", "live": "#0b5e52", "plain": "#5b6672",
	}
)

// view is the data of index.html.
type view struct {
	Build, Lang, Theme string
	Band               string // sandbox or live; plain: strangers do not learn which
	Title              string // of the window
	Colour             string // of the band
	Start              string // start as JSON, for the scripts
}

func (v view) values() map[string]string {
	return map[string]string{"Build": v.Build, "Lang": v.Lang, "Theme": v.Theme, "Band": v.Band, "Title": v.Title, "Colour": v.Colour,
		"Start": v.Start}
}

// start is what the scripts know before their first request.
type start struct {
	Base    string      `json:"base"`
	Version string      `json:"version"`
	Mode    string      `json:"mode"`
	Band    string      `json:"band"`
	Lang    string      `json:"lang"`
	Role    parley.Role `json:"role"` // of the session; empty: not known
}

// pages maps the first part of each address in routes.js to the number of parts that may follow it.
var pages = map[string]int{
	"": 0, "channels": 2, "conversations": 2, "contacts": 1, "messages": 0, "phone": 1, "otp": 0, "webhooks": 1, "alerts": 0,
	"tokens": 0, "access": 1,
	"api-recipes": 1, "nodes": 0, "settings": 0, "login": 0,
}

// isPage reports whether a page exists at an address below /console/.
func isPage(address string) bool {
	first, rest, _ := strings.Cut(strings.Trim(address, "/"), "/")
	most, known := pages[first]
	return known && len(strings.FieldsFunc(rest, func(r rune) bool { return r == '/' })) <= most
}

// servePage serves index.html; its script decides which page to show. A browser that is not signed in is
// redirected to the sign-in page: here if that is certain, else by the script.
func (c *Console) servePage(w http.ResponseWriter, hr *http.Request, first string) {
	if !isRead(hr) {
		c.config.API.RefuseMethod(w, hr, "GET, HEAD")
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	// The simulated phone records voice messages.
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(self)")
	session, err := c.session(hr.Context(), hr)
	if first == loginPage {
		http.SetCookie(w, newCookie(probeCookie, "1", int(LinkLife.Seconds())))
	} else if sendsStrictCookies(hr) && err != nil {
		http.Redirect(w, hr, "/console/login?next="+url.QueryEscape(hr.URL.RequestURI()), http.StatusSeeOther)
		return
	}
	v, err := c.viewFor(hr, session.Role)
	var page []byte
	if err == nil {
		page, err = c.page.Fill(v.values())
	}
	if err != nil {
		c.config.API.Refuse(w, hr, err)
		return
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	if !isPage(strings.TrimPrefix(hr.URL.EscapedPath(), "/console/")) {
		w.WriteHeader(http.StatusNotFound)
	}
	w.Write(page) // the only error is a closed connection
}

// sendsStrictCookies reports whether the browser sends SameSite=Strict cookies with this request. After a
// link on another site it does not, and only the scripts can find out whether it is signed in.
func sendsStrictCookies(hr *http.Request) bool {
	from := hr.Header.Get("Sec-Fetch-Site")
	return from == "none" || from == "same-origin"
}

// viewFor makes the view of a page. The role is that of the session; empty: not known.
func (c *Console) viewFor(hr *http.Request, role parley.Role) (view, error) {
	assets, err := c.assets()
	if err != nil {
		return view{}, err
	}
	v := view{Build: assets.build, Lang: requestLanguage(hr), Theme: themes[0], Band: "plain", Title: "Parley"}
	if theme := cookieValue(hr, "theme"); slices.Contains(themes, theme) {
		v.Theme = theme
	}
	first := start{Base: "/console/" + v.Build + "/", Lang: v.Lang, Role: role}
	if role != "" { // strangers do not learn what runs here; the scripts ask once they are signed in
		first.Version, first.Mode = c.config.Version, c.config.Mode
		v.Band = "sandbox"
		if c.config.Live != nil && c.config.Live() {
			v.Band = "live"
		}
		v.Title = strings.ToUpper(v.Band) + " · Parley"
	}
	v.Colour, first.Band = colours[v.Band], v.Band
	text, err := json.Marshal(first)
	if err != nil {
		return v, fmt.Errorf("encode the start values of a page: %w", err)
	}
	v.Start = string(text)
	return v, nil
}

func requestLanguage(hr *http.Request) string {
	if language := cookieValue(hr, "lang"); slices.Contains(languages, language) {
		return language
	}
	return asset.Language(hr, languages)
}

func cookieValue(hr *http.Request, name string) string {
	c, err := hr.Cookie(name)
	if err != nil {
		return ""
	}
	return c.Value
}

// manifestPath is the same in all versions, because an installed app depends on it.
const manifestPath = "manifest.webmanifest"

// manifest is a W3C Web Application Manifest. Its shortcut opens the simulated phone in a window of its own, beside the
// program under test. The background is that of the pages, while the first one loads.
const manifest = `{"id":"/console/","name":"Parley","lang":%[1]q,"start_url":"/console/","scope":"/console/","display":"standalone",` +
	`"theme_color":%[2]q,"background_color":"#f5f6f8","icons":[%[3]s],` +
	`"shortcuts":[{"name":%[4]q,"url":"/console/phone?window=1","icons":[%[3]s]}]}`

// serveManifest needs no session; with one, the installed app has the colour of the band.
func (c *Console) serveManifest(w http.ResponseWriter, hr *http.Request) {
	session, err := c.session(hr.Context(), hr)
	var v view
	if err == nil || errors.Is(err, errSignedOut) {
		v, err = c.viewFor(hr, session.Role)
	}
	var texts map[string]map[string]string
	if err == nil {
		texts, err = readTexts(v.Lang)
	}
	if err != nil {
		c.config.API.Refuse(w, hr, err)
		return
	}
	icon := fmt.Sprintf(`{"src":"/console/%s/icon_%s.svg","sizes":"any","type":"image/svg+xml"}`, v.Build, v.Band)
	body := fmt.Appendf(nil, manifest, v.Lang, v.Colour, icon, texts["core"]["page.phone"])
	asset.New("application/manifest+json", asset.Revalidate, body).ServeHTTP(w, hr)
}

//go:embed ui
var embedded embed.FS

var contentTypes = map[string]string{
	".js":    "text/javascript; charset=utf-8",
	".css":   "text/css; charset=utf-8",
	".json":  "application/json",
	".svg":   "image/svg+xml",
	".png":   "image/png",
	".woff2": "font/woff2",
	".txt":   "text/plain; charset=utf-8",
}

// assets are the files that pages load, below a path that contains a hash of all of them. So browsers
// cache each file forever and never mix two versions.
type assets struct {
	build  string
	byPath map[string]*asset.File // below the build
}

const buildLength = 12 // hex digits of the hash

func newAssets(from fs.FS) (*assets, error) {
	a := &assets{byPath: map[string]*asset.File{}}
	hash := sha256.New()
	err := fs.WalkDir(from, "ui", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		name = strings.TrimPrefix(name, "ui/")
		fmt.Fprintf(hash, "%s %d\n", name, len(body))
		hash.Write(body)
		if kind, served := contentTypes[path.Ext(name)]; served {
			a.byPath[name] = asset.New(kind, asset.Immutable, body)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	a.build = hex.EncodeToString(hash.Sum(nil))[:buildLength]
	return a, nil
}

// isBuild reports whether the first part of a path is a build: this one, or an older one of a page that
// is still open.
func isBuild(first string) bool {
	return len(first) == buildLength && strings.Trim(first, "0123456789abcdef") == ""
}

// serveAsset serves a file by its path below /console/.
func (c *Console) serveAsset(w http.ResponseWriter, hr *http.Request, path string) {
	a, err := c.assets()
	if err != nil {
		c.config.API.Refuse(w, hr, err)
		return
	}
	name, current := strings.CutPrefix(path, a.build+"/")
	file := a.byPath[name]
	if !current || file == nil || !isRead(hr) {
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, "This file belongs to another version of the console. Reload the page.", http.StatusNotFound)
		return
	}
	// The shared worker runs under the policy of its own file, not under that of the page.
	w.Header().Set("Content-Security-Policy", policy)
	file.ServeHTTP(w, hr)
}

// readTexts reads the texts of one language, by section and key.
func readTexts(language string) (map[string]map[string]string, error) {
	body, err := embedded.ReadFile("ui/i18n/" + language + ".json")
	if err != nil {
		return nil, err
	}
	var texts map[string]map[string]string
	if err := json.Unmarshal(body, &texts); err != nil {
		return nil, fmt.Errorf("read texts in %s: %w", language, err)
	}
	return texts, nil
}
