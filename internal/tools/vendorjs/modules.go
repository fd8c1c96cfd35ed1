package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
