package contract_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/internal/parleytest"
)

// gallery is a server with files of every kind to fetch. It lies about their types.
type gallery struct {
	url   string
	files map[string][]byte
}

// newGallery makes pictures, films and sounds, and serves them. Sounds are a second of tone and a
// second of silence.
func newGallery(t *testing.T) *gallery {
	t.Helper()
	g := &gallery{files: map[string][]byte{
		"notes.txt": []byte("Milk, bread.\n"), "page.html": []byte("<!doctype html><title>x</title>"), "empty.png": {}, "bare": []byte("Milk.\n"),
		"paper.pdf": []byte("%PDF-1.7\n1 0 obj\n"), "table.csv": []byte("a,b\n1,2\n"), "bundle.zip": []byte("PK\x03\x04xxxxxxxx"),
		"drawing.svg": []byte(`<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>`), "old.bmp": append([]byte("BM"),
			make([]byte, 60)...),
	}}
	img := image.NewRGBA(image.Rect(0, 0, 9, 5))
	img.Set(3, 3, color.RGBA{255, 0, 0, 255})
	var p, j, f bytes.Buffer
	if err := png.Encode(&p, img); err != nil {
		t.Fatal(err)
	}
	if err := jpeg.Encode(&j, img, nil); err != nil {
		t.Fatal(err)
	}
	if err := gif.Encode(&f, img, nil); err != nil {
		t.Fatal(err)
	}
	g.files["dot.png"], g.files["dot.jpg"], g.files["dot.gif"] = p.Bytes(), j.Bytes(), f.Bytes()
	g.files["liar.gif"], g.files["picture"], g.files["picture.ogg"], g.files["cut.png"] = p.Bytes(), p.Bytes(), p.Bytes(), p.Bytes()[:40]
	g.files["wrong.mp3"], g.files["page.wav"], g.files["empty.opus"] = p.Bytes(), g.files["page.html"], nil
	g.files["long.wav"] = longWAV(16 * mebibyte)
	g.record(t)
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	g.url = server.URL
	return g
}

// needFFmpeg skips a test on a machine without ffmpeg.
func needFFmpeg(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("ffmpeg is not installed: make deps installs it, or names its package")
	}
}

// record has ffmpeg make what the standard library cannot.
func (g *gallery) record(t *testing.T) {
	t.Helper()
	needFFmpeg(t)
	dir := t.TempDir()
	args := []string{"-v", "error", "-f", "lavfi", "-i", "aevalsrc=sin(440*2*PI*t)*lt(t\\,1):d=2:s=48000", "-f", "lavfi", "-i",
		"testsrc=size=32x16:rate=5:duration=1"}
	outputs := map[string]string{
		"tone.mp3": "-map 0 -ac 1", "tone.wav": "-map 0 -ac 1", "tone.aac": "-map 0 -ac 1", "tone.m4a": "-map 0 -ac 1",
		"tone.opus": "-map 0 -ac 1 -c:a libopus",
		"tone.ogg":  "-map 0 -ac 1 -c:a libopus", "stereo.ogg": "-map 0 -ac 2 -c:a libopus",
		"still.webp": "-map 1 -frames:v 1", "film.mp4": "-map 1 -c:v mpeg4", "film.webm": "-map 1 -c:v libvpx",
		"film.m4a": "-map 1 -map 0 -c:v mpeg4 -f mp4",
	}
	for name, how := range outputs {
		args = append(append(args, strings.Fields(how)...), filepath.Join(dir, name))
	}
	if out, err := exec.Command("ffmpeg", args...).CombinedOutput(); err != nil {
		t.Fatalf("make sounds and films: %v: %s", err, out)
	}
	for name := range outputs {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		g.files[name] = data
	}
	g.files["cut.ogg"] = g.files["tone.ogg"][:len(g.files["tone.ogg"])/2]
}

func (g *gallery) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	way, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch way {
	case "to": // another file, by a redirect
		http.Redirect(w, r, "/"+rest, http.StatusFound)
	case "loop":
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
	case "status":
		status, _, _ := strings.Cut(rest, ".")
		code, _ := strconv.Atoi(status)
		w.WriteHeader(code)
		w.Write(g.files["dot.png"])
	case "named": // as the server says
		w.Header().Set("Content-Disposition", `attachment; filename="from the server.png"`)
		w.Write(g.files["dot.png"])
	case "claim": // a length, and no more
		size, _, _ := strings.Cut(rest, "/")
		w.Header().Set("Content-Length", size)
	case "filled": // a file with zeros after it, up to a size, which is not said before
		size, name, _ := strings.Cut(rest, "/")
		n, _ := strconv.ParseInt(size, 10, 64)
		w.Write(g.files[name])
		http.NewResponseController(w).Flush()
		io.CopyN(w, zeros{}, n-int64(len(g.files[name])))
	default:
		file, ok := g.files[way]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/x-lie")
		w.Write(file)
	}
}

// zeros is an endless file of them.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// sized returns the address of a file that is filled up to so many bytes.
func (g *gallery) sized(name string, bytes int) string {
	return fmt.Sprintf("%s/filled/%d/%s", g.url, bytes, name)
}

// longWAV is a sound of a number of bytes that does not last long: many samples in few seconds.
func longWAV(size int) []byte {
	const rate, channels, width = 192_000, 2, 4
	b := make([]byte, size)
	copy(b, "RIFF")
	binary.LittleEndian.PutUint32(b[4:], uint32(size-8))
	copy(b[8:], "WAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00")
	binary.LittleEndian.PutUint32(b[24:], rate)
	binary.LittleEndian.PutUint32(b[28:], rate*channels*width)
	b[32], b[34] = channels*width, width*8
	copy(b[36:], "data")
	binary.LittleEndian.PutUint32(b[40:], uint32(size-44))
	return b
}

