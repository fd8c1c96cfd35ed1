package media

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/image/webp"

	"parley"
)

// makeTestSticker fetches a sticker and returns it with its file.
func makeTestSticker(t *testing.T, l *Library, name string, data []byte) (*image.NRGBA, []byte) {
	t.Helper()
	url := serve(t, map[string][]byte{name: data}) + name
	m, err := l.Sticker(t.Context(), Source{URL: url})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	stored, err := os.ReadFile(filePath(t, l, m.Key))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(stored)
	stem, _, _ := strings.Cut(name[1:], ".")
	if m.MIME != "image/webp" || m.Size != int64(len(stored)) || !bytes.Equal(m.SHA256, sum[:]) || len(m.MediaKey) != 32 ||
		m.Source != url || m.Filename != stem+".webp" || m.Width != 512 || m.Height != 512 || m.Animated || len(stored) > 100_000 {
		t.Errorf("%s: %+v", name, m)
	}
	return decoded(t, stored), stored
}

func decoded(t *testing.T, file []byte) *image.NRGBA {
	t.Helper()
	img, err := webp.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	return img.(*image.NRGBA)
}

// TestStickerThatIsNotTaken converts a WebP that another network would take as it is.
func TestStickerThatIsNotTaken(t *testing.T) {
	l := open(t)
	small, err := encodeWebP(drawSquare(halves(20, 10), 1, 256))
	if err != nil {
		t.Fatal(err)
	}
	for _, side := range []int{256, stickerSide} {
		takes := func(m parley.Media) bool { return m.Width == side }
		m, err := l.Sticker(t.Context(), Source{URL: serve(t, map[string][]byte{"/a.webp": small}) + "/a.webp", Takes: takes})
		if err != nil || m.Width != side || m.Height != side || bytes.Equal(m.SHA256, sha(small)) != (side == 256) {
			t.Errorf("side %d: %+v, %v", side, m, err)
		}
	}
}

// TestConvertedSticker looks at the colours in the middle of both halves and at the borders.
func TestConvertedSticker(t *testing.T) {
	l := open(t)
	turned := withOrientation(toJPEG(t, halves(200, 100)), 6, binary.LittleEndian)
	for name, test := range map[string]struct {
		data              []byte
		red, blue, border image.Point
	}{
		"/wide.png":   {toPNG(t, halves(300, 100)), image.Pt(128, 256), image.Pt(384, 256), image.Pt(256, 100)},
		"/high.jpg":   {toJPEG(t, halves(100, 300)), image.Pt(216, 256), image.Pt(296, 256), image.Pt(100, 256)},
		"/turned.jpg": {turned, image.Pt(256, 128), image.Pt(256, 384), image.Pt(60, 256)},
		"/small.gif":  {toGIF(t, halves(40, 30)), image.Pt(128, 256), image.Pt(384, 256), image.Pt(256, 20)},
		"/large.webp": {toWebP(t, halves(1100, 550)), image.Pt(128, 256), image.Pt(384, 256), image.Pt(256, 60)},
		"/line.png":   {toPNG(t, halves(3000, 2)), image.Pt(128, 255), image.Pt(384, 255), image.Pt(256, 100)},
	} {
		img, _ := makeTestSticker(t, l, name, test.data)
		if size := img.Bounds().Size(); size != image.Pt(512, 512) {
			t.Errorf("%s: %v", name, size)
		}
		red, blue := img.NRGBAAt(test.red.X, test.red.Y), img.NRGBAAt(test.blue.X, test.blue.Y)
		if red.R < 200 || red.B > 50 || red.A != 255 || blue.B < 200 || blue.R > 50 || blue.A != 255 {
			t.Errorf("%s: %v where it is red, %v where it is blue", name, red, blue)
		}
		if border := img.NRGBAAt(test.border.X, test.border.Y); border.A != 0 {
			t.Errorf("%s: the border is %v", name, border)
		}
	}
}

// TestDetailedSticker converts pictures that cannot be compressed: they are made smaller, not refused.
func TestDetailedSticker(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, opaque := range map[string]bool{"/opaque.png": true, "/clear.png": false} {
		noise := image.NewNRGBA(image.Rect(0, 0, 700, 700))
		for i := range noise.Pix {
			noise.Pix[i] = byte(random.Uint32())
			if opaque && i%4 == 3 {
				noise.Pix[i] = 255
			}
		}
		makeTestSticker(t, open(t), name, toPNG(t, noise))
	}
}

