package media

import (
	"bytes"
	"compress/zlib"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
)

func TestKeepDescribesByContent(t *testing.T) {
	l := open(t)
	data := toJPEG(t, halves(300, 200))
	m, err := l.Store(t.Context(), "demo", data, "../../evil/photo.exe")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	if m.MIME != "image/jpeg" || m.Width != 300 || m.Height != 200 || m.Size != int64(len(data)) || m.Filename != "photo.exe" ||
		!bytes.Equal(m.SHA256, sum[:]) || m.Thumbnail != nil || m.Source != "" {
		t.Errorf("%+v", m)
	}
	f, err := l.Open(t.Context(), m.Key)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v, want the %d that were kept", len(got), err, len(data))
	}
	checkModes(t, l)

	if err := l.Remove(t.Context(), m.Key); err != nil {
		t.Error(err)
	}
	if err := l.Remove(t.Context(), m.Key); err != nil {
		t.Errorf("removing twice: %v", err)
	}
	if _, err := l.Open(t.Context(), m.Key); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after removal: %v", err)
	}
}

// described describes a file as one that is sent as a document.
func described(t *testing.T, l *Library, data []byte) (parley.Media, error) {
	t.Helper()
	d, err := l.newDraft()
	if err != nil {
		t.Fatal(err)
	}
	defer d.discard()
	f := &fetched{draft: d}
	if err := f.receive(l, bytes.NewReader(data), "file", maxFile); err != nil {
		t.Fatal(err)
	}
	l.describe(t.Context(), f.draft, f.kind, &f.media)
	f.media.MIME = f.kind
	return f.media, nil
}

func checkModes(t *testing.T, l *Library) {
	t.Helper()
	filepath.Walk(l.dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			t.Fatal(err)
		}
		want := os.FileMode(0o600)
		if info.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		return nil
	})
}

func TestKeepTakesWhatCannotBeRead(t *testing.T) {
	l := open(t)
	for name, test := range map[string]struct {
		data []byte
		mime string
	}{
		"huge.png":   {hugePNG(t), "image/png"},
		"cut.jpg":    {toJPEG(t, halves(50, 50))[:100], "image/jpeg"},
		"cut.ogg":    {[]byte("OggS\x00\x02" + strings.Repeat("\x00", 20) + "\x01\x13OpusHead"), mimeOpus},
		"empty":      {nil, "text/plain; charset=utf-8"},
		"noise.bin":  {bytes.Repeat([]byte{0, 1, 2, 0xfe}, 100), "application/octet-stream"},
		"table.csv":  {[]byte("a,b\n1,2\n"), "text/csv"},
		"letter.pdf": {[]byte("%PDF-1.7\n"), "application/pdf"},
	} {
		m, err := l.Store(t.Context(), "demo", test.data, name)
		if err != nil || m.MIME != test.mime || m.Width != 0 || m.Thumbnail != nil || m.Seconds != 0 || m.Filename != name {
			t.Errorf("%s: %+v, %v, want %s", name, m, err, test.mime)
		}
	}
}

