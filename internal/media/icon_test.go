package media

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"testing"

	"parley"
)

// TestIcon makes a square JPEG of the middle of an image: its left and right edges are gone.
func TestIcon(t *testing.T) {
	l := open(t)
	wide := image.NewRGBA(image.Rect(0, 0, 2000, 1000))
	for x := range 2000 {
		for y := range 1000 {
			if wide.Set(x, y, color.White); x < 500 || x >= 1500 {
				wide.Set(x, y, color.Black)
			}
		}
	}
	var data bytes.Buffer
	if err := png.Encode(&data, wide); err != nil {
		t.Fatal(err)
	}
	m, err := l.Store(t.Context(), "demo", data.Bytes(), "wide.png")
	if err != nil {
		t.Fatal(err)
	}
	icon, err := l.Icon(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	img, err := jpeg.Decode(bytes.NewReader(icon))
	if err != nil || img.Bounds() != image.Rect(0, 0, iconSize, iconSize) {
		t.Fatalf("the icon is %v: %v", img, err)
	}
	for _, x := range []int{2, iconSize - 3} {
		if r, _, _, _ := img.At(x, iconSize/2).RGBA(); r < 0xf000 {
			t.Errorf("the edge at %d is in it", x)
		}
	}
	if _, err := l.Icon(t.Context(), parley.Media{Key: m.Key, MIME: "image/gif"}); err == nil {
		t.Error("what is no GIF was read as one")
	}
}
