package app

import (
	"strings"
	"testing"
	"time"

	"parley"
	"parley/internal/gateway"
)

func TestScreenLines(t *testing.T) {
	v := view{nameOf: func(parley.ChannelCode, parley.ContactID) string { return "Ayu" }}
	at := time.Date(2026, 11, 15, 12, 4, 31, 0, time.Local)
	sent := gateway.Activity{At: at, Channel: "demo", Contact: "6281234567890@c.us", Kind: parley.KindText, FromMe: true,
		Text: "Halo", ID: "3EB0A1", Status: parley.Sent, Took: 4 * time.Millisecond}
	first := v.line(sent)
	for _, part := range []string{"12:04:31", "demo → Ayu", "text", "Halo", "SENT", "4 ms", "3EB0A1"} {
		if !strings.Contains(first, part) {
			t.Errorf("no %q in %q", part, first)
		}
	}

	receipt := gateway.Activity{At: at, Channel: "demo", Contact: sent.Contact, FromMe: true, ID: "3EB0A1", Status: parley.Read,
		Took: 2600 * time.Millisecond}
	second := v.line(receipt)
	if strings.Contains(second, "Ayu") || strings.Contains(second, "3EB0A1") || !strings.Contains(second, "READ") ||
		!strings.Contains(second, "2.6 s") {
		t.Errorf("the line below is %q, want only what is new", second)
	}
	if strings.Index(first, "SENT") != strings.Index(second, "READ")+len("→")-1 { // the arrow has three bytes
		t.Errorf("the columns are not aligned:\n%s\n%s", first, second)
	}

	v.line(gateway.Activity{At: at, Channel: "demo", Contact: sent.Contact, Kind: parley.KindText, Text: "makasih!", ID: "B",
		Status: parley.Received})
	if late := v.line(receipt); !strings.Contains(late, "3EB0A1") {
		t.Errorf("after another message the receipt must say whose it is: %q", late)
	}
}

// TestScreenIgnoresControlCharacters: what strangers write must not reach the terminal as commands.
func TestScreenIgnoresControlCharacters(t *testing.T) {
	v := view{nameOf: func(parley.ChannelCode, parley.ContactID) string { return "\x1b]0;owned\a" }}
	line := v.line(gateway.Activity{Channel: "demo", Kind: parley.KindText, Text: "a\x1b[2Jb\nc\u202ed\r\u009b2J", ID: "B",
		Status: parley.Received})
	for _, r := range line {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u202e' {
			t.Errorf("%U in %q", r, line)
		}
	}
}

func TestShowNumber(t *testing.T) {
	for digits, want := range map[string]string{
		"6281234567890": "+62 812-3456-7890",
		"9998110000001": "+999 811-0000-001",
		"14155550123":   "+1 415-5550-123",
		"12345":         "+12345",
		"12345678":      "+1 234-5678",
	} {
		if got := ShowNumber(digits); got != want {
			t.Errorf("ShowNumber(%s) = %s, want %s", digits, got, want)
		}
	}
}
