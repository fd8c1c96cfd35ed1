package console

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// module is what a script asks for while it is loaded, by paths below ui.
type module struct {
	imports []string
	sheets  []string
	texts   []string // names of tables: of each, the one in the reader's language
}

// What a script asks for is read off how ours are written; the browser's tests compare it with what a
// parser finds.
var (
	importing  = regexp.MustCompile(`from ?['"](\.[^'"]+)['"]`)
	callsSheet = regexp.MustCompile(`css\('([^']+)'\)`)
	callsTexts = regexp.MustCompile(`texts\('([\w-]+)'\)`)
	routing    = regexp.MustCompile(`path: '([^']*)', load: \(\) => import\('\./([^']+)'\)`)
)

func readModule(name string, body []byte) (m module) {
	for _, found := range importing.FindAllSubmatch(body, -1) {
		m.imports = append(m.imports, path.Join(path.Dir(name), string(found[1])))
	}
	for _, found := range callsSheet.FindAllSubmatch(body, -1) {
		m.sheets = append(m.sheets, string(found[1]))
	}
	for _, found := range callsTexts.FindAllSubmatch(body, -1) {
		m.texts = append(m.texts, string(found[1]))
	}
	return m
}

// page is a page of the console: where it is, and what it is made of. The frame names all of that: a browser
// that learned of each file from the one that needs it would ask for them one after the other.
type page struct {
	address []string // its words; ":name" is any, ":name?" any or none
	entry   string   // the module that is the page itself
	module
}

// readPages reads the table of pages. Its last one is for addresses where no page is.
func readPages(modules map[string]module, routes []byte) (all []page) {
	for _, found := range routing.FindAllSubmatch(routes, -1) {
		entry := string(found[2])
		all = append(all, page{words(string(found[1])), entry, everything(modules, "app.js", entry)})
	}
	return all
}

func words(address string) []string {
	return strings.FieldsFunc(address, func(r rune) bool { return r == '/' })
}

func (p page) isAt(words []string) bool {
	for i, want := range p.address {
		switch {
		case i == len(words):
			return strings.HasSuffix(want, "?")
		case want[0] != ':' && want != words[i]:
			return false
		}
	}
	return len(words) <= len(p.address)
}

// everything collects what modules need, and what those need, each once.
func everything(modules map[string]module, entries ...string) (all module) {
	var visit func(name string)
	visit = func(name string) {
		if slices.Contains(all.imports, name) {
			return
		}
		all.imports = append(all.imports, name)
		m := modules[name]
		all.sheets = withNew(all.sheets, m.sheets)
		all.texts = withNew(all.texts, m.texts)
		for _, needed := range m.imports {
			visit(needed)
		}
	}
	for _, name := range entries {
		visit(name)
	}
	return all
}

func withNew(list, more []string) []string {
	for _, name := range more {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}
