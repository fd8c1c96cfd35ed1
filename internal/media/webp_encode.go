package media

import (
	"encoding/binary"
	"image"
)

// encodeWebP writes a picture as lossless WebP: golang.org/x/image only reads it. The format is RFC 9649. It uses two of the
// four transforms, prediction and subtracted green, and one set of prefix codes. The sides are at most 16,384.
func encodeWebP(img *image.NRGBA) []byte {
	size := img.Bounds().Size()
	pixels, opaque := pixelsOf(img)
	w := &bitWriter{}
	w.write(0x2f, 8) // signature
	w.write(uint32(size.X-1), 14)
	w.write(uint32(size.Y-1), 14)
	w.writeFlag(!opaque)
	w.write(0, 3) // version

	const hasTransform, predictor, subtractGreen = 1, 0, 2
	w.write(hasTransform, 1)
	w.write(subtractGreen, 2)
	for i, p := range pixels {
		pixels[i] = pixel{p[0] - p[1], p[1], p[2] - p[1], p[3]}
	}
	w.write(hasTransform, 1)
	w.write(predictor, 2)
	w.write(tileBits-2, 3)
	residuals, tiles := predict(pixels, size)
	w.writePixels(tiles, tileCount(size.X), false)
	w.write(0, 1) // no more transforms
	w.writePixels(residuals, size.X, true)
	return riffFile("VP8L", w.bytes())
}

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

// pixel has red, green, blue and alpha, not premultiplied.
type pixel [4]byte

func pixelsOf(img *image.NRGBA) (pixels []pixel, opaque bool) {
	size := img.Bounds().Size()
	pixels, opaque = make([]pixel, 0, size.X*size.Y), true
	for y := range size.Y {
		row := img.Pix[y*img.Stride:]
		for x := range size.X {
			p := pixel(row[4*x : 4*x+4])
			opaque = opaque && p[3] == 255
			pixels = append(pixels, p)
		}
	}
	return pixels, opaque
}

// Each tile of 16×16 pixels has a predictor of its own.
const (
	tileBits = 4
	tileSize = 1 << tileBits
)

func tileCount(side int) int { return (side + tileSize - 1) / tileSize }

// predict returns the difference of each pixel from its prediction, and the predictors as a picture that has them in green.
func predict(pixels []pixel, size image.Point) (residuals, tiles []pixel) {
	residuals = make([]pixel, len(pixels))
	tried, best := make([]pixel, 0, tileSize*tileSize), make([]pixel, 0, tileSize*tileSize)
	for top := 0; top < size.Y; top += tileSize {
		for left := 0; left < size.X; left += tileSize {
			tile := image.Rect(left, top, min(left+tileSize, size.X), min(top+tileSize, size.Y))
			chosen, least := byte(0), -1
			for _, mode := range predictors {
				sum := 0
				if tried, sum = residualsOf(pixels, size.X, tile, mode, tried[:0]); least < 0 || sum < least {
					chosen, least = mode, sum
					tried, best = best, tried
				}
			}
			i := 0
			for y := tile.Min.Y; y < tile.Max.Y; y++ {
				i += copy(residuals[y*size.X+tile.Min.X:y*size.X+tile.Max.X], best[i:])
			}
			tiles = append(tiles, pixel{0, chosen, 0, 255})
		}
	}
	return residuals, tiles
}

// residualsOf appends the differences in a tile. The sum of their sizes says how well they can be compressed.
func residualsOf(pixels []pixel, width int, tile image.Rectangle, mode byte, to []pixel) ([]pixel, int) {
	sum := 0
	for y := tile.Min.Y; y < tile.Max.Y; y++ {
		for x := tile.Min.X; x < tile.Max.X; x++ {
			at := y*width + x
			p, by := pixels[at], prediction(pixels, at, x, y, width, mode)
			for c := range p {
				p[c] -= by[c]
				sum += abs(int(int8(p[c]))) // the largest byte is next to zero
			}
			to = append(to, p)
		}
	}
	return to, sum
}

// Predictors: five of the format's fourteen. None looks at the pixel to the upper right.
const (
	predictLeft    = 1
	predictTop     = 2
	predictAverage = 7
	predictSelect  = 11
	predictSlope   = 12
)

var predictors = []byte{predictLeft, predictTop, predictAverage, predictSelect, predictSlope}

func prediction(pixels []pixel, at, x, y, width int, mode byte) (p pixel) {
	switch {
	case x == 0 && y == 0:
		return pixel{0, 0, 0, 255}
	case y == 0:
		return pixels[at-1]
	case x == 0:
		return pixels[at-width]
	}
	left, top, corner := pixels[at-1], pixels[at-width], pixels[at-width-1]
	switch mode {
	case predictLeft:
		return left
	case predictTop:
		return top
	case predictAverage:
		for c := range p {
			p[c] = byte((int(left[c]) + int(top[c])) / 2)
		}
	case predictSelect: // the one nearer to left + top - corner
		toLeft, toTop := 0, 0
		for c := range p {
			toLeft += abs(int(top[c]) - int(corner[c]))
			toTop += abs(int(left[c]) - int(corner[c]))
		}
		if toLeft < toTop {
			return left
		}
		return top
	case predictSlope:
		for c := range p {
			p[c] = byte(min(255, max(0, int(left[c])+int(top[c])-int(corner[c]))))
		}
	}
	return p
}

