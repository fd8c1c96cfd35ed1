package app

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var quiet = slog.New(slog.DiscardHandler)

func fileMode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func TestPrepareMakesAPrivateDirectory(t *testing.T) {
	dir := Dir(filepath.Join(t.TempDir(), "a", "b"))
	if err := dir.Prepare(quiet); err != nil {
		t.Fatal(err)
	}
	if mode := fileMode(t, string(dir)); mode != 0o700 {
		t.Errorf("mode %04o, want 0700", mode)
	}
}

func TestPrepareTightensOwnFiles(t *testing.T) {
	dir := Dir(t.TempDir())
	if err := os.WriteFile(dir.Database(), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	os.Chmod(string(dir), 0o755)
	os.Chmod(dir.Database(), 0o644)
	var log strings.Builder
	if err := dir.Prepare(slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Fatal(err)
	}
	if mode := fileMode(t, string(dir)); mode != 0o700 {
		t.Errorf("the directory has mode %04o, want 0700", mode)
	}
	if mode := fileMode(t, dir.Database()); mode != 0o600 {
		t.Errorf("the database has mode %04o, want 0600", mode)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 2 {
		t.Errorf("%d warnings, want 2:\n%s", n, log.String())
	}
}

func TestPrepareRejectsOtherFiles(t *testing.T) {
	dir := Dir(t.TempDir())
	if err := os.WriteFile(filepath.Join(string(dir), "thesis.tex"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	os.Chmod(string(dir), 0o755)
	err := dir.Prepare(quiet)
	if _, ok := errors.AsType[*ConfigError](err); !ok {
		t.Errorf("error %v, want a ConfigError", err)
	}
	if mode := fileMode(t, string(dir)); mode != 0o755 {
		t.Errorf("mode %04o, want the 0755 that it had", mode)
	}
}

func TestLockIsExclusive(t *testing.T) {
	dir := Dir(t.TempDir())
	lock, err := dir.Lock("parley test")
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Announce(Running{PID: 4121, URL: "http://127.0.0.1:7275"}); err != nil {
		t.Fatal(err)
	}
	_, err = dir.Lock("parley test")
	if inUse, ok := errors.AsType[*InUseError](err); !ok || inUse.By.PID != 4121 || !strings.Contains(err.Error(), "pid 4121") {
		t.Errorf("the second lock: %v, want an InUseError that names pid 4121", err)
	}
	if running, ok := dir.Running(); !ok || running.URL != "http://127.0.0.1:7275" {
		t.Errorf("running: %v %v", running, ok)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if running, ok := dir.Running(); ok {
		t.Errorf("after the end still running: %v", running)
	}
	again, err := dir.Lock("parley test")
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}
