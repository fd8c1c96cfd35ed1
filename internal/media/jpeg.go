package media

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"io"
)

// Markers of a JPEG: each begins a segment.
const (
	jpegBaseline    = 0xc0
	jpegExtended    = 0xc1
	jpegProgressive = 0xc2
	jpegScan        = 0xda
	jpegEnd         = 0xd9
	jpegAdobe       = 0xee
)

// jpegFile is the decoding cost of a JPEG, from its segments.
type jpegFile struct {
	size        image.Point
	components  []sampling // none: no frame yet
	progressive bool
	rgb         bool // its colours may have to be rearranged
	scans       int
}

// sampling is how many blocks a component has in each group of blocks, across and down.
type sampling struct{ across, down int64 }

// jpegCost reads the segments of a JPEG like its decoder. It stops where the decoder would fail: only earlier segments
// are decoded.
func jpegCost(r io.Reader) (cost, error) {
	in := bufio.NewReader(r)
	if _, err := in.Discard(2); err != nil { // the start of the picture
		return cost{}, err
	}
	var f jpegFile
	for f.scans <= maxScans {
		marker, segment, err := nextSegment(in)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || marker == jpegEnd {
			break
		}
		if err != nil {
			return cost{}, err
		}
		f.take(marker, segment)
	}
	return cost{f.memory(), f.scans, int64(f.scans) * f.samples()}, nil
}

// nextSegment reads the next marker with its content.
func nextSegment(in *bufio.Reader) (marker byte, segment []byte, err error) {
	if marker, err = nextMarker(in); err != nil || marker == jpegEnd {
		return marker, nil, err
	}
	var size [2]byte
	if _, err := io.ReadFull(in, size[:]); err != nil {
		return 0, nil, err
	}
	n := int(binary.BigEndian.Uint16(size[:])) - len(size)
	if n < 0 {
		return 0, nil, io.ErrUnexpectedEOF
	}
	segment = make([]byte, n)
	_, err = io.ReadFull(in, segment)
	return marker, segment, err
}

// nextMarker skips the coded pixels, in which 0xff is followed by a zero or a restart, and stray bytes.
func nextMarker(in *bufio.Reader) (byte, error) {
	for last := byte(0); ; {
		b, err := in.ReadByte()
		if err != nil {
			return 0, err
		}
		restart := b >= 0xd0 && b <= 0xd7
		if last == 0xff && b != 0 && b != 0xff && !restart {
			return b, nil
		}
		last = b
	}
}

func (f *jpegFile) take(marker byte, segment []byte) {
	switch marker {
	case jpegBaseline, jpegExtended, jpegProgressive:
		f.takeFrame(marker, segment)
	case jpegScan:
		f.scans++
	case jpegAdobe:
		const transform = 11
		f.rgb = f.rgb || len(segment) > transform && bytes.HasPrefix(segment, []byte("Adobe")) && segment[transform] == 0
	}
}

// takeFrame reads the header of a frame. The decoder accepts only one.
func (f *jpegFile) takeFrame(marker byte, frame []byte) {
	const fixed, each, most = 6, 3, 4
	if f.components != nil || len(frame) < fixed || int(frame[5]) > most || len(frame) != fixed+each*int(frame[5]) {
		return
	}
	f.progressive = marker == jpegProgressive
	f.size = image.Pt(int(binary.BigEndian.Uint16(frame[3:])), int(binary.BigEndian.Uint16(frame[1:])))
	var names []byte
	for c := frame[fixed:]; len(c) > 0; c = c[each:] {
		names = append(names, c[0])
		f.components = append(f.components, sampling{int64(max(1, c[1]>>4)), int64(max(1, c[1]&15))})
	}
	if len(f.components) == 1 {
		f.components[0] = sampling{1, 1} // alone it forms no groups, whatever it says
	}
	f.rgb = f.rgb || string(names) == "RGB"
}

// samples is how many there are of all components, those beyond the edge that fill a group included.
func (f *jpegFile) samples() (n int64) {
	if len(f.components) == 0 {
		return 0
	}
	first := f.components[0]
	groups := upTo(int64(f.size.X), 8*first.across) * upTo(int64(f.size.Y), 8*first.down)
	for _, c := range f.components {
		n += 64 * groups * c.across * c.down
	}
	return n
}

func upTo(length, step int64) int64 { return (length + step - 1) / step }

// memory is one byte per sample, four more for progressive files, and the pixels of colour models that are converted.
func (f *jpegFile) memory() int64 {
	memory := f.samples()
	if f.progressive {
		memory += 4 * f.samples()
	}
	if f.rgb || len(f.components) == 4 {
		memory += 4 * area(f.size)
	}
	return memory
}
