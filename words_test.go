package parley_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	maxColumns  = 140
	maxFunction = 80 // lines
)

// oldWords are words that docs/glossary.md replaces.
var oldWords = regexp.MustCompile(`(?i)\b(told|whoever|anew|mends?|mended|mending|stands)\b`)

// eachSource calls do for every file of the repository that people write.
func eachSource(t *testing.T, do func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch d.Name() {
			case ".git", "bin", "dist", "vendor", "packages", "packed", "node_modules":
				return filepath.SkipDir
			}
			return nil
		}
		switch filepath.Ext(path) {
		case ".go", ".js", ".css", ".md", ".sql", ".txt", ".yaml", ".json", ".txtar", ".html":
		default:
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			do(filepath.ToSlash(path), string(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPlainWords finds words that the glossary replaces.
func TestPlainWords(t *testing.T) {
	eachSource(t, func(path, text string) {
		if path == "docs/glossary.md" || path == "words_test.go" {
			return
		}
		for i, line := range strings.Split(text, "\n") {
			if found := oldWords.FindString(line); found != "" {
				t.Errorf("%s:%d: the word %q; see docs/glossary.md", path, i+1, found)
			}
		}
	})
}

// rejectedWords are the column "Not" of the glossary, as a pattern.
func rejectedWords(t *testing.T) *regexp.Regexp {
	t.Helper()
	text, err := os.ReadFile("docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) == 6 && !strings.Contains(line, "| Not |") {
			for word := range strings.SplitSeq(cells[3], ",") {
				if word = strings.Trim(word, " -"); word != "" {
					words = append(words, regexp.QuoteMeta(word))
				}
			}
		}
	}
	if len(words) < 20 {
		t.Fatalf("the glossary rejects only %q: does its table still have the column Not?", words)
	}
	return regexp.MustCompile(`(?i)\b(` + strings.Join(words, "|") + `)\b`)
}

// jsNames finds the names that JavaScript declares, and its comments.
var jsNames = regexp.MustCompile(`(?m)\b(?:const|let|var|function|class) +(\w+)|(//.*$|/\*(?s:.*?)\*/)`)

// Between two words of a name: lastSeen, URLPath, last_seen.
var (
	wordBreak    = regexp.MustCompile(`([a-z0-9])([A-Z])|_`)
	acronymBreak = regexp.MustCompile(`([A-Z])([A-Z][a-z])`)
)

// TestGlossary finds words that the glossary rejects in the names and comments of Go and JavaScript.
func TestGlossary(t *testing.T) {
	rejected := rejectedWords(t)
	check := func(path, text string) {
		if found := rejected.FindString(acronymBreak.ReplaceAllString(wordBreak.ReplaceAllString(text, "$1 $2"), "$1 $2")); found != "" {
			t.Errorf("%s: the word %q in %q; see docs/glossary.md", path, found, text)
		}
	}
	eachSource(t, func(path, text string) {
		switch {
		case filepath.Ext(path) == ".js" && !strings.HasSuffix(path, ".min.js"):
			for _, found := range jsNames.FindAllStringSubmatch(text, -1) {
				check(path, found[1]+found[2])
			}
		case filepath.Ext(path) == ".go":
			file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments)
			if err != nil {
				t.Error(err)
				return
			}
			for _, c := range file.Comments {
				check(path, c.Text())
			}
			foreign := map[*ast.Ident]bool{} // behind a dot: perhaps a name of another package
			names := map[string]bool{}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					foreign[n.Sel] = true
				case *ast.Ident:
					if !foreign[n] {
						names[n.Name] = true
					}
				}
				return true
			})
			for name := range names {
				check(path, name)
			}
		}
	})
}

// TestShortLines finds lines of code that are too long to read.
func TestShortLines(t *testing.T) {
	eachSource(t, func(path, text string) {
		if ext := filepath.Ext(path); ext != ".go" && ext != ".js" || strings.HasSuffix(path, ".min.js") {
			return
		}
		for i, line := range strings.Split(text, "\n") {
			if n := utf8.RuneCountInString(line); n > maxColumns {
				t.Errorf("%s:%d: %d columns, more than %d", path, i+1, n, maxColumns)
			}
		}
	})
}

// TestShortFunctions finds functions that are too long to read.
func TestShortFunctions(t *testing.T) {
	eachSource(t, func(path, text string) {
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, text, 0)
		if err != nil {
			t.Error(err)
			return
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				if n := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1; n > maxFunction {
					t.Errorf("%s: %s has %d lines, more than %d", path, f.Name.Name, n, maxFunction)
				}
			}
		}
	})
}
