package cluster_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/internal/postgrestest"
)

// smallDisk makes a file system of a fixed size. The test is skipped where that is not possible.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Getenv("PARLEY_POSTGRES") == "" {
		t.Skip("PARLEY_POSTGRES is not set")
	}
	dir, err := os.MkdirTemp("", "parley-disk-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=192m,mode=0755"); err != nil {
		t.Skipf("a file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		_, err := f.Write(make([]byte, size))
		switch {
		case errors.Is(err, syscall.ENOSPC):
			size /= 2
		case err != nil:
			t.Fatal(err)
		}
	}
}

// TestNodesWithFullDisk fills the disk of PostgreSQL under load, and frees it. Its log of changes is on another disk: PostgreSQL
// stops when that one is full, as in TestDatabaseCrashes.
func TestNodesWithFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t)
	c := startNodesOn(t, postgrestest.StartWith(t, postgrestest.Options{Dir: disk, OwnLog: true}).Schema(t))
	l := startLoad(t, c)
	l.progress()
	file := filepath.Join(disk, "file")
	fill(t, file)
	c.eventually("a node is not ready and says why", func() bool { return strings.Contains(c.notReady(), "the disk of PostgreSQL is full") })
	c.eventually("the doctor says it", func() bool {
		for _, n := range c.all {
			out, _ := exec.Command(program, "doctor", "--data", n.data).CombinedOutput() // it fails: there is a problem
			if strings.Contains(string(out), "the disk of PostgreSQL is full") {
				return true
			}
		}
		return false
	})
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	l.progress()
	c.eventually("all nodes are ready", func() bool { return c.notReady() == "" })
	l.judge()
}

// notReady is what the first node says that is not ready; empty: all are.
func (c *nodes) notReady() string {
	for _, n := range c.all {
		resp, err := c.client.Get("http://" + n.addr + "/readyz")
		if err != nil {
			return err.Error()
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return err.Error()
		}
		if resp.StatusCode != http.StatusOK {
			return string(body)
		}
	}
	return ""
}
