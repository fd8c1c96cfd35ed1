package media

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// recorded is what browsers record: webm that is written while somebody speaks, with sizes left open.
func recorded(t testing.TB, seconds float64, args ...string) []byte {
	t.Helper()
	return tone(t, "a.webm", seconds, append([]string{"-c:a", "libopus", "-live", "1"}, args...)...)
}

// A recording needs no ffmpeg where a browser makes opus, whatever it is packed in. One that needs it
// says so.
func TestRecorded(t *testing.T) {
	data := map[string][]byte{
		"live.webm": recorded(t, 3), "stereo.webm": recorded(t, 3, "-ac", "2"), "60ms.webm": recorded(t, 3, "-frame_duration", "60"),
		"whole.webm": tone(t, "a.webm", 3, "-c:a", "libopus"), "loud.webm": recorded(t, 3, "-b:a", "256k"), "a.ogg": tone(t, "a.ogg", 3, "-c:a", "libopus"),
	}
	converted := map[string][]byte{
		"a.mp4": tone(t, "a.mp4", 3, "-movflags", "frag_keyframe+empty_moov"), "vorbis.webm": tone(t, "a.ogg", 3, "-c:a", "libvorbis"),
		"surround.webm": recorded(t, 3, "-ac", "6", "-mapping_family", "1"),
	}
	with, without := open(t), open(t)
	without.UseFFmpeg(filepath.Join(t.TempDir(), "ffmpeg"))
	for name, data := range data {
		m, err := without.Recorded(t.Context(), data, name)
		wantRecorded(t, without, name, m.Key, err)
		if m.MIME != mimeOpus || m.Seconds != 3 || len(m.Waveform) != 64 || slices.Min(m.Waveform[2:62]) < 80 || !strings.HasSuffix(m.Filename, ".ogg") {
			t.Errorf("%s: %+v", name, m)
		}
	}
	for name, data := range converted {
		m, err := with.Recorded(t.Context(), data, "")
		wantRecorded(t, with, name, m.Key, err)
		if m.MIME != mimeOpus || m.Seconds != 3 || m.Filename != "voice.ogg" {
			t.Errorf("%s: %+v", name, m)
		}
		empty := open(t)
		empty.UseFFmpeg(filepath.Join(t.TempDir(), "ffmpeg"))
		_, err = empty.Recorded(t.Context(), data, "")
		mustRefuse(t, empty, err, "ffmpeg is not installed")
	}
	for says, data := range map[string][]byte{"is text/plain, not audio": []byte("hello"), "is empty": nil, "is image/png, not audio": pngOf(t, halves(2, 2))} {
		empty := open(t)
		_, err := empty.Recorded(t.Context(), data, "")
		mustRefuse(t, empty, err, says)
	}
}

// wantRecorded holds that a kept recording is one that others can play too.
func wantRecorded(t *testing.T, l *Library, name, key string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", name, errors.Join(err, errors.Unwrap(err)))
	}
	file := filepath.Join(t.TempDir(), "kept.ogg")
	if err := os.WriteFile(file, read(t, l, key), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "ffmpeg", "-nostdin", "-v", "warning", "-f", "ogg", "-i", file, "-f", "null", "-").CombinedOutput()
	if err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("%s: ffmpeg says of it: %s (%v)", name, out, err)
	}
}

func TestOggOfRefuses(t *testing.T) {
	good := recorded(t, 0.2)
	for name, data := range map[string][]byte{
		"nothing": nil, "no sound": good[:bytes.Index(good, []byte("A_OPUS"))-1], "cut short": good[:len(good)-3],
		"two tracks": append(bytes.Clone(good), webmTrack, 0x80), "packets that are laced": append(bytes.Clone(good), webmSimpleBlock, 0x84, 0x81, 0, 0, 0x02),
		"sound before its head": {webmTrack, 0x80, webmSimpleBlock, 0x85, 0x81, 0, 0, 0, 0xf8}, "a size of no end": {0xec, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	} {
		if ogg, err := oggOf(data); err == nil {
			t.Errorf("%s became %d bytes of ogg", name, len(ogg))
		}
	}
}

func FuzzOggOf(f *testing.F) {
	good := recorded(f, 0.2, "-b:a", "8k")
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		ogg, err := oggOf(data)
		if err != nil {
			return
		}
		if kind := sniff(ogg[:min(len(ogg), sniffLen)]); kind != mimeOpus {
			t.Errorf("it became %s", kind)
		}
	})
}
