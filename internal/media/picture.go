package media

import (
	"bytes"
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

// thumbnailSize is the longer side of a thumbnail in pixels: what a chat shows until the picture
// itself is loaded.
const thumbnailSize = 100

var errPixels = errors.New("too many pixels")

func isPicture(kind string) bool {
	switch kind {
	case "image/jpeg", "image/png", "image/webp", "image/gif":
		return true
	}
	return false
}

// describePicture adds a picture's size as it is stored and a thumbnail as it is to be looked at.
func describePicture(r io.ReadSeeker, kind string, m *parley.Media) error {
	img, size, err := readPicture(r, kind, maxPixels)
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

// readPicture decodes a picture if it does not have too many pixels, which is seen before any memory
// is spent on them.
func readPicture(r io.ReadSeeker, kind string, limit int) (img image.Image, size image.Point, err error) {
	if kind == "image/webp" {
		return readWebP(r, limit)
	}
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
	if err := rewind(r); err != nil {
		return nil, size, err
	}
	if img, err = decode(r); err != nil {
		return nil, size, fmt.Errorf("decode %s: %w", kind, err)
	}
	return img, image.Pt(c.Width, c.Height), nil
}

func rewind(r io.Seeker) error {
	_, err := r.Seek(0, io.SeekStart)
	return err
}

func fits(width, height, limit int) bool {
	return width > 0 && height > 0 && width <= limit/height
}

func readWebP(r io.ReadSeeker, limit int) (image.Image, image.Point, error) {
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
	// What the file says of itself and what its frame says may differ: both must fit.
	if !fits(w.canvas.X, w.canvas.Y, limit) || !fits(w.frame.X, w.frame.Y, limit) {
		return nil, image.Point{}, errPixels
	}
	img, err := webp.Decode(bytes.NewReader(w.still))
	if err != nil {
		return nil, image.Point{}, fmt.Errorf("decode image/webp: %w", err)
	}
	return img, w.canvas, nil
}

// pictureError says in a sentence why a picture cannot be used. Only files that are pictures by their
// first bytes come here.
func pictureError(err error) error {
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	if errors.Is(err, errPixels) {
		return &Error{"The image has too many pixels. Send at most 40 million.", err}
	}
	return &Error{"The image is damaged or not really an image. Send a JPEG, PNG, WebP or GIF file that opens.", err}
}

// small is a picture made small: a JPEG and its size.
type small struct {
	jpeg          []byte
	width, height int
}

// thumbnail makes a picture at most so wide and high, turned the way it is to be looked at.
func thumbnail(img image.Image, turn turn, width, height int) (small, error) {
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
	scaled := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.Draw(scaled, scaled.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src) // JPEG has no transparency
	draw.CatmullRom.Scale(scaled, scaled.Bounds(), img, b, draw.Over, nil)
	turned := turn.apply(scaled)

	var buf bytes.Buffer
	if err := jpeg.Encode(&buf, turned, &jpeg.Options{Quality: 70}); err != nil {
		return small{}, fmt.Errorf("encode thumbnail: %w", err)
	}
	return small{buf.Bytes(), turned.Bounds().Dx(), turned.Bounds().Dy()}, nil
}
