package media

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
)

// Limits on the cost of one picture. Strangers send pictures, and a few kilobytes can take gigabytes of memory or hours
// of CPU.
const (
	// maxDecode bounds the memory of a decoder in bytes: 40 million pixels of four bytes fit. Two pictures are decoded
	// at once.
	maxDecode = 160 << 20

	// maxScans bounds the passes of a JPEG and maxVisits the samples of all passes. Each pass visits the whole picture,
	// however few bytes it has. Encoders use about ten; a photo of 40 million pixels, coded colour by colour, has 480
	// million visits.
	maxScans  = 100
	maxVisits = 500_000_000
)

var errCostly = errors.New("too costly to decode")

type cost struct {
	memory int64 // in bytes, at its highest
	scans  int   // passes over a JPEG
	visits int64 // samples that these go over
}

func (c cost) isTooHigh() bool {
	return c.memory > maxDecode || c.scans > maxScans || c.visits > maxVisits
}

func measureCost(r io.ReadSeeker, kind string, size image.Point) (cost, error) {
	if err := rewind(r); err != nil {
		return cost{}, err
	}
	switch kind {
	case "image/jpeg":
		return jpegCost(r)
	case "image/png":
		return pngCost(r, size)
	}
	return cost{memory: 2 * area(size)}, nil // a GIF has a byte for each pixel, and a second one while its rows are put in order
}

func area(size image.Point) int64 { return int64(size.X) * int64(size.Y) }

// pngCost reads a PNG's first chunk, which its decoder makes sure is the header.
func pngCost(r io.Reader, size image.Point) (cost, error) {
	const depthAt, colourAt, interlaceAt, headerLen = 24, 25, 28, 29
	var header [headerLen]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return cost{}, fmt.Errorf("read header of image/png: %w", err)
	}
	const palette, deep = 3, 16
	perPixel := int64(4)
	switch {
	case header[colourAt] == palette:
		perPixel = 1
	case header[depthAt] == deep:
		perPixel = 8
	}
	if header[interlaceAt] != 0 {
		perPixel *= 2 // its passes are decoded into pictures of their own
	}
	return cost{memory: perPixel * area(size)}, nil
}

// maxRead bounds one read of a decoder. A few bytes can cause much work, and it can be stopped only between reads.
const maxRead = 256

// deadlineReader fails after a deadline: decoders have no context, but they stop when they cannot read.
type deadlineReader struct {
	ctx  context.Context
	from io.Reader
}

func (t *deadlineReader) Read(p []byte) (int, error) {
	if t.ctx.Err() != nil {
		return 0, context.Cause(t.ctx)
	}
	return t.from.Read(p[:min(len(p), maxRead)])
}

// Markers of a JPEG: each begins a segment.
const (
	jpegBaseline    = 0xc0
	jpegExtended    = 0xc1
	jpegProgressive = 0xc2
	jpegScan        = 0xda
	jpegEnd         = 0xd9
	jpegExif        = 0xe1
	jpegAdobe       = 0xee
)

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
		switch marker {
		case jpegBaseline, jpegExtended, jpegProgressive:
			f.readFrame(marker, segment)
		case jpegScan:
			f.scans++
		case jpegAdobe:
			const transform = 11
			f.rgb = f.rgb || len(segment) > transform && bytes.HasPrefix(segment, []byte("Adobe")) && segment[transform] == 0
		}
	}
	return cost{f.memory(), f.scans, int64(f.scans) * f.samples()}, nil
}

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

