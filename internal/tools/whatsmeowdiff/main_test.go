package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestListIsCurrent fails when the pinned whatsmeow has renamed a function, or the driver a file.
func TestListIsCurrent(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	text, missing, err := extract(strings.TrimSpace(string(dir)))
	if err != nil || len(missing) > 0 || !strings.Contains(text, "func (cli *Client) SendMessage(") {
		t.Errorf("missing are %q: %v", missing, err)
	}
	for file := range replaced {
		if _, err := os.Stat(filepath.Join("../../network/whatsapp", file)); err != nil {
			t.Error(err)
		}
	}
}
