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
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"parley"
	"parley/internal/client"
)

// pairView selects the view for the steps of a pairing.
func (c *cli) pairView(ctx context.Context, cl *client.Client, code string, flags pairFlags) (pairView, error) {
	switch {
	case flags.png != "":
		return newPNGView(c, code, flags.png)
	case c.json:
		return &jsonView{out: c.out}, nil
	case flags.number != "":
		return &codeView{cli: c, code: code}, nil
	case !c.errTerminal:
		return nil, fail(exitUsage, "a QR code needs a terminal. Pass --code NUMBER, --png FILE, --link or --json")
	}
	return &screenView{cli: c, client: cl, code: code}, nil
}

type jsonView struct{ out io.Writer }

func (v *jsonView) show(_ context.Context, s *pairStep) error {
	line := struct {
		Step      parley.PairingStep `json:"step"`
		Code      string             `json:"code,omitempty"`
		ExpiresIn int                `json:"expires_in,omitempty"` // seconds
		N         int                `json:"n,omitempty"`
		Of        int                `json:"of,omitempty"`
		Reason    string             `json:"reason,omitempty"`
		Number    string             `json:"number,omitempty"`
	}{s.Step, s.Code, wholeSeconds(s.left()), s.N, s.Of, s.Reason, s.channel.Number}
	enc := json.NewEncoder(v.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(line)
}

func (v *jsonView) tick(*pairStep) {}
func (v *jsonView) close()         {}

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

// codeView prints the code to type to stdout, and everything else as hints.
type codeView struct {
	*cli
	code string
}

func (v *codeView) show(_ context.Context, s *pairStep) error {
	if s.Step == parley.WrongCodeStep {
		v.hint("✗ %s", s.Reason)
	}
	if s.Step == parley.CodeStep || s.Step == parley.WrongCodeStep {
		fmt.Fprintln(v.out, s.Code)
		v.hint("enter it on the phone: Linked devices → Link with phone number · %s", clockText(s.left()))
		return nil
	}
	return v.showEnd(v.code, s)
}

func (v *codeView) tick(*pairStep) {}
func (v *codeView) close()         {}

// showEnd shows the steps that all views share.
func (c *cli) showEnd(code string, s *pairStep) error {
	switch s.Step {
	case parley.StartingStep:
		if s.Reason != "" {
			c.hint("✗ %s", s.Reason)
			return nil
		}
		c.hint("Asking WhatsApp for a code…")
	case parley.PairedStep:
		c.hint("✓ linked; finishing on WhatsApp's side…")
	case workingStep:
		c.hint("✓ linked to %s", showAccount(s.channel))
		fmt.Fprintln(c.out, parley.ChannelWorking)
		c.hint("Send yourself a test: parley send %s NUMBER 'hello!'", code)
	}
	return nil
}

// pngView writes the current QR code to a file with mode 0600.
type pngView struct {
	*cli
	code string
	path string
	json *jsonView // nil without --json
}

func newPNGView(c *cli, code, path string) (*pngView, error) {
	// The file is removed at the end, so it must be a new one.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fail(exitUsage, "--png: %s already exists. Delete it, or give another name", path)
	}
	if err != nil {
		return nil, fail(exitUsage, "--png: %w", err)
	}
	v := &pngView{cli: c, code: code, path: path}
	if c.json {
		v.json = &jsonView{out: c.out}
	}
	return v, f.Close()
}

func (v *pngView) show(ctx context.Context, s *pairStep) error {
	if s.Step == parley.QRStep {
		picture, err := pngOf(s.QR)
		if err == nil {
			err = writePrivate(v.path, picture)
		}
		if err != nil {
			return err
		}
		v.hint("Scan %s with WhatsApp → Settings → Linked devices → Link a device · code %d of %d · %s", v.path, s.N, s.Of,
			clockText(s.left()))
	}
	if v.json != nil {
		return v.json.show(ctx, s)
	}
	return v.showEnd(v.code, s)
}

func (v *pngView) tick(*pairStep) {}
func (v *pngView) close()         { os.Remove(v.path) }

// screenView draws QR codes on a terminal, each over the last one.
type screenView struct {
	*cli
	client *client.Client
	code   string

	lines  int    // drawn below the header; zero: nothing is drawn
	header string // the current first line
}

func (v *screenView) show(ctx context.Context, s *pairStep) error {
	if s.Step != parley.QRStep {
		v.wipe()
		return v.showEnd(v.code, s)
	}
	if err := v.fits(ctx, s.QR); err != nil {
		return err
	}
	v.wipe()
	text := append(drawQR(s.QR, v.colour(true)), v.fitting(
		fmt.Sprintf("No camera? parley channel pair %s --code +62812…   ·   For somebody else: parley channel pair %s --link", v.code, v.code),
		"No camera? --code NUMBER   ·   For somebody else: --link"))
	v.header = v.headerOf(s)
	fmt.Fprintf(v.err, "%s\n%s\n", v.header, strings.Join(text, "\n"))
	v.lines = len(text)
	return nil
}

func (v *screenView) headerOf(s *pairStep) string {
	status := fmt.Sprintf("code %d of %d · %d s", s.N, s.Of, wholeSeconds(s.left()))
	return v.fitting("Scan with WhatsApp → Settings → Linked devices → Link a device       "+status,
		"Scan with WhatsApp → Linked devices · "+status)
}

// fitting returns the first text that fits into a line of the terminal. A wrapped line would not be wiped completely.
func (v *screenView) fitting(texts ...string) string {
	wide, _ := v.size()
	for _, text := range texts {
		if utf8.RuneCountInString(text) < wide {
			return text
		}
	}
	return ""
}

func (v *screenView) tick(s *pairStep) {
	if v.lines == 0 || s.Step != parley.QRStep {
		return
	}
	if header := v.headerOf(s); header != v.header {
		v.header = header
		fmt.Fprintf(v.err, "\x1b[%dA\r\x1b[K%s\x1b[%dB\r", v.lines+1, header, v.lines+1)
	}
}

func (v *screenView) wipe() {
	if v.lines > 0 {
		fmt.Fprintf(v.err, "\x1b[%dA\r\x1b[J", v.lines+1)
		v.lines = 0
	}
}

func (v *screenView) close() { v.wipe() }

// fits fails if the terminal is too small for a code, and names other ways.
func (v *screenView) fits(ctx context.Context, rows []string) error {
	columns, lines := qrSize(rows)
	lines += 3 // the header, the line below, and the cursor's own
	wide, high := v.size()
	if wide >= columns && high >= lines {
		return nil
	}
	small := fmt.Sprintf("Your terminal has %d rows, the code needs %d.", high, lines)
	if wide < columns {
		small = fmt.Sprintf("Your terminal has %d columns, the code needs %d.", wide, columns)
	}
	link, err := makeLink(ctx, v.client, v.code)
	if err != nil {
		return err
	}
	where := fmt.Sprintf("Open %s , or use --code NUMBER, or --png qr.png", link.URL)
	if _, remote := v.getenv("SSH_CONNECTION"); remote { // most likely without a browser
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
