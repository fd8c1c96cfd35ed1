package asset

import (
	"net/http"

	"golang.org/x/text/language"
)

// Language returns which of the known languages the caller's browser asks for; the first, if it asks for none of them.
func Language(hr *http.Request, known []string) string {
	tags := make([]language.Tag, len(known))
	for i, name := range known {
		tags[i] = language.Make(name)
	}
	_, best := language.MatchStrings(language.NewMatcher(tags), hr.Header["Accept-Language"]...)
	return known[best]
}
