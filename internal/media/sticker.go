package media

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
	"path"
	"strings"

	"github.com/HugoSmits86/nativewebp"
	"golang.org/x/image/draw"

	"parley"
	"parley/internal/safehttp"
)

// Limits of stickers.
const (
	// stickerSide is the size of a sticker that is made here. WhatsApp shows this size.
	stickerSide = 512
	// maxMadeSticker is WhatsApp's limit for stickers in packs.
	maxMadeSticker = 100_000

	// A WebP file within these is sent as it is.
	maxSticker      = 1 << 20
	maxStickerSide  = 1024
	maxStickerParts = 1000 // chunks of an animation
)

const mimeWebP = "image/webp"

// Sticker fetches a sticker. A WebP file of a sticker's size is stored unchanged, an animated one too. Any other picture is
// converted to WebP of 512×512 pixels with transparent borders; of an animated GIF, its first frame.
func (l *Library) Sticker(ctx context.Context, src Source) (parley.Media, error) {
	return l.withFetched(ctx, src, "sticker", maxImage, func(f *fetched) (parley.Media, error) {
		if !isPicture(f.kind) {
			return parley.Media{}, wrongType(src, f.kind, "an image. Send the address of a WebP, PNG, JPEG or GIF file")
		}
		var made []byte // nil: it is sent as it is
		err := l.work(ctx, l.decoding, func() (err error) {
			made, err = f.sticker(ctx, src)
			return err
		})
		switch {
		case err != nil:
			return parley.Media{}, stickerError(err)
		case made == nil:
			return l.finish(ctx, f, src, mimeWebP)
		}
		return l.finishMade(ctx, f, src, made, mimeWebP, image.Pt(stickerSide, stickerSide))
	})
}

// finishMade stores a file that was made from another one.
func (l *Library) finishMade(ctx context.Context, f *fetched, src Source, made []byte, kind string, size image.Point) (
	parley.Media, error) {
	d, err := l.newDraft()
	if err != nil {
		return parley.Media{}, err
	}
	defer d.discard()
	converted := &fetched{draft: d, resp: f.resp}
	if err := converted.receive(l, bytes.NewReader(made), "image", maxImage); err != nil {
		return parley.Media{}, err
	}
	m := &converted.media
	m.Source, m.Width, m.Height, m.Thumbnail = src.URL, size.X, size.Y, f.media.Thumbnail
	name := chooseName(src.Filename, f.resp, kind)
	src.Filename = strings.TrimSuffix(name, path.Ext(name)) + extensions[kind]
	return l.finish(ctx, converted, src, kind)
}

// sticker checks a picture. It returns the WebP file that replaces it, or nil if it is one that can be sent as it is.
func (f *fetched) sticker(ctx context.Context, src Source) ([]byte, error) {
	img, size, err := readPicture(ctx, f.File, f.kind, maxPixels)
	if err != nil {
		return nil, err
	}
	if f.kind == mimeWebP {
		animated, err := checkWebP(f.File, size)
		if err != nil {
			return nil, err
		}
		small := f.media.Size <= maxSticker && max(size.X, size.Y) <= maxStickerSide
		if animated && !small {
			return nil, errLargeAnimation
		}
		f.media.Width, f.media.Height, f.media.Animated = size.X, size.Y, animated
		if small && (animated || f.isTaken(src)) {
			return nil, nil
		}
	}
	return makeSticker(ctx, img, orientation(f.File, f.kind))
}

// checkWebP reads the chunks of a WebP file. A truncated one, or one with a frame outside its picture, is refused: the
// decoder reads only the first frame.
func checkWebP(r io.ReadSeeker, size image.Point) (animated bool, err error) {
	if err := rewind(r); err != nil {
		return false, err
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return false, err
	}
	if len(data) < 12 {
		return false, errWebP
	}
	length := uint64(binary.LittleEndian.Uint32(data[4:])) + 8
	if length < 12 || length > uint64(len(data)) {
		return false, errWebP
	}
	data = data[:length]
	at, parts := 12, 0
	for name, chunk := range riffChunks(data[12:]) {
		at += 8 + len(chunk) + len(chunk)%2
		if parts++; parts > maxStickerParts {
			return false, errLargeAnimation
		}
		if name == "ANMF" {
			animated = true
			if !isFrameWithin(chunk, size) {
				return false, errWebP
			}
		}
	}
	if at < len(data) {
		return false, errWebP
	}
	return animated, nil
}

