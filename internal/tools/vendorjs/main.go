// Command vendorjs writes the modules that the console serves: files of the front-end packages in its folder, with
// imports that a browser resolves without a build step. docs/console.md says how to upgrade a package.
//
//	go run ./internal/tools/vendorjs     at the root of the tree
//
// Invariant: every file is that of its package but for the addresses of imports, and SUMS has the checksum of each.
package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

const (
	packages = "internal/tools/vendorjs/packages"
	served   = "internal/console/ui/vendor"
	sumsName = "SUMS" // checksums of the files beside it, in the format of sha256sum
)

// modules maps the files that the console serves to their paths in the packages.
var modules = map[string]string{
	"preact.js":       "preact/dist/preact.module.js",
	"hooks.js":        "preact/hooks/dist/hooks.module.js",
	"htm.js":          "htm/dist/htm.module.js",
	"signals-core.js": "signals-core/dist/signals-core.module.js",
	"signals.js":      "signals/dist/signals.module.js",

	"preact.LICENSE.txt":       "preact/LICENSE",
	"htm.LICENSE.txt":          "htm/LICENSE",
	"signals-core.LICENSE.txt": "signals-core/LICENSE",
	"signals.LICENSE.txt":      "signals/LICENSE",
}

// addresses are the modules that modules import. A browser resolves a bare name only with an inline import map, which
// the console's policy forbids.
var addresses = map[string]string{
	"preact":               "./preact.js",
	"preact/hooks":         "./hooks.js",
	"@preact/signals-core": "./signals-core.js",
}

var (
	imported  = regexp.MustCompile(`(\bfrom|\bimport)"([^"]+)"`)
	sourceMap = regexp.MustCompile(`//# sourceMappingURL=\S+\s*$`) // source maps are not served
)

func main() {
	root := flag.String("root", ".", "the root of the tree")
	flag.Parse()
	if err := run(*root); err != nil {
		fmt.Fprintln(os.Stderr, "vendorjs:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	files, err := makeModules(filepath.Join(root, packages))
	if err != nil {
		return err
	}
	sums := "# Modules of the packages in " + packages + ", with their imports rewritten.\n"
	for _, name := range slices.Sorted(maps.Keys(files)) {
		sums += fmt.Sprintf("%x  %s\n", sha256.Sum256(files[name]), name)
	}
	files[sumsName] = []byte(sums)
	dir := filepath.Join(root, served)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// makeModules reads the served files from the packages, and rewrites every import to a file beside it.
func makeModules(packages string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, from := range modules {
		text, err := os.ReadFile(filepath.Join(packages, from))
		if err != nil {
			return nil, err
		}
		if filepath.Ext(name) == ".js" {
			if text, err = rewrite(text); err != nil {
				return nil, fmt.Errorf("%s: %w", from, err)
			}
		}
		files[name] = text
	}
	return files, nil
}

func rewrite(text []byte) ([]byte, error) {
	var unknown error
	text = imported.ReplaceAllFunc(text, func(found []byte) []byte {
		parts := imported.FindSubmatch(found)
		to, ok := addresses[string(parts[2])]
		if !ok {
			unknown = fmt.Errorf("it imports %q, which is not served", parts[2])
		}
		return []byte(string(parts[1]) + `"` + to + `"`)
	})
	return sourceMap.ReplaceAll(text, []byte("\n")), unknown
}
