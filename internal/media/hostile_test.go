package media

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"testing"
)

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
