package media

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/safehttp"
)

func TestImage(t *testing.T) {
	l := open(t)
	for name, test := range map[string]struct {
		data          []byte
		mime          string
		width, height int
	}{
		"/a.png":  {toPNG(t, halves(300, 200)), "image/png", 300, 200},
		"/a.jpg":  {toJPEG(t, halves(200, 300)), "image/jpeg", 200, 300},
		"/a.gif":  {toGIF(t, halves(40, 30)), "image/gif", 40, 30},
		"/a.webp": {ffmpeg(t, "a.webp", "-f", "lavfi", "-i", "testsrc=size=320x240", "-frames:v", "1"), "image/webp", 320, 240},
		"/l.webp": {ffmpeg(t, "l.webp", "-f", "lavfi", "-i", "testsrc=size=33x21", "-frames:v", "1", "-lossless", "1"), "image/webp",
			33, 21},
		"/alpha.webp": {ffmpeg(t, "alpha.webp", "-f", "lavfi", "-i", "color=red@0.5:size=64x48,format=yuva420p", "-frames:v", "1"),
			"image/webp", 64, 48},
		"/anim.webp": {ffmpeg(t, "anim.webp", "-f", "lavfi", "-i", "testsrc=size=120x80:rate=5:duration=1", "-c:v", "libwebp_anim"),
			"image/webp", 120, 80},
		"/wide.png": {toPNG(t, halves(3000, 2)), "image/png", 3000, 2},
		"/lie.txt":  {toPNG(t, halves(10, 10)), "image/png", 10, 10},
	} {
		url := serve(t, map[string][]byte{name: test.data}) + name
		m, err := l.Image(t.Context(), Source{URL: url, MIME: "image/tiff"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		sum := sha256.Sum256(test.data)
		if m.MIME != test.mime || m.Width != test.width || m.Height != test.height || m.Source != url || m.Filename != name[1:] ||
			m.Size != int64(len(test.data)) || !bytes.Equal(m.SHA256, sum[:]) || len(m.MediaKey) != 32 {
			t.Errorf("%s: %+v", name, m)
		}
		thumb, err := jpeg.DecodeConfig(bytes.NewReader(m.Thumbnail))
		if err != nil || max(thumb.Width, thumb.Height) != min(thumbnailSize, max(test.width, test.height)) || len(m.Thumbnail) > 10<<10 {
			t.Errorf("%s: thumbnail %dx%d, %d bytes, %v", name, thumb.Width, thumb.Height, len(m.Thumbnail), err)
		}
	}
}

func TestImageRefuses(t *testing.T) {
	l := open(t)
	lying := ffmpeg(t, "a.webp", "-f", "lavfi", "-i", "color=red:size=64x64,format=yuva420p", "-frames:v", "1")
	if at := bytes.Index(lying, []byte("VP8 ")); at > 0 { // the frame is larger than the file says
		binary.LittleEndian.PutUint16(lying[at+8+6:], 16383)
		binary.LittleEndian.PutUint16(lying[at+8+8:], 16383)
	}
	files := map[string][]byte{
		"/page":    []byte("<!DOCTYPE html><html><body>Not found</body></html>"),
		"/svg":     []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`),
		"/svg2":    []byte(`<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>`),
		"/pdf":     []byte("%PDF-1.7\n"),
		"/gifjs":   []byte("GIF89a\x09\x00\x09\x00<script>alert(1)</script>"),
		"/pnghtml": []byte("\x89PNG\r\n\x1a\n<html><script>alert(1)</script></html>"),
		"/jpegphp": []byte("\xff\xd8\xff\xe0<?php system($_GET['c']); ?>"),
		"/cut":     toJPEG(t, halves(500, 500))[:1500],
		"/huge":    hugePNG(t),
		"/lying":   lying,
		"/riff":    []byte("RIFF\x10\x00\x00\x00WEBPVP8X\xff\xff\xff\xff"),
		"/empty":   {},
		"/heic":    []byte("\x00\x00\x00\x18ftypheic\x00\x00\x00\x00"),
		"/bmp":     []byte("BM" + strings.Repeat("\x00", 60)),
		"/sound":   []byte("OggS\x00\x02"),
		"/text":    []byte("hello"),
		"/gzipped": []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00"),
	}
	base := serve(t, files)
	for path, says := range map[string]string{
		"/page": "gives text/html, not an image", "/svg": "gives image/svg+xml, not an image", "/svg2": "gives image/svg+xml",
		"/pdf":   "gives application/pdf",
		"/gifjs": "damaged or not really an image", "/pnghtml": "damaged or not really an image",
		"/jpegphp": "damaged or not really an image",
		"/cut":     "damaged", "/huge": "too many pixels. Send at most 40 million", "/lying": "too many pixels", "/riff": "damaged",
		"/empty": "is empty",
		"/heic":  "gives image/heic", "/bmp": "gives image/bmp", "/sound": "not an image", "/text": "gives text/plain",
		"/gzipped": "gives application/x-gzip",
		"/missing": "The image could not be fetched. The server answered with status 404",
	} {
		_, err := l.Image(t.Context(), Source{URL: base + path})
		mustRefuse(t, l, err, says)
	}
	for address, says := range map[string]string{
		"ftp://example.com/a.png":    "must begin with http",
		"http://10.0.0.1/a.png":      "leads to a private or reserved network",
		"http://127.0.0.1:1/a.png":   "could not be reached",
		"http://user@127.0.0.1/a":    "user name",
		"http://169.254.169.254/x/y": "leads to a private or reserved network",
	} {
		_, err := l.Image(t.Context(), Source{URL: address})
		mustRefuse(t, l, err, says)
	}
}

func TestServerTrouble(t *testing.T) {
	l, hasty := open(t), open(t)
	options := safehttp.Options{Timeout: 2 * time.Minute, MaxBody: maxFile, MaxRedirects: 3}
	l.fetcher = loopback.Client(options)
	options.Grace = 100 * time.Millisecond
	hasty.fetcher = loopback.Client(options)
	sent := make(chan int64, 1)
	picture := toPNG(t, halves(10, 10))
	base := serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/500":
			http.Error(w, "stack trace", http.StatusInternalServerError)
		case "/more": // than was sent
			w.Header().Set("Content-Length", "100000")
			w.Write(picture)
		case "/large":
			w.Header().Set("Content-Length", "16777217")
			w.Write(picture)
		case "/drip":
			w.Write(picture[:20])
			for i := 20; ; i++ {
				w.(http.Flusher).Flush()
				select {
				case <-r.Context().Done():
					return
				case <-time.After(time.Second):
					w.Write(picture[i : i+1])
				}
			}
		case "/stream": // ten gigabytes, if anybody takes them
			w.Write(picture)
			chunk, n := make([]byte, 1<<20), int64(0)
			for range 10 << 10 {
				m, err := w.Write(chunk)
				n += int64(m)
				if err != nil {
					break
				}
			}
			sent <- n
		case "/to":
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
		}
	})
	for path, says := range map[string]string{
		"/500": "status 500", "/more": "broke the connection", "/large": "too large. Send at most 16 MiB",
		"/stream": "too large. Send at most 16 MiB", "/to": "private or reserved network",
	} {
		_, err := l.Image(t.Context(), Source{URL: base + path})
		mustRefuse(t, l, err, says)
	}
	_, err := hasty.Image(t.Context(), Source{URL: base + "/drip"})
	mustRefuse(t, hasty, err, "too slowly")
	if n := <-sent; n > 64<<20 {
		t.Errorf("%d bytes of the stream were taken", n)
	}
}

func TestOrientation(t *testing.T) {
	// Stored 200x100 with red on the left; where red is to be seen on the thumbnail.
	want := map[byte]struct {
		size image.Point
		red  image.Point
	}{
		0: {image.Pt(100, 50), image.Pt(10, 25)}, 1: {image.Pt(100, 50), image.Pt(10, 25)}, 2: {image.Pt(100, 50), image.Pt(90, 25)},
		3: {image.Pt(100, 50), image.Pt(90, 25)}, 4: {image.Pt(100, 50), image.Pt(10, 25)}, 5: {image.Pt(50, 100), image.Pt(25, 10)},
		6: {image.Pt(50, 100), image.Pt(25, 10)}, 7: {image.Pt(50, 100), image.Pt(25, 90)}, 8: {image.Pt(50, 100), image.Pt(25, 90)},
		9: {image.Pt(100, 50), image.Pt(10, 25)},
	}
	l := open(t)
	stored := toJPEG(t, halves(200, 100))
	for turn, want := range want {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			m, err := described(t, l, withOrientation(stored, turn, order))
			if err != nil {
				t.Fatal(err)
			}
			thumb, err := jpeg.Decode(bytes.NewReader(m.Thumbnail))
			if err != nil {
				t.Fatal(err)
			}
			if got := thumb.Bounds().Size(); got != want.size {
				t.Errorf("turn %d: thumbnail %v, want %v", turn, got, want.size)
			}
			if r, _, b, _ := thumb.At(want.red.X, want.red.Y).RGBA(); r < 0x8000 || b > 0x8000 {
				t.Errorf("turn %d: %v is %v, want red", turn, want.red, thumb.At(want.red.X, want.red.Y))
			}
			if m.Width != 200 || m.Height != 100 {
				t.Errorf("turn %d: %dx%d, want the size as stored", turn, m.Width, m.Height)
			}
		}
	}
}

func TestTransparencyBecomesWhite(t *testing.T) {
	m, err := described(t, open(t), toPNG(t, image.NewNRGBA(image.Rect(0, 0, 20, 20))))
	if err != nil {
		t.Fatal(err)
	}
	thumb, err := jpeg.Decode(bytes.NewReader(m.Thumbnail))
	if err != nil {
		t.Fatal(err)
	}
	if got := color.GrayModel.Convert(thumb.At(10, 10)).(color.Gray).Y; got < 250 {
		t.Errorf("brightness %d, want white", got)
	}
}

// A picture of 40,000,000×1 has no more pixels than any other of 40 million, but making one of 1×20,000,000
// small took two gigabytes, and no phone shows it: a side may be as long as that of a JPEG.
// TestConvertedImage converts pictures that a network does not take: upright, of another type, and smaller.
func TestConvertedImage(t *testing.T) {
	l := open(t)
	turned := withOrientation(toJPEG(t, halves(200, 100)), 6, binary.LittleEndian)
	for name, test := range map[string]struct {
		data          []byte
		least         int // the largest longer side that is taken
		width, height int
	}{
		"/a.gif":  {toGIF(t, halves(200, 100)), 1000, 200, 100},
		"/b.png":  {toPNG(t, halves(200, 100)), 100, 100, 50},
		"/c.jpeg": {turned, 60, 25, 50},
	} {
		takes := func(m parley.Media) bool { return m.MIME == "image/jpeg" && max(m.Width, m.Height) <= test.least }
		m, err := l.Image(t.Context(), Source{URL: serve(t, map[string][]byte{name: test.data}) + name, Takes: takes})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		stored, err := os.ReadFile(filePath(t, l, m.Key))
		if err != nil {
			t.Fatal(err)
		}
		img, err := jpeg.Decode(bytes.NewReader(stored))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if size := img.Bounds().Size(); size != image.Pt(test.width, test.height) || m.Width != size.X || m.Height != size.Y ||
			!takes(m) || m.Size != int64(len(stored)) || !bytes.Equal(m.SHA256, sha(stored)) || m.Filename != name[1:2]+".jpg" ||
			m.Thumbnail == nil {
			t.Errorf("%s: %v, %+v", name, size, m)
		}
	}
	file := toPNG(t, halves(20, 10))
	m, err := l.Image(t.Context(), Source{URL: serve(t, map[string][]byte{"/a.png": file}) + "/a.png", Takes: func(m parley.Media) bool {
		return m.MIME == "image/png"
	}})
	if err != nil || !bytes.Equal(m.SHA256, sha(file)) {
		t.Errorf("a picture that is taken was changed: %+v, %v", m, err)
	}
}

func TestPixelLimit(t *testing.T) {
	for _, test := range []struct {
		width, height int
		want          bool
	}{{8000, 5000, true}, {8001, 5000, false}, {40_000_000, 1, false}, {1, 20_000_000, false}, {65_535, 610, true}, {610, 65_535, true},
		{65_536, 1, false}, {0, 5, false}, {-1, -1, false}, {1 << 31, 1 << 31, false}} {
		if got := fits(test.width, test.height, maxPixels); got != test.want {
			t.Errorf("%dx%d: %t", test.width, test.height, got)
		}
	}
}
