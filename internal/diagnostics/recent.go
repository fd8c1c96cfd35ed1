package diagnostics

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

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
