package parley_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	yaml "github.com/oasdiff/yaml3"
)

// TestGitHubFiles checks what only GitHub runs: that it is YAML, that actions are pinned to commits, that its make targets exist,
// and that Dependabot looks at every module.
func TestGitHubFiles(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	uses := regexp.MustCompile(`uses: *(\S+)(.*)`)
	pinned := regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40}$`)
	target := regexp.MustCompile(`\bmake ([a-z-]+)|targets: \[(.*)\]`)
	files, actions := map[string]string{}, 0
	walk := func(ext, root string, do func(path, text string)) {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ext) || strings.Contains(path, "node_modules") {
				return err
			}
			text, err := os.ReadFile(path)
			do(filepath.ToSlash(path), string(text))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	walk(".yml", ".github", func(path, text string) {
		files[path] = text
		if err := yaml.Unmarshal([]byte(text), &map[string]any{}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		for _, found := range uses.FindAllStringSubmatch(text, -1) {
			actions++
			if !strings.HasPrefix(found[1], "./") && (!pinned.MatchString(found[1]) || !strings.Contains(found[2], "# v")) {
				t.Errorf("%s: %s is not pinned to a commit, with its version behind it", path, found[1])
			}
		}
		for _, found := range target.FindAllStringSubmatch(text, -1) {
			for name := range strings.FieldsSeq(strings.ReplaceAll(found[1]+found[2], ",", " ")) {
				if !strings.Contains(string(makefile), "\n"+name+":") {
					t.Errorf("%s: the Makefile has no target %s", path, name)
				}
			}
		}
	})
	if actions < 8 {
		t.Errorf("only %d actions were found: does the pattern still fit?", actions)
	}
	for _, name := range []string{"/go.mod", "/package-lock.json"} {
		walk(name[1:], ".", func(path, _ string) { checkDependabot(t, files, strings.TrimSuffix("/"+path, name)) })
	}
}

// checkDependabot wants a module to be named.
func checkDependabot(t *testing.T, files map[string]string, dir string) {
	t.Helper()
	if !regexp.MustCompile(`directories: \[.*` + dir + `[,\]/]`).MatchString(files[".github/dependabot.yml"]) {
		t.Errorf("Dependabot does not look at %s", dir)
	}
}

// TestOneVersion compares the version of the program with those that the API and the pages name.
func TestOneVersion(t *testing.T) {
	find := func(file, pattern string) []string {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var versions []string
		for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			versions = append(versions, found[1])
		}
		if len(versions) == 0 {
			t.Fatalf("%s names no version: does %s still fit?", file, pattern)
		}
		return versions
	}
	release := find("cmd/parley/version.go", `const release = "(.+)"`)[0]
	for file, pattern := range map[string]string{
		"internal/api/openapi.yaml": `(?m)^  version: (\S+)$`,
		"README.md":                 `\bparley[:-](\d+\.\d+\.\d+)`,
		"docs/install.md":           `\bparley[:-](\d+\.\d+\.\d+)`,
		"docs/deploy.md":            `\bparley[:-](\d+\.\d+\.\d+)`,
	} {
		for _, version := range find(file, pattern) {
			if version != release {
				t.Errorf("%s names version %s, and the source is %s", file, version, release)
			}
		}
	}
}
