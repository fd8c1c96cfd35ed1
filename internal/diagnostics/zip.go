package diagnostics

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"time"
)

// Zip packs files. They are small and in memory already.
func Zip(files []File, at time.Time) ([]byte, error) {
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for _, f := range files {
		w, err := z.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: at})
		if err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Name, err)
		}
		if _, err := io.WriteString(w, f.Text); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Name, err)
		}
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("pack the files: %w", err)
	}
	return packed.Bytes(), nil
}
