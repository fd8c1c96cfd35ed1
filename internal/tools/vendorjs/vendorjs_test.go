package main

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

// TestVendoredFiles checks that the files of every package are as they were published, and the modules as they were
// made: every file that is listed, unchanged, and none besides.
func TestVendoredFiles(t *testing.T) {
	dirs := []string{served}
	for _, p := range packs {
		dirs = append(dirs, p.dir)
		head, err := os.ReadFile(filepath.Join(root, p.dir, sumsName))
		if err != nil || !bytes.Contains(head, []byte(p.sum)) {
			t.Errorf("%s is not here as it is listed: %v", p.name, err)
		}
	}
	for _, p := range packs {
		if got := slices.Sorted(maps.Keys(sums(t, filepath.Join(root, p.dir)))); !slices.Equal(got, slices.Sorted(slices.Values(p.files))) {
			t.Errorf("of %s there are %v, want %v", p.name, got, p.files)
		}
	}
	for _, dir := range dirs {
		listed := sums(t, filepath.Join(root, dir))
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || d.Name() == sumsName {
				return err
			}
			name, err := filepath.Rel(filepath.Join(root, dir), path)
			if err != nil {
				return err
			}
			body, err := os.ReadFile(path)
			switch {
			case err != nil:
				return err
			case listed[name] == "":
				t.Errorf("%s is not listed in SUMS", path)
			case sumOf(body) != listed[name]:
				t.Errorf("%s was changed", path)
			}
			delete(listed, name)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for name := range listed {
			t.Errorf("%s/%s is missing", dir, name)
		}
	}
}

// sums reads the list of a directory, by name.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	list, err := os.ReadFile(filepath.Join(dir, sumsName))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for line := range strings.Lines(string(list)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("SUMS has a line that is no sum: %q", line)
		}
		listed[name] = sum
	}
	return listed
}

// TestModulesAreMadeOfThePackages checks that what is served is what the command makes.
func TestModulesAreMadeOfThePackages(t *testing.T) {
	files, err := makeModules("packages")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, served, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what was made of its package: run go generate ./internal/console (%v)", name, err)
		}
		for _, m := range regexp.MustCompile(`\b(?:from|import)"([^"]*)"`).FindAllSubmatch(want, -1) {
			if to, ok := strings.CutPrefix(string(m[1]), "./"); !ok || files[to] == nil {
				t.Errorf("%s imports %q, which is no file beside it", name, m[1])
			}
		}
	}
}

func TestUnknownImportIsRejected(t *testing.T) {
	if _, err := rewrite([]byte(`import{x}from"elsewhere";`)); err == nil {
		t.Error("the import was taken")
	}
}
