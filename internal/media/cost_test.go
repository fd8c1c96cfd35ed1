package media

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/store"
	"parley/internal/wait"
)

// allocated is how many bytes are allocated while something is done.
func allocated(do func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// aside is for what is allocated beside decoding: buffers, the fetch, the thumbnail.
const aside = 8 << 20

// TestHostilePictures are refused, or taken as they are without being decoded. The whole of a picture,
// decoded, would show in the memory, and the time that its decoder takes with it.
func TestHostilePictures(t *testing.T) {
	files := hostile(t)
	base := serve(t, files)
	for name, size := range map[string]image.Point{"/progressive.jpg": image.Pt(6320, 6320), "/scans.jpg": image.Pt(2500, 2500)} {
		l := open(t)
		took := allocated(func() {
			m, err := l.Image(t.Context(), Source{URL: base + name})
			if err != nil || m.Width != size.X || m.Height != size.Y || m.Thumbnail != nil {
				t.Errorf("%s: %dx%d, a thumbnail of %d bytes, %v", name, m.Width, m.Height, len(m.Thumbnail), err)
			}
		})
		if took > aside {
			t.Errorf("%s took %d bytes of memory", name, took)
		}
	}
	l := open(t)
	took := allocated(func() {
		_, err := l.Image(t.Context(), Source{URL: base + "/tall.png"})
		mustRefuse(t, l, err, "too many pixels. Send at most 40 million, and at most 65,535 on a side")
	})
	if took > aside {
		t.Errorf("/tall.png took %d bytes of memory", took)
	}
}

// TestHostilePicturesAreKept: what came in is kept, however it was made.
func TestHostilePicturesAreStored(t *testing.T) {
	l := open(t)
	for name, data := range hostile(t) {
		took := allocated(func() {
			m, err := l.Store(t.Context(), "demo", data, name[1:])
			if err != nil || m.Size != int64(len(data)) || m.Key == "" || m.Thumbnail != nil {
				t.Errorf("%s: %+v, %v", name, m, err)
			}
		})
		if took > aside {
			t.Errorf("%s took %d bytes of memory", name, took)
		}
	}
}

// TestLargePhotos: what cameras make is taken with its true size, and gets its thumbnail unless the memory
// for that is beyond what one picture may take.
func TestLargePhotos(t *testing.T) {
	for name, test := range map[string]struct {
		data      []byte
		size      image.Point
		thumbnail bool
	}{
		"40.jpg": {flatJPEG{width: 7300, height: 5475, sampling: 0x22}.bytes(), image.Pt(7300, 5475), true},
		"12-progressive.jpg": {flatJPEG{width: 4032, height: 3024, sampling: 0x22, progressive: true, scans: 9}.bytes(),
			image.Pt(4032, 3024), true},
		"40-progressive.jpg": {flatJPEG{width: 7300, height: 5475, sampling: 0x22, progressive: true, scans: 9}.bytes(),
			image.Pt(7300, 5475), false},
		"page.png":      {flatPNG{width: 300, height: 30_000, depth: 8, colour: 2}.bytes(t), image.Pt(300, 30_000), true},
		"100-scans.jpg": {flatJPEG{width: 100, height: 100, progressive: true, scans: maxScans - 1}.bytes(), image.Pt(100, 100), true},
		"many-visits.jpg": {flatJPEG{width: 3000, height: 3000, progressive: true, scans: maxScans / 2}.bytes(), image.Pt(3000, 3000),
			false},
		"101-scans.jpg": {flatJPEG{width: 100, height: 100, progressive: true, scans: maxScans}.bytes(), image.Pt(100, 100), false},
	} {
		synctest.Test(t, func(t *testing.T) { // fake time does not advance while a busy machine decodes
			l := open(t)
			took := allocated(func() {
				m, err := described(t, l, test.data)
				if err != nil || m.Width != test.size.X || m.Height != test.size.Y || (m.Thumbnail != nil) != test.thumbnail {
					t.Errorf("%s: %dx%d, a thumbnail of %d bytes, %v", name, m.Width, m.Height, len(m.Thumbnail), err)
				}
			})
			if took > maxDecode+aside {
				t.Errorf("%s took %d bytes of memory", name, took)
			}
		})
	}
}

// TestCostIsNoLess compares what is expected with what decoders allocate, for each way in which they do.
func TestCostIsNoLess(t *testing.T) {
	const side = 1500
	interlacedGIF := toGIF(t, image.NewPaletted(image.Rect(0, 0, side, side), color.Palette{color.Black, color.White}))
	interlacedGIF[bytes.IndexByte(interlacedGIF[13:], ',')+13+9] |= 0x40 // in the last byte of the frame's descriptor
	webp := func(args ...string) []byte {
		return ffmpeg(t, "a.webp", append([]string{"-f", "lavfi", "-i", "testsrc2=size=1500x1500,format=yuva420p", "-frames:v", "1"},
			args...)...)
	}
	for name, data := range map[string][]byte{
		"baseline":         flatJPEG{width: side, height: side}.bytes(),
		"halved colours":   flatJPEG{width: side, height: side, sampling: 0x22}.bytes(),
		"quarter colours":  flatJPEG{width: side, height: side, sampling: 0x42}.bytes(),
		"progressive":      flatJPEG{width: side, height: side, progressive: true, scans: 1}.bytes(),
		"progressive 4:1":  flatJPEG{width: side, height: side, sampling: 0x41, progressive: true, scans: 1}.bytes(),
		"RGB":              flatJPEG{width: side, height: side, adobe: true}.bytes(),
		"grey PNG":         flatPNG{width: side, height: side, depth: 8}.bytes(t),
		"deep PNG":         flatPNG{width: side, height: side, depth: 16, colour: 6}.bytes(t),
		"colour PNG":       flatPNG{width: side, height: side, depth: 8, colour: 2}.bytes(t),
		"palette PNG":      flatPNG{width: side, height: side, depth: 1, colour: 3}.bytes(t),
		"interlaced GIF":   interlacedGIF,
		"lossy WebP":       webp("-pix_fmt", "yuv420p"),
		"transparent WebP": webp(),
		"lossless WebP":    webp("-lossless", "1"),
	} {
		kind := sniff(data[:min(len(data), sniffLen)])
		var want int64
		if kind == "image/webp" {
			w, err := parseWebP(data)
			if err != nil {
				t.Fatal(err)
			}
			want = w.memory()
		} else {
			c, err := measureCost(bytes.NewReader(data), kind, image.Pt(side, side))
			if err != nil {
				t.Fatal(err)
			}
			want = c.memory
		}
		const buffers = 1 << 20
		got := allocated(func() {
			synctest.Test(t, func(t *testing.T) { // where a slow machine takes no time
				if _, _, err := readPicture(t.Context(), bytes.NewReader(data), kind, maxPixels); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		})
		if got > want+buffers {
			t.Errorf("%s takes %d bytes, and %d are expected", name, got, want)
		}
	}
}

// TestScansAreCounted as the decoder meets them: what looks like a pass inside of another segment, in the coded pixels or
// behind the picture's end does not count; fill bytes and stray ones hide none.
func TestScansAreCounted(t *testing.T) {
	const start, frame = "\xff\xd8", "\xff\xc0\x00\x0b\x08\x00\x08\x00\x08\x01\x01\x11\x00"
	const scan = "\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00"
	for data, want := range map[string]int{
		start + frame + scan + "pixels\xff\x00\xda\xff\xd0\xff\xd9" + scan: 1,
		start + "\xff\xe1\x00\x0c" + scan + frame + scan + "\xff\xd9":      1,
		start + frame + scan + "\xff\xff\xff" + scan[1:] + "x" + scan:      3,
		start + frame + scan + "\xff\xe1\x00\x01" + scan:                   1,
		start + frame + scan + "\xff\xe1\xff\xff" + scan:                   1,
		start + frame: 0,
		start:         0,
	} {
		if got, err := jpegCost(bytes.NewReader([]byte(data))); err != nil || got.scans != want {
			t.Errorf("%q: %d scans, %v, want %d", data, got.scans, err, want)
		}
	}
}

// TestWebPWithTwoSizes is refused: the decoder would give the transparency the size that was not checked.
func TestWebPWithTwoSizes(t *testing.T) {
	chunk := func(name string, body ...byte) []byte {
		return append(binary.LittleEndian.AppendUint32([]byte(name), uint32(len(body))), body...)
	}
	file := bytes.Join([][]byte{[]byte("RIFF\xff\x00\x00\x00WEBP"),
		chunk("VP8X", 0x10, 0, 0, 0, 0xff, 0x3f, 0, 0xff, 0x3f, 0), chunk("ALPH", 0, 0), chunk("VP8X", 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0),
		chunk("VP8L", 0x2f, 0, 0, 0, 0, 0)}, nil)
	took := allocated(func() {
		if _, _, err := readPicture(t.Context(), bytes.NewReader(file), "image/webp", maxPixels); err == nil {
			t.Error("it was read")
		}
	})
	if took > aside {
		t.Errorf("it took %d bytes of memory", took)
	}
}

// endless is a picture's worth of bounds without any memory behind it.
type endless struct{ *image.Uniform }

func (endless) Bounds() image.Rectangle { return image.Rect(0, 0, 50, 10_000_000) }

// TestThumbnailMemory does not grow with the picture's height.
func TestThumbnailMemory(t *testing.T) {
	took := allocated(func() {
		thumb, err := thumbnail(endless{image.NewUniform(color.Black)}, upright, thumbnailSize, thumbnailSize)
		if err != nil || thumb.height != thumbnailSize || thumb.width != 1 {
			t.Errorf("%dx%d, %v", thumb.width, thumb.height, err)
		}
	})
	if took > 1<<20 {
		t.Errorf("it took %d bytes", took)
	}
}

// hooked is a file that calls a function whenever it is read after it was rewound some times.
type hooked struct {
	*bytes.Reader
	rewinds int
	onRead  func()
}

func (h *hooked) Seek(offset int64, whence int) (int64, error) {
	h.rewinds--
	return h.Reader.Seek(offset, whence)
}

func (h *hooked) Read(p []byte) (int, error) {
	if h.rewinds == 0 {
		h.onRead()
	}
	return h.Reader.Read(p)
}

// decodedAfter is how often a JPEG is rewound until it is decoded: for its size, its cost and itself.
const decodedAfter = 3

// TestDecodingIsBrokenOff as soon as nobody waits for it.
func TestDecodingIsBrokenOff(t *testing.T) {
	data := flatJPEG{width: 3000, height: 3000}.bytes()
	ctx, cancel := context.WithCancel(t.Context())
	file := &hooked{Reader: bytes.NewReader(data), rewinds: decodedAfter, onRead: cancel}
	_, _, err := readPicture(ctx, file, "image/jpeg", maxPixels)
	if !errors.Is(err, context.Canceled) || parley.ToCode(pictureError(err)) != parley.Unavailable {
		t.Errorf("it ended with %v, for the caller %v", err, pictureError(err))
	}
	if left := file.Len(); left < len(data)/2 {
		t.Errorf("it was read on, to %d bytes of %d", len(data)-left, len(data))
	}
}

// TestSlowPicture goes without a thumbnail when it takes too long to decode.
func TestSlowPicture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := &hooked{Reader: bytes.NewReader(toJPEG(t, halves(300, 200))), rewinds: decodedAfter,
			onRead: func() { time.Sleep(2 * decodeTimeout) }}
		var m parley.Media
		if err := describePicture(t.Context(), file, "image/jpeg", &m); err != nil || m.Width != 300 || m.Height != 200 ||
			m.Thumbnail != nil {
			t.Errorf("%+v, %v", m, err)
		}
	})
}

