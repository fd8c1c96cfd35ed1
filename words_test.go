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
