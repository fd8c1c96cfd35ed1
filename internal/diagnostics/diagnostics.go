// Package diagnostics makes the support bundle: a zip file that describes the state of a server.
//
// Invariants: it has no secrets, message texts, codes, names or whole phone numbers. Every field in it is listed here by
// name, so a new field of the program is not included by accident. A part that fails does not prevent the others.
package diagnostics

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/internal/doctor"
	"parley/internal/network"
)

// Store has the methods of the store that the bundle needs.
type Store interface {
	Webhooks(ctx context.Context) ([]parley.Webhook, error)
	Deliveries(ctx context.Context, q parley.DeliveryQuery, page parley.Page) ([]parley.Delivery, int64, error)
	OldestDelivery(ctx context.Context, webhook parley.WebhookID, untried bool) (parley.Delivery, error)
	CountWaiting(ctx context.Context, webhook parley.WebhookID) (int64, error)
	ChannelStates(ctx context.Context, code parley.ChannelCode, since time.Time, limit int) ([]parley.ChannelState, error)
}

// Source is the data of the bundle. All fields are required.
type Source struct {
	Version   string
	Mode      string // dev or serve
	StartedAt time.Time
	Settings  []Setting // with secrets masked; may be empty
	Doctor    func(ctx context.Context) []doctor.Finding
	Channels  func() []Channel
	Store     Store
	// Metrics writes the metrics as they are served.
	Metrics func() (string, error)
	// Log returns the last warnings and errors, oldest first.
	Log func() []string
}

// Setting is a setting with its origin.
type Setting struct {
	Key    string `json:"setting"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// Channel is a channel with its evidence.
type Channel struct {
	parley.Channel
	Evidence *network.Evidence // nil: not running, or unknown
	Waiting  int
}

// File is one file of the bundle.
type File struct{ Name, Text string }

// part is a file and the function that writes it.
type part struct {
	name, about string
	write       func(ctx context.Context, b *strings.Builder) error
}

// Collect makes all files; the first one describes the others. A file that fails contains the error: a bundle is needed
// most when something is broken.
func Collect(ctx context.Context, s Source) []File {
	now := time.Now()
	parts := []part{
		{"version.txt", "what runs, since when and where, and what it was built of", s.writeVersion},
		{"config.txt", "every setting and where it came from; secrets are masked", s.writeSettings},
		{"doctor.txt", "what parley doctor finds", s.writeFindings},
		{"channels.json", "the status of each channel; only the last digits of its number", s.writeChannels},
		{"channel-changes.json", "what the status of channels was of late, newest first", s.writeChanges},
		{"webhooks.json", "webhooks by their hosts, and what became of their deliveries", s.writeWebhooks},
		{"deliveries.json", "deliveries counted by state, and the last that failed", s.writeDeliveries},
		{"metrics.txt", "the figures that /metrics shows, without empty histograms", s.writeMetrics},
		{"log.txt", "the last warnings and errors of the log, oldest first", s.writeLog},
		{"goroutines.txt", "where each thread of the program is, without any value", writeGoroutines},
	}
	files := []File{{"README.txt", readme(s.Version, now, parts)}}
	for _, p := range parts {
		var b strings.Builder
		if err := p.write(ctx, &b); err != nil {
			fmt.Fprintf(&b, "This could not be found out: %s\n", scrub(err.Error()))
		}
		files = append(files, File{p.name, b.String()})
	}
	return files
}

func readme(version string, now time.Time, parts []part) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Diagnostics of parley %s, made %s\n\n", version, now.UTC().Format(time.RFC3339))
	for _, p := range parts {
		fmt.Fprintf(&b, "  %-22s%s\n", p.name, p.about)
	}
	b.WriteString(`
None of the files has tokens, signing secrets, keys, links that sign in, pairing
codes, one-time codes, texts or files of messages, names of people or channels,
or whole phone numbers. They do have the codes of channels, the hosts of webhooks,
the addresses that the server listens on and paths on its disk.

Look through them before you hand them to somebody.
`)
	return b.String()
}

// Zip packs files. They are small and in memory already.
func Zip(files []File, at time.Time) ([]byte, error) {
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for _, f := range files {
		w, err := z.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: at})
		if err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Name, err)
		}
		if _, err := io.WriteString(w, f.Text); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.Name, err)
		}
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("pack the files: %w", err)
	}
	return packed.Bytes(), nil
}

const (
	recentLines = 500
	recentLine  = 2 << 10 // bytes of a line; the rest is cut
)

// Recent stores the last warnings and errors of a log, for the bundle. It is safe for concurrent use.
type Recent struct {
	mu    sync.Mutex
	lines []string // a ring buffer
	next  int      // next index of the ring
}

// Handler receives the records of a log. The level of the log does not matter here.
func (r *Recent) Handler() slog.Handler {
	return slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelWarn})
}

// Write stores a line. The handler serializes calls.
func (r *Recent) Write(line []byte) (int, error) {
	kept := bytes.TrimSuffix(line, []byte("\n"))
	kept = kept[:min(len(kept), recentLine)]
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lines) < recentLines {
		r.lines = append(r.lines, string(kept))
	} else {
		r.lines[r.next] = string(kept)
		r.next = (r.next + 1) % recentLines
	}
	return len(line), nil
}

func (r *Recent) Lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.lines[r.next:], r.lines[:r.next])
}

func (s Source) writeLog(_ context.Context, b *strings.Builder) error {
	for _, line := range s.Log() {
		b.WriteString(scrub(line))
		b.WriteByte('\n')
	}
	return nil
}

var (
	addresses = regexp.MustCompile(`\b[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]+`)
	numbers   = regexp.MustCompile(`\+\d(?:[ .()-]*\d){6,}|\b\d{8,}\b|\d{8,}@`)
	tokens    = regexp.MustCompile(`\beyJ[\w-]+\.[\w-]*\.[\w-]*|\bwhsec_[\w+/=-]+`)
)

// scrub removes from a sentence what its writer should have omitted: addresses except their host, phone numbers except
// their last digits, and tokens and secrets.
func scrub(sentence string) string {
	sentence = addresses.ReplaceAllStringFunc(sentence, func(found string) string {
		address := strings.TrimRight(found, ".,;:!?)")
		scheme, _, _ := strings.Cut(address, "://")
		return scheme + "://" + toHost(address) + found[len(address):]
	})
	sentence = tokens.ReplaceAllString(sentence, "[secret]")
	return scrubNumbers(sentence)
}

func scrubNumbers(text string) string {
	return numbers.ReplaceAllStringFunc(text, func(found string) string {
		number, at := strings.CutSuffix(found, "@")
		if at {
			return maskNumber(number) + "@"
		}
		return maskNumber(number)
	})
}

// shownDigits are enough to recognise one of a few numbers.
const shownDigits = 3

func maskNumber(number string) string {
	if number == "" {
		return ""
	}
	return "…" + number[max(0, len(number)-shownDigits):]
}

// toHost is the host and port of an address. The rest may contain secrets.
func toHost(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "unknown"
	}
	return u.Host
}