// occupy takes all places.
func occupy(places *wait.Turns) {
	for places.Try("occupied") {
	}
}

// TestPlacesAreShared: a caller with many pictures, some being decoded and more waiting, does not make another wait behind them.
func TestPlacesAreShared(t *testing.T) {
	const many = 30
	synctest.Test(t, func(t *testing.T) {
		l := &Library{decoding: wait.NewTurns(decodeAtOnce)}
		var order []string
		var mu sync.Mutex
		next := make(chan struct{})
		decode := func(caller string) {
			err := l.work(store.For(t.Context(), caller), l.decoding, func() error {
				mu.Lock()
				order = append(order, caller)
				mu.Unlock()
				<-next
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		for range decodeAtOnce + many {
			go decode("busy")
		}
		synctest.Wait()
		go decode("other")
		synctest.Wait()
		if n := l.decoding.Waiting(); n != many+1 {
			t.Errorf("%d wait", n)
		}
		next <- struct{}{}
		synctest.Wait()
		if len(order) != decodeAtOnce+1 || order[decodeAtOnce] != "other" {
			t.Errorf("decoded for %q", order)
		}
		close(next)
		synctest.Wait()
		if len(order) != decodeAtOnce+many+1 {
			t.Errorf("%d were decoded", len(order))
		}
	})
}

// TestTooBusy is the server's trouble, for which the caller tries again, and not a fault of the file.
func TestTooBusy(t *testing.T) {
	l := open(t)
	occupy(l.working)
	occupy(l.decoding)
	voice := tone(t, "a.ogg", 1, "-c:a", "libopus")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, voiceErr := l.Recorded(ctx, "demo", voice, "a.ogg")
	pictureErr := pictureError(l.work(ctx, l.decoding, func() error { return io.EOF }))
	for what, err := range map[string]error{"a voice note": voiceErr, "a picture": pictureErr} {
		e, ok := errors.AsType[*parley.Error](err)
		if !ok || e.Code != parley.Unavailable || e.RetryAfter <= 0 {
			t.Errorf("%s: %v", what, err)
		}
		if _, ok := errors.AsType[*Error](err); ok {
			t.Errorf("%s: the file is blamed: %v", what, err)
		}
	}
}

// TestStrangersTakeNoPlace: what came in is described while others have all places, and by its header alone.
func TestStrangersUseNoSlot(t *testing.T) {
	l := open(t)
	occupy(l.decoding)
	occupy(l.working)
	for name, data := range map[string][]byte{
		"a.png": toPNG(t, halves(30, 20)), "a.jpg": toJPEG(t, halves(30, 20)),
		"a.webp": ffmpeg(t, "a.webp", "-f", "lavfi", "-i", "testsrc=size=30x20", "-frames:v", "1"),
	} {
		m, err := l.Store(t.Context(), "demo", data, name)
		if err != nil || m.Key == "" || m.Width != 30 || m.Height != 20 || m.Thumbnail != nil {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	note := parley.Media{Seconds: 7, Waveform: []byte{1, 2, 3}}
	m, err := l.Receive(t.Context(), "demo", Claimed(note), func(f *os.File) error {
		_, err := f.Write([]byte("OggS\x00\x02" + strings.Repeat("\x00", 20) + "\x01\x13OpusHead"))
		return err
	})
	if err != nil || m.MIME != mimeOpus || m.Seconds != 7 || len(m.Waveform) != 3 {
		t.Errorf("a voice note: %+v, %v", m, err)
	}
}

// TestLargeFilesAreNotLookedAt: a picture that is larger than one that may be sent as such is just a file.
func TestLargeFilesAreNotLookedAt(t *testing.T) {
	data := append(toPNG(t, halves(30, 20)), make([]byte, maxImage)...)
	if m, err := described(t, open(t), data); err != nil || m.Size != int64(len(data)) || m.MIME != "image/png" || m.Width != 0 ||
		m.Thumbnail != nil {
		t.Errorf("%+v, %v", m, err)
	}
}
