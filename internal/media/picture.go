package media

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/draw"
	"golang.org/x/image/webp"

	"parley"
)

// thumbnailSize is the longer side of a thumbnail in pixels.
const thumbnailSize = 100

var errPixels = errors.New("too many pixels")

func isPicture(kind string) bool {
	switch kind {
	case "image/jpeg", "image/png", "image/webp", "image/gif":
		return true
	}
	return false
}

// describePicture adds the stored size of a picture and an upright thumbnail. A picture that is too expensive to decode
// gets no thumbnail.
func describePicture(ctx context.Context, r io.ReadSeeker, kind string, m *parley.Media) error {
	img, size, err := readPicture(ctx, r, kind, maxPixels)
	if errors.Is(err, errCostly) {
		m.Width, m.Height = size.X, size.Y
		return nil
	}
	if err != nil {
		return err
	}
	thumb, err := thumbnail(img, orientation(r, kind), thumbnailSize, thumbnailSize)
	if err != nil {
		return err
	}
	m.Width, m.Height, m.Thumbnail = size.X, size.Y, thumb.jpeg
	return nil
}

// readPicture decodes a picture. It checks the number of pixels before it allocates memory. The size of a too expensive
// picture is returned with the error.
func readPicture(ctx context.Context, r io.ReadSeeker, kind string, limit int) (img image.Image, size image.Point, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, decodeTimeout, errCostly)
	defer cancel()
	if kind == "image/webp" {
		img, size, err = readWebP(ctx, r, limit)
	} else {
		img, size, err = readStill(ctx, r, kind, limit)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // a decoder that was stopped calls the file damaged
	}
	return img, size, err
}

// readStill reads a picture of a kind that the standard library knows; of an animation, its first frame.
func readStill(ctx context.Context, r io.ReadSeeker, kind string, limit int) (img image.Image, size image.Point, err error) {
	var config func(io.Reader) (image.Config, error)
	var decode func(io.Reader) (image.Image, error)
	switch kind {
	case "image/jpeg":
		config, decode = jpeg.DecodeConfig, jpeg.Decode
	case "image/png":
		config, decode = png.DecodeConfig, png.Decode
	case "image/gif":
		config, decode = gif.DecodeConfig, gif.Decode
	default:
		return nil, size, fmt.Errorf("no decoder for %s", kind)
	}
	if err := rewind(r); err != nil {
		return nil, size, err
	}
	c, err := config(r)
	if err != nil {
		return nil, size, fmt.Errorf("read header of %s: %w", kind, err)
	}
	if !fits(c.Width, c.Height, limit) {
		return nil, size, errPixels
	}
	size = image.Pt(c.Width, c.Height)
	takes, err := costOf(r, kind, size)
	if err != nil {
		return nil, size, err
	}
	if takes.isTooHigh() {
		return nil, size, errCostly
	}
	if err := rewind(r); err != nil {
		return nil, size, err
	}
	if img, err = decode(newDeadlineReader(ctx, r)); err != nil {
		return nil, size, fmt.Errorf("decode %s: %w", kind, err)
	}
	return img, size, nil
}

func rewind(r io.Seeker) error {
	_, err := r.Seek(0, io.SeekStart)
	return err
}

// maxSide is the largest side of a JPEG or GIF. It bounds buffers per row and column.
const maxSide = 65_535

func fits(width, height, limit int) bool {
	return width > 0 && height > 0 && max(width, height) <= maxSide && width <= limit/height
}

func readWebP(ctx context.Context, r io.ReadSeeker, limit int) (image.Image, image.Point, error) {
	if err := rewind(r); err != nil {
		return nil, image.Point{}, err
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, image.Point{}, err
	}
	w, err := parseWebP(data)
	if err != nil {
		return nil, image.Point{}, err
	}
	// The header and the frame may give different sizes: both must fit.
	if !fits(w.canvas.X, w.canvas.Y, limit) || !fits(w.frame.X, w.frame.Y, limit) {
		return nil, image.Point{}, errPixels
	}
	if (cost{memory: w.memory()}).isTooHigh() {
		return nil, w.canvas, errCostly
	}
	img, err := webp.Decode(newDeadlineReader(ctx, bytes.NewReader(w.still)))
	if err != nil {
		return nil, w.canvas, fmt.Errorf("decode image/webp: %w", err)
	}
	return img, w.canvas, nil
}

// pictureError says in a sentence why a picture cannot be used. Only files that are pictures by their
// first bytes come here.
func pictureError(err error) error {
	switch {
	case isForCaller(err):
		return err
	case errors.Is(err, errPixels):
		return &Error{"The image has too many pixels. Send at most 40 million, and at most 65,535 on a side.", err}
	case isInterrupted(err):
		return tooBusy(err)
	}
	return &Error{"The image is damaged or not really an image. Send a JPEG, PNG, WebP or GIF file that opens.", err}
}

// small is a picture made small: a JPEG and its size.
type small struct {
	jpeg          []byte
	width, height int
}

// thumbnail makes a picture at most so wide and high, turned the way it is to be looked at.
func thumbnail(img image.Image, turn rotation, width, height int) (small, error) {
	if turn.swapsSides() {
		width, height = height, width
	}
	b := img.Bounds()
	w, h := b.Dx(), b.Dy()
	if w > width {
		w, h = width, max(1, h*width/w)
	}
	if h > height {
		w, h = max(1, w*height/h), height
	}
	img = coarse(img, w, h)
	scaled := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.Draw(scaled, scaled.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src) // JPEG has no transparency
	draw.CatmullRom.Scale(scaled, scaled.Bounds(), img, img.Bounds(), draw.Over, nil)
	turned := turn.apply(scaled)

	var buf bytes.Buffer
	if err := jpeg.Encode(&buf, turned, &jpeg.Options{Quality: 70}); err != nil {
		return small{}, fmt.Errorf("encode thumbnail: %w", err)
	}
	return small{buf.Bytes(), turned.Bounds().Dx(), turned.Bounds().Dy()}, nil
}

// coarseness is how many times larger than wanted a picture may be when it is made small with care.
const coarseness = 4

// coarse drops pixels of a much larger picture. The exact scaler needs 32 bytes per row times the target width, and
// more for the longer side.
func coarse(img image.Image, width, height int) image.Image {
	b := img.Bounds()
	w, h := min(b.Dx(), coarseness*width), min(b.Dy(), coarseness*height)
	if w == b.Dx() && h == b.Dy() {
		return img
	}
	smaller := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.ApproxBiLinear.Scale(smaller, smaller.Bounds(), img, b, draw.Src, nil)
	return smaller
}
