// Package asset serves embedded files.
//
// Invariants:
//
//   - Every file has a validator, so that browsers fetch it once.
//   - A client that accepts gzip gets the compressed form, with a validator of its own.
package asset

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/language"
)

const (
	// Revalidate makes browsers revalidate each time: an upgrade shows at once.
	Revalidate = "no-cache"
	// Immutable makes browsers never revalidate: for files whose URL changes with their content.
	Immutable = "public, max-age=31536000, immutable"
)

// File is an embedded file.
type File struct {
	contentType string
	cache       string
	tag         string        // of the body; the compressed form has one of its own
	body        func() []byte // one form is embedded, the other is created at
	compressed  func() []byte // its first request
}

// New returns a file to serve. The cache is Revalidate or Immutable.
func New(contentType, cache string, body []byte) *File {
	compressed := sync.OnceValue(func() []byte { return gzipped(body) })
	return &File{contentType, cache, newTag(body), func() []byte { return body }, compressed}
}

// NewCompressed is New for a file that is embedded as gzip because it is large.
func NewCompressed(contentType, cache string, compressed []byte) *File {
	body := sync.OnceValue(func() []byte { return mustUnzip(compressed) })
	return &File{contentType, cache, newTag(compressed), body, func() []byte { return compressed }}
}

func newTag(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

func (f *File) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.contentType)
	h.Set("Cache-Control", f.cache)
	h.Set("Vary", "Accept-Encoding")
	h.Set("X-Content-Type-Options", "nosniff")
	form, tag := f.body, f.tag
	if acceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		form, tag = f.compressed, tag+"-gzip"
	}
	h.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(form()))
}

func gzipped(body []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(body) // a buffer never fails
	z.Close()
	return b.Bytes()
}

// mustUnzip panics on a damaged file, which cannot happen in a tested binary.
func mustUnzip(compressed []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		panic(err)
	}
	body, err := io.ReadAll(z)
	if err != nil {
		panic(err)
	}
	return body
}

// acceptsGzip reports whether the client accepts gzip. "gzip;q=0" means no.
func acceptsGzip(r *http.Request) bool {
	for _, coding := range strings.Split(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(coding, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			weight = strings.ReplaceAll(weight, " ", "")
			return strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
		}
	}
	return false
}

// Language returns the best of the known languages for a browser; the first one if none matches.
func Language(hr *http.Request, known []string) string {
	tags := make([]language.Tag, len(known))
	for i, name := range known {
		tags[i] = language.Make(name)
	}
	_, best := language.MatchStrings(language.NewMatcher(tags), hr.Header["Accept-Language"]...)
	return known[best]
}
