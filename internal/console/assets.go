package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"parley/internal/asset"
)

//go:embed ui
var embedded embed.FS

var contentTypes = map[string]string{
	".js":    "text/javascript; charset=utf-8",
	".css":   "text/css; charset=utf-8",
	".json":  "application/json",
	".svg":   "image/svg+xml",
	".png":   "image/png",
	".woff2": "font/woff2",
	".txt":   "text/plain; charset=utf-8",
}

// assets are the files that pages load, below a path that contains a hash of all of them. So browsers
// cache each file forever and never mix two versions.
type assets struct {
	build  string
	byPath map[string]*asset.File // below the build
}

const buildLength = 12 // hex digits of the hash

func newAssets(from fs.FS) (*assets, error) {
	a := &assets{byPath: map[string]*asset.File{}}
	hash := sha256.New()
	err := fs.WalkDir(from, "ui", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		name = strings.TrimPrefix(name, "ui/")
		fmt.Fprintf(hash, "%s %d\n", name, len(body))
		hash.Write(body)
		if kind, served := contentTypes[path.Ext(name)]; served {
			a.byPath[name] = asset.New(kind, asset.Immutable, body)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	a.build = hex.EncodeToString(hash.Sum(nil))[:buildLength]
	return a, nil
}

// isBuild reports whether the first part of a path is a build: this one, or an older one of a page that
// is still open.
func isBuild(first string) bool {
	return len(first) == buildLength && strings.Trim(first, "0123456789abcdef") == ""
}

// serveAsset serves a file by its path below /console/.
func (c *Console) serveAsset(w http.ResponseWriter, hr *http.Request, path string) {
	a, err := c.assets()
	if err != nil {
		c.config.API.Refuse(w, hr, err)
		return
	}
	name, current := strings.CutPrefix(path, a.build+"/")
	file := a.byPath[name]
	if !current || file == nil || !isRead(hr) {
		w.Header().Set("Cache-Control", "no-store")
		http.Error(w, "This file belongs to another version of the console. Reload the page.", http.StatusNotFound)
		return
	}
	// The shared worker runs under the policy of its own file, not under that of the page.
	w.Header().Set("Content-Security-Policy", policy)
	file.ServeHTTP(w, hr)
}

// readTexts reads the texts of one language, by section and key.
func readTexts(language string) (map[string]map[string]string, error) {
	body, err := embedded.ReadFile("ui/i18n/" + language + ".json")
	if err != nil {
		return nil, err
	}
	var texts map[string]map[string]string
	if err := json.Unmarshal(body, &texts); err != nil {
		return nil, fmt.Errorf("read texts in %s: %w", language, err)
	}
	return texts, nil
}
