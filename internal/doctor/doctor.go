// Package doctor checks a gateway and says how to fix problems, in the same words on the command line and in the
// management API.
//
// Invariants: a check changes nothing. Every problem has a sentence; a remedy is a command or an action, never a guess.
package doctor

import (
	"fmt"
	"strings"
	"time"
)

// Finding is the result of one check.
type Finding struct {
	Check  string `json:"check"`
	Level  Level  `json:"level"`
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"` // how to fix it; may be empty
}

// Level is the severity of a finding.
type Level string

const (
	Fine    Level = "ok"
	Warning Level = "warning"
	Problem Level = "problem"
)

// Count is a number with its noun, in the plural if needed.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Lasted is a length of time in its largest unit: 40 s, 12 min, 1 h, 3 d.
func Lasted(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d d", d/(24*time.Hour))
}

// When is a local time for people. The zero time is a dash.
func When(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// Size is a number of bytes for people.
func Size(n int64) string {
	const units = "kMGTP"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n), -1
	for value >= 1000 && unit < len(units)-1 {
		value, unit = value/1000, unit+1
	}
	return fmt.Sprintf("%.1f %cB", value, units[unit])
}

// IsUnencrypted reports whether an address is neither https nor on this machine.
func IsUnencrypted(address string) bool {
	return len(address) > 5 && strings.EqualFold(address[:5], "http:") && !isLoopback(address)
}
