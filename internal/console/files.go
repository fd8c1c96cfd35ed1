package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"parley/internal/asset"
)

//go:embed ui
var embedded embed.FS

// contentTypes are those of the files that pages load; others are not served.
var contentTypes = map[string]string{
	".js":    "text/javascript; charset=utf-8",
	".css":   "text/css; charset=utf-8",
	".json":  "application/json",
	".svg":   "image/svg+xml",
	".png":   "image/png",
	".woff2": "font/woff2",
	".txt":   "text/plain; charset=utf-8",
}

// files are what pages load. They stand below an address that names this very set of them, so that
// browsers fetch each one once, and never mix those of two versions.
type files struct {
	build  string
	byPath map[string]*asset.File // below the build
}

// buildLength is how many letters of the hash name a build.
const buildLength = 12

func newFiles(from fs.FS) (*files, error) {
	f := &files{byPath: map[string]*asset.File{}}
	all := sha256.New()
	err := fs.WalkDir(from, "ui", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		name = strings.TrimPrefix(name, "ui/")
		fmt.Fprintf(all, "%s %d\n", name, len(body))
		all.Write(body)
		if kind, served := contentTypes[path.Ext(name)]; served {
			f.byPath[name] = asset.New(kind, asset.Kept, body)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	f.build = hex.EncodeToString(all.Sum(nil))[:buildLength]
	return f, nil
}

// namesBuild reports whether the first word of a path names a build: this one, or another one whose
// pages somebody still has open.
func namesBuild(first string) bool {
	return len(first) == buildLength && strings.Trim(first, "0123456789abcdef") == ""
}

// serveFile serves a file by its path below /console/.
func (c *Console) serveFile(w http.ResponseWriter, hr *http.Request, path string) {
	f, err := c.files()
	if err != nil {
		c.API.Refuse(w, hr, err)
		return
	}
	name, ours := strings.CutPrefix(path, f.build+"/")
	file := f.byPath[name]
	if !ours || file == nil || !isRead(hr) {
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, "This file is of another version of the console. Load the page again.", http.StatusNotFound)
		return
	}
	// What a worker may do is said by its own file.
	w.Header().Set("Content-Security-Policy", policy)
	file.ServeHTTP(w, hr)
}
