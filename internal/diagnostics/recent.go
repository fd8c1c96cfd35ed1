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
	recentLine  = 2 << 10 // of a longer one the beginning is kept
)

// Recent keeps the last warnings and errors of a log, for the bundle. It is safe for concurrent use.
type Recent struct {
	mu    sync.Mutex
	lines []string // a ring once it is full
	next  int      // where the ring goes on
}

// Handler takes a log's records. Which of them are kept does not depend on the level that the log itself is at.
func (r *Recent) Handler() slog.Handler {
	return slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelWarn})
}

// Write keeps a line. The handler writes one at a time.
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

// Lines returns what is kept, oldest first.
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
