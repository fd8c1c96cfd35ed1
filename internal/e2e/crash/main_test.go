// Package crash_test ends servers with SIGKILL, and their networks with outages, while clients send, and then compares what
// each subscriber received with what was published.
package crash_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// waitLimit is the limit of every wait in these tests. Only a program that hangs reaches it.
const waitLimit = 2 * time.Minute

// program is the path of the program, built for these tests.
var program string

func TestMain(m *testing.M) {
	os.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector would wait a second at the end of each of our many processes
	dir, err := os.MkdirTemp("", "parley-crash-")
	if err == nil {
		program = filepath.Join(dir, "parley")
		err = build()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func build() error {
	args := append([]string{"build"}, buildFlags...)
	out, err := exec.Command("go", append(args, "-o", program, "parley/cmd/parley")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return nil
}
