package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
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

// vendored are the packages in the tree, with the SHA-256 of what was published and the files that are used of it.
var vendored = map[string]struct {
	sum   string
	files []string
}{
	packages + "/preact": {"b18cb0a457f3d43c7bb30391a74ade7d13e03bc6e77915e061c70c0fe1123299",
		[]string{"LICENSE", "dist/preact.module.js", "hooks/dist/hooks.module.js"}},
	packages + "/htm": {"2425b9bee11409177bcabc7f32e319926fc6690c1701c0b257c88bdff2d5ba90",
		[]string{"LICENSE", "dist/htm.module.js"}},
	packages + "/signals-core": {"94c421ac996214c94f532fb4c43d8ede048a16df0cd9538ffb965174dbe8daba",
		[]string{"LICENSE", "dist/signals-core.module.js"}},
	packages + "/signals": {"66ea8221dd8aaa0da2365d49c3f116b071d56cfb63b2e16c072c6b4e08a928b7",
		[]string{"LICENSE", "dist/signals.module.js"}},
	// For tests only: it finds accessibility problems.
	"internal/console/browsertest/axe": {"2277b0a3ef47af9b52497faa3e71598e86e0a0e5e6eb295207a5657ede4709af",
		[]string{"LICENSE", "LICENSE-3RD-PARTY.txt", "axe.min.js"}},
	// The reference of the API at /docs.
	"internal/api/docs/vendor": {"8e7286de0230e431fc8a5a75490d28117af3d0c306413b6f9e17f7bb55045fb6",
		[]string{"LICENSE", "NOTICE", "swagger-ui-bundle.js", "swagger-ui-bundle.js.LICENSE.txt", "swagger-ui.css"}},
}

// TestVendoredFiles checks that the files of every package are as they were published, and the modules as they were
// made: every file that is listed, unchanged, and none besides.
func TestVendoredFiles(t *testing.T) {
	dirs := []string{served}
	for dir, p := range vendored {
		dirs = append(dirs, dir)
		head, err := os.ReadFile(filepath.Join(root, dir, sumsName))
		if err != nil || !bytes.Contains(head, []byte(p.sum)) {
			t.Errorf("%s is not here as it is listed: %v", dir, err)
		}
		if got := slices.Sorted(maps.Keys(sums(t, filepath.Join(root, dir)))); !slices.Equal(got, slices.Sorted(slices.Values(p.files))) {
			t.Errorf("in %s there are %v, want %v", dir, got, p.files)
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
			case fmt.Sprintf("%x", sha256.Sum256(body)) != listed[name]:
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
