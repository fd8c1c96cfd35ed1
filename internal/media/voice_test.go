package media

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/confine"
)

func TestVoice(t *testing.T) {
	l := open(t)
	opus := tone(t, "a.ogg", 3, "-c:a", "libopus")
	for name, test := range map[string]struct {
		data []byte
		as   bool // kept as it is
	}{
		"a.ogg":        {opus, true},
		"a.opus":       {tone(t, "a.opus", 3, "-c:a", "libopus", "-ar", "16000", "-ac", "1", "-application", "voip", "-b:a", "16k"), true},
		"stereo.ogg":   {tone(t, "a.ogg", 3, "-c:a", "libopus", "-ac", "2"), true},
		"60ms.ogg":     {tone(t, "a.ogg", 3, "-c:a", "libopus", "-frame_duration", "60"), true},
		"2.5ms.ogg":    {tone(t, "a.ogg", 3, "-c:a", "libopus", "-frame_duration", "2.5"), true},
		"surround.ogg": {tone(t, "a.ogg", 3, "-c:a", "libopus", "-ac", "6", "-mapping_family", "1"), false},
		"vorbis.ogg":   {tone(t, "a.ogg", 3, "-c:a", "libvorbis"), false},
		"a.mp3":        {tone(t, "a.mp3", 3), false},
		"noid3.mp3":    {tone(t, "a.mp3", 3, "-id3v2_version", "0", "-write_xing", "0"), false},
		"a.wav":        {tone(t, "a.wav", 3), false},
		"a.aac":        {tone(t, "a.aac", 3), false},
		"a.m4a":        {tone(t, "a.m4a", 3), false},
		"mp42.m4a":     {tone(t, "a.mp4", 3), false},
		"a.3gp":        {tone(t, "a.3gp", 3, "-c:a", "aac"), false},
		"a.flac":       {tone(t, "a.flac", 3), false},
		"a.webm":       {tone(t, "a.webm", 3, "-c:a", "libopus"), false},
	} {
		url := serve(t, map[string][]byte{"/" + name: test.data}) + "/" + name
		m, err := l.Voice(t.Context(), Source{URL: url})
		if err != nil {
			t.Errorf("%s: %v", name, errors.Join(err, errors.Unwrap(err)))
			continue
		}
		if m.MIME != "audio/ogg; codecs=opus" || m.Seconds != 3 || len(m.Waveform) != 64 || m.Source != url ||
			!bytes.Equal(m.SHA256, sha(test.data)) || len(m.MediaKey) != 32 {
			t.Errorf("%s: %+v", name, m)
		}
		if loud := slices.Max(m.Waveform); loud != 100 {
			t.Errorf("%s: the loudest point of a tone is %d", name, loud)
		}
		kept := read(t, l, m.Key)
		if bytes.Equal(kept, test.data) != test.as {
			t.Errorf("%s: kept as it is: %t, want %t", name, !test.as, test.as)
		}
		if m.Size != int64(len(kept)) || sniff(kept[:min(len(kept), sniffLen)]) != mimeOpus {
			t.Errorf("%s: %d bytes of %s were kept, want %d of opus", name, len(kept), sniff(kept), m.Size)
		}
		if !test.as && !strings.HasSuffix(m.Filename, ".ogg") {
			t.Errorf("%s: named %s", name, m.Filename)
		}
	}
	if entries, err := os.ReadDir(l.TempDir()); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func read(t *testing.T, l *Library, key string) []byte {
	t.Helper()
	f, err := l.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestVoiceRefuses(t *testing.T) {
	l := open(t)
	opus := tone(t, "a.ogg", 3, "-c:a", "libopus")
	broken := bytes.Clone(opus)
	broken[len(broken)/2] ^= 0xff
	headers := opus[:bytes.Index(opus, []byte("OpusTags"))+200]
	film := ffmpeg(t, "a.mp4", "-f", "lavfi", "-i", "testsrc=size=64x64:duration=1", "-f", "lavfi", "-i", "sine=duration=1", "-c:v",
		"mpeg4", "-shortest")
	mov := ffmpeg(t, "a.mov", "-f", "lavfi", "-i", "testsrc=size=64x64:duration=1", "-f", "lavfi", "-i", "sine=duration=1", "-c:v",
		"mpeg4", "-shortest")
	base := serve(t, map[string][]byte{
		"/film.aac": mov,
		"/cut.ogg":  opus[:len(opus)*2/3], "/broken.ogg": broken, "/headers.ogg": headers, "/film.m4a": film,
		"/page.mp3": []byte("<html>"), "/text.wav": []byte("hello"), "/picture.ogg": toPNG(t, halves(3, 3)),
		"/noise.mp3": append([]byte("ID3\x04\x00\x00\x00\x00\x00\x00"), bytes.Repeat([]byte("noise"), 1000)...),
		"/list.mp3":  []byte("#EXTM3U\nfile:///etc/passwd\n"), "/head.wav": []byte("RIFF\x24\x00\x00\x00WAVE"),
		"/concat.mp3": []byte("ffconcat version 1.0\nfile /etc/passwd\n"),
	})
	for path, says := range map[string]string{
		"/cut.ogg": "cut short", "/broken.ogg": "damaged", "/headers.ogg": "damaged", "/film.m4a": "gives video/mp4, not audio",
		"/film.aac": "gives video/quicktime, not audio",
		"/page.mp3": "gives text/html, not audio", "/text.wav": "gives text/plain, not audio", "/picture.ogg": "gives image/png, not audio",
		"/noise.mp3": "could not be converted", "/list.mp3": "gives text/plain", "/concat.mp3": "gives text/plain",
		"/head.wav": "could not be converted",
		"/none.mp3": "status 404",
	} {
		_, err := l.Voice(t.Context(), Source{URL: base + path})
		mustRefuse(t, l, err, says)
	}
}

func TestVoiceWithoutFFmpeg(t *testing.T) {
	mp3, opus := tone(t, "a.mp3", 1), tone(t, "a.ogg", 1, "-c:a", "libopus")
	base := serve(t, map[string][]byte{"/a.mp3": mp3, "/a.ogg": opus})
	hidden := open(t)
	hidden.ffmpeg = filepath.Join(t.TempDir(), "ffmpeg")
	emptyPath := open(t)
	t.Setenv("PATH", t.TempDir())
	for _, l := range []*Library{hidden, emptyPath} {
		_, err := l.Voice(t.Context(), Source{URL: base + "/a.mp3"})
		mustRefuse(t, l, err, "This server can send only ogg/opus voice notes, because ffmpeg is not installed. "+
			"Send an .ogg/.opus file, or install ffmpeg.")
		if m, err := l.Voice(t.Context(), Source{URL: base + "/a.ogg"}); err != nil || m.Seconds != 1 {
			t.Errorf("ogg/opus needs no ffmpeg: %+v, %v", m, err)
		}
	}
}

// fakeFFmpeg is a program in ffmpeg's place.
func fakeFFmpeg(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ffmpeg")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFFmpegIsBounded(t *testing.T) {
	base := serve(t, map[string][]byte{"/a.mp3": tone(t, "a.mp3", 1)})
	for script, says := range map[string]string{
		"exec /bin/cat /dev/zero":                          "too long",
		"echo \"Unknown encoder 'libopus'\" >&2; exit 1":   "cannot make opus",
		"/usr/bin/head -c 100000000 /dev/zero >&2; exit 1": "could not be converted",
		"exit 0":                      "damaged",
		"echo anything > \"$0.made\"": "could not be converted", // it may write no file
		"/usr/bin/env | /bin/grep -q HOME && exit 0; kill -9 $$": "could not be converted",
	} {
		l := open(t)
		l.ffmpeg = fakeFFmpeg(t, script)
		_, err := l.Voice(t.Context(), Source{URL: base + "/a.mp3"})
		mustRefuse(t, l, err, says)
	}
}

// TestFFmpegReadsItsInputOnly has ffmpeg's place taken by a program that sends out another file of the library as a voice note.
func TestFFmpegReadsItsInputOnly(t *testing.T) {
	if !confine.HidesFiles() {
		t.Skip("this kernel has no Landlock")
	}
	base := serve(t, map[string][]byte{"/a.mp3": tone(t, "a.mp3", 1)})
	secret := filepath.Join(t.TempDir(), "secret.key")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for script, says := range map[string]string{
		`for a; do case $a in file:*) exec /bin/cat "${a#file:}"; esac; done`: "damaged", // it is no ogg/opus
		"exec /bin/cat " + secret: "could not be converted",
	} {
		l := open(t)
		l.ffmpeg = fakeFFmpeg(t, script)
		_, err := l.Voice(t.Context(), Source{URL: base + "/a.mp3"})
		mustRefuse(t, l, err, says)
	}
}

func TestFFmpegEndsWithItsContext(t *testing.T) {
	base := serve(t, map[string][]byte{"/a.mp3": tone(t, "a.mp3", 1)})
	l := open(t)
	l.ffmpeg = fakeFFmpeg(t, "while :; do :; done")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := l.Voice(ctx, Source{URL: base + "/a.mp3"})
		ended <- err
	}()
	for deadline := time.Now().Add(2 * time.Minute); !isRunning(t, "/bin/sh\x00"+l.ffmpeg); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("ffmpeg was not started")
		}
	}
	cancel()
	mustRefuse(t, l, <-ended, "too long to convert")
	if isRunning(t, "/bin/sh\x00"+l.ffmpeg) {
		t.Error("ffmpeg still runs")
	}
}

