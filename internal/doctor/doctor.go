// Package doctor checks a gateway and says how to fix problems, in the same words on the command line and in the
// management API.
//
// Invariants: a check changes nothing. Every problem has a sentence; a remedy is a command or an action, never a guess.
// The level of a finding is decided here and nowhere else: the console, the command line and alerts count the same.
package doctor

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"parley"
)

// Finding is the result of one check.
type Finding struct {
	Check  string `json:"check"`
	Level  Level  `json:"level"`
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"` // how to fix it; may be empty
	// Code is a stable word for what is wrong, for programs; empty: Check and Level are all that they can know.
	Code string `json:"code,omitempty"`
	// What it is about. Empty: the server as a whole.
	Channel parley.ChannelCode `json:"channel,omitempty"`
	Webhook parley.WebhookID   `json:"webhook,omitempty"`
	URL     string             `json:"url,omitempty"` // of the webhook
	Since   time.Time          `json:"since,omitzero"`
	Until   time.Time          `json:"until,omitzero"` // when it ends by itself; zero: it does not, or is unknown
	// Sentence is Found as a sentence that needs no name before it; empty: see [Finding.Text].
	Sentence string `json:"-"`
}

// Text is what was found as a sentence of its own.
func (f Finding) Text() string {
	if f.Sentence != "" {
		return f.Sentence
	}
	if first, _ := utf8.DecodeRuneInString(f.Found); unicode.IsUpper(first) && strings.HasSuffix(f.Found, ".") {
		return f.Found
	}
	return strings.ToUpper(f.Check[:1]) + f.Check[1:] + ": " + strings.TrimSuffix(f.Found, ".") + "."
}

// Level is the severity of a finding.
type Level string

const (
	Fine    Level = "ok"
	Warning Level = "warning" // it may stop to work
	Problem Level = "problem" // it does not work
)

// Attention selects the findings that need somebody: problems first, then warnings, the newest first.
func Attention(findings []Finding) []Finding {
	found := slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return f.Level == Fine })
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(b.Level.severity()-a.Level.severity(), b.Since.Compare(a.Since))
	})
	return found
}

// Sort puts the worst first.
func Sort(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int { return b.Level.severity() - a.Level.severity() })
}

func (l Level) severity() int { return slices.Index([]Level{Fine, Warning, Problem}, l) }

// CountLevels counts the problems and the warnings.
func CountLevels(findings []Finding) (problems, warnings int) {
	for _, f := range findings {
		switch f.Level {
		case Problem:
			problems++
		case Warning:
			warnings++
		}
	}
	return problems, warnings
}

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
	u, err := url.Parse(address)
	return len(address) > 5 && strings.EqualFold(address[:5], "http:") && (err != nil || !IsLoopback(u.Hostname()))
}

// Settings counts the origins of a server's settings.
type Settings struct {
	File                      string // the configuration file; may be empty
	Environment, Files, Flags int    // counts by origin; Files are named by the environment
}

// Look reports the origins. Invalid settings never get this far.
func (s Settings) Look() Finding {
	f := Finding{Check: "config", Level: Fine, Found: cmp.Or(s.File, "no configuration file")}
	for _, from := range []struct {
		count int
		where string
	}{{s.Environment, "environment"}, {s.Files, "files that the environment names"}, {s.Flags, "flags"}} {
		if from.count > 0 {
			f.Found += fmt.Sprintf(", %d from %s", from.count, from.where)
		}
	}
	return f
}

const (
	// clockOff is the smallest deviation to report. It is above the uncertainty of the network's time.
	clockOff = 5 * time.Second
	// clockWrong is the deviation at which receivers reject the signatures of webhooks.
	clockWrong = 5 * time.Minute
)

// Clock reports how far this machine's clock is ahead of WhatsApp's. Negative is behind.
func Clock(ahead time.Duration) Finding {
	f := compareClocks(ahead, "WhatsApp's")
	f.Check = "clock"
	if f.Level == Fine {
		f.Found = "agrees with WhatsApp's"
		return f
	}
	f.Remedy, f.Code = "set it by network time (NTP)", "clock_off"
	if ahead.Abs() > clockWrong {
		f.Level = Problem
	}
	return f
}

// compareClocks says how far this machine's clock is ahead of another.
func compareClocks(ahead time.Duration, others string) Finding {
	if ahead.Abs() <= clockOff {
		return Finding{Level: Fine}
	}
	word := "ahead of"
	if ahead < 0 {
		word = "behind"
	}
	return Finding{Level: Warning, Found: fmt.Sprintf("The clock of this machine is %s %s %s.", Lasted(ahead.Abs()), word, others)}
}
