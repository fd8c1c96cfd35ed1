//go:build linux && (amd64 || arm64)

package confine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// dial has this test binary, run as a confined program, call an address and say what came of it.
const dial = "CONFINE_TEST_DIAL"

func TestMain(m *testing.M) {
	if address := os.Getenv(dial); address != "" {
		_, err := net.Dial("tcp", address)
		fmt.Print("dialled: ", err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// run runs a confined program and returns what it says, and how it ended.
func run(t *testing.T, l Limits, program string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // only a program that ignores its limits takes so long
	defer cancel()
	out, err := Command(ctx, l, program, args...).CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("%s %q goes on and on", program, args)
	}
	return string(out), err
}

func TestProgramRunsAsItIs(t *testing.T) {
	out, err := run(t, Limits{Memory: 512 << 20, CPU: time.Minute}, "sh", "-c", `echo "$0, $1"; exit 3`, "one", "two words")
	if ended, ok := errors.AsType[*exec.ExitError](err); out != "one, two words\n" || !ok || ended.ExitCode() != 3 {
		t.Errorf("%q, %v", out, err)
	}
	if _, err := run(t, Limits{}, "no-such-program"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("a program that is not there: %v", err)
	}
}

func TestMemoryIsLimited(t *testing.T) {
	fill := []string{"if=/dev/zero", "of=/dev/null", "bs=256M", "count=1"}
	if out, err := run(t, Limits{Memory: 1 << 30}, "dd", fill...); err != nil {
		t.Errorf("within the limit: %v, %s", err, out)
	}
	if out, err := run(t, Limits{Memory: 128 << 20}, "dd", fill...); err == nil {
		t.Errorf("over the limit: %s", out)
	}
}

func TestCPUIsLimited(t *testing.T) {
	_, err := run(t, Limits{CPU: time.Second}, "sh", "-c", "while :; do :; done")
	if ended, ok := errors.AsType[*exec.ExitError](err); !ok || ended.Exited() {
		t.Errorf("it ended with %v, want a signal", err)
	}
}

func TestFilesAreLimited(t *testing.T) {
	file := filepath.Join(t.TempDir(), "written")
	if out, err := run(t, Limits{}, "sh", "-c", `echo something > "$0"`, file); err == nil {
		t.Errorf("a file could be written: %s", out)
	}
	if info, err := os.Stat(file); err == nil && info.Size() > 0 {
		t.Errorf("the file has %d bytes", info.Size())
	}
	if out, err := run(t, Limits{}, "sh", "-c", "ulimit -n"); err != nil || strings.TrimSpace(out) != fmt.Sprint(maxFiles) {
		t.Errorf("%s files may be open, %v", out, err)
	}
}

func TestNetworkIsDenied(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(dial, ln.Addr().String())
	free, err := exec.CommandContext(t.Context(), self).CombinedOutput()
	if err != nil || string(free) != "dialled: <nil>" {
		t.Fatalf("without limits: %s, %v", free, err)
	}
	if out, err := run(t, Limits{}, self); err != nil || !strings.Contains(out, "operation not permitted") {
		t.Errorf("confined: %s, %v", out, err)
	}
}

// TestProgramsStart runs a program often, several at a time, with a limit that this process is above already: nothing may
// be allocated between the limit and the program.
func TestProgramsStart(t *testing.T) {
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 100 {
				out, err := Command(t.Context(), Limits{Memory: 1 << 30, CPU: time.Minute}, "true").CombinedOutput()
				if err != nil {
					t.Errorf("%v: %.500s", err, out)
					return
				}
			}
		})
	}
	running.Wait()
}