// isRunning reports whether a process has a command line that begins so.
func isRunning(t *testing.T, command string) bool {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(lines, func(path string) bool {
		line, _ := os.ReadFile(path) // it may have ended
		return strings.HasPrefix(string(line), command)
	})
}

func TestWaveform(t *testing.T) {
	l := open(t)
	wave := func(data []byte) []byte {
		t.Helper()
		m, err := described(t, l, data)
		if err != nil || len(m.Waveform) != 64 {
			t.Fatalf("%+v, %v", m, err)
		}
		return m.Waveform
	}
	silence := wave(ffmpeg(t, "a.ogg", "-f", "lavfi", "-i", "anullsrc=r=48000:cl=mono", "-t", "4", "-c:a", "libopus"))
	if slices.Max(silence) != 0 {
		t.Errorf("silence: %v", silence)
	}
	sine := wave(tone(t, "a.ogg", 4, "-c:a", "libopus"))
	if slices.Min(sine[2:62]) < 80 {
		t.Errorf("sine: %v", sine)
	}
	// Two seconds of each: the second half is quiet.
	both := wave(tone(t, "a.ogg", 4, "-af", "volume=enable='gte(t,2)':volume=0", "-c:a", "libopus"))
	if slices.Min(both[2:30]) < 80 || slices.Max(both[34:]) > 5 {
		t.Errorf("half and half: %v", both)
	}
	short := wave(tone(t, "a.ogg", 0.3, "-c:a", "libopus")) // fewer packets than points
	if slices.Min(short[10:50]) == 0 {
		t.Errorf("short: %v", short)
	}
}

