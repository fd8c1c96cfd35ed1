package parley_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	codeBlock    = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	notInAnchor  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestLinks follows the links between the pages, to files and to headings.
func TestLinks(t *testing.T) {
	pages, anchors := map[string]string{}, map[string]map[string]bool{}
	eachSource(t, func(file, text string) {
		if filepath.Ext(file) != ".md" {
			return
		}
		text = codeBlock.ReplaceAllString(text, "")
		pages[file], anchors[file] = text, map[string]bool{}
		for _, h := range heading.FindAllStringSubmatch(text, -1) {
			anchors[file][strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
		}
	})
	for file, text := range pages {
		for _, link := range markdownLink.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(target, ":") || strings.HasPrefix(target, "/") { // elsewhere, or on a server
				continue
			}
			to := file
			if target != "" {
				to = path.Join(path.Dir(file), target)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which does not exist", file, link[1])
			} else if headings, isPage := anchors[to]; anchor != "" && isPage && !headings[anchor] {
				t.Errorf("%s links to %s: that page has no such heading", file, link[1])
			}
		}
	}
	if len(pages) < 20 {
		t.Errorf("only %d pages were found", len(pages))
	}
}

// TestBenchIsDocumented checks that docs/performance.md has a row for each group of make bench.
func TestBenchIsDocumented(t *testing.T) {
	program, err1 := os.ReadFile("internal/bench/main.go")
	page, err2 := os.ReadFile("docs/performance.md")
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	groups := regexp.MustCompile(`\{"([a-z-]+)", measure\w+\}`).FindAllStringSubmatch(string(program), -1)
	if len(groups) < 20 {
		t.Errorf("only %q were found: does the pattern still fit?", groups)
	}
	for _, group := range groups {
		if !strings.Contains(string(page), "| `"+group[1]+"` |") && group[1] != "versions" { // that one has a section
			t.Errorf("docs/performance.md has no row for the group %s", group[1])
		}
	}
}
