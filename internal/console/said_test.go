package console

import (
	"slices"
	"strings"
	"testing"

	"parley/internal/doctor"
)

// TestCasesHaveTexts holds that everything that the server can say of itself can be said in every language,
// with nothing to fill in that it does not give, and that no such text is left over.
func TestCasesHaveTexts(t *testing.T) {
	for _, language := range languages {
		table := tables(t, language)["overview"]
		wanted := map[string]bool{}
		for _, c := range doctor.Cases() {
			key := "case." + c.String()
			wanted[key] = true
			text, ok := table[key]
			if !ok {
				t.Errorf("%s/overview.json has no %q", language, key)
			}
			for _, hole := range holes(text) {
				name := strings.Trim(hole, "{}")
				if name == "n" {
					name = "count" // what decides between one and many
				}
				if !slices.Contains(c.Values(), name) || name == "reason" { // which follows by itself
					t.Errorf("%s/overview.json: %q fills in %s, of which the server gives none", language, key, hole)
				}
			}
			remedy := "remedy." + c.String()
			wanted[remedy] = c.HasRemedy()
			if _, ok := table[remedy]; ok != c.HasRemedy() {
				t.Errorf("%s/overview.json has %q: %v", language, remedy, ok)
			}
		}
		for key := range table {
			if (strings.HasPrefix(key, "case.") || strings.HasPrefix(key, "remedy.")) && !wanted[key] {
				t.Errorf("%s/overview.json has %q, which the server never says", language, key)
			}
		}
	}
}
