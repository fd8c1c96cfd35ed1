package media

import (
	"bytes"
	"encoding/binary"
	"image"
	"io"
)

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
			to := t.mapPoint(x, y, w, h)
			out.SetRGBA(to.X, to.Y, img.RGBAAt(x, y))
		}
	}
	return out
}

// mapPoint maps a pixel of the stored picture to its displayed position.
func (t rotation) mapPoint(x, y, w, h int) image.Point {
	switch t {
	case 2:
		return image.Pt(w-1-x, y)
	case 3:
		return image.Pt(w-1-x, h-1-y)
	case 4:
		return image.Pt(x, h-1-y)
	case 5:
		return image.Pt(y, x)
	case 6:
		return image.Pt(h-1-y, x)
	case 7:
		return image.Pt(h-1-y, w-1-x)
	case 8:
		return image.Pt(y, w-1-x)
	}
	return image.Pt(x, y)
}

// orientation reads how a JPEG is to be turned. Cameras store it near the beginning; a file without
// it, or with one that cannot be read, is upright.
func orientation(r io.ReadSeeker, kind string) rotation {
	if kind != "image/jpeg" || rewind(r) != nil {
		return upright
	}
	const reach = 256 << 10 // an EXIF segment has at most 64 KiB, and comes among the first
	head, err := io.ReadAll(io.LimitReader(r, reach))
	if err != nil {
		return upright
	}
	for at := 2; at+4 <= len(head) && head[at] == 0xff && head[at+1] != 0xda; {
		size := int(binary.BigEndian.Uint16(head[at+2:]))
		if size < 2 || at+2+size > len(head) {
			break
		}
		segment := head[at+4 : at+2+size]
		if tiff, ok := bytes.CutPrefix(segment, []byte("Exif\x00\x00")); ok && head[at+1] == 0xe1 {
			return exifRotation(tiff)
		}
		at += 2 + size
	}
	return upright
}

// exifRotation looks for the orientation in the first directory of EXIF data.
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
