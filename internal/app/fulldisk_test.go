package app

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/internal/doctor"
)

// smallDisk mounts a disk of its own, where that is possible.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a disk")
	}
	at := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=8m,mode=0700", "tmpfs", at).CombinedOutput(); err != nil {
		t.Skipf("no disk can be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", at).CombinedOutput(); err != nil {
			t.Errorf("unmount: %v: %s", err, out)
		}
	})
	return at
}

// fillDisk writes a file until nothing more fits.
func fillDisk(t *testing.T, at string) (empty func()) {
	t.Helper()
	name := filepath.Join(at, "filler")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{64 << 10, 1} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDiskRunsFull: the answers say what is wrong, the doctor finds it, a server that is started says it too, and all
// of it works again once there is room.
func TestDiskRunsFull(t *testing.T) {
	disk := smallDisk(t)
	dir := Dir(filepath.Join(disk, "data"))
	var running *server
	cfg := Config{DataDir: dir, Dev: true, opened: func(s *server) { running = s }}
	r := start(t, cfg)
	empty := fillDisk(t, disk)
	eventually(t, "a send is refused for that reason", func() bool {
		status, body := r.send(t)
		return status == http.StatusServiceUnavailable && strings.Contains(body, "disk is full")
	})
	if status, body := get(t, r.url+"/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "disk is full") {
		t.Errorf("/readyz answers %d %s", status, body)
	}
	for _, f := range running.examine(t.Context()) {
		if f.Check == "data" && (f.Level != doctor.Problem || !strings.Contains(f.Found, "the disk is full")) || f.Check == "server" &&
			f.Level != doctor.Problem {
			t.Errorf("the doctor finds %+v", f)
		}
	}
	empty()
	eventually(t, "a send is accepted", func() bool {
		status, _ := r.send(t)
		return status == http.StatusOK
	})
	r.end(t)

	for name, cfg := range map[string]Config{"dev": {DataDir: dir, Dev: true}, "serve": {DataDir: dir},
		"new": {DataDir: Dir(filepath.Join(disk, "new"))}} {
		empty := fillDisk(t, disk)
		err := <-launch(t, cfg).ended
		if err == nil || !strings.Contains(err.Error(), "is full") || !strings.Contains(err.Error(), "Free some space") {
			t.Errorf("%s on a full disk ended with: %v", name, err)
		}
		empty()
	}
	start(t, Config{DataDir: dir}).end(t)
}
