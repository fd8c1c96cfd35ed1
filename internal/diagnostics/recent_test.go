package diagnostics

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestRecentStoresLastWarnings(t *testing.T) {
	var recent Recent
	log := slog.New(recent.Handler()).With("part", "test")
	if got := recent.Lines(); len(got) != 0 {
		t.Errorf("before anything happened there is %q", got)
	}
	for i := range recentLines + 3 {
		log.Info("fine", "i", i)
		log.Warn("trouble", "i", i)
	}
	log.Error(strings.Repeat("x", 2*recentLine))
	lines := recent.Lines()
	if len(lines) != recentLines {
		t.Fatalf("%d lines are kept", len(lines))
	}
	for i, line := range lines[:len(lines)-1] {
		if want := fmt.Sprintf(`msg=trouble part=test i=%d`, i+4); !strings.HasSuffix(line, want) {
			t.Fatalf("line %d is %q, not %q", i, line, want)
		}
	}
	if last := lines[len(lines)-1]; len(last) != recentLine || !strings.Contains(last, "level=ERROR") {
		t.Errorf("the last has %d bytes: %.100s", len(last), last)
	}
}
