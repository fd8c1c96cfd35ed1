package media

import (
	"encoding/binary"
	"errors"
	"image"
)

// webpFile is the decoding cost of a WebP file.
type webpFile struct {
	canvas image.Point // the size of the picture
	frame  image.Point // the size of its first frame
	still  []byte      // a file with that frame alone: the decoder knows no animation
}

var errWebP = errors.New("malformed WebP")

// parseWebP walks over the chunks of a WebP file.
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
		padded := len(chunk) + len(chunk)%2
		file := []byte("RIFF")
		file = binary.LittleEndian.AppendUint32(file, uint32(4+8+padded))
		file = append(file, "WEBP"+name...)
		file = binary.LittleEndian.AppendUint32(file, uint32(len(chunk)))
		file = append(file, chunk...)
		return size, append(file, make([]byte, padded-len(chunk))...)
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
