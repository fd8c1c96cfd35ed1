package parleytest

import (
	"bytes"
	"strings"
	"sync"
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

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