// arrivedFile is what the phone that got a file last says of it.
func arrivedFile(e *parleytest.Env, number string) (row, file map[string]any) {
	e.T.Helper()
	a := e.Get("/api/sandbox/phones/" + number + "/messages?limit=100").Expect(http.StatusOK)
	last := a.Count("data") - 1
	row, _ = a.Value(fmt.Sprintf("data.%d", last)).(map[string]any)
	file, _ = row["media"].(map[string]any)
	return row, file
}

// expectFileData demands what is answered of a picture, film or document: strings throughout.
func expectFileData(a *parleytest.Response, kind, contact, url, caption string, file []byte, mimetype, width, height string) {
	a.T.Helper()
	expectSent(a)
	expectSendData(a, contact)
	keys := []string{"caption", "details", kind}
	slices.Sort(keys)
	if got := jsonKeys(a, "data.message"); !slices.Equal(got, keys) {
		a.T.Errorf("%s: the message has %v, want %v", a.Request, got, keys)
	}
	if got := jsonKeys(a, "data.message.details"); !slices.Equal(got, []string{"fileSha256", "height", "mediaKey", "mimetype", "timestamp",
		"width"}) {
		a.T.Errorf("%s: the details have %v", a.Request, got)
	}
	sum := sha256.Sum256(file)
	for path, want := range map[string]string{
		"caption": caption, kind: url, "details.mimetype": mimetype, "details.width": width, "details.height": height,
		"details.fileSha256": base64.StdEncoding.EncodeToString(sum[:]),
	} {
		if got := a.Value("data.message." + path); got != want {
			a.T.Errorf("%s: %s is %v, want %q", a.Request, path, got, want)
		}
	}
	if key, err := base64.StdEncoding.DecodeString(a.Text("data.message.details.mediaKey")); err != nil || len(key) != 32 {
		a.T.Errorf("%s: the media key is %q", a.Request, a.Text("data.message.details.mediaKey"))
	}
	expectStamp(a, "data.message.details.timestamp")
}

// expectArrivedFile demands that a file reached a phone as it was fetched.
func expectArrivedFile(e *parleytest.Env, number, kind, caption, filename, mimetype string, file []byte) {
	e.T.Helper()
	row, media := arrivedFile(e, number)
	sum := sha256.Sum256(file)
	if row["type"] != kind || row["body"] != caption {
		e.T.Errorf("the phone got %v", row)
	}
	if media["filename"] != filename || media["mimetype"] != mimetype || media["sha256"] != hex.EncodeToString(sum[:]) ||
		media["size"] != float64(len(file)) {
		e.T.Errorf("the phone got %v, want %s, %s, %d bytes", media, filename, mimetype, len(file))
	}
}

// expectAddresses tries what an address may be and what not. The good one ends in an extension.
func (ep endpoint) expectAddresses(t *testing.T, e *parleytest.Env, field, good, extension string) {
	t.Helper()
	padded := func(letter string, length int) string {
		address := good + "?"
		for n := length - len([]rune(address)) - len(extension); n > 0; n-- {
			address += letter
		}
		return address + extension
	}
	for name, url := range map[string]string{
		"with a query": good + "?a=b&c=%20" + extension, "of 2048 characters": padded("a", 2048),
		"of 2048 characters of two bytes": padded("é", 2048),
		"of localhost":                    strings.Replace(good, "127.0.0.1", "localhost", 1),
	} {
		part(t, e, "address "+name, func(e *parleytest.Env) { expectSent(ep.call(e, ep.body.with(field, url))) })
	}
	for _, url := range []string{
		"", padded("a", 2049), padded("é", 2049), "x" + extension, "dot" + extension, "/dot" + extension, "//127.0.0.1/dot" + extension,
		"ftp://127.0.0.1/dot" + extension,
		"file:///etc/dot" + extension, "data:image/png;base64,AAAA" + extension, "javascript:alert(1)//" + extension, "http://" +
			extension[1:] + "@/x" + extension,
		"http://u:p@127.0.0.1/dot" + extension, "http://u@127.0.0.1/dot" + extension, "http:///dot" + extension, "http://127.0.0.1:0/dot" +
			extension, "http://127.0.0.1:70000/dot" + extension,
		"http://127.0.0.1:x/dot" + extension, "http://a b/dot" + extension, "http://127.0.0.1/%zz" + extension, "http://127.0.0.1/a\nb" +
			extension, " " + good, "http://[::1/dot" + extension,
	} {
		part(t, e, fmt.Sprintf("address %.40q", url), func(e *parleytest.Env) {
			expectInvalid(ep.call(e, ep.body.with(field, url)), field)
		})
	}
}

// expectUnfetchable tries addresses that are good but lead nowhere.
func (ep endpoint) expectUnfetchable(t *testing.T, e *parleytest.Env, g *gallery, field, extension string) {
	t.Helper()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, url := range map[string]string{
		"nothing there": g.url + "/nowhere" + extension, "forbidden": g.url + "/status/403" + extension, "an error": g.url + "/status/500" +
			extension, "no content": g.url + "/status/204" + extension,
		"an endless redirect": g.url + "/loop/x" + extension, "nobody listens": gone.URL + "/x" + extension,
		"no such host":   "http://parley.invalid/x" + extension,
		"our own server": e.URL + "/x" + extension, "a metadata service": "http://169.254.169.254/latest/x" + extension,
		"a private network": "http://10.0.0.1/x" + extension,
	} {
		part(t, e, "unfetchable: "+name, func(e *parleytest.Env) {
			expectInvalid(ep.call(e, ep.body.with(field, url)), field)
		})
	}
}