func TestVoiceIsMeasured(t *testing.T) {
	m, err := described(t, open(t), tone(t, "a.ogg", 2, "-c:a", "libopus"))
	if err != nil || m.Seconds != 2 || len(m.Waveform) != waveformPoints || m.MIME != mimeOpus {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestKeysReachNothingElse(t *testing.T) {
	l := open(t)
	if err := os.WriteFile(filepath.Join(l.dir, "secret"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", "secret", "../secret", "../../../../etc/passwd", strings.Repeat("A", 32), strings.Repeat("a", 31),
		strings.Repeat("a", 32) + "\n", "tmp"} {
		if _, err := l.Open(t.Context(), key); err == nil {
			t.Errorf("%q can be opened", key)
		}
		if err := l.Remove(t.Context(), key); err == nil {
			t.Errorf("%q can be removed", key)
		}
	}
}

// A crash can leave only temporary files, which the next start removes.
func TestOpenRemovesWhatACrashLeft(t *testing.T) {
	l := open(t)
	kept, err := l.Store(t.Context(), "demo", []byte("kept"), "a.txt")
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.newDraft()
	if err != nil {
		t.Fatal(err)
	}
	d.WriteString("half")
	d.Close() // and no more
	if err := os.Chmod(l.dir, 0o755); err != nil {
		t.Fatal(err)
	}

	again, err := Open(Config{Dir: l.dir}, loopback)
	if err != nil {
		t.Fatal(err)
	}
	path := filePath(t, again, kept.Key)
	if files := listFiles(t, again); len(files) != 1 || files[0] != path {
		t.Errorf("%v, want only %s", files, path)
	}
	checkModes(t, again)
}

func TestParallelKeep(t *testing.T) {
	l := open(t)
	data := toPNG(t, halves(64, 64))
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			if _, err := l.Store(t.Context(), "demo", data, "a.png"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if files := listFiles(t, l); len(files) != 30 {
		t.Errorf("%d files, want 30", len(files))
	}
}

func TestOpenNeedsAFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Config{Dir: path}, loopback); err == nil {
		t.Error("a file is opened as a library")
	}
}

func TestFolderThatCannotBeMadeLeavesNoFile(t *testing.T) {
	l := open(t)
	for i := range 256 { // in the way of every first level
		name := filepath.Join(l.dir, string("0123456789abcdef"[i/16])+string("0123456789abcdef"[i%16]))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Store(t.Context(), "demo", []byte("x"), ""); err == nil {
		t.Error("kept nowhere")
	}
	if entries, err := os.ReadDir(l.TempDir()); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// flatJPEG is a JPEG of one grey, whose coded pixels are all zero bits: large pictures are made in no time.
type flatJPEG struct {
	width, height int
	sampling      byte // of the brightness, against colours of 0x11; zero: 0x11
	progressive   bool
	scans         int // more passes over the brightness; progressive only
	adobe         bool
}

func (f flatJPEG) bytes() []byte {
	if f.sampling == 0 {
		f.sampling = 0x11
	}
	frame, ac := byte(jpegBaseline), byte(0x00) // the end of a block
	if f.progressive {
		frame, ac = jpegProgressive, 0xe0 // the end of 16,384 blocks
	}
	across, down := int(f.sampling>>4), int(f.sampling&15)
	groups := ((f.width + 8*across - 1) / (8 * across)) * ((f.height + 8*down - 1) / (8 * down))
	blocks := groups * (across*down + 2)

	out := []byte{0xff, 0xd8}
	segment := func(marker byte, body ...byte) {
		out = append(out, 0xff, marker)
		out = binary.BigEndian.AppendUint16(out, uint16(len(body)+2))
		out = append(out, body...)
	}
	if f.adobe {
		segment(jpegAdobe, append([]byte("Adobe"), 0, 100, 0, 0, 0, 0, 0)...)
	}
	segment(0xdb, append([]byte{0}, bytes.Repeat([]byte{1}, 64)...)...)
	size := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16([]byte{8}, uint16(f.height)), uint16(f.width))
	segment(frame, append(size, 3, 1, f.sampling, 0, 2, 0x11, 0, 3, 0x11, 0)...)
	oneCode := append([]byte{1}, make([]byte, 15)...) // a single code, of one bit
	segment(0xc4, append(append([]byte{0x00}, oneCode...), 0)...)
	segment(0xc4, append(append([]byte{0x10}, oneCode...), ac)...)
	if !f.progressive {
		segment(jpegScan, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0)
		return append(append(out, make([]byte, blocks*2/8+1)...), 0xff, jpegEnd)
	}
	segment(jpegScan, 3, 1, 0, 2, 0, 3, 0, 0, 0, 0)
	out = append(out, make([]byte, blocks/8+1)...)
	for range f.scans {
		segment(jpegScan, 1, 1, 0, 1, 63, 0)
		out = append(out, make([]byte, (groups*across*down/16384+1)*15/8+1)...)
	}
	return append(out, 0xff, jpegEnd)
}

// flatPNG is a PNG whose bytes are all zero.
type flatPNG struct {
	width, height int
	depth, colour byte
	interlaced    bool
}

func (f flatPNG) bytes(t testing.TB) []byte {
	t.Helper()
	channels := map[byte]int{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[f.colour]
	row := 1 + (f.width*channels*int(f.depth)+7)/8
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	for left, zeros := row*f.height, make([]byte, 1<<20); left > 0; left -= len(zeros) {
		if _, err := z.Write(zeros[:min(left, len(zeros))]); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	out := []byte("\x89PNG\r\n\x1a\n")
	chunk := func(name string, body []byte) {
		out = binary.BigEndian.AppendUint32(out, uint32(len(body)))
		at := len(out)
		out = append(append(out, name...), body...)
		out = binary.BigEndian.AppendUint32(out, crc(out[at:]))
	}
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(f.width)), uint32(f.height))
	interlaced := byte(0)
	if f.interlaced {
		interlaced = 1
	}
	chunk("IHDR", append(header, f.depth, f.colour, 0, 0, interlaced))
	if f.colour == 3 {
		chunk("PLTE", make([]byte, 3))
	}
	chunk("IDAT", packed.Bytes())
	chunk("IEND", nil)
	return out
}

// hostile are small files that took gigabytes of memory or minutes of a core.
func hostile(t testing.TB) map[string][]byte {
	return map[string][]byte{
		"/tall.png":        flatPNG{width: 1, height: 20_000_000, depth: 8}.bytes(t),
		"/progressive.jpg": flatJPEG{width: 6320, height: 6320, progressive: true, scans: 3}.bytes(),
		"/scans.jpg":       flatJPEG{width: 2500, height: 2500, progressive: true, scans: 400}.bytes(),
	}
}

// TestOlder lists complete files by their age, in pieces.
func TestOlder(t *testing.T) {
	l := open(t)
	now := time.Now()
	var old []string
	for i := range 20 {
		m, err := l.Store(t.Context(), "demo", []byte("file"), "a.txt")
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			if err := os.Chtimes(filePath(t, l, m.Key), now.Add(-2*time.Hour), now.Add(-2*time.Hour)); err != nil {
				t.Fatal(err)
			}
			old = append(old, m.Key)
		}
	}
	slices.Sort(old)
	for _, name := range []string{"tmp/00112233445566778899aabbccddeeff", "note.txt"} { // neither is a file of the library
		path := filepath.Join(l.dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, now.Add(-2*time.Hour), now.Add(-2*time.Hour))); err != nil {
			t.Fatal(err)
		}
	}
	for _, limit := range []int{1, 3, 100} {
		var got []string
		for after := ""; ; {
			keys, err := l.Older(t.Context(), now.Add(-time.Hour), after, limit)
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, keys...); len(keys) < limit {
				break
			}
			after = keys[len(keys)-1]
		}
		if !slices.Equal(got, old) {
			t.Errorf("%d at a time: %v, want %v", limit, got, old)
		}
	}
}
