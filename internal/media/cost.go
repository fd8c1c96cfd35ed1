package media

import (
	"bufio"
	"context"
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

// errCostly reports a valid picture that is too expensive to decode.
var errCostly = errors.New("too costly to decode")

type cost struct {
	memory int64 // in bytes, at its highest
	scans  int   // passes over a JPEG
	visits int64 // samples that these go over
}

func (c cost) isTooHigh() bool {
	return c.memory > maxDecode || c.scans > maxScans || c.visits > maxVisits
}

// costOf reads the cost of a picture from its headers.
func costOf(r io.ReadSeeker, kind string, size image.Point) (cost, error) {
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

// area is how many pixels there are.
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

func newDeadlineReader(ctx context.Context, r io.Reader) *deadlineReader {
	return &deadlineReader{ctx, bufio.NewReader(r)}
}

func (t *deadlineReader) Read(p []byte) (int, error) {
	if t.ctx.Err() != nil {
		return 0, context.Cause(t.ctx)
	}
	return t.from.Read(p[:min(len(p), maxRead)])
}
