package media

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/bits"

	"parley"
)

// How much of a film is read to describe it. Otherwise it is sent without a description.
const (
	maxBoxes   = 1000     // of an MP4
	webmHeader = 64 << 10 // bytes at the start of a WebM, which describe its content
)

func describeVideo(r io.ReaderAt, kind string, m *parley.Media) {
	if kind == "video/webm" {
		opening := make([]byte, min(m.Size, webmHeader))
		if n, err := r.ReadAt(opening, 0); err == nil || errors.Is(err, io.EOF) {
			describeWebM(opening[:n], m)
		}
		return
	}
	describeMP4(r, m)
}

// box is a part of an MP4, QuickTime or 3GP file: its type and the position of its content.
type box struct {
	kind     string
	from, to int64
}

type boxReader struct {
	from io.ReaderAt
	left int // boxes that may still be looked at
}

func describeMP4(r io.ReaderAt, m *parley.Media) {
	boxes := &boxReader{r, maxBoxes}
	boxes.each(box{to: m.Size}, func(b box) {
		if b.kind == "moov" {
			boxes.each(b, func(inside box) { boxes.describe(inside, m) })
		}
	})
}

func (r *boxReader) describe(b box, m *parley.Media) {
	switch b.kind {
	case "mvhd":
		m.Seconds = r.seconds(b)
	case "trak":
		r.each(b, func(inside box) {
			if inside.kind == "tkhd" && m.Width == 0 {
				m.Width, m.Height = r.shown(inside)
			}
		})
	}
}

// each visits the boxes within another, up to a damaged one.
func (r *boxReader) each(outer box, visit func(box)) {
	for at := outer.from; at < outer.to && r.left > 0; r.left-- {
		var head [16]byte
		if n, err := r.from.ReadAt(head[:], at); n < 8 || err != nil && !errors.Is(err, io.EOF) {
			return
		}
		size, header := int64(binary.BigEndian.Uint32(head[:])), int64(8)
		switch size {
		case 0: // up to the end
			size = outer.to - at
		case 1: // it is too large for four bytes
			size, header = int64(binary.BigEndian.Uint64(head[8:])&math.MaxInt64), 16
		}
		if size < header || size > outer.to-at {
			return
		}
		visit(box{string(head[4:8]), at + header, at + size})
		at += size
	}
}

// content reads a box that has a fixed length by its version, which is its first byte; nil: it has not.
func (r *boxReader) content(b box, lengths [2]int) []byte {
	var version [1]byte
	if _, err := r.from.ReadAt(version[:], b.from); err != nil || version[0] > 1 {
		return nil
	}
	content := make([]byte, lengths[version[0]])
	if int64(len(content)) > b.to-b.from {
		return nil
	}
	if _, err := r.from.ReadAt(content, b.from); err != nil {
		return nil
	}
	return content
}

// seconds is how long a film lasts; zero: it does not say.
func (r *boxReader) seconds(b box) int {
	content := r.content(b, [2]int{20, 32})
	if content == nil {
		return 0
	}
	scale, length := binary.BigEndian.Uint32(content[12:]), uint64(binary.BigEndian.Uint32(content[16:]))
	if content[0] == 1 {
		scale, length = binary.BigEndian.Uint32(content[20:]), binary.BigEndian.Uint64(content[24:])
	}
	if scale == 0 {
		return 0
	}
	return wholeSeconds(float64(length) / float64(scale))
}

// shown is how large a track is shown, turned as it is to be turned; zero: it is not one to look at.
func (r *boxReader) shown(b box) (width, height int) {
	content := r.content(b, [2]int{84, 96})
	if content == nil {
		return 0, 0
	}
	const turns, size = 44, 8 // from the end: a matrix of nine numbers, then width and height
	matrix, end := content[len(content)-turns:], content[len(content)-size:]
	width, height = int(binary.BigEndian.Uint16(end)), int(binary.BigEndian.Uint16(end[4:])) // the fraction is left out
	if binary.BigEndian.Uint32(matrix) == 0 && binary.BigEndian.Uint32(matrix[4:]) != 0 {    // by a quarter
		return height, width
	}
	return width, height
}

// Elements of WebM that describe a film.
const (
	webmSegment  = 0x18538067
	webmTracks   = 0x1654ae6b
	webmTrack    = 0xae
	webmCluster  = 0x1f43b675 // ends the description
	webmInfo     = 0x1549a966
	webmScale    = 0x2ad7b1 // nanoseconds per unit of time
	webmDuration = 0x4489
	webmVideo    = 0xe0
	webmWidth    = 0xb0
	webmHeight   = 0xba
)

// describeWebM reads the part before the first frames.
func describeWebM(opening []byte, m *parley.Media) {
	scale, duration := 1e6, 0.0
	for rest := opening; len(rest) > 0; {
		id, n := webmNumber(rest, true)
		size, k := webmNumber(rest[n:], false)
		if n == 0 || k == 0 || id == webmCluster {
			break
		}
		rest = rest[n+k:]
		switch id {
		case webmSegment, webmTracks, webmTrack, webmInfo, webmVideo:
			continue // its children are read like siblings
		}
		if size > uint64(len(rest)) {
			break
		}
		switch body := rest[:size]; id {
		case webmScale:
			scale = float64(webmUnsigned(body))
		case webmDuration:
			duration = webmFloat(body)
		case webmWidth:
			m.Width = int(min(webmUnsigned(body), math.MaxUint16))
		case webmHeight:
			m.Height = int(min(webmUnsigned(body), math.MaxUint16))
		}
		rest = rest[size:]
	}
	m.Seconds = wholeSeconds(duration * scale / 1e9)
}

func webmUnsigned(b []byte) (n uint64) {
	for _, digit := range b[:min(len(b), 8)] {
		n = n<<8 | uint64(digit)
	}
	return n
}

func webmFloat(b []byte) float64 {
	switch len(b) {
	case 4:
		return float64(math.Float32frombits(binary.BigEndian.Uint32(b)))
	case 8:
		return math.Float64frombits(binary.BigEndian.Uint64(b))
	}
	return 0
}

// wholeSeconds rounds up; zero: nothing lasts so long.
func wholeSeconds(seconds float64) int {
	const most = 24 * 60 * 60
	if !(seconds > 0 && seconds <= most) {
		return 0
	}
	return int(math.Ceil(seconds))
}

// webmNumber returns a number and its length in bytes, which the leading zero bits encode; 0: invalid. An id keeps the
// marker bit, a size does not.
func webmNumber(data []byte, marked bool) (value uint64, n int) {
	if len(data) == 0 || data[0] == 0 {
		return 0, 0
	}
	if n = 1 + bits.LeadingZeros8(data[0]); n > len(data) {
		return 0, 0
	}
	value = webmUnsigned(data[:n])
	if !marked {
		value &= 1<<(7*n) - 1
	}
	return value, n
}