// readFrame reads the header of a frame. The decoder accepts only one.
func (f *jpegFile) readFrame(marker byte, frame []byte) {
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

type webpFile struct {
	canvas image.Point // the size of the picture
	frame  image.Point // the size of its first frame
	still  []byte      // a file with that frame alone: the decoder knows no animation
}

var errWebP = errors.New("malformed WebP")

func parseWebP(data []byte) (webpFile, error) {
	w := webpFile{still: data}
	if len(data) < 12 {
		return w, errWebP
	}
	for name, chunk := range riffChunks(data[12:]) {
		switch name {
		case "VP8X":
			if len(chunk) < 10 || w.canvas != (image.Point{}) { // of two sizes, the decoder might believe the other one
				return w, errWebP
			}
			w.canvas = image.Pt(1+uint24(chunk[4:]), 1+uint24(chunk[7:]))
		case "VP8 ", "VP8L":
			w.frame = webpFrameSize(name, chunk)
		case "ANMF":
			if len(chunk) < 16 {
				return w, errWebP
			}
			if size, still := firstFrame(chunk[16:]); still != nil {
				w.frame, w.still = size, still
			}
		}
		if w.frame != (image.Point{}) {
			break
		}
	}
	if w.frame == (image.Point{}) {
		return w, errWebP
	}
	if w.canvas == (image.Point{}) {
		w.canvas = w.frame
	}
	return w, nil
}

// memory returns the memory to decode the still picture, in bytes. The decoder reads the whole file first.
func (w webpFile) memory() int64 {
	memory := 3 * int64(len(w.still))
	for name, chunk := range riffChunks(w.still[12:]) {
		switch name {
		case "ALPH":
			memory += area(w.canvas) + losslessMemory(w.canvas, len(chunk))
		case "VP8L":
			return memory + losslessMemory(w.frame, len(chunk))
		case "VP8 ":
			const block = 16
			return memory + 2*area(w.frame.Add(image.Pt(block, block))) // one and a half bytes, and notes on each block
		}
	}
	return memory
}

// losslessMemory returns the memory of a lossless picture: eight bytes per pixel, the tiles, and the tables of its
// code. There may be 2,600 tables of 53 kB, which only decoding shows; but 300 bytes of table take at least a byte of
// the file.
func losslessMemory(size image.Point, coded int) int64 {
	const mostTables, perByte = 2_600 * 53_000, 300
	return 9*area(size) + min(mostTables, perByte*int64(coded))
}

// firstFrame makes a WebP file of an animation's frame. Its transparency is left out: only
// thumbnails are made of it.
func firstFrame(data []byte) (image.Point, []byte) {
	for name, chunk := range riffChunks(data) {
		size := webpFrameSize(name, chunk)
		if size == (image.Point{}) {
			continue
		}
		return size, riffFile(name, chunk)
	}
	return image.Point{}, nil
}

// webpFrameSize reads the size of a frame from the header of its codec; zero: it is no frame.
func webpFrameSize(name string, chunk []byte) image.Point {
	switch {
	case name == "VP8 " && len(chunk) >= 10:
		return image.Pt(int(binary.LittleEndian.Uint16(chunk[6:])&0x3fff), int(binary.LittleEndian.Uint16(chunk[8:])&0x3fff))
	case name == "VP8L" && len(chunk) >= 5:
		bits := binary.LittleEndian.Uint32(chunk[1:])
		return image.Pt(1+int(bits&0x3fff), 1+int(bits>>14&0x3fff))
	}
	return image.Point{}
}

// riffChunks passes the chunks of a RIFF file, up to a truncated one.
func riffChunks(data []byte) func(yield func(name string, chunk []byte) bool) {
	return func(yield func(string, []byte) bool) {
		for len(data) >= 8 {
			size := uint64(binary.LittleEndian.Uint32(data[4:]))
			if size > uint64(len(data)-8) || !yield(string(data[:4]), data[8:8+size]) {
				return
			}
			data = data[min(uint64(len(data)), 8+size+size%2):]
		}
	}
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// riffFile makes a WebP file of one chunk.
func riffFile(name string, chunk []byte) []byte {
	padded := len(chunk) + len(chunk)%2
	file := []byte("RIFF")
	file = binary.LittleEndian.AppendUint32(file, uint32(4+8+padded))
	file = append(file, "WEBP"+name...)
	file = binary.LittleEndian.AppendUint32(file, uint32(len(chunk)))
	file = append(file, chunk...)
	return append(file, make([]byte, padded-len(chunk))...)
}
