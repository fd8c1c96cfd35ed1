package console

import (
	"net/http"

	"parley/internal/api"
)

// The cookies of the console. The first one is what browsers keep over https, and most of them on
// http://localhost too. Some keep nothing secure there: these get the second, on this machine only,
// where nothing goes over a network. The probe tells which a browser is, before a link is used up.
const (
	secureName = "__Host-parley"
	homeName   = "parley"
	probeName  = "__Host-parley-probe"
)

func cookie(name, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: age,
		HttpOnly: true, Secure: name != homeName, SameSite: http.SameSiteStrictMode,
	}
}

func setProbe(w http.ResponseWriter) {
	http.SetCookie(w, cookie(probeName, "1", int(LinkLife.Seconds())))
}

func keepsSecure(hr *http.Request) bool {
	_, err := hr.Cookie(probeName)
	return err == nil
}

// setSession has the browser keep a session, in the form in which it can.
func setSession(w http.ResponseWriter, hr *http.Request, secret string) {
	name := secureName
	if _, err := hr.Cookie(secureName); err != nil && !keepsSecure(hr) {
		name = homeName
	}
	http.SetCookie(w, cookie(name, secret, int(sessionLife.Seconds())))
}

// secretOf returns the secret of a request's session; empty: it has none.
func secretOf(hr *http.Request) string {
	if c, err := hr.Cookie(secureName); err == nil {
		return c.Value
	}
	if c, err := hr.Cookie(homeName); err == nil && isHome(hr) {
		return c.Value
	}
	return ""
}

// isHome reports whether a browser on this machine calls it by its own name or address, in the clear.
func isHome(hr *http.Request) bool { return hr.TLS == nil && api.NamesThisMachine(hr.Host) }
