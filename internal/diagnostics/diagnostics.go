// Package diagnostics makes the file that somebody who asks for help hands over: how the server is, without
// secrets, message texts, codes, names or whole phone numbers. What is told is chosen field by field, so that
// nothing new is in it before somebody decides so.
package diagnostics

import (
	"context"
	"fmt"
	"strings"
	"time"

	"parley"
	"parley/internal/doctor"
	"parley/internal/network"
)

// Store is what the files tell of the store.
type Store interface {
	Webhooks(ctx context.Context) ([]parley.Webhook, error)
	Deliveries(ctx context.Context, q parley.DeliveryQuery, page parley.Page) ([]parley.Delivery, int64, error)
	OldestDelivery(ctx context.Context, webhook parley.WebhookID, untried bool) (parley.Delivery, error)
	CountWaiting(ctx context.Context, webhook parley.WebhookID) (int64, error)
	ChannelStates(ctx context.Context, code parley.ChannelCode, since time.Time, limit int) ([]parley.ChannelState, error)
}

// Source is where what is told comes from. All fields are required.
type Source struct {
	Version   string
	Mode      string // how the server was started
	StartedAt time.Time
	Settings  []Setting // those in force, secrets masked; none: nobody knows them
	Doctor    func(ctx context.Context) []doctor.Finding
	Channels  func() []Channel
	Store     Store
	// Metrics writes the figures as they are served.
	Metrics func() (string, error)
	// Log returns the last warnings and errors, oldest first.
	Log func() []string
}

// Setting is a setting in force, as it may be shown, and where it came from.
type Setting struct{ Key, Value, Origin string }

// Channel is a channel with what is known of it while it runs.
type Channel struct {
	parley.Channel
	Evidence *network.Evidence // nil: it is not running, or its network cannot tell
	Waiting  int
}

// File is one file of the bundle.
type File struct{ Name, Text string }

// part is how a file is made.
type part struct {
	name, about string
	write       func(ctx context.Context, b *strings.Builder) error
}

// Collect makes all files, the first of which says what the others are. What cannot be found out says so in
// its place: help is needed most where something does not work.
func Collect(ctx context.Context, s Source) []File {
	now := time.Now()
	parts := []part{
		{"version.txt", "what runs, since when and where, and what it was built of", s.writeVersion},
		{"config.txt", "every setting and where it came from; secrets are masked", s.writeSettings},
		{"doctor.txt", "what parley doctor finds", s.writeFindings},
		{"channels.json", "how each channel stands; of its number only the last digits", s.writeChannels},
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