// isFrameWithin checks the header of a frame, and that the picture in it has the size that the header says.
func isFrameWithin(frame []byte, canvas image.Point) bool {
	const headerLen = 16
	if len(frame) < headerLen {
		return false
	}
	corner := image.Pt(2*uint24(frame), 2*uint24(frame[3:]))
	size := image.Pt(1+uint24(frame[6:]), 1+uint24(frame[9:]))
	within := image.Rectangle{Min: corner, Max: corner.Add(size)}.In(image.Rectangle{Max: canvas})
	inside, _ := firstFrame(frame[headerLen:])
	return within && inside == size
}

var errLargeAnimation = errors.New("animation is too large")

func stickerError(err error) error {
	switch {
	case errors.Is(err, errLargeAnimation):
		return &Error{fmt.Sprintf("The animated sticker is too large. Send at most %s, %d pixels on a side and %d frames.",
			safehttp.Size(maxSticker), maxStickerSide, maxStickerParts-3), err}
	case errors.Is(err, errCostly):
		return &Error{"The image takes too long to convert. Send a smaller one, or a WebP file of 512×512 pixels.", err}
	}
	return pictureError(err)
}

// makeSticker draws a picture in the middle of a transparent square. If the file is too large, it is drawn with fewer
// colours, then with larger pixels: the encoder is lossless.
func makeSticker(ctx context.Context, img image.Image, turn rotation) (file []byte, err error) {
	for _, zoom := range []int{1, 2, 4} {
		square := drawSquare(img, turn, stickerSide/zoom)
		for _, dropped := range []int{0, 2, 3} {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if file, err = encodeWebP(enlarged(withFewerColours(square, dropped), zoom)); err != nil {
				return nil, err
			}
			if len(file) <= maxMadeSticker {
				return file, nil
			}
			if len(file) > 3*maxMadeSticker { // fewer colours do not save that much
				break
			}
		}
	}
	return file, nil
}

func encodeWebP(img *image.NRGBA) ([]byte, error) {
	var file bytes.Buffer
	err := nativewebp.Encode(&file, img, nil)
	return file.Bytes(), err
}

func drawSquare(img image.Image, turn rotation, side int) *image.NRGBA {
	b := img.Bounds()
	w, h := side, max(1, side*b.Dy()/b.Dx())
	if b.Dy() > b.Dx() {
		w, h = max(1, side*b.Dx()/b.Dy()), side
	}
	img = coarse(img, w, h)
	scaled := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.CatmullRom.Scale(scaled, scaled.Bounds(), img, img.Bounds(), draw.Src, nil)
	turned := turn.apply(scaled)
	square := image.NewNRGBA(image.Rect(0, 0, side, side))
	at := image.Pt((side-turned.Bounds().Dx())/2, (side-turned.Bounds().Dy())/2)
	draw.Draw(square, turned.Bounds().Add(at), turned, image.Point{}, draw.Src)
	return square
}

// withFewerColours rounds every value to a multiple of a power of two.
func withFewerColours(img *image.NRGBA, bits int) *image.NRGBA {
	out := image.NewNRGBA(img.Bounds())
	for i, v := range img.Pix {
		out.Pix[i] = byte(min(255, (int(v)+1<<bits/2)>>bits<<bits))
	}
	return out
}

func enlarged(img *image.NRGBA, zoom int) *image.NRGBA {
	if zoom == 1 {
		return img
	}
	out := image.NewNRGBA(image.Rectangle{Max: img.Bounds().Max.Mul(zoom)})
	draw.NearestNeighbor.Scale(out, out.Bounds(), img, img.Bounds(), draw.Src, nil)
	return out
}
