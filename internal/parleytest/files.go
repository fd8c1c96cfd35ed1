package parleytest

import (
	"bytes"
	_ "embed"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"testing"
)

// hello is a voice note of ogg with opus in which nobody speaks for a second.
//
//go:embed hello.ogg
var hello []byte

// Files serves a picture, a film, a voice note and a text on loopback until the test ends: dot.png,
// film.mp4, hello.ogg and notes.txt.
func Files(t testing.TB) (url string) {
	t.Helper()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewRGBA(image.Rect(0, 0, 4, 3))); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{
		"/dot.png":   picture.Bytes(),
		"/film.mp4":  append([]byte("\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41"), make([]byte, 64)...),
		"/notes.txt": []byte("Milk, bread.\n"),
		"/hello.ogg": hello,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Write(file)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