func abs(n int) int { return max(n, -n) }

// The alphabets of the five prefix codes. Lengths of copies follow green values.
const (
	lengthCodes   = 24
	distanceCodes = 40
	greenCodes    = 256 + lengthCodes
)

// symbol is a pixel, or a copy of earlier ones.
type symbol struct {
	pixel          pixel
	length, offset int // zero length: a pixel
}

// writePixels writes a picture. The main one says that all its pixels have the same prefix codes.
func (w *bitWriter) writePixels(pixels []pixel, width int, main bool) {
	w.write(0, 1) // no colour cache
	if main {
		w.write(0, 1)
	}
	symbols := findCopies(pixels, width)
	counts := [5][]int{make([]int, greenCodes), make([]int, 256), make([]int, 256), make([]int, 256), make([]int, distanceCodes)}
	for _, s := range symbols {
		if s.length > 0 {
			length, _, _ := prefixOf(s.length)
			offset, _, _ := prefixOf(s.offset)
			counts[0][256+length]++
			counts[4][offset]++
			continue
		}
		for i, c := range order {
			counts[i][s.pixel[c]]++
		}
	}
	var codes [5]prefixCode
	for i := range codes {
		codes[i] = newPrefixCode(counts[i], maxCodeLength)
		w.writeCode(codes[i])
	}
	for _, s := range symbols {
		if s.length > 0 {
			w.writePrefixed(codes[0], 256, s.length)
			w.writePrefixed(codes[4], 0, s.offset)
			continue
		}
		for i, c := range order {
			w.writeSymbol(codes[i], int(s.pixel[c]))
		}
	}
}

// order of the colours in the format: green, red, blue, alpha.
var order = [4]int{1, 0, 2, 3}

func (w *bitWriter) writePrefixed(code prefixCode, base, value int) {
	prefix, extra, bits := prefixOf(value)
	w.writeSymbol(code, base+prefix)
	w.write(uint32(extra), bits)
}

// prefixOf splits a length or a distance, from 1, into a symbol and extra bits.
func prefixOf(value int) (prefix, extra, bits int) {
	n := value - 1
	if n < 4 {
		return n, 0, 0
	}
	for n>>bits > 3 {
		bits++
	}
	return 2*bits + n>>bits, n & (1<<bits - 1), bits
}

const (
	minCopy  = 3
	maxCopy  = 4096
	maxTries = 16 // earlier pixels that are compared
	hashBits = 15

	// Copies from directly above and from the pixel before have codes of their own; other distances follow these.
	fromAbove   = 1
	fromBefore  = 2
	nearOffsets = 120
	maxOffset   = 1<<20 - nearOffsets
)

// findCopies replaces pixels that occurred before with copies. The first symbol is always a pixel.
func findCopies(pixels []pixel, width int) []symbol {
	symbols := make([]symbol, 0, len(pixels)/2)
	last := make([]int32, 1<<hashBits) // one more than where pixels with a hash were seen last
	previous := make([]int32, len(pixels))
	remember := func(i int) {
		if i+minCopy <= len(pixels) {
			h := hashOf(pixels[i:])
			previous[i], last[h] = last[h], int32(i+1)
		}
	}
	for i := 0; i < len(pixels); {
		length, from := longestCopy(pixels, i, last, previous)
		if length < minCopy {
			symbols = append(symbols, symbol{pixel: pixels[i]})
			length = 1
		} else {
			symbols = append(symbols, symbol{length: length, offset: offsetCode(i-from, width)})
		}
		for range length {
			remember(i)
			i++
		}
	}
	return symbols
}

func longestCopy(pixels []pixel, at int, last, previous []int32) (length, from int) {
	if at+minCopy > len(pixels) {
		return 0, 0
	}
	most := min(maxCopy, len(pixels)-at)
	candidate := int(last[hashOf(pixels[at:])]) - 1
	for tries := 0; candidate >= 0 && at-candidate <= maxOffset && tries < maxTries && length < most; tries++ {
		n := 0
		for n < most && pixels[candidate+n] == pixels[at+n] {
			n++
		}
		if n > length {
			length, from = n, candidate
		}
		candidate = int(previous[candidate]) - 1
	}
	return length, from
}

func hashOf(pixels []pixel) uint32 {
	h := uint32(0)
	for _, p := range pixels[:minCopy] {
		h = (h ^ binary.LittleEndian.Uint32(p[:])) * 0x9e3779b1
	}
	return h >> (32 - hashBits)
}

func offsetCode(offset, width int) int {
	switch offset {
	case width:
		return fromAbove
	case 1:
		return fromBefore
	}
	return offset + nearOffsets
}

// bitWriter writes bits from the lowest of each byte.
type bitWriter struct {
	out     []byte
	pending uint64
	bits    int
}

func (w *bitWriter) write(value uint32, bits int) {
	w.pending |= uint64(value) << w.bits
	for w.bits += bits; w.bits >= 8; w.bits -= 8 {
		w.out = append(w.out, byte(w.pending))
		w.pending >>= 8
	}
}

func (w *bitWriter) writeFlag(flag bool) {
	if flag {
		w.write(1, 1)
	} else {
		w.write(0, 1)
	}
}

func (w *bitWriter) bytes() []byte {
	if w.bits > 0 {
		return append(w.out, byte(w.pending))
	}
	return w.out
}
