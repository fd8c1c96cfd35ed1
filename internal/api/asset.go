package api

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
	"time"
)

// asset is an embedded file, served with a validator so that browsers fetch it once, and compressed
// for those that take it so.
type asset struct {
	contentType string
	body        []byte
	tag         string        // of the body; the compressed form has one of its own
	compressed  func() []byte // made when first asked for: most servers are never asked
}

func newAsset(contentType string, body []byte) *asset {
	sum := sha256.Sum256(body)
	return &asset{
		contentType: contentType,
		body:        body,
		tag:         hex.EncodeToString(sum[:8]),
		compressed:  sync.OnceValue(func() []byte { return gzipped(body) }),
	}
}

func (a *asset) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", a.contentType)
	h.Set("Cache-Control", "no-cache") // ask each time: an upgrade must show at once
	h.Set("Vary", "Accept-Encoding")
	h.Set("X-Content-Type-Options", "nosniff")
	body, tag := a.body, a.tag
	if acceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body, tag = a.compressed(), tag+"-gzip"
	}
	h.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

func gzipped(body []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(body) // a buffer takes everything
	z.Close()
	return b.Bytes()
}

// acceptsGzip reports whether the caller takes gzip. "gzip;q=0" says that it does not.
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
