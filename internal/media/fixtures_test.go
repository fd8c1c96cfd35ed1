package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/safehttp"
)

var loopback = safehttp.Policy{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}

func open(t *testing.T) *Library {
	t.Helper()
	l, err := Open(Config{Dir: filepath.Join(t.TempDir(), "media")}, loopback)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// filePath is the path of a file in a library without a bucket.
func filePath(t *testing.T, l *Library, key string) string {
	t.Helper()
	name, err := storedName(key)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(l.dir, name)
}

// serve makes a server that gives each path its bytes, without saying what they are.
func serve(t *testing.T, files map[string][]byte) string {
	t.Helper()
	return serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
		data, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/x-lie")
		w.Write(data)
	})
}

func serveFunc(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// listFiles lists all files under a library, temporary ones too.
func listFiles(t *testing.T, l *Library) (files []string) {
	t.Helper()
	err := filepath.WalkDir(l.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// mustRefuse demands an *Error whose sentence says something, and that nothing was kept.
func mustRefuse(t *testing.T, l *Library, err error, says string) {
	t.Helper()
	if _, ok := errors.AsType[*Error](err); !ok {
		t.Errorf("%T (%v), want an *Error that says %q", err, err, says)
	} else if !strings.Contains(err.Error(), says) || !strings.HasSuffix(err.Error(), ".") {
		t.Errorf("%q, want a sentence that says %q", err, says)
	}
	if files := listFiles(t, l); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

// halves is a picture whose left half is red and whose right half is blue.
func halves(width, height int) image.Image {
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			c := color.RGBA{255, 0, 0, 255}
			if x >= width/2 {
				c = color.RGBA{0, 0, 255, 255}
			}
			img.SetRGBA(x, y, c)
		}
	}
	return img
}

func toPNG(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func toJPEG(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func toGIF(t testing.TB, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := gif.Encode(&b, img, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// withOrientation puts an EXIF segment into a JPEG.
func withOrientation(jpeg []byte, turn byte, order binary.AppendByteOrder) []byte {
	mark := []byte("II")
	if order == binary.AppendByteOrder(binary.BigEndian) {
		mark = []byte("MM")
	}
	tiff := order.AppendUint16(mark, 42)
	tiff = order.AppendUint32(tiff, 8)
	tiff = order.AppendUint16(tiff, 1)
	tiff = order.AppendUint16(tiff, 0x0112)
	tiff = order.AppendUint16(tiff, 3)
	tiff = order.AppendUint32(tiff, 1)
	tiff = order.AppendUint16(tiff, uint16(turn))
	tiff = order.AppendUint16(tiff, 0)
	exif := append([]byte("Exif\x00\x00"), tiff...)
	segment := binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(exif)+2))
	return bytes.Join([][]byte{jpeg[:2], segment, exif, jpeg[2:]}, nil)
}

// hugePNG is the header of a picture that would take ten gigabytes.
func hugePNG(t testing.TB) []byte {
	data := toPNG(t, halves(1, 1))
	binary.BigEndian.PutUint32(data[16:], 50_000)
	binary.BigEndian.PutUint32(data[20:], 50_000)
	binary.BigEndian.PutUint32(data[29:], crc(data[12:29]))
	return data
}

func crc(data []byte) uint32 {
	c := ^uint32(0)
	for _, b := range data {
		c ^= uint32(b)
		for range 8 {
			c = c>>1 ^ 0xedb88320&-(c&1)
		}
	}
	return ^c
}

// needFFmpeg skips a test on a machine without ffmpeg.
func needFFmpeg(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("ffmpeg"); err != nil {
		t.Skip("ffmpeg is not installed: make deps installs it, or names its package")
	}
}

// ffmpeg makes a file.
func ffmpeg(t testing.TB, name string, args ...string) []byte {
	t.Helper()
	needFFmpeg(t)
	path := filepath.Join(t.TempDir(), name)
	cmd := exec.CommandContext(t.Context(), "ffmpeg", append(append([]string{"-nostdin", "-loglevel", "error"}, args...), path)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ffmpeg %v: %v\n%s", args, err, out)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// tone makes a file with a sine of some seconds.
func tone(t testing.TB, name string, seconds float64, args ...string) []byte {
	t.Helper()
	return ffmpeg(t, name, append([]string{"-f", "lavfi", "-i", fmt.Sprintf("sine=frequency=440:sample_rate=48000:duration=%g", seconds)},
		args...)...)
}
