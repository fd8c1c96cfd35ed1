package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sumsName is the file with the checksums of the files beside it, in the format of sha256sum.
const sumsName = "SUMS"

// unpack copies the used files of a package, after checking its checksum.
func (p pack) unpack(tarball, dir string) error {
	data, err := os.ReadFile(tarball)
	if err != nil {
		return err
	}
	if sum := sumOf(data); sum != p.sum {
		return fmt.Errorf("%s has the sum %s, not %s", tarball, sum, p.sum)
	}
	all, err := untar(data)
	if err != nil {
		return fmt.Errorf("read %s: %w", tarball, err)
	}
	files := map[string][]byte{}
	for _, name := range p.files {
		if all[name] == nil {
			return fmt.Errorf("%s has no file %s", tarball, name)
		}
		files[name] = all[name]
	}
	head := fmt.Sprintf("# %s, %s, the files that are used, unchanged as published on npm.\n# sha256 of %s: %s\n", p.name, p.licence,
		p.tarball, p.sum)
	return write(dir, head, files)
}

func untar(data []byte) (map[string][]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		name, ok := strings.CutPrefix(h.Name, "package/")
		if h.Typeflag != tar.TypeReg || !ok || !filepath.IsLocal(name) {
			return nil, fmt.Errorf("%q is no file of a package", h.Name)
		}
		if files[name], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
}

// write replaces a directory by files and the list of their checksums.
func write(dir, head string, files map[string][]byte) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	sums := head
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := writeFile(filepath.Join(dir, name), files[name]); err != nil {
			return err
		}
		sums += sumOf(files[name]) + "  " + name + "\n"
	}
	return writeFile(filepath.Join(dir, sumsName), []byte(sums))
}

func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
