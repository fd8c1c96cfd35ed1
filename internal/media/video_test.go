package media

import (
	"bytes"
	"encoding/binary"
	"testing"

	"parley"
)

// newBox makes a part of an MP4.
func newBox(kind string, content ...[]byte) []byte {
	all := bytes.Join(content, nil)
	return append(append(binary.BigEndian.AppendUint32(nil, uint32(8+len(all))), kind...), all...)
}

// header makes the content of a box of zeros, with numbers at some places.
func header(length int, numbers map[int]uint32) []byte {
	b := make([]byte, length)
	for at, n := range numbers {
		binary.BigEndian.PutUint32(b[at:], n)
	}
	return b
}

func TestVideosAreDescribed(t *testing.T) {
	real := func(name string, args ...string) []byte {
		return ffmpeg(t, name, append([]string{"-f", "lavfi", "-i", "testsrc=size=96x64:rate=5:duration=2"}, args...)...)
	}
	const upright, one = 0x00010000, 0x00010000
	track := func(matrix map[int]uint32) []byte {
		numbers := map[int]uint32{76: 1920 << 16, 80: 1080 << 16}
		for at, n := range matrix {
			numbers[40+4*at] = n
		}
		return newBox("trak", newBox("tkhd", header(84, numbers)))
	}
	sound := newBox("trak", newBox("tkhd", header(84, nil)))
	length := newBox("mvhd", header(100, map[int]uint32{12: 600, 16: 600*7 + 1}))
	later := header(112, map[int]uint32{20: 1000, 28: 2500})
	later[0] = 1
	for name, test := range map[string]struct {
		kind                   string
		data                   []byte
		width, height, seconds int
	}{
		"mp4":             {"video/mp4", real("a.mp4", "-c:v", "mpeg4"), 96, 64, 2},
		"mp4, fast start": {"video/mp4", real("b.mp4", "-c:v", "mpeg4", "-movflags", "faststart"), 96, 64, 2},
		"3gp":             {"video/3gpp", real("a.3gp", "-c:v", "mpeg4"), 96, 64, 2},
		"mov":             {"video/quicktime", real("a.mov", "-c:v", "mpeg4"), 96, 64, 2},
		"webm":            {"video/webm", real("a.webm", "-c:v", "libvpx", "-deadline", "realtime"), 96, 64, 2},
		"turned":          {"video/mp4", newBox("moov", length, sound, track(map[int]uint32{1: one, 3: 0xffff0000})), 1080, 1920, 8},
		"upright":         {"video/mp4", newBox("moov", length, track(map[int]uint32{0: upright, 4: one})), 1920, 1080, 8},
		"the later form":  {"video/mp4", newBox("moov", newBox("mvhd", later)), 0, 0, 3},
		"up to the end": {"video/mp4", append(newBox("free"), append([]byte{0, 0, 0, 0}, append([]byte("moov"), track(nil)...)...)...),
			1920, 1080, 0},
		"cut short": {"video/mp4", newBox("moov", length, track(nil))[:150], 0, 0, 0},
		"no film":   {"video/mp4", []byte("not at all"), 0, 0, 0},
		"nothing":   {"video/webm", nil, 0, 0, 0},
	} {
		m := parley.Media{Size: int64(len(test.data))}
		describeVideo(bytes.NewReader(test.data), test.kind, &m)
		if m.Width != test.width || m.Height != test.height || m.Seconds != test.seconds {
			t.Errorf("%s: %d × %d, %d s; want %d × %d, %d s", name, m.Width, m.Height, m.Seconds, test.width, test.height, test.seconds)
		}
	}
}

func FuzzFilm(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x01moov\xff\xff\xff\xff\xff\xff\xff\xff"), false)
	f.Add(newBox("moov", newBox("mvhd", header(20, nil)), newBox("trak", newBox("tkhd", header(84, nil)))), false)
	f.Add([]byte("\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67\x01\xff\xff\xff\xff\xff\xff\xff\xb0\x88"), true)
	f.Fuzz(func(t *testing.T, data []byte, webm bool) {
		kind := "video/mp4"
		if webm {
			kind = "video/webm"
		}
		m := parley.Media{Size: int64(len(data))}
		describeVideo(bytes.NewReader(data), kind, &m)
		if m.Width < 0 || m.Height < 0 || m.Seconds < 0 {
			t.Errorf("%+v", m)
		}
	})
}
