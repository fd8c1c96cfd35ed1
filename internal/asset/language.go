package asset

import (
	"net/http"

	"golang.org/x/text/language"
)

// Language returns the best of the known languages for a browser; the first one if none matches.
func Language(hr *http.Request, known []string) string {
	tags := make([]language.Tag, len(known))
	for i, name := range known {
		tags[i] = language.Make(name)
	}
	_, best := language.MatchStrings(language.NewMatcher(tags), hr.Header["Accept-Language"]...)
	return known[best]
}
