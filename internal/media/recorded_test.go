package media

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// recorded is what browsers record: webm that is written while somebody speaks, with sizes left open.
func recorded(t testing.TB, seconds float64, args ...string) []byte {
	t.Helper()
	return tone(t, "a.webm", seconds, append([]string{"-c:a", "libopus", "-live", "1"}, args...)...)
}

// TestRecorded keeps what browsers record. ffmpeg converts what is not ogg/opus; without it the answer says so.
func TestRecorded(t *testing.T) {
	converted := map[string][]byte{
		"live.webm": recorded(t, 3), "stereo.webm": recorded(t, 3, "-ac", "2"), "whole.webm": tone(t, "a.webm", 3, "-c:a", "libopus"),
		"a.mp4": tone(t, "a.mp4", 3, "-movflags", "frag_keyframe+empty_moov"), "vorbis.ogg": tone(t, "a.ogg", 3, "-c:a", "libvorbis"),
		"surround.webm": recorded(t, 3, "-ac", "6", "-mapping_family", "1"),
	}
	with, without := open(t), open(t)
	without.UseFFmpeg(filepath.Join(t.TempDir(), "ffmpeg"))
	m, err := without.Recorded(t.Context(), tone(t, "a.ogg", 3, "-c:a", "libopus"), "a.ogg")
	wantRecorded(t, without, "a.ogg", m.Key, err)
	if m.MIME != mimeOpus || m.Seconds != 3 || len(m.Waveform) != 64 || slices.Min(m.Waveform[2:62]) < 80 || m.Filename != "a.ogg" {
		t.Errorf("%+v", m)
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
