package parleytest

import (
	"bytes"
	"strings"
	"sync"
	"testing"
)

// Log keeps what a gateway logs, so that a test can look for what must not be there.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// Contains reports whether a text was logged.
func (l *Log) Contains(text string) bool { return strings.Contains(l.String(), text) }

// Lacks fails the test if any of these texts was logged.
func (l *Log) Lacks(t testing.TB, texts ...string) {
	t.Helper()
	for line := range strings.Lines(l.String()) {
		for _, text := range texts {
			if strings.Contains(line, text) {
				t.Errorf("the log has %q: %s", text, line)
			}
		}
	}
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
