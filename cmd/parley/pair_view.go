package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"parley"
)

// prepare checks that QR codes can be shown. A picture is written to a new file, because the file is removed at the end.
func (p *pairer) prepare() error {
	switch {
	case p.flags.png != "":
		f, err := os.OpenFile(p.flags.png, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return fail(exitUsage, "--png: %s already exists. Delete it, or give another name", p.flags.png)
		}
		if err != nil {
			return fail(exitUsage, "--png: %w", err)
		}
		return f.Close()
	case !p.json && p.flags.number == "" && !p.errTerminal:
		return fail(exitUsage, "a QR code needs a terminal. Pass --code NUMBER, --png FILE, --link or --json")
	}
	return nil
}

// close removes what was drawn and the picture.
func (p *pairer) close() {
	p.wipe()
	if p.flags.png != "" {
		os.Remove(p.flags.png)
	}
}

// show shows a new step: as a line of JSON, or to a person. Only the code to type and the status go to stdout.
func (p *pairer) show(ctx context.Context, s *pairStep) error {
	if s.Step == parley.QRStep && p.flags.png != "" {
		if err := p.writePicture(s); err != nil {
			return err
		}
	}
	if p.json {
		return p.printStep(s)
	}
	if s.Step == parley.QRStep && p.flags.png == "" {
		return p.draw(ctx, s)
	}
	p.wipe()
	switch s.Step {
	case parley.CodeStep, parley.WrongCodeStep:
		if s.Step == parley.WrongCodeStep {
			p.hint("✗ %s", s.Reason)
		}
		fmt.Fprintln(p.out, s.Code)
		p.hint("enter it on the phone: Linked devices → Link with phone number · %s", clockText(s.left()))
	case parley.StartingStep:
		if s.Reason != "" {
			p.hint("✗ %s", s.Reason)
		} else {
			p.hint("Asking WhatsApp for a code…")
		}
	case parley.PairedStep:
		p.hint("✓ linked; finishing on WhatsApp's side…")
	case workingStep:
		p.hint("✓ linked to %s", showAccount(s.channel))
		fmt.Fprintln(p.out, parley.ChannelWorking)
		p.hint("Send yourself a test: parley send %s NUMBER 'hello!'", p.code)
	}
	return nil
}

