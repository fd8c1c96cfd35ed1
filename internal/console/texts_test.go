package console

import (
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tables reads the texts of one language, by section and key.
func tables(t *testing.T, language string) map[string]map[string]string {
	t.Helper()
	all, err := readTexts(language)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var placeholder = regexp.MustCompile(`\{\w+\}`)

// holes lists what a text leaves to be filled in, each once.
func holes(text string) []string {
	found := placeholder.FindAllString(text, -1)
	slices.Sort(found)
	return slices.Compact(found)
}

// TestLanguages holds that every language says everything, with the same things to fill in. A number
// may be left out of a form that is for one thing alone.
func TestLanguages(t *testing.T) {
	english := tables(t, languages[0])
	for _, language := range languages[1:] {
		other := tables(t, language)
		if got, want := slices.Sorted(maps.Keys(other)), slices.Sorted(maps.Keys(english)); !slices.Equal(got, want) {
			t.Errorf("%s has texts for %q, want %q", language, got, want)
		}
		for name, table := range english {
			for key, text := range table {
				translated, ok := other[name][key]
				switch {
				case !ok:
					t.Errorf("%s.json: %s has no %q", language, name, key)
				case strings.TrimSpace(translated) == "" && strings.TrimSpace(text) != "":
					t.Errorf("%s.json: %s: %q is empty", language, name, key)
				case !slices.Equal(holes(text), holes(translated)):
					t.Errorf("%s.json: %s: %q fills in %q, in English %q", language, name, key, holes(translated), holes(text))
				}
			}
			for key := range other[name] {
				if _, ok := table[key]; !ok {
					t.Errorf("%s.json: %s has %q, which is not in en.json", language, name, key)
				}
			}
		}
	}
}

var (
	tableOf = regexp.MustCompile(`(\w+) = [^;\n]*\btexts(?:In\(\w+, |\()'([\w-]+)'\)`)
	inserts = regexp.MustCompile(`\\\$\\\{.*?\\\}`) // of a template, once it is quoted
)

// TestTextsAreUsed holds that the scripts ask for no text that is not there, and that no text is left
// over. A key may be put together at run time: t(`step.${id}`) uses all that it can be.
func TestTextsAreUsed(t *testing.T) {
	english := tables(t, languages[0])
	used := map[string]map[string]bool{}
	for name := range english {
		used[name] = map[string]bool{}
	}
	err := fs.WalkDir(embedded, "ui", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Ext(file) != ".js" || strings.HasPrefix(file, "ui/vendor/") {
			return err
		}
		body, err := embedded.ReadFile(file)
		if err != nil {
			return err
		}
		for _, found := range tableOf.FindAllStringSubmatch(string(body), -1) {
			variable, name := found[1], found[2]
			table, ok := english[name]
			if !ok {
				t.Errorf("%s: no section %q", file, name)
				continue
			}
			direct := regexp.MustCompile(`\b` + variable + `\('([^']+)'`)
			for _, call := range direct.FindAllStringSubmatch(string(body), -1) {
				if _, ok := table[call[1]]; !ok {
					t.Errorf("%s: no text %q in the section %s", file, call[1], name)
				}
			}
			for key := range table {
				if strings.Contains(string(body), "'"+key+"'") {
					used[name][key] = true
				}
			}
			templates := regexp.MustCompile(`\b` + variable + "\\(`([^`]+)`")
			for _, call := range templates.FindAllStringSubmatch(string(body), -1) {
				fits := regexp.MustCompile("^" + inserts.ReplaceAllString(regexp.QuoteMeta(call[1]), ".+") + "$")
				for key := range table {
					if fits.MatchString(key) {
						used[name][key] = true
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, table := range english {
		for _, key := range slices.Sorted(maps.Keys(table)) {
			if !used[name][key] {
				t.Errorf("en.json: %s: nothing uses %q", name, key)
			}
		}
	}
}
