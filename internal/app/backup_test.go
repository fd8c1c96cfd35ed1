package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley"
)

// TestOldBackupsAreRemoved makes more backups than are kept, beside files that the server did not make.
func TestOldBackupsAreRemoved(t *testing.T) {
	for keep, want := range map[int]int{0: 3, 1: 1, -1: 5} {
		t.Run(fmt.Sprint(keep), func(t *testing.T) {
			var s *server
			dir := Dir(t.TempDir())
			start(t, Config{DataDir: dir, Dev: true, KeepBackups: keep, opened: func(opened *server) { s = opened }})
			if err := os.MkdirAll(dir.Backups(), 0o700); err != nil {
				t.Fatal(err)
			}
			others := []string{"parley-before-the-move.tar", "parley-2026.tar", "parley-20260101T000000.000Z.tar.age", "notes.txt"}
			for _, name := range others {
				if err := os.WriteFile(filepath.Join(dir.Backups(), name), []byte("mine"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var made []string
			for range 5 {
				b, err := s.backup(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				made = append(made, b.Path)
			}
			if got := dir.madeBackups(); !slices.Equal(got, made[5-want:]) {
				t.Errorf("kept: %q, want %q", got, made[5-want:])
			}
			for _, name := range others {
				if _, err := os.Stat(filepath.Join(dir.Backups(), name)); err != nil {
					t.Errorf("a file that is not the server's: %v", err)
				}
			}
		})
	}
}

func TestBackupNeedsRoom(t *testing.T) {
	var s *server
	free := int64(backupReserve)
	dir := Dir(t.TempDir())
	start(t, Config{DataDir: dir, Dev: true, freeDisk: func(string) int64 { return free }, opened: func(opened *server) { s = opened }})
	_, err := s.backup(t.Context())
	if parley.ToCode(err) != parley.Unavailable || !strings.Contains(err.Error(), "There is no room for a backup") {
		t.Errorf("without room: %v", err)
	}
	if made, err := os.ReadDir(dir.Backups()); err == nil && len(made) > 0 {
		t.Errorf("it wrote %v", made)
	}
	free = 1 << 40
	if _, err := s.backup(t.Context()); err != nil {
		t.Errorf("with room: %v", err)
	}
}