func (p *pairer) printStep(s *pairStep) error {
	line := struct {
		Step      parley.PairingStep `json:"step"`
		Code      string             `json:"code,omitempty"`
		ExpiresIn int                `json:"expires_in,omitempty"` // seconds
		N         int                `json:"n,omitempty"`
		Of        int                `json:"of,omitempty"`
		Reason    string             `json:"reason,omitempty"`
		Number    string             `json:"number,omitempty"`
	}{s.Step, string(s.Code), wholeSeconds(s.left()), s.N, s.Of, s.Reason, s.channel.Number}
	enc := json.NewEncoder(p.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(line)
}

func (p *pairer) writePicture(s *pairStep) error {
	picture, err := toPNG(s.QR)
	if err == nil {
		err = writePrivate(p.flags.png, picture)
	}
	if err != nil {
		return err
	}
	p.hint("Scan %s with WhatsApp → Settings → Linked devices → Link a device · code %d of %d · %s", p.flags.png, s.N, s.Of,
		clockText(s.left()))
	return nil
}

// wholeSeconds rounds up: 0 means expired.
func wholeSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// clockText is a length of time such as 41 s or 2 min 31 s.
func clockText(d time.Duration) string {
	seconds := wholeSeconds(d)
	if seconds < 60 {
		return fmt.Sprintf("%d s", seconds)
	}
	return fmt.Sprintf("%d min %d s", seconds/60, seconds%60)
}

// draw draws a QR code on the terminal, over the last one.
func (p *pairer) draw(ctx context.Context, s *pairStep) error {
	if err := p.fits(ctx, s.QR); err != nil {
		return err
	}
	p.wipe()
	text := append(drawQR(s.QR, p.colour(true)), p.fitting(
		fmt.Sprintf("No camera? parley channel pair %s --code +62812…   ·   For someone else: parley channel pair %s --link", p.code, p.code),
		"No camera? --code NUMBER   ·   For someone else: --link"))
	p.header = p.toHeader(s)
	fmt.Fprintf(p.err, "%s\n%s\n", p.header, strings.Join(text, "\n"))
	p.lines = len(text)
	return nil
}

func (p *pairer) toHeader(s *pairStep) string {
	status := fmt.Sprintf("code %d of %d · %d s", s.N, s.Of, wholeSeconds(s.left()))
	return p.fitting("Scan with WhatsApp → Settings → Linked devices → Link a device       "+status,
		"Scan with WhatsApp → Linked devices · "+status)
}

// fitting returns the first text that fits into a line of the terminal. A wrapped line would not be wiped completely.
func (p *pairer) fitting(texts ...string) string {
	wide, _ := p.size()
	for _, text := range texts {
		if utf8.RuneCountInString(text) < wide {
			return text
		}
	}
	return ""
}

func (p *pairer) tick(s *pairStep) {
	if p.lines == 0 || s.Step != parley.QRStep {
		return
	}
	if header := p.toHeader(s); header != p.header {
		p.header = header
		fmt.Fprintf(p.err, "\x1b[%dA\r\x1b[K%s\x1b[%dB\r", p.lines+1, header, p.lines+1)
	}
}

func (p *pairer) wipe() {
	if p.lines > 0 {
		fmt.Fprintf(p.err, "\x1b[%dA\r\x1b[J", p.lines+1)
		p.lines = 0
	}
}

// fits fails if the terminal is too small for a code, and names other ways.
func (p *pairer) fits(ctx context.Context, rows []string) error {
	columns, lines := qrSize(rows)
	lines += 3 // the header, the line below, and the cursor's own
	wide, high := p.size()
	if wide >= columns && high >= lines {
		return nil
	}
	small := fmt.Sprintf("Your terminal has %d rows, the code needs %d.", high, lines)
	if wide < columns {
		small = fmt.Sprintf("Your terminal has %d columns, the code needs %d.", wide, columns)
	}
	link, err := makeLink(ctx, p.cl, p.code)
	if err != nil {
		return err
	}
	where := fmt.Sprintf("Open %s , or use --code NUMBER, or --png qr.png", link.URL)
	if _, remote := p.getenv("SSH_CONNECTION"); remote { // most likely without a browser
		where = fmt.Sprintf("Use --code NUMBER, or --png qr.png, or open %s", link.URL)
	}
	return fail(exitNeedsPerson, "%s %s", small, where)
}

// quietZone is the white border of a QR code, in squares. The standard requires four.
const quietZone = 4

// isBlack reports whether a square is black. The code is rows of 0 and 1 with a white border.
func isBlack(rows []string, x, y int) bool {
	x, y = x-quietZone, y-quietZone
	return y >= 0 && y < len(rows) && x >= 0 && x < len(rows[y]) && rows[y][x] == '1'
}

// qrSize is the size of a QR code in characters, drawn with half blocks.
func qrSize(rows []string) (columns, lines int) {
	size := len(rows) + 2*quietZone
	return size, (size + 1) / 2
}

const (
	blackOnWhite = "\x1b[38;5;16;48;5;231m" // independent of the terminal's theme
	plainColours = "\x1b[0m"
)

// drawQR draws a QR code with two squares per character. With colour it is black on white; without, the blocks are the
// white squares, for a dark terminal.
func drawQR(rows []string, colour bool) []string {
	blocks := [2][2]string{{" ", "▄"}, {"▀", "█"}} // by upper and lower square
	columns, count := qrSize(rows)
	lines := make([]string, count)
	for i := range lines {
		var b strings.Builder
		for x := range columns {
			upper, lower := isBlack(rows, x, 2*i), isBlack(rows, x, 2*i+1)
			if !colour {
				upper, lower = !upper, !lower
			}
			b.WriteString(blocks[oneIf(upper)][oneIf(lower)])
		}
		lines[i] = b.String()
		if colour {
			lines[i] = blackOnWhite + lines[i] + plainColours
		}
	}
	return lines
}

func oneIf(on bool) int {
	if on {
		return 1
	}
	return 0
}

const pngScale = 8

func toPNG(rows []string) ([]byte, error) {
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