func TestSameSticker(t *testing.T) {
	l := open(t)
	for name, test := range map[string]struct {
		args          []string
		width, height int
		animated      bool
	}{
		"still.webp":    {[]string{"-f", "lavfi", "-i", "testsrc=size=512x512", "-frames:v", "1"}, 512, 512, false},
		"lossless.webp": {[]string{"-f", "lavfi", "-i", "testsrc=size=33x21", "-frames:v", "1", "-lossless", "1"}, 33, 21, false},
		"alpha.webp":    {[]string{"-f", "lavfi", "-i", "color=red@0.5:size=64x48,format=yuva420p", "-frames:v", "1"}, 64, 48, false},
		"moving.webp": {[]string{"-f", "lavfi", "-i", "testsrc=size=120x80:rate=5:duration=1", "-c:v", "libwebp_anim"},
			120, 80, true},
	} {
		data := ffmpeg(t, name, test.args...)
		m, err := l.Sticker(t.Context(), Source{URL: serve(t, map[string][]byte{"/" + name: data}) + "/" + name})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		stored, err := os.ReadFile(filePath(t, l, m.Key))
		if err != nil || !bytes.Equal(stored, data) {
			t.Errorf("%s was changed, %v", name, err)
		}
		sum := sha256.Sum256(data)
		if m.MIME != "image/webp" || m.Width != test.width || m.Height != test.height || m.Animated != test.animated ||
			m.Size != int64(len(data)) || !bytes.Equal(m.SHA256, sum[:]) || m.Filename != name {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

func TestStickerRefuses(t *testing.T) {
	l := open(t)
	moving := ffmpeg(t, "a.webp", "-f", "lavfi", "-i", "testsrc=size=120x80:rate=5:duration=1", "-c:v", "libwebp_anim")
	changed := func(change func(data []byte, frame int)) []byte { // the header of the last frame
		data := bytes.Clone(moving)
		change(data, bytes.LastIndex(data, []byte("ANMF"))+8)
		return data
	}
	still := toWebP(t, halves(64, 64))
	large := ffmpeg(t, "b.webp", "-f", "lavfi", "-i", "color=red:size=1100x64:rate=5:duration=1,noise=alls=20:allf=t",
		"-c:v", "libwebp_anim")
	base := serve(t, map[string][]byte{
		"/page": []byte("<!DOCTYPE html><html></html>"), "/svg": []byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`),
		"/sound": []byte("OggS\x00\x02"), "/empty": {}, "/huge": hugePNG(t), "/cut.png": toPNG(t, halves(500, 500))[:300],
		"/cut": still[:len(still)-3], "/head": []byte("RIFF\x04\x00\x00\x00WEBP"), "/none": []byte("RIFF\x04\x00\x00\x00WEBP and more"),
		"/many": manyChunks(still), "/large": large, "/costly": costlyPNG(t),
		"/cutmoving": moving[:len(moving)-7],
		"/outside":   changed(func(data []byte, frame int) { data[frame] = 200 }),
		"/lying":     changed(func(data []byte, frame int) { data[frame+6]++ }),
		"/damaged":   changed(func(data []byte, frame int) { data[frame+16] = 'X' }),
		"/zero":      append(append([]byte{}, moving[:4]...), append([]byte{0, 0, 0, 0}, moving[8:]...)...),
	})
	for path, says := range map[string]string{
		"/page": "gives text/html, not an image. Send the address of a WebP", "/svg": "image/svg+xml", "/sound": "not an image",
		"/empty": "is empty", "/huge": "too many pixels", "/cut.png": "damaged", "/cut": "damaged", "/head": "not an image",
		"/none": "not an image",
		"/many": "too large. Send at most 1 MiB, 1024 pixels on a side", "/large": "animated sticker is too large", "/cutmoving": "damaged",
		"/costly":  "takes too long to convert",
		"/outside": "damaged", "/lying": "damaged", "/damaged": "damaged", "/zero": "damaged",
		"/missing": "The sticker could not be fetched. The server answered with status 404",
	} {
		_, err := l.Sticker(t.Context(), Source{URL: base + path})
		mustRefuse(t, l, err, says)
	}
}

// costlyPNG is the header of a picture whose pixels are not too many, but take 600 megabytes.
func costlyPNG(t *testing.T) []byte {
	data := toPNG(t, halves(1, 1))
	binary.BigEndian.PutUint32(data[16:], 6_000)
	binary.BigEndian.PutUint32(data[20:], 6_000)
	data[24], data[28] = 16, 1 // deep and interlaced
	binary.BigEndian.PutUint32(data[29:], crc(data[12:29]))
	return data
}

// TestStickersAtOnce has a conversion wait while all slots are in use, and end with its request.
func TestStickersAtOnce(t *testing.T) {
	l := open(t)
	occupy(l.decoding)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	picture := toPNG(t, halves(10, 10))
	body := func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(picture)), nil }
	if _, err := l.Sticker(ctx, Source{URL: "med_1", Open: body}); parley.ToCode(err) != parley.Unavailable {
		t.Errorf("%v, want that it is busy", err)
	}
	if files := listFiles(t, l); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

// manyChunks adds chunks to a file.
func manyChunks(file []byte) []byte {
	data := append(bytes.Clone(file), bytes.Repeat([]byte("XXXX\x00\x00\x00\x00"), maxStickerParts)...)
	binary.LittleEndian.PutUint32(data[4:], uint32(len(data)-8))
	return data
}

func toNRGBA(img image.Image) *image.NRGBA {
	out := image.NewNRGBA(img.Bounds())
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			out.Set(x, y, img.At(x, y))
		}
	}
	return out
}

// toWebP encodes a picture.
func toWebP(t *testing.T, img image.Image) []byte {
	t.Helper()
	file, err := encodeWebP(toNRGBA(img))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestEncodeWebP compares what is decoded with what was encoded, for pictures that make all kinds of prefix codes: with some of
// these, older versions of the library wrote files that cannot be read.
func TestEncodeWebP(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	colours := map[string]func(x, y int) color.NRGBA{
		"clear": func(int, int) color.NRGBA { return color.NRGBA{} },
		"one":   func(int, int) color.NRGBA { return color.NRGBA{1, 2, 3, 4} },
		"noise": func(int, int) color.NRGBA {
			n := random.Uint32()
			return color.NRGBA{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}
		},
		"gradient": func(x, y int) color.NRGBA { return color.NRGBA{byte(x), byte(y), byte(x * y), 255} },
		"stripes":  func(x, y int) color.NRGBA { return color.NRGBA{byte(x % 7 * 30), byte(y % 3 * 80), 0, 255} },
		"rare": func(int, int) color.NRGBA { // very unequal counts, for which codes would be too long
			n := random.Uint64()
			rare := byte(1)
			for n&1 == 1 {
				n, rare = n>>1, rare*3
			}
			return color.NRGBA{rare, rare * 5, 7, 255}
		},
	}
	for name, colour := range colours {
		for _, size := range []image.Point{{1, 1}, {1, 5}, {5, 1}, {2, 2}, {3, 7}, {16, 16}, {17, 33}, {130, 70}, {512, 512}} {
			img := image.NewNRGBA(image.Rectangle{Max: size})
			for y := range size.Y {
				for x := range size.X {
					img.SetNRGBA(x, y, colour(x, y))
				}
			}
			file := toWebP(t, img)
			if len(file)%2 != 0 || binary.LittleEndian.Uint32(file[4:]) != uint32(len(file)-8) {
				t.Errorf("%s, %v: %d bytes", name, size, len(file))
			}
			if got := decoded(t, file); !bytes.Equal(got.Pix, img.Pix) {
				t.Errorf("%s, %v: decoded as another picture", name, size)
			}
		}
	}
}

func TestStickerOfAnimatedGIF(t *testing.T) {
	frame := func(c color.Color) *image.Paletted {
		return image.NewPaletted(image.Rect(0, 0, 20, 20), color.Palette{c})
	}
	var b bytes.Buffer
	if err := gif.EncodeAll(&b, &gif.GIF{Image: []*image.Paletted{frame(color.White), frame(color.Black)}, Delay: []int{9, 9}}); err != nil {
		t.Fatal(err)
	}
	img, _ := makeTestSticker(t, open(t), "/moving.gif", b.Bytes())
	if c := img.NRGBAAt(256, 256); c != (color.NRGBA{255, 255, 255, 255}) {
		t.Errorf("the middle is %v, want that of the first frame", c)
	}
}
