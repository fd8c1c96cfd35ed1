// Command vendorjs copies the files that we use of front-end packages into the tree, unchanged, with their licences and
// checksums. Beside them it writes the modules that the console serves: the same files, with imports that a browser
// resolves without a build step.
//
//	npm pack preact@10.29.8 htm@3.1.1 …            into some directory, then, at the root of the tree,
//	go run ./internal/tools/vendorjs -from DIR     copy their files and make the modules
//	go run ./internal/tools/vendorjs               only make the modules again
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// pack is a published package. To upgrade it, change its line here and run the command.
type pack struct {
	name    string // and version
	licence string
	tarball string
	sum     string // SHA-256 of the tarball
	dir     string // where its files are in the tree
	files   []string
}

const (
	packages = "internal/tools/vendorjs/packages"
	served   = "internal/console/ui/vendor"
)

var packs = []pack{
	{"preact 10.29.8", "MIT", "preact-10.29.8.tgz", "b18cb0a457f3d43c7bb30391a74ade7d13e03bc6e77915e061c70c0fe1123299", packages + "/preact",
		[]string{"LICENSE", "dist/preact.module.js", "hooks/dist/hooks.module.js"}},
	{"htm 3.1.1", "Apache-2.0", "htm-3.1.1.tgz", "2425b9bee11409177bcabc7f32e319926fc6690c1701c0b257c88bdff2d5ba90", packages + "/htm",
		[]string{"LICENSE", "dist/htm.module.js"}},
	{"@preact/signals-core 1.14.5", "MIT", "preact-signals-core-1.14.5.tgz",
		"94c421ac996214c94f532fb4c43d8ede048a16df0cd9538ffb965174dbe8daba", packages + "/signals-core",
		[]string{"LICENSE", "dist/signals-core.module.js"}},
	{"@preact/signals 2.11.4", "MIT", "preact-signals-2.11.4.tgz", "66ea8221dd8aaa0da2365d49c3f116b071d56cfb63b2e16c072c6b4e08a928b7",
		packages + "/signals",
		[]string{"LICENSE", "dist/signals.module.js"}},
	// For tests only: it finds accessibility problems.
	{"axe-core 4.14.0", "MPL-2.0", "axe-core-4.14.0.tgz", "2277b0a3ef47af9b52497faa3e71598e86e0a0e5e6eb295207a5657ede4709af",
		"internal/console/browsertest/axe",
		[]string{"LICENSE", "LICENSE-3RD-PARTY.txt", "axe.min.js"}},
	// The reference of the API at /docs.
	{"swagger-ui-dist 5.34.1", "Apache-2.0", "swagger-ui-dist-5.34.1.tgz",
		"8e7286de0230e431fc8a5a75490d28117af3d0c306413b6f9e17f7bb55045fb6", "internal/api/docs/vendor",
		[]string{"LICENSE", "NOTICE", "swagger-ui-bundle.js", "swagger-ui-bundle.js.LICENSE.txt", "swagger-ui.css"}},
}

func main() {
	root := flag.String("root", ".", "the root of the tree")
	from := flag.String("from", "", "the directory with the tarballs; empty: the packages stay as they are")
	flag.Parse()
	if err := run(*root, *from); err != nil {
		fmt.Fprintln(os.Stderr, "vendorjs:", err)
		os.Exit(1)
	}
}

func run(root, from string) error {
	if from != "" {
		for _, p := range packs {
			if err := p.unpack(filepath.Join(from, p.tarball), filepath.Join(root, p.dir)); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	files, err := makeModules(filepath.Join(root, packages))
	if err != nil {
		return err
	}
	return write(filepath.Join(root, served), "# Modules of the packages in "+packages+", with their imports rewritten.\n", files)
}
