package media

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
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

const (
	thumbnailSize    = 100 // the longer side of a thumbnail in pixels
	thumbnailQuality = 70
)

var errPixels = errors.New("too many pixels")

// decoders are for the types that can be sent as an image.
var decoders = map[string]struct {
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}{
	"image/jpeg": {jpeg.DecodeConfig, jpeg.Decode},
	"image/png":  {png.DecodeConfig, png.Decode},
	"image/gif":  {gif.DecodeConfig, gif.Decode},
	"image/webp": {webp.DecodeConfig, webp.Decode},
}

func isPicture(kind string) bool { return decoders[kind].decode != nil }

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
	if !isPicture(kind) {
		return nil, size, fmt.Errorf("no decoder for %s", kind)
	}
	if err := rewind(r); err != nil {
		return nil, size, err
	}
	c, err := decoders[kind].config(r)
	if err != nil {
		return nil, size, fmt.Errorf("read header of %s: %w", kind, err)
	}
	if !fits(c.Width, c.Height, limit) {
		return nil, size, errPixels
	}
	size = image.Pt(c.Width, c.Height)
	takes, err := measureCost(r, kind, size)
	if err != nil {
		return nil, size, err
	}
	if takes.isTooHigh() {
		return nil, size, errCostly
	}
	if err := rewind(r); err != nil {
		return nil, size, err
	}
	if img, err = decoders[kind].decode(&deadlineReader{ctx, bufio.NewReader(r)}); err != nil {
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
	img, err := webp.Decode(&deadlineReader{ctx, bufio.NewReader(bytes.NewReader(w.still))})
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

// iconSize is the side of a group's picture in pixels.
const iconSize = 640

// Icon returns the middle of a stored image as a square JPEG, for a group.
func (l *Library) Icon(ctx context.Context, m parley.Media) (icon []byte, err error) {
	f, err := l.Open(ctx, m.Key)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	err = l.work(ctx, l.decoding, func() error {
		img, _, err := readPicture(ctx, f, m.MIME, maxPixels)
		if err != nil {
			return err
		}
		b := img.Bounds()
		side := min(b.Dx(), b.Dy())
		corner := b.Min.Add(image.Pt((b.Dx()-side)/2, (b.Dy()-side)/2))
		if whole, ok := img.(interface {
			SubImage(image.Rectangle) image.Image
		}); ok {
			img = whole.SubImage(image.Rectangle{corner, corner.Add(image.Pt(side, side))})
		}
		small, err := thumbnail(img, orientation(f, m.MIME), iconSize, iconSize)
		icon = small.jpeg
		return err
	})
	switch {
	case errors.Is(err, errCostly):
		return nil, &Error{"The image is too large to make a picture of it. Send a smaller one.", err}
	case err != nil:
		return nil, pictureError(err)
	}
	return icon, nil
}

const (
	// maxRedrawn bounds the pixels of a picture that is made from another one. Of a photo they take 3 to 4 MB.
	maxRedrawn  = 12_000_000
	mimeJPEG    = "image/jpeg"
	jpegQuality = 85
)

// redraw makes a JPEG of a picture that the network does not take, upright and without transparency. It halves the sides until the
// network takes it.
func (f *fetched) redraw(ctx context.Context, src Source) (small, error) {
	img, size, err := readPicture(ctx, f.File, f.kind, maxPixels)
	if err != nil {
		return small{}, err
	}
	turn := orientation(f.File, f.kind)
	for ; min(size.X, size.Y) > 0; size = size.Div(2) {
		if !fits(size.X, size.Y, maxRedrawn) {
			continue
		}
		if ctx.Err() != nil {
			return small{}, ctx.Err()
		}
		drawn := image.NewRGBA(image.Rectangle{Max: size})
		draw.Draw(drawn, drawn.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src)
		draw.ApproxBiLinear.Scale(drawn, drawn.Bounds(), img, img.Bounds(), draw.Over, nil) // exact for half the size
		img = drawn
		made, err := encodeJPEG(turn.apply(drawn), jpegQuality)
		if err != nil || src.Takes(parley.Media{MIME: mimeJPEG, Size: int64(len(made.jpeg)), Width: made.width, Height: made.height}) {
			return made, err
		}
	}
	return small{}, errCostly
}

func encodeJPEG(img image.Image, quality int) (small, error) {
	var buf bytes.Buffer
	if err := jpeg.Encode(&buf, img, &jpeg.Options{Quality: quality}); err != nil {
		return small{}, fmt.Errorf("encode a JPEG: %w", err)
	}
	return small{buf.Bytes(), img.Bounds().Dx(), img.Bounds().Dy()}, nil
}

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
	return encodeJPEG(turn.apply(scaled), thumbnailQuality)
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

// rotation is how a stored picture is turned to be looked at: the orientation of EXIF, 1 to 8.
type rotation int

const upright rotation = 1

func (t rotation) swapsSides() bool { return t >= 5 && t <= 8 }

// apply turns a picture. It is made for small ones.
func (t rotation) apply(img *image.RGBA) *image.RGBA {
	if t <= upright || t > 8 {
		return img
	}
	w, h := img.Bounds().Dx(), img.Bounds().Dy()
	size := image.Pt(w, h)
	if t.swapsSides() {
		size = image.Pt(h, w)
	}
	out := image.NewRGBA(image.Rectangle{Max: size})
	for y := range h {
		for x := range w {
			to := image.Pt(x, y)
			if t == 2 || t == 3 || t == 7 || t == 8 { // from right to left
				to.X = w - 1 - x
			}
			if t == 3 || t == 4 || t == 6 || t == 7 { // upside down
				to.Y = h - 1 - y
			}
			if t.swapsSides() {
				to.X, to.Y = to.Y, to.X
			}
			out.SetRGBA(to.X, to.Y, img.RGBAAt(x, y))
		}
	}
	return out
}

// orientation reads how a JPEG is to be turned. Cameras store it near the beginning; a file without
// it, or with one that cannot be read, is upright.
func orientation(r io.ReadSeeker, kind string) rotation {
	if kind != "image/jpeg" || rewind(r) != nil {
		return upright
	}
	const reach = 256 << 10 // an EXIF segment has at most 64 KiB, and comes among the first
	in := bufio.NewReader(io.LimitReader(r, reach))
	in.Discard(2) // the start of the picture; an error comes again below
	for {
		marker, segment, err := nextSegment(in)
		if err != nil || marker == jpegScan || marker == jpegEnd {
			return upright
		}
		if tiff, ok := bytes.CutPrefix(segment, []byte("Exif\x00\x00")); ok && marker == jpegExif {
			return exifRotation(tiff)
		}
	}
}

func exifRotation(tiff []byte) rotation {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(tiff, []byte("II*\x00")):
		order = binary.LittleEndian
	case bytes.HasPrefix(tiff, []byte("MM\x00*")):
		order = binary.BigEndian
	}
	if order == nil || len(tiff) < 8 {
		return upright
	}
	at := int64(order.Uint32(tiff[4:]))
	if at+2 > int64(len(tiff)) {
		return upright
	}
	const entryLen, orientationTag = 12, 0x0112
	entries := tiff[at+2:]
	for range order.Uint16(tiff[at:]) {
		if len(entries) < entryLen {
			break
		}
		if order.Uint16(entries) == orientationTag {
			if t := rotation(order.Uint16(entries[8:])); t >= 1 && t <= 8 {
				return t
			}
			break
		}
		entries = entries[entryLen:]
	}
	return upright
}