// Of a long note not every packet is decoded, and still its shape is right.
func TestLongVoice(t *testing.T) {
	data := tone(t, "a.ogg", 300, "-af", "volume=enable='gte(t,150)':volume=0", "-ar", "8000", "-c:a", "libopus", "-b:a", "6k",
		"-compression_level", "0")
	m, err := described(t, open(t), data)
	if err != nil || m.Seconds != 300 || slices.Min(m.Waveform[1:31]) < 80 || slices.Max(m.Waveform[33:]) > 5 {
		t.Errorf("%d seconds, %v, %v", m.Seconds, m.Waveform, err)
	}
}

func TestPacketSamples(t *testing.T) {
	for name, test := range map[string]struct {
		packet []byte
		want   int64
	}{
		"nothing":              {nil, 0},
		"SILK 10 ms":           {[]byte{0 << 3}, 480},
		"SILK 60 ms":           {[]byte{11 << 3}, 2880},
		"hybrid 20 ms":         {[]byte{13 << 3}, 960},
		"CELT 2.5 ms":          {[]byte{16 << 3}, 120},
		"CELT 20 ms twice":     {[]byte{31<<3 | 1}, 1920},
		"CELT 20 ms, 3 frames": {[]byte{31<<3 | 3, 3}, 2880},
		"too many frames":      {[]byte{31<<3 | 3, 63}, 5760},
		"cut":                  {[]byte{31<<3 | 3}, 0},
	} {
		if got := packetSamples(test.packet); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

func FuzzMeasure(f *testing.F) {
	opus := tone(f, "a.ogg", 0.2, "-c:a", "libopus", "-b:a", "8k")
	f.Add(opus)
	f.Add(opus[:len(opus)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		fixChecksums(data)
		var seconds int
		var wave []byte
		err := unpanicked(func() (err error) {
			seconds, wave, err = measure(t.Context(), bytes.NewReader(data))
			return err
		})
		if err == nil && (seconds < 1 || len(wave) != waveformPoints || slices.Max(wave) > 100) {
			t.Errorf("%d seconds, %v", seconds, wave)
		}
	})
}

// fixChecksums makes the pages of an ogg file good again, so that what is in them is reached.
func fixChecksums(data []byte) {
	for at := 0; at+27 <= len(data); {
		page := data[at:]
		size := 27 + int(page[26])
		for i := range int(page[26]) {
			if 27+i < len(page) {
				size += int(page[27+i])
			}
		}
		if size > len(page) {
			return
		}
		clear(page[22:26])
		sum := uint32(0)
		for _, b := range page[:size] {
			sum ^= uint32(b) << 24
			for range 8 {
				sum = sum<<1 ^ 0x04c11db7&-(sum>>31)
			}
		}
		page[22], page[23], page[24], page[25] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
		at += size
	}
}

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
	without.ffmpeg = filepath.Join(t.TempDir(), "ffmpeg")
	m, err := without.Recorded(t.Context(), "demo", tone(t, "a.ogg", 3, "-c:a", "libopus"), "a.ogg")
	wantRecorded(t, without, "a.ogg", m.Key, err)
	if m.MIME != mimeOpus || m.Seconds != 3 || len(m.Waveform) != 64 || slices.Min(m.Waveform[2:62]) < 80 || m.Filename != "a.ogg" {
		t.Errorf("%+v", m)
	}
	for name, data := range converted {
		m, err := with.Recorded(t.Context(), "demo", data, "")
		wantRecorded(t, with, name, m.Key, err)
		if m.MIME != mimeOpus || m.Seconds != 3 || m.Filename != "voice.ogg" {
			t.Errorf("%s: %+v", name, m)
		}
		empty := open(t)
		empty.ffmpeg = filepath.Join(t.TempDir(), "ffmpeg")
		_, err = empty.Recorded(t.Context(), "demo", data, "")
		mustRefuse(t, empty, err, "ffmpeg is not installed")
	}
	for says, data := range map[string][]byte{"is text/plain, not audio": []byte("hello"), "is empty": nil,
		"is image/png, not audio": toPNG(t, halves(2, 2))} {
		empty := open(t)
		_, err := empty.Recorded(t.Context(), "demo", data, "")
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
	out, err := exec.CommandContext(t.Context(), "ffmpeg", "-nostdin", "-v", "warning", "-f", "ogg", "-i", file, "-f", "null",
		"-").CombinedOutput()
	if err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("%s: ffmpeg says of it: %s (%v)", name, out, err)
	}
}
