package api

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

var updateDocs = flag.Bool("update-docs", false, "compress anew what of docs/vendor is part of the binary")

// TestPackedDocs holds the compressed files to those that they are made of.
func TestPackedDocs(t *testing.T) {
	for _, name := range []string{"swagger-ui.css", "swagger-ui-bundle.js"} {
		want, err := os.ReadFile(filepath.Join("docs/vendor", name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("docs/packed", name+".gz")
		got, err := unzipped(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if bytes.Equal(got, want) {
			continue // however it is compressed: another version of Go may do it otherwise
		}
		if !*updateDocs {
			t.Errorf("%s is not what it should be. Run: go generate ./internal/api", path)
			continue
		}
		var packed bytes.Buffer
		z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		z.Write(want)
		z.Close()
		if err := os.WriteFile(path, packed.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func unzipped(path string) ([]byte, error) {
	packed, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
