//go:build unix

package media

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// A full disk is a server error, not the caller's, and leaves no file. The test simulates it by a
// limit on file sizes, which is process-wide, so it runs in a process of its own.
func TestFullDiskLeavesNoFile(t *testing.T) {
	needFFmpeg(t)
	if os.Getenv("PARLEY_TEST_CHILD") == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), "PARLEY_TEST_CHILD=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Errorf("in a process of its own: %v\n%s", err, out)
		}
		return
	}
	l := open(t)
	sound := tone(t, "a.wav", 60)
	base := serve(t, map[string][]byte{"/big.bin": bytes.Repeat([]byte("x"), 10<<20), "/a.wav": sound})
	limit := func(bytes uint64) {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: 1 << 40}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(name string, err error) {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, ok := errors.AsType[*Error](err); ok {
			t.Errorf("%s: the caller gets %q", name, err)
		}
		if files := listFiles(t, l); len(files) != 0 {
			t.Errorf("%s: left behind: %v", name, files)
		}
	}

	limit(1 << 20)
	_, err := l.File(t.Context(), Source{URL: base + "/big.bin"})
	check("fetch", err)
	_, err = l.Store(t.Context(), "demo", make([]byte, 2<<20), "")
	check("keep", err)
	limit(1 << 40)
	if _, err := l.File(t.Context(), Source{URL: base + "/big.bin"}); err != nil {
		t.Errorf("with space again: %v", err)
	}
}
