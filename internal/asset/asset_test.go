package asset_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/internal/asset"
)

func TestFile(t *testing.T) {
	body := strings.Repeat("all the same ", 100)
	t.Run("as it is", func(t *testing.T) { testFile(t, asset.New("text/plain", asset.Immutable, []byte(body)), body) })
	t.Run("compressed", func(t *testing.T) {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write([]byte(body))
		z.Close()
		testFile(t, asset.NewCompressed("text/plain", asset.Immutable, packed.Bytes()), body)
	})
}

func testFile(t *testing.T, file *asset.File, body string) {
	ask := func(headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/x", nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		file.ServeHTTP(w, r)
		return w
	}
	plain := ask("Accept-Encoding", "gzip;q=0")
	if plain.Body.String() != body || plain.Header().Get("Content-Encoding") != "" ||
		plain.Header().Get("Cache-Control") != asset.Immutable {
		t.Errorf("plain: %v", plain.Header())
	}
	packed := ask("Accept-Encoding", "br, gzip")
	z, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(z); err != nil || string(got) != body {
		t.Errorf("unpacked it is %d bytes, %v", len(got), err)
	}
	if packed.Header().Get("ETag") == plain.Header().Get("ETag") || packed.Header().Get("Vary") != "Accept-Encoding" {
		t.Errorf("caches would take one form for the other: %v", packed.Header())
	}
	if again := ask("If-None-Match", plain.Header().Get("ETag")); again.Code != http.StatusNotModified {
		t.Errorf("a caller that has it gets %d", again.Code)
	}
}
