package main

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"strings"
)

// quietZone is the white around a QR code, in squares: its standard wants four.
const quietZone = 4

// isBlack reports whether a square is black. The code is given as rows of 0 and 1; everything around it
// is white.
func isBlack(rows []string, x, y int) bool {
	x, y = x-quietZone, y-quietZone
	return y >= 0 && y < len(rows) && x >= 0 && x < len(rows[y]) && rows[y][x] == '1'
}

// qrSize is how many columns and rows of characters a QR code takes with half blocks.
func qrSize(rows []string) (columns, lines int) {
	size := len(rows) + 2*quietZone
	return size, (size + 1) / 2
}

const (
	blackOnWhite = "\x1b[38;5;16;48;5;231m" // whatever colours the terminal has
	plainColours = "\x1b[0m"
)

// drawQR writes a QR code as lines of text, two squares above each other in one character. With colour it
// is black on white; without, the blocks stand for white, as fits a dark terminal.
func drawQR(rows []string, colour bool) []string {
	blocks := [2][2]string{{" ", "▄"}, {"▀", "█"}} // by whether the upper and the lower square are inked
	columns, count := qrSize(rows)
	lines := make([]string, count)
	for i := range lines {
		var b strings.Builder
		for x := range columns {
			upper, lower := isBlack(rows, x, 2*i), isBlack(rows, x, 2*i+1)
			if !colour {
				upper, lower = !upper, !lower
			}
			b.WriteString(blocks[index(upper)][index(lower)])
		}
		lines[i] = b.String()
		if colour {
			lines[i] = blackOnWhite + lines[i] + plainColours
		}
	}
	return lines
}

func index(on bool) int {
	if on {
		return 1
	}
	return 0
}

// pngScale is how many pixels a square is wide: a code of 57 squares is then 520 pixels wide.
const pngScale = 8

// pngOf makes a picture of a QR code.
func pngOf(rows []string) ([]byte, error) {
	size := len(rows) + 2*quietZone
	picture := image.NewPaletted(image.Rect(0, 0, size*pngScale, size*pngScale), color.Palette{color.White, color.Black})
	for y := range size * pngScale {
		for x := range size * pngScale {
			if isBlack(rows, x/pngScale, y/pngScale) {
				picture.SetColorIndex(x, y, 1)
			}
		}
	}
	var b bytes.Buffer
	err := png.Encode(&b, picture)
	return b.Bytes(), err
}
