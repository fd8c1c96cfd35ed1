package media

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
)

// What one picture may cost. Strangers send pictures, and a few kilobytes can be made to take
// gigabytes of memory or hours of a core.
const (
	// maxDecode is for what a decoder keeps at once, in bytes: 40 million pixels of four bytes fit. Twice
	// that is all that pictures take, since two are decoded at once.
	maxDecode = 160 << 20

	// maxScans is how many passes a JPEG may have, and maxVisits how many samples they may go over in all:
	// each pass goes over the whole picture, however few bytes it takes in the file. Programs make about
	// ten; a photo of 40 million pixels that is coded colour by colour has 480 million visits.
	maxScans  = 100
	maxVisits = 500_000_000
)

// errCostly says that a picture may be a good one but takes too much to be decoded.
var errCostly = errors.New("too costly to decode")

// cost is what decoding a picture takes.
type cost struct {
	memory int64 // in bytes, at its highest
	scans  int   // passes over a JPEG
	visits int64 // samples that these go over
}

func (c cost) isTooHigh() bool {
	return c.memory > maxDecode || c.scans > maxScans || c.visits > maxVisits
}

// costOf tells from a picture's headers what decoding it takes.
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

// mouthful is how much a decoder is given at once. A few bytes can be much work, and only between two
// reads can it be stopped.
const mouthful = 256

// timed reads until time is up: decoders know no context, but they stop where they cannot read on.
type timed struct {
	ctx  context.Context
	from io.Reader
}

func newTimed(ctx context.Context, r io.Reader) *timed { return &timed{ctx, bufio.NewReader(r)} }

func (t *timed) Read(p []byte) (int, error) {
	if t.ctx.Err() != nil {
		return 0, context.Cause(t.ctx)
	}
	return t.from.Read(p[:min(len(p), mouthful)])
}
