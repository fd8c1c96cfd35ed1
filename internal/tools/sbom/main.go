// Command sbom writes what a program of ours contains, every module with its version and checksum, as CycloneDX JSON:
//
//	go run ./internal/tools/sbom -version 1.0.0 -o dist/parley.cdx.json dist/parley-1.0.0-linux-amd64
//
// It reads the program itself, so it lists what was linked, and not what go.mod might bring.
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	version := flag.String("version", "", "the version of the program")
	out := flag.String("o", "", "the file to write")
	flag.Parse()
	if *version == "" || *out == "" || flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: sbom -version VERSION -o FILE PROGRAM")
		os.Exit(2)
	}
	if err := run(*version, *out, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(version, out, program string) error {
	bom, err := describe(version, program)
	if err != nil {
		return err
	}
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	err = cdx.NewBOMEncoder(file, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

// describe lists the modules of a program. It has no time and no serial number, so that it is the same on every machine.
func describe(version, program string) (*cdx.BOM, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	main := cdx.Component{Type: cdx.ComponentTypeApplication, BOMRef: "parley", Name: "parley", Version: version,
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}}
	standard := strings.TrimPrefix(info.GoVersion, "go")
	components := []cdx.Component{{Type: cdx.ComponentTypeLibrary, BOMRef: "std", Name: "std", Version: standard,
		PackageURL: "pkg:golang/std@" + standard}}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		url := "pkg:golang/" + module.Path + "@" + module.Version
		c := cdx.Component{Type: cdx.ComponentTypeLibrary, BOMRef: url, Name: module.Path, Version: module.Version, PackageURL: url}
		if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:")); err == nil && len(sum) > 0 {
			c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}} // of the module's files, as in go.sum
		}
		components = append(components, c)
	}
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &main}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	return bom, nil
}
