package media

import (
	"bytes"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley"
)

func TestKeepDescribesByContent(t *testing.T) {
	l := open(t)
	data := jpegOf(t, halves(300, 200))
	m, err := l.Keep(data, "../../evil/photo.exe")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	if m.MIME != "image/jpeg" || m.Width != 300 || m.Height != 200 || m.Size != int64(len(data)) || m.Filename != "photo.exe" ||
		!bytes.Equal(m.SHA256, sum[:]) || m.Thumbnail != nil || m.Source != "" {
		t.Errorf("%+v", m)
	}
	f, err := l.Open(m.Key)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v, want the %d that were kept", len(got), err, len(data))
	}
	checkModes(t, l)

	if err := l.Remove(m.Key); err != nil {
		t.Error(err)
	}
	if err := l.Remove(m.Key); err != nil {
		t.Errorf("removing twice: %v", err)
	}
	if _, err := l.Open(m.Key); !os.IsNotExist(err) {
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
	if err := f.receive(bytes.NewReader(data), "file", maxFile); err != nil {
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
		"cut.jpg":    {jpegOf(t, halves(50, 50))[:100], "image/jpeg"},
		"cut.ogg":    {[]byte("OggS\x00\x02" + strings.Repeat("\x00", 20) + "\x01\x13OpusHead"), mimeOpus},
		"empty":      {nil, "text/plain; charset=utf-8"},
		"noise.bin":  {bytes.Repeat([]byte{0, 1, 2, 0xfe}, 100), "application/octet-stream"},
		"table.csv":  {[]byte("a,b\n1,2\n"), "text/csv"},
		"letter.pdf": {[]byte("%PDF-1.7\n"), "application/pdf"},
	} {
		m, err := l.Keep(test.data, name)
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
	for _, key := range []string{"", "secret", "../secret", "../../../../etc/passwd", strings.Repeat("A", 32), strings.Repeat("a", 31), strings.Repeat("a", 32) + "\n", "tmp"} {
		if _, err := l.Open(key); err == nil {
			t.Errorf("%q can be opened", key)
		}
		if err := l.Remove(key); err == nil {
			t.Errorf("%q can be removed", key)
		}
	}
}

// A crash can leave only temporary files, which the next start removes.
func TestOpenRemovesWhatACrashLeft(t *testing.T) {
	l := open(t)
	kept, err := l.Keep([]byte("kept"), "a.txt")
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

	again, err := Open(l.dir, loopback)
	if err != nil {
		t.Fatal(err)
	}
	path, _ := again.path(kept.Key)
	if files := filesOf(t, again); len(files) != 1 || files[0] != path {
		t.Errorf("%v, want only %s", files, path)
	}
	checkModes(t, again)
}

func TestParallelKeep(t *testing.T) {
	l := open(t)
	data := pngOf(t, halves(64, 64))
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			if _, err := l.Keep(data, "a.png"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if files := filesOf(t, l); len(files) != 30 {
		t.Errorf("%d files, want 30", len(files))
	}
}

func TestOpenNeedsAFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, loopback); err == nil {
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
	if _, err := l.Keep([]byte("x"), ""); err == nil {
		t.Error("kept nowhere")
	}
	if entries, err := os.ReadDir(filepath.Join(l.dir, tempDir)); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
